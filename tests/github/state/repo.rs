//! One repository. Cheap to copy, because a lagging replica is an old copy.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;

use super::actions::{Check, Run, Status};
use super::issue::Issue;
use super::pull::Pull;
use super::rules::Rules;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Permission {
    None,
    Read,
    Triage,
    Write,
    Maintain,
    Admin,
}

impl Permission {
    /// The name of the role.
    pub fn role(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Read => "read",
            Self::Triage => "triage",
            Self::Write => "write",
            Self::Maintain => "maintain",
            Self::Admin => "admin",
        }
    }

    /// The old four names, which the permission endpoint still gives besides the role.
    pub fn legacy(self) -> &'static str {
        match self {
            Self::Triage => "read",
            Self::Maintain => "write",
            other => other.role(),
        }
    }
}

#[derive(Clone, Debug)]
pub struct Label {
    pub id: u64,
    pub name: String,
    pub color: String,
    pub description: Option<String>,
}

#[derive(Clone, Debug)]
pub struct Milestone {
    pub id: u64,
    pub number: u64,
    pub title: String,
    pub created_at: Timestamp,
}

/// Why an issue is not to be had any more.
#[derive(Clone, Debug)]
pub enum Gone {
    /// 410
    Deleted,
    /// 301 to its new place.
    Transferred { repository: u64, number: u64 },
    /// 404, as for a thing that one may not see.
    Hidden,
}

#[derive(Clone, Debug)]
pub struct Settings {
    pub merge: bool,
    pub squash: bool,
    pub rebase: bool,
    pub auto_merge: bool,
    pub delete_branch_on_merge: bool,
    pub has_issues: bool,
    pub archived: bool,
    /// How often `mergeable` is null before it is known.
    pub mergeable_after: u32,
}

#[derive(Clone, Debug)]
pub struct Repo {
    pub id: u64,
    pub owner: String,
    pub name: String,
    pub private: bool,
    pub default_branch: String,
    pub settings: Settings,
    pub permissions: BTreeMap<String, Permission>,
    pub labels: Arc<Vec<Label>>,
    pub milestones: Arc<Vec<Milestone>>,
    pub issues: BTreeMap<u64, Arc<Issue>>,
    pub pulls: BTreeMap<u64, Arc<Pull>>,
    pub gone: BTreeMap<u64, Gone>,
    pub checks: Arc<Vec<Check>>,
    pub statuses: Arc<Vec<Status>>,
    pub runs: Arc<Vec<Run>>,
    pub rules: Arc<Rules>,
    /// `refs/heads/main` and the like, as last read from the git repository.
    pub refs: Arc<BTreeMap<String, String>>,
    pub created_at: Timestamp,
    pub pushed_at: Timestamp,
}

impl Repo {
    pub fn full_name(&self) -> String {
        format!("{}/{}", self.owner, self.name)
    }

    pub fn permission(&self, login: &str) -> Permission {
        let own = self.permissions.get(&login.to_lowercase()).copied().unwrap_or(Permission::None);
        if self.private { own } else { own.max(Permission::Read) }
    }

    pub fn next_number(&self) -> u64 {
        let last = self.issues.keys().chain(self.gone.keys()).max();
        last.map_or(1, |last| last + 1)
    }

    pub fn issue(&self, number: u64) -> Option<&Issue> {
        self.issues.get(&number).map(Arc::as_ref)
    }

    pub fn issue_mut(&mut self, number: u64) -> &mut Issue {
        Arc::make_mut(self.issues.get_mut(&number).unwrap_or_else(|| panic!("there is no issue {number}")))
    }

    pub fn pull(&self, number: u64) -> Option<&Pull> {
        self.pulls.get(&number).map(Arc::as_ref)
    }

    pub fn pull_mut(&mut self, number: u64) -> &mut Pull {
        Arc::make_mut(self.pulls.get_mut(&number).unwrap_or_else(|| panic!("there is no pull request {number}")))
    }

    pub fn label(&self, name: &str) -> Option<&Label> {
        self.labels.iter().find(|label| label.name.eq_ignore_ascii_case(name))
    }

    /// The commit of a branch.
    pub fn head(&self, branch: &str) -> Option<&str> {
        self.refs.get(&format!("refs/heads/{branch}")).map(String::as_str)
    }

    /// The issue that has this comment.
    pub fn issue_of_comment(&self, comment: u64) -> Option<&Issue> {
        self.issues.values().find(|issue| issue.comment(comment).is_some()).map(Arc::as_ref)
    }

    /// The issue that has this one as its sub-issue.
    pub fn parent_of(&self, number: u64) -> Option<&Issue> {
        self.issues.values().find(|issue| issue.sub_issues.contains(&number)).map(Arc::as_ref)
    }

    pub fn issue_by_id(&self, id: u64) -> Option<&Issue> {
        self.issues.values().find(|issue| issue.id == id).map(Arc::as_ref)
    }

    pub fn pull_by_id(&self, id: u64) -> Option<&Pull> {
        self.pulls.values().find(|pull| pull.id == id).map(Arc::as_ref)
    }

    pub fn pull_of_thread(&self, thread: u64) -> Option<&Pull> {
        self.pulls.values().find(|pull| pull.threads.iter().any(|one| one.id == thread)).map(Arc::as_ref)
    }

    pub fn pull_of_review_comment(&self, comment: u64) -> Option<&Pull> {
        self.pulls.values().find(|pull| pull.comment(comment).is_some()).map(Arc::as_ref)
    }
}
