//! How far accounts are trusted. Trust follows from a permission in the repository, which is read and remembered for ten minutes. For
//! approvals and commands it is read anew, because a merge may follow from them.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::Deserialize;

use super::Inner;
use super::wire::GraphActor;
use crate::domain::comment::{Author, TrustLevel};
use crate::github::{GithubError, Purpose, segment};

const REMEMBERED: Duration = Duration::from_secs(10 * 60);
/// GitHub's name for a deleted account.
const NOBODY: &str = "ghost";

#[derive(Default)]
pub struct KnownPeople {
    known: Mutex<HashMap<String, (Instant, TrustLevel)>>,
}

#[derive(Deserialize)]
struct Permission {
    role_name: Option<String>,
    permission: String,
}

impl Inner {
    /// Returns who wrote something. Fails if the permission cannot be read: without it the author is neither a stranger nor trusted.
    pub(super) async fn author(&self, actor: Option<&GraphActor>, viewer: Option<&str>) -> Result<Author, GithubError> {
        self.author_since(actor, viewer, None).await
    }

    /// Like `author`, for approvals and commands: permissions that were read before `since`, the start of the look, do not count.
    pub(super) async fn approver(
        &self,
        actor: Option<&GraphActor>,
        viewer: Option<&str>,
        since: Instant,
    ) -> Result<Author, GithubError> {
        self.author_since(actor, viewer, Some(since)).await
    }

    async fn author_since(
        &self,
        actor: Option<&GraphActor>,
        viewer: Option<&str>,
        since: Option<Instant>,
    ) -> Result<Author, GithubError> {
        let Some(actor) = actor else { return Ok(Author::new(NOBODY, TrustLevel::Stranger)) };
        let is_bot = actor.kind == "Bot";
        let name = if is_bot { format!("{}[bot]", actor.login.trim_end_matches("[bot]")) } else { actor.login.clone() };
        let is_viewer = viewer.is_some_and(|viewer| self.is_viewer(actor, viewer));
        let ourselves = is_viewer && (self.settings.own_account || self.github.is_app());
        let trust = match is_bot {
            true => TrustLevel::Bot,
            false => self.trust_of(&actor.login, since).await?,
        };
        Ok(Author { name, trust, ourselves })
    }

    /// Whether an actor is `viewer`, the account that the runner writes as. GraphQL shows an App as `slug[bot]` if it is the viewer, and as
    /// the bot `slug` if it is an author. A person may have the login `slug`, too, and is somebody else.
    pub(super) fn is_viewer(&self, actor: &GraphActor, viewer: &str) -> bool {
        let login = viewer.trim_end_matches("[bot]");
        let is_bot = login != viewer || self.github.is_app();
        (actor.kind == "Bot") == is_bot && actor.login.trim_end_matches("[bot]") == login
    }

    async fn trust_of(&self, login: &str, since: Option<Instant>) -> Result<TrustLevel, GithubError> {
        let known = self.people.known.lock().unwrap_or_else(PoisonError::into_inner).get(login).copied();
        let counts = |at: Instant| at.elapsed() < REMEMBERED && since.is_none_or(|since| at >= since);
        if let Some((_, trust)) = known.filter(|(at, _)| counts(*at)) {
            return Ok(trust);
        }
        let path = self.path(&format!("/collaborators/{}/permission", segment(login)));
        let trust = match self.github.get::<Permission>(Purpose::Look, &path).await {
            Ok(found) => level(found.role_name.as_deref().unwrap_or(&found.permission), &found.permission),
            // The account is no collaborator, or the token may not read its permission: what it writes does not count.
            Err(GithubError::NotFound(_) | GithubError::Refused(_)) => TrustLevel::Stranger,
            Err(error) => return Err(error),
        };
        let mut known = self.people.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|_, (at, _)| at.elapsed() < REMEMBERED);
        known.insert(login.to_owned(), (Instant::now(), trust));
        Ok(trust)
    }
}

/// Maps a role to a trust level. A custom role of the organisation counts as the plain permission that it is built on.
fn level(role: &str, permission: &str) -> TrustLevel {
    let named = |name: &str| match name {
        "admin" => Some(TrustLevel::Admin),
        "maintain" => Some(TrustLevel::Maintain),
        "write" | "push" => Some(TrustLevel::Write),
        "triage" => Some(TrustLevel::Triage),
        "read" | "pull" | "none" => Some(TrustLevel::Stranger),
        _ => None,
    };
    named(role).or_else(|| named(permission)).unwrap_or(TrustLevel::Stranger)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_role_is_worth_what_it_is_built_on() {
        assert_eq!(level("maintain", "write"), TrustLevel::Maintain);
        assert_eq!(level("release managers", "write"), TrustLevel::Write);
        assert_eq!(level("release managers", "read"), TrustLevel::Stranger);
        assert_eq!(level("something", "else"), TrustLevel::Stranger);
    }
}
