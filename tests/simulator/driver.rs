//! The driver's bookkeeping around the real `step`: commit, hand over in order per ticket, die between any two of these and come
//! back with what was written.

use dirigent::domain::ids::{RunId, TicketId};
use dirigent::engine::effect::{Action, Effect};
use dirigent::engine::event::{Event, LostRun};
use dirigent::engine::permit::Reach;
use dirigent::engine::state::Changes;
use dirigent::engine::{step, unknown_tickets};

use super::agents::salvage_of;
use super::engine::{broken, newly_broken};
use super::ledger::BoardRead;
use super::promises;
use super::simulation::{Death, Scheduled, Simulation};

/// Every so many steps the complete state is checked, not only what changed.
const COMPLETE_EVERY: u64 = 256;
/// Usage and last activity reach the ledger this often.
const CHECKPOINT: i64 = 1000;

impl Simulation {
    pub fn tell(&mut self, event: Event) {
        self.tell_answer(event, None);
    }

    /// One step, its transaction, and its effects on their way. `asked` is the step after which the question left.
    pub fn tell_answer(&mut self, event: Event, asked: Option<u64>) {
        if self.broken().is_some() {
            return;
        }
        if self.trace {
            self.print(&format!("{event:?}"));
        }
        self.recall(&unknown_tickets(&self.state, &event));
        let spends = matches!(event, Event::RunProgress { .. } | Event::RunFinished { .. });
        let heard = self.hear(&event, asked.unwrap_or(self.steps));
        let effects = step(&mut self.state, &self.policy, self.now, event);
        self.steps += 1;
        if self.trace {
            for effect in &effects {
                self.print(&format!("    -> {} {:?}", effect.id.0, effect.action));
            }
        }
        let changes = self.state.take_changes();
        self.changed |= changes.is_hard() || !effects.is_empty();
        self.count_blocks(&changes);
        if let Some(first) = newly_broken(&self.state, &self.policy, self.now, &effects, &changes).into_iter().next() {
            self.fail(first);
        }
        if spends {
            self.must(promises::budget_holds(self));
        }
        let held = self.judge_step(&heard, &effects, &changes);
        self.must(held);
        if self.steps.is_multiple_of(COMPLETE_EVERY)
            && let Some(first) = broken(&self.state, &self.policy, self.now, &effects).into_iter().next()
        {
            self.fail(first);
        }
        self.keep(changes, effects);
        if self.steps.is_multiple_of(COMPLETE_EVERY) {
            self.check_ledger();
        }
    }

    pub fn checkpoint(&mut self) {
        if self.soft_since.is_some_and(|since| since + CHECKPOINT <= self.now.0) && !self.ledger.full {
            self.unwritten.runs.extend(self.state.runs.keys().cloned());
            self.unwritten.jobs.extend(self.state.runs.values().map(|run| run.ticket.clone()));
            self.write();
        }
    }

    fn write(&mut self) {
        self.ledger.commit(&self.state, &self.unwritten);
        self.unwritten = Changes::default();
        self.soft_since = None;
        self.world.wishes.written();
    }

    /// Hands in the archived jobs of these tickets. What was archived and may not be written yet comes first.
    pub fn recall(&mut self, ids: &[TicketId]) {
        let (mut jobs, mut rest) = (Vec::new(), Vec::new());
        for id in ids.iter().filter(|id| !self.state.jobs.contains(id)) {
            match self.unwritten.archived.get(id) {
                Some(job) => jobs.push(job.clone()),
                None => rest.push(id.clone()),
            }
        }
        jobs.extend(self.ledger.archived(&rest));
        if !jobs.is_empty() {
            jobs.iter().for_each(|job| self.witness.recall(&job.ticket.id, job));
            step(&mut self.state, &self.policy, self.now, Event::Recalled { jobs });
        }
    }

    /// Writes, then performs. What cannot be written is not performed.
    fn keep(&mut self, changes: Changes, effects: Vec<Effect>) {
        if changes.soft && !changes.is_hard() {
            self.soft_since.get_or_insert(self.now.0);
        }
        // Reading and stopping wait for nobody, not even for a full disk.
        let (harmless, writes): (Vec<_>, Vec<_>) =
            effects.into_iter().partition(|effect| effect.action.kind().reach() == Reach::Harmless);
        for effect in harmless {
            self.schedule(self.now.0 + 1, Scheduled::Perform(effect));
        }
        let hard = changes.is_hard();
        self.unwritten.add(changes);
        self.unperformed.extend(writes);
        if hard && self.death == Some(Death::BeforeCommit) {
            self.die();
            return;
        }
        if !self.ledger.full && (hard || !self.unperformed.is_empty()) {
            self.write();
        }
        if hard && self.death == Some(Death::AfterCommit) {
            self.die();
            return;
        }
        if self.ledger.full {
            return;
        }
        self.keep_board_mark();
        for effect in std::mem::take(&mut self.unperformed) {
            if self.death == Some(Death::AfterFirstEffect) {
                self.perform(effect);
                self.die();
                return;
            }
            self.put_in_order(effect);
        }
    }

    /// What it stands for is written down by now.
    fn keep_board_mark(&mut self) {
        if std::mem::replace(&mut self.mark_is_kept, true) {
            return;
        }
        if let Some(told) = self.told.clone() {
            let (basis, ask_for) = (self.list_basis, self.state.to_ask_for());
            self.ledger.board = Some(BoardRead { told, basis, ask_for });
        }
    }

    /// What writes to a ticket keeps its order; starts and gates go beside it.
    fn put_in_order(&mut self, effect: Effect) {
        let at = match (&effect.ticket, &effect.action) {
            (Some(ticket), action) if !matches!(action, Action::StartRun { .. } | Action::RunGate { .. }) => {
                let free = self.busy_until.get(ticket).copied().unwrap_or(0).max(self.now.0) + 1;
                let over = free + 10 + self.chance.below(1500) as i64;
                self.busy_until.insert(ticket.clone(), over);
                free
            }
            _ => self.now.0 + 1,
        };
        self.schedule(at, Scheduled::Perform(effect));
    }

    /// By what the story says: a job may be blocked and go on in one step, if people say both in one reading.
    fn count_blocks(&mut self, changes: &Changes) {
        for note in &changes.notes {
            let entered = note.text.contains("→ blocked: ") || note.text.starts_with("blocked: ");
            if let (true, Some(ticket)) = (entered, &note.ticket) {
                *self.times_blocked.entry(ticket.clone()).or_default() += 1;
            }
        }
    }

    pub fn check_everything(&mut self) {
        if let Some(first) = broken(&self.state, &self.policy, self.now, &[]).into_iter().next() {
            self.fail(first);
        }
        self.check_ledger();
    }

    fn check_ledger(&mut self) {
        let up_to_date = !self.ledger.full && !self.unwritten.is_hard();
        if let Some(what) = self.ledger.lacks(&self.state).filter(|_| up_to_date) {
            self.fail(what);
        }
    }

    /// Whatever is written down now has to be done some day, however long our access is refused.
    pub fn owe_what_is_pending(&mut self) {
        for pending in self.ledger.pending() {
            let lasts = matches!(
                pending.effect.action,
                Action::Comment { .. }
                    | Action::CreateTicket { .. }
                    | Action::WriteReceipt { .. }
                    | Action::CleanUp { .. }
            );
            if let (true, Some(ticket)) = (lasts, &pending.effect.ticket) {
                self.owed.insert(pending.effect.id, ticket.clone());
            }
        }
    }

    /// `kill -9`, now or inside the next step that decides something.
    pub fn crash(&mut self, death: Death) {
        if death == Death::Now {
            self.die();
        } else {
            self.death = Some(death);
        }
    }

    /// Agents and everything in memory are gone; what the ledger holds comes back.
    fn die(&mut self) {
        self.print("** the runner is dead and comes back");
        self.death = None;
        self.lives += 1;
        self.queue.clear();
        self.busy_until.clear();
        self.stopped_before_start.clear();
        self.told = None;
        self.mark_is_kept = true;
        self.unwritten = Changes::default();
        self.unperformed.clear();
        self.soft_since = None;
        self.ledger.full = false;
        self.state = self.ledger.reopened();
        // A tracker that can tell is asked for what has changed since, as far as it was written down.
        if let Some(read) = self.ledger.board.clone().filter(|_| self.hints.one_in(2)) {
            self.state.ask_for(read.ask_for);
            (self.told, self.list_basis) = (Some(read.told), read.basis);
        }
        self.witness.begin_life(&self.state);
        let agents = std::mem::take(&mut self.agents);
        self.world.ended.extend(agents.values().map(|agent| (agent.run.clone(), agent.committed.clone())));
        // Whoever buries a run saves its work, or finds what was saved before its end could be written down.
        for agent in agents.values().filter(|agent| agent.is_dirty()) {
            self.world.salvaged.insert(agent.run.clone(), agent.ticket.clone());
        }
        let runs = &self.state.runs;
        self.world.wishes.forgotten(|run| runs.contains(run) || agents.contains_key(run));
        let salvage = |run: &RunId| self.world.salvaged.get(run).map(|_| salvage_of(run));
        let lost = runs
            .keys()
            .map(|run| LostRun { run: run.clone(), salvage: salvage(run), head: None, spent: None })
            .collect();
        self.tell(Event::Recovered { lost });
        let file = self.world.kill_file;
        self.later(250, Event::SwitchesChanged { file });
        self.next_poll = self.now.0 + 100;
    }
}
