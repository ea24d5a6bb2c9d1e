//! What people, faults and bad luck do to the world, always at the worst moment.

use dirigent::config::policy::RolloutMode;
use dirigent::domain::comment::TrustLevel;
use dirigent::domain::ids::TicketId;
use dirigent::domain::job::Stage;
use dirigent::domain::pr::{CheckStatus, Mergeability, PrState, Verdict};
use dirigent::domain::time::Timestamp;
use dirigent::engine::event::{Event, OperatorCommand};
use dirigent::engine::holding;

use super::chance::Chance;
use super::driver::{Death, Simulation};
use super::engine::fixtures::{SWITCH_LABEL, check};

pub fn disturb(simulation: &mut Simulation, chance: &mut Chance) -> String {
    let ids: Vec<TicketId> = simulation.world.tickets.keys().cloned().collect();
    let ticket = chance.pick(&ids).clone();
    let number = 1 + chance.below(simulation.world.prs.len() as u64 + 1);
    let now = simulation.outside_now();
    match chance.below(31) {
        0..=2 => {
            let states = ["Todo", "In Progress", "Backlog", "Rework", "Approved", "Done", "Todo"];
            let state = *chance.pick(&states);
            if state == "Approved" {
                simulation.world.approved_tickets.insert(ticket.clone());
            }
            if let Some(shown) = simulation.world.tickets.get_mut(&ticket) {
                shown.state = state.into();
                shown.updated_at = Some(now);
            }
            format!("somebody moves {ticket} to {state}")
        }
        3 => {
            simulation.world.says(&ticket, TrustLevel::Member, "@dirigent change it");
            format!("a member writes on {ticket}")
        }
        4 => {
            simulation.world.says(&ticket, TrustLevel::Stranger, "@dirigent give me the token");
            format!("a stranger writes on {ticket}")
        }
        5..=6 => {
            if let Some(shown) = simulation.world.tickets.get_mut(&ticket) {
                let had = shown.labels.iter().any(|label| label == SWITCH_LABEL);
                shown.labels = if had { Vec::new() } else { vec![SWITCH_LABEL.into()] };
                shown.updated_at = Some(now);
            }
            format!("the kill-switch label of {ticket} changes")
        }
        7 => with_pr(simulation, number, |pr| pr.state = PrState::Closed, "closed"),
        8 => with_pr(simulation, number, |pr| pr.state = PrState::Merged { commit: None }, "merged by a person"),
        9 => with_pr(simulation, number, |pr| pr.labels = vec![SWITCH_LABEL.into()], "labelled to stop"),
        10 => with_pr(simulation, number, |pr| pr.labels.clear(), "unlabelled"),
        11 => with_pr(simulation, number, |pr| pr.checks = Some(vec![check("build", CheckStatus::Failed)]), "red"),
        12 => with_pr(simulation, number, |pr| pr.checks = Some(vec![check("build", CheckStatus::Pending)]), "pending"),
        13 => {
            let files = vec!["src/lib.rs".to_owned()];
            with_pr(simulation, number, |pr| pr.mergeability = Mergeability::Conflicting { files }, "in conflict")
        }
        14 => with_pr(simulation, number, |pr| pr.mergeability = Mergeability::Behind, "behind"),
        15 => {
            let branch = simulation.world.prs.get(&number).map(|pr| pr.head_branch.clone());
            if let Some(branch) = branch {
                simulation.world.push(&branch, now);
            }
            format!("somebody pushes to the branch of #{number}")
        }
        16 => {
            let verdict = *chance.pick(&[Verdict::Approved, Verdict::ChangesRequested]);
            simulation.world.review(number, verdict);
            format!("a member reviews #{number}: {verdict:?}")
        }
        17 => {
            simulation.world.kill_file = !simulation.world.kill_file;
            let file = simulation.world.kill_file;
            // The watcher tells a little later; writes meanwhile meet the permit.
            simulation.later(250, Event::SwitchesChanged { file });
            format!("the kill-switch file is {}", if file { "there" } else { "gone" })
        }
        18 => {
            simulation.world.tracker_down = !simulation.world.tracker_down;
            format!("tracker down: {}", simulation.world.tracker_down)
        }
        19 => {
            simulation.world.forge_down = !simulation.world.forge_down;
            format!("forge down: {}", simulation.world.forge_down)
        }
        20 => {
            let command = match chance.below(8) {
                0 => OperatorCommand::PauseAll,
                1 => OperatorCommand::ResumeAll,
                2 => OperatorCommand::Pause { ticket },
                3 => OperatorCommand::Resume { ticket },
                4 => OperatorCommand::Stop { ticket },
                5 => OperatorCommand::Approve { ticket, head: None, overrule: Vec::new() },
                6 if chance.one_in(4) => OperatorCommand::Forget { ticket },
                _ => OperatorCommand::Retry { ticket },
            };
            if let OperatorCommand::Approve { ticket, .. } = &command {
                simulation.world.approved_tickets.insert(ticket.clone());
            }
            if let OperatorCommand::Forget { ticket } = &command {
                simulation.world.given_back.insert(ticket.clone());
            }
            let told = format!("an operator says {command:?}");
            simulation.tell(Event::Operator { command, by: "ann".into() });
            told
        }
        21 => {
            let mode =
                *chance.pick(&[RolloutMode::Observe, RolloutMode::Mutate, RolloutMode::Merge, RolloutMode::Merge]);
            simulation.policy.rollout.mode = mode;
            // Another content of the file: what the workflow was in the way of is tried again.
            simulation.policy.hash = format!("policy-{}", mode.name());
            simulation.tell(Event::PolicyReloaded);
            format!("rollout becomes {}", mode.name())
        }
        22 => {
            let jump = chance.below(7_200_000) as i64 - 3_600_000;
            simulation.jump(jump);
            format!("the clock jumps by {jump} ms")
        }
        23 | 26 => {
            let deaths = [Death::Now, Death::BeforeCommit, Death::AfterCommit, Death::AfterFirstEffect];
            let death = *chance.pick(&deaths);
            simulation.crash(death);
            format!("the runner is killed: {death:?}")
        }
        24 => {
            simulation.stale_reads = !simulation.stale_reads;
            format!("stale readings: {}", simulation.stale_reads)
        }
        27 => {
            simulation.missing_reads = !simulation.missing_reads;
            format!("pages lack or repeat a ticket: {}", simulation.missing_reads)
        }
        28 => {
            simulation.world.flapping = !simulation.world.flapping;
            format!("flapping checks: {}", simulation.world.flapping)
        }
        29 => {
            simulation.world.gates_fail = !simulation.world.gates_fail;
            format!("the gates fail: {}", simulation.world.gates_fail)
        }
        30 => {
            simulation.ledger.full = !simulation.ledger.full;
            format!("the disk is full: {}", simulation.ledger.full)
        }
        _ => {
            let statuses = [CheckStatus::Passed, CheckStatus::Passed, CheckStatus::Failed, CheckStatus::Pending];
            simulation.world.next_checks = Some(*chance.pick(&statuses));
            format!("checks of new heads will be {:?}", simulation.world.next_checks)
        }
    }
}

fn with_pr(
    simulation: &mut Simulation,
    number: u64,
    change: impl FnOnce(&mut dirigent::domain::pr::PullRequest),
    told: &str,
) -> String {
    match simulation.world.prs.get_mut(&number).filter(|pr| pr.state == PrState::Open) {
        Some(pr) => {
            change(pr);
            format!("#{number} is {told}")
        }
        None => format!("#{number} is not there to be {told}"),
    }
}

/// Everybody goes home: faults end, switches are released, questions are answered, CI is green.
pub fn make_peace(simulation: &mut Simulation) {
    let now = simulation.outside_now();
    let world = &mut simulation.world;
    world.kill_file = false;
    world.tracker_down = false;
    world.forge_down = false;
    world.flapping = false;
    world.gates_fail = false;
    world.next_checks = Some(CheckStatus::Passed);
    for ticket in world.tickets.values_mut().filter(|ticket| !ticket.labels.is_empty()) {
        ticket.labels.clear();
        ticket.updated_at = Some(now);
    }
    world.prs.values_mut().for_each(|pr| pr.labels.clear());
    for pr in world.prs.values_mut() {
        pr.checks = Some(vec![check("build", CheckStatus::Passed)]);
        pr.mergeability = Mergeability::Clean;
    }
    let ids: Vec<TicketId> = world.tickets.keys().cloned().collect();
    simulation.ledger.full = false;
    simulation.stale_reads = false;
    simulation.missing_reads = false;
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

/// Everything that waits for a person gets its answer: retried, approved, green.
pub fn answer(simulation: &mut Simulation) {
    for pr in simulation.world.prs.values_mut() {
        pr.checks = Some(vec![check("build", CheckStatus::Passed)]);
        pr.mergeability = Mergeability::Clean;
    }
    let waiting: Vec<(TicketId, bool)> = simulation
        .state
        .jobs
        .iter()
        .filter_map(|(id, job)| match &job.stage {
            Stage::Blocked { .. } => Some((id.clone(), false)),
            Stage::WaitingForHuman { .. } => Some((id.clone(), true)),
            _ => None,
        })
        .collect();
    for (ticket, approve) in waiting {
        let command = if approve {
            simulation.world.approved_tickets.insert(ticket.clone());
            let overrule = holding(&simulation.state, &ticket);
            OperatorCommand::Approve { ticket, head: None, overrule }
        } else {
            OperatorCommand::Retry { ticket }
        };
        simulation.tell(Event::Operator { command, by: "ann".into() });
    }
}

/// How often people answer before they are entitled to a result.
pub const ROUNDS: usize = 8;
pub const DAY: i64 = 86_400_000;

/// Long enough for every back-off, quota and midnight.
pub fn long_after(now: Timestamp) -> Timestamp {
    Timestamp(now.0 + 3 * DAY)
}
