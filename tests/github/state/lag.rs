//! A repository with replicas that lag: each thing can be shown as it was a while ago.

use std::path::PathBuf;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use super::repo::Repo;

/// What can lag on its own.
#[derive(Clone, Debug, PartialEq)]
pub enum Thing {
    /// Title, body, state, labels, assignees.
    Issue(u64),
    /// The comments and the timeline of an issue or a pull request.
    Comments(u64),
    /// Head, base, draft, merged, mergeable.
    Pull(u64),
    /// Reviews and review threads.
    Reviews(u64),
    /// Check runs, statuses and Actions runs.
    Checks,
    /// The refs as the API shows them; git itself never lags.
    Refs,
    Everything,
}

#[derive(Clone, Debug)]
pub enum Lag {
    /// As it is now, until released.
    Frozen,
    /// As it was so many requests ago.
    Requests(u64),
    /// As it was that long ago.
    Time(SignedDuration),
}

struct Lagging {
    thing: Thing,
    lag: Lag,
    /// How it was when the lag began: it is never shown older than that.
    floor: Arc<Repo>,
}

struct Past {
    request: u64,
    at: Timestamp,
    repo: Arc<Repo>,
}

/// A repository: where its git is, how it is now, how it was.
pub struct Home {
    pub git: PathBuf,
    pub repo: Repo,
    /// Names that it had before; they redirect.
    pub former: Vec<String>,
    lagging: Vec<Lagging>,
    past: Vec<Past>,
}

impl Home {
    pub fn new(git: PathBuf, repo: Repo) -> Self {
        Self { git, repo, former: Vec::new(), lagging: Vec::new(), past: Vec::new() }
    }

    pub fn lag(&mut self, thing: Thing, lag: Lag) {
        self.release(&thing);
        self.lagging.push(Lagging { thing, lag, floor: Arc::new(self.repo.clone()) });
    }

    pub fn release(&mut self, thing: &Thing) {
        self.lagging.retain(|one| one.thing != *thing);
        if self.lagging.is_empty() {
            self.past.clear();
        }
    }

    /// Notes how it is after request `request`; only while something lags behind by a measure.
    pub fn note(&mut self, request: u64, at: Timestamp) {
        if self.lagging.iter().any(|one| !matches!(one.lag, Lag::Frozen)) {
            self.past.push(Past { request, at, repo: Arc::new(self.repo.clone()) });
        }
    }

    /// The repository in which a thing is to be looked up by a reader.
    pub fn seen(&self, thing: &Thing, request: u64, now: Timestamp) -> &Repo {
        let found = self.lagging.iter().find(|one| one.thing == *thing);
        let Some(lagging) = found.or_else(|| self.lagging.iter().find(|one| one.thing == Thing::Everything)) else {
            return &self.repo;
        };
        let past = self.past.iter().rev();
        let old = match &lagging.lag {
            Lag::Frozen => None,
            Lag::Requests(behind) => past.into_iter().find(|past| past.request + behind <= request),
            Lag::Time(behind) => past.into_iter().find(|past| past.at + *behind <= now),
        };
        old.map_or(&lagging.floor, |past| &past.repo)
    }

    pub fn lags(&self) -> bool {
        !self.lagging.is_empty()
    }
}
