//! Notifications: tell people through a webhook, Slack or a command what they may want to know at once.
//!
//! What there is to tell is read from the published snapshot, so nothing is lost when the runner stops or dies between an event and its
//! delivery. What was told is recorded in the runner's folder, so nothing is told twice. Each delivery needs its own permit: while a
//! switch is pulled, in observe mode, or before a required preflight nothing is sent. What is still true afterwards is sent then.

mod delivery;
mod notices;
mod sent;

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::{self, JoinSet};

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

/// What [`notify()`] works with.
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
    let mut under_way = Deliveries::default();
    let mut over = false;
    loop {
        let mut refused = false;
        for notice in notices(&snapshots.borrow_and_update()) {
            for receiver in parts.receivers.iter().filter(|receiver| receiver.when.contains(&notice.occasion)) {
                let id = sent::id_of(receiver, &notice);
                if sent.knows(&id) || !under_way.have_room_for(&id) {
                    continue;
                }
                if parts.gatekeeper.permit(EffectKind::Notify, notice.ticket.as_ref()).is_err() {
                    refused = true;
                    continue;
                }
                let (mailer, gatekeeper) = (mailer.clone(), parts.gatekeeper.clone());
                let (receiver, notice) = (receiver.clone(), notice.clone());
                under_way.begin(id, async move { mailer.deliver(&receiver, &notice, &gatekeeper).await });
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
            Some(ended) = under_way.next() => take(ended, &mut sent),
            () = tokio::time::sleep(again) => {}
        }
    }
    let last = async {
        while let Some(ended) = under_way.next().await {
            take(ended, &mut sent);
        }
    };
    let _ = tokio::time::timeout(LAST_DELIVERIES, last).await;
}

fn take((id, delivered): (String, Option<Delivered>), sent: &mut SentNotices) {
    match delivered {
        Some(Delivered::Told | Delivered::GivenUp) => sent.add(id, now()),
        Some(Delivered::Refused) | None => {}
    }
}

/// Deliveries under way, by the notice's id.
#[derive(Default)]
struct Deliveries {
    tasks: JoinSet<Delivered>,
    ids: HashMap<task::Id, String>,
    /// Notices whose delivery panicked. They are left alone, so that it does not panic again and again, until the runner starts anew.
    panicked: BTreeSet<String>,
}

impl Deliveries {
    fn have_room_for(&self, id: &str) -> bool {
        let is_busy = self.ids.values().any(|busy| busy == id);
        !is_busy && !self.panicked.contains(id) && self.ids.len() < AT_ONCE
    }

    fn begin(&mut self, id: String, delivery: impl Future<Output = Delivered> + Send + 'static) {
        self.ids.insert(self.tasks.spawn(delivery).id(), id);
    }

    /// Waits for the next one to end and returns what came of it; `None` for a delivery that panicked. Returns `None` at once if none is
    /// under way.
    async fn next(&mut self) -> Option<(String, Option<Delivered>)> {
        let (task, delivered) = match self.tasks.join_next_with_id().await? {
            Ok((task, delivered)) => (task, Some(delivered)),
            Err(error) => (error.id(), None),
        };
        let id = self.ids.remove(&task)?;
        if delivered.is_none() {
            tracing::error!(
                notice = id,
                "a notification could not be sent: its delivery panicked, which is a fault of Dirigent's"
            );
            self.panicked.insert(id.clone());
        }
        Some((id, delivered))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_delivery_that_panics_takes_no_room_and_is_not_repeated() {
        let mut deliveries = Deliveries::default();
        for number in 0..AT_ONCE {
            deliveries.begin(format!("bad-{number}"), async { panic!("on purpose") });
        }
        assert!(!deliveries.have_room_for("good"));
        for _ in 0..AT_ONCE {
            let ended = deliveries.next().await;
            assert!(ended.is_some_and(|(id, delivered)| id.starts_with("bad-") && delivered.is_none()));
        }
        assert!(deliveries.have_room_for("good") && !deliveries.have_room_for("bad-0"));
        deliveries.begin("good".into(), async { Delivered::Told });
        assert!(!deliveries.have_room_for("good"), "it is under way");
        assert!(matches!(deliveries.next().await, Some((_, Some(Delivered::Told)))));
        assert!(deliveries.next().await.is_none());
    }
}
