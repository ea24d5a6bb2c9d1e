//! `undo`: takes back what was done for a ticket. It never changes the user's own branches, and the commits stay reachable.

use std::time::{Duration, Instant};

use crate::config::policy::ForgeKind;
use crate::domain::ids::CommitId;
use crate::domain::phase::Phase;
use crate::domain::pr::NewPr;
use crate::domain::snapshot::JobView;
use crate::engine::permit;
use crate::forge::Forge;
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
    if assembly::forge_kind(&loaded.settings) == ForgeKind::Github {
        // Without access the branch would stay on GitHub, and the next run would go on with it.
        assembly::github_forge(&loaded.settings)?;
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
        // A finished ticket may no longer be in the snapshot.
        let Ok(now) = snapshot_source::job(&seen.snapshot, &job.id) else { return Ok(()) };
        if matches!(now.phase, Phase::Merging | Phase::Done) {
            return Err(Failure::plain(format!(
                "{} is being merged, and its branch stays\n  fix: `dirigent undo {}` again, which takes the merge back",
                job.key, job.key
            )));
        }
        if !seen.behind.is_live() || now.run.is_none() {
            return Ok(());
        }
        if began.elapsed() > PATIENCE {
            return Err(Failure::plain(format!("the run of {} has not ended; try again", job.key)));
        }
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// Removes the ticket's branch, here and on GitHub. Its commits stay reachable under other refs.
fn drop_branch(loaded: &Loaded, job: &JobView) -> Result<(), Failure> {
    let workspaces = assembly::workspaces(&loaded.settings)?;
    let permit = permit::by_hand();
    block_on(async {
        let on_forge = workspaces.set_aside_on_forge(&permit, &job.branch).await.map_err(Failure::plain)?;
        if let Some(kept) = &on_forge {
            output::print(&format!("branch {} is gone from GitHub; its commits are kept as {kept}", job.branch))?;
        }
        let Some(head) = workspaces.branch_head(&job.branch).await.map_err(Failure::plain)? else {
            return if on_forge.is_some() { Ok(()) } else { output::print("there was no branch yet") };
        };
        let kept = workspaces.set_aside(&permit, &job.branch, &head).await.map_err(Failure::plain)?;
        output::print(&format!("branch {} is gone; its commits are kept as {kept}", job.branch))
    })
}

fn branch_of(loaded: &Loaded, job: &JobView) -> String {
    format!("{}undo-{}", loaded.settings.workspace.branch_prefix, crate::workspace::path::sanitise(&job.key))
}

/// Says on which branch a merged ticket was taken back; `None` if it was not.
pub fn taken_back(loaded: &Loaded, job: &JobView) -> Option<String> {
    let branch = branch_of(loaded, job);
    let workspaces = assembly::workspaces(&loaded.settings).ok().filter(|_| job.phase == Phase::Done)?;
    let head = block_on(async { workspaces.branch_head(&branch).await.map_err(Failure::plain) }).ok()??;
    Some(format!("on branch {branch} ({}); land it with `git merge {branch}`", head.short()))
}

/// Takes back a merge with a reverting commit on a new branch. The base branch is not changed, because it belongs to the user.
fn revert(loaded: &Loaded, job: &JobView) -> Result<(), Failure> {
    let on_github = assembly::forge_kind(&loaded.settings) == ForgeKind::Github;
    if job.merged_by_us != Some(true) && !on_github {
        return Err(Failure::plain(format!(
            "{} was merged by a person, in a way that only they know\n  fix: take it back with `git revert`",
            job.key
        )));
    }
    let merged = job.merged_commit.clone().map(CommitId::new).ok_or_else(|| {
        Failure::plain(format!("{}: {}, and the forge did not say as which commit", job.key, job.sentence))
    })?;
    let branch = branch_of(loaded, job);
    match on_github {
        true => block_on(revert_on_github(loaded, job, &merged, &branch)),
        false => block_on(revert_here(loaded, job, &merged, &branch)),
    }
}

async fn revert_here(loaded: &Loaded, job: &JobView, merged: &CommitId, branch: &str) -> Result<(), Failure> {
    let workspaces = assembly::workspaces(&loaded.settings)?;
    let base = &loaded.settings.pr.base_branch;
    if let Some(made) = workspaces.branch_head(branch).await.map_err(Failure::plain)? {
        return output::print(&format!(
            "{} is taken back on branch {branch} already ({})\n  land: git merge {branch}\n  make it anew: git branch -D {branch}, then `dirigent undo {}`",
            job.key,
            made.short(),
            job.key
        ));
    }
    let head = workspaces.revert(&permit::by_hand(), merged, base, branch).await.map_err(Failure::plain)?;
    output::print(&format!(
        "{} was merged as {}; branch {branch} takes it back ({})\n  look: git diff {base}...{branch}\n  land: git merge {branch}",
        job.key,
        merged.short(),
        head.short()
    ))
}

/// Opens a pull request that reverts the merge. If it is called again, it finds the same pull request.
async fn revert_on_github(loaded: &Loaded, job: &JobView, merged: &CommitId, branch: &str) -> Result<(), Failure> {
    let settings = &loaded.settings;
    let (workspaces, forge) = (assembly::workspaces(settings)?, assembly::github_forge(settings)?);
    let (permit, base) = (permit::by_hand(), &settings.pr.base_branch);
    let head = match workspaces.branch_head(branch).await.map_err(Failure::plain)? {
        Some(made) => made,
        None => {
            workspaces.fetch_base(base).await.map_err(Failure::plain)?;
            workspaces.revert(&permit, merged, base, branch).await.map_err(Failure::plain)?
        }
    };
    forge.push_branch(&permit, branch, &head, None).await.map_err(Failure::plain)?;
    let number = job.pr.as_ref().map(|pr| format!(" (#{})", pr.number)).unwrap_or_default();
    let new = NewPr {
        title: format!("Revert \"{}: {}\"", job.key, job.title),
        body: format!("Takes back {merged}{number}, which was merged for {}.", job.key),
        head_branch: branch.to_owned(),
        head,
        base_branch: base.clone(),
        draft: false,
        labels: settings.pr.required_labels.clone(),
        reviewers: settings.pr.reviewers.clone(),
    };
    let pr = forge.open_pr(&permit, &new).await.map_err(Failure::plain)?;
    output::print(&format!(
        "{} was merged as {}; pull request {} takes it back{}",
        job.key,
        merged.short(),
        pr.number,
        pr.url.map(|url| format!("\n  look: {url}")).unwrap_or_default()
    ))
}
