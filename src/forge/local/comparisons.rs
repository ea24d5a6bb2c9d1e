//! A cache of comparisons between two commits. Commits never change, so each pair is compared once.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use git2::{Error, Oid, Repository};

use crate::forge::combine;

/// Limit of remembered pairs. When it is reached, the cache is emptied.
const MOST: usize = 2048;

/// A commit, and the base that it is compared with.
type Pair = (Oid, Oid);

#[derive(Default)]
pub struct Comparisons {
    contained: Mutex<HashMap<Pair, bool>>,
    conflicts: Mutex<HashMap<Pair, Vec<String>>>,
}

impl Comparisons {
    /// Whether the base contains the work of the commit, as the same commit or under other ones (a squash, a rebase).
    pub fn is_contained(&self, repo: &Repository, commit: Oid, base: Oid) -> bool {
        let work_out = || Ok(combine::is_in(repo, commit, base)? || combine::is_in_otherwise(repo, commit, base)?);
        // An error is not remembered: the next call may succeed.
        remember(&self.contained, (commit, base), work_out).unwrap_or(false)
    }

    /// Returns the files in which the head and the base conflict.
    pub fn conflicts(&self, repo: &Repository, base: Oid, head: Oid) -> Result<Vec<String>, Error> {
        remember(&self.conflicts, (head, base), || combine::conflicts(repo, base, head))
    }
}

fn remember<T: Clone>(
    known: &Mutex<HashMap<Pair, T>>,
    pair: Pair,
    work_out: impl FnOnce() -> Result<T, Error>,
) -> Result<T, Error> {
    let locked = || known.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(found) = locked().get(&pair) {
        return Ok(found.clone());
    }
    let found = work_out()?;
    let mut known = locked();
    if known.len() >= MOST {
        known.clear();
    }
    known.insert(pair, found.clone());
    Ok(found)
}
