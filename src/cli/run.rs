//! `run`: works the board, shows what happens, ends when told.

use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::signal::unix::{Signal, SignalKind, signal};
use tracing::field::Field;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::{Writer, debug_fn};

use crate::config::observability::LogFormat;
use crate::launcher::adopted;
use crate::ledger::{Holder, InstanceLock};
use crate::runtime::{self, Command, Handle, RunnerFolder, Until};
use crate::workflow::Loaded;

use super::Failure;
use super::args::RunArgs;
use super::context::Context;
use super::landing;
use super::live;
use super::open_files;
use crate::runtime::assembly::{self, Runner};

/// How the work is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum View {
    /// A table that is drawn again and again; log lines go to a file.
    Live,
    /// Log lines on stderr.
    Plain,
}

pub fn run(context: &Context, args: &RunArgs) -> Result<(), Failure> {
    let loaded = context.load(args.path.as_deref())?;
    let until = if args.once { Until::Idle } else { Until::Told };
    let view = if !args.plain && std::io::stdout().is_terminal() && loaded.settings.observability.dashboard_enabled {
        View::Live
    } else {
        View::Plain
    };
    let place = context.place(&loaded);
    let record = args.record.as_deref().map(|path| context.cwd.join(path));
    work(context, &loaded, &place, until, view, record.as_deref())?;
    super::status::summary(&loaded, &place)
}

/// Workers may run as the same user, and not everywhere in a namespace: our environment and memory hold secrets that they
/// must not read from `/proc`. (Programs that we start are not affected: it ends with their `exec`.)
fn close_to_others() {
    #[cfg(target_os = "linux")]
    if let Err(error) = nix::sys::prctl::set_dumpable(false) {
        eprintln!("dirigent: other processes of this user can look into the runner: {error}");
    }
}

/// Nothing that a run starts leaves our process tree: it is what the control socket knows workers by.
fn adopt_orphans() {
    if let Err(error) = adopted::adopt_orphans() {
        tracing::warn!(%error, "a worker's detached processes cannot be told from a person's");
    }
}

/// Takes the locks, runs, and lets go of them again. `record` is the file that gets every event.
pub fn work(
    context: &Context,
    loaded: &Loaded,
    place: &RunnerFolder,
    until: Until,
    view: View,
    record: Option<&Path>,
) -> Result<(), Failure> {
    refuse_what_is_not_there(loaded)?;
    let files = open_files::allow_for(loaded.settings.agent.max_concurrent_agents);
    if let Some(files) = files.filter(|files| !files.enough_for_one()) {
        return Err(Failure::plain(format!("{}\n  fix: {}", files.sentence(), files.fix())));
    }
    landing::refuse_to_start(&loaded.settings)?;
    close_to_others();
    let holder = Holder { pid: std::process::id(), started_at: runtime::now() };
    let places = assembly::locked_places(&loaded.settings, place);
    let places: Vec<_> = places.iter().map(std::path::PathBuf::as_path).collect();
    let _lock = InstanceLock::take(&places, &holder)
        .map_err(|error| error.standing_for(&place.state_dir, &loaded.settings.workspace.repo))?;
    start_logging(loaded.settings.observability.log, place, view)?;
    for warning in &loaded.warnings {
        tracing::warn!("{warning}");
    }
    if let Some(files) = files.filter(|files| !files.enough_for_all()) {
        tracing::warn!("{}; fix: {}", files.sentence(), files.fix());
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    adopt_orphans();
    runtime.block_on(async {
        tokio::spawn(adopted::collect_the_dead());
        let runner = Runner::start(&context.env, loaded, place, until, record).await?;
        let handle = runner.handle.clone();
        let stopping = Arc::new(AtomicBool::new(false));
        let observability = &loaded.settings.observability;
        let stop = tokio::spawn(stop_on_signal(handle.clone(), view, stopping.clone()));
        let show = (view == View::Live).then(|| tokio::spawn(live::show(handle, stopping, observability.clone())));
        let result = tokio::select! {
            result = runner.work() => match result {
                // Whoever asked for one round wants to know that it could not be made.
                Ok(Some(error)) if until == Until::Idle => {
                    Err(Failure::plain(format!("the board could not be read: {error}")))
                }
                Ok(_) => Ok(()),
                Err(error) => Err(Failure::plain(error)),
            },
            () = second_signal() => Err(Failure::plain("ended at once; the next start settles what was left")),
        };
        stop.abort();
        if let Some(show) = show {
            // It ends with the driver, after the last picture.
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

/// What asks the runner to end: interrupt, termination, a terminal that went away.
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

/// The first signal shuts down in good order.
async fn stop_on_signal(handle: Handle, view: View, stopping: Arc<AtomicBool>) {
    let Ok(mut signals) = Signals::listen() else { return };
    signals.next().await;
    stopping.store(true, Ordering::Relaxed);
    if view == View::Plain {
        // Nobody may be left to read it.
        let _ = writeln!(io::stderr(), "{}", live::STOPPING);
    }
    let _ = handle.command(Command::Shutdown, "signal").await;
}

/// Resolves at the second signal.
async fn second_signal() {
    let Ok(mut signals) = Signals::listen() else { return std::future::pending().await };
    signals.next().await;
    signals.next().await;
}

/// The sentence as it is, then what is worth a field: an empty one says nothing, but that a ticket's line belongs to no
/// session is something its readers look for.
fn write_field(out: &mut Writer<'_>, field: &Field, value: &dyn std::fmt::Debug) -> std::fmt::Result {
    match (field.name(), format!("{value:?}")) {
        ("message", text) => write!(out, "{text}"),
        (name, text) if text == "\"\"" && name != "session_id" => Ok(()),
        (name, text) => write!(out, " {name}={text}"),
    }
}

fn start_logging(format: LogFormat, place: &RunnerFolder, view: View) -> Result<(), Failure> {
    let filter = EnvFilter::try_from_env("DIRIGENT_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    // A log that cannot be written (a full disk, a reader that went away) must not end the work.
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_target(false).log_internal_errors(false);
    let outcome = match (view, format) {
        (View::Live, _) => {
            let path = place.state_dir.join("dirigent.log");
            let file = std::fs::OpenOptions::new().create(true).append(true).open(&path)?;
            builder.with_ansi(false).with_writer(std::sync::Mutex::new(file)).try_init()
        }
        (View::Plain, LogFormat::Json) => builder.json().with_writer(std::io::stderr).try_init(),
        (View::Plain, LogFormat::Text) => {
            builder.with_ansi(false).fmt_fields(debug_fn(write_field)).with_writer(std::io::stderr).try_init()
        }
    };
    // A second start in one process keeps the first one's log.
    let _ = outcome;
    Ok(())
}
