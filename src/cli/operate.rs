//! Commands that change something: told to the running instance, or written to the ledger where nobody runs.

use crate::domain::ids::CommitId;
use crate::engine::event::{Event, OperatorCommand};
use crate::engine::{holding, is_so_already, objection, step};
use crate::ledger::{Holder, InstanceLock};
use crate::runtime::{self, Reply, Request, RunnerFolder, find_ticket};

use super::Failure;
use super::args::{ApproveArgs, MaybeTicketArgs, MessageArgs, RejectArgs, TicketArgs};
use super::connect::{self, Connection};
use super::context::Context;
use super::output;
use super::snapshot_source::{self, Behind};
use crate::runtime::assembly;
use crate::workflow::Loaded;

pub fn pause(context: &Context, args: &MaybeTicketArgs) -> Result<(), Failure> {
    let request = match args.ticket.clone() {
        Some(ticket) => Request::Pause { ticket },
        None => Request::PauseAll,
    };
    tell(context, &request)
}

pub fn resume(context: &Context, args: &MaybeTicketArgs) -> Result<(), Failure> {
    let request = match args.ticket.clone() {
        Some(ticket) => Request::Resume { ticket },
        None => Request::ResumeAll,
    };
    tell(context, &request)?;
    match context.load(None) {
        Ok(loaded) if loaded.settings.rollout.kill_switch_file.exists() => output::print(&format!(
            "the kill-switch file {} is still there and stops everything; remove it to go on",
            loaded.settings.rollout.kill_switch_file.display()
        )),
        // A broken workflow is no reason to say nothing was resumed.
        _ => Ok(()),
    }
}

pub fn stop(context: &Context, args: &MaybeTicketArgs) -> Result<(), Failure> {
    match args.ticket.clone() {
        Some(ticket) => tell(context, &Request::Stop { ticket }),
        None => tell(context, &Request::Shutdown),
    }
}

pub fn retry(context: &Context, args: &TicketArgs) -> Result<(), Failure> {
    tell(context, &Request::Retry { ticket: args.ticket.clone() })
}

pub fn approve(context: &Context, args: &ApproveArgs) -> Result<(), Failure> {
    tell(context, &Request::Approve { ticket: args.ticket.clone(), head: args.head.clone(), anyway: args.anyway })
}

pub fn reject(context: &Context, args: &RejectArgs) -> Result<(), Failure> {
    tell(context, &Request::Reject { ticket: args.ticket.clone(), text: args.text.join(" ") })
}

pub fn message(context: &Context, args: &MessageArgs) -> Result<(), Failure> {
    tell(context, &Request::Message { ticket: args.ticket.clone(), text: args.text.join(" "), urgent: args.urgent })
}

/// The running instance is asked; without one the ledger itself is changed, under the instance lock.
pub fn tell(context: &Context, request: &Request) -> Result<(), Failure> {
    match connect::ask(context, request)? {
        Connection::Live(reply) => show(reply),
        Connection::Nobody(loaded, place) => write_down(&loaded, &place, request),
        Connection::Silent(_, place) => {
            let silent = Behind::silent(&place);
            let todo = silent.what_to_do().unwrap_or_default();
            Err(Failure::plain(format!(
                "{}; one that is only busy may still carry this out, one that was suspended does not: `dirigent status` tells\n  fix: {todo}, then say it again",
                silent.name()
            )))
        }
    }
}

fn show(reply: Reply) -> Result<(), Failure> {
    match reply {
        Reply::Done { text } => output::print(&text),
        Reply::Refused { error } if error.contains("no ticket") || error.contains("could be") => {
            Err(Failure::NotFound(error))
        }
        Reply::Refused { error } => Err(Failure::Plain(error)),
        Reply::Snapshot { .. } => Ok(()),
    }
}

fn write_down(loaded: &Loaded, place: &RunnerFolder, request: &Request) -> Result<(), Failure> {
    if let Request::Message { ticket, .. } = request {
        return Err(Failure::NoRunner(format!(
            "no runner is up, so no agent can hear it\n  fix: leave it on the ticket with `dirigent tk add-note {ticket} \"...\"`, where the next run reads it; or start a runner with `dirigent run`"
        )));
    }
    let only_live = matches!(request, Request::Snapshot | Request::Poll | Request::Shutdown);
    if only_live {
        return Err(no_runner());
    }
    let now = runtime::now();
    let holder = Holder { pid: std::process::id(), started_at: now };
    let _lock = InstanceLock::take(&[&place.state_dir], &holder)
        .map_err(|error| error.standing_for(&place.state_dir, &loaded.settings.workspace.repo))?;
    let mut ledger = place.open_ledger()?;
    let snapshot = snapshot_source::from_ledger(loaded, ledger.as_ref())?;
    let find = |name: &str| find_ticket(&snapshot, name).map_err(Failure::NotFound);
    let command = match request {
        Request::PauseAll => OperatorCommand::PauseAll,
        Request::ResumeAll => OperatorCommand::ResumeAll,
        Request::Pause { ticket } => OperatorCommand::Pause { ticket: find(ticket)? },
        Request::Resume { ticket } => OperatorCommand::Resume { ticket: find(ticket)? },
        Request::Stop { ticket } => OperatorCommand::Stop { ticket: find(ticket)? },
        Request::Retry { ticket } => OperatorCommand::Retry { ticket: find(ticket)? },
        Request::Approve { ticket, head, anyway } => {
            let ticket = find(ticket)?;
            let overrule = if *anyway { holding(&ledger.load()?, &ticket) } else { Vec::new() };
            OperatorCommand::Approve { ticket, head: head.as_deref().map(CommitId::new), overrule }
        }
        Request::Reject { ticket, text } => OperatorCommand::Reject { ticket: find(ticket)?, text: text.clone() },
        Request::Forget { ticket } => OperatorCommand::Forget { ticket: find(ticket)? },
        Request::Snapshot | Request::Message { .. } | Request::Poll | Request::Shutdown => return Err(no_runner()),
    };
    let mut state = ledger.load()?;
    if let Some(already) = is_so_already(&state, &command) {
        return output::print(&already);
    }
    if let Some(objection) = objection(&state, &command) {
        return Err(Failure::Plain(objection));
    }
    let policy = assembly::policy(loaded, ledger.as_ref())?;
    // The state is not recovered, so nothing is started here: the effects wait in the outbox for the next run.
    let effects = step(&mut state, &policy, now, Event::Operator { command, by: "operator".into() });
    let waiting = effects.len();
    let changes = state.take_changes();
    ledger.commit(&state, &changes)?;
    let later =
        if waiting == 0 { String::new() } else { format!("; {waiting} effect(s) follow with the next `dirigent run`") };
    output::print(&format!("written down (no runner is up){later}"))
}

fn no_runner() -> Failure {
    Failure::NoRunner("no runner is up; start one with `dirigent run`".into())
}
