//! `run`: works the board, shows what happens, and stops when told to.

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::config::observability::LogFormat;
use crate::http::{self, HttpServer};
use crate::launcher::adopted;
use crate::ledger::{Holder, InstanceLock};
use crate::runtime::{self, Command, Handle, RunnerFolder, Until};
use crate::workflow::{Loaded, repo_identity};

use super::Failure;
use super::args::{LogChoice, RunArgs};
use super::context::Context;
use super::gc;
use super::landing;
use super::live::{self, LiveTable};
use super::logging::{self, Loudness, ScreenLog};
use super::open_files;
use super::output;
use super::outside;
use super::recent_lines::RecentLines;
use super::run_outcome;
use crate::runtime::assembly::{self, Runner};

/// How the work is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum View {
    /// A live table. Log lines go to the log file and into the table's own log view.
    Live,
    /// Log lines on stderr.
    Plain,
}

/// The options of one start of a runner.
#[derive(Debug, Clone)]
pub struct WorkOrder {
    pub until: Until,
    pub view: View,
    /// The file to which every event is recorded.
    pub record: Option<PathBuf>,
    /// After which time the runner shuts down by itself.
    pub timeout: Option<Duration>,
    /// The log format, in place of `observability.log`.
    pub log: Option<LogFormat>,
    pub loudness: Loudness,
}

impl WorkOrder {
    pub fn plain(until: Until, view: View) -> Self {
        Self { until, view, record: None, timeout: None, log: None, loudness: Loudness::default() }
    }
}

pub fn run(context: &Context, args: &RunArgs) -> Result<(), Failure> {
    let loaded = context.load(args.path.as_deref())?;
    let until = match (args.once || args.no_retry, args.until_idle) {
        (true, _) => Until::Once,
        (false, true) => Until::Idle,
        (false, false) => Until::Told,
    };
    let on_terminal = std::io::stdout().is_terminal() && !args.quiet && args.log.is_none();
    let view = if !args.plain && on_terminal && loaded.settings.observability.dashboard_enabled {
        View::Live
    } else {
        View::Plain
    };
    let place = context.place(&loaded);
    let order = WorkOrder {
        until,
        view,
        record: args.record.as_deref().map(|path| context.cwd.join(path)),
        timeout: args.timeout,
        log: args.log.map(|choice| match choice {
            LogChoice::Text => LogFormat::Text,
            LogChoice::Full => LogFormat::Full,
            LogChoice::Json => LogFormat::Json,
        }),
        loudness: match (args.quiet, args.verbose) {
            (true, _) => Loudness::Quiet,
            (false, true) => Loudness::Verbose,
            (false, false) => Loudness::Usual,
        },
    };
    let ended = work(context, &loaded, &place, &order)?;
    if !args.quiet {
        super::status::summary(&loaded, &place)?;
    }
    if until == Until::Told && ended != Ended::OutOfTime {
        return Ok(());
    }
    run_outcome::told(&loaded, &place, ended)
}

/// Why a runner stopped, if nothing went wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// It was told to stop, or there was nothing more to do.
    Asked,
    /// The time of `--timeout` was over.
    OutOfTime,
}

/// Prevents other processes of this user from reading the runner's environment and memory through `/proc`. They hold secrets, and workers
/// may run as the same user without a namespace. Programs that the runner starts are not affected: the setting ends with their `exec`.
fn close_to_others() {
    #[cfg(target_os = "linux")]
    if let Err(error) = nix::sys::prctl::set_dumpable(false) {
        output::complain(&format!("dirigent: other processes of this user can look into the runner: {error}"));
    }
}

/// Makes this process adopt orphans, so that no process of a run leaves the runner's process tree. The control socket recognizes workers
/// by this tree.
fn adopt_orphans() {
    if let Err(error) = adopted::adopt_orphans() {
        tracing::warn!(%error, "a worker's detached processes cannot be told from a person's");
    }
}

/// Takes the locks, works the board until the runner stops, and releases the locks.
pub fn work(context: &Context, loaded: &Loaded, place: &RunnerFolder, order: &WorkOrder) -> Result<Ended, Failure> {
    let (until, view) = (order.until, order.view);
    refuse_what_is_not_there(loaded)?;
    let connections = if loaded.settings.server.port.is_some() { http::CONNECTIONS } else { 0 };
    let files = open_files::allow_for(loaded.settings.agent.max_concurrent_agents, connections);
    if let Some(files) = files.filter(|files| !files.enough_for_one()) {
        return Err(Failure::plain(format!("{}\n  fix: {}", files.sentence(), files.fix())));
    }
    super::block_on(async { Ok(assembly::clone_repository(&loaded.settings).await?) })?;
    landing::refuse_to_start(&loaded.settings)?;
    close_to_others();
    let holder = Holder::this_process(runtime::now(), false);
    let places = assembly::locked_places(&loaded.settings, place);
    let places: Vec<_> = places.iter().map(std::path::PathBuf::as_path).collect();
    let _lock = InstanceLock::take(&places, &holder)
        .map_err(|error| error.standing_for(&place.state_dir, &loaded.settings.workspace.repo))?;
    let log = RecentLines::default();
    let shown = match view {
        View::Plain => ScreenLog::Stderr(order.log.unwrap_or(loaded.settings.observability.log)),
        View::Live => ScreenLog::Kept(log.clone()),
    };
    logging::start(place, shown, order.loudness)?;
    for warning in &loaded.warnings {
        tracing::warn!("{warning}");
    }
    if let Some(files) = files.filter(|files| !files.enough_for_all()) {
        tracing::warn!("{}; fix: {}", files.sentence(), files.fix());
    }
    if let Err(error) = repo_identity::keep(&loaded.settings.workspace.repo, &place.state_dir) {
        tracing::warn!(%error, "a repository that is moved will not find its state again");
    }
    if let Some(collected) = gc::at_start(loaded, place) {
        tracing::info!("{collected}");
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    adopt_orphans();
    runtime.block_on(async {
        tokio::spawn(adopted::collect_the_dead());
        // The server is opened before anything begins: if its port is taken, the runner must not start.
        let server = HttpServer::open(&loaded.settings.server, place).await.map_err(Failure::plain)?;
        let runner = Runner::start(&context.env, loaded, place, until, order.record.as_deref()).await?;
        let handle = runner.handle.clone();
        let stopping = Arc::new(AtomicBool::new(false));
        let stop = tokio::spawn(stop_on_signal(handle.clone(), view, stopping.clone()));
        let out_of_time = Arc::new(AtomicBool::new(false));
        let clock = tokio::spawn(stop_after(order.timeout, handle.clone(), out_of_time.clone()));
        let mut tellers = outside::tell(context, loaded, place, &runner);
        if let Some(server) = server {
            outside::announce(&server, &loaded.settings, order.loudness);
            tellers.push(outside::serve(server, context, loaded, place, &runner));
        }
        let settings = loaded.settings.observability.clone();
        let show =
            (view == View::Live).then(|| tokio::spawn(live::show(LiveTable { handle, stopping, settings, log })));
        let result = tokio::select! {
            result = runner.work() => match result {
                // With `--once` and `--until-idle`, a board that could not be read is an error.
                Ok(Some(error)) if until != Until::Told => {
                    Err(Failure::plain(format!("the board could not be read: {error}")))
                }
                Ok(_) if out_of_time.load(Ordering::Relaxed) => Ok(Ended::OutOfTime),
                Ok(_) => Ok(Ended::Asked),
                Err(error) => Err(Failure::plain(error)),
            },
            () = second_signal() => Err(Failure::plain("ended at once; the next start settles what was left")),
        };
        stop.abort();
        clock.abort();
        outside::ended(tellers).await;
        if let Some(show) = show {
            // The live table ends with the driver, after the last snapshot.
            let _ = show.await;
        }
        result
    })
}

fn refuse_what_is_not_there(loaded: &Loaded) -> Result<(), Failure> {
    if loaded.unavailable.is_empty() {
        return Ok(());
    }
    let lines: Vec<String> = loaded.unavailable.iter().map(|missing| format!("  {missing}")).collect();
    Err(Failure::plain(format!("{} asks for what is not there yet:\n{}", loaded.path.display(), lines.join("\n"))))
}

/// The signals that stop the runner: interrupt, termination, and a closed terminal.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
}

impl Signals {
    fn listen() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            _ = self.hangup.recv() => {}
        }
    }
}

/// Shuts down in good order at the first signal.
async fn stop_on_signal(handle: Handle, view: View, stopping: Arc<AtomicBool>) {
    let Ok(mut signals) = Signals::listen() else { return };
    signals.next().await;
    stopping.store(true, Ordering::Relaxed);
    if view == View::Plain {
        // The terminal may be gone, so a write error is ignored.
        let _ = writeln!(io::stderr(), "{}", live::STOPPING);
    }
    let _ = handle.command(Command::Shutdown, "signal").await;
}

/// Shuts down in good order when the time is over.
async fn stop_after(timeout: Option<Duration>, handle: Handle, out_of_time: Arc<AtomicBool>) {
    let Some(timeout) = timeout else { return };
    tokio::time::sleep(timeout).await;
    out_of_time.store(true, Ordering::Relaxed);
    let _ = handle.command(Command::Shutdown, "--timeout").await;
}

/// Resolves at the second signal.
async fn second_signal() {
    let Ok(mut signals) = Signals::listen() else { return std::future::pending().await };
    signals.next().await;
    signals.next().await;
}
