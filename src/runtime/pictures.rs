//! The newest picture of the engine's state, for all that show it. The views of the jobs are made when somebody looks, and shared by all
//! who look at the same time, so of ten thousand waiting tickets nothing is kept twice.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};
use tokio::sync::watch;
use tokio::sync::watch::error::RecvError;

use crate::config::policy::Policy;
use crate::domain::snapshot::{JobView, Snapshot};
use crate::domain::time::Timestamp;
use crate::engine::Picture;

/// What the driver publishes.
#[derive(Debug)]
pub struct Published {
    picture: Picture,
    policy: Arc<Policy>,
    /// The snapshot that is in use just now, if there is one.
    seen: Mutex<Weak<Snapshot>>,
}

impl Published {
    pub fn new(picture: Picture, policy: Arc<Policy>) -> Self {
        Self { picture, policy, seen: Mutex::default() }
    }

    pub fn at(&self) -> Timestamp {
        self.picture.general.at
    }

    /// Makes the views of the jobs one after the other, and keeps none of them.
    pub fn views(&self) -> impl Iterator<Item = JobView> {
        self.picture.views(&self.policy)
    }

    pub fn snapshot(&self) -> Arc<Snapshot> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.upgrade().unwrap_or_else(|| {
            let made = Arc::new(self.picture.snapshot(&self.policy));
            *seen = Arc::downgrade(&made);
            made
        })
    }
}

/// Follows what the driver publishes.
#[derive(Debug, Clone)]
pub struct Snapshots(watch::Receiver<Arc<Published>>);

impl Snapshots {
    pub fn new(published: watch::Receiver<Arc<Published>>) -> Self {
        Self(published)
    }

    pub fn borrow(&self) -> Arc<Snapshot> {
        self.published().snapshot()
    }

    pub fn borrow_and_update(&mut self) -> Arc<Snapshot> {
        self.newest().snapshot()
    }

    /// Returns the newest picture, for callers that need a little of each job and not all views at once.
    pub fn published(&self) -> Arc<Published> {
        self.0.borrow().clone()
    }

    /// Returns the newest picture and marks it as seen, so that [`Self::changed`] waits for the next one.
    pub fn newest(&mut self) -> Arc<Published> {
        self.0.borrow_and_update().clone()
    }

    /// Waits for the next picture. An error means that the driver is gone.
    pub async fn changed(&mut self) -> Result<(), RecvError> {
        self.0.changed().await
    }

    pub async fn wait_for(&mut self, mut done: impl FnMut(&Snapshot) -> bool) -> Result<(), RecvError> {
        self.0.wait_for(|published| done(&published.snapshot())).await.map(|_| ())
    }
}

/// A snapshot that is serialized with one job view in memory at a time.
pub struct Sent<'a> {
    pub published: &'a Published,
    /// The snapshot without its jobs. Ages are relative to its `at`.
    pub general: Snapshot,
}

impl<'a> Sent<'a> {
    pub fn at(published: &'a Published, at: Timestamp) -> Self {
        Self { published, general: Snapshot { at, ..published.picture.general.clone() } }
    }
}

impl Serialize for Sent<'_> {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        let general = serde_json::to_value(&self.general).map_err(serde::ser::Error::custom)?;
        let mut map = out.serialize_map(None)?;
        for (name, value) in general.as_object().into_iter().flatten().filter(|(name, _)| name.as_str() != "jobs") {
            map.serialize_entry(name, value)?;
        }
        map.serialize_entry("jobs", &Jobs(self.published))?;
        map.end()
    }
}

struct Jobs<'a>(&'a Published);

impl Serialize for Jobs<'_> {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        let mut list = out.serialize_seq(None)?;
        for job in self.0.views() {
            list.serialize_element(&job)?;
        }
        list.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Settings;
    use crate::domain::job::{BranchName, Job, TicketFacts};
    use crate::engine::state::State;

    fn published() -> Published {
        let policy = Settings::default().policy("hash", false);
        let facts: TicketFacts = serde_json::from_value(serde_json::json!({
            "id": "t1", "key": "T-1", "title": "One", "state": "open", "labels": ["a"], "blocked_by": [], "dispatchable": {"is": "yes"}
        }))
        .unwrap();
        let mut state = State::default();
        state.jobs.insert(Job::new(facts, BranchName { name: "b".into(), generation: 1 }, Timestamp(1)));
        Published::new(Picture::of(&state, &policy, Timestamp(5)), Arc::new(policy))
    }

    #[test]
    fn what_is_sent_is_the_snapshot_and_is_read_as_one() {
        let published = published();
        let sent = serde_json::to_string(&Sent::at(&published, Timestamp(5))).unwrap();
        let read: Snapshot = serde_json::from_str(&sent).unwrap();
        assert_eq!(read, *published.snapshot());
        assert_eq!(read.jobs[0].key, "T-1");
    }

    #[test]
    fn those_who_look_at_the_same_time_share_what_they_see_and_nothing_of_it_stays() {
        let published = published();
        let (one, other) = (published.snapshot(), published.snapshot());
        assert!(Arc::ptr_eq(&one, &other));
        let gone = Arc::downgrade(&one);
        drop((one, other));
        assert!(gone.upgrade().is_none());
        assert_eq!(published.snapshot().jobs.len(), 1);
    }
}
