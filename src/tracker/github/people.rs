//! Accounts: the runner's own, and the trust level of others in the repository.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Deserialize;
use serde_json::json;
use tokio::time::Instant;

use super::GithubTracker;
use super::wire::{Actor, CollaboratorPermission, RestUser};
use crate::domain::comment::{Author, TrustLevel};
use crate::github::{GithubError, Purpose, segment, with_query};
use crate::tracker::TrackerError;

/// How long a permission is believed. Accounts that may approve are looked up each time ([`GithubTracker::meet_anew`]).
const BELIEVED: Duration = Duration::from_secs(600);
/// With more accounts than this, those that were asked about too long ago are forgotten.
const MOST_KNOWN: usize = 2000;

/// The name that GitHub shows for a deleted account.
const NOBODY: &str = "ghost";

pub struct Acquaintances {
    shared_account: bool,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    /// The runner's login, as REST writes it.
    ourselves: Option<String>,
    /// The last list of all collaborators. While it is fresh, an account that is not on it is a stranger.
    listed: Option<Collaborators>,
    /// Whether the list of collaborators is not visible. Then each account is looked up alone.
    unlisted: bool,
    /// The accounts that were looked up alone since the last list.
    asked: HashMap<String, (TrustLevel, Instant)>,
}

/// A complete list of the collaborators.
struct Collaborators {
    /// When the list was requested.
    at: Instant,
    trust: HashMap<String, TrustLevel>,
}

impl Known {
    /// Returns the trust level of an account that was looked up.
    fn trust(&self, login: &str) -> TrustLevel {
        let login = login.to_lowercase();
        let listed = || self.listed.as_ref().and_then(|list| list.trust.get(&login).copied());
        self.asked.get(&login).map(|(trust, _)| *trust).or_else(listed).unwrap_or(TrustLevel::Stranger)
    }
}

fn is_fresh(at: Instant) -> bool {
    at.elapsed() < BELIEVED
}

impl Acquaintances {
    pub fn new(shared_account: bool) -> Self {
        Self { shared_account, known: Mutex::default() }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Deserialize)]
struct Viewer {
    viewer: Actor,
}

impl GithubTracker {
    /// Requests the runner's login. Uses GraphQL, because an app's installation has no `/user`.
    pub(super) async fn ask_who_we_are(&self) -> Result<String, GithubError> {
        let (document, nothing) = ("query { viewer { __typename login } }", json!({}));
        let answer = self.github.query::<Viewer>(Purpose::Watch, document, &nothing).await?;
        let viewer = answer.data.ok_or_else(|| GithubError::Unreadable("nobody is the viewer".to_owned()))?;
        let mut login = viewer.viewer.as_user().login;
        if self.github.is_app() && !login.ends_with("[bot]") {
            login.push_str("[bot]");
        }
        self.people.known().ourselves = Some(login.clone());
        Ok(login)
    }

    pub(super) async fn our_login(&self) -> Result<String, GithubError> {
        match self.our_known_login() {
            Some(login) => Ok(login),
            None => self.ask_who_we_are().await,
        }
    }

    pub(super) fn our_known_login(&self) -> Option<String> {
        self.people.known().ourselves.clone()
    }

    /// Requests the current permission of an account.
    pub(super) async fn ask_permission(&self, login: &str) -> Result<TrustLevel, GithubError> {
        let path = self.path(&format!("/collaborators/{}/permission", segment(login)));
        let trust = match self.github.get::<CollaboratorPermission>(Purpose::Watch, &path).await {
            Ok(answer) if answer.user.as_ref().is_some_and(is_bot) => TrustLevel::Bot,
            Ok(answer) => trust_of_role(answer.role_name.as_deref())
                .or_else(|| trust_of_role(answer.permission.as_deref()))
                .unwrap_or(TrustLevel::Stranger),
            Err(GithubError::NotFound(_)) => TrustLevel::Stranger,
            Err(error) => return Err(error),
        };
        self.remember(login, trust);
        Ok(trust)
    }

    fn remember(&self, login: &str, trust: TrustLevel) {
        let mut known = self.people.known();
        if known.asked.len() >= MOST_KNOWN {
            known.asked.retain(|_, (_, at)| is_fresh(*at));
        }
        known.asked.insert(login.to_lowercase(), (trust, Instant::now()));
    }

    /// Looks up the trust levels of these accounts as far as they are not known: with one list of all collaborators if it is
    /// visible.
    pub(super) async fn meet(&self, users: &[&RestUser]) -> Result<(), TrackerError> {
        self.our_login().await?;
        if self.strangers(users).is_empty() {
            return Ok(());
        }
        let unlisted = self.people.known().unlisted;
        if !unlisted {
            self.list_collaborators().await?;
        }
        self.ask_each(self.strangers(users)).await
    }

    /// Looks up accounts that may approve something each time: an approval must not rest on their former trust level.
    pub(super) async fn meet_anew(&self, users: &[RestUser]) -> Result<(), TrackerError> {
        let people = users.iter().filter(|user| !is_bot(user));
        let logins: BTreeSet<String> = people.map(|user| user.login.to_lowercase()).collect();
        self.ask_each(logins.into_iter().collect()).await
    }

    async fn ask_each(&self, logins: Vec<String>) -> Result<(), TrackerError> {
        let mut hidden = None;
        for login in logins {
            if hidden.is_none() {
                match self.ask_permission(&login).await {
                    Ok(_) => continue,
                    Err(GithubError::Refused(refusal)) => hidden = Some(refusal),
                    Err(error) => return Err(error.into()),
                }
            }
            // An account with an unknown permission counts as a stranger, so that the board can still be read.
            self.remember(&login, TrustLevel::Stranger);
        }
        if let Some(refusal) = hidden {
            tracing::warn!(%refusal, "GitHub does not tell us who may write here: everybody is a stranger");
        }
        Ok(())
    }

    /// Lists all collaborators. The new list replaces everything that was known before it, so that an account which is not a
    /// collaborator any more becomes a stranger.
    async fn list_collaborators(&self) -> Result<(), GithubError> {
        let at = Instant::now();
        let path = with_query(&self.path("/collaborators"), &[("per_page", "100"), ("affiliation", "all")]);
        match self.github.list::<RestUser>(Purpose::Watch, &path).await {
            Ok(all) => {
                let trust = all.iter().map(|user| (user.login.to_lowercase(), trust_of(user))).collect();
                let mut known = self.people.known();
                known.asked.retain(|_, (_, asked)| *asked >= at);
                known.listed = Some(Collaborators { at, trust });
            }
            Err(GithubError::Refused(_) | GithubError::NotFound(_)) => self.people.known().unlisted = true,
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Returns the logins of those accounts for which nothing recent is known.
    fn strangers(&self, users: &[&RestUser]) -> Vec<String> {
        let known = self.people.known();
        if known.listed.as_ref().is_some_and(|list| is_fresh(list.at)) {
            return Vec::new();
        }
        let unknown = |user: &&&RestUser| {
            !is_bot(user) && !known.asked.get(&user.login.to_lowercase()).is_some_and(|(_, at)| is_fresh(*at))
        };
        let mut logins: Vec<String> = users.iter().filter(unknown).map(|user| user.login.clone()).collect();
        logins.sort();
        logins.dedup();
        logins
    }

    /// Returns the author for an account, with the trust level that is known. [`Self::meet`] must have been called for it.
    pub(super) fn author(&self, user: Option<&RestUser>) -> Author {
        let Some(user) = user else { return Author::new(NOBODY, TrustLevel::Stranger) };
        let known = self.people.known();
        let trust = if is_bot(user) { TrustLevel::Bot } else { known.trust(&user.login) };
        let is_us = known.ourselves.as_ref().is_some_and(|ours| ours.eq_ignore_ascii_case(&user.login));
        Author { name: user.login.clone(), trust, ourselves: is_us && !self.people.shared_account }
    }

    /// Whether the runner's account wrote it. A person may share that account.
    pub(super) fn is_our_account(&self, user: Option<&RestUser>) -> bool {
        let known = self.people.known();
        user.zip(known.ourselves.as_ref()).is_some_and(|(user, ours)| ours.eq_ignore_ascii_case(&user.login))
    }
}

fn is_bot(user: &RestUser) -> bool {
    user.kind.as_deref() == Some("Bot") || user.login.ends_with("[bot]")
}

fn trust_of(user: &RestUser) -> TrustLevel {
    let by_permission = || match user.permissions.clone().unwrap_or_default() {
        may if may.admin => TrustLevel::Admin,
        may if may.maintain => TrustLevel::Maintain,
        may if may.push => TrustLevel::Write,
        may if may.triage => TrustLevel::Triage,
        _ => TrustLevel::Stranger,
    };
    trust_of_role(user.role_name.as_deref()).unwrap_or_else(by_permission)
}

/// Returns the trust level of a role. `None` for a custom role of an organisation, for which the basic permission is used.
fn trust_of_role(role: Option<&str>) -> Option<TrustLevel> {
    Some(match role? {
        "admin" => TrustLevel::Admin,
        "maintain" => TrustLevel::Maintain,
        "write" | "push" => TrustLevel::Write,
        "triage" => TrustLevel::Triage,
        "read" | "pull" | "none" => TrustLevel::Stranger,
        _ => return None,
    })
}
