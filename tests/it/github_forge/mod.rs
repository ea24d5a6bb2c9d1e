//! The GitHub forge against the loopback GitHub: git with a credential, looks, writes that are done once, faults.

mod bad_input;
mod checks;
mod end_to_end;
mod hourly;
mod keys;
mod landing;
mod people;
mod queue;
mod remote;
mod requests;
mod rules;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use dirigent::forge::github::{GithubForge, GithubSettings};
use dirigent::github::{Access, Credential, Github};
use dirigent::workspace::commits::Commits;
use dirigent::workspace::remote::{Remote, RemoteConfig};

use crate::github::Hub;
use crate::support::git_in;

/// A clone of the hub's repository as a user has it, without a credential in it.
pub fn clone_of(hub: &Hub, folder: &Path) -> PathBuf {
    let clone = folder.join("clone");
    git_in(folder, ["clone", "-q", &hub.git_folder().display().to_string(), "clone"]);
    git_in(&clone, ["remote", "set-url", "origin", &hub.clone_url()]);
    git_in(&clone, ["config", "user.name", "Somebody"]);
    git_in(&clone, ["config", "user.email", "somebody@example.invalid"]);
    git_in(&clone, ["config", "commit.gpgsign", "false"]);
    clone
}

pub fn client_of(hub: &Hub, token: &str) -> Github {
    Github::new(Access::new(Some(hub.api().to_owned()), Credential::Token(token.into()))).unwrap()
}

pub fn remote_of(hub: &Hub, clone: &Path, github: &Github) -> Remote {
    let config = RemoteConfig {
        repo: clone.to_owned(),
        url: hub.clone_url(),
        askpass: env!("CARGO_BIN_EXE_dirigent").into(),
        timeout: Duration::from_secs(120),
    };
    Remote::open(config, Arc::new(github.clone())).unwrap()
}

pub fn forge_of(hub: &Hub, clone: &Path, token: &str) -> GithubForge {
    forge_that_commits(hub, clone, token, Commits::default())
}

pub fn forge_that_commits(hub: &Hub, clone: &Path, token: &str, commits: Commits) -> GithubForge {
    let github = client_of(hub, token);
    let remote = remote_of(hub, clone, &github);
    let settings = GithubSettings { slug: "acme/widgets".to_owned(), own_account: false, reuse: true, commits };
    GithubForge::new(github, settings, remote)
}
