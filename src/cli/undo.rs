//! `undo`: takes back what was done for a ticket. Nothing of the user's is touched, and nothing is lost.

use std::time::{Duration, Instant};

use crate::domain::ids::CommitId;
use crate::domain::phase::Phase;
use crate::domain::snapshot::JobView;
use crate::engine::permit;
use crate::runtime::{Request, RunnerFolder};
use crate::workflow::Loaded;

use super::Failure;
use super::archive;
use super::args::TicketArgs;
use super::block_on;
use super::context::Context;
use super::operate;
use super::output;
use super::snapshot_source;
use crate::runtime::assembly;

const PATIENCE: Duration = Duration::from_secs(60);

pub fn undo(context: &Context, args: &TicketArgs) -> Result<(), Failure> {
    let loaded = context.load(None)?;
    let place = context.place(&loaded);
    let seen = snapshot_source::look(&loaded, &place)?;
    let job = archive::job(&seen, &loaded, &place, &args.ticket)?;
    if job.phase == Phase::Done {
        return revert(&loaded, &job);
    }
    operate::tell(context, &Request::Forget { ticket: job.id.clone() })?;
    wait_until_stopped(&loaded, &place, &job)?;
    drop_branch(&loaded, &job)?;
    output::print(&format!("{} is given back; `dirigent retry {}` starts it afresh", job.key, job.key))
}

fn wait_until_stopped(loaded: &Loaded, place: &RunnerFolder, job: &JobView) -> Result<(), Failure> {
    let began = Instant::now();
    loop {
        let seen = snapshot_source::look(loaded, place)?;
        // What is over may have left the picture.
        let Ok(now) = snapshot_source::job(&seen.snapshot, &job.id) else { return Ok(()) };
        if !seen.behind.is_live() || now.run.is_none() {
            return Ok(());
        }
        if began.elapsed() > PATIENCE {
            return Err(Failure::plain(format!("the run of {} has not ended; try again", job.key)));
        }
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// The branch goes, its commits stay reachable.
fn drop_branch(loaded: &Loaded, job: &JobView) -> Result<(), Failure> {
    let workspaces = assembly::workspaces(&loaded.settings)?;
    block_on(async {
        let Some(head) = workspaces.branch_head(&job.branch).await.map_err(Failure::plain)? else {
            return output::print("there was no branch yet");
        };
        let kept = workspaces.set_aside(&permit::by_hand(), &job.branch, &head).await.map_err(Failure::plain)?;
        output::print(&format!("branch {} is gone; its commits are kept as {kept}", job.branch))
    })
}

/// What was merged is taken back by a commit on a branch: the base is the user's to move.
fn revert(loaded: &Loaded, job: &JobView) -> Result<(), Failure> {
    if job.merged_by_us != Some(true) {
        return Err(Failure::plain(format!(
            "{} was merged by a person, in a way that only they know\n  fix: take it back with `git revert`",
            job.key
        )));
    }
    let ledger_sentence = &job.sentence;
    let workspaces = assembly::workspaces(&loaded.settings)?;
    let base = loaded.settings.pr.base_branch.clone();
    block_on(async {
        let merged = job.merged_commit.clone().map(CommitId::new).ok_or_else(|| {
            Failure::plain(format!("{}: {ledger_sentence}, and the forge did not say as which commit", job.key))
        })?;
        let branch =
            format!("{}undo-{}", loaded.settings.workspace.branch_prefix, crate::workspace::path::sanitise(&job.key));
        if let Some(made) = workspaces.branch_head(&branch).await.map_err(Failure::plain)? {
            return output::print(&format!(
                "{} is taken back on branch {branch} already ({})\n  land: git merge {branch}\n  make it anew: git branch -D {branch}, then `dirigent undo {}`",
                job.key,
                made.short(),
                job.key
            ));
        }
        let head = workspaces.revert(&permit::by_hand(), &merged, &base, &branch).await.map_err(Failure::plain)?;
        output::print(&format!(
            "{} was merged as {}; branch {branch} takes it back ({})\n  look: git diff {base}...{branch}\n  land: git merge {branch}",
            job.key,
            merged.short(),
            head.short()
        ))
    })
}
