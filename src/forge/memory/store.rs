//! The state of the forge in memory: pull requests with all their versions, the current branches, and what a replica shows of them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::{Fault, LookPart};
use crate::domain::comment::{Acknowledgement, Author};
use crate::domain::ids::{CommentId, CommitId, PrNumber};
use crate::domain::pr::{Check, CheckStatus, MergeMethod, Mergeability, NewPr, PrState, PullRequest};
use crate::domain::remark::RemarkKind;
use crate::domain::time::Timestamp;
use crate::forge::{CommitStatus, ForgeError};

/// All versions of one pull request, oldest first.
#[derive(Debug, Default)]
struct Past {
    versions: Vec<PullRequest>,
    /// How many of the versions have reached every replica.
    everywhere: usize,
    /// How many versions every replica lags at least.
    behind: usize,
}

impl Past {
    fn shown(&self, behind: usize) -> Option<&PullRequest> {
        let reached = self.versions.len().saturating_sub(behind.max(self.behind)).max(self.everywhere);
        reached.checked_sub(1).and_then(|last| self.versions.get(last))
    }
}

#[derive(Debug, Default)]
pub(super) struct Store {
    prs: BTreeMap<PrNumber, Past>,
    pub bodies: BTreeMap<PrNumber, String>,
    pub branches: BTreeMap<String, CommitId>,
    /// The base commit that each head contains.
    bases: BTreeMap<CommitId, CommitId>,
    pub merges: Vec<(PrNumber, CommitId, MergeMethod)>,
    /// Pull requests whose mergeability is not computed yet. The first look reports it as unknown and starts computing it.
    worked_out: BTreeSet<PrNumber>,
    pub absorbed: BTreeSet<PrNumber>,
    pub deleted: BTreeSet<CommentId>,
    pub faults: VecDeque<Fault>,
    pub outage: Option<ForgeError>,
    pub replicas: Vec<usize>,
    turn: usize,
    pub withheld: BTreeMap<PrNumber, Vec<LookPart>>,
    pub clock: Option<Timestamp>,
    /// The person whose account the runner writes with. `None` if the runner has an account of its own.
    pub shared: Option<Author>,
    made: u64,
    pub statuses: Vec<CommitStatus>,
    /// Receipts, by commit.
    pub notes: BTreeMap<CommitId, String>,
    pub requested: Vec<(PrNumber, String)>,
    pub reactions: Vec<(CommentId, Acknowledgement)>,
    pub logs: BTreeMap<String, String>,
}

impl Store {
    pub fn ourselves(&self) -> Author {
        self.shared.clone().unwrap_or_else(Author::ourselves)
    }

    pub fn fresh_id(&mut self, kind: &str) -> CommentId {
        self.made += 1;
        CommentId::new(format!("{kind}-{}", self.made))
    }

    pub fn find(&self, number: PrNumber) -> Result<&PullRequest, ForgeError> {
        self.prs.get(&number).and_then(|past| past.versions.last()).ok_or(ForgeError::NotFound(number))
    }

    pub fn newest(&self) -> impl DoubleEndedIterator<Item = &PullRequest> {
        self.prs.values().filter_map(|past| past.versions.last())
    }

    /// Applies a change to a pull request. If nothing differs afterwards, no new version is made.
    pub fn change(&mut self, number: PrNumber, change: impl FnOnce(&mut PullRequest)) {
        let Some(past) = self.prs.get_mut(&number) else { return };
        let Some(before) = past.versions.last() else { return };
        let mut after = before.clone();
        change(&mut after);
        if after != *before {
            past.versions.push(after);
        }
    }

    pub fn lag(&mut self, number: PrNumber, behind: usize) {
        self.prs.entry(number).or_default().behind = behind;
    }

    pub fn catch_up(&mut self) {
        for past in self.prs.values_mut() {
            past.everywhere = past.versions.len();
        }
    }

    pub fn open(&mut self, new: &NewPr) -> PrNumber {
        let number = PrNumber(self.prs.keys().next_back().map_or(0, |last| last.0) + 1);
        let head = self.branches.entry(new.head_branch.clone()).or_insert_with(|| new.head.clone()).clone();
        let base = self.branches.get(&new.base_branch).cloned();
        if let Some(base) = &base {
            self.bases.entry(head.clone()).or_insert_with(|| base.clone());
        }
        self.worked_out.insert(number);
        let author = Some(self.ourselves());
        self.prs.entry(number).or_default().versions.push(PullRequest {
            number,
            url: Some(format!("memory://pull/{}", number.0)),
            title: new.title.clone(),
            state: PrState::Open,
            draft: new.draft,
            author,
            head_branch: new.head_branch.clone(),
            head,
            head_repo: None,
            ref_head: None,
            base_branch: new.base_branch.clone(),
            base,
            mergeability: Mergeability::Unknown,
            checks: Some(Vec::new()),
            required_checks: Some(Vec::new()),
            reviews: Some(Vec::new()),
            threads: Some(Vec::new()),
            comments: Some(Vec::new()),
            labels: new.labels.clone(),
            in_queue: false,
            pushed_at: None,
        });
        self.requested.extend(new.reviewers.iter().map(|reviewer| (number, reviewer.clone())));
        number
    }

    /// Moves a branch. Pull requests of it get a new head without checks; those into it get a new base. Their mergeability is unknown until
    /// it is computed again.
    pub fn set_head(&mut self, branch: &str, head: &CommitId) {
        self.branches.insert(branch.to_owned(), head.clone());
        let concerned = |pr: &&PullRequest| {
            pr.state == PrState::Open
                && ((pr.head_branch == branch && pr.head != *head)
                    || (pr.base_branch == branch && pr.base.as_ref() != Some(head)))
        };
        for number in self.newest().filter(concerned).map(|pr| pr.number).collect::<Vec<_>>() {
            self.worked_out.insert(number);
            self.change(number, |pr| {
                pr.mergeability = Mergeability::Unknown;
                if pr.head_branch == branch {
                    pr.head = head.clone();
                    pr.checks = Some(Vec::new());
                } else {
                    pr.base = Some(head.clone());
                }
            });
        }
    }

    /// Merges the base into the branch. `None` if the branch already contains it.
    pub fn update(&mut self, pr: &PullRequest) -> Option<CommitId> {
        let base = self.branches.get(&pr.base_branch)?.clone();
        if self.bases.get(&pr.head) == Some(&base) {
            return None;
        }
        let updated = CommitId::new(format!("{}-with-{base}", pr.head));
        self.bases.insert(updated.clone(), base);
        self.set_head(&pr.head_branch, &updated);
        Some(updated)
    }

    pub fn next_replica(&mut self) -> Replica<'_> {
        let behind = if self.replicas.is_empty() { 0 } else { self.replicas[self.turn % self.replicas.len()] };
        self.turn += 1;
        Replica { store: self, behind }
    }
}

/// The forge as one replica shows it.
pub(super) struct Replica<'a> {
    pub store: &'a mut Store,
    behind: usize,
}

impl Replica<'_> {
    pub fn prs(&self) -> impl DoubleEndedIterator<Item = &PullRequest> {
        self.store.prs.values().filter_map(|past| past.shown(self.behind))
    }

    /// Looks at one pull request. It also makes the forge compute a mergeability that was still unknown.
    pub fn look(&mut self, number: PrNumber) -> Result<PullRequest, ForgeError> {
        let shown = self.store.prs.get(&number).and_then(|past| past.shown(self.behind)).cloned();
        let pr = shown.ok_or(ForgeError::NotFound(number))?;
        if self.store.worked_out.remove(&number) {
            self.work_out(number);
        }
        Ok(self.complete(pr))
    }

    fn work_out(&mut self, number: PrNumber) {
        let newest = self.store.prs.get_mut(&number).and_then(|past| past.versions.last_mut());
        if let Some(pr) = newest.filter(|pr| pr.mergeability == Mergeability::Unknown) {
            pr.mergeability = Mergeability::Clean;
        }
    }

    /// Adds the branch head of git and the published statuses, and removes the withheld parts.
    pub fn complete(&self, mut pr: PullRequest) -> PullRequest {
        pr.ref_head = self.store.branches.get(&pr.head_branch).cloned();
        let ours = self.store.statuses.iter().filter(|status| status.commit == pr.head).map(|status| Check {
            id: format!("status/{}", status.name),
            name: status.name.clone(),
            status: if status.passed { CheckStatus::Passed } else { CheckStatus::Failed },
            url: None,
            log_tail: None,
        });
        pr.checks.get_or_insert_default().extend(ours);
        for part in self.store.withheld.get(&pr.number).into_iter().flatten() {
            part.take_from(&mut pr);
        }
        pr
    }
}

pub(super) fn has_remark(pr: &PullRequest, kind: RemarkKind, id: &CommentId) -> bool {
    match kind {
        RemarkKind::Verdict => pr.reviews.iter().flatten().any(|review| review.id == *id),
        RemarkKind::Thread => pr.threads.iter().flatten().any(|thread| thread.id == *id),
        RemarkKind::PrComment => pr.comments.iter().flatten().any(|comment| comment.id == *id),
        RemarkKind::TicketComment | RemarkKind::Message | RemarkKind::Finding => false,
    }
}
