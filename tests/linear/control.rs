//! The handle of a running loopback Linear: a test plays people with it, and lets things go wrong.

use std::net::TcpListener;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::{SignedDuration, Timestamp};

use super::board::{Actor, Id, Label, Project, Relation, Role, State, Team, User};
use super::faults::{Fault, Instead, When};
use super::mutation::{self, Draft};
use super::server::{Listener, Shared};
use super::world::{Entry, Lag, World};

/// The key of the account `robot`.
pub const KEY: &str = "lin_api_robot";

/// A running loopback Linear. Dropping it ends it, and fails the test if its contract was broken.
pub struct Linear {
    shared: Shared,
    listener: Option<Listener>,
    endpoint: String,
}

impl Linear {
    /// With the team `ENG` (Backlog, Todo, In Progress, In Review, Done, Canceled), its admin `ada`, its members `ben` and `robot`, and the key
    /// of `robot`.
    pub fn start() -> Self {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}/graphql", socket.local_addr().unwrap());
        let shared: Shared = Arc::new(Mutex::new(World::new()));
        let listener = Listener::start(shared.clone(), socket);
        let linear = Self { shared, listener: Some(listener), endpoint };
        linear.add_team("ENG", &["Backlog", "Todo", "In Progress", "In Review", "Done", "Canceled"]);
        linear.add_user("ada", Role::Admin);
        linear.add_user("ben", Role::Member);
        linear.add_user("robot", Role::Member);
        linear.add_key(KEY, "robot");
        linear.settle();
        linear
    }

    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    fn world(&self) -> MutexGuard<'_, World> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What broke the contract so far, taken away: for tests that break it on purpose.
    pub fn take_violations(&self) -> Vec<String> {
        std::mem::take(&mut self.world().violations)
    }

    pub fn now(&self) -> Timestamp {
        self.world().now()
    }

    pub fn advance(&self, by: SignedDuration) {
        self.world().advance(by);
    }
}

/// The workspace.
impl Linear {
    pub fn add_user(&self, name: &str, role: Role) -> Id {
        let mut world = self.world();
        let id = world.next_id();
        world.change(|board| {
            board.users.retain(|user| user.name != name);
            board.users.push(User { id: id.clone(), name: name.to_owned(), role });
        });
        id
    }

    pub fn set_role(&self, name: &str, role: Role) {
        self.world()
            .change(|board| board.users.iter_mut().filter(|user| user.name == name).for_each(|user| user.role = role));
    }

    pub fn add_key(&self, key: &str, user: &str) {
        let mut world = self.world();
        let id = world.board.user_named(user).id.clone();
        world.keys.insert(key.to_owned(), id);
    }

    pub fn revoke(&self, key: &str) {
        self.world().keys.remove(key);
    }

    pub fn add_team(&self, key: &str, states: &[&str]) {
        let mut world = self.world();
        let id = world.next_id();
        let states =
            states.iter().map(|name| State { id: world.next_id(), name: (*name).to_owned(), kind: kind_of(name) });
        let states = states.collect();
        world.change(|board| board.teams.push(Team { id, key: key.to_owned(), states, issues: 0 }));
    }

    pub fn rename_state(&self, team: &str, from: &str, to: &str) {
        self.world().change(|board| {
            let team = board.teams.iter_mut().find(|known| known.key == team).unwrap();
            team.states.iter_mut().filter(|state| state.name == from).for_each(|state| to.clone_into(&mut state.name));
        });
    }

    pub fn add_project(&self, name: &str, slug: &str, team: &str) {
        let mut world = self.world();
        let id = world.next_id();
        let team = world.board.teams.iter().find(|known| known.key == team).unwrap().id.clone();
        world.change(|board| board.projects.push(Project { id, name: name.to_owned(), slug: slug.to_owned(), team }));
    }

    pub fn project_id(&self, name: &str) -> Id {
        self.world().board.projects.iter().find(|project| project.name == name).unwrap().id.clone()
    }

    pub fn add_label(&self, name: &str, team: Option<&str>) -> Id {
        let mut world = self.world();
        let id = world.next_id();
        let team = team.map(|key| world.board.teams.iter().find(|known| known.key == key).unwrap().id.clone());
        world.change(|board| board.labels.push(Label { id: id.clone(), name: name.to_owned(), team }));
        id
    }

    pub fn label_names(&self) -> Vec<String> {
        self.world().board.labels.iter().map(|label| label.name.clone()).collect()
    }
}

/// What people, integrations and rules do to issues.
impl Linear {
    pub fn user(&self, name: &str) -> Actor {
        Actor::User(self.world().board.user_named(name).id.clone())
    }

    pub fn add_issue(&self, title: &str, state: &str, labels: &[&str]) -> Id {
        self.add_issue_to("ENG", title, state, labels)
    }

    pub fn add_issue_to(&self, team: &str, title: &str, state: &str, labels: &[&str]) -> Id {
        let by = self.user("ada");
        let labels: Vec<Id> = labels.iter().map(|label| self.ensure_label(label)).collect();
        let mut world = self.world();
        let id = world.next_id();
        let team = world.board.teams.iter().find(|known| known.key == team).unwrap().clone();
        let state = team.states.iter().find(|known| known.name == state).unwrap_or_else(|| panic!("no state {state}"));
        Draft { id: &id, team: &team.id, title, state: &state.id, by }.make(&mut world);
        world.change(|board| board.edit(&id, |issue| issue.labels = labels));
        id
    }

    fn ensure_label(&self, name: &str) -> Id {
        let known = self.world().board.labels.iter().find(|label| label.name == name).map(|label| label.id.clone());
        known.unwrap_or_else(|| self.add_label(name, None))
    }

    /// Any change of an issue that moves its time.
    pub fn edit(&self, id: &str, change: impl FnOnce(&mut super::board::Issue)) {
        let mut world = self.world();
        let now = world.now();
        world.change(|board| {
            board.edit(id, |issue| {
                change(issue);
                issue.updated_at = now;
            });
        });
    }

    pub fn shift(&self, by: &Actor, id: &str, state: &str) {
        let mut world = self.world();
        let team = world.board.team(&world.board.issues[id].team).clone();
        let state = team.states.iter().find(|known| known.name == state).unwrap_or_else(|| panic!("no state {state}"));
        mutation::shift(&mut world, id, by, &state.id);
    }

    pub fn label(&self, by: &Actor, id: &str, label: &str) {
        let label = self.ensure_label(label);
        mutation::relabel(&mut self.world(), id, by, &[label], &[]);
    }

    pub fn say(&self, by: &Actor, id: &str, text: &str) -> Id {
        let mut world = self.world();
        let comment = world.next_id();
        mutation::comment(&mut world, id, &comment, by, text);
        comment
    }

    pub fn reword(&self, issue: &str, comment: &str, text: &str) {
        mutation::reword(&mut self.world(), issue, comment, text);
    }

    pub fn unsay(&self, issue: &str, comment: &str) {
        self.world().change(|board| board.edit(issue, |issue| issue.comments.retain(|known| known.id != comment)));
    }

    /// Into the trash, where Linear keeps it for a while.
    pub fn delete(&self, id: &str) {
        let now = self.now();
        self.edit(id, |issue| (issue.trashed, issue.archived_at) = (true, Some(now)));
    }

    pub fn archive(&self, id: &str) {
        let now = self.now();
        self.edit(id, |issue| issue.archived_at = Some(now));
    }

    pub fn hide(&self, id: &str) {
        self.world().change(|board| board.edit(id, |issue| issue.hidden = true));
    }

    /// `id` is blocked by `blocker`; the issue's own time does not move.
    pub fn block(&self, id: &str, blocker: &str) {
        let mut world = self.world();
        let relation = world.next_id();
        let (issue, related) = (blocker.to_owned(), id.to_owned());
        world
            .change(|board| board.relations.push(Relation { id: relation, kind: "blocks".to_owned(), issue, related }));
    }

    /// A file that somebody put into an issue; its address.
    pub fn put_file(&self, name: &str, bytes: &[u8]) -> String {
        self.world().files.insert(name.to_owned(), bytes.to_vec());
        self.endpoint().replace("/graphql", &format!("/uploads/{name}"))
    }

    pub fn state_id(&self, issue: &str, state: &str) -> String {
        let world = self.world();
        let team = world.board.team(&world.board.issues[issue].team);
        team.states.iter().find(|known| known.name == state).unwrap_or_else(|| panic!("no state {state}")).id.clone()
    }

    pub fn move_to_team(&self, id: &str, team: &str) {
        let team = self.world().board.teams.iter().find(|known| known.key == team).unwrap().clone();
        self.edit(id, |issue| {
            issue.team = team.id;
            issue.state = team.states[0].id.clone();
        });
    }
}

/// What came of it.
impl Linear {
    pub fn state_of(&self, id: &str) -> String {
        let world = self.world();
        world.board.state(&world.board.issues[id].state).name.clone()
    }

    pub fn issue(&self, id: &str) -> Arc<super::board::Issue> {
        self.world().board.issues[id].clone()
    }

    /// Who moved it, and where to, oldest first.
    pub fn moves(&self, id: &str) -> Vec<(Actor, String)> {
        let issue = self.issue(id);
        let world = self.world();
        let name = |state: &str| world.board.state(state).name.clone();
        let moves = issue.history.iter().filter_map(|line| Some((line.by.clone(), name(&line.states.as_ref()?.1))));
        moves.collect()
    }

    /// The texts of the comments, oldest first.
    pub fn comments(&self, id: &str) -> Vec<String> {
        self.issue(id).comments.iter().map(|comment| comment.body.clone()).collect()
    }

    pub fn links(&self, id: &str) -> Vec<(String, String)> {
        self.issue(id).attachments.iter().map(|(_, url, title)| (url.clone(), title.clone())).collect()
    }

    pub fn reactions(&self, comment: &str) -> usize {
        self.world().board.comment(comment).map_or(0, |(_, comment)| comment.reactions.len())
    }

    pub fn issue_count(&self) -> usize {
        self.world().board.issues.len()
    }

    pub fn journal(&self) -> Vec<Entry> {
        self.world().journal.clone()
    }

    pub fn forget_journal(&self) {
        self.world().journal.clear();
    }

    /// Keeps what is answered from now on.
    pub fn record(&self) {
        self.world().tape = Some(Vec::new());
    }

    /// The answers since then.
    pub fn recorded(&self) -> Vec<Vec<u8>> {
        self.world().tape.take().unwrap_or_default()
    }

    pub fn complexity_used(&self) -> u64 {
        self.world().complexity.used
    }
}

/// What goes wrong.
impl Linear {
    pub fn lag(&self, lag: Lag) {
        let mut world = self.world();
        world.settle();
        world.lag = lag;
    }

    pub fn settle(&self) {
        self.world().settle();
    }

    pub fn fault(&self, operation: &str, when: When, instead: Instead) {
        self.fault_later(operation, when, instead, 0, 1);
    }

    pub fn fault_later(&self, operation: &str, when: When, instead: Instead, skip: u32, times: u32) {
        self.world().faults.push(Fault { operation: operation.to_owned(), when, instead, skip, times });
    }

    pub fn heal(&self) {
        self.world().faults.clear();
    }

    pub fn garble(&self, id: &str) {
        self.world().garbled.push(id.to_owned());
    }

    pub fn oldest_history_first(&self) {
        self.world().oldest_history_first = true;
    }

    pub fn allow_requests(&self, limit: u64) {
        self.world().requests.limit = limit;
    }
}

fn kind_of(state: &str) -> &'static str {
    match state {
        "Backlog" => "backlog",
        "Todo" => "unstarted",
        "Done" | "Closed" => "completed",
        "Canceled" | "Duplicate" => "canceled",
        _ => "started",
    }
}

impl Drop for Linear {
    fn drop(&mut self) {
        drop(self.listener.take());
        if !std::thread::panicking() {
            let violations = self.world().violations.clone();
            assert!(violations.is_empty(), "Linear's contract was broken:\n{}", violations.join("\n"));
        }
    }
}
