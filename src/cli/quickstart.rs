//! `quickstart`: makes a sample repository with five tickets and works them to the end with the real engine. Needs no keys and no network.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use crate::domain::phase::Phase;
use crate::launcher::find_program;
use crate::runtime::Until;
use crate::tracker::tk::{Draft, Store};
use crate::workspace::Workspaces;

use super::Failure;
use super::args::QuickstartArgs;
use super::context::Context;
use super::output;
use super::run::{self, View, WorkOrder};
use super::snapshot_source;
use super::status;

const FILES: [(&str, &str); 5] = [
    (".gitignore", include_str!("../../templates/quickstart/gitignore")),
    ("WORKFLOW.md", include_str!("../../templates/quickstart/WORKFLOW.md")),
    ("README.md", include_str!("../../templates/quickstart/README.md")),
    ("agent.sh", include_str!("../../templates/quickstart/agent.sh")),
    ("check.sh", include_str!("../../templates/quickstart/check.sh")),
];

/// Id, title, and the tickets that it waits for.
const TICKETS: [(&str, &str, &[&str]); 5] = [
    ("demo-1", "Write the greeting", &[]),
    ("demo-2", "Write the farewell", &[]),
    ("demo-3", "Put the dialogue together", &["demo-1", "demo-2"]),
    ("demo-4", "Count to three", &[]),
    ("demo-5", "Paint the door", &[]),
];

pub fn quickstart(context: &Context, args: &QuickstartArgs) -> Result<(), Failure> {
    let repo = make_folder(args)?;
    let program = program(context);
    make_repository(&repo)?;
    output::print(&format!("a sample repository with {} tickets: {}\n", TICKETS.len(), repo.display()))?;
    let loaded = context.load_file(&repo.join("WORKFLOW.md"))?;
    let place = context.place(&loaded);
    let view = if std::io::stdout().is_terminal() { View::Live } else { View::Plain };
    let until = if args.serve { Until::Told } else { Until::Idle };
    run::work(context, &loaded, &place, &WorkOrder::plain(until, view))?;
    if args.serve {
        // The runner was stopped by the user, so the outcome is not checked.
        return status::summary(&loaded, &place);
    }

    let ledger = place.read_ledger()?;
    let snapshot = snapshot_source::from_ledger(&loaded, ledger.as_ref())?;
    let done = snapshot.jobs.iter().filter(|job| job.phase == Phase::Done).count();
    let blocked: Vec<_> = snapshot.jobs.iter().filter(|job| job.phase == Phase::Blocked).collect();
    let seen = snapshot_source::SnapshotSource { snapshot: snapshot.clone(), behind: snapshot_source::Behind::Nobody };
    output::print(&format!("\n{}", status::all(&seen, false)))?;
    if done != TICKETS.len() - 1 || blocked.len() != 1 {
        let first = blocked.first().map_or("demo-1", |job| job.key.as_str());
        return Err(Failure::plain(format!(
            "the sample board did not end as it should: {done} merged, {} blocked\n  fix: see what happened, in {}: `{program} explain {first}`, `{program} logs {first}`",
            blocked.len(),
            repo.display()
        )));
    }
    output::print(&summary(&repo, &program, done, &blocked.iter().map(|job| job.sentence.clone()).collect::<Vec<_>>()))
}

/// Returns what to type to call this program: its bare name, or its path if the name is not on the `PATH`.
fn program(context: &Context) -> String {
    let path = context.env.vars().get("PATH").cloned().unwrap_or_default();
    match std::env::current_exe() {
        Ok(here) if find_program("dirigent", &path).is_none() => here.display().to_string(),
        _ => "dirigent".into(),
    }
}

fn summary(repo: &Path, program: &str, done: usize, blocked: &[String]) -> String {
    let mut lines =
        vec![format!("\n{done} tickets were worked on in worktrees of their own, checked and merged into main.")];
    lines.push("demo-4 failed its check at first and was reworked with the check's output in the prompt.".into());
    for sentence in blocked {
        lines.push(format!("demo-5 waits for you: {sentence}"));
    }
    lines.push(format!(
        "\nlook around:\n  cd {}\n  git log --oneline\n  {program} explain demo-4\n  {program} tk show demo-3\nanswer the question and go on:\n  {program} tk add-note demo-5 \"Blue.\" && {program} run --once\nyour own repository:\n  {program} init",
        repo.display()
    ));
    lines.join("\n")
}

fn make_folder(args: &QuickstartArgs) -> Result<PathBuf, Failure> {
    let Some(dir) = &args.dir else {
        let folder = tempfile::Builder::new().prefix("dirigent-quickstart-").tempdir()?;
        // The folder is kept for the user to look at.
        return Ok(folder.keep());
    };
    std::fs::create_dir_all(dir)?;
    if std::fs::read_dir(dir)?.next().is_some() {
        return Err(Failure::plain(format!("{} is not empty\n  fix: name a new folder", dir.display())));
    }
    Ok(dir.canonicalize()?)
}

fn make_repository(repo: &Path) -> Result<(), Failure> {
    for (name, text) in FILES {
        std::fs::write(repo.join(name), text)?;
    }
    let store = Store::at(repo.join(".tickets"));
    std::fs::create_dir_all(store.dir())?;
    for (number, (id, title, deps)) in TICKETS.iter().enumerate() {
        // The creation times are a second apart, so that the board has the order of this list.
        let created = jiff::Timestamp::now() - jiff::SignedDuration::from_secs((TICKETS.len() - number) as i64);
        let mut draft = Draft::new(*title, created.strftime("%Y-%m-%dT%H:%M:%SZ").to_string());
        draft.deps = deps.iter().map(|dep| (*dep).to_owned()).collect();
        std::fs::write(store.path(id), draft.render(id))?;
    }
    Workspaces::init_repository(repo, "main", "A sample board").map_err(Failure::plain)
}
