//! Merging pull requests, GitHub's merge queue, and merging the base into a branch.

use std::time::Duration;

use git2::Repository;
use http::Method;
use serde::Deserialize;
use serde_json::json;

use super::documents::{DEQUEUE, ENQUEUE, STANDING};
use super::errors::{about, libgit};
use super::wire::{InRepository, Oid};
use super::{Conflict, Inner, blocking};
use crate::domain::ids::{CommitId, PrNumber};
use crate::domain::pr::MergeMethod;
use crate::forge::combine;
use crate::forge::{ForgeError, MergeOrder, Merged, Updated};
use crate::github::{GithubError, Purpose};

/// How long the runner waits for an updated branch to show in git. GitHub updates it only after it has sent its response.
const UPDATE_SHOWS_WITHIN: Duration = Duration::from_secs(40);
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(500);

/// The state of a pull request right before or after a merge.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Standing {
    id: String,
    state: String,
    title: String,
    is_draft: bool,
    head_ref_name: String,
    base_ref_name: String,
    mergeable: String,
    merge_commit: Option<Oid>,
    #[serde(default)]
    is_in_merge_queue: bool,
    #[serde(default)]
    is_merge_queue_enabled: bool,
}

#[derive(Deserialize)]
struct MergeAnswer {
    sha: Option<String>,
}

impl Inner {
    async fn standing(&self, number: PrNumber) -> Result<Standing, ForgeError> {
        let variables = json!({ "owner": self.owner(), "name": self.name(), "number": number.0 });
        let answer =
            self.github.query::<InRepository>(Purpose::Land, STANDING, &variables).await.map_err(about(number))?;
        let mut repository = answer.data.and_then(|data| data.repository).ok_or_else(|| self.not_shown())?;
        match repository.remove("pull").filter(|pull| !pull.is_null()) {
            Some(pull) => serde_json::from_value(pull).map_err(|error| ForgeError::Response(error.to_string())),
            None => match answer.faults.first() {
                Some(fault) if fault.kind != "NOT_FOUND" => Err(ForgeError::Response(fault.to_string())),
                _ => Err(ForgeError::NotFound(number)),
            },
        }
    }

    /// Returns the branch of the pull request, its base branch, and the commit that git has for the branch.
    pub(super) async fn ends(&self, number: PrNumber) -> Result<(String, String, Option<CommitId>), ForgeError> {
        let standing = self.standing(number).await?;
        let head = self.remote.head(&standing.head_ref_name).await?;
        Ok((standing.head_ref_name, standing.base_ref_name, head))
    }

    pub(super) fn not_shown(&self) -> ForgeError {
        ForgeError::Refused(format!(
            "GitHub does not show {} to our account\n  fix: check pr.repo_slug, and that the token may see the repository",
            self.settings.slug
        ))
    }

    pub(super) async fn merge(&self, order: &MergeOrder) -> Result<Merged, ForgeError> {
        let _one_at_a_time = self.landing.lock().await;
        let number = order.number;
        let standing = self.standing(number).await?;
        match standing.state.as_str() {
            "MERGED" => return Ok(done(&standing)),
            "OPEN" => {}
            _ => return Err(ForgeError::Refused(format!("pull request {number} is closed"))),
        }
        same_base(order, &standing)?;
        self.same_head(&standing.head_ref_name, &order.expected_head).await?;
        if standing.is_in_merge_queue {
            return Ok(Merged::Queued);
        }
        if standing.is_draft {
            return Err(ForgeError::NotNow(format!("pull request {number} is a draft")));
        }
        if standing.is_merge_queue_enabled {
            return self.enqueue(number, &standing, &order.expected_head).await;
        }
        let merged = self.merge_by_some_method(order, &standing).await?;
        // GitHub has no merge "into this base only": whether the base branch was still the expected one is checked afterwards.
        let after = self.standing(number).await;
        if let Ok(after) = after {
            same_base(order, &after)?;
        }
        Ok(merged)
    }

    /// Merges by the wanted method. If the repository forbids it, tries the next method that the repository allows.
    async fn merge_by_some_method(&self, order: &MergeOrder, standing: &Standing) -> Result<Merged, ForgeError> {
        let mut methods = vec![order.method];
        methods.extend(
            [MergeMethod::Squash, MergeMethod::Merge, MergeMethod::Rebase].into_iter().filter(|m| *m != order.method),
        );
        let mut forbidden = String::new();
        for method in methods {
            match self.merge_by(order, method, standing).await {
                Err(GithubError::Refused(refusal))
                    if refusal.status == 405 && refusal.message.contains("not allowed on this repository") =>
                {
                    forbidden = refusal.message;
                }
                Err(GithubError::Refused(refusal)) => {
                    return self.refusal(order, standing, refusal.status, refusal.message).await;
                }
                other => return other.map(|commit| Merged::Done { commit }).map_err(about(order.number)),
            }
        }
        Err(ForgeError::Refused(format!("the repository allows no method of merging: {forbidden}")))
    }

    async fn merge_by(
        &self,
        order: &MergeOrder,
        method: MergeMethod,
        standing: &Standing,
    ) -> Result<Option<CommitId>, GithubError> {
        let name = match method {
            MergeMethod::Squash => "squash",
            MergeMethod::Merge => "merge",
            MergeMethod::Rebase => "rebase",
        };
        let mut body = json!({ "sha": order.expected_head.as_str(), "merge_method": name });
        let mut trailers = order.trailers.clone();
        if method == MergeMethod::Squash {
            trailers.extend(self.co_authors(&order.expected_head, &standing.base_ref_name).await);
        }
        if method != MergeMethod::Rebase && !trailers.is_empty() {
            body["commit_message"] = json!(trailers.join("\n"));
        }
        if method == MergeMethod::Squash {
            body["commit_title"] = json!(format!("{} (#{})", standing.title, order.number.0));
        }
        let path = self.path(&format!("/pulls/{}/merge", order.number.0));
        let merged: MergeAnswer = self.github.write(Purpose::Land, Method::PUT, &path, Some(&body)).await?;
        Ok(merged.sha.map(CommitId::new))
    }

    /// Finds out what a refused merge means: merged already, head moved, a conflict, or refused for now.
    async fn refusal(
        &self,
        order: &MergeOrder,
        standing: &Standing,
        status: u16,
        words: String,
    ) -> Result<Merged, ForgeError> {
        if words.contains("merge queue") {
            return self.enqueue(order.number, standing, &order.expected_head).await;
        }
        let now = self.standing(order.number).await?;
        if now.state == "MERGED" {
            // Another merge, or an earlier try of the runner, was faster.
            return Ok(done(&now));
        }
        self.same_head(&standing.head_ref_name, &order.expected_head).await?;
        let conflicting =
            now.mergeable == "CONFLICTING" || standing.mergeable == "CONFLICTING" || words.contains("merge conflicts");
        if conflicting {
            match self.conflicting_files(order.number, &order.expected_head, &standing.base_ref_name).await {
                Ok(files) if !files.is_empty() => return Err(ForgeError::Conflict { files }),
                Ok(_) => {}
                Err(error) => return Err(error),
            }
        }
        Err(match status {
            405 | 409 | 422 => ForgeError::NotNow(format!("GitHub does not merge it: {}", words.trim())),
            _ => ForgeError::Refused(words),
        })
    }

    async fn enqueue(&self, number: PrNumber, standing: &Standing, head: &CommitId) -> Result<Merged, ForgeError> {
        let variables = json!({ "id": standing.id, "head": head.as_str() });
        match self.github.mutate::<serde_json::Value>(Purpose::Land, ENQUEUE, &variables).await {
            Ok(_) => Ok(Merged::Queued),
            Err(GithubError::Refused(refusal)) => {
                let now = self.standing(number).await?;
                match (now.is_in_merge_queue, now.state.as_str()) {
                    (true, _) => Ok(Merged::Queued),
                    (false, "MERGED") => Ok(done(&now)),
                    _ => Err(ForgeError::NotNow(format!("GitHub's merge queue does not take it: {}", refusal.message))),
                }
            }
            Err(error) => Err(error.into()),
        }
    }

    pub(super) async fn dequeue(&self, number: PrNumber) -> Result<(), ForgeError> {
        let standing = self.standing(number).await?;
        if !standing.is_in_merge_queue {
            return Ok(());
        }
        let variables = json!({ "id": standing.id });
        match self.github.mutate::<serde_json::Value>(Purpose::Land, DEQUEUE, &variables).await {
            Err(GithubError::Refused(_)) if !self.standing(number).await?.is_in_merge_queue => Ok(()),
            other => Ok(other.map(|_| ())?),
        }
    }

    async fn same_head(&self, branch: &str, expected: &CommitId) -> Result<(), ForgeError> {
        match self.remote.head(branch).await? {
            Some(actual) if actual == *expected => Ok(()),
            Some(actual) => Err(ForgeError::HeadMoved { expected: expected.clone(), actual }),
            None => Err(ForgeError::Refused(format!("the branch `{branch}` does not exist any more"))),
        }
    }

    pub(super) async fn update_branch(&self, number: PrNumber, head: &CommitId) -> Result<Updated, ForgeError> {
        let _one_at_a_time = self.landing.lock().await;
        let standing = self.standing(number).await?;
        if standing.state == "MERGED" {
            return Ok(Updated { head: head.clone(), same_diff: true });
        }
        self.same_head(&standing.head_ref_name, head).await?;
        let base = self.base_here(&standing.base_ref_name, head).await?;
        if self.contains(head, &base).await? {
            return Ok(Updated { head: head.clone(), same_diff: true });
        }
        let path = self.path(&format!("/pulls/{}/update-branch", number.0));
        let body = json!({ "expected_head_sha": head.as_str() });
        match self.github.write_blindly(Purpose::Land, Method::PUT, &path, Some(&body)).await {
            Ok(()) => {}
            Err(GithubError::Refused(refusal)) if refusal.message.contains("merge conflict") => {
                let files = self.conflicting_files(number, head, &standing.base_ref_name).await?;
                return Err(ForgeError::Conflict { files });
            }
            Err(GithubError::Refused(refusal)) => {
                self.same_head(&standing.head_ref_name, head).await?;
                return Err(ForgeError::NotNow(format!("GitHub does not update the branch: {}", refusal.message)));
            }
            Err(error) => return Err(about(number)(error)),
        }
        let new = self.awaited_head(&standing.head_ref_name, head).await?;
        self.remote.fetch_commit(&new).await?;
        let base = self.base_here(&standing.base_ref_name, &new).await?;
        let (place, before, after) = (self.remote.place().clone(), head.clone(), new.clone());
        let same_diff = blocking(move || {
            let repo = place.open()?;
            combine::is_same_change(&repo, oid(&base)?, oid(&before)?, oid(&after)?).map_err(|error| libgit(&error))
        });
        Ok(Updated { same_diff: same_diff.await?, head: new })
    }

    async fn awaited_head(&self, branch: &str, old: &CommitId) -> Result<CommitId, ForgeError> {
        let begun = tokio::time::Instant::now();
        while begun.elapsed() < UPDATE_SHOWS_WITHIN {
            match self.remote.head(branch).await? {
                Some(new) if new != *old => return Ok(new),
                _ => tokio::time::sleep(LOOK_AGAIN_AFTER).await,
            }
        }
        Err(ForgeError::MaybeDone("GitHub said that it updates the branch, and git does not show it yet".to_owned()))
    }

    /// Returns the base branch's commit as the git remote has it. The base and `head` are fetched.
    pub(super) async fn base_here(&self, base: &str, head: &CommitId) -> Result<CommitId, ForgeError> {
        let fetched = self.remote.fetch(&[base]).await?;
        self.remote.fetch_commit(head).await?;
        let found = fetched.into_iter().next().map(|(_, commit)| commit);
        found.ok_or_else(|| ForgeError::Refused(format!("the base branch `{base}` does not exist on GitHub")))
    }

    async fn contains(&self, head: &CommitId, base: &CommitId) -> Result<bool, ForgeError> {
        let (place, head, base) = (self.remote.place().clone(), head.clone(), base.clone());
        blocking(move || Ok(is_in(&place.open()?, &base, &head).unwrap_or(false))).await
    }

    /// Returns the files in conflict between `head` and the base. GitHub only tells that there is a conflict, so git computes where.
    pub(super) async fn conflicting_files(
        &self,
        number: PrNumber,
        head: &CommitId,
        base_branch: &str,
    ) -> Result<Vec<String>, ForgeError> {
        let base = self.base_here(base_branch, head).await?;
        {
            let known = self.conflicts.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            if let Some(known) = known.get(&number).filter(|known| known.head == *head && known.base == base) {
                return Ok(known.files.clone());
            }
        }
        let (place, head_id, base_id) = (self.remote.place().clone(), head.clone(), base.clone());
        let files = blocking(move || {
            let repo = place.open()?;
            combine::conflicts(&repo, oid(&base_id)?, oid(&head_id)?).map_err(|error| libgit(&error))
        });
        let files = files.await?;
        let conflict = Conflict { head: head.clone(), base, files: files.clone() };
        self.conflicts.lock().unwrap_or_else(std::sync::PoisonError::into_inner).insert(number, conflict);
        Ok(files)
    }
}

fn done(standing: &Standing) -> Merged {
    Merged::Done { commit: standing.merge_commit.as_ref().map(|commit| CommitId::new(commit.oid.clone())) }
}

fn same_base(order: &MergeOrder, standing: &Standing) -> Result<(), ForgeError> {
    if standing.base_ref_name == order.expected_base {
        return Ok(());
    }
    Err(ForgeError::OtherBase { expected: order.expected_base.clone(), actual: standing.base_ref_name.clone() })
}

pub(super) fn oid(commit: &CommitId) -> Result<git2::Oid, ForgeError> {
    git2::Oid::from_str(commit.as_str()).map_err(|_| ForgeError::Git(format!("`{commit}` is not a commit id")))
}

/// Whether `commit` is `tip` or an ancestor of it.
pub fn is_in(repo: &Repository, commit: &CommitId, tip: &CommitId) -> Result<bool, ForgeError> {
    combine::is_in(repo, oid(commit)?, oid(tip)?).map_err(|error| libgit(&error))
}
