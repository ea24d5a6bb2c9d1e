//! Pull requests on GitHub. Branches are pushed and fetched with git, using a credential of the runner; everything else uses the API.
//!
//! Every write first looks whether it was done already, so that a write whose response was lost is not done twice.

mod authors;
mod checks;
mod conversation;
mod documents;
mod errors;
mod landing;
mod line_notes;
mod look;
mod opening;
mod people;
mod probe;
mod push;
mod reading;
mod rules;
mod template;
mod wire;

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use secrecy::SecretString;
use tokio::sync::OnceCell;

use super::{
    CommitStatus, Forge, ForgeCapabilities, ForgeError, LineNote, MergeOrder, Merged, PrChange, PrLook, Pushed,
    RemarkPresence, Updated,
};
use crate::domain::comment::Acknowledgement;
use crate::domain::ids::{CommentId, CommitId, PrNumber};
use crate::domain::permit::Permit;
use crate::domain::pr::{NewPr, PullRequest};
use crate::domain::remark::RemarkKind;
use crate::github::Github;
use crate::workspace::commits::Commits;
use crate::workspace::remote::{CredentialSource, Remote, RemoteError};

pub use probe::{Missing, Probe};

use people::KnownPeople;
use rules::RuleBook;

/// Settings of the repository and the account.
#[derive(Debug, Clone)]
pub struct GithubSettings {
    /// `owner/name`.
    pub slug: String,
    /// Whether the account belongs to the runner alone: what it writes never counts as the word of a person.
    pub own_account: bool,
    /// Whether an open pull request that the branch already has, and that the runner did not open, is used.
    pub reuse: bool,
    /// Author, sign-off and signing of the runner's own commits.
    pub commits: Commits,
}

/// The GitHub adapter of the forge. Cheap to clone.
#[derive(Clone)]
pub struct GithubForge {
    inner: Arc<Inner>,
}

struct Inner {
    github: Github,
    settings: GithubSettings,
    remote: Remote,
    people: KnownPeople,
    rules: RuleBook,
    /// The login of the runner's own account. An App's installation cannot read it through REST, so GraphQL is used.
    viewer: OnceCell<String>,
    /// Looks that wait to be sent.
    wanted: Mutex<Vec<look::Wanted>>,
    asking: tokio::sync::Mutex<()>,
    /// Serialises the opening of pull requests: two calls for the same branch would both find none.
    opening: tokio::sync::Mutex<()>,
    /// Serialises merges and branch updates.
    landing: tokio::sync::Mutex<()>,
    /// The conflicting files between a head and its base, by pull request. GitHub does not report them.
    conflicts: Mutex<HashMap<PrNumber, Conflict>>,
    /// The ends of logs, by check id. The log of a finished check does not change, and every look needs it.
    logs: Mutex<HashMap<String, String>>,
}

/// The conflicting files of one pair of commits.
struct Conflict {
    head: CommitId,
    base: CommitId,
    files: Vec<String>,
}

impl GithubForge {
    pub fn new(github: Github, settings: GithubSettings, remote: Remote) -> Self {
        Self {
            inner: Arc::new(Inner {
                github,
                settings,
                remote,
                people: KnownPeople::default(),
                rules: RuleBook::default(),
                viewer: OnceCell::new(),
                wanted: Mutex::default(),
                asking: tokio::sync::Mutex::default(),
                opening: tokio::sync::Mutex::default(),
                landing: tokio::sync::Mutex::default(),
                conflicts: Mutex::default(),
                logs: Mutex::default(),
            }),
        }
    }
}

impl Inner {
    /// Returns the API path of something below the repository.
    fn path(&self, rest: &str) -> String {
        format!("/repos/{}{rest}", self.settings.slug)
    }

    fn owner(&self) -> &str {
        self.settings.slug.split('/').next().unwrap_or_default()
    }

    fn name(&self) -> &str {
        self.settings.slug.split('/').nth(1).unwrap_or_default()
    }
}

/// Uses the API token as git's credential, too.
#[async_trait]
impl CredentialSource for Github {
    async fn git_secret(&self) -> Result<SecretString, RemoteError> {
        self.token().await.map_err(|error| match error {
            crate::github::GithubError::Auth(_) | crate::github::GithubError::Config(_) => {
                RemoteError::Access(error.to_string())
            }
            error => RemoteError::Passing(error.to_string()),
        })
    }
}

/// Runs libgit2 work on a thread of its own, so that it does not block the async runtime.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ForgeError> + Send + 'static,
) -> Result<T, ForgeError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(_) => Err(ForgeError::Git("the work was interrupted".to_owned())),
    }
}

#[async_trait]
impl Forge for GithubForge {
    fn kind(&self) -> &'static str {
        "github"
    }

    fn capabilities(&self) -> ForgeCapabilities {
        ForgeCapabilities { conversations: true, reactions: true, statuses: true, merge_queue: true, reruns: true }
    }

    async fn find_pr(&self, branch: &str) -> Result<Option<PullRequest>, ForgeError> {
        self.inner.find_pr(branch).await
    }

    async fn inspect_many(&self, numbers: &[PrNumber]) -> Vec<(PrNumber, Result<PrLook, ForgeError>)> {
        self.inner.look_at(numbers).await
    }

    async fn check_log(&self, check: &str) -> Result<String, ForgeError> {
        self.inner.check_log(check).await
    }

    async fn find_remark(
        &self,
        number: PrNumber,
        _kind: RemarkKind,
        id: &CommentId,
    ) -> Result<RemarkPresence, ForgeError> {
        self.inner.find_remark(number, id).await
    }

    async fn push_branch(
        &self,
        _permit: &Permit,
        branch: &str,
        head: &CommitId,
        pushed: Option<&CommitId>,
    ) -> Result<Pushed, ForgeError> {
        self.inner.push(branch, head, pushed).await
    }

    async fn open_pr(&self, _permit: &Permit, new: &NewPr) -> Result<PullRequest, ForgeError> {
        self.inner.open_pr(new).await
    }

    async fn reopen(&self, _permit: &Permit, number: PrNumber) -> Result<(), ForgeError> {
        self.inner.reopen(number).await
    }

    async fn merge(&self, _permit: &Permit, order: &MergeOrder) -> Result<Merged, ForgeError> {
        self.inner.merge(order).await
    }

    async fn dequeue(&self, _permit: &Permit, number: PrNumber) -> Result<(), ForgeError> {
        self.inner.dequeue(number).await
    }

    async fn update_branch(&self, _permit: &Permit, number: PrNumber, head: &CommitId) -> Result<Updated, ForgeError> {
        self.inner.update_branch(number, head).await
    }

    async fn update_pr(&self, _permit: &Permit, number: PrNumber, change: &PrChange) -> Result<(), ForgeError> {
        self.inner.update_pr(number, change).await
    }

    async fn upsert_comment(
        &self,
        _permit: &Permit,
        number: PrNumber,
        key: &str,
        body: &str,
    ) -> Result<CommentId, ForgeError> {
        self.inner.upsert_comment(number, key, body).await
    }

    async fn react(
        &self,
        _permit: &Permit,
        _number: PrNumber,
        comment: &CommentId,
        reaction: Acknowledgement,
    ) -> Result<(), ForgeError> {
        self.inner.react(comment, reaction).await
    }

    async fn begin_threads(
        &self,
        _permit: &Permit,
        number: PrNumber,
        head: &CommitId,
        notes: &[LineNote],
    ) -> Result<usize, ForgeError> {
        self.inner.begin_threads(number, head, notes).await
    }

    async fn reply_in_thread(
        &self,
        _permit: &Permit,
        _number: PrNumber,
        thread: &CommentId,
        key: &str,
        body: &str,
    ) -> Result<CommentId, ForgeError> {
        self.inner.reply_in_thread(thread, key, body).await
    }

    async fn resolve_thread(&self, _permit: &Permit, _number: PrNumber, thread: &CommentId) -> Result<(), ForgeError> {
        self.inner.resolve_thread(thread).await
    }

    async fn request_review(&self, _permit: &Permit, number: PrNumber, reviewer: &str) -> Result<(), ForgeError> {
        self.inner.request_reviews(number, std::slice::from_ref(&reviewer.to_owned())).await
    }

    async fn publish_status(&self, _permit: &Permit, status: &CommitStatus) -> Result<(), ForgeError> {
        self.inner.publish_status(status).await
    }

    async fn rerun_check(&self, _permit: &Permit, check: &str) -> Result<(), ForgeError> {
        self.inner.rerun_check(check).await
    }

    async fn keep_receipt(
        &self,
        _permit: &Permit,
        commit: &CommitId,
        payload: &str,
        signature: Option<&str>,
    ) -> Result<(), ForgeError> {
        self.inner.keep_receipt(commit, payload, signature).await
    }

    async fn delete_branch(&self, _permit: &Permit, branch: &str, head: &CommitId) -> Result<(), ForgeError> {
        self.inner.delete_branch(branch, head).await
    }
}
