//! The world's forge and git remote: heads, looks, pushes, merges. Idempotent by its own keys, as the adapters are.

use std::collections::BTreeSet;

use dirigent::domain::comment::Author;
use dirigent::domain::ids::{CommentId, CommitId, RunId, TicketId};
use dirigent::domain::pr::{CheckStatus, Mergeability, PrState, PullRequest};
use dirigent::domain::remark::{RemarkKey, RemarkKind};
use dirigent::domain::ticket::state_in;
use dirigent::domain::time::Timestamp;
use dirigent::engine::effect::{Action, Effect};
use dirigent::engine::event::{EffectError, EffectResult};

use super::chance::Chance;
use super::engine::fixtures::{check, pr};
use super::world::{LAG, Stuck, World, tells};

fn passing(detail: &str) -> EffectError {
    EffectError::Transient { detail: detail.into(), retry_after: None }
}

fn gone() -> EffectError {
    EffectError::Permanent { detail: "no such pull request".into() }
}

pub fn is_on_forge(action: &Action) -> bool {
    matches!(
        action,
        Action::PushBranch { .. }
            | Action::OpenPr { .. }
            | Action::ReopenPr { .. }
            | Action::MergePr { .. }
            | Action::UpdateBranch { .. }
            | Action::WriteReceipt { .. }
            | Action::InspectPr { .. }
    ) || matches!(action, Action::Acknowledge { told, .. } if told.pr.is_some())
}

impl World {
    pub fn pr_of_branch(&self, branch: &str) -> Option<u64> {
        let open = self.prs.values().filter(|pr| pr.head_branch == branch).find(|pr| pr.state == PrState::Open);
        open.map(|pr| pr.number.0)
    }

    pub fn open_prs_of<'a>(&'a self, ticket: &'a TicketId) -> impl Iterator<Item = &'a PullRequest> {
        let mine = self.pr_owner.iter().filter(move |(_, owner)| *owner == ticket);
        mine.filter_map(|(number, _)| self.prs.get(number)).filter(|pr| pr.state == PrState::Open)
    }

    /// Whether this very remark is there, when it is asked for by its id.
    pub fn has_remark(&self, ticket: &TicketId, kind: RemarkKind, id: &CommentId) -> bool {
        let prs = || self.pr_owner.iter().filter(|(_, owner)| *owner == ticket).filter_map(|(n, _)| self.prs.get(n));
        match kind {
            RemarkKind::TicketComment => {
                self.tickets.get(ticket).is_some_and(|ticket| ticket.known_comments().iter().any(|one| one.id == *id))
            }
            RemarkKind::Verdict => prs().any(|pr| pr.reviews.iter().flatten().any(|one| one.id == *id)),
            RemarkKind::Thread => prs().any(|pr| pr.threads.iter().flatten().any(|one| one.id == *id)),
            RemarkKind::PrComment => prs().any(|pr| pr.comments.iter().flatten().any(|one| one.id == *id)),
            RemarkKind::Message | RemarkKind::Finding => true,
        }
    }

    pub fn contains(&self, head: &CommitId, wanted: &CommitId) -> bool {
        let mut open = vec![head];
        while let Some(next) = open.pop() {
            if next == wanted {
                return true;
            }
            open.extend(self.parents.get(next).into_iter().flatten());
        }
        false
    }

    /// A person says of a head that it may be merged. They have seen what the runs made of it that it holds, and no other.
    pub fn approve(&mut self, ticket: &TicketId, head: &CommitId, overruled: &[RemarkKey], now: Timestamp) {
        self.approved.insert((ticket.clone(), head.clone()));
        let holds = |made: &CommitId| self.contains(head, made);
        let over = self.ended.iter().filter(|(_, made)| made.as_ref().is_none_or(holds));
        let seen: BTreeSet<RunId> = over.map(|(run, _)| run.clone()).collect();
        self.wishes.accepted(ticket, &seen, overruled, now);
    }

    /// What a worktree of this branch begins with: what is here and what the remote has, together.
    pub fn begin_with(&mut self, branch: &str) -> Option<CommitId> {
        let (here, there) = (self.branches.get(branch).cloned(), self.remote.get(branch).cloned());
        let head = match (here, there) {
            (Some(here), Some(there)) if self.contains(&there, &here) => there,
            (Some(here), Some(there)) if self.contains(&here, &there) => here,
            (Some(here), Some(there)) => self.new_commit(vec![here, there]),
            (here, there) => here.or(there)?,
        };
        self.branches.insert(branch.to_owned(), head.clone());
        Some(head)
    }

    /// What the forge shows. Looking makes "it was good once" a fact.
    pub fn look(&mut self, number: u64, lags: bool, now: Timestamp, chance: &mut Chance) -> Option<PullRequest> {
        let old = self.old_prs.get(&number).filter(|(since, _)| lags && since.0 + LAG > now.0);
        let old = old.map(|(_, pr)| pr.clone());
        if self.flapping
            && old.is_none()
            && let Some(pr) = self.prs.get_mut(&number)
        {
            let statuses = [CheckStatus::Passed, CheckStatus::Pending, CheckStatus::Failed];
            pr.checks = Some(vec![check("build", *chance.pick(&statuses))]);
        }
        let mut shown = old.or_else(|| self.prs.get(&number).cloned())?;
        // A replica may show an old head; git itself does not.
        shown.ref_head = self.remote.get(&shown.head_branch).cloned();
        let checks = shown.checks.as_deref().unwrap_or_default();
        let green = checks.iter().all(|check| check.status == CheckStatus::Passed) && !checks.is_empty();
        let fact = (number, shown.head.clone());
        if checks.iter().any(|check| check.status == CheckStatus::Failed) {
            self.was_red.insert(fact.clone());
        }
        if green {
            self.was_green.insert(fact.clone());
        }
        match &shown.mergeability {
            Mergeability::Clean if green => drop(self.was_good.insert(fact)),
            Mergeability::Conflicting { .. } => drop(self.was_in_conflict.insert(fact)),
            _ => {}
        }
        Some(shown)
    }

    fn set_head(&mut self, branch: &str, head: &CommitId, now: Timestamp) {
        self.remote.insert(branch.to_owned(), head.clone());
        let status = self.next_checks.unwrap_or(CheckStatus::Passed);
        if let Some(number) = self.pr_of_branch(branch)
            && let Some(pr) = self.pr_mut(number, now).filter(|pr| pr.head != *head)
        {
            pr.head = head.clone();
            pr.checks = Some(vec![check("build", status)]);
            pr.pushed_at = Some(now);
            pr.mergeability = Mergeability::Clean;
        }
    }

    /// A person adds a commit to the branch, on the remote.
    pub fn person_pushes(&mut self, branch: &str, now: Timestamp) {
        let head = self.new_commit(self.remote.get(branch).cloned().into_iter().collect());
        self.set_head(branch, &head, now);
    }

    /// Does a write. Idempotent by its own key, as the adapters are, and by nothing else.
    pub fn write(&mut self, effect: &Effect, ticket: &TicketId, now: Timestamp) -> Result<EffectResult, EffectError> {
        let on_forge = is_on_forge(&effect.action);
        let locked = if on_forge { self.forge_locked } else { self.tracker_locked };
        let local = matches!(effect.action, Action::CleanUp { .. });
        if locked && !local {
            return Err(EffectError::Auth { detail: "401".into() });
        }
        if on_forge && self.forge_down {
            return Err(passing("the forge is down"));
        }
        if !on_forge && self.tracker_down && !local {
            return Err(passing("the tracker is down"));
        }
        if let Some((_, how)) = self.stuck.as_ref().filter(|(stuck, _)| stuck == ticket) {
            match (how, &effect.action) {
                (Stuck::Merge, Action::MergePr { .. }) => {
                    return Err(EffectError::NotNow { because: "something is in the way".into() });
                }
                (Stuck::MergeFails, Action::MergePr { .. }) | (Stuck::Writes, _) => return Err(passing("502")),
                _ => {}
            }
        }
        let done = self.really_write(effect, ticket, now)?;
        self.performed.insert(effect.id);
        Ok(done)
    }

    fn really_write(
        &mut self,
        effect: &Effect,
        ticket: &TicketId,
        now: Timestamp,
    ) -> Result<EffectResult, EffectError> {
        match &effect.action {
            Action::Comment { key, said } => {
                self.post(effect.id, ticket, key, tells(said));
                Ok(EffectResult::Commented { comment: key.as_str().into() })
            }
            Action::AddLabels { labels, .. } => {
                if let Some(shown) = self.ticket_mut(ticket, now) {
                    shown.labels.extend(labels.iter().cloned());
                    shown.updated_at = Some(now);
                }
                Ok(EffectResult::Plain)
            }
            Action::Acknowledge { key, aloud, .. } => {
                self.acknowledged.entry(key.clone()).or_insert(effect.id);
                // A reaction makes no comment.
                Ok(if *aloud { EffectResult::Commented { comment: key.as_str().into() } } else { EffectResult::Plain })
            }
            Action::WriteWorkpad { .. } => {
                self.post(effect.id, ticket, "workpad", Some("workpad".into()));
                Ok(EffectResult::Commented { comment: "workpad".into() })
            }
            Action::CreateTicket { key, new } => {
                self.create(key, new);
                Ok(EffectResult::Plain)
            }
            Action::MoveTicket { state, from } => {
                let Some(shown) = self.tickets.get(ticket) else {
                    return Err(EffectError::Permanent { detail: "gone".into() });
                };
                if shown.state == *state {
                    return Ok(EffectResult::Moved { version: None });
                }
                if !state_in(&shown.state, from) {
                    return Ok(EffectResult::FoundElsewhere { state: shown.state.clone() });
                }
                self.move_ticket(ticket, state, Author::ourselves(), now);
                Ok(EffectResult::Moved { version: Some(now) })
            }
            Action::PushBranch { branch, head } => self.push(branch, head, now),
            Action::OpenPr { branch, head } => {
                let number = self.pr_of_branch(branch).unwrap_or_else(|| {
                    let number = self.prs.len() as u64 + 1;
                    let head = self.remote.get(branch).unwrap_or(head);
                    let mut opened = pr(number, branch, head);
                    opened.checks = Some(vec![check("build", self.next_checks.unwrap_or(CheckStatus::Passed))]);
                    self.prs.insert(number, opened);
                    self.pr_owner.insert(number, ticket.clone());
                    number
                });
                Ok(EffectResult::Opened { pr: self.prs[&number].clone() })
            }
            Action::ReopenPr { number } => {
                let branch = self.prs.get(&number.0).map(|pr| pr.head_branch.clone());
                let head = branch.and_then(|branch| self.remote.get(&branch).cloned());
                let closed = self.prs.get(&number.0).is_some_and(|pr| pr.state == PrState::Closed);
                if let Some(pr) = self.pr_mut(number.0, now).filter(|_| closed) {
                    pr.state = PrState::Open;
                    // An open pull request follows its branch.
                    pr.head = head.unwrap_or_else(|| pr.head.clone());
                }
                Ok(EffectResult::Plain)
            }
            Action::MergePr { number, head, base_branch, .. } => self.merge(number.0, head, base_branch, now),
            Action::UpdateBranch { number, head } => self.update(number.0, head, ticket, now),
            _ => Ok(EffectResult::Plain),
        }
    }

    /// Never over a commit that the branch here does not have: theirs is merged in, or it conflicts.
    fn push(&mut self, branch: &str, head: &CommitId, now: Timestamp) -> Result<EffectResult, EffectError> {
        let theirs = self.remote.get(branch).cloned().filter(|theirs| !self.contains(head, theirs));
        let Some(theirs) = theirs else {
            self.set_head(branch, head, now);
            return Ok(EffectResult::Plain);
        };
        if self.contains(&theirs, head) {
            // There already, from a try whose answer was lost, with something on top of it.
            return Ok(EffectResult::Updated { head: theirs, same_diff: false });
        }
        if self.commits_made.is_multiple_of(3) {
            return Err(EffectError::Conflict { files: vec!["src/lib.rs".into()] });
        }
        let both = self.new_commit(vec![head.clone(), theirs]);
        self.by_worker.insert(both.clone());
        self.branches.insert(branch.to_owned(), both.clone());
        self.set_head(branch, &both, now);
        Ok(EffectResult::Updated { head: both, same_diff: false })
    }

    fn update(
        &mut self,
        number: u64,
        head: &CommitId,
        ticket: &TicketId,
        now: Timestamp,
    ) -> Result<EffectResult, EffectError> {
        let branch = match self.prs.get(&number) {
            Some(pr) if pr.head == *head => pr.head_branch.clone(),
            Some(pr) => return Err(EffectError::HeadMoved { actual: pr.head.clone() }),
            None => return Err(gone()),
        };
        let made = self.new_commit(vec![head.clone()]);
        let same_diff = !self.commits_made.is_multiple_of(3);
        // What people and reviews said of the change holds if the change is the same.
        if same_diff && self.approved.contains(&(ticket.clone(), head.clone())) {
            self.approved.insert((ticket.clone(), made.clone()));
        }
        if same_diff && self.reviewed.contains(head) {
            self.reviewed.insert(made.clone());
        }
        self.branches.insert(branch.clone(), made.clone());
        self.set_head(&branch, &made, now);
        Ok(EffectResult::Updated { head: made, same_diff })
    }

    fn merge(&mut self, number: u64, head: &CommitId, base: &str, now: Timestamp) -> Result<EffectResult, EffectError> {
        let Some(pr) = self.prs.get(&number) else { return Err(gone()) };
        match &pr.state {
            PrState::Merged { commit } => return Ok(EffectResult::Merged { commit: commit.clone() }),
            PrState::Closed => return Err(EffectError::Permanent { detail: "it is closed".into() }),
            PrState::Open => {}
        }
        if pr.head != *head {
            return Err(EffectError::HeadMoved { actual: pr.head.clone() });
        }
        if pr.base_branch != base {
            return Err(EffectError::OtherBase { actual: pr.base_branch.clone() });
        }
        if let Mergeability::Conflicting { files } = &pr.mergeability {
            return Err(EffectError::Conflict { files: files.clone() });
        }
        if let Some(pr) = self.pr_mut(number, now) {
            pr.state = PrState::Merged { commit: Some(head.clone()) };
        }
        *self.merges.entry(number).or_default() += 1;
        Ok(EffectResult::Merged { commit: Some(head.clone()) })
    }
}
