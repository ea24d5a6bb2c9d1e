//! Notifications: tells people through a webhook, Slack or a command what they may want to know at once.
//!
//! What there is to tell is read from the published picture, so nothing is lost when the runner ends or dies between an event and
//! its delivery; what was told is kept in the runner's folder, so nothing is told twice. Each delivery needs a permit of its own:
//! under a switch, in observe mode or before a preflight nothing is sent, and what is still true afterwards is told then.

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

/// Deliveries at the same time; the rest waits for the next look.
const AT_ONCE: usize = 8;
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// What a permit was refused for is looked at again after this long.
const REFUSED_AGAIN: Duration = Duration::from_secs(2);
/// How long the runner's end is held up by deliveries under way.
const LAST_DELIVERIES: Duration = Duration::from_secs(5);

/// What the notifier is made from.
pub struct NotifierParts {
    pub receivers: Vec<NotifySettings>,
    pub mailer: Mailer,
    pub gatekeeper: Arc<Gatekeeper>,
    /// The file that knows what was told.
    pub record: PathBuf,
}

/// Tells until the driver is gone.
pub async fn notify(parts: NotifierParts, handle: Handle) {
    let Handle { inbox, mut snapshots, .. } = handle;
    // Only the driver's end of the watch tells when it is over.
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
    // One that broke down stays busy: it is told by the next life, and does not break down in a circle.
    let Ok((id, delivered)) = ended else { return };
    busy.remove(&id);
    match delivered {
        Delivered::Told | Delivered::GivenUp => sent.add(id, now()),
        Delivered::Refused => {}
    }
}
