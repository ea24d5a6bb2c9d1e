//! The engine with a clock, a memory of its effects, a ledger in memory, and the invariants after every step.

use std::collections::BTreeSet;
use std::time::Duration;

use dirigent::config::policy::Policy;
use dirigent::domain::basis::Basis;
use dirigent::domain::ids::{CommentId, EffectId, RunId, TicketId};
use dirigent::domain::job::{Job, Stage};
use dirigent::domain::phase::Phase;
use dirigent::domain::pr::PullRequest;
use dirigent::domain::remark::{RemarkAnswer, RemarkKey, RemarkStatus};
use dirigent::domain::run::{Activity, ProcessMark, RunReport};
use dirigent::domain::ticket::Ticket;
use dirigent::domain::time::Timestamp;
use dirigent::domain::usage::Usage;
use dirigent::engine::effect::{Action, Effect};
use dirigent::engine::event::{EffectError, EffectResult, Event, Lookup, LostRun, OperatorCommand};
use dirigent::engine::state::{Changes, Meta, Pending, State};
use dirigent::engine::{next_due, reason, step};

use super::fixtures::{commit, done_report, id, pr};
use super::{broken, newly_broken};

pub const START: Timestamp = Timestamp(1_700_000_000_000);

#[derive(Clone)]
pub struct Machine {
    pub state: State,
    pub policy: Policy,
    pub now: Timestamp,
    /// Effects of the last step.
    pub last: Vec<Effect>,
    /// All effects ever.
    pub effects: Vec<Effect>,
    /// What a ledger would hold.
    pub kept: State,
    /// The board as it was last listed, while nothing happened that would make the poller list it again.
    pub listed: Option<Vec<Ticket>>,
    /// What that list rested on.
    pub listed_basis: Basis,
}

impl Machine {
    pub fn new(policy: Policy) -> Self {
        let mut machine = Self::asleep(policy);
        machine.step(Event::Recovered { lost: Vec::new() });
        machine
    }

    /// Before its past is settled.
    pub fn asleep(policy: Policy) -> Self {
        let state = State::new(Meta { seed: 7, ..Meta::default() });
        Self {
            kept: state.clone(),
            state,
            policy,
            now: START,
            last: Vec::new(),
            effects: Vec::new(),
            listed: None,
            listed_basis: Basis::default(),
        }
    }

    /// One job on the board, its first run under way.
    pub fn working(policy: Policy) -> Self {
        let mut machine = Self::new(policy);
        machine.poll(vec![super::fixtures::ticket("a")]);
        machine.run_starts("a");
        machine
    }

    /// One job with an open pull request that nobody has looked at yet.
    pub fn with_pr(policy: Policy) -> Self {
        let mut machine = Self::working(policy);
        machine.run_delivers("a", "one");
        machine
    }

    pub fn step(&mut self, event: Event) -> &[Effect] {
        let told = format!("{event:?}");
        let soft = matches!(event, Event::RunProgress { .. });
        match &event {
            Event::Polled { tickets, basis, .. } => {
                (self.listed, self.listed_basis) = (Some(tickets.clone()), *basis);
            }
            // Their records are in the ledger.
            Event::Recalled { jobs } => jobs.iter().for_each(|job| self.kept.jobs.insert(job.clone())),
            Event::PollFailed { .. } | Event::PolicyReloaded => self.listed = None,
            // A board that has gone on since lists anew.
            Event::TicketsRefreshed { found, .. } => {
                let news = |lookup: &Lookup, listed: &[Ticket]| !matches!(lookup, Lookup::Found { ticket } if listed.contains(ticket));
                self.listed.take_if(|listed| found.iter().any(|(_, lookup)| news(lookup, listed)));
            }
            Event::PolledChanges { tickets, .. } if !tickets.is_empty() => self.listed = None,
            // Our own move is a change of the board, whether or not its answer came.
            Event::EffectDone { effect, .. } | Event::EffectFailed { effect, .. } => {
                let is_move = |pending: &Pending| matches!(pending.effect.action, Action::MoveTicket { .. });
                self.listed.take_if(|_| self.state.outbox.get(effect).is_some_and(is_move));
            }
            _ => {}
        }
        self.last = step(&mut self.state, &self.policy, self.now, event);
        self.effects.extend(self.last.iter().cloned());
        let changes = self.keep(soft);
        let mut wrong = newly_broken(&self.state, &self.policy, self.now, &self.last, &changes);
        wrong.extend(broken(&self.state, &self.policy, self.now, &self.last));
        assert!(wrong.is_empty(), "after {told}:\n  {}\n{:#?}", wrong.join("\n  "), self.state.jobs);
        &self.last
    }

    /// Takes the changes over as the ledger would, and checks that nothing was changed in secret.
    fn keep(&mut self, soft: bool) -> Changes {
        let changes = self.state.take_changes();
        apply(&mut self.kept, &self.state, &changes);
        if soft {
            return changes;
        }
        // A checkpoint of usage is not the engine's to demand.
        for run in self.state.runs.values() {
            self.kept.runs.insert(run.clone());
            if let Some(job) = self.state.jobs.get(&run.ticket) {
                self.kept.jobs.insert(job.clone());
            }
        }
        for (id, job) in self.state.jobs.iter() {
            assert_eq!(self.kept.jobs.get(id), Some(job), "{id} was changed and not marked");
        }
        assert_eq!(self.kept.runs, self.state.runs, "runs were changed and not marked");
        assert_eq!(self.kept.outbox, self.state.outbox, "the outbox was changed and not marked");
        changes
    }

    pub fn pass(&mut self, span: Duration) {
        self.now = self.now + span;
    }

    pub fn seconds(&mut self, seconds: u64) {
        self.pass(Duration::from_secs(seconds));
        self.step(Event::TimerFired);
    }

    /// Goes to the next due time and fires the timer.
    pub fn wake(&mut self) {
        let due = next_due(&self.state, &self.policy).expect("something is due");
        self.now = self.now.max(due);
        self.step(Event::TimerFired);
    }

    pub fn poll(&mut self, tickets: Vec<Ticket>) {
        self.poll_asked(tickets, self.basis());
    }

    /// What a question that leaves now rests on.
    pub fn basis(&self) -> Basis {
        Basis { asked_at: self.now, after: self.state.moment() }
    }

    /// A list whose question left earlier.
    pub fn poll_asked(&mut self, tickets: Vec<Ticket>, basis: Basis) {
        self.step(Event::Polled { tickets, base: Some(commit("base")), basis });
    }

    pub fn unchanged(&mut self) {
        let basis = self.basis();
        self.step(Event::PolledUnchanged { base: Some(commit("base")), basis });
    }

    pub fn refresh(&mut self, ticket: Ticket) {
        self.refresh_asked(ticket, self.basis());
    }

    pub fn refresh_asked(&mut self, ticket: Ticket, basis: Basis) {
        self.step(Event::TicketsRefreshed { found: vec![(ticket.id.clone(), Lookup::Found { ticket })], basis });
    }

    /// The answer to a question about this ticket is not a ticket.
    pub fn looked_up(&mut self, name: &str, lookup: Lookup) {
        let basis = self.basis();
        self.step(Event::TicketsRefreshed { found: vec![(id(name), lookup)], basis });
    }

    pub fn says(&mut self, name: &str, text: &str) {
        self.step(Event::HumanSaid { ticket: id(name), by: "ann".into(), text: text.into(), urgent: false });
    }

    pub fn approve(&mut self, name: &str) {
        self.operator(OperatorCommand::Approve { ticket: id(name), head: None, overrule: Vec::new() });
    }

    pub fn operator(&mut self, command: OperatorCommand) {
        self.step(Event::Operator { command, by: "ann".into() });
    }

    pub fn observe(&mut self, name: &str, pr: PullRequest) {
        self.observe_asked(name, pr, self.basis());
    }

    /// A look whose question left earlier.
    pub fn observe_asked(&mut self, name: &str, pr: PullRequest, basis: Basis) {
        self.step(Event::PrObserved { ticket: id(name), pr, basis });
    }

    /// One look shows that it is ready, and another one, asked in its turn, lets it be merged.
    pub fn lands(&mut self, name: &str) {
        self.lands_as(name, self.good_pr(name));
    }

    pub fn lands_as(&mut self, name: &str, pr: PullRequest) {
        self.observe(name, pr.clone());
        self.observe(name, pr);
    }

    pub fn job(&self, name: &str) -> &Job {
        &self.state.jobs[&TicketId::new(name)]
    }

    pub fn phase(&self, name: &str) -> Phase {
        self.job(name).stage.phase()
    }

    pub fn code(&self, name: &str) -> &'static str {
        reason(&self.state, &self.policy, self.job(name), self.now).code
    }

    pub fn stage(&self, name: &str) -> &Stage {
        &self.job(name).stage
    }

    pub fn run_of(&self, name: &str) -> RunId {
        self.job(name).stage.run().unwrap_or_else(|| panic!("{name} has no run: {:?}", self.stage(name))).clone()
    }

    /// The process of the run is there, and its prompt has carried what people said.
    pub fn run_starts(&mut self, name: &str) {
        self.run_starts_silently(name);
        self.delivers(name);
    }

    /// What no run has taken up yet reaches the agent.
    pub fn delivers(&mut self, name: &str) {
        let remarks: Vec<RemarkKey> =
            self.job(name).people.undelivered().into_iter().filter_map(|message| message.key).collect();
        if !remarks.is_empty() {
            self.progress(name, Activity::Delivered { remarks });
        }
    }

    /// The worker answers everything that its run was told.
    pub fn answers(&mut self, name: &str, answer: RemarkAnswer) {
        let run = self.run_of(name);
        let told = |status: &RemarkStatus| matches!(status, RemarkStatus::Delivered { run: to } if *to == run);
        let remarks = self.job(name).people.remarks.iter();
        let keys: Vec<RemarkKey> = remarks.filter(|one| told(&one.status)).map(|one| one.key.clone()).collect();
        for remark in keys {
            self.progress(name, Activity::AnsweredRemark { remark, answer: answer.clone() });
        }
    }

    /// The process is there; whether anybody read a prompt is not known.
    pub fn run_starts_silently(&mut self, name: &str) {
        let run = self.run_of(name);
        let process = ProcessMark { pid: 4711, started_ticks: 1 };
        let head = self.job(name).delivery.head.clone().unwrap_or_else(|| commit("base"));
        self.step(Event::RunStarted { run, process, worktree: "/w".into(), head: Some(head) });
        self.perform_small();
    }

    pub fn progress(&mut self, name: &str, activity: Activity) {
        let run = self.run_of(name);
        self.step(Event::RunProgress { run, activity });
    }

    pub fn run_ends(&mut self, name: &str, report: RunReport) {
        let run = self.run_of(name);
        self.step(Event::RunFinished { run, report });
    }

    /// The run ends well with `head`; the branch is pushed and the pull request is open.
    pub fn run_delivers(&mut self, name: &str, head: &str) {
        let before = self.job(name).delivery.head.clone();
        self.run_ends(name, RunReport { head_before: before, ..done_report(&commit(head)) });
        self.perform_small();
        self.publish(name);
    }

    pub fn publish(&mut self, name: &str) {
        self.succeed(|action| matches!(action, Action::PushBranch { .. }), EffectResult::Plain);
        let head = self.job(name).delivery.head.clone().expect("a head");
        let shown = PullRequest { checks: None, ..pr(1, &self.job(name).delivery.branch.name, &head) };
        // One that is open shows what was pushed.
        if self.job(name).delivery.pr.is_none() {
            self.succeed(|action| matches!(action, Action::OpenPr { .. }), EffectResult::Opened { pr: shown });
        }
        self.perform_small();
    }

    /// The pull request as the forge shows it when all is well.
    pub fn good_pr(&self, name: &str) -> PullRequest {
        let job = self.job(name);
        let facts = job.delivery.pr.as_ref().expect("a pull request");
        let head = job.delivery.remote_head.as_ref().unwrap_or(&facts.head);
        pr(facts.number.0, &job.delivery.branch.name, head)
    }

    pub fn pending(&self, wanted: impl Fn(&Action) -> bool) -> Option<EffectId> {
        self.state.outbox.iter().find(|(_, entry)| wanted(&entry.effect.action)).map(|(id, _)| *id)
    }

    pub fn succeed(&mut self, wanted: impl Fn(&Action) -> bool, result: EffectResult) {
        let effect = self.pending(wanted).unwrap_or_else(|| panic!("no such effect in {:#?}", self.state.outbox));
        self.step(Event::EffectDone { effect, result });
    }

    pub fn fail(&mut self, wanted: impl Fn(&Action) -> bool, error: EffectError) {
        let effect = self.pending(wanted).unwrap_or_else(|| panic!("no such effect in {:#?}", self.state.outbox));
        self.step(Event::EffectFailed { effect, error });
    }

    pub fn merge_succeeds(&mut self) {
        let result = EffectResult::Merged { commit: Some(commit("merged")) };
        self.succeed(|action| matches!(action, Action::MergePr { .. }), result);
        self.perform_small();
    }

    /// Confirms what no decision depends on: comments, columns, workpads, clean-ups.
    pub fn perform_small(&mut self) {
        let small: Vec<(EffectId, EffectResult)> = self
            .state
            .outbox
            .iter()
            .filter_map(|(id, entry)| match &entry.effect.action {
                Action::Comment { .. } | Action::WriteWorkpad { .. } => {
                    Some((*id, EffectResult::Commented { comment: CommentId::new(format!("our-{}", id.0)) }))
                }
                Action::MoveTicket { .. } => Some((*id, EffectResult::Moved { version: None })),
                Action::CleanUp { .. }
                | Action::WriteReceipt { .. }
                | Action::CreateTicket { .. }
                | Action::AddLabels { .. }
                | Action::Acknowledge { .. }
                | Action::AttachLink { .. }
                | Action::UpdatePr { .. }
                | Action::Dequeue { .. }
                | Action::PublishGates { .. }
                | Action::AnswerThread { .. }
                | Action::ReviewComment { .. }
                | Action::RequestReview { .. } => Some((*id, EffectResult::Plain)),
                _ => None,
            })
            .collect();
        for (effect, result) in small {
            self.step(Event::EffectDone { effect, result });
        }
    }

    pub fn emitted(&self, wanted: impl Fn(&Action) -> bool) -> usize {
        self.effects.iter().filter(|effect| wanted(&effect.action)).count()
    }

    pub fn emitted_last(&self, wanted: impl Fn(&Action) -> bool) -> bool {
        self.last.iter().any(|effect| wanted(&effect.action))
    }

    /// The runner dies and comes back with what the ledger holds; its runs are lost.
    pub fn restart(&mut self) {
        self.restart_with(BTreeSet::new(), |_| None);
    }

    /// The same where it is known how far the board was read, but for these tickets.
    pub fn restart_from(&mut self, ask_for: BTreeSet<TicketId>) {
        self.restart_with(ask_for, |_| None);
    }

    /// The same; `spent` is what each run had written down beside it.
    pub fn restart_with(&mut self, ask_for: BTreeSet<TicketId>, spent: impl Fn(&RunId) -> Option<Usage>) {
        let mut state = State::new(self.kept.meta.clone());
        state.jobs = self.kept.jobs.clone();
        state.runs = self.kept.runs.clone();
        state.outbox = self.kept.outbox.clone();
        state.ask_for(ask_for);
        self.state = state;
        self.listed = None;
        let lost = |run: &RunId| LostRun { run: run.clone(), salvage: None, head: None, spent: spent(run) };
        let lost = self.state.runs.keys().map(lost).collect();
        self.step(Event::Recovered { lost });
    }
}

/// What one transaction does to the records of a ledger.
fn apply(kept: &mut State, state: &State, changes: &Changes) {
    for id in &changes.jobs {
        if let Some(job) = state.jobs.get(id) {
            kept.jobs.insert(job.clone());
        }
    }
    for id in changes.archived.keys().filter(|id| !state.jobs.contains(id)) {
        kept.jobs.remove(id);
    }
    for id in &changes.runs {
        match state.runs.get(id) {
            Some(run) => kept.runs.insert(run.clone()),
            None => drop(kept.runs.remove(id)),
        }
    }
    for id in &changes.outbox {
        match state.outbox.get(id) {
            Some(pending) => kept.outbox.insert(pending.clone()),
            None => drop(kept.outbox.remove(*id)),
        };
    }
    if changes.soft {
        for run in state.runs.values() {
            kept.runs.insert(run.clone());
            if let Some(job) = state.jobs.get(&run.ticket) {
                kept.jobs.insert(job.clone());
            }
        }
    }
    if changes.meta || changes.soft {
        kept.meta = state.meta.clone();
    }
}
