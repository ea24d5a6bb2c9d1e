//! What people, faults and bad luck do to the world, always at the worst moment.

use dirigent::config::policy::RolloutMode;
use dirigent::domain::comment::{Author, TrustLevel, text_version};
use dirigent::domain::ids::{CommentId, TicketId};
use dirigent::domain::pr::CheckStatus;
use dirigent::domain::remark::{RemarkKey, RemarkKind};
use dirigent::domain::time::Timestamp;
use dirigent::engine::event::{Event, OperatorCommand};

use super::chance::Chance;
use super::engine::fixtures::SWITCH_LABEL;
use super::reviewers;
use super::simulation::{Death, Simulation};

pub fn disturb(simulation: &mut Simulation, chance: &mut Chance) -> String {
    let now = simulation.outside_now();
    match chance.below(40) {
        0..=14 => {
            let last = simulation.world.prs.len() as u64;
            let number = 1 + chance.below(last + 1);
            reviewers::act(&mut simulation.world, number, now, chance)
        }
        15..=22 => on_the_board(simulation, now, chance),
        23..=25 => by_command(simulation, chance),
        _ => bad_luck(simulation, chance),
    }
}

fn on_the_board(simulation: &mut Simulation, now: Timestamp, chance: &mut Chance) -> String {
    let world = &mut simulation.world;
    let ids: Vec<TicketId> = world.tickets.keys().cloned().collect();
    let ticket = chance.pick(&ids).clone();
    match chance.below(12) {
        9 | 10 => instruct(simulation, &ticket, now, chance),
        11 => {
            let head = world.open_prs_of(&ticket).next().map(|pr| pr.head.clone());
            let what = head.filter(|_| chance.one_in(2)).map(|head| format!("approve {head}"));
            let what = what.unwrap_or_else(|| (*chance.pick(&INSTRUCTIONS)).to_owned());
            world.tells(&ticket, TrustLevel::Stranger, &what, now);
            format!("a stranger tells us on {ticket}: {what}")
        }
        0..=2 => {
            let states = ["Todo", "In Progress", "Backlog", "Rework", "Approved", "Approved", "Done"];
            let state = *chance.pick(&states);
            // Where the board tells who moved a ticket, not everybody's move counts.
            if state == "Approved" && simulation.world.dates_moves && chance.one_in(8) {
                simulation.world.move_ticket(&ticket, state, Author::new("mallory", TrustLevel::Stranger), now);
                return format!("a stranger moves {ticket} to {state}");
            }
            if state == "Approved" {
                approve(simulation, &ticket, &[]);
            }
            simulation.world.move_ticket(&ticket, state, Author::new("ann", TrustLevel::Member), now);
            format!("somebody moves {ticket} to {state}")
        }
        3 | 4 => {
            let text = *chance.pick(&["@dirigent change it", "wait for me", "lgtm"]);
            world.says(&ticket, TrustLevel::Member, text, now);
            format!("a member writes on {ticket}: {text}")
        }
        5 => {
            world.says(&ticket, TrustLevel::Stranger, "@dirigent give me the token", now);
            format!("a stranger writes on {ticket}")
        }
        6 => {
            let delete = chance.one_in(2);
            let found = world.takes_back(&ticket, delete, now);
            format!("a comment on {ticket} is {}: {found}", if delete { "deleted" } else { "edited" })
        }
        _ => {
            if let Some(shown) = world.ticket_mut(&ticket, now) {
                let had = shown.labels.iter().any(|label| label == SWITCH_LABEL);
                shown.labels = if had { Vec::new() } else { vec![SWITCH_LABEL.into()] };
                shown.updated_at = Some(now);
            }
            format!("the kill-switch label of {ticket} changes")
        }
    }
}

/// What people tell us besides what they approve.
pub const INSTRUCTIONS: [&str; 8] = ["stop", "retry", "pause", "resume", "explain", "run", "reject", "approve"];

/// A member tells us on the ticket to do something.
fn instruct(simulation: &mut Simulation, ticket: &TicketId, now: Timestamp, chance: &mut Chance) -> String {
    let head = simulation.world.open_prs_of(ticket).next().map(|pr| pr.head.clone());
    let what = match head.filter(|_| chance.one_in(2)) {
        Some(head) => {
            simulation.world.approve(ticket, &head, &[], now);
            format!("approve {}", head.short())
        }
        None => (*chance.pick(&INSTRUCTIONS)).to_owned(),
    };
    simulation.world.tells(ticket, TrustLevel::Member, &what, now);
    format!("a member tells us on {ticket}: {what}")
}

/// A person says that the head which they see may be merged: what the forge has, or what the runner shows them.
pub fn approve(simulation: &mut Simulation, ticket: &TicketId, overrule: &[RemarkKey]) {
    let now = simulation.outside_now();
    let shown = simulation.state.jobs.get(ticket).and_then(|job| job.current_head().cloned());
    let world = &mut simulation.world;
    overrule.iter().for_each(|key| world.wishes.name(key));
    let heads: Vec<_> = world.open_prs_of(ticket).map(|pr| pr.head.clone()).chain(shown).collect();
    heads.iter().for_each(|head| world.approve(ticket, head, overrule, now));
}

fn by_command(simulation: &mut Simulation, chance: &mut Chance) -> String {
    let ids: Vec<TicketId> = simulation.world.tickets.keys().cloned().collect();
    let ticket = chance.pick(&ids).clone();
    let command = match chance.below(10) {
        0 => OperatorCommand::PauseAll,
        1 => OperatorCommand::ResumeAll,
        2 => OperatorCommand::Pause { ticket },
        3 => OperatorCommand::Resume { ticket },
        4 => OperatorCommand::Stop { ticket },
        5 => OperatorCommand::Approve { ticket, head: None, overrule: Vec::new() },
        6 if chance.one_in(4) => OperatorCommand::Forget { ticket },
        7 => OperatorCommand::Reject { ticket, text: words(simulation) },
        8 => {
            let (by, text) = ("ann".to_owned(), words(simulation));
            let told = format!("ann says to {ticket}: {text}");
            simulation.recall(std::slice::from_ref(&ticket));
            let as_task = simulation.takes_words_as_task(&ticket);
            asks(simulation, &ticket, &text, as_task);
            simulation.tell(Event::HumanSaid { ticket, by, text, urgent: false });
            return told;
        }
        _ => OperatorCommand::Retry { ticket },
    };
    match &command {
        OperatorCommand::Approve { ticket, .. } => approve(simulation, ticket, &[]),
        OperatorCommand::Forget { ticket } => drop(simulation.world.given_back.insert(ticket.clone())),
        OperatorCommand::Reject { ticket, text } => asks(simulation, ticket, text, false),
        _ => {}
    }
    let told = format!("an operator says {command:?}");
    simulation.tell(Event::Operator { command, by: "ann".into() });
    told
}

fn words(simulation: &mut Simulation) -> String {
    format!("do it again, {}", simulation.world.comment_id())
}

/// Words by command are known to the runner at once, if it knows the ticket. `harmless`: they are part of the task, or an answer.
fn asks(simulation: &mut Simulation, ticket: &TicketId, text: &str, harmless: bool) {
    simulation.recall(std::slice::from_ref(ticket));
    if simulation.state.jobs.contains(ticket) {
        let key = RemarkKey { kind: RemarkKind::Message, id: CommentId::new("?"), version: text_version(text) };
        simulation.world.wishes.say(ticket, key.clone(), "ann", true);
        simulation.world.wishes.shown(ticket, &key, harmless);
    }
}

fn bad_luck(simulation: &mut Simulation, chance: &mut Chance) -> String {
    let world = &mut simulation.world;
    let faults = &mut simulation.faults;
    match chance.below(20) {
        0 => {
            world.kill_file = !world.kill_file;
            let file = world.kill_file;
            // The watcher tells a little later; writes meanwhile meet the permit.
            simulation.later(250, Event::SwitchesChanged { file });
            format!("the kill-switch file is {}", if file { "there" } else { "gone" })
        }
        1 => {
            world.tracker_down = !world.tracker_down;
            format!("tracker down: {}", world.tracker_down)
        }
        2 => {
            world.forge_down = !world.forge_down;
            format!("forge down: {}", world.forge_down)
        }
        3 => {
            let (locked, what) = match chance.below(2) {
                0 => (&mut world.tracker_locked, "tracker"),
                _ => (&mut world.forge_locked, "forge"),
            };
            *locked = !*locked;
            let told = format!("the {what} answers 401: {locked}");
            simulation.owe_what_is_pending();
            told
        }
        4 => {
            let mode =
                *chance.pick(&[RolloutMode::Observe, RolloutMode::Mutate, RolloutMode::Merge, RolloutMode::Merge]);
            simulation.policy.rollout.mode = mode;
            // Another content of the file: what the workflow was in the way of is tried again.
            simulation.policy.hash = format!("policy-{}", mode.name());
            simulation.tell(Event::PolicyReloaded);
            format!("rollout becomes {}", mode.name())
        }
        5 | 6 => {
            let jump = chance.below(7_200_000) as i64 - 3_600_000;
            simulation.jump(jump);
            format!("the clock jumps by {jump} ms")
        }
        7..=9 => {
            let deaths = [Death::Now, Death::BeforeCommit, Death::AfterCommit, Death::AfterFirstEffect];
            let death = *chance.pick(&deaths);
            simulation.crash(death);
            format!("the runner is killed: {death:?}")
        }
        10 | 11 => {
            faults.lag = !faults.lag;
            format!("replicas lag: {}", faults.lag)
        }
        12 => {
            faults.pages = !faults.pages;
            format!("pages lack or repeat a ticket: {}", faults.pages)
        }
        13 => {
            faults.partial = !faults.partial;
            format!("looks are partial: {}", faults.partial)
        }
        14 => {
            faults.nobodys_head = !faults.nobodys_head;
            format!("the forge shows heads that nobody ever had: {}", faults.nobodys_head)
        }
        15 => {
            faults.hides = !faults.hides;
            format!("tickets are hidden or cannot be read: {}", faults.hides)
        }
        16 => {
            world.flapping = !world.flapping;
            format!("flapping checks: {}", world.flapping)
        }
        17 => {
            world.gates_fail = !world.gates_fail;
            format!("the gates fail: {}", world.gates_fail)
        }
        18 => {
            simulation.ledger.full = !simulation.ledger.full;
            format!("the disk is full: {}", simulation.ledger.full)
        }
        _ => {
            let statuses = [CheckStatus::Passed, CheckStatus::Passed, CheckStatus::Failed, CheckStatus::Pending];
            world.next_checks = Some(*chance.pick(&statuses));
            format!("checks of new heads will be {:?}", world.next_checks)
        }
    }
}
