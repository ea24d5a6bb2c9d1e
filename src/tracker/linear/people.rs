//! Names and trust levels of accounts, looked up by id and kept for ten minutes.
//!
//! Active full members of the team are trusted (of the workspace, if no team is configured). Guests, integrations and former
//! members are not.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::OnceCell;
use tokio::time::Instant;

use super::client::LinearClient;
use super::documents::people::{
    IDComparator, PeopleUsersNodes, StringComparator, TeamFilter, UserFilter, Variables as Asked,
};
use super::documents::{People as Question, Viewer, viewer};
use crate::domain::comment::{Author, TrustLevel};
use crate::tracker::TrackerError;

const KEPT: Duration = Duration::from_secs(600);
/// The most accounts in one request.
const AT_ONCE: usize = 100;

#[derive(Debug, Clone)]
struct Person {
    name: String,
    trust: TrustLevel,
    asked: Instant,
}

/// The account of the runner's key.
#[derive(Debug, Clone)]
pub struct Us {
    id: String,
    pub name: String,
    /// Whether it is an integration rather than a person's account.
    pub app: bool,
}

/// Accounts that appear in a reading, by their ids.
#[derive(Debug, Default)]
pub struct Mentioned {
    pub named: BTreeSet<String>,
    /// Those who may approve: authors of comments with a command, and the account that moved a ticket into an approving state.
    pub approving: BTreeSet<String>,
}

#[derive(Debug, Default)]
pub struct Accounts {
    known: Mutex<HashMap<String, Person>>,
    us: OnceCell<Us>,
    /// The setting `tracker.provider.account`. `None` if it is not set.
    own_account: Option<bool>,
    team_key: Option<String>,
}

impl Accounts {
    pub fn new(own_account: Option<bool>, team_key: Option<String>) -> Self {
        Self { own_account, team_key, ..Self::default() }
    }

    /// Whether a person uses the runner's account too.
    pub fn is_shared(&self, us: &Us) -> bool {
        !self.own_account.unwrap_or(us.app)
    }

    pub async fn us(&self, client: &LinearClient) -> Result<&Us, TrackerError> {
        self.us.get_or_try_init(|| who_we_are(client)).await
    }

    /// Looks up accounts that are not known yet. Accounts that may approve are looked up each time: an approval must not rest on
    /// their former trust level.
    pub async fn meet(&self, client: &LinearClient, people: Mentioned) -> Result<(), TrackerError> {
        self.us(client).await?;
        let unknown: BTreeSet<String> = {
            let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            let fresh = |id: &String| known.get(id).is_some_and(|person| person.asked.elapsed() < KEPT);
            people.named.into_iter().filter(|id| !fresh(id)).chain(people.approving).collect()
        };
        let unknown: Vec<String> = unknown.into_iter().collect();
        for ids in unknown.chunks(AT_ONCE) {
            let by_id = IDComparator { in_: Some(ids.to_vec()), ..Default::default() };
            let found = self.look(client, UserFilter { id: Some(by_id), ..Default::default() }).await?;
            let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            for id in ids {
                // An account that is not shown any more has left.
                let stranger = Person { name: id.clone(), trust: TrustLevel::Stranger, asked: Instant::now() };
                known.insert(id.clone(), stranger);
            }
            for user in found {
                let trust = self.trust(&user);
                known.insert(user.id, Person { name: user.display_name, trust, asked: Instant::now() });
            }
        }
        Ok(())
    }

    /// Returns the names of the accounts that fit the filter, at most one page. An empty filter matches all.
    pub async fn names(&self, client: &LinearClient, filter: UserFilter) -> Result<Vec<String>, TrackerError> {
        Ok(self.look(client, filter).await?.into_iter().map(|user| user.display_name).collect())
    }

    /// Looks up the trust level of the account with this name.
    pub async fn standing(&self, client: &LinearClient, name: &str) -> Result<TrustLevel, TrackerError> {
        let by_name = StringComparator { eq_ignore_case: Some(name.to_owned()), ..Default::default() };
        let found = self.look(client, UserFilter { display_name: Some(by_name), ..Default::default() }).await?;
        Ok(match &found[..] {
            [user] => self.trust(user),
            _ => TrustLevel::Stranger,
        })
    }

    async fn look(&self, client: &LinearClient, filter: UserFilter) -> Result<Vec<PeopleUsersNodes>, TrackerError> {
        let in_team = |key: &String| TeamFilter {
            key: Some(StringComparator { eq_ignore_case: Some(key.clone()), ..Default::default() }),
            ..Default::default()
        };
        let asked = Asked { filter: Some(filter), first: AT_ONCE as i64, teams: self.team_key.as_ref().map(in_team) };
        Ok(client.ask::<Question>(asked).await?.data.users.nodes)
    }

    fn trust(&self, user: &PeopleUsersNodes) -> TrustLevel {
        let in_team = self.team_key.is_none() || !user.teams.nodes.is_empty();
        match user {
            user if user.app => TrustLevel::Bot,
            user if user.guest || !user.active => TrustLevel::Stranger,
            user if user.admin => TrustLevel::Admin,
            _ if in_team => TrustLevel::Member,
            _ => TrustLevel::Stranger,
        }
    }

    /// Returns the author of something from Linear's fields for it: an integration, an account of the workspace, or a person
    /// outside.
    pub fn author(&self, user: Option<&str>, bot: Option<&str>, outsider: Option<&str>) -> Author {
        match (bot, user, outsider) {
            (Some(bot), _, _) => Author::new(bot, TrustLevel::Bot),
            (None, Some(id), _) => self.person(id),
            // People outside choose their names themselves, perhaps that of a member.
            (None, None, Some(name)) => Author::new(format!("{name} (outside Linear)"), TrustLevel::Stranger),
            // Rules and automations of Linear itself have no account.
            (None, None, None) => Author::new("Linear", TrustLevel::Bot),
        }
    }

    fn person(&self, id: &str) -> Author {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let mut author = match known.get(id) {
            Some(person) => Author::new(person.name.clone(), person.trust),
            None => Author::new(id, TrustLevel::Stranger),
        };
        author.ourselves = self.us.get().is_some_and(|us| us.id == id && !self.is_shared(us));
        author
    }

    /// Whether this is the account of the runner's key.
    pub fn is_our_account(&self, id: &str) -> bool {
        self.us.get().is_some_and(|us| us.id == id)
    }
}

/// Requests the account of the key.
pub async fn who_we_are(client: &LinearClient) -> Result<Us, TrackerError> {
    let viewer = client.ask::<Viewer>(viewer::Variables {}).await?.data.viewer;
    Ok(Us { id: viewer.id, name: viewer.display_name, app: viewer.app })
}
