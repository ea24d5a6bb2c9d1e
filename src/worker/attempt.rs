//! The order of the steps of one run: workspace, hooks, desk, prompt, launch, conversation, wrap_up.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc;

use super::attachments;
use super::conversation::{Conversation, ConversationSummary, End};
use super::desk::{Desk, DeskOrder, WorkBranch};
use super::inbox::Inbox;
use super::prompt::PromptRequest;
use super::reviewer;
use super::route::Chosen;
use super::ticket_text::Audience;
use super::wrap_up::{self, Outcome, RunResult, WorkspaceInUse};
use super::{RunOrder, Worker, WorkerEvent, Workplace, run_directory};
use crate::agent::session::Session;
use crate::config::hooks::HooksSettings;
use crate::domain::comment::Comment;
use crate::domain::failure::RunFailure;
use crate::domain::instruction;
use crate::domain::permit::Permit;
use crate::domain::phase::Phase;
use crate::domain::remark::{RemarkKey, RemarkKind};
use crate::domain::run::{RunKind, RunOutcome, RunReport, StopReason};
use crate::engine::provenance;
use crate::launcher::RUN_ID_VARIABLE;
use crate::launcher::environment::WorkerVariables;
use crate::workspace::WorkspaceError;
use crate::workspace::hooks::{Hook, run_hook};

/// How long a run that is over waits until its last events are taken.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// The workspace that a run has prepared, kept outside of its task so that it can be cleaned up after a panic.
#[derive(Clone, Default)]
struct PreparedPlace(Arc<Mutex<Option<WorkspaceInUse>>>);

impl PreparedPlace {
    fn mark(&self, place: &WorkspaceInUse) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(place.clone());
    }

    fn end(&self) -> Option<WorkspaceInUse> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Worker {
    /// Does one run from its workspace to its report. It always returns a report, and leaves nothing behind that the report does not
    /// mention.
    pub async fn run(
        &self,
        permit: Permit,
        order: RunOrder,
        heard: Inbox,
        events: mpsc::Sender<WorkerEvent>,
    ) -> RunReport {
        let prepared = PreparedPlace::default();
        let (teller, told) = mpsc::unbounded_channel();
        let telling = tokio::spawn(tell(told, events));
        let attempt = {
            let (worker, order, prepared) = (self.clone(), order.clone(), prepared.clone());
            // A task of its own: a panic in it stays there, and its child process is killed with it.
            tokio::spawn(async move { worker.attempt(permit, order, heard, teller, prepared).await })
        };
        let report = match attempt.await {
            Ok(report) => report,
            Err(error) => {
                tracing::error!(run_id = %order.run, error = %error, "a run broke off; cleaning up after it");
                let failure = RunFailure::Launch { detail: format!("the run broke off: {error}"), permanent: false };
                let past = RunResult::before_launch(Outcome::Failed(failure));
                match prepared.end() {
                    Some(place) => wrap_up::settle(self, &order, &place, past).await,
                    None => past.bare_report(),
                }
            }
        };
        // Events of the run come before its report, unless nobody receives them.
        tokio::time::timeout(LAST_WORDS, telling).await.ok();
        report
    }

    async fn attempt(
        self,
        permit: Permit,
        order: RunOrder,
        mut inbox: Inbox,
        events: mpsc::UnboundedSender<WorkerEvent>,
        prepared: PreparedPlace,
    ) -> RunReport {
        // A run that waits for its turn to prepare can still be told to stop.
        let turn = tokio::select! {
            turn = self.preparing.acquire() => turn,
            reason = inbox.stopped() => return RunResult::before_launch(stopped(reason)).bare_report(),
        };
        let place = match self.prepare(&permit, &order).await {
            Ok(place) => place,
            Err(failure) => return RunReport::bare(RunOutcome::Failed { failure }),
        };
        drop(turn);
        prepared.mark(&place);
        failpoint!("run.worktree_made");
        let past = self.work(&permit, &order, &place, &mut inbox, &events).await;
        wrap_up::settle(&self, &order, &place, past).await
    }

    async fn prepare(&self, permit: &Permit, order: &RunOrder) -> Result<WorkspaceInUse, RunFailure> {
        let prepared = match &self.workplace {
            Workplace::Worktrees(workspaces) => match order.reviewed_head() {
                None => {
                    // The branch that is merged into may differ from the branch that work begins on.
                    let (key, start) = (&order.ticket.key, &self.settings.workspace.base);
                    workspaces.prepare(permit, &order.run, key, &order.branch, start).await
                }
                Some(head) => {
                    workspaces.fetch_branch(&order.branch, &order.base_branch).await;
                    workspaces.prepare_detached(permit, &order.run, &order.ticket.key, &order.branch, head).await
                }
            }
            .map(WorkspaceInUse::Worktree),
            Workplace::Directories(directories) => {
                let key = &order.ticket.key;
                let vacated = self.vacate(directories, key).await;
                vacated.map_err(|detail| RunFailure::Workspace { detail, permanent: false })?;
                directories.prepare(permit, key).await.map(WorkspaceInUse::Directory)
            }
        };
        let place = prepared.map_err(|error| workspace_failure(&error))?;
        if let Some(warning) = place.warning() {
            tracing::warn!(run_id = %order.run, warning, "the workspace is not as fresh as it should be");
        }
        Ok(place)
    }

    /// Does everything between the prepared workspace and the end of the agent's process.
    async fn work(
        &self,
        permit: &Permit,
        order: &RunOrder,
        place: &WorkspaceInUse,
        inbox: &mut Inbox,
        events: &mpsc::UnboundedSender<WorkerEvent>,
    ) -> RunResult {
        let hooks = async {
            if place.is_new() {
                self.hook(Hook::AfterCreate, order, place.path()).await?;
                self.filled(place)?;
            }
            self.hook(Hook::BeforeRun, order, place.path()).await
        };
        let hooked = tokio::select! {
            hooked = hooks => hooked,
            reason = inbox.stopped() => return RunResult::before_launch(Outcome::Killed(reason)),
        };
        if let Err(failure) = hooked {
            return RunResult::before_launch(Outcome::Failed(failure));
        }
        failpoint!("run.hooks_done");
        if let Some(reason) = inbox.stop_asked() {
            return RunResult::before_launch(Outcome::Killed(reason));
        }
        match self.speak(permit, order, place, inbox, events).await {
            Ok(past) => past,
            Err(failure) => RunResult::before_launch(Outcome::Failed(failure)),
        }
    }

    async fn speak(
        &self,
        permit: &Permit,
        order: &RunOrder,
        place: &WorkspaceInUse,
        inbox: &mut Inbox,
        events: &mpsc::UnboundedSender<WorkerEvent>,
    ) -> Result<RunResult, RunFailure> {
        let files = RunFiles::make(self, order)?;
        let desk = Desk::open(&self.sockets, self.desk_order(order, events))
            .map_err(|error| RunFailure::Workspace { detail: error.to_string(), permanent: false })?;
        let variables = self.variables(order, &desk, &files);
        let chosen = Chosen::of(&order.route, self.settings.worker.runtime);
        let audience = self.audience();
        let attached = tokio::select! {
            attached = attachments::fetch_all(order, &audience, &files.artifacts) => attached,
            reason = inbox.stopped() => return Ok(RunResult::before_launch(Outcome::Killed(reason))),
        };
        let profile = order.reviewed_head().and_then(|_| {
            let (review, home) = (&self.settings.review, &self.settings.workspace.home);
            reviewer::profile(chosen.runtime, review.agent.as_deref(), home, &self.environment)
        });
        let request = PromptRequest {
            order,
            ticket: &order.ticket,
            worktree: place.path(),
            turn: 1,
            words: &order.undelivered,
            attached: &attached,
            runtime: chosen.runtime,
            template: chosen.template.as_deref(),
            profile: profile.as_deref(),
        };
        let prompt = self.prompt(&request).map_err(|error| RunFailure::Prompt { detail: error.to_string() })?;
        files.write_prompt(&prompt)?;
        let mut resume = order.resume.clone();
        let head_before = place.head_before();
        loop {
            let mut opened = self.open(permit, order, place, &variables, &chosen, resume.take()).await?;
            failpoint!("run.process_spawned");
            let process = opened.session.mark();
            events
                .send(WorkerEvent::Started { process, worktree: place.path().into(), head: head_before.clone() })
                .ok();
            let mut conversation = Conversation {
                worker: self,
                order,
                session: &mut opened.session,
                desk: &desk,
                inbox,
                events,
                one_shot: opened.one_shot,
                runtime: chosen.runtime,
                first_prompt: &prompt,
                worktree: place.path(),
                head: head_before.clone(),
                carried: carried(order),
                summary: ConversationSummary::default(),
            };
            let end = conversation.hold().await;
            failpoint!("run.conversation_over");
            let summary = conversation.summary;
            let again = matches!(end, End::NotResumed);
            let past = self.close(opened.session, &desk, end, summary).await;
            failpoint!("run.process_gone");
            if again && past.gone {
                continue;
            }
            return Ok(RunResult { head_before, ..past });
        }
    }

    /// Records that `after_create` has succeeded in a directory.
    fn filled(&self, place: &WorkspaceInUse) -> Result<(), RunFailure> {
        match (&self.workplace, place) {
            (Workplace::Directories(directories), WorkspaceInUse::Directory(directory)) => {
                directories.filled(directory).map_err(|error| workspace_failure(&error))
            }
            _ => Ok(()),
        }
    }

    /// Stops the process tree, and collects what the conversation left.
    async fn close(&self, mut session: Session, desk: &Desk, end: End, summary: ConversationSummary) -> RunResult {
        let grace = self.settings.agent.stop_grace;
        let gone = session.shut_down(grace.min(super::wrap_up::PATIENCE), grace).await.is_some();
        let unreported = session.usage_totals().unreported();
        let said = session.last_words().map(str::to_owned);
        session.finish();
        let declared = desk.declared();
        let outcome = wrap_up::outcome(end, declared.as_ref());
        RunResult {
            outcome,
            declared,
            evidence: desk.evidence(),
            session: summary.session,
            unreported,
            turns: summary.turns,
            ticket: summary.ticket,
            said,
            gone,
            head_before: None,
        }
    }

    fn audience(&self) -> Audience {
        let tracker = &self.settings.tracker;
        Audience {
            trusted: tracker.trusted.clone(),
            trusted_accounts: tracker.trusted_accounts.clone(),
            untrusted: tracker.untrusted_text,
            labels: tracker.required_labels.clone(),
        }
    }

    fn desk_order(&self, order: &RunOrder, events: &mpsc::UnboundedSender<WorkerEvent>) -> DeskOrder {
        DeskOrder {
            run: order.run.clone(),
            ticket: order.ticket.clone(),
            allow_followups: self.settings.gates.allow_followups,
            reads_only: order.reviewed_head().is_some(),
            audience: self.audience(),
            tickets: Arc::clone(&self.tickets),
            service: order.service.clone(),
            agent_tool: self.agent_tool(order),
            branch: match &self.workplace {
                Workplace::Worktrees(workspaces) => {
                    Some(WorkBranch { workspaces: workspaces.clone(), name: order.branch.clone() })
                }
                Workplace::Directories(_) => None,
            },
            events: events.clone(),
        }
    }

    fn variables(&self, order: &RunOrder, desk: &Desk, files: &RunFiles) -> WorkerVariables {
        WorkerVariables {
            ticket: order.ticket.id.clone(),
            key: order.ticket.key.clone(),
            run: order.run.clone(),
            attempt: order.attempt,
            phase: phase_of(order.work.kind()),
            branch: order.branch.clone(),
            base: order.base_branch.clone(),
            socket: desk.socket().into(),
            token: desk.token().into(),
            prompt_file: files.prompt.clone(),
            artifacts: files.artifacts.clone(),
        }
    }

    /// Runs a workspace hook for a run, if the hook is configured.
    pub(super) async fn hook(&self, hook: Hook, order: &RunOrder, workspace: &Path) -> Result<(), RunFailure> {
        let about = [
            (RUN_ID_VARIABLE, order.run.to_string()),
            ("DIRIGENT_TICKET_ID", order.ticket.id.to_string()),
            ("DIRIGENT_TICKET_KEY", order.ticket.key.to_string()),
            ("DIRIGENT_ATTEMPT", order.attempt.to_string()),
            ("DIRIGENT_PHASE", phase_of(order.work.kind()).name().to_owned()),
            ("DIRIGENT_BRANCH", order.branch.clone()),
            ("DIRIGENT_BASE", order.base_branch.clone()),
        ];
        let (issue_id, issue_identifier) = (order.ticket.id.as_str(), order.ticket.key.as_str());
        if script_of(&self.settings.hooks, hook).is_some() {
            tracing::info!(issue_id, issue_identifier, run = %order.run, "{issue_identifier}: hook {} started", hook.name());
        }
        self.hook_about(hook, &about, workspace).await
    }

    /// Runs a workspace hook, if it is configured, with these variables besides the user's environment.
    pub(super) async fn hook_about(
        &self,
        hook: Hook,
        about: &[(&str, String)],
        workspace: &Path,
    ) -> Result<(), RunFailure> {
        let hooks = &self.settings.hooks;
        let Some(script) = script_of(hooks, hook) else { return Ok(()) };
        let mut env = self.hook_environment();
        env.extend(about.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
        let env: BTreeMap<OsString, OsString> =
            env.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        match run_hook(hook, script, workspace, &env, hooks.timeout, &self.launcher.holder()).await {
            Ok(_) => Ok(()),
            Err(WorkspaceError::Hook { hook, detail }) => Err(RunFailure::Hook { hook: hook.into(), detail }),
            Err(error) => Err(RunFailure::Hook { hook: hook.name().into(), detail: error.to_string() }),
        }
    }
}

/// Forwards the run's events. The run itself never waits for the receiver.
async fn tell(mut told: mpsc::UnboundedReceiver<WorkerEvent>, events: mpsc::Sender<WorkerEvent>) {
    while let Some(event) = told.recv().await {
        if events.send(event).await.is_err() {
            return;
        }
    }
}

/// A run's own files, outside of its worktree.
struct RunFiles {
    prompt: PathBuf,
    artifacts: PathBuf,
}

impl RunFiles {
    fn make(worker: &Worker, order: &RunOrder) -> Result<Self, RunFailure> {
        let directory = run_directory(&worker.state_dir, &order.run);
        let files = Self { prompt: directory.join("prompt.md"), artifacts: directory.join("artifacts") };
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&files.artifacts)
            .map_err(|source| io_failure("make", &files.artifacts, &source))?;
        Ok(files)
    }

    fn write_prompt(&self, prompt: &str) -> Result<(), RunFailure> {
        OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&self.prompt)
            .and_then(|mut file| file.write_all(prompt.as_bytes()))
            .map_err(|source| io_failure("write", &self.prompt, &source))
    }
}

/// Returns the script of a hook. `None` if it is not configured or blank.
fn script_of(hooks: &HooksSettings, hook: Hook) -> Option<&str> {
    let script = match hook {
        Hook::AfterCreate => &hooks.after_create,
        Hook::BeforeRun => &hooks.before_run,
        Hook::AfterRun => &hooks.after_run,
        Hook::BeforeRemove => &hooks.before_remove,
    };
    script.as_deref().filter(|script| !script.trim().is_empty())
}

pub(super) fn phase_of(kind: RunKind) -> Phase {
    match kind {
        RunKind::Implement => Phase::Implementing,
        RunKind::Review => Phase::Reviewing,
        RunKind::Rework => Phase::Rework,
    }
}

pub(super) fn workspace_failure(error: &WorkspaceError) -> RunFailure {
    RunFailure::Workspace { detail: error.to_string(), permanent: error.is_permanent() }
}

fn io_failure(doing: &str, path: &Path, source: &std::io::Error) -> RunFailure {
    RunFailure::Workspace { detail: format!("cannot {doing} {}: {source}", path.display()), permanent: false }
}

/// Converts a stop into an outcome. A stop because of a limit counts as a failure.
pub(super) fn stopped(reason: StopReason) -> Outcome {
    match reason {
        StopReason::Limit { failure } => Outcome::Failed(failure),
        reason => Outcome::Killed(reason),
    }
}

/// Returns the remarks that the first prompt carries: the open ones, and what trusted people wrote on the ticket.
fn carried(order: &RunOrder) -> Vec<RemarkKey> {
    // Remarks are for runs that change something, not for reviews.
    if order.reviewed_head().is_some() {
        return Vec::new();
    }
    // Dirigent's own comments are no remarks, and instructions to Dirigent are for the runner.
    let is_remark = |comment: &&Comment| {
        provenance::is_trusted(&comment.author, &order.policy)
            && !provenance::is_marked(&comment.body)
            && instruction::read(&comment.body, &order.policy.tracker.mention).instructions.is_empty()
    };
    let on_ticket = order.ticket.known_comments().iter().filter(is_remark);
    let keys = on_ticket.map(|comment| RemarkKey {
        kind: RemarkKind::TicketComment,
        id: comment.id.clone(),
        version: comment.version(),
    });
    order.undelivered.iter().filter_map(|message| message.key.clone()).chain(keys).collect()
}
