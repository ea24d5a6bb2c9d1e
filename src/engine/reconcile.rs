//! The board as it is now against what we believed: closed, moved, relabelled, commented on, gone.

use std::collections::BTreeSet;

use super::assess::{self, is_trusted};
use super::effect::Action;
use super::phases::{self, Observation};
use super::select;
use super::state::PendingStatus;
use super::step::Step;
use crate::config::policy::ForgeKind;
use crate::config::policy::Policy;
use crate::domain::branch::branch_name;
use crate::domain::ids::{CommitId, TicketId};
use crate::domain::job::{BranchName, HumanMessage, Job, Stage, TicketFacts};
use crate::domain::pr::{PrState, PullRequest};
use crate::domain::ticket::{Ticket, normalise_labels, same_state, state_in};
use crate::domain::time::Timestamp;

impl Step<'_> {
    /// A complete list of the tickets in the states of interest.
    pub fn polled(&mut self, tickets: Vec<Ticket>, base: Option<CommitId>) {
        self.board_answered(base);
        let mut seen = BTreeSet::new();
        for ticket in tickets {
            seen.insert(ticket.id.clone());
            self.ticket_seen(ticket);
        }
        self.state.off_list = self.state.jobs.keys().filter(|id| !seen.contains(*id)).cloned().collect();
        self.ask_for_the_rest(BTreeSet::new());
    }

    /// The same list once more: it means to each job what it meant, but the job may have gone on since.
    pub fn polled_unchanged(&mut self, base: Option<CommitId>) {
        self.board_answered(base);
        let listed: Vec<TicketId> = self
            .state
            .jobs
            .iter()
            .filter(|(_, job)| !matches!(job.stage, Stage::Queued { .. }))
            .map(|(id, _)| id)
            .filter(|id| !self.state.off_list.contains(*id) && !self.state.doubted.contains(*id))
            .cloned()
            .collect();
        for id in listed {
            let Some(facts) = self.state.jobs.get(&id).map(|job| &job.ticket) else { continue };
            for observation in what_it_means(facts, false, self.policy) {
                self.decide(&id, observation);
            }
        }
        self.ask_for_the_rest(self.state.doubted.clone());
    }

    fn board_answered(&mut self, base: Option<CommitId>) {
        self.state.tracker.last_ok = Some(self.now);
        self.state.tracker.last_error = None;
        if base.is_some() {
            self.state.base = base;
        }
    }

    /// After a list: the tickets that were not on it and still matter, those in `also`, and the pull requests.
    fn ask_for_the_rest(&mut self, also: BTreeSet<TicketId>) {
        self.state.unseen = self.state.off_list.clone();
        let held = self.held_back();
        let missing =
            |id: &&TicketId| self.state.jobs.get(*id).is_some_and(|job| cares_about_ticket(job) || held.contains(*id));
        let mut ids = also;
        ids.extend(self.state.off_list.iter().filter(missing).cloned());
        if !ids.is_empty() {
            self.emit(None, Action::RefreshTickets { ids: ids.into_iter().collect() });
        }
        self.look_at_prs(&held);
    }

    /// Tickets with something left to write that a switch or the mode holds back. It goes on when the label goes, even on a
    /// ticket that we are done with; so somebody has to look.
    fn held_back(&self) -> BTreeSet<TicketId> {
        let held = self.state.outbox.values().filter(|pending| matches!(pending.status, PendingStatus::Held { .. }));
        held.filter_map(|pending| pending.effect.ticket.clone()).collect()
    }

    fn look_at_prs(&mut self, held: &BTreeSet<TicketId>) {
        let open: Vec<_> = self
            .state
            .jobs
            .iter()
            .filter(|(id, job)| !job.stage.phase().is_terminal() || held.contains(*id))
            .filter_map(|(id, job)| job.pr.as_ref().map(|pr| (id.clone(), pr.number)))
            .collect();
        for (id, number) in open {
            self.emit(Some(&id), Action::InspectPr { number });
        }
    }

    /// A complete answer about these ids: what is missing is gone.
    pub fn refreshed(&mut self, asked: Vec<TicketId>, tickets: Vec<Ticket>) {
        let found: BTreeSet<TicketId> = tickets.iter().map(|ticket| ticket.id.clone()).collect();
        self.state.unseen.retain(|id| !found.contains(id));
        for ticket in tickets {
            self.ticket_seen(ticket);
        }
        for id in asked.iter().filter(|id| !found.contains(*id)) {
            self.decide(id, Observation::TicketGone);
        }
    }

    fn ticket_seen(&mut self, ticket: Ticket) {
        let mut facts = TicketFacts::of(&ticket);
        facts.newest_trusted_comment = ticket
            .comments
            .iter()
            .rev()
            .find(|comment| is_trusted(&comment.author, self.policy))
            .map(|comment| comment.id.clone());
        let Some(job) = self.state.jobs.get_mut(&ticket.id) else {
            if select::is_active(&facts.state, self.policy) {
                self.adopt(facts);
            }
            return;
        };
        self.state.doubted.remove(&ticket.id);
        // Comments that were taken in stay so, even if this reading lacks them.
        if facts.newest_comment_at < job.ticket.newest_comment_at {
            facts.newest_comment = job.ticket.newest_comment.clone();
            facts.newest_comment_at = job.ticket.newest_comment_at;
        }
        if job.ticket == facts && matches!(job.stage, Stage::Queued { .. }) {
            return;
        }
        if is_old_reading(job, &facts, self.policy) {
            self.state.doubted.insert(ticket.id);
            return;
        }
        let news = new_words(&job.ticket, &ticket, self.policy);
        if is_old_column(job, &facts.state, self.policy, self.now) {
            facts.state = job.ticket.state.clone();
            self.state.doubted.insert(ticket.id.clone());
        }
        let id = ticket.id.clone();
        let moved = !same_state(&job.ticket.state, &facts.state);
        let by_us = job.moved_to.as_deref().is_some_and(|state| same_state(state, &facts.state));
        // While a column of ours is on its way nobody can tell whose move it is.
        let moving = self.state.outbox.values().any(|pending| {
            pending.effect.ticket.as_ref() == Some(&id)
                && matches!(pending.effect.action, Action::MoveTicket { .. })
                && pending.status == PendingStatus::InFlight
        });
        let by_people = moved && !by_us && !moving;
        let done = matches!(job.stage, Stage::Done { .. });
        let was_closed = select::is_terminal(&job.ticket.state, self.policy);
        if let (Stage::Done { ticket_closed, .. }, true) = (&mut job.stage, by_people && was_closed) {
            // Reopened before anybody looked at the column that we had put it in.
            *ticket_closed = true;
        }
        if job.ticket != facts {
            job.ticket = facts.clone();
            // Somebody moved it on from where we put it.
            if by_people && !done {
                job.moved_to = None;
            }
            self.touch(&id);
        }
        if moved {
            self.follow_run(&id, &facts.state);
        }
        for observation in what_it_means(&facts, by_people, self.policy) {
            self.decide(&id, observation);
        }
        for word in news {
            let addressed = word.text.to_lowercase().contains("@dirigent");
            self.note(Some(&id), "human_said", format!("{}: {}", word.from, first_line(&word.text)));
            self.decide(&id, Observation::HumanCommented { word, addressed });
        }
    }

    /// Per-state slots count by the running entry's current state.
    pub fn follow_run(&mut self, id: &TicketId, state: &str) {
        let Some(run) = self.state.jobs.get(id).and_then(|job| job.stage.run()).cloned() else { return };
        if let Some(live) = self.state.runs.get_mut(&run) {
            live.ticket_state = state.to_owned();
            self.state.changes.runs.insert(run);
        }
    }

    fn adopt(&mut self, facts: TicketFacts) {
        let name = branch_name(&self.policy.branch_prefix, facts.key.as_str(), &facts.title, 0);
        let id = facts.id.clone();
        let job = Job::new(facts, BranchName { name, generation: 0 }, self.now);
        self.note(Some(&id), "seen", format!("{} came onto the board: {}", job.ticket.key, job.ticket.title));
        self.state.jobs.insert(id.clone(), job);
        self.touch(&id);
    }

    /// A look at the job's pull request.
    pub fn pr_observed(&mut self, ticket: TicketId, pr: Option<PullRequest>) {
        let Some(job) = self.state.jobs.get_mut(&ticket) else { return };
        let Some(pr) = pr else { return };
        // A look that was under way while the job took a new branch is about another pull request.
        let Some(facts) = job.pr.as_mut().filter(|facts| facts.number == pr.number) else { return };
        if job.stage.phase().is_terminal() {
            // What is over stays so; but a label may hold back what is left to write.
            let labels = normalise_labels(&pr.labels);
            if facts.labels != labels {
                facts.labels = labels;
                self.touch(&ticket);
            }
            return;
        }
        let before = job.pr.clone();
        let facts = assess::remember(before.as_ref(), &pr, self.now);
        let head = if phases::judges_pr(&job.stage) { Some(facts.head.clone()) } else { job.head.clone() };
        let changed = before.as_ref() != Some(&facts) || job.head != head;
        job.head = head;
        job.pr = Some(facts);
        if changed {
            self.touch(&ticket);
        }
        let observation = match &pr.state {
            PrState::Merged { commit } => Observation::PrMerged { commit: commit.clone(), by_us: false },
            PrState::Closed if self.is_reopening(&ticket) => return,
            PrState::Closed => Observation::PrClosed { number: pr.number },
            PrState::Open => {
                let Some(job) = self.state.jobs.get_mut(&ticket) else { return };
                // Judging marks remarks as heard: only who acts on them may judge.
                if !phases::judges_pr(&job.stage) {
                    return;
                }
                // What a person added to the branch in this repository has not been through the gates yet; nor has what
                // was checked before a gate was added, or failed one before somebody took the ticket away and brought it back.
                let judged = job.receipt.as_ref().filter(|receipt| receipt.head.as_ref() == Some(&pr.head));
                let names = &self.policy.gates.task_names;
                let gated = judged.is_some_and(|receipt| receipt.is_passed_by(names));
                if self.policy.gates.has_task_gates && self.policy.pr.forge == ForgeKind::Local && !gated {
                    self.decide(&ticket, Observation::HeadNotGated { head: pr.head });
                    return;
                }
                let cursor = job.pr.as_ref().and_then(|facts| facts.review_cursor.clone());
                let assessment = assess::assess(job, &pr, self.policy, self.now);
                if job.pr.as_ref().and_then(|facts| facts.review_cursor.clone()) != cursor {
                    self.touch(&ticket);
                }
                Observation::PrAssessed { assessment }
            }
        };
        self.decide(&ticket, observation);
    }

    /// Our opening it (or another one for the same branch) is on its way, or so fresh that an old look may still come. A closing is believed only if it lasts.
    fn is_reopening(&self, ticket: &TicketId) -> bool {
        let facts = self.state.jobs.get(ticket).and_then(|job| job.pr.as_ref());
        let fresh = self.policy.polling_interval * 2;
        let reopened = facts.and_then(|facts| facts.reopened_at);
        if reopened.is_some_and(|at| at <= self.now && self.now.since(at) < fresh) {
            return true;
        }
        if facts.is_some_and(|facts| facts.replaced) {
            return true;
        }
        self.state.outbox.values().any(|pending| {
            pending.effect.ticket.as_ref() == Some(ticket)
                && matches!(pending.effect.action, Action::ReopenPr { .. } | Action::OpenPr { .. })
        })
    }
}

/// An old reading must not bring a finished ticket back. One that is no newer than the last, and does not show the column
/// that we have closed it with since, is old.
fn is_old_reading(job: &Job, facts: &TicketFacts, policy: &Policy) -> bool {
    let closed_by_us = matches!(job.stage, Stage::Done { .. })
        && select::is_terminal(&job.ticket.state, policy)
        && !select::is_terminal(&facts.state, policy);
    job.stage.phase().is_terminal()
        && facts.updated_at.is_some()
        && (facts.updated_at < job.ticket.updated_at || (closed_by_us && facts.updated_at == job.ticket.updated_at))
}

/// A look that still shows where the ticket was before our own, fresh move. Believed only if it lasts.
fn is_old_column(job: &Job, state: &str, policy: &Policy, now: Timestamp) -> bool {
    let fresh = policy.polling_interval * 2;
    job.moved.as_ref().is_some_and(|moved| {
        same_state(&moved.from, state)
            && !same_state(&job.ticket.state, state)
            && !select::is_terminal(state, policy)
            && now.since(moved.at) < fresh
    })
}

/// Whether the ticket's whereabouts still matter.
fn cares_about_ticket(job: &Job) -> bool {
    match &job.stage {
        Stage::Released { .. } => false,
        Stage::Done { ticket_closed, .. } => !ticket_closed,
        _ => true,
    }
}

fn what_it_means(facts: &TicketFacts, by_people: bool, policy: &Policy) -> Vec<Observation> {
    let state = facts.state.clone();
    if select::is_terminal(&state, policy) {
        return vec![Observation::TicketTerminal { state }];
    }
    let mut found = Vec::new();
    if let Some(because) = select::lost_eligibility(facts, policy) {
        return vec![Observation::TicketNotEligible { because }];
    }
    if by_people && state_in(&state, &policy.merge.approval_states) {
        found.push(Observation::TicketApproved);
    }
    if by_people && state_in(&state, &policy.orchestration.rework_states) {
        found.push(Observation::TicketMovedToRework { state: state.clone() });
    }
    if !select::is_live(&state, policy) {
        found.push(Observation::TicketNotActive { state });
    } else if select::is_active(&state, policy) {
        if by_people && !state_in(&state, &policy.orchestration.rework_states) {
            found.push(Observation::TicketReactivated);
        }
        found.push(Observation::TicketActive);
    }
    found
}

/// Comments that came since the last look, by people whose words count.
fn new_words(old: &TicketFacts, ticket: &Ticket, policy: &Policy) -> Vec<HumanMessage> {
    let position =
        old.newest_comment.as_ref().and_then(|id| ticket.comments.iter().position(|comment| comment.id == *id));
    let fresh = match (position, &old.newest_comment) {
        (Some(position), _) => &ticket.comments[position + 1..],
        (None, None) => &ticket.comments[..],
        // The last one seen was edited away: go by time.
        (None, Some(_)) => {
            let start = ticket
                .comments
                .iter()
                .position(|comment| comment.created_at > old.newest_comment_at && comment.created_at.is_some())
                .unwrap_or(ticket.comments.len());
            &ticket.comments[start..]
        }
    };
    fresh
        .iter()
        .filter(|comment| is_trusted(&comment.author, policy))
        .map(|comment| HumanMessage {
            from: comment.author.name.clone(),
            text: comment.body.clone(),
            at: comment.created_at.unwrap_or_default(),
            urgent: false,
        })
        .collect()
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}
