//! Notifications: tell people through a webhook, Slack or a command what they may want to know at once.
//!
//! What there is to tell is read from the published snapshot, so nothing is lost when the runner stops or dies between an event and its
//! delivery. What was told is recorded in the runner's folder, so nothing is told twice. Each delivery needs its own permit: while a
//! switch is pulled, in observe mode, or before a required preflight nothing is sent. What is still true afterwards is sent then.

mod delivery;
mod notices;
mod sent;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;

use crate::config::notify::NotifySettings;
use crate::engine::permit::EffectKind;
use crate::runtime::{Gatekeeper, Handle, now};

use delivery::Delivered;
pub use delivery::Mailer;
pub use notices::{Notice, notices};
pub use sent::SentNotices;

/// The most deliveries at the same time; the rest waits for the next look at the snapshot.
const AT_ONCE: usize = 8;
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// How long to wait before a refused permit is requested again.
const REFUSED_AGAIN: Duration = Duration::from_secs(2);
/// How long a runner that is stopping waits for deliveries under way.
const LAST_DELIVERIES: Duration = Duration::from_secs(5);

/// What [`notify`] works with.
pub struct NotifierParts {
    pub receivers: Vec<NotifySettings>,
    pub mailer: Mailer,
    pub gatekeeper: Arc<Gatekeeper>,
    /// The file that records what was told.
    pub record: PathBuf,
}

/// Sends notifications until the driver (the runner's loop) is gone.
pub async fn notify(parts: NotifierParts, handle: Handle) {
    let Handle { inbox, mut snapshots, .. } = handle;
    // The snapshot channel closes when the driver drops its end; this sender must not keep the runner alive.
    drop(inbox);
    let mut sent = SentNotices::read(&parts.record);
    sent.begin(&parts.receivers, &notices(&snapshots.borrow()), now());
    let mailer = Arc::new(parts.mailer);
    let mut under_way: JoinSet<(String, Delivered)> = JoinSet::new();
    let mut busy: BTreeSet<String> = BTreeSet::new();
    let mut over = false;
    loop {
        let mut refused = false;
        for notice in notices(&snapshots.borrow_and_update()) {
            for receiver in parts.receivers.iter().filter(|receiver| receiver.when.contains(&notice.occasion)) {
                let id = sent::id_of(receiver, &notice);
                if sent.knows(&id) || busy.contains(&id) || busy.len() >= AT_ONCE {
                    continue;
                }
                if parts.gatekeeper.permit(EffectKind::Notify, notice.ticket.as_ref()).is_err() {
                    refused = true;
                    continue;
                }
                busy.insert(id.clone());
                let (mailer, gatekeeper) = (mailer.clone(), parts.gatekeeper.clone());
                let (receiver, notice) = (receiver.clone(), notice.clone());
                under_way.spawn(async move {
                    let delivered = mailer.deliver(&receiver, &notice, &gatekeeper).await;
                    (id, delivered)
                });
            }
        }
        if over {
            break;
        }
        let again = if refused { REFUSED_AGAIN } else { Duration::from_secs(3_600) };
        tokio::select! {
            seen = snapshots.changed() => {
                over = seen.is_err();
                if !over {
                    tokio::time::sleep(LOOK_EVERY).await;
                }
            }
            Some(ended) = under_way.join_next() => take(ended, &mut busy, &mut sent),
            () = tokio::time::sleep(again) => {}
        }
    }
    let last = async {
        while let Some(ended) = under_way.join_next().await {
            take(ended, &mut busy, &mut sent);
        }
    };
    let _ = tokio::time::timeout(LAST_DELIVERIES, last).await;
}

fn take(
    ended: Result<(String, Delivered), tokio::task::JoinError>,
    busy: &mut BTreeSet<String>,
    sent: &mut SentNotices,
) {
    // A delivery that panicked stays marked as busy, so that it does not panic again and again. The next start of the runner retries it.
    let Ok((id, delivered)) = ended else { return };
    busy.remove(&id);
    match delivered {
        Delivered::Told | Delivered::GivenUp => sent.add(id, now()),
        Delivered::Refused => {}
    }
}
