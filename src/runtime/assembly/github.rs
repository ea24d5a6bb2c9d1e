//! Builds the GitHub client and the issue board from the settings.

use secrecy::{ExposeSecret, SecretString};

use super::AssemblyError;
use super::adapters::{github_repository, origin};
use crate::config::Settings;
use crate::config::tracker::{Provider, TrackerKind, slug_of_remote, split_slug};
use crate::github::{Access, Credential, Github};
use crate::launcher::gh_token;
use crate::tracker::TrackerError;
use crate::tracker::github::{Columns, Done, GithubBoard, GithubTracker, ProjectColumn};

/// Returns the host of the API's address, in the form in which `gh` expects it.
pub(super) fn host(provider: &Provider) -> String {
    let url = provider.api_url.as_deref().unwrap_or("https://github.com");
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.split('/').next().unwrap_or(rest).to_owned()
}

/// Returns the API address and the credential from `tracker.provider`.
pub fn github_access(provider: &Provider) -> Result<Access, AssemblyError> {
    let missing = |words: &str| AssemblyError::Tracker(TrackerError::MissingSecret(words.to_owned()));
    let app = (provider.app_id, provider.private_key.as_ref(), provider.installation_id);
    let credential = match (app, provider.written_token()) {
        ((Some(app_id), Some(key), Some(installation_id)), _) => {
            Credential::App { app_id, private_key: private_key(key)?, installation_id }
        }
        (_, Some(token)) => Credential::Token(token.clone()),
        _ if provider.asks_gh() => Credential::Token(gh_token(&host(provider)).map_err(|why| missing(&why))?),
        _ => {
            return Err(missing(
                "no GitHub token\n  fix: set GITHUB_TOKEN or GH_TOKEN (or the variable that tracker.provider.token names, if the file names one), or write `token: gh` under tracker.provider to use the login of `gh`",
            ));
        }
    };
    Ok(Access::new(provider.api_url.clone(), credential))
}

/// Returns the private key: the value itself if it is a PEM key, else the content of the file that the value points to.
fn private_key(key: &SecretString) -> Result<SecretString, AssemblyError> {
    let text = key.expose_secret();
    if text.contains("-----BEGIN") {
        return Ok(key.clone());
    }
    let read = std::fs::read_to_string(text.trim());
    read.map(SecretString::from).map_err(|error| {
        let words = format!("tracker.provider.private_key is neither a PEM key nor a file that can be read: {error}");
        AssemblyError::Tracker(TrackerError::InvalidConfig(words))
    })
}

/// Returns `owner/name` of the repository whose issues are the board: as configured, else from the clone's remote.
fn board_slug(settings: &Settings) -> Option<String> {
    let by_remote = || origin(settings).and_then(|url| slug_of_remote(&url));
    settings.tracker.provider.repo.clone().or_else(by_remote)
}

/// The GitHub repositories that a runner uses, each as `owner/name`. `None` where the board or the forge is not on GitHub.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GithubRepositories {
    pub board: Option<String>,
    pub forge: Option<String>,
}

pub fn github_repositories(settings: &Settings) -> GithubRepositories {
    let is_board = settings.tracker.kind == TrackerKind::Github;
    GithubRepositories { board: is_board.then(|| board_slug(settings)).flatten(), forge: github_repository(settings) }
}

/// Builds the tracker of one GitHub repository's issues.
pub fn github_board(settings: &Settings) -> Result<GithubTracker, AssemblyError> {
    let board = board_settings(settings)?;
    let github = Github::in_step(github_access(&settings.tracker.provider)?).map_err(TrackerError::from)?;
    Ok(GithubTracker::new(github, board))
}

/// Returns what the board of issues is made from, apart from the access to it.
pub(super) fn board_settings(settings: &Settings) -> Result<GithubBoard, AssemblyError> {
    let (tracker, provider) = (&settings.tracker, &settings.tracker.provider);
    let slug = board_slug(settings).ok_or_else(|| {
        let words = "which repository?\n  fix: write `repo: owner/name` under tracker.provider";
        AssemblyError::Tracker(TrackerError::InvalidConfig(words.to_owned()))
    })?;
    let (owner, name) = split_slug(&slug).ok_or_else(|| {
        AssemblyError::Tracker(TrackerError::InvalidConfig(format!("`{slug}` is not a repository: write `owner/name`")))
    })?;
    let columns = match &provider.project {
        Some(project) => Columns::Project(ProjectColumn {
            owner: project.owner.clone().unwrap_or_else(|| owner.to_owned()),
            number: project.number,
            field: project.status_field.clone(),
            terminal: tracker.terminal_states.clone(),
            first: tracker.active_states.first().cloned(),
        }),
        None if provider.state_labels.is_empty() => Columns::OpenClosed,
        None => Columns::of_labels(provider.state_labels.clone(), &tracker.active_states, &tracker.terminal_states),
    };
    let on_done = &tracker.on_done;
    Ok(GithubBoard {
        owner: owner.to_owned(),
        name: name.to_owned(),
        columns,
        shared_account: provider.is_shared_account(),
        assignee: provider.assignee.clone(),
        milestone: provider.milestone.clone(),
        required_labels: tracker.required_labels.clone(),
        approval_states: settings.merge.approval_states.clone(),
        done: Done {
            state: settings.completion_state().to_owned(),
            add_labels: on_done.add_labels.clone(),
            remove_labels: on_done.remove_labels.clone(),
        },
    })
}
