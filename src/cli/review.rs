//! A person's review at the terminal: `diff` shows what a ticket's head (the commit to be judged) has beyond its base, `try` checks this
//! head out into a worktree of its own. Both print the commands that come next.

use crate::config::Settings;
use crate::domain::ids::{CommitId, RunId, TicketKey};
use crate::domain::phase::Phase;
use crate::domain::snapshot::JobView;
use crate::engine::permit;
use crate::runtime::assembly;
use crate::workflow::Loaded;
use crate::workspace::{DiffStyle, Workspaces};

use super::Failure;
use super::archive;
use super::args::{DiffArgs, TicketArgs};
use super::block_on;
use super::context::Context;
use super::output;
use super::snapshot_source;

/// Appended to the name of the folder of worktrees; gives the folder for `try`.
const TRIES: &str = ".try";

pub fn diff(context: &Context, args: &DiffArgs) -> Result<(), Failure> {
    let (loaded, job, head) = judged(context, &args.ticket)?;
    let workspaces = assembly::workspaces(&loaded.settings)?;
    let base = match &job.merged_commit {
        // Merged work is already in the base, so it is compared with the commit that it was merged onto.
        Some(merged) => CommitId::new(format!("{merged}^")),
        None => base_of(&loaded.settings, &workspaces)?,
    };
    let style = match (args.stat, args.tool) {
        (true, _) => DiffStyle::Stat,
        (_, true) => DiffStyle::Tool,
        (false, false) => DiffStyle::Lines,
    };
    if !workspaces.show_diff(&base, &head, style)? {
        return Err(Failure::plain(format!(
            "git could not show {} against {}\n  fix: see above; `git fetch` if one of them is not in this repository",
            head.short(),
            base.short()
        )));
    }
    output::complain(&format!("\n{}", at_hand(&job, &head)));
    Ok(())
}

pub fn try_out(context: &Context, args: &TicketArgs) -> Result<(), Failure> {
    let (loaded, job, head) = judged(context, &args.ticket)?;
    let tries = tries(&loaded.settings)?;
    let run = RunId::new(format!("{}{}", try_prefix(&job.key), head.short()));
    let path = block_on(async {
        let there = tries.of_run(&run).await.map_err(Failure::plain)?;
        if let Some(there) = there.filter(|there| there.exists) {
            return Ok(there.worktree.path);
        }
        let key = TicketKey::new(job.key.clone());
        let made = tries.prepare_detached(&permit::by_hand(), &run, &key, &job.branch, &head).await;
        made.map(|worktree| worktree.path).map_err(Failure::plain)
    })?;
    output::print(&path.display().to_string())?;
    output::complain(&format!(
        "{} at {}, on no branch; `dirigent gc` removes it after a day, with what you changed there saved\n{}",
        job.key,
        head.short(),
        at_hand(&job, &head)
    ));
    Ok(())
}

fn try_prefix(key: &str) -> String {
    format!("try-{key}-")
}

/// Whether this is the id of a tree that `try` made of the ticket's head.
pub fn is_try_of(run: &RunId, key: &str) -> bool {
    run.as_str().strip_prefix(&try_prefix(key)).is_some_and(|head| !head.contains('-'))
}

/// Returns the workspaces for `try`. They are in a folder beside the runs' worktrees, so that no runner mistakes one for a run's.
pub fn tries(settings: &Settings) -> Result<Workspaces, Failure> {
    let mut beside = settings.clone();
    let mut root = settings.workspace.root.clone().into_os_string();
    root.push(TRIES);
    beside.workspace.root = root.into();
    Ok(assembly::workspaces(&beside)?)
}

/// Like [`tries`]; `None` if `try` was never used here.
pub fn tries_if_any(settings: &Settings) -> Result<Option<Workspaces>, Failure> {
    let mut root = settings.workspace.root.clone().into_os_string();
    root.push(TRIES);
    if std::path::Path::new(&root).exists() { tries(settings).map(Some) } else { Ok(None) }
}

/// Returns the ticket and the head that a person judges. A ticket without a commit is an error.
fn judged(context: &Context, name: &str) -> Result<(Loaded, JobView, CommitId), Failure> {
    let loaded = context.load(None)?;
    let place = context.place(&loaded);
    let seen = snapshot_source::look(&loaded, &place)?;
    let job = archive::job(&seen, &loaded, &place, name)?;
    let head = job.head.clone().map(CommitId::new).ok_or_else(|| {
        Failure::NotFound(format!("{} has no commit to look at yet: {} ({})", job.key, job.phase.words(), job.sentence))
    })?;
    Ok((loaded, job, head))
}

fn base_of(settings: &Settings, workspaces: &Workspaces) -> Result<CommitId, Failure> {
    block_on(async { workspaces.base_commit(&settings.pr.base_branch).await.map_err(Failure::plain) })
}

/// Returns the state of the ticket and the commands that can be typed next.
fn at_hand(job: &JobView, head: &CommitId) -> String {
    let key = &job.key;
    let says = format!("{key} is {}: {}", job.phase.words(), job.sentence);
    if job.phase.is_terminal() {
        return says;
    }
    let approve = match job.phase {
        Phase::WaitingForHuman => format!("\n  approve:          dirigent approve {key} --head {head}"),
        _ => String::new(),
    };
    format!(
        "{says}{approve}\n  ask for changes:  dirigent reject {key} '...'\n  tell the agent:   dirigent message {key} '...'\n  try it out:       cd \"$(dirigent try {key})\""
    )
}
