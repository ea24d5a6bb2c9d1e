//! Everybody goes home: faults end, switches are released, and people answer what is asked of them.

use dirigent::config::policy::RolloutMode;
use dirigent::domain::ids::TicketId;
use dirigent::domain::job::{HumanWait, Stage};
use dirigent::domain::pr::{CheckStatus, Mergeability, PrState};
use dirigent::domain::time::Timestamp;
use dirigent::engine::event::{Event, OperatorCommand};
use dirigent::engine::holding;

use super::chance::Chance;
use super::engine::fixtures::check;
use super::people::approve;
use super::simulation::Simulation;
use super::world::Stuck;

/// How often people answer before they are entitled to a result.
pub const ROUNDS: usize = 8;
pub const DAY: i64 = 86_400_000;

/// Long enough for every back-off, quota and midnight.
pub fn long_after(now: Timestamp) -> Timestamp {
    Timestamp(now.0 + 3 * DAY)
}

pub fn make_peace(simulation: &mut Simulation) {
    let now = simulation.outside_now();
    let world = &mut simulation.world;
    world.kill_file = false;
    world.tracker_down = false;
    world.forge_down = false;
    world.tracker_locked = false;
    world.forge_locked = false;
    world.flapping = false;
    world.gates_fail = false;
    world.next_checks = Some(CheckStatus::Passed);
    for ticket in world.tickets.values_mut().filter(|ticket| !ticket.labels.is_empty()) {
        ticket.labels.clear();
        ticket.updated_at = Some(now);
    }
    for pr in world.prs.values_mut() {
        pr.labels.clear();
        pr.base_branch = "main".into();
    }
    clear_the_way(simulation);
    let ids: Vec<TicketId> = simulation.world.tickets.keys().cloned().collect();
    simulation.ledger.full = false;
    simulation.faults = Default::default();
    simulation.peaceful = true;
    simulation.policy.rollout.mode = RolloutMode::Merge;
    // After whatever the watcher was about to tell.
    simulation.later(300, Event::SwitchesChanged { file: false });
    simulation.tell(Event::PolicyReloaded);
    simulation.tell(Event::Operator { command: OperatorCommand::ResumeAll, by: "ann".into() });
    for ticket in ids {
        simulation.tell(Event::Operator { command: OperatorCommand::Resume { ticket }, by: "ann".into() });
    }
}

fn clear_the_way(simulation: &mut Simulation) {
    for pr in simulation.world.prs.values_mut() {
        pr.checks = Some(vec![check("build", CheckStatus::Passed)]);
        pr.mergeability = Mergeability::Clean;
    }
}

/// Whatever is paused goes on: what somebody wrote before may have been read only now.
pub fn resume_all(simulation: &mut Simulation) {
    let paused = simulation.state.jobs.iter().filter(|(_, job)| job.people.pause.is_some());
    let paused: Vec<TicketId> = paused.map(|(id, _)| id.clone()).collect();
    for ticket in paused {
        simulation.tell(Event::Operator { command: OperatorCommand::Resume { ticket }, by: "ann".into() });
    }
}

/// Something does not work for one ticket. The others must not wait for it.
pub fn hold_one_up(simulation: &mut Simulation, chance: &mut Chance) {
    let world = &mut simulation.world;
    let open = world.prs.values().find(|pr| pr.state == PrState::Open).map(|pr| pr.number.0);
    let ticket = open.and_then(|number| world.pr_owner.get(&number)).or_else(|| world.tickets.keys().next()).cloned();
    let how = *chance.pick(&[Stuck::Merge, Stuck::MergeFails, Stuck::Look, Stuck::Writes]);
    world.stuck = ticket.map(|ticket| (ticket, how));
}

/// Everything that waits for a person gets its answer: retried, approved, green.
pub fn answer(simulation: &mut Simulation) {
    clear_the_way(simulation);
    resume_all(simulation);
    let waiting: Vec<(TicketId, bool)> = simulation
        .state
        .jobs
        .iter()
        .filter_map(|(id, job)| match &job.stage {
            Stage::Blocked { .. } | Stage::WaitingForHuman { on: HumanWait::MergeStuck { .. }, .. } => {
                Some((id.clone(), false))
            }
            Stage::WaitingForHuman { .. } => Some((id.clone(), true)),
            _ => None,
        })
        .collect();
    for (ticket, approves) in waiting {
        let command = if approves {
            let overrule = holding(&simulation.state, &ticket);
            approve(simulation, &ticket, &overrule);
            OperatorCommand::Approve { ticket, head: None, overrule }
        } else {
            OperatorCommand::Retry { ticket }
        };
        simulation.tell(Event::Operator { command, by: "ann".into() });
    }
}
