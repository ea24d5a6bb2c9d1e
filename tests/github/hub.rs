//! The handle of a running loopback GitHub.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::server::listener::{Listener, Shared};
use super::state::repo::Settings;
use super::state::{Home, Permission, Repo, Token, TokenKind, UserKind, World, git};

/// The organisation and the repository that a hub begins with.
pub const OWNER: &str = "acme";
pub const NAME: &str = "widgets";

/// A running loopback GitHub. Dropping it ends it, and fails the test if a contract was broken.
pub struct Hub {
    shared: Shared,
    listener: Option<Listener>,
    api: String,
    _folder: tempfile::TempDir,
}

impl Hub {
    /// With the repository `acme/widgets` (one commit on `main`), its admin `ada` (token `ada-token`) and the account `robot` that may write
    /// (token `robot-token`).
    pub fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let bind = || TcpListener::bind("127.0.0.1:0").unwrap();
        let (api, files) = (bind(), bind());
        let address = |socket: &TcpListener| format!("http://{}", socket.local_addr().unwrap());
        let (api_base, files_base) = (address(&api), address(&files));
        let world = World::new(api_base.clone(), files_base, folder.path().to_owned());
        let shared: Shared = Arc::new(Mutex::new(world));
        let listener = Listener::start(shared.clone(), api, files);
        let hub = Self { shared, listener: Some(listener), api: api_base, _folder: folder };
        hub.add_repository(OWNER, NAME);
        hub.grant("ada", Permission::Admin);
        hub.grant("robot", Permission::Write);
        hub.add_token("ada", "ada-token");
        hub.add_token("robot", "robot-token");
        hub
    }

    /// The address of the API, as `https://api.github.com` is one.
    pub fn api(&self) -> &str {
        &self.api
    }

    /// The address of the API as an Enterprise server has it.
    pub fn enterprise_api(&self) -> String {
        format!("{}/api/v3", self.api)
    }

    /// The address that git clones from and pushes to.
    pub fn clone_url(&self) -> String {
        format!("{}/{OWNER}/{NAME}.git", self.api)
    }

    /// The bare repository itself.
    pub fn git_folder(&self) -> PathBuf {
        self.world().homes[0].git.clone()
    }

    pub(super) fn world(&self) -> MutexGuard<'_, World> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the world as a test does, and notes it for things that lag.
    pub(super) fn change<T>(&self, change: impl FnOnce(&mut World) -> T) -> T {
        let mut world = self.world();
        let done = change(&mut world);
        let (now, count) = (world.now(), world.journal.count());
        world.homes.iter_mut().for_each(|home| home.note(count, now));
        done
    }

    /// Another repository, of an organisation that is made if it is not there.
    pub fn add_repository(&self, owner: &str, name: &str) {
        let mut world = self.world();
        let id = world.next_id();
        let git = world.folder.join(format!("{id}.git"));
        git::create(&git);
        world.ensure_user(owner);
        world.users.iter_mut().filter(|user| user.login == owner).for_each(|user| user.kind = UserKind::Organization);
        let now = world.now();
        let repo = Repo {
            id,
            owner: owner.to_owned(),
            name: name.to_owned(),
            private: true,
            default_branch: "main".to_owned(),
            settings: Settings {
                merge: true,
                squash: true,
                rebase: true,
                auto_merge: true,
                delete_branch_on_merge: false,
                has_issues: true,
                archived: false,
                mergeable_after: 1,
            },
            permissions: BTreeMap::new(),
            labels: Arc::default(),
            milestones: Arc::default(),
            issues: BTreeMap::new(),
            pulls: BTreeMap::new(),
            gone: BTreeMap::new(),
            checks: Arc::default(),
            statuses: Arc::default(),
            runs: Arc::default(),
            rules: Arc::default(),
            refs: Arc::new(git::refs(&git)),
            created_at: now,
            pushed_at: now,
        };
        world.homes.push(Home::new(git, repo));
    }

    /// What broke a contract so far, taken away: for tests that break one on purpose.
    pub fn take_violations(&self) -> Vec<String> {
        std::mem::take(&mut self.world().violations)
    }

    /// Panics if a contract was broken.
    pub fn assert_contract(&self) {
        let violations = self.world().violations.clone();
        assert!(violations.is_empty(), "GitHub's contract was broken:\n{}", violations.join("\n"));
    }

    pub fn add_token(&self, login: &str, text: &str) {
        let scopes = ["repo", "workflow", "project"].map(str::to_owned).to_vec();
        self.add_token_of_kind(login, text, TokenKind::Classic { scopes }, &[]);
    }

    /// A classic token with these scopes only.
    pub fn add_scoped_token(&self, login: &str, text: &str, scopes: &[&str]) {
        let scopes = scopes.iter().map(|scope| (*scope).to_owned()).collect();
        self.add_token_of_kind(login, text, TokenKind::Classic { scopes }, &[]);
    }

    /// A fine-grained token that must not use operations with these beginnings (nor check runs).
    pub fn add_fine_grained_token(&self, login: &str, text: &str, denied: &[&str]) {
        self.add_token_of_kind(login, text, TokenKind::FineGrained, denied);
    }

    fn add_token_of_kind(&self, login: &str, text: &str, kind: TokenKind, denied: &[&str]) {
        let mut world = self.world();
        world.ensure_user(login);
        let denied = denied.iter().map(|one| (*one).to_owned()).collect();
        world.tokens.push(Token { text: text.to_owned(), login: login.to_owned(), kind, denied, revoked: false });
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        drop(self.listener.take());
        if !std::thread::panicking() {
            self.assert_contract();
        }
    }
}
