//! `status`: shows where every ticket stands, from the running instance or from the ledger.

use std::io::IsTerminal;

use serde_json::Value;

use crate::domain::condition::Condition;
use crate::domain::ids::TicketId;
use crate::domain::phase::Phase;
use crate::domain::snapshot::JobView;
use crate::domain::time::Timestamp;
use crate::runtime::RunnerFolder;
use crate::tui::{banner, caps, order, troubles};
use crate::workflow::Loaded;

use super::Failure;
use super::archive;
use super::args::{Format, StatusArgs};
use super::context::Context;
use super::output;
use super::snapshot_source::{self, Behind, SnapshotSource};
use super::undo;
use super::would;

pub fn status(context: &Context, args: &StatusArgs) -> Result<(), Failure> {
    loop {
        let mut seen = snapshot_source::now(context)?;
        if args.all {
            let loaded = context.load(None)?;
            archive::add_all(&mut seen.snapshot, &loaded, &context.place(&loaded))?;
        }
        let text = render(context, &seen, args)?;
        if !args.watch {
            return output::print(&text);
        }
        output::print_anew(&text)?;
        std::thread::sleep(std::time::Duration::from_secs(1));
    }
}

/// Prints the summary at the end of `run`: where every ticket stands, and what to type next.
pub fn summary(loaded: &Loaded, place: &RunnerFolder) -> Result<(), Failure> {
    let seen = snapshot_source::written(loaded, place, Behind::Nobody)?;
    output::print(&format!("{}\n\n{}", all(&seen, false), what_to_ask(&seen)))
}

/// Returns the commands to type for tickets that wait for a person or are blocked.
fn what_to_ask(seen: &SnapshotSource) -> String {
    let in_phase = |phase| seen.snapshot.jobs.iter().filter(move |job| job.phase == phase).collect::<Vec<&JobView>>();
    let mut lines = Vec::new();
    match in_phase(Phase::WaitingForHuman).as_slice() {
        [] => {}
        [job] => lines.push(format!(
            "1 ticket waits for you: dirigent diff {key}, then dirigent approve {key} or dirigent reject {key} '...'",
            key = job.key
        )),
        [first, rest @ ..] => lines.push(format!(
            "{} tickets wait for you: dirigent diff {key}, then dirigent approve {key} or dirigent reject {key} '...' (all of them: dirigent approve --all)",
            rest.len() + 1,
            key = first.key
        )),
    }
    match in_phase(Phase::Blocked).as_slice() {
        [] => {}
        [job] => lines.push(format!("1 ticket is blocked; what it needs: dirigent explain {}", job.key)),
        [first, rest @ ..] => lines.push(format!(
            "{} tickets are blocked; what one needs: dirigent explain {}",
            rest.len() + 1,
            first.key
        )),
    }
    if lines.is_empty() { "more about one: dirigent explain TICKET".into() } else { lines.join("\n") }
}

/// Finds a ticket by its name. Archived ones are found only if the workflow file can be read, because it says where the ledger is.
fn named(context: &Context, seen: &SnapshotSource, name: &str) -> Result<JobView, Failure> {
    match context.load(None) {
        Ok(loaded) => archive::job(seen, &loaded, &context.place(&loaded), name),
        Err(_) => snapshot_source::job(&seen.snapshot, name).cloned(),
    }
}

/// Returns what would be done for the ticket if `rollout.mode` were not `observe`.
fn would_do(context: &Context, job: &JobView) -> Vec<String> {
    let loaded = context.load(None).ok();
    let told =
        loaded.and_then(|loaded| would::lines(&loaded, &context.place(&loaded), &TicketId::new(job.id.clone())).ok());
    told.unwrap_or_default()
}

fn render(context: &Context, seen: &SnapshotSource, args: &StatusArgs) -> Result<String, Failure> {
    let job = args.ticket.as_deref().map(|name| named(context, seen, name)).transpose()?;
    let value = match &job {
        Some(job) => serde_json::to_value(job),
        None => serde_json::to_value(&seen.snapshot),
    }
    .map_err(Failure::plain)?;
    if let Some(path) = &args.field {
        return field(&value, path);
    }
    if args.json || args.format == Format::Json {
        return serde_json::to_string_pretty(&value).map_err(Failure::plain);
    }
    Ok(match &job {
        Some(job) => {
            let shown = one(job, seen, &would_do(context, job));
            match context.load(None).ok().and_then(|loaded| undo::taken_back(&loaded, job)) {
                Some(undone) => format!("{shown}\n{:<14}{undone}", "taken back"),
                None => shown,
            }
        }
        None => {
            let asked =
                if seen.snapshot.jobs.is_empty() { String::new() } else { format!("\n\n{}", what_to_ask(seen)) };
            match seen.behind.what_to_do() {
                Some(todo) => format!("{}{asked}\n\n{}: {todo}", all(seen, args.verbose), seen.behind.name()),
                None => format!("{}{asked}", all(seen, args.verbose)),
            }
        }
    })
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

fn heading(seen: &SnapshotSource) -> String {
    let snapshot = &seen.snapshot;
    let counts = &snapshot.counts;
    let mut lines = vec![format!(
        "{} · mode {} · {} · {} queued · {} retrying · {} waiting · {} blocked · {} done",
        seen.behind.words(),
        snapshot.rollout,
        format!(
            "{} {}",
            counts.running,
            if seen.behind.is_live() || counts.running == 0 { "running" } else { "cut off" }
        ),
        counts.queued,
        counts.retrying,
        counts.waiting,
        counts.blocked,
        counts.done
    )];
    lines.extend(snapshot.served_at.iter().map(|url| format!("dashboard and API: {url}")));
    lines.extend(troubles(snapshot, output::time).into_iter().map(|trouble| trouble.text));
    lines.join("\n")
}

pub fn all(seen: &SnapshotSource, verbose: bool) -> String {
    let snapshot = &seen.snapshot;
    let mut jobs: Vec<&JobView> =
        snapshot.jobs.iter().filter(|job| verbose || !matches!(job.phase, Phase::Released)).collect();
    let given_back = match snapshot.counts.released {
        0 => String::new(),
        _ if verbose => String::new(),
        count => format!("\n\n{count} more: given back, gone, or closed by somebody (dirigent status --verbose)"),
    };
    if jobs.is_empty() {
        return format!("{}\nno tickets{given_back}", heading(seen));
    }
    jobs.sort_by_key(|job| (order(job.phase), job.key.clone()));
    // Text that goes into a pipe is not truncated.
    let whole = !std::io::stdout().is_terminal();
    let age = |job: &JobView| output::span(snapshot.at.since(job.since).as_secs());
    let table = if verbose {
        let rows = jobs.iter().map(|job| {
            vec![
                job.key.clone(),
                job.phase.words().to_owned(),
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
                job.phase.words().to_owned(),
                age(job),
                output::clip(&job.title, 40),
                why(job, snapshot.at, whole),
            ]
        });
        // On a narrow terminal the title goes first, then the age.
        let columns: &[usize] = match output::width() {
            Some(..60) => &[0, 1, 4],
            Some(60..90) => &[0, 1, 2, 4],
            Some(_) | None => &[0, 1, 2, 3, 4],
        };
        let headings = ["TICKET", "PHASE", "SINCE", "TITLE", "WHY"];
        let chosen = |row: Vec<String>| columns.iter().map(|at| row[*at].clone()).collect();
        output::table(&columns.iter().map(|at| headings[*at]).collect::<Vec<_>>(), rows.map(chosen))
    };
    format!("{}\n\n{}{given_back}", heading(seen), trim_lines(&table.to_string()))
}

/// Says why the ticket is where it is; for a live run also that it is quiet, or what it is doing.
fn why(job: &JobView, at: Timestamp, whole: bool) -> String {
    let doing = job.run.as_ref().and_then(|run| match (run.quiet_since, &run.tool) {
        (Some(since), _) => Some(format!("quiet for {}", output::span(at.since(since).as_secs()))),
        (None, tool) => tool.as_deref().or(run.said.as_deref()).map(|doing| output::clip(doing, 60)),
    });
    let sentence = match doing {
        Some(doing) => format!("{} ({doing})", job.sentence),
        None => job.sentence.clone(),
    };
    let sentence = output::short_run_ids(&sentence);
    if whole { output::line(&sentence) } else { output::clip(&sentence, 100) }
}

fn trim_lines(text: &str) -> String {
    text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

/// Lists the merge conditions, one per line, in the order in which they are checked.
fn conditions(all: &[Condition], at: Timestamp) -> String {
    let line = |condition: &Condition| {
        let detail =
            condition.detail.as_ref().map(|detail| format!(": {}", output::clip(detail, 100))).unwrap_or_default();
        let (name, status) = (condition.name.name(), condition.status.name());
        format!("{name:<10} {status:<8} for {}{detail}", output::span(at.since(condition.since).as_secs()))
    };
    all.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Returns the details of one ticket, one field per line.
pub fn one(job: &JobView, seen: &SnapshotSource, would: &[String]) -> String {
    let at = seen.snapshot.at;
    let mut rows = vec![
        ("ticket", format!("{} {}", job.key, job.title)),
        ("state", job.state.clone()),
        ("phase", format!("{} for {}", job.phase.words(), output::span(at.since(job.since).as_secs()))),
        ("why", format!("{} ({})", output::short_run_ids(&job.sentence), job.reason)),
        ("next", job.next.clone()),
        ("branch", job.branch.clone()),
    ];
    if let Some(detail) = &job.detail {
        rows.insert(4, ("", detail.clone()));
    }
    if !would.is_empty() {
        rows.push(("would", would.join("\n")));
    }
    if let Some(todo) = seen.behind.what_to_do() {
        rows.insert(1, ("runner", format!("{}: {todo}", seen.behind.words())));
    }
    let switch = seen.snapshot.switches.iter().find(|switch| switch.subject == job.key);
    rows.extend(switch.map(|switch| ("held", banner(switch, output::time))));
    if let Some(pr) = &job.pr {
        let place = pr.url.clone().unwrap_or_default();
        rows.push(("pull request", format!("#{} {}, checks {} {place}", pr.number, pr.state, pr.checks)));
    }
    if let Some(review) = &job.review {
        let findings = review.findings.iter().map(|shown| {
            let finding = &shown.finding;
            format!("\n{} [{}] {}: {}", finding.id, finding.severity.name(), finding.title, shown.answer)
        });
        let head = review.head.as_deref().map_or_else(|| "none yet".to_owned(), |head| head.chars().take(12).collect());
        let found: String = findings.collect();
        rows.push(("reviewed", format!("{head} ({} of {} reviews){found}", review.passes, review.max_passes)));
    }
    if !job.conditions.is_empty() {
        rows.push(("merge needs", conditions(&job.conditions, at)));
    }
    if let Some(approved) = &job.approved_head {
        let short: String = approved.chars().take(12).collect();
        let moved = job.head.as_ref().is_some_and(|head| head != approved);
        let merged = job.phase == Phase::Done;
        rows.push((
            "approved",
            if moved && !merged { format!("{short}, which the branch has left since") } else { short },
        ));
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
        format!("{} tokens, {:.4} USD, turns: {}", job.spent.tokens(), job.spent.cost_usd(), job.spent.turns),
    ));
    if !job.budget.is_empty() {
        rows.push(("budget", caps(&job.budget)));
    }
    if let Some(run) = &job.run {
        let process = match (&seen.behind, run.pid) {
            (Behind::Nobody, _) => "cut off".to_owned(),
            (_, Some(pid)) => format!("pid {pid}"),
            (_, None) => "pid -".to_owned(),
        };
        rows.push(("run", format!("{} ({}), {process}", output::short_run(&run.id), run.kind.name())));
        if let Some(since) = run.quiet_since {
            rows.push(("quiet", format!("nothing was heard for {}", output::span(at.since(since).as_secs()))));
        }
        if let Some(model) = &run.model {
            rows.push(("model", output::clip(model, 120)));
        }
        if let Some(tool) = &run.tool {
            rows.push(("tool", output::clip(tool, 120)));
        }
        if let Some(said) = &run.said {
            rows.push(("last word", output::clip(said, 120)));
        }
    }
    // Further lines of a value are indented below its first line.
    let row = |(name, value): &(&str, String)| {
        let value = value.trim_end().replace('\n', &format!("\n{:14}", ""));
        format!("{name:<14}{value}")
    };
    rows.iter().map(row).collect::<Vec<_>>().join("\n")
}
