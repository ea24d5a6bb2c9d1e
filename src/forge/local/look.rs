//! Looks at a pull request: the current state in git, and the record in the ledger file.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use git2::Repository;

use super::{Inner, PrRecord, commit_id, head_of, libgit, now, oid, recorded};
use crate::domain::evidence::GateResult;
use crate::domain::pr::{Check, CheckStatus, Mergeability, PrState, PullRequest};
use crate::forge::ForgeError;
use crate::forge::combine;

impl Inner {
    /// Records a merge that happened but was not recorded: the runner's own before a crash, or a person's.
    pub(super) fn settle(&self, repo: &Repository, record: PrRecord) -> Result<PrRecord, ForgeError> {
        if record.merged {
            return Ok(record);
        }
        let Some(base) = head_of(repo, &record.base_branch) else { return Ok(record) };
        let landing = self.store.landing(&record.base_branch).map_err(|error| recorded(&error))?;
        if let Some(landing) = landing.filter(|landing| landing.number == record.number)
            && combine::is_in(repo, oid(&landing.new)?, base).map_err(|error| libgit(&error))?
        {
            self.store.merged(record.number, &landing.head, &landing.new).map_err(|error| recorded(&error))?;
            return self.record(record.number);
        }
        // When it was recorded, this head was not in the base. If the base contains it now, somebody merged it.
        let seen = oid(&record.head)?;
        let contained = |commit| self.comparisons.is_contained(repo, commit, base);
        if contained(seen) && head_of(repo, &record.head_branch).is_none_or(contained) {
            self.store.merged(record.number, &record.head, &commit_id(base)).map_err(|error| recorded(&error))?;
            return self.record(record.number);
        }
        Ok(record)
    }

    /// Whether the base has commits that the head lacks, and gates have to check both together.
    fn lacks_base(&self, repo: &Repository, base: git2::Oid, head: git2::Oid) -> Result<bool, ForgeError> {
        if !self.wants_base.load(Ordering::Relaxed) {
            return Ok(false);
        }
        combine::is_in(repo, base, head).map(|held| !held).map_err(|error| libgit(&error))
    }

    pub(super) fn look(&self, record: &PrRecord) -> Result<PullRequest, ForgeError> {
        let repo = self.repo()?;
        let mut record = self.settle(&repo, record.clone())?;
        let live = head_of(&repo, &record.head_branch);
        let base = head_of(&repo, &record.base_branch);
        if let Some(live) = live.filter(|live| !record.merged && live.to_string() != record.head.as_str()) {
            // A branch that was set back into the base is shown but not recorded: it would look like a merged one.
            if base.is_none_or(|base| !combine::is_in(&repo, live, base).unwrap_or(true)) {
                self.store.see_head(record.number, &commit_id(live), now()).map_err(|error| recorded(&error))?;
                record = self.record(record.number)?;
            }
            record.head = commit_id(live);
        }
        let state = match (record.merged, live) {
            (true, _) => PrState::Merged { commit: record.merge_commit.clone() },
            (false, Some(_)) => PrState::Open,
            // The branch was deleted: there is nothing left to merge.
            (false, None) => PrState::Closed,
        };
        let mergeability = match (&state, live, base) {
            (PrState::Open, Some(head), Some(base)) => {
                match self.comparisons.conflicts(&repo, base, head).map_err(|error| libgit(&error))? {
                    files if files.is_empty() && self.lacks_base(&repo, base, head)? => Mergeability::Behind,
                    files if files.is_empty() => Mergeability::Clean,
                    files => Mergeability::Conflicting { files },
                }
            }
            (PrState::Open, _, None) => {
                Mergeability::Refused { because: format!("the base branch `{}` does not exist", record.base_branch) }
            }
            _ => Mergeability::Unknown,
        };
        let mut checks = self.store.checks(&record.head).map_err(|error| recorded(&error))?;
        let mut required: Vec<String> = checks.iter().map(|check| check.name.clone()).collect();
        if let Some(names) = &*self.counting.read().unwrap_or_else(PoisonError::into_inner) {
            checks.retain(|result| names.contains(&result.name));
            required.clone_from(names);
        }
        Ok(PullRequest {
            number: record.number,
            url: None,
            title: record.title,
            state,
            draft: record.draft,
            author: None,
            head_branch: record.head_branch,
            ref_head: live.map(commit_id),
            head: record.head,
            head_repo: None,
            base_branch: record.base_branch,
            base: base.map(commit_id),
            mergeability,
            required_checks: Some(required),
            checks: Some(checks.into_iter().map(check).collect()),
            reviews: Some(Vec::new()),
            threads: Some(Vec::new()),
            comments: Some(Vec::new()),
            labels: record.labels,
            in_queue: false,
            pushed_at: Some(record.pushed_at),
        })
    }
}

fn check(result: GateResult) -> Check {
    Check {
        id: result.name.clone(),
        name: result.name,
        status: if result.passed { CheckStatus::Passed } else { CheckStatus::Failed },
        url: None,
        log_tail: (!result.output_tail.is_empty()).then_some(result.output_tail),
    }
}
