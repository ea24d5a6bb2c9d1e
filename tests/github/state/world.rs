//! Everything that the loopback GitHub holds.

use std::collections::BTreeMap;
use std::path::PathBuf;

use jiff::Timestamp;

use crate::github::server::faults::Faults;
use crate::github::server::journal::Journal;
use crate::github::server::limits::Limits;

use super::app::App;
use super::clock::Clock;
use super::lag::{Home, Thing};
use super::project::Project;
use super::repo::Repo;
use super::user::{Token, User, UserKind};

pub struct World {
    /// Whether the request that is answered came in as to an Enterprise server.
    pub is_enterprise: bool,
    /// `http://127.0.0.1:PORT`
    pub base: String,
    /// The address of the second listener, which stands for the host that logs and attachments are on.
    pub files_base: String,
    /// Where the git repositories are.
    pub folder: PathBuf,
    pub clock: Clock,
    pub users: Vec<User>,
    pub tokens: Vec<Token>,
    pub homes: Vec<Home>,
    pub projects: Vec<Project>,
    pub apps: Vec<App>,
    /// Logs and attachments by path.
    pub files: BTreeMap<String, Vec<u8>>,
    /// Addresses on the same host that lead elsewhere.
    pub forwards: BTreeMap<String, String>,
    pub limits: Limits,
    pub faults: Faults,
    pub journal: Journal,
    /// What broke the contract; the handle panics with them.
    pub violations: Vec<String>,
    last_id: u64,
}

impl World {
    pub fn new(base: String, files_base: String, folder: PathBuf) -> Self {
        let clock = Clock::default();
        Self {
            is_enterprise: false,
            base,
            files_base,
            folder,
            limits: Limits::new(clock.now()),
            clock,
            users: Vec::new(),
            tokens: Vec::new(),
            homes: Vec::new(),
            projects: Vec::new(),
            apps: Vec::new(),
            files: BTreeMap::new(),
            forwards: BTreeMap::new(),
            faults: Faults::default(),
            journal: Journal::default(),
            violations: Vec::new(),
            // GitHub's ids no longer fit into 32 bits.
            last_id: 3_000_000_000,
        }
    }

    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub fn next_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    pub fn user(&self, login: &str) -> Option<&User> {
        self.users.iter().find(|user| user.login.eq_ignore_ascii_case(login))
    }

    /// The account of that name; a person of that name is made if there is none.
    pub fn ensure_user(&mut self, login: &str) -> &User {
        if self.user(login).is_none() {
            let id = self.users.len() as u64 + 1001;
            let kind = if login.ends_with("[bot]") { UserKind::Bot } else { UserKind::Person };
            self.users.push(User { id, login: login.to_owned(), kind });
        }
        self.user(login).unwrap()
    }

    pub fn home(&self, owner: &str, name: &str) -> Option<usize> {
        self.homes
            .iter()
            .position(|home| home.repo.owner.eq_ignore_ascii_case(owner) && home.repo.name.eq_ignore_ascii_case(name))
    }

    /// The repository that once had this name.
    pub fn former_home(&self, owner: &str, name: &str) -> Option<usize> {
        let full = format!("{owner}/{name}");
        self.homes.iter().position(|home| home.former.iter().any(|former| former.eq_ignore_ascii_case(&full)))
    }

    pub fn repo(&self, home: usize) -> &Repo {
        &self.homes[home].repo
    }

    pub fn repo_mut(&mut self, home: usize) -> &mut Repo {
        &mut self.homes[home].repo
    }

    /// The repository as readers of `thing` see it.
    pub fn seen(&self, home: usize, thing: &Thing) -> &Repo {
        self.homes[home].seen(thing, self.journal.count(), self.now())
    }

    pub fn violate(&mut self, words: String) {
        eprintln!("loopback GitHub: {words}");
        self.violations.push(words);
    }
}
