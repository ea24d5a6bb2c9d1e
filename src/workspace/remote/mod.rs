//! The forge's repository through git: reading its branches, fetching, and pushing or deleting with a lease (only if the ref is where the
//! caller expects it).
//!
//! The user's `git` runs in a private git directory that borrows the repository's objects. It reads nothing of the repository's own
//! configuration, which a worker can write: no `url.insteadOf`, hook, filter, helper or program from there is used.

pub mod askpass;
mod error;
mod private_dir;
mod settings;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use secrecy::SecretString;
use tokio::sync::watch;

pub use error::RemoteError;

use private_dir::PrivateGitDir;

use super::command::{self, Input, Invocation};
use super::git::GitError;
use super::repo::RepoPlace;
use super::{WorkspaceError, commit_at, commit_id, oid};
use crate::domain::ids::CommitId;
use crate::domain::loopback::is_loopback_authority;

const OUTPUT_LIMIT: usize = 1024 * 1024;

/// The source of a credential. It is queried for every call, because some credentials are replaced every hour.
#[async_trait]
pub trait CredentialSource: Send + Sync {
    async fn git_secret(&self) -> Result<SecretString, RemoteError>;
}

/// The parameters of a [`Remote`].
pub struct RemoteConfig {
    /// Any directory of the repository whose objects are used.
    pub repo: PathBuf,
    /// The address without a credential: `https://host/owner/name.git`.
    pub url: String,
    /// Path of this program, which git calls to get the credential.
    pub askpass: PathBuf,
    pub timeout: Duration,
}

/// A remote repository. Cheap to clone.
#[derive(Clone)]
pub struct Remote {
    shared: Arc<Shared>,
}

struct Shared {
    place: RepoPlace,
    url: String,
    /// `https://host`, the only place that the credential is sent to.
    origin: String,
    askpass: PathBuf,
    program: PathBuf,
    timeout: Duration,
    credential: Arc<dyn CredentialSource>,
    /// The settings that are taken from the user's own configuration, read once.
    settings: Vec<(String, String)>,
}

impl std::fmt::Debug for Remote {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Remote").field("url", &self.shared.url).finish_non_exhaustive()
    }
}

/// What a ref must point to for a push to happen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lease {
    /// The branch must not exist.
    Nothing,
    At(CommitId),
}

impl Remote {
    pub fn open(config: RemoteConfig, credential: Arc<dyn CredentialSource>) -> Result<Self, WorkspaceError> {
        let place = RepoPlace::find(&config.repo)?;
        let origin = origin_of(&config.url)?;
        let shared = Shared {
            place,
            origin,
            url: config.url,
            askpass: config.askpass,
            program: "git".into(),
            timeout: config.timeout,
            credential,
            settings: settings::of_user(),
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Returns the same remote with another git program.
    pub fn with_program(self, program: PathBuf) -> Self {
        let Shared { place, url, origin, askpass, timeout, credential, settings, .. } = &*self.shared;
        let shared = Shared {
            place: place.clone(),
            url: url.clone(),
            origin: origin.clone(),
            askpass: askpass.clone(),
            program,
            timeout: *timeout,
            credential: credential.clone(),
            settings: settings.clone(),
        };
        Self { shared: Arc::new(shared) }
    }

    pub fn url(&self) -> &str {
        &self.shared.url
    }

    pub fn place(&self) -> &RepoPlace {
        &self.shared.place
    }

    /// Returns the commits of these branches. Branches that do not exist are left out.
    pub async fn heads(&self, branches: &[&str]) -> Result<Vec<(String, CommitId)>, RemoteError> {
        let names = branches.iter().map(|branch| full(branch)).collect::<Result<Vec<_>, _>>()?;
        let mut args = vec!["ls-remote".to_owned(), "--quiet".to_owned(), "--refs".to_owned(), self.shared.url.clone()];
        args.extend(names);
        let listed = self.git(args).await?;
        let lines = String::from_utf8_lossy(&listed).into_owned();
        let found = lines.lines().filter_map(|line| {
            let (commit, name) = line.split_once('\t')?;
            let branch = name.strip_prefix("refs/heads/")?;
            // git matches a name also at the end of longer names.
            branches.contains(&branch).then(|| (branch.to_owned(), CommitId::new(commit)))
        });
        Ok(found.collect())
    }

    pub async fn head(&self, branch: &str) -> Result<Option<CommitId>, RemoteError> {
        Ok(self.heads(&[branch]).await?.into_iter().next().map(|(_, commit)| commit))
    }

    /// Returns the commit of a ref of any kind. `None` if it does not exist.
    pub async fn ref_at(&self, name: &str) -> Result<Option<CommitId>, RemoteError> {
        let args = ["ls-remote", "--quiet", "--refs", &self.shared.url, name].map(str::to_owned);
        let listed = self.git(args.to_vec()).await?;
        let lines = String::from_utf8_lossy(&listed).into_owned();
        let found = lines.lines().filter_map(|line| line.split_once('\t')).find(|(_, listed)| *listed == name);
        Ok(found.map(|(commit, _)| CommitId::new(commit)))
    }

    /// Sets a ref of any kind to `commit`, if it is where the lease says.
    pub async fn push_ref(&self, name: &str, commit: &CommitId, lease: &Lease) -> Result<(), RemoteError> {
        self.send(name, Some(commit), lease).await
    }

    /// Fetches the branches and returns their commits. Also sets `refs/remotes/origin/*` to them.
    pub async fn fetch(&self, branches: &[&str]) -> Result<Vec<(String, CommitId)>, RemoteError> {
        let heads = self.heads(branches).await?;
        let missing = {
            let repo = self.shared.place.open().map_err(|error| RemoteError::Local(error.to_string()))?;
            heads.iter().any(|(_, commit)| !has(&repo, commit))
        };
        if missing {
            self.fetch_commits(&heads.iter().map(|(_, commit)| commit).collect::<Vec<_>>()).await?;
        }
        self.note_heads(&heads)?;
        Ok(heads)
    }

    /// Fetches one commit, if the repository does not contain it yet.
    pub async fn fetch_commit(&self, commit: &CommitId) -> Result<(), RemoteError> {
        let there = self.shared.place.open().map(|repo| has(&repo, commit));
        if there.map_err(|error| RemoteError::Local(error.to_string()))? {
            return Ok(());
        }
        self.fetch_commits(&[commit]).await
    }

    async fn fetch_commits(&self, commits: &[&CommitId]) -> Result<(), RemoteError> {
        let fixed = [
            "fetch",
            "--quiet",
            "--no-tags",
            "--no-write-fetch-head",
            "--no-recurse-submodules",
            "--no-auto-maintenance",
        ];
        let mut args: Vec<String> = fixed.map(str::to_owned).to_vec();
        args.push(self.shared.url.clone());
        for commit in commits {
            oid(commit).map_err(|_| RemoteError::Local(format!("`{commit}` is not a commit id")))?;
            args.push(commit.to_string());
        }
        self.git(args).await.map(|_| ())
    }

    fn note_heads(&self, heads: &[(String, CommitId)]) -> Result<(), RemoteError> {
        let failed = |error: git2::Error| RemoteError::Local(error.message().to_owned());
        let repo = self.shared.place.open().map_err(|error| RemoteError::Local(error.to_string()))?;
        for (branch, commit) in heads {
            let commit = oid(commit).map_err(failed)?;
            repo.find_commit(commit).map_err(failed)?;
            let name = format!("refs/remotes/{}/{branch}", super::base::DEFAULT_REMOTE);
            repo.reference(&name, commit, true, "dirigent: fetched").map_err(failed)?;
        }
        Ok(())
    }

    /// Sets the branch to exactly `head`, if it is where the lease says.
    pub async fn push(&self, branch: &str, head: &CommitId, lease: &Lease) -> Result<(), RemoteError> {
        let name = full(branch)?;
        {
            let repo = self.shared.place.open().map_err(|error| RemoteError::Local(error.to_string()))?;
            if !has(&repo, head) {
                return Err(RemoteError::NoCommit(head.clone()));
            }
        }
        self.send(&name, Some(head), lease).await?;
        self.note_heads(&[(branch.to_owned(), head.clone())])
    }

    /// Deletes the branch if it is at `at`. Succeeds if it does not exist; returns its actual commit if it is elsewhere.
    pub async fn delete(&self, branch: &str, at: &CommitId) -> Result<Deletion, RemoteError> {
        let name = full(branch)?;
        let deletion = match self.head(branch).await? {
            None => Deletion::Gone,
            Some(actual) if actual != *at => Deletion::Elsewhere(actual),
            Some(_) => match self.send(&name, None, &Lease::At(at.clone())).await {
                Ok(()) => Deletion::Gone,
                Err(RemoteError::Moved) => match self.head(branch).await? {
                    None => Deletion::Gone,
                    Some(actual) => Deletion::Elsewhere(actual),
                },
                Err(error) => return Err(error),
            },
        };
        if deletion == Deletion::Gone
            && let Ok(repo) = self.shared.place.open()
            && let Ok(mut tracking) =
                repo.find_reference(&format!("refs/remotes/{}/{branch}", super::base::DEFAULT_REMOTE))
        {
            let _ = tracking.delete();
        }
        Ok(deletion)
    }

    async fn send(&self, name: &str, commit: Option<&CommitId>, lease: &Lease) -> Result<(), RemoteError> {
        let expected = match lease {
            Lease::Nothing => "",
            Lease::At(commit) => commit.as_str(),
        };
        let args = [
            "push".to_owned(),
            "--porcelain".to_owned(),
            "--no-verify".to_owned(),
            "--no-signed".to_owned(),
            "--recurse-submodules=no".to_owned(),
            format!("--force-with-lease={name}:{expected}"),
            self.shared.url.clone(),
            format!("{}:{name}", commit.map(CommitId::as_str).unwrap_or_default()),
        ];
        self.git(args.to_vec()).await.map(|_| ())
    }

    /// Runs git once in a private git directory, with the credential available through a socket.
    async fn git(&self, args: Vec<String>) -> Result<Vec<u8>, RemoteError> {
        let shared = &self.shared;
        let secret = shared.credential.git_secret().await?;
        let private = PrivateGitDir::make(&shared.place, &shared.settings)?;
        let desk = askpass::PasswordDesk::open()?;
        let what = args.first().cloned().unwrap_or_default();
        let (leader, led) = watch::channel(None);
        let invocation = Invocation {
            program: shared.program.clone().into_os_string(),
            args: args.into_iter().map(OsString::from).collect(),
            leads_group: true,
            cwd: private.folder.path().to_owned(),
            env: self.environment(&private, &desk.socket()),
            stdin: Input::Nothing,
            timeout: shared.timeout,
            stdout_limit: OUTPUT_LIMIT,
            stderr_limit: 64 * 1024,
        };
        let running = command::run_and_tell(invocation, |pid| {
            leader.send_replace(Some(pid));
        });
        let finished = tokio::select! {
            finished = running => finished,
            () = desk.answer(led, &shared.origin, &secret) => return Err(RemoteError::Local("git's questions were not heard".to_owned())),
        };
        let finished = finished.map_err(|error| error::meaning(error.into(), &shared.url))?;
        if finished.status.success() {
            return Ok(finished.stdout.bytes);
        }
        // With --porcelain, the result of each ref is on standard output.
        let said = format!("{}\n{}", finished.stderr.text(), finished.stdout.text());
        let failed = GitError::Failed {
            what,
            cwd: shared.place.cwd().to_owned(),
            status: finished.status.to_string(),
            code: finished.status.code(),
            stderr: said,
        };
        Err(error::meaning(failed, &shared.url))
    }

    /// Returns the environment: only what git and TLS need, never the runner's own secrets.
    fn environment(&self, private: &PrivateGitDir, socket: &Path) -> Vec<(OsString, OsString)> {
        const KEPT: [&str; 13] = [
            "PATH",
            "TMPDIR",
            "HTTPS_PROXY",
            "https_proxy",
            "HTTP_PROXY",
            "http_proxy",
            "ALL_PROXY",
            "all_proxy",
            "NO_PROXY",
            "no_proxy",
            "SSL_CERT_FILE",
            "SSL_CERT_DIR",
            "GIT_SSL_CAINFO",
        ];
        let ours = std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(|name| KEPT.contains(&name)));
        let mut env: Vec<(OsString, OsString)> = ours.collect();
        let objects = self.shared.place.git_dir.join("objects");
        let scheme = self.shared.origin.split("://").next().unwrap_or("https").to_owned();
        let paths: [(&str, &Path); 5] = [
            ("GIT_DIR", &private.git_dir),
            ("GIT_OBJECT_DIRECTORY", &objects),
            ("HOME", private.folder.path()),
            ("GIT_ASKPASS", &self.shared.askpass),
            (askpass::VARIABLE, socket),
        ];
        env.extend(paths.map(|(name, path)| (name.into(), path.as_os_str().to_owned())));
        let fixed: [(&str, &str); 7] = [
            ("GIT_CONFIG_NOSYSTEM", "1"),
            ("GIT_CONFIG_GLOBAL", "/dev/null"),
            ("GIT_ATTR_NOSYSTEM", "1"),
            ("GIT_TERMINAL_PROMPT", "0"),
            ("GIT_ALLOW_PROTOCOL", &scheme),
            ("LC_ALL", "C"),
            ("GIT_NO_REPLACE_OBJECTS", "1"),
        ];
        env.extend(fixed.map(|(name, value)| (name.into(), value.into())));
        let shallow = self.shared.place.git_dir.join("shallow");
        if shallow.is_file() {
            env.push(("GIT_SHALLOW_FILE".into(), shallow.into_os_string()));
        }
        env
    }
}

/// The result of deleting a branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Deletion {
    Gone,
    /// It points to another commit and was left alone.
    Elsewhere(CommitId),
}

fn full(branch: &str) -> Result<String, RemoteError> {
    super::repo::branch_ref(branch).map_err(|error| RemoteError::Local(error.to_string()))
}

fn has(repo: &git2::Repository, commit: &CommitId) -> bool {
    oid(commit).is_ok_and(|commit| repo.find_commit(commit).is_ok())
}

/// Returns `https://host` of an address. Plain HTTP would expose the credential on the network, so it is allowed for this machine only.
fn origin_of(url: &str) -> Result<String, WorkspaceError> {
    let bad = |because: &str| WorkspaceError::BadRemote { url: without_user(url), because: because.to_owned() };
    let (scheme, rest) = url.split_once("://").ok_or_else(|| bad("it is not an https:// address"))?;
    let host = rest.split('/').next().unwrap_or_default();
    if host.is_empty() || host.contains('@') {
        return Err(bad("it has to name a host, and no user or password"));
    }
    match scheme {
        "https" => {}
        "http" if is_loopback_authority(host) => {}
        _ => return Err(bad("it is not an https:// address")),
    }
    Ok(format!("{scheme}://{host}"))
}

fn without_user(url: &str) -> String {
    match url.split_once("://") {
        Some((scheme, rest)) => format!("{scheme}://{}", rest.rsplit_once('@').map_or(rest, |(_, rest)| rest)),
        None => url.to_owned(),
    }
}

/// Returns the commit of a local branch. `None` if it does not exist.
pub fn local_head(place: &RepoPlace, branch: &str) -> Result<Option<CommitId>, WorkspaceError> {
    Ok(commit_at(&place.open()?, &super::repo::branch_ref(branch)?).map(commit_id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_credential_is_only_for_a_host_that_nobody_listens_in_on() {
        assert_eq!(origin_of("https://github.com/a/b.git").unwrap(), "https://github.com");
        assert_eq!(origin_of("http://127.0.0.1:4000/a/b.git").unwrap(), "http://127.0.0.1:4000");
        for url in [
            "http://github.com/a/b",
            "http://localhost.example.com/a/b",
            "git@github.com:a/b",
            "https://user:pw@github.com/a/b",
            "file:///a",
            "https:///a",
        ] {
            let error = origin_of(url).unwrap_err().to_string();
            assert!(!error.contains("pw"), "{error}");
        }
    }
}
