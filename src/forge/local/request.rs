//! Operations on a pull request other than merging: opening, reopening, and merging the base into its branch.

use std::sync::PoisonError;

use super::{Inner, commit_id, head_of, libgit, now, oid, recorded};
use crate::domain::ids::{CommitId, PrNumber};
use crate::domain::pr::{NewPr, PullRequest};
use crate::forge::combine::{self, Combined, Wanted};
use crate::forge::{ForgeError, Updated};
use crate::workspace;

impl Inner {
    pub(super) fn open_pr(&self, new: &NewPr) -> Result<PullRequest, ForgeError> {
        let _one_at_a_time = self.opening.lock().unwrap_or_else(PoisonError::into_inner);
        let repo = self.repo()?;
        let known = self.store.of_branch(&new.head_branch).map_err(|error| recorded(&error))?;
        if let Some(record) = known {
            let record = self.settle(&repo, record)?;
            if !record.merged || record.head == new.head {
                return self.look(&record);
            }
        }
        let head = self.expect_head(&repo, &new.head_branch, &new.head)?;
        let base = self.base_head(&repo, &new.base_branch)?;
        if combine::is_in(&repo, head, base).map_err(|error| libgit(&error))? {
            let (branch, base) = (&new.head_branch, &new.base_branch);
            return Err(ForgeError::Refused(format!("`{branch}` has no commit that `{base}` does not have")));
        }
        failpoint!("pr.before_record");
        let number = self.store.add(new, now()).map_err(|error| recorded(&error))?;
        failpoint!("pr.recorded");
        self.look(&self.record(number)?)
    }

    /// Reopens a pull request. One is closed when its branch is deleted, so the branch is created again at its last known head.
    pub(super) fn reopen(&self, number: PrNumber) -> Result<(), ForgeError> {
        let repo = self.repo()?;
        let record = self.settle(&repo, self.record(number)?)?;
        if record.merged {
            return Err(ForgeError::Refused(format!("pull request {number} is merged")));
        }
        if head_of(&repo, &record.head_branch).is_some() {
            return Ok(());
        }
        let name = workspace::repo::branch_ref(&record.head_branch).map_err(|e| ForgeError::Git(e.to_string()))?;
        let head = oid(&record.head)?;
        repo.find_commit(head).and_then(|_| repo.reference(&name, head, false, "dirigent: reopen")).map(|_| ()).map_err(
            |error| {
                let (branch, detail) = (&record.head_branch, error.message());
                ForgeError::Refused(format!("`{branch}` cannot be brought back at {}: {detail}", record.head))
            },
        )
    }

    pub(super) fn update_branch(&self, number: PrNumber, head: &CommitId) -> Result<Updated, ForgeError> {
        let repo = self.repo()?;
        let record = self.settle(&repo, self.record(number)?)?;
        let unchanged = Updated { head: head.clone(), same_diff: true };
        if record.merged {
            return Ok(unchanged);
        }
        let branch = &record.head_branch;
        let tip = self.expect_head(&repo, branch, head)?;
        let base = self.base_head(&repo, &record.base_branch)?;
        if let Some(user) = self.place.user_of_branch(&repo, branch) {
            return Err(ForgeError::NotNow(format!("`{branch}` is checked out in {}", user.path.display())));
        }
        let message = format!("Merge branch '{}' into {branch}\n", record.base_branch);
        let commits = self.commits();
        let wanted = Wanted { base, head: tip, message: &message, commits: &commits };
        let commit = match combine::update(&repo, &wanted).map_err(|error| libgit(&error))? {
            Combined::Commit(commit) => commit,
            Combined::Nothing => return Ok(unchanged),
            Combined::Conflict(files) => return Err(ForgeError::Conflict { files }),
        };
        let name = workspace::repo::branch_ref(branch).map_err(|error| ForgeError::Git(error.to_string()))?;
        repo.reference_matching(&name, commit, true, tip, "dirigent: merge the base")
            .map_err(|error| libgit(&error))?;
        self.store.see_head(number, &commit_id(commit), now()).map_err(|error| recorded(&error))?;
        let same_diff = combine::is_same_change(&repo, base, tip, commit).map_err(|error| libgit(&error))?;
        Ok(Updated { head: commit_id(commit), same_diff })
    }
}
