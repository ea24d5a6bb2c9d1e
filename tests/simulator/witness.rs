//! What the simulator itself notes about the order of things: when a question left, when a write was answered, whose turn it was,
//! and what a rework was decided on.

use std::collections::BTreeMap;

use dirigent::domain::basis::Moment;
use dirigent::domain::comment::TrustLevel;
use dirigent::domain::ids::{CommitId, EffectId, TicketId};
use dirigent::domain::job::{BlockCause, HumanWait, Job, ReworkCause, Stage, Work};
use dirigent::domain::pr::{PrState, PullRequest};
use dirigent::domain::remark::{RemarkKey, RemarkKind};
use dirigent::domain::run::{Life, LiveRun, RunKind};
use dirigent::domain::ticket::{Ticket, state_in};
use dirigent::domain::time::Timestamp;
use dirigent::engine::effect::{Action, Effect, Said};
use dirigent::engine::event::{EffectError, EffectResult, Event, Lookup};
use dirigent::engine::state::{Changes, State};

use super::promises;
use super::simulation::Simulation;

/// A look at an open pull request, on its way into the engine.
pub struct Look {
    pub ticket: TicketId,
    pub number: u64,
    pub head: CommitId,
    pub ref_head: Option<CommitId>,
    pub base: String,
    pub complete: bool,
    pub open: bool,
    /// The step after which it was asked.
    pub asked: u64,
}

/// What the step that follows is told, as far as promises depend on it.
#[derive(Default)]
pub struct Heard {
    pub look: Option<Look>,
    /// What is decided in the step has at least this number.
    first_effect: u64,
    /// A write was answered with a conflict.
    pub conflict: Option<TicketId>,
    pub gate_failed: Option<TicketId>,
    /// A 401, and whether the job was blocked before it.
    pub locked_out: Option<(EffectId, TicketId, bool)>,
}

/// A rework that was decided and has not ended.
pub struct Decided {
    cause: ReworkCause,
    cycles: u32,
    /// The head that it is about, where it is about one.
    pub head: Option<CommitId>,
    /// A settled look has shown another head since.
    pub overtaken: bool,
}

#[derive(Default)]
pub struct Witness {
    /// The step that took in the last answer to a write to the ticket's branch or pull request.
    pub answered: BTreeMap<TicketId, u64>,
    /// The step that took in our last merge.
    pub base_written: u64,
    pub turns: BTreeMap<TicketId, (Moment, u64)>,
    pub reworks: BTreeMap<TicketId, Decided>,
    /// When the pull request was last seen, by the world's clock.
    pub seen_at: BTreeMap<TicketId, Timestamp>,
    done: BTreeMap<TicketId, bool>,
}

impl Witness {
    /// What the new life finds in its ledger was decided in an earlier one.
    pub fn begin_life(&mut self, state: &State) {
        self.turns.clear();
        self.reworks.clear();
        self.done.clear();
        for (id, job) in state.jobs.iter() {
            if let Some(cause) = rework_of(job) {
                let (cause, cycles) = (cause.clone(), job.rework_cycles);
                self.reworks.insert(id.clone(), Decided { cause, cycles, head: None, overtaken: false });
            }
            self.recall(id, job);
        }
    }

    pub fn recall(&mut self, id: &TicketId, job: &Job) {
        self.done.insert(id.clone(), matches!(job.stage, Stage::Done { .. }));
    }
}

fn rework_of(job: &Job) -> Option<&ReworkCause> {
    match &job.stage {
        Stage::Queued { work: Work::Rework { cause }, .. }
        | Stage::Working { work: Work::Rework { cause }, .. }
        | Stage::Blocked { resume: Work::Rework { cause }, .. } => Some(cause),
        _ => None,
    }
}

fn writes_to_pr(action: &Action) -> bool {
    super::forge::is_on_forge(action) && !matches!(action, Action::InspectPr { .. } | Action::Acknowledge { .. })
}

impl Simulation {
    /// Notes what a step is about to be told.
    pub fn hear(&mut self, event: &Event, asked: u64) -> Heard {
        let mut heard = Heard { first_effect: self.state.meta.next_effect, ..Heard::default() };
        match event {
            Event::PrObserved { ticket, pr, .. } => {
                self.pr_is_shown(ticket, pr);
                self.witness.seen_at.insert(ticket.clone(), self.outside_now());
                heard.look = Some(Look {
                    ticket: ticket.clone(),
                    number: pr.number.0,
                    head: pr.head.clone(),
                    ref_head: pr.ref_head.clone(),
                    base: pr.base_branch.clone(),
                    complete: pr.is_complete(),
                    open: pr.state == PrState::Open,
                    asked,
                });
            }
            Event::Polled { tickets, .. } | Event::PolledChanges { tickets, .. } => {
                tickets.iter().for_each(|ticket| self.ticket_is_shown(ticket));
            }
            Event::TicketsRefreshed { found, .. } => {
                for (_, lookup) in found {
                    if let Lookup::Found { ticket } = lookup {
                        self.ticket_is_shown(ticket);
                    }
                }
                self.doubt_the_list(found);
            }
            Event::PollFailed { .. } => self.told = None,
            Event::PolicyReloaded => (self.told, self.ledger.board) = (None, None),
            Event::EffectDone { effect, result } => self.hear_result(*effect, Ok(result), &mut heard),
            Event::EffectFailed { effect, error } => self.hear_result(*effect, Err(error), &mut heard),
            _ => {}
        }
        heard
    }

    fn hear_result(&mut self, id: EffectId, result: Result<&EffectResult, &EffectError>, heard: &mut Heard) {
        let Some(effect) = self.state.outbox.get(&id).map(|pending| &pending.effect) else { return };
        let Some(ticket) = effect.ticket.clone() else { return };
        let next = self.steps + 1;
        if writes_to_pr(&effect.action) {
            self.witness.answered.insert(ticket.clone(), next);
        }
        match result {
            Ok(EffectResult::Merged { .. }) => self.witness.base_written = next,
            Ok(EffectResult::Gated { results }) if results.iter().any(|gate| !gate.passed) => {
                heard.gate_failed = Some(ticket);
            }
            Err(EffectError::Conflict { .. }) => heard.conflict = Some(ticket),
            Err(EffectError::Auth { .. }) => {
                let job = self.state.jobs.get(&ticket);
                let blocked = job.is_some_and(|job| {
                    matches!(
                        job.stage,
                        Stage::Blocked { .. }
                            | Stage::Merging { withdrawn: true, .. }
                            | Stage::Working { stopping: Some(_), .. }
                    )
                });
                heard.locked_out = Some((id, ticket, blocked));
            }
            _ => {}
        }
    }

    /// Whether words that the runner reads now are part of the task, or the answer to a question.
    pub fn takes_words_as_task(&self, ticket: &TicketId) -> bool {
        let Some(job) = self.state.jobs.get(ticket) else { return true };
        // A reviewer is told nothing.
        let asks = |run: &LiveRun| run.progress.waiting_for_answer && run.kind != RunKind::Review;
        let asked = self.state.runs.values().any(|run| run.ticket == *ticket && asks(run));
        let no_reviewer = |resume: &Work| !matches!(resume, Work::Review { .. });
        match &job.stage {
            Stage::Blocked {
                cause: BlockCause::WorkerAsked { .. } | BlockCause::NoNewEvidence { .. }, resume, ..
            } => asked || no_reviewer(resume),
            Stage::WaitingForHuman { on: HumanWait::Plan, .. } => true,
            _ => asked,
        }
    }

    fn ticket_is_shown(&mut self, ticket: &Ticket) {
        if !self.world.wishes.has_unshown(&ticket.id) {
            return;
        }
        let starting = match self.state.jobs.get(&ticket.id) {
            None if !state_in(&ticket.state, &self.policy.tracker.active_states) => return,
            None => true,
            Some(job) if job.attempts == 0 => true,
            Some(job) => match &job.stage {
                Stage::Working { run, .. } => {
                    let live = self.state.runs.get(run);
                    job.attempts == 1 && live.is_some_and(|live| matches!(live.life, Life::Spawning))
                }
                _ => false,
            },
        };
        let as_task = self.takes_words_as_task(&ticket.id);
        for said in ticket.known_comments().iter().filter(|said| said.author.trust == TrustLevel::Member) {
            // Whoever asks for changes answers no question with it.
            let harmless = starting || as_task && !said.body.starts_with("/dirigent reject");
            let key = RemarkKey { kind: RemarkKind::TicketComment, id: said.id.clone(), version: said.version() };
            self.world.wishes.shown(&ticket.id, &key, harmless);
        }
    }

    fn pr_is_shown(&mut self, ticket: &TicketId, pr: &PullRequest) {
        let known = self.state.jobs.get(ticket).filter(|job| !job.stage.phase().is_terminal());
        let current = known.and_then(|job| job.delivery.pr.as_ref()).is_some_and(|facts| facts.number == pr.number);
        if !current || pr.state != PrState::Open {
            return;
        }
        let wishes = &mut self.world.wishes;
        for review in pr.reviews.iter().flatten() {
            let version = dirigent::domain::comment::text_version(&review.body);
            wishes.shown(ticket, &RemarkKey { kind: RemarkKind::Verdict, id: review.id.clone(), version }, false);
        }
        for thread in pr.threads.iter().flatten() {
            if thread.resolved {
                wishes.seen_resolved.insert(thread.id.clone());
            } else if let Some(last) = thread.comments.last() {
                let key = RemarkKey { kind: RemarkKind::Thread, id: thread.id.clone(), version: last.version() };
                wishes.shown(ticket, &key, false);
            }
        }
        for said in pr.comments.iter().flatten() {
            let key = RemarkKey { kind: RemarkKind::PrComment, id: said.id.clone(), version: said.version() };
            wishes.shown(ticket, &key, false);
        }
    }

    /// Holds what the step decided against what it was told and what is true.
    pub fn judge_step(&mut self, heard: &Heard, effects: &[Effect], changes: &Changes) -> Result<(), String> {
        if let Some(look) = &heard.look {
            self.overtake(look);
        }
        for effect in effects {
            if let (Action::MergePr { number, head, .. }, Some(ticket)) = (&effect.action, &effect.ticket) {
                promises::merging::is_sound(self, heard, ticket, number.0, head)?;
            }
        }
        if let Some((id, ticket, was_blocked)) = &heard.locked_out {
            promises::working::outlives_a_401(self, *id, ticket, *was_blocked)?;
        }
        for id in &changes.jobs {
            promises::strangers_decide_nothing(self, id)?;
            self.follow(id, heard)?;
        }
        for effect in effects {
            if let (Action::StartRun { work, .. }, Some(ticket)) = (&effect.action, &effect.ticket) {
                promises::working::has_a_cause(self, ticket, work)?;
            }
        }
        Ok(())
    }

    /// A settled look at another head makes a rework of the old one unnecessary.
    fn overtake(&mut self, look: &Look) {
        let settled = look.complete
            && look.open
            && look.ref_head.as_ref() == Some(&look.head)
            && self.witness.answered.get(&look.ticket).is_none_or(|answered| look.asked >= *answered);
        if let Some(decided) = self.witness.reworks.get_mut(&look.ticket).filter(|_| settled) {
            decided.overtaken |= decided.head.as_ref().is_some_and(|head| *head != look.head);
        }
    }

    fn follow(&mut self, id: &TicketId, heard: &Heard) -> Result<(), String> {
        let Some(job) = self.state.jobs.get(id) else { return Ok(()) };
        match &job.stage {
            Stage::ReadyToMerge { turn: Some(turn), .. } => {
                let known = self.witness.turns.get(id).is_some_and(|(moment, _)| *moment == turn.moment);
                if !known {
                    self.witness.turns.insert(id.clone(), (turn.moment, self.steps));
                }
            }
            _ => drop(self.witness.turns.remove(id)),
        }
        let done = matches!(job.stage, Stage::Done { .. });
        if self.witness.done.insert(id.clone(), done) == Some(true) && !done {
            self.world.wishes.begin_anew(id);
        }
        let Some(cause) = rework_of(job) else {
            self.witness.reworks.remove(id);
            return Ok(());
        };
        let known = self.witness.reworks.get(id);
        // Decided anew, on another head perhaps, and with the same words.
        let mut pending = self.state.outbox.of_ticket(id).filter(|pending| pending.effect.id.0 >= heard.first_effect);
        let anew = pending.any(|p| matches!(p.effect.action, Action::Comment { said: Said::Rework { .. }, .. }));
        if !anew && known.is_some_and(|known| known.cause == *cause && known.cycles >= job.rework_cycles) {
            return Ok(());
        }
        let head = promises::working::is_wanted(self, heard, id, cause)?;
        let (cause, cycles) = (cause.clone(), job.rework_cycles);
        self.witness.reworks.insert(id.clone(), Decided { cause, cycles, head, overtaken: false });
        Ok(())
    }
}
