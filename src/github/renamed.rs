//! Repositories that were renamed since the workflow file was written. GitHub redirects to them by the repository's number.

use std::sync::{PoisonError, RwLock};

use super::transport::Ask;

/// Maps `/repos/{owner}/{name}` to `/repositories/{id}`.
#[derive(Default)]
pub struct Renamed {
    known: RwLock<Vec<(String, String)>>,
}

impl Renamed {
    pub fn note(&self, from: String, to: String) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if !known.iter().any(|(old, _)| *old == from) {
            known.push((from, to));
        }
    }

    /// Returns the same request, with the number of the repository in its path if the repository is known to be renamed.
    pub fn apply(&self, question: &Ask) -> Ask {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let path = RepoPath::read(question.path());
        let found = path.and_then(|path| {
            let (_, to) = known.iter().find(|(from, _)| *from == path.repository())?;
            Some(format!("{to}{}", path.rest))
        });
        found.map_or_else(|| question.clone(), |path| question.clone().at(path))
    }
}

/// A path below a repository, which is given by name or by number.
pub struct RepoPath<'a> {
    head: &'a str,
    pub rest: &'a str,
}

impl<'a> RepoPath<'a> {
    pub fn read(path: &'a str) -> Option<Self> {
        let segments = if path.starts_with("/repos/") { 3 } else { path.strip_prefix("/repositories/").map(|_| 2)? };
        let end = path.match_indices(['/', '?']).nth(segments).map_or(path.len(), |(at, _)| at);
        Some(Self { head: &path[..end], rest: &path[end..] })
    }

    pub fn repository(&self) -> String {
        self.head.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_taken_apart_at_its_repository() {
        let parts = |path| RepoPath::read(path).map(|path| (path.head, path.rest));
        assert_eq!(parts("/repos/acme/widgets/issues?page=2"), Some(("/repos/acme/widgets", "/issues?page=2")));
        assert_eq!(parts("/repositories/7/issues/3"), Some(("/repositories/7", "/issues/3")));
        assert_eq!(parts("/repos/acme/widgets"), Some(("/repos/acme/widgets", "")));
        assert_eq!(parts("/repos/acme/widgets?x=1"), Some(("/repos/acme/widgets", "?x=1")));
        assert_eq!(parts("/user"), None);
    }
}
