//! The outside as it really is: the board, the forge, the branches. Writes happen here; the runner only hears of them.

use std::collections::{BTreeMap, BTreeSet};

use dirigent::domain::comment::{Comment, Standing};
use dirigent::domain::ids::{CommitId, TicketId};
use dirigent::domain::pr::{CheckStatus, Mergeability, PrState, PullRequest, Review, Verdict};
use dirigent::domain::ticket::Ticket;
use dirigent::domain::time::Timestamp;
use dirigent::engine::effect::Action;
use dirigent::engine::event::{EffectError, EffectResult};

use crate::engine::fixtures::{check, comment, commit, pr, review, ticket};

#[derive(Debug, Clone, Default)]
pub struct World {
    pub tickets: BTreeMap<TicketId, Ticket>,
    /// The board as it was some time ago, for stale readings.
    pub old_tickets: BTreeMap<TicketId, Ticket>,
    pub prs: BTreeMap<u64, PullRequest>,
    pub branches: BTreeMap<String, CommitId>,
    /// Keys of comments that were posted, with how often.
    pub posted: BTreeMap<(TicketId, String), u32>,
    pub merges: BTreeMap<u64, u32>,
    /// Heads that were green and clean at some time since they were pushed.
    pub was_good: BTreeSet<(u64, CommitId)>,
    pub kill_file: bool,
    pub tracker_down: bool,
    pub forge_down: bool,
    pub comments_made: u32,
    pub commits_made: u32,
    /// Checks of new heads end like this.
    pub next_checks: Option<CheckStatus>,
}

impl World {
    pub fn new(count: usize) -> Self {
        let mut world = Self::default();
        for n in 0..count {
            let shown = ticket(&format!("t{n}"));
            world.tickets.insert(shown.id.clone(), shown);
        }
        world.old_tickets = world.tickets.clone();
        world
    }

    pub fn new_commit(&mut self) -> CommitId {
        self.commits_made += 1;
        commit(&format!("c{}x", self.commits_made))
    }

    pub fn says(&mut self, id: &TicketId, standing: Standing, text: &str) {
        self.comments_made += 1;
        let said: Comment = comment(self.comments_made, standing, text);
        if let Some(ticket) = self.tickets.get_mut(id) {
            ticket.comments.push(said);
        }
    }

    pub fn pr_of_branch(&self, branch: &str) -> Option<u64> {
        let mine = |pr: &&PullRequest| pr.head_branch == branch;
        let open = self.prs.values().filter(mine).find(|pr| pr.state == PrState::Open);
        open.map(|pr| pr.number.0)
    }

    /// What the forge shows. Looking makes "it was good once" a fact.
    pub fn look(&mut self, number: u64) -> Option<PullRequest> {
        let shown = self.prs.get(&number)?.clone();
        let green = shown.checks.iter().all(|check| check.status == CheckStatus::Passed) && !shown.checks.is_empty();
        if green && shown.mergeability == Mergeability::Clean {
            self.was_good.insert((number, shown.head.clone()));
        }
        Some(shown)
    }

    fn set_head(&mut self, branch: &str, head: &CommitId, now: Timestamp) {
        self.branches.insert(branch.to_owned(), head.clone());
        let status = self.next_checks.unwrap_or(CheckStatus::Passed);
        for pr in self.prs.values_mut().filter(|pr| pr.head_branch == branch && pr.state == PrState::Open) {
            if pr.head != *head {
                pr.head = head.clone();
                pr.checks = vec![check("build", status)];
                pr.pushed_at = Some(now);
                pr.mergeability = Mergeability::Clean;
            }
        }
    }

    pub fn push(&mut self, branch: &str, now: Timestamp) {
        let head = self.new_commit();
        self.set_head(branch, &head, now);
    }

    pub fn reviewed(&mut self, number: u64, verdict: Verdict) {
        self.comments_made += 1;
        let made = self.comments_made;
        if let Some(pr) = self.prs.get_mut(&number) {
            let said: Review = review(made, Standing::Member, verdict, &pr.head.clone());
            pr.reviews.push(said);
        }
    }

    /// Does a write. Idempotent by its own key, as the adapters are.
    pub fn write(&mut self, ticket: &TicketId, action: &Action, now: Timestamp) -> Result<EffectResult, EffectError> {
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
        if !on_forge && self.tracker_down && !matches!(action, Action::RunGate { .. } | Action::CleanUp { .. }) {
            return Err(down("the tracker is down"));
        }
        match action {
            Action::Comment { key, .. } => {
                let posted = self.posted.entry((ticket.clone(), key.clone())).or_default();
                if *posted == 0 {
                    *posted += 1;
                }
                Ok(EffectResult::Commented { comment: key.as_str().into() })
            }
            Action::WriteWorkpad { .. } => Ok(EffectResult::Commented { comment: "workpad".into() }),
            Action::MoveTicket { state } => {
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
                    opened.checks = vec![check("build", self.next_checks.unwrap_or(CheckStatus::Passed))];
                    self.prs.insert(number, opened);
                    number
                });
                let pr = self.prs[&number].clone();
                Ok(EffectResult::Opened { pr })
            }
            Action::ReopenPr { number } => {
                if let Some(pr) = self.prs.get_mut(&number.0).filter(|pr| pr.state == PrState::Closed) {
                    pr.state = PrState::Open;
                }
                Ok(EffectResult::Plain)
            }
            Action::MergePr { number, head, .. } => self.merge(number.0, head),
            Action::UpdateBranch { number, .. } => {
                let branch = self.prs.get(&number.0).map(|pr| pr.head_branch.clone()).unwrap_or_default();
                self.push(&branch, now);
                Ok(EffectResult::Plain)
            }
            Action::RunGate { .. } => Ok(EffectResult::Gated { results: Vec::new() }),
            _ => Ok(EffectResult::Plain),
        }
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
