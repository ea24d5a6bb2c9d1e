//! A cache of responses with etags, so that repeating a request does not count against the primary limit. Its size is bounded: the
//! least recently used responses are dropped first.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use super::answer::Fetched;

/// The limit for all bodies together.
const MOST_BYTES: usize = 512 * 1024;
/// A longer body is not cached.
const LONGEST_BODY: usize = 48 * 1024;

#[derive(Default)]
pub struct EtagCache {
    kept: Mutex<VecDeque<(String, Fetched)>>,
}

impl EtagCache {
    pub fn find(&self, path: &str) -> Option<Fetched> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let at = kept.iter().position(|(known, _)| known == path)?;
        let entry = kept.remove(at)?;
        let found = entry.1.clone();
        kept.push_back(entry);
        Some(found)
    }

    pub fn keep(&self, path: &str, fetched: &Fetched) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|(known, _)| known != path);
        if fetched.etag.is_none() || fetched.body.len() > LONGEST_BODY {
            return;
        }
        kept.push_back((path.to_owned(), fetched.clone()));
        let mut bytes: usize = kept.iter().map(|(_, fetched)| fetched.body.len()).sum();
        while bytes > MOST_BYTES {
            bytes -= kept.pop_front().map_or(bytes, |(_, oldest)| oldest.body.len());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fetched(length: usize) -> Fetched {
        Fetched { body: vec![b'x'; length], etag: Some("\"t\"".into()), ..Fetched::default() }
    }

    #[test]
    fn it_never_holds_more_than_it_may_and_keeps_what_is_used() {
        let cache = EtagCache::default();
        cache.keep("/used", &fetched(40_000));
        for number in 0..50 {
            assert!(cache.find("/used").is_some(), "{number}");
            cache.keep(&format!("/{number}"), &fetched(40_000));
        }
        let held: usize = cache.kept.lock().unwrap().iter().map(|(_, fetched)| fetched.body.len()).sum();
        assert!(held <= MOST_BYTES, "{held}");
        assert!(cache.find("/0").is_none());
        cache.keep("/long", &fetched(LONGEST_BODY + 1));
        assert!(cache.find("/long").is_none());
    }
}
