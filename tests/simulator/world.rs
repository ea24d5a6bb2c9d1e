//! The outside as it really is: the board, the forge, the branches. Writes happen here; the runner only hears of them.

use std::collections::{BTreeMap, BTreeSet};

use dirigent::domain::comment::TrustLevel;
use dirigent::domain::evidence::GateResult;
use dirigent::domain::ids::{CommitId, EffectId, RunId, TicketId};
use dirigent::domain::pr::{CheckStatus, Mergeability, PrState, PullRequest, Verdict};
use dirigent::domain::ticket::{NewTicket, Ticket};
use dirigent::domain::time::Timestamp;
use dirigent::engine::effect::{Action, Effect, Said};
use dirigent::engine::event::{EffectError, EffectResult};

use super::chance::Chance;
use super::engine::fixtures::{blocker, check, comment, commit, pr, review, ticket};

/// A comment as it stands on a ticket. The tracker finds an earlier one by its key alone, as the adapters do by their marker.
#[derive(Debug, Clone)]
pub struct Posted {
    pub effect: EffectId,
    pub key: String,
    /// What it tells; the same must not be told twice.
    pub tells: Option<String>,
}

#[derive(Debug, Clone, Default)]
pub struct World {
    pub tickets: BTreeMap<TicketId, Ticket>,
    /// The board and the pull requests as they were some time ago, for stale readings.
    pub old_tickets: BTreeMap<TicketId, Ticket>,
    pub old_prs: BTreeMap<u64, PullRequest>,
    pub old_since: Timestamp,
    pub prs: BTreeMap<u64, PullRequest>,
    /// Whose pull request it is.
    pub pr_owner: BTreeMap<u64, TicketId>,
    pub branches: BTreeMap<String, CommitId>,
    /// What the git remote has of them.
    pub remote: BTreeMap<String, CommitId>,
    pub posted: BTreeMap<TicketId, Vec<Posted>>,
    pub created: BTreeMap<String, u32>,
    pub merges: BTreeMap<u64, u32>,
    /// Heads that were green and clean at some time since they were pushed.
    pub was_good: BTreeSet<(u64, CommitId)>,
    /// Heads that came from a worker, and those that passed the gates.
    pub by_worker: BTreeSet<CommitId>,
    pub gated: BTreeSet<CommitId>,
    pub reviewed: BTreeSet<CommitId>,
    /// Heads with a review that approves; tickets that somebody approved as a whole.
    pub approved: BTreeSet<CommitId>,
    pub approved_tickets: BTreeSet<TicketId>,
    /// Work that was saved from a run that did not end well.
    pub salvaged: BTreeMap<RunId, TicketId>,
    /// Words of workers on their way to a ticket.
    pub worker_words: BTreeMap<TicketId, usize>,
    /// Tickets that somebody took from us: what is left to say on them may be dropped.
    pub given_back: BTreeSet<TicketId>,
    pub kill_file: bool,
    pub tracker_down: bool,
    pub forge_down: bool,
    pub flapping: bool,
    pub comments_made: u32,
    pub commits_made: u32,
    /// Checks of new heads end like this.
    pub next_checks: Option<CheckStatus>,
    pub gates_fail: bool,
}

impl World {
    pub fn new(count: usize, chained: bool) -> Self {
        let mut world = Self::default();
        for n in 0..count {
            let mut shown = ticket(&format!("t{n}"));
            shown.updated_at = Some(Timestamp(1_000));
            if chained && n > 0 {
                shown.blocked_by = vec![blocker(&format!("t{}", n - 1), Some("Todo"))];
            }
            world.tickets.insert(shown.id.clone(), shown);
        }
        world.old_tickets = world.tickets.clone();
        world
    }

    pub fn new_commit(&mut self) -> CommitId {
        self.commits_made += 1;
        commit(&format!("c{}x", self.commits_made))
    }

    /// What readers see a while later if they are unlucky.
    pub fn remember(&mut self) {
        self.old_tickets.clone_from(&self.tickets);
        self.old_prs.clone_from(&self.prs);
    }

    pub fn says(&mut self, id: &TicketId, trust: TrustLevel, text: &str) {
        self.comments_made += 1;
        let said = comment(self.comments_made, trust, text);
        if let Some(ticket) = self.tickets.get_mut(id) {
            ticket.comments.get_or_insert_default().push(said);
        }
    }

    /// The board as the tracker shows it, with the blockers' states as they are.
    pub fn board(&self, stale: bool) -> Vec<Ticket> {
        let board = if stale { &self.old_tickets } else { &self.tickets };
        let mut shown: Vec<Ticket> = board.values().cloned().collect();
        for ticket in &mut shown {
            for blocker in &mut ticket.blocked_by {
                blocker.state = board.get(&blocker.id).map(|ticket| ticket.state.clone());
            }
        }
        shown
    }

    pub fn pr_of_branch(&self, branch: &str) -> Option<u64> {
        let open = self.prs.values().filter(|pr| pr.head_branch == branch).find(|pr| pr.state == PrState::Open);
        open.map(|pr| pr.number.0)
    }

    pub fn open_prs_of(&self, ticket: &TicketId) -> usize {
        let mine = self.pr_owner.iter().filter(|(_, owner)| *owner == ticket);
        mine.filter(|(number, _)| self.prs.get(number).is_some_and(|pr| pr.state == PrState::Open)).count()
    }

    /// What the forge shows. Looking makes "it was good once" a fact.
    pub fn look(&mut self, number: u64, stale: bool, chance: &mut Chance) -> Option<PullRequest> {
        let stale = stale.then(|| self.old_prs.get(&number).cloned()).flatten();
        if self.flapping
            && stale.is_none()
            && let Some(pr) = self.prs.get_mut(&number)
        {
            let statuses = [CheckStatus::Passed, CheckStatus::Pending, CheckStatus::Failed];
            pr.checks = Some(vec![check("build", *chance.pick(&statuses))]);
        }
        // An open pull request follows its branch.
        if let Some(pr) = self.prs.get_mut(&number).filter(|pr| pr.state == PrState::Open)
            && let Some(head) = self.remote.get(&pr.head_branch)
        {
            pr.head = head.clone();
        }
        let mut shown = stale.or_else(|| self.prs.get(&number).cloned())?;
        // A replica may show an old head; git itself does not.
        shown.ref_head = self.remote.get(&shown.head_branch).cloned();
        let checks = shown.checks.as_deref().unwrap_or_default();
        let green = checks.iter().all(|check| check.status == CheckStatus::Passed) && !checks.is_empty();
        if green && shown.mergeability == Mergeability::Clean {
            self.was_good.insert((number, shown.head.clone()));
        }
        Some(shown)
    }

    fn set_head(&mut self, branch: &str, head: &CommitId, now: Timestamp) {
        self.branches.insert(branch.to_owned(), head.clone());
        self.remote.insert(branch.to_owned(), head.clone());
        let status = self.next_checks.unwrap_or(CheckStatus::Passed);
        for pr in self.prs.values_mut().filter(|pr| pr.head_branch == branch && pr.state == PrState::Open) {
            if pr.head != *head {
                pr.head = head.clone();
                pr.ref_head = Some(head.clone());
                pr.checks = Some(vec![check("build", status)]);
                pr.pushed_at = Some(now);
                pr.mergeability = Mergeability::Clean;
            }
        }
    }

    pub fn push(&mut self, branch: &str, now: Timestamp) {
        let head = self.new_commit();
        self.set_head(branch, &head, now);
    }

    pub fn review(&mut self, number: u64, verdict: Verdict) {
        self.comments_made += 1;
        let made = self.comments_made;
        if let Some(pr) = self.prs.get_mut(&number) {
            pr.reviews.get_or_insert_default().push(review(made, TrustLevel::Member, verdict, &pr.head.clone()));
            if verdict == Verdict::Approved {
                self.approved.insert(pr.head.clone());
            }
        }
    }

    /// Does a write. Idempotent by its own key, as the adapters are, and by nothing else.
    pub fn write(&mut self, effect: &Effect, ticket: &TicketId, now: Timestamp) -> Result<EffectResult, EffectError> {
        let action = &effect.action;
        let down = |detail: &str| EffectError::Transient { detail: detail.into(), retry_after: None };
        let on_forge = matches!(
            action,
            Action::PushBranch { .. }
                | Action::OpenPr { .. }
                | Action::ReopenPr { .. }
                | Action::MergePr { .. }
                | Action::UpdateBranch { .. }
        );
        if on_forge && self.forge_down {
            return Err(down("the forge is down"));
        }
        if !on_forge && self.tracker_down && !matches!(action, Action::CleanUp { .. }) {
            return Err(down("the tracker is down"));
        }
        match action {
            Action::Comment { key, said } => {
                self.post(effect.id, ticket, key, tells(said));
                Ok(EffectResult::Commented { comment: key.as_str().into() })
            }
            Action::WriteWorkpad { .. } => {
                self.post(effect.id, ticket, "workpad", Some("workpad".into()));
                Ok(EffectResult::Commented { comment: "workpad".into() })
            }
            Action::CreateTicket { key, new } => {
                self.create(key, new);
                Ok(EffectResult::Plain)
            }
            Action::MoveTicket { state, .. } => {
                let Some(shown) = self.tickets.get_mut(ticket) else {
                    return Err(EffectError::Permanent { detail: "gone".into() });
                };
                shown.state = state.clone();
                shown.updated_at = Some(now);
                Ok(EffectResult::Plain)
            }
            Action::PushBranch { branch, head } => {
                self.set_head(branch, head, now);
                Ok(EffectResult::Plain)
            }
            Action::OpenPr { branch, head } => {
                let number = self.pr_of_branch(branch).unwrap_or_else(|| {
                    let number = self.prs.len() as u64 + 1;
                    let mut opened = pr(number, branch, head);
                    opened.checks = Some(vec![check("build", self.next_checks.unwrap_or(CheckStatus::Passed))]);
                    self.prs.insert(number, opened);
                    self.pr_owner.insert(number, ticket.clone());
                    number
                });
                Ok(EffectResult::Opened { pr: self.prs[&number].clone() })
            }
            Action::ReopenPr { number } => {
                if let Some(pr) = self.prs.get_mut(&number.0).filter(|pr| pr.state == PrState::Closed) {
                    pr.state = PrState::Open;
                }
                Ok(EffectResult::Plain)
            }
            Action::MergePr { number, head, .. } => self.merge(number.0, head),
            Action::UpdateBranch { number, head } => {
                let branch = match self.prs.get(&number.0) {
                    Some(pr) if pr.head == *head => pr.head_branch.clone(),
                    Some(pr) => return Err(EffectError::HeadMoved { actual: pr.head.clone() }),
                    None => return Err(EffectError::Permanent { detail: "no such pull request".into() }),
                };
                self.push(&branch, now);
                Ok(EffectResult::Plain)
            }
            _ => Ok(EffectResult::Plain),
        }
    }

    fn post(&mut self, effect: EffectId, ticket: &TicketId, key: &str, tells: Option<String>) {
        let posted = self.posted.entry(ticket.clone()).or_default();
        if !posted.iter().any(|comment| comment.key == key) {
            posted.push(Posted { effect, key: key.to_owned(), tells });
        }
    }

    fn create(&mut self, key: &str, new: &NewTicket) {
        if self.created.contains_key(key) {
            return;
        }
        self.created.insert(key.to_owned(), 1);
        // Follow-ups come onto the board where nobody works on them by themselves.
        let mut shown = ticket(&format!("f{}", self.created.len()));
        shown.title = new.title.clone();
        shown.updated_at = Some(Timestamp(1_000));
        shown.state = "Backlog".into();
        self.tickets.insert(shown.id.clone(), shown);
    }

    pub fn gate(&mut self, head: &CommitId) -> Result<EffectResult, EffectError> {
        let passed = !self.gates_fail;
        if passed {
            self.gated.insert(head.clone());
        }
        let result = GateResult {
            name: "make check".into(),
            passed,
            exit_code: Some(i32::from(!passed)),
            timed_out: false,
            output_tail: String::new(),
            duration_ms: 5,
        };
        Ok(EffectResult::Gated { results: vec![result] })
    }

    fn merge(&mut self, number: u64, head: &CommitId) -> Result<EffectResult, EffectError> {
        let Some(pr) = self.prs.get_mut(&number) else {
            return Err(EffectError::Permanent { detail: "no such pull request".into() });
        };
        match &pr.state {
            PrState::Merged { commit } => return Ok(EffectResult::Merged { commit: commit.clone() }),
            PrState::Closed => return Err(EffectError::Permanent { detail: "it is closed".into() }),
            PrState::Open => {}
        }
        if pr.head != *head {
            return Err(EffectError::HeadMoved { actual: pr.head.clone() });
        }
        if let Mergeability::Conflicting { files } = &pr.mergeability {
            return Err(EffectError::Conflict { files: files.clone() });
        }
        pr.state = PrState::Merged { commit: Some(head.clone()) };
        *self.merges.entry(number).or_default() += 1;
        Ok(EffectResult::Merged { commit: Some(head.clone()) })
    }
}

/// The fact behind a comment, without its key: telling it a second time is a fault.
fn tells(said: &Said) -> Option<String> {
    match said {
        Said::Started { run, .. } => Some(format!("started {run}")),
        Said::PrOpened { number, .. } => Some(format!("opened {number}")),
        Said::Salvaged { run, .. } => Some(format!("salvaged {run}")),
        Said::BranchReady { branch, head } => Some(format!("ready {branch} {head:?}")),
        Said::Done { commit, .. } => commit.as_ref().map(|commit| format!("done {commit}")),
        // These may come again with the same words; each decision may tell them once.
        Said::Blocked { .. } | Said::Rework { .. } | Said::GaveUp { .. } | Said::Worker { .. } | Said::Asked { .. } => {
            None
        }
    }
}
