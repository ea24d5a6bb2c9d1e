//! What happens after a run, however it ended: makes sure that the process tree is gone, reads from git what was done, saves the work, and
//! only then removes the workspace.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::attempt::{stopped, workspace_failure};
use super::conversation::End;
use super::{RunOrder, Worker, Workplace};
use crate::config::workspace::{Keep, OnDirty};
use crate::domain::evidence::Evidence;
use crate::domain::failure::RunFailure;
use crate::domain::ids::{CommitId, SessionId};
use crate::domain::job::TicketFacts;
use crate::domain::run::{Declared, RunOutcome, RunReport, StopReason};
use crate::domain::ticket::Ticket;
use crate::domain::usage::Usage;
use crate::engine::select;
use crate::gates::claims::{self, Changed};
use crate::launcher::{Exit, Leftover};
use crate::workspace::directory::{Directories, DirectoryWorkspace};
use crate::workspace::hooks::Hook;
use crate::workspace::{WorkStatus, Workspaces, Worktree};

/// How long an agent whose work is over may take to exit by itself.
pub const PATIENCE: Duration = Duration::from_secs(2);
const TRACKER_LIMIT: Duration = Duration::from_secs(15);

/// A run's workspace.
#[derive(Debug, Clone)]
pub enum WorkspaceInUse {
    Worktree(Worktree),
    Directory(DirectoryWorkspace),
}

impl WorkspaceInUse {
    pub fn path(&self) -> &Path {
        match self {
            Self::Worktree(worktree) => &worktree.path,
            Self::Directory(directory) => &directory.path,
        }
    }

    pub fn is_new(&self) -> bool {
        match self {
            Self::Worktree(_) => true,
            Self::Directory(directory) => directory.created,
        }
    }

    pub fn head_before(&self) -> Option<CommitId> {
        match self {
            Self::Worktree(worktree) => Some(worktree.head_before.clone()),
            Self::Directory(directory) => directory.head(),
        }
    }

    pub fn warning(&self) -> Option<&str> {
        match self {
            Self::Worktree(worktree) => worktree.warning.as_deref(),
            Self::Directory(_) => None,
        }
    }
}

/// How the run went as far as can be told without git.
#[derive(Debug, Default)]
pub enum Outcome {
    #[default]
    Normal,
    Failed(RunFailure),
    Killed(StopReason),
}

/// The result of the conversation.
#[derive(Debug, Default)]
pub struct RunResult {
    pub outcome: Outcome,
    pub declared: Option<Declared>,
    pub evidence: Vec<Evidence>,
    pub session: Option<SessionId>,
    pub unreported: Usage,
    pub turns: u32,
    /// What the agent said in its last turn.
    pub said: Option<String>,
    /// The ticket as it was last read during the run.
    pub ticket: Option<Ticket>,
    /// Whether the process tree is known to be gone.
    pub gone: bool,
    /// The head of the repository in a directory when the agent began.
    pub head_before: Option<CommitId>,
}

impl RunResult {
    pub fn before_launch(outcome: Outcome) -> Self {
        Self { outcome, gone: true, ..Self::default() }
    }

    pub fn bare_report(self) -> RunReport {
        RunReport {
            declared: self.declared,
            evidence: self.evidence,
            session: self.session,
            unreported_usage: self.unreported,
            turns: self.turns,
            ..RunReport::bare(match self.outcome {
                Outcome::Normal => RunOutcome::Done,
                Outcome::Failed(failure) => RunOutcome::Failed { failure },
                Outcome::Killed(reason) => RunOutcome::Killed { reason },
            })
        }
    }
}

/// Combines how the conversation ended with what was declared. A declared failure is a failure; another declaration makes up for a failed
/// end. A stop from outside stays a stop.
pub fn outcome(end: End, declared: Option<&Declared>) -> Outcome {
    let outcome = match end {
        End::TurnsOver | End::Exited { exit: Exit::Code(0), .. } => Outcome::Normal,
        End::Exited { exit: Exit::Code(code), said } => Outcome::Failed(RunFailure::Exit { code, said }),
        End::Exited { exit: Exit::Signal(signal), said } => Outcome::Failed(RunFailure::Signal { signal, said }),
        End::Failed(failure) => Outcome::Failed(failure),
        End::Stopped(reason) => stopped(reason),
        End::NotResumed => {
            Outcome::Failed(RunFailure::Handshake { detail: "the earlier conversation could not be resumed".into() })
        }
    };
    match (outcome, declared) {
        (Outcome::Normal | Outcome::Failed(_), Some(Declared::Failed { why })) => {
            Outcome::Failed(RunFailure::GaveUp { why: why.clone() })
        }
        (Outcome::Failed(_), Some(_)) => Outcome::Normal,
        (outcome, _) => outcome,
    }
}

/// Makes sure that the process tree is gone, saves the work, removes the workspace, and returns the report.
pub async fn settle(worker: &Worker, order: &RunOrder, place: &WorkspaceInUse, result: RunResult) -> RunReport {
    let leftover = Leftover { run: order.run.clone(), process: None };
    let swept = worker.launcher.sweep(&[leftover]).await;
    if swept.killed > 0 {
        tracing::warn!(run_id = %order.run, killed = swept.killed, "processes of the run were still there");
    }
    let alive = !result.gone || !swept.survivors.is_empty();
    match (place, &worker.workplace) {
        (WorkspaceInUse::Worktree(worktree), Workplace::Worktrees(workspaces)) => {
            Settlement { worker, order, workspaces, worktree, alive }.write(result).await
        }
        (WorkspaceInUse::Directory(directory), Workplace::Directories(directories)) => {
            if alive {
                occupy(directories, order);
                // What is still at work there may not be disturbed; the next run empties it once that is gone.
                if directories.is_half_filled(&directory.path) {
                    return result.bare_report();
                }
            }
            match directories.discard_half_filled(directory).await {
                // The directory is gone, so `after_run` has nothing to run in.
                Ok(true) => return result.bare_report(),
                Ok(false) => {}
                Err(error) => {
                    tracing::warn!(run_id = %order.run, error = %error, "a half-filled directory stays; the next run empties it");
                    return result.bare_report();
                }
            }
            let standing = directory.standing(result.head_before.as_ref());
            log_hook(worker, order, Hook::AfterRun, place.path()).await;
            RunReport {
                base: standing.base,
                head_before: result.head_before.clone(),
                head: standing.head,
                commits_ahead: standing.commits_ahead,
                ..result.bare_report()
            }
        }
        (WorkspaceInUse::Worktree(_), Workplace::Directories(_))
        | (WorkspaceInUse::Directory(_), Workplace::Worktrees(_)) => {
            RunReport { kept_worktree: Some(place.path().into()), ..result.bare_report() }
        }
    }
}

/// Marks a directory in which processes of this run may still be at work.
fn occupy(directories: &Directories, order: &RunOrder) {
    if let Err(error) = directories.occupy(&order.ticket.key, &order.run) {
        tracing::error!(run_id = %order.run, error = %error, "processes of the run are still there, and that cannot be kept in mind");
    }
}

struct Settlement<'a> {
    worker: &'a Worker,
    order: &'a RunOrder,
    workspaces: &'a Workspaces,
    worktree: &'a Worktree,
    /// Whether a process could not be killed; its worktree stays then.
    alive: bool,
}

impl Settlement<'_> {
    async fn write(&self, mut result: RunResult) -> RunReport {
        if self.order.reviewed_head().is_some() {
            return self.throw_away(result).await;
        }
        let mut work_status = self.work_status().await;
        if matches!(result.outcome, Outcome::Normal)
            && let Err(failure) = self.take_in(&result, &mut work_status).await
        {
            result.outcome = Outcome::Failed(failure);
        }
        if matches!(result.outcome, Outcome::Normal) && !self.progressed(&result, work_status.as_ref()).await {
            let gone = self.worktree.path.symlink_metadata().is_err();
            result.outcome = Outcome::Failed(if gone { RunFailure::WorktreeGone } else { RunFailure::NoProgress });
        }
        let ticket_blocked = matches!(result.declared, Some(Declared::Blocked { .. }));
        let success = matches!(result.outcome, Outcome::Normal) && !ticket_blocked;
        let mut report = result.bare_report();
        report.base = Some(self.worktree.base.clone());
        report.head_before = Some(self.worktree.head_before.clone());
        if let Some(work_status) = work_status {
            report.head = work_status.head;
            report.commits_ahead = work_status.commits_ahead;
        }
        report.contradicted = self.contradicted(&report).await;
        failpoint!("run.before_salvage");
        match self.workspaces.salvage(&self.worktree.path, &self.order.run).await {
            Ok(salvage) => report.salvage = salvage,
            Err(error) => {
                // Nothing is deleted that is not saved.
                tracing::error!(run_id = %self.order.run, path = %self.worktree.path.display(), error = %error,
                    "the work could not be salvaged; its worktree stays");
                report.kept_worktree = Some(self.worktree.path.clone());
            }
        }
        failpoint!("run.salvaged");
        log_hook(self.worker, self.order, Hook::AfterRun, &self.worktree.path).await;
        failpoint!("run.before_removal");
        self.clear(&mut report, success).await;
        failpoint!("run.worktree_removed");
        report
    }

    /// Ends a review: only what the reviewer said is kept.
    async fn throw_away(&self, mut result: RunResult) -> RunReport {
        let said = result.said.take();
        let mut report = RunReport { said, ..result.bare_report() };
        log_hook(self.worker, self.order, Hook::AfterRun, &self.worktree.path).await;
        if self.alive {
            report.kept_worktree = Some(self.worktree.path.clone());
            return report;
        }
        log_hook(self.worker, self.order, Hook::BeforeRemove, &self.worktree.path).await;
        if let Err(error) = self.workspaces.discard_detached(self.worktree).await {
            tracing::error!(run = %self.order.run, path = %self.worktree.path.display(), error = %error,
                "the tree of a review could not be removed");
            report.kept_worktree = Some(self.worktree.path.clone());
        }
        report
    }

    async fn work_status(&self) -> Option<WorkStatus> {
        match self.workspaces.work_status(self.worktree).await {
            Ok(work_status) => Some(work_status),
            Err(error) => {
                tracing::error!(run_id = %self.order.run, error = %error, "git cannot tell what the run did");
                None
            }
        }
    }

    /// Commits the uncommitted work of a successful run to its branch. Fails if `workspace.on_dirty` is `fail`.
    async fn take_in(&self, result: &RunResult, work_status: &mut Option<WorkStatus>) -> Result<(), RunFailure> {
        let blocked = matches!(result.declared, Some(Declared::Blocked { .. }));
        let Some(found) = work_status.as_ref() else { return Ok(()) };
        if blocked || (found.dirty.is_empty() && found.stray_head.is_none()) {
            return Ok(());
        }
        if !found.dirty.is_empty() && self.worker.settings.workspace.on_dirty == OnDirty::Fail {
            return Err(RunFailure::Dirty);
        }
        let ticket = &self.order.ticket;
        let message = format!("{}: {}\n\nUncommitted work of run {}.", ticket.key, ticket.title, self.order.run);
        self.workspaces.commit_dirty(self.worktree, &message).await.map_err(|error| workspace_failure(&error))?;
        *work_status = self.work_status().await;
        Ok(())
    }

    /// Whether the run achieved something: a new commit, evidence, a declared result or a ticket that moved on.
    async fn progressed(&self, result: &RunResult, work_status: Option<&WorkStatus>) -> bool {
        if result.declared.is_some() || !result.evidence.is_empty() {
            return true;
        }
        let head = work_status.and_then(|work_status| work_status.head.as_ref());
        if head.is_some_and(|head| *head != self.worktree.head_before) {
            return true;
        }
        let ticket = match &result.ticket {
            Some(ticket) => Some(ticket.clone()),
            None => {
                let answer = self.worker.tickets.read(&self.order.ticket.id);
                tokio::time::timeout(TRACKER_LIMIT, answer).await.ok().and_then(Result::ok).flatten()
            }
        };
        ticket.is_some_and(|ticket| {
            select::moved_on(&self.order.ticket.state, &TicketFacts::of(&ticket), &self.order.policy)
        })
    }

    /// Returns the claims in the evidence that contradict what git shows, or that cannot be checked with it.
    async fn contradicted(&self, report: &RunReport) -> Vec<String> {
        if report.evidence.is_empty() {
            return Vec::new();
        }
        let Some(head) = &report.head else {
            return claims::contradicted_without_changes(&report.evidence, "git does not show the head of the branch");
        };
        match self.workspaces.changes(&self.worktree.base, head).await {
            Ok(changes) => {
                let changes: Vec<Changed<'_>> =
                    changes.iter().map(|change| Changed { path: &change.path, action: change.action }).collect();
                claims::contradicted(&report.evidence, &changes)
            }
            Err(error) => {
                tracing::warn!(run_id = %self.order.run, error = %error, "the evidence could not be checked");
                claims::contradicted_without_changes(&report.evidence, &error.to_string())
            }
        }
    }

    async fn clear(&self, report: &mut RunReport, success: bool) {
        let keep = match self.worker.settings.workspace.keep {
            Keep::Never => false,
            Keep::OnFailure => !success,
            Keep::Always => true,
        };
        if keep || self.alive || report.kept_worktree.is_some() {
            if let Err(error) = self.workspaces.keep(self.worktree).await {
                tracing::warn!(run_id = %self.order.run, error = %error, "the kept worktree still holds its branch");
            }
            report.kept_worktree = Some(self.worktree.path.clone());
            return;
        }
        log_hook(self.worker, self.order, Hook::BeforeRemove, &self.worktree.path).await;
        match self.workspaces.remove(self.worktree).await {
            // A hook may have left changes after the first salvage.
            Ok(removal) => report.salvage = removal.salvage.or(report.salvage.take()),
            Err(error) => {
                tracing::error!(run_id = %self.order.run, path = %self.worktree.path.display(), error = %error,
                    "the worktree could not be removed");
                report.kept_worktree = Some(PathBuf::from(&self.worktree.path));
            }
        }
    }
}

/// Runs a hook after the run. A failure is logged and does not change the run's outcome.
async fn log_hook(worker: &Worker, order: &RunOrder, hook: Hook, workspace: &Path) {
    if let Err(error) = worker.hook(hook, order, workspace).await {
        tracing::warn!(run_id = %order.run, error = %error, "a hook failed");
    }
}
