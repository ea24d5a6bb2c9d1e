//! `status`: where every ticket stands, from the running instance or from the ledger.

use serde_json::Value;

use crate::domain::job::SwitchSource;
use crate::domain::phase::Phase;
use crate::domain::snapshot::{JobView, Snapshot, SwitchView};
use crate::domain::time::Timestamp;
use crate::engine;
use crate::ledger::Ledger;
use crate::runtime::{self, Client, ControlError, Reply, Request, find_ticket};
use crate::workflow::Loaded;

use super::Failure;
use super::args::{Format, StatusArgs};
use super::output;
use super::place::{Context, Place};
use super::reach::{self, Reached};

/// A snapshot and whether a runner stands behind it.
pub struct Seen {
    pub snapshot: Snapshot,
    pub live: bool,
}

pub fn status(context: &Context, args: &StatusArgs) -> Result<(), Failure> {
    loop {
        let seen = match reach::ask(context, &Request::Snapshot)? {
            Reached::Live(reply) => live(reply)?,
            Reached::Nobody(loaded, place) => written(&loaded, &place)?,
        };
        let text = render(&seen, args)?;
        if !args.watch {
            return output::print(&text);
        }
        output::print_anew(&text)?;
        std::thread::sleep(std::time::Duration::from_secs(1));
    }
}

pub fn look(loaded: &Loaded, place: &Place) -> Result<Seen, Failure> {
    match Client::new(&place.socket).ask(&Request::Snapshot) {
        Ok(reply) => live(reply),
        Err(ControlError::NobodyThere { .. }) => written(loaded, place),
        Err(error) => Err(error.into()),
    }
}

fn live(reply: Reply) -> Result<Seen, Failure> {
    match reply {
        Reply::Snapshot { snapshot } => Ok(Seen { snapshot: *snapshot, live: true }),
        _ => Err(Failure::plain("the runner gave an unexpected answer; is it of another version?")),
    }
}

fn written(loaded: &Loaded, place: &Place) -> Result<Seen, Failure> {
    let ledger = place.open_ledger()?;
    let mut snapshot = from_ledger(loaded, ledger.as_ref())?;
    add_the_kill_switch_file(&mut snapshot, loaded);
    for job in snapshot.jobs.iter_mut().filter(|job| job.run.is_some()) {
        job.sentence = "its run was cut off when the runner ended without a word".into();
        job.next = "start the runner: it saves what the run left and goes on".into();
    }
    Ok(Seen { snapshot, live: false })
}

/// The file alone says whether it is pulled; nobody has written it down.
fn add_the_kill_switch_file(snapshot: &mut Snapshot, loaded: &Loaded) {
    let file = &loaded.settings.rollout.kill_switch_file;
    let Ok(found) = std::fs::symlink_metadata(file) else { return };
    let since = found.modified().ok().and_then(|at| jiff::Timestamp::try_from(at).ok());
    let since = since.map_or(snapshot.at, |at| Timestamp(at.as_millisecond()));
    snapshot.switches.insert(0, SwitchView { source: SwitchSource::File, subject: file.display().to_string(), since });
}

/// What a run leaves people with: where every ticket stands, and what to type next.
pub fn summary(loaded: &Loaded, place: &Place) -> Result<(), Failure> {
    let seen = written(loaded, place)?;
    output::print(&format!("{}\n\nmore about one: dirigent explain TICKET", all(&seen, false)))
}

pub fn from_ledger(loaded: &Loaded, ledger: &dyn Ledger) -> Result<Snapshot, Failure> {
    let state = ledger.load()?;
    let policy = loaded.settings.policy(&loaded.hash, false);
    Ok(engine::snapshot(&state, &policy, runtime::now()))
}

fn render(seen: &Seen, args: &StatusArgs) -> Result<String, Failure> {
    let value = match &args.ticket {
        Some(name) => serde_json::to_value(job(&seen.snapshot, name)?),
        None => serde_json::to_value(&seen.snapshot),
    }
    .map_err(Failure::plain)?;
    if let Some(path) = &args.field {
        return field(&value, path);
    }
    if args.json || args.format == Format::Json {
        return serde_json::to_string_pretty(&value).map_err(Failure::plain);
    }
    Ok(match &args.ticket {
        Some(name) => one(job(&seen.snapshot, name)?, seen.snapshot.at),
        None => all(seen, args.verbose),
    })
}

pub fn job<'a>(snapshot: &'a Snapshot, name: &str) -> Result<&'a JobView, Failure> {
    let id = find_ticket(snapshot, name).map_err(Failure::NotFound)?;
    snapshot
        .jobs
        .iter()
        .find(|job| job.id == id.as_str())
        .ok_or_else(|| Failure::NotFound(format!("no ticket `{name}` is known here")))
}

fn field(value: &Value, path: &str) -> Result<String, Failure> {
    let mut found = value;
    for part in path.split('.') {
        let next = match part.parse::<usize>() {
            Ok(index) if found.is_array() => found.get(index),
            _ => found.get(part),
        };
        found = next.ok_or_else(|| {
            let known = match found {
                Value::Object(fields) => fields.keys().cloned().collect::<Vec<_>>().join(", "),
                Value::Array(items) => format!("0 to {}", items.len().saturating_sub(1)),
                _ => "nothing below it".into(),
            };
            Failure::NotFound(format!("there is no `{part}` in `{path}`; there is {known}"))
        })?;
    }
    match found {
        Value::String(text) => Ok(text.clone()),
        other => serde_json::to_string_pretty(other).map_err(Failure::plain),
    }
}

fn heading(seen: &Seen) -> String {
    let snapshot = &seen.snapshot;
    let counts = &snapshot.counts;
    let mut lines = vec![format!(
        "{} · mode {} · {} · {} queued · {} retrying · {} waiting · {} blocked · {} done",
        if seen.live { "runner up" } else { "no runner up (from the ledger)" },
        snapshot.rollout,
        format!("{} {}", counts.running, if seen.live || counts.running == 0 { "running" } else { "cut off" }),
        counts.queued,
        counts.retrying,
        counts.waiting,
        counts.blocked,
        counts.done
    )];
    for switch in &snapshot.switches {
        lines.push(format!(
            "STOPPED: {} ({}) since {}",
            switch.source.name(),
            switch.subject,
            output::time(switch.since)
        ));
    }
    if let Some(error) = &snapshot.tracker.last_error {
        lines.push(format!("the board could not be read: {error}"));
    }
    for ticket in &snapshot.tracker.left_out {
        lines.push(format!("left out: {ticket}"));
    }
    if let Some(error) = &snapshot.workflow.reload_error {
        lines.push(format!("WORKFLOW.md as it is now is not in force: {error}"));
    }
    if let Some(error) = &snapshot.ledger_error {
        lines.push(format!("STOPPED: nothing is changed until the ledger can be written: {error}"));
    }
    for pool in snapshot.pools.iter().filter(|pool| pool.paused_until.is_some()) {
        let until = pool.paused_until.map(output::time).unwrap_or_default();
        lines.push(format!("the usage limit of `{}` is reached until {until}", pool.pool));
    }
    lines.join("\n")
}

pub fn all(seen: &Seen, verbose: bool) -> String {
    let snapshot = &seen.snapshot;
    let mut jobs: Vec<&JobView> =
        snapshot.jobs.iter().filter(|job| verbose || !matches!(job.phase, Phase::Released)).collect();
    if jobs.is_empty() {
        return format!("{}\nno tickets", heading(seen));
    }
    jobs.sort_by_key(|job| (order(job.phase), job.key.clone()));
    let age = |job: &JobView| output::span(snapshot.at.since(job.since).as_secs());
    let table = if verbose {
        let rows = jobs.iter().map(|job| {
            vec![
                job.key.clone(),
                job.phase.to_string(),
                age(job),
                job.attempts.to_string(),
                job.rework_cycles.to_string(),
                job.spent.tokens().to_string(),
                job.branch.clone(),
                output::clip(&job.title, 40),
                job.sentence.clone(),
                job.next.clone(),
            ]
        });
        output::table(&["TICKET", "PHASE", "SINCE", "RUNS", "REWORK", "TOKENS", "BRANCH", "TITLE", "WHY", "NEXT"], rows)
    } else {
        let rows = jobs.iter().map(|job| {
            vec![
                job.key.clone(),
                job.phase.to_string(),
                age(job),
                output::clip(&job.title, 40),
                output::clip(&job.sentence, 100),
            ]
        });
        output::table(&["TICKET", "PHASE", "SINCE", "TITLE", "WHY"], rows)
    };
    format!("{}\n\n{}", heading(seen), trim_lines(&table.to_string()))
}

fn trim_lines(text: &str) -> String {
    text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

/// What is moving comes first, what is over last.
fn order(phase: Phase) -> u8 {
    match phase {
        Phase::Implementing | Phase::Reviewing | Phase::Rework | Phase::Merging => 0,
        Phase::Blocked => 1,
        Phase::WaitingForHuman | Phase::ReadyToMerge => 2,
        Phase::WaitingForChecks => 3,
        Phase::Queued => 4,
        Phase::Done => 5,
        Phase::Released => 6,
    }
}

/// One ticket, field by field.
pub fn one(job: &JobView, at: Timestamp) -> String {
    let mut rows = vec![
        ("ticket", format!("{} {}", job.key, job.title)),
        ("state", job.state.clone()),
        ("phase", format!("{} for {}", job.phase, output::span(at.since(job.since).as_secs()))),
        ("why", format!("{} ({})", job.sentence, job.reason)),
        ("next", job.next.clone()),
        ("branch", job.branch.clone()),
    ];
    if let Some(pr) = &job.pr {
        let place = pr.url.clone().unwrap_or_default();
        rows.push(("pull request", format!("#{} {}, checks {} {place}", pr.number, pr.state, pr.checks)));
    }
    rows.push((
        "runs",
        format!("{} ({} failed in a row, {} rework rounds)", job.attempts, job.failures, job.rework_cycles),
    ));
    if let Some(verification) = &job.verification {
        rows.push(("verification", verification.clone()));
    }
    rows.push((
        "spent",
        format!("{} tokens, {:.4} USD, {} turns", job.spent.tokens(), job.spent.cost_usd(), job.spent.turns),
    ));
    if let Some(run) = &job.run {
        rows.push((
            "run",
            format!("{} ({}), pid {}", run.id, run.kind.name(), run.pid.map_or("-".into(), |pid| pid.to_string())),
        ));
        if let Some(said) = &run.said {
            rows.push(("last word", output::clip(said, 120)));
        }
    }
    rows.iter().map(|(name, value)| format!("{name:<14}{}", value.trim_end())).collect::<Vec<_>>().join("\n")
}
