//! Performs effects: asks the permit, reaches the world, and sends back what came of it.

use dirigent::domain::failure::RunFailure;
use dirigent::domain::ids::{RunId, TicketId};
use dirigent::domain::job::{SwitchSource, TicketFacts, Work};
use dirigent::domain::lane::Lane;
use dirigent::domain::run::{Activity, RunOutcome, StopReason};
use dirigent::domain::time::Timestamp;
use dirigent::engine::effect::{Action, Effect, Steering};
use dirigent::engine::event::{EffectError, Event};
use dirigent::engine::permit::{Circumstances, Reach, permit};
use dirigent::engine::{circumstances, select};

use super::agents::{Agent, Temper};
use super::engine::fixtures::{failed, report};
use super::forge::is_on_forge;
use super::promises;
use super::simulation::{Scheduled, Simulation};

impl Simulation {
    fn refused(&mut self, effect: &Effect) -> bool {
        let known = circumstances(&self.state, &self.policy, effect.ticket.as_ref());
        let file = self.world.kill_file.then_some(SwitchSource::File);
        let now = Circumstances { switch: file.or(known.switch), ..known };
        let Err(refusal) = permit(effect.action.kind(), &now) else { return false };
        let error = EffectError::Refused { refusal };
        self.later(5, Event::EffectFailed { effect: effect.id, error });
        true
    }

    pub fn perform(&mut self, effect: Effect) {
        let kind = effect.action.kind();
        if self.refused(&effect) {
            return;
        }
        if let Some(ticket) = &effect.ticket
            && kind.reach() != Reach::Harmless
            && !matches!(effect.action, Action::StartRun { .. })
            && let Err(what) = promises::may_be_written(self, ticket, &effect.action)
        {
            self.fail(what);
            return;
        }
        match (&effect.action, effect.ticket.clone()) {
            (Action::StartRun { .. }, Some(ticket)) => self.start_agent(&effect, ticket),
            (Action::StopRun { run, reason }, _) => self.stop_agent(run, reason.clone(), 10_000),
            (Action::Steer { run, how: Steering::StopAfterTurn }, _) => {
                self.stop_agent(&run.clone(), StopReason::Quota, 5_000);
            }
            (Action::Steer { run, how: Steering::Say { message } }, _) => {
                if let (Some(agent), Some(key)) = (self.agents.get_mut(run), &message.key) {
                    agent.undelivered.push(key.clone());
                    self.world.wishes.name(key);
                }
            }
            (Action::Steer { .. }, _) => {}
            (Action::RefreshTickets { ids }, _) => self.refresh(ids),
            (Action::InspectPr { number }, Some(ticket)) => self.inspect(ticket, *number),
            (Action::CheckRemark { kind, id }, Some(ticket)) => self.check_remark(ticket, *kind, id.clone()),
            (Action::RunGate { .. }, Some(_)) => {
                let at = self.now.0 + 500 + self.chance.below(60_000) as i64;
                self.schedule(at, Scheduled::EndGate(effect));
            }
            (_, Some(ticket)) => self.write_to_world(&effect, &ticket),
            _ => {}
        }
    }

    fn write_to_world(&mut self, effect: &Effect, ticket: &TicketId) {
        let lost = (!self.peaceful).then(|| self.chance.below(24));
        // It never arrived, and nobody can tell.
        let result = if lost == Some(0) {
            Err(EffectError::MaybeDone { detail: "no answer".into() })
        } else {
            self.world.write(effect, ticket, self.outside_now())
        };
        self.must(promises::world_holds(self, ticket));
        if let Action::Acknowledge { key, .. } = &effect.action {
            self.must(promises::answered_once(self, effect.id, key));
        }
        if matches!(result, Err(EffectError::Auth { .. })) {
            self.locked_out(if is_on_forge(&effect.action) { Lane::Forge } else { Lane::Tracker });
            self.owe_what_is_pending();
        }
        let result = match lost {
            // The write took effect, its answer did not arrive.
            Some(1) => Err(EffectError::Transient { detail: "timed out".into(), retry_after: None }),
            Some(2) => Err(EffectError::MaybeDone { detail: "timed out".into() }),
            _ => result,
        };
        let event = match result {
            Ok(result) => Event::EffectDone { effect: effect.id, result },
            Err(error) => Event::EffectFailed { effect: effect.id, error },
        };
        self.deliver(9, event);
    }

    pub fn end_gate(&mut self, effect: &Effect) {
        if self.refused(effect) {
            return;
        }
        let Action::RunGate { head, .. } = &effect.action else { return };
        let broke_down = !self.peaceful && self.chance.one_in(15);
        let result = if broke_down {
            Err(EffectError::Transient { detail: "no space left".into(), retry_after: None })
        } else {
            self.world.gate(head)
        };
        let event = match result {
            Ok(result) => Event::EffectDone { effect: effect.id, result },
            Err(error) => Event::EffectFailed { effect: effect.id, error },
        };
        self.deliver(1, event);
    }

    fn start_agent(&mut self, effect: &Effect, ticket: TicketId) {
        let Action::StartRun { run, branch, work, undelivered, .. } = &effect.action else { return };
        let run_is_over = |report| Event::RunFinished { run: run.clone(), report };
        if self.world.tracker_locked {
            self.locked_out(Lane::Tracker);
            let error = EffectError::Auth { detail: "401".into() };
            self.later(5, Event::EffectFailed { effect: effect.id, error });
            return;
        }
        if self.world.tracker_down {
            self.later(5, run_is_over(failed(RunFailure::Tracker { detail: "500".into() })));
            return;
        }
        let life = self.lives;
        let facts = self.read_before_start(&ticket).as_ref().map(TicketFacts::of);
        if life != self.lives || self.broken().is_some() {
            return;
        }
        if let Some(reason) = select::too_late(facts.as_ref(), &self.policy) {
            self.later(5, run_is_over(report(RunOutcome::Killed { reason })));
            return;
        }
        if self.stopped_before_start.remove(run) {
            self.later(5, run_is_over(report(RunOutcome::Killed { reason: StopReason::Operator })));
            return;
        }
        if self.refused(effect) {
            return;
        }
        if let Err(what) = promises::may_be_written(self, &ticket, &effect.action) {
            self.fail(what);
            return;
        }
        if !self.peaceful && self.chance.one_in(40) {
            let failure = RunFailure::Workspace { detail: "no space left".into(), permanent: false };
            self.later(5, run_is_over(failed(failure)));
            return;
        }
        let temper = if self.peaceful { Temper::Good } else { Agent::temper(&mut self.chance) };
        let review = match work {
            Work::Review { head } => Some(head.clone()),
            _ => None,
        };
        let undelivered: Vec<_> = undelivered.iter().filter_map(|message| message.key.clone()).collect();
        undelivered.iter().for_each(|key| self.world.wishes.name(key));
        let agent = Agent {
            run: run.clone(),
            ticket,
            branch: branch.clone(),
            review,
            temper,
            undelivered,
            delivered: Vec::new(),
            explained: false,
            committed: None,
            next_at: Timestamp(self.now.0 + 200 + self.chance.below(3000) as i64),
            beats: 0,
            started: false,
            head_before: None,
            stopping: None,
        };
        self.agents.insert(run.clone(), agent);
    }

    fn stop_agent(&mut self, run: &RunId, reason: StopReason, grace: u64) {
        let at = Timestamp(self.now.0 + 50 + self.chance.below(grace) as i64);
        match self.agents.get_mut(run) {
            Some(agent) => drop(agent.stopping.get_or_insert((at, reason))),
            None => drop(self.stopped_before_start.insert(run.clone())),
        }
    }

    pub fn agent_acts(&mut self, run: &RunId) {
        let Some(agent) = self.agents.get_mut(run) else { return };
        agent.next_at = Timestamp(self.now.0 + agent.pause(&mut self.chance));
        let (event, over) = agent.act(&mut self.world, self.now);
        let wishes = &mut self.world.wishes;
        match &event {
            Event::RunProgress { activity: Activity::Delivered { remarks }, .. } => wishes.delivered(run, remarks),
            Event::RunProgress { activity: Activity::NotDelivered { remarks }, .. } => wishes.returned(run, remarks),
            Event::RunProgress { activity: Activity::AnsweredRemark { remark, answer }, .. } => {
                wishes.answered(run, remark, answer, agent.committed.is_some());
            }
            Event::RunFinished { report, .. } => {
                wishes.run_ended(run, report.outcome == RunOutcome::Done && report.made_commits());
            }
            _ => {}
        }
        if over {
            self.world.ended.insert(run.clone(), agent.committed.clone());
            self.agents.remove(run);
            // The end is told twice now and then, and late words follow it.
            if !self.peaceful && self.chance.one_in(10) {
                self.later(700, event.clone());
            }
        }
        self.tell(event);
    }
}
