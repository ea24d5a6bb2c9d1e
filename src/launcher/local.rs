//! The launcher for workers on this machine.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use tokio::process::Command;

use super::adopted::Awaited;
use super::containment::{Wrapper, find_program};
use super::shield::Shield;
use super::spawner::Spawner;
use super::{Child, Containment, LaunchError, LaunchOrder, Launcher, Leftover, RUN_ID_VARIABLE, Swept, procfs, sweep};
use crate::domain::permit::Permit;
use crate::domain::run::ProcessMark;

pub struct LocalLauncher {
    wrapper: Wrapper,
    spawner: Spawner,
    /// The directory of the short-lived status files.
    scratch: PathBuf,
    launches: AtomicU64,
}

impl LocalLauncher {
    /// Removes the status files of these runs, which a killed runner may have left.
    fn forget_status_files(&self, leftovers: &[Leftover]) {
        let Ok(entries) = std::fs::read_dir(&self.scratch) else { return };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if leftovers.iter().any(|leftover| name.starts_with(&format!("{}-", leftover.run))) {
                std::fs::remove_file(entry.path()).ok();
            }
        }
    }

    /// Detects what this machine offers and starts the spawning thread. `scratch` is a directory for status files.
    pub fn start(scratch: &Path) -> Result<Self, LaunchError> {
        Self::build(scratch, |shield| Some(Wrapper::detect(shield)), None)
    }

    /// Does the same, with a shield around the runner's own state where one works.
    pub fn start_shielded(scratch: &Path, shield: &Shield) -> Result<Self, LaunchError> {
        Self::build(scratch, |shield| Some(Wrapper::detect(shield)), Some(shield))
    }

    /// Starts with a given containment. Fails if it does not work here.
    pub fn start_with(scratch: &Path, containment: Containment, shield: Option<&Shield>) -> Result<Self, LaunchError> {
        Self::build(scratch, |shield| Wrapper::find(containment, shield), shield)
    }

    fn build(
        scratch: &Path,
        find: impl FnOnce(Option<&Shield>) -> Option<Wrapper>,
        shield: Option<&Shield>,
    ) -> Result<Self, LaunchError> {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(scratch)
            .map_err(|source| LaunchError::StatusFile { path: scratch.into(), source })?;
        let wrapper = find(shield).ok_or_else(|| LaunchError::NotFound { program: "this containment".into() })?;
        let spawner = Spawner::start().map_err(|source| LaunchError::Spawn { program: "a thread".into(), source })?;
        Ok(Self { wrapper, spawner, scratch: scratch.into(), launches: AtomicU64::new(0) })
    }

    pub fn containment(&self) -> Containment {
        self.wrapper.containment
    }

    /// Whether runs are kept from writing to the runner's own state.
    pub fn is_shielded(&self) -> bool {
        self.wrapper.is_shielded()
    }

    async fn spawn(&self, order: &LaunchOrder, status_file: &Path) -> Result<tokio::process::Child, LaunchError> {
        let (command, program) = self.command(order, status_file)?;
        let started = self.spawner.spawn(command).await.ok_or(LaunchError::SpawnerGone)?;
        started.map_err(|source| LaunchError::Spawn { program: program.display().to_string(), source })
    }

    fn command(&self, order: &LaunchOrder, status_file: &Path) -> Result<(Command, PathBuf), LaunchError> {
        let (name, arguments) = order.argv.split_first().ok_or(LaunchError::EmptyCommand)?;
        if name.is_empty() {
            return Err(LaunchError::EmptyCommand);
        }
        let path = order.env.get("PATH").map_or("", String::as_str);
        let name_in_cwd =
            if name.contains('/') { order.cwd.join(name).to_string_lossy().into_owned() } else { name.clone() };
        let program =
            find_program(&name_in_cwd, path).ok_or_else(|| LaunchError::NotFound { program: name.clone() })?;
        fs::read_dir(&order.cwd).map_err(|source| LaunchError::WorkingDirectory { path: order.cwd.clone(), source })?;

        let line = self.wrapper.wrap(status_file, &order.writable, &program, arguments);
        let (first, rest) = line.split_first().ok_or(LaunchError::EmptyCommand)?;
        let mut command = Command::new(first);
        command
            .args(rest)
            .current_dir(&order.cwd)
            .env_clear()
            .envs(&order.env)
            .env(RUN_ID_VARIABLE, order.run.as_str())
            .env("PWD", &order.cwd)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        if self.wrapper.needs_process_group() {
            command.process_group(0);
        }
        Ok((command, program))
    }
}

#[async_trait]
impl Launcher for LocalLauncher {
    fn how(&self) -> &'static str {
        self.wrapper.containment.describe()
    }

    async fn launch(&self, _permit: &Permit, order: LaunchOrder) -> Result<Child, LaunchError> {
        let number = self.launches.fetch_add(1, Ordering::Relaxed);
        let status_file = self.scratch.join(format!("{}-{number}.status", order.run));
        if self.wrapper.containment.is_namespace() {
            fs::write(&status_file, b"")
                .map_err(|source| LaunchError::StatusFile { path: status_file.clone(), source })?;
        }
        let mut process = self.spawn(&order, &status_file).await.inspect_err(|_| {
            fs::remove_file(&status_file).ok();
        })?;
        let pid = process.id().and_then(|pid| i32::try_from(pid).ok()).unwrap_or(0);
        let mark = procfs::mark(pid).unwrap_or(ProcessMark { pid, started_ticks: 0 });
        Ok(Child {
            mark,
            stdin: process.stdin.take(),
            stdout: process.stdout.take(),
            stderr: process.stderr.take(),
            process,
            _awaited: Awaited::new(pid),
            run: order.run,
            containment: self.wrapper.containment,
            status_file,
            first_process: None,
            exit: None,
        })
    }

    fn holder(&self) -> Vec<OsString> {
        self.wrapper.before(Path::new("/dev/null"), &[])
    }

    fn probe(&self, mark: ProcessMark) -> bool {
        procfs::alive(mark)
    }

    async fn sweep(&self, leftovers: &[Leftover]) -> Swept {
        let swept = sweep::leftovers(leftovers).await;
        self.forget_status_files(leftovers);
        swept
    }
}
