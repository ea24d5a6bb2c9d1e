//! Commands that change something: sent to the running instance, or written to the ledger if no runner is up.

use std::time::{Duration, Instant};

use crate::domain::ids::CommitId;
use crate::domain::job::SwitchSource;
use crate::domain::phase::Phase;
use crate::domain::snapshot::{JobView, Snapshot, SwitchView};
use crate::engine::event::{Event, OperatorCommand};
use crate::engine::permit::EffectKind;
use crate::engine::{holding, is_so_already, objection, step};
use crate::ledger::{Holder, InstanceLock, LockError};
use crate::runtime::{self, Reply, Request, RunnerFolder, find_ticket};

use super::Failure;
use super::args::{ApproveArgs, MessageArgs, RejectArgs, RetryArgs, SwitchArgs};
use super::connect::{self, Connection};
use super::context::Context;
use super::many::Many;
use super::output;
use super::snapshot_source::{self, Behind};
use super::unseen;
use crate::runtime::assembly;
use crate::workflow::Loaded;

/// How long a runner may take from its lock to its control socket before a command gives up on it.
const COMES_UP_WITHIN: Duration = Duration::from_secs(15);

pub fn pause(context: &Context, args: &SwitchArgs) -> Result<(), Failure> {
    match Many::of(&args.tickets, &args.selection)? {
        Some(many) => many.tell(context, unfinished, |ticket| Request::Pause { ticket }),
        None => tell(context, &Request::PauseAll),
    }
}

pub fn resume(context: &Context, args: &SwitchArgs) -> Result<(), Failure> {
    match Many::of(&args.tickets, &args.selection)? {
        Some(many) => many.tell(context, is_paused, |ticket| Request::Resume { ticket })?,
        None => tell(context, &Request::ResumeAll)?,
    }
    still_stopped(context)
}

/// Returns an error if the kill-switch file still exists: nothing will run, although `resume` itself succeeded.
fn still_stopped(context: &Context) -> Result<(), Failure> {
    match context.load(None) {
        Ok(loaded) if loaded.settings.rollout.kill_switch_file.exists() => Err(Failure::plain(format!(
            "the kill-switch file {} is still there and stops everything\n  fix: remove it to go on",
            loaded.settings.rollout.kill_switch_file.display()
        ))),
        // With a broken workflow file the kill switch is unknown, but the resume itself succeeded.
        _ => Ok(()),
    }
}

pub fn stop(context: &Context, args: &SwitchArgs) -> Result<(), Failure> {
    match Many::of(&args.tickets, &args.selection)? {
        Some(many) => many.tell(context, |_, job| job.run.is_some(), |ticket| Request::Stop { ticket }),
        None => tell(context, &Request::Shutdown),
    }
}

pub fn retry(context: &Context, args: &RetryArgs) -> Result<(), Failure> {
    let many = Many::wanted(&args.tickets, &args.selection)?;
    let stuck = |_: &Snapshot, job: &JobView| job.phase == Phase::Blocked || job.retry_at.is_some();
    many.tell(context, stuck, |ticket| Request::Retry { ticket })
}

pub fn approve(context: &Context, args: &ApproveArgs) -> Result<(), Failure> {
    let many = Many::wanted(&args.tickets, &args.selection)?;
    if args.head.is_some() && !matches!(many, Many::Named(tickets) if tickets.len() == 1) {
        return Err(Failure::Usage("--head names one commit, which is one ticket's; name that ticket alone".into()));
    }
    let request =
        |ticket| Request::Approve { ticket, head: args.head.clone(), anyway: args.anyway, overrule: Vec::new() };
    many.tell(context, waits_for_approval, request)
}

pub fn reject(context: &Context, args: &RejectArgs) -> Result<(), Failure> {
    let selected = Many::of(&[], &args.selection)?;
    let (many, text) = match (selected, &args.message, args.words.as_slice()) {
        (Some(many), None, words) => (many, words.join(" ")),
        (Some(many), Some(text), []) => (many, text.clone()),
        (None, Some(text), [_, ..]) => (Many::Named(&args.words), text.clone()),
        (None, None, [_, words @ ..]) => (Many::Named(&args.words[..1]), words.join(" ")),
        _ => return Err(Failure::Usage("name a ticket and what has to change".into())),
    };
    if text.trim().is_empty() {
        return Err(Failure::Usage("say what has to change: `dirigent reject TICKET 'use another file name'`".into()));
    }
    many.tell(context, waits_for_approval, |ticket| Request::Reject { ticket, text: text.clone() })
}

fn unfinished(_: &Snapshot, job: &JobView) -> bool {
    !job.phase.is_terminal()
}

fn waits_for_approval(_: &Snapshot, job: &JobView) -> bool {
    job.phase == Phase::WaitingForHuman
}

fn is_paused(picture: &Snapshot, job: &JobView) -> bool {
    let this = |switch: &SwitchView| switch.source == SwitchSource::PauseTicket && switch.subject == job.key;
    picture.switches.iter().any(this)
}

pub fn message(context: &Context, args: &MessageArgs) -> Result<(), Failure> {
    tell(context, &Request::Message { ticket: args.ticket.clone(), text: args.text.join(" "), urgent: args.urgent })
}

/// Carries out a request and prints the answer: through the running instance, or without one by changing the ledger under the instance
/// lock.
pub fn tell(context: &Context, request: &Request) -> Result<(), Failure> {
    output::print(&told(context, request)?)
}

/// Like [`tell`], but returns the answer instead of printing it. A runner that has taken the lock and does not listen yet is waited for.
pub fn told(context: &Context, request: &Request) -> Result<String, Failure> {
    let since = Instant::now();
    loop {
        match told_once(context, request) {
            Err(Failure::Locked(LockError::Held { .. })) if since.elapsed() < COMES_UP_WITHIN => {
                std::thread::sleep(Duration::from_millis(100));
            }
            result => return result,
        }
    }
}

fn told_once(context: &Context, request: &Request) -> Result<String, Failure> {
    match connect::ask(context, request)? {
        Connection::Live(reply) => shown(reply),
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

fn shown(reply: Reply) -> Result<String, Failure> {
    match reply {
        Reply::Done { text } => Ok(text),
        Reply::Refused { error } if error.contains("no ticket") || error.contains("could be") => {
            Err(Failure::NotFound(error))
        }
        Reply::Refused { error } => Err(Failure::Plain(error)),
        Reply::Snapshot { .. } => Ok(String::new()),
    }
}

fn write_down(loaded: &Loaded, place: &RunnerFolder, request: &Request) -> Result<String, Failure> {
    if let Request::Message { ticket, .. } = request {
        let snapshot = snapshot_source::from_ledger(loaded, &*place.read_ledger()?)?;
        find_ticket(&snapshot, ticket).map_err(Failure::NotFound)?;
        return Err(Failure::NoRunner(format!(
            "no runner is up, so no agent can hear it\n  fix: leave it on the ticket with `dirigent tk add-note {ticket} \"...\"`, where the next run reads it; or start a runner with `dirigent run`"
        )));
    }
    let only_live = matches!(request, Request::Snapshot | Request::Poll | Request::Shutdown);
    if only_live {
        return Err(no_runner());
    }
    let now = runtime::now();
    let holder = Holder::this_process(now, true);
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
        Request::Approve { ticket, head, anyway, overrule: _ } => {
            let ticket = find(ticket)?;
            let overrule = if *anyway { holding(&ledger.load()?, &ticket) } else { Vec::new() };
            OperatorCommand::Approve { ticket, head: head.as_deref().map(CommitId::new), overrule }
        }
        Request::Reject { ticket, text } => OperatorCommand::Reject { ticket: find(ticket)?, text: text.clone() },
        Request::Forget { ticket } => OperatorCommand::Forget { ticket: find(ticket)? },
        Request::Snapshot | Request::Message { .. } | Request::Poll | Request::Shutdown => return Err(no_runner()),
    };
    let mut state = ledger.load()?;
    let policy = assembly::policy(loaded, ledger.as_ref())?;
    unseen::take_in(&mut state, &policy, loaded, ledger.as_ref());
    if let Some(already) = is_so_already(&state, &command) {
        return Ok(already);
    }
    if let Some(objection) = objection(&state, &command) {
        return Err(Failure::Plain(objection));
    }
    let done = done(&command);
    // Nothing is started here, because the state has not been through recovery: the effects wait in the outbox for the next runner.
    let effects = step(&mut state, &policy, now, Event::Operator { command, by: "operator".into() });
    // Whether a comment on the ticket is due to be brought up to date depends on the hour, and is nothing that the command brought about.
    let follows = effects.iter().any(|effect| effect.action.kind() != EffectKind::WriteWorkpad);
    let changes = state.take_changes();
    ledger.commit(&state, &changes)?;
    let later = if follows { "; the rest follows with the next `dirigent run`" } else { "" };
    Ok(format!("{done}; written down (no runner is up){later}"))
}

/// The result of a command in a few words.
fn done(command: &OperatorCommand) -> &'static str {
    match command {
        OperatorCommand::PauseAll => "everything is paused",
        OperatorCommand::ResumeAll => "everything goes on",
        OperatorCommand::Pause { .. } => "paused",
        OperatorCommand::Resume { .. } => "resumed",
        OperatorCommand::Stop { .. } => "stopped",
        OperatorCommand::Retry { .. } => "starts again",
        OperatorCommand::Approve { .. } => "approved",
        OperatorCommand::Reject { .. } => "changes are asked for",
        OperatorCommand::Forget { .. } => "given back",
    }
}

fn no_runner() -> Failure {
    Failure::NoRunner("no runner is up; start one with `dirigent run`".into())
}
