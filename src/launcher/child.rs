//! One launched process and everything below it.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::ExitStatus;

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};

use super::adopted::Awaited;
use super::{Containment, procfs, sweep};
use crate::domain::ids::RunId;
use crate::domain::run::ProcessMark;

/// How a process exited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    Code(i32),
    Signal(i32),
}

/// A running process tree. Dropping it kills the tree.
#[derive(Debug)]
pub struct Child {
    pub mark: ProcessMark,
    pub stdin: Option<ChildStdin>,
    pub stdout: Option<ChildStdout>,
    pub stderr: Option<ChildStderr>,
    pub(super) process: tokio::process::Child,
    pub(super) _awaited: Awaited,
    pub(super) run: RunId,
    pub(super) containment: Containment,
    /// The file in which process 1 of a namespace notes that a signal killed the command.
    pub(super) status_file: PathBuf,
    /// Process 1 of the namespace, once it was seen.
    pub(super) first_process: Option<ProcessMark>,
    pub(super) exit: Option<Exit>,
}

impl Child {
    /// Waits until the whole tree is gone. Can be called again, and can be dropped while it waits.
    pub async fn wait(&mut self) -> io::Result<Exit> {
        if let Some(exit) = self.exit {
            return Ok(exit);
        }
        let status = self.process.wait().await?;
        if !self.containment.is_namespace() || status.signal().is_some() {
            // The kernel empties a namespace before its exit is seen, unless the process that holds it was killed itself.
            self.kill_group();
            sweep::strays(&[&self.run]).await;
        }
        let exit = self.read(status);
        self.exit = Some(exit);
        Ok(exit)
    }

    /// Sends TERM to everything in the tree.
    pub fn terminate(&mut self) {
        if self.exit.is_some() {
            return;
        }
        let root = match self.first_process() {
            Some(first) => first.pid,
            None => {
                self.signal_group(Signal::SIGTERM);
                self.mark.pid
            }
        };
        for pid in procfs::descendants(root) {
            kill(Pid::from_raw(pid), Signal::SIGTERM).ok();
        }
    }

    /// Kills everything in the tree at once. `wait` returns when it is gone.
    pub fn kill(&mut self) {
        if self.exit.is_some() {
            return;
        }
        match self.first_process() {
            Some(first) => {
                kill(Pid::from_raw(first.pid), Signal::SIGKILL).ok();
            }
            None => self.kill_group(),
        }
    }

    pub(super) fn first_process(&mut self) -> Option<ProcessMark> {
        if !self.containment.is_namespace() {
            return None;
        }
        if self.first_process.is_none() {
            self.first_process = procfs::only_child(self.mark.pid);
        }
        self.first_process.filter(|first| procfs::alive(*first))
    }

    fn kill_group(&mut self) {
        let below = if self.containment.is_namespace() { Vec::new() } else { procfs::descendants(self.mark.pid) };
        self.process.start_kill().ok();
        self.signal_group(Signal::SIGKILL);
        for pid in below {
            kill(Pid::from_raw(pid), Signal::SIGKILL).ok();
        }
    }

    /// Sends a signal to the process group. The process leads its own group, so the group's number stays taken as long as a process is in
    /// it.
    fn signal_group(&self, signal: Signal) {
        if self.mark.pid > 1 {
            killpg(Pid::from_raw(self.mark.pid), signal).ok();
        }
    }

    fn read(&self, status: ExitStatus) -> Exit {
        if let Some(signal) = status.signal() {
            return Exit::Signal(signal);
        }
        let code = status.code().unwrap_or(-1);
        if !self.containment.is_namespace() {
            return Exit::Code(code);
        }
        let noted = std::fs::metadata(&self.status_file).is_ok_and(|meta| meta.len() > 0);
        exit_of_shell(code, noted)
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if self.exit.is_none() {
            self.kill();
        }
        std::fs::remove_file(&self.status_file).ok();
    }
}

/// Converts a shell's exit code. A shell exits with `128 + n` for a child that signal `n` killed, and prints a note, except for SIGINT and
/// SIGPIPE.
fn exit_of_shell(code: i32, noted: bool) -> Exit {
    let signal = code - 128;
    let silent = [Signal::SIGINT as i32, Signal::SIGPIPE as i32].contains(&signal);
    if (1..=64).contains(&signal) && (noted || silent) { Exit::Signal(signal) } else { Exit::Code(code) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shells_exit_code_is_a_signal_only_when_the_shell_said_so() {
        assert_eq!(exit_of_shell(137, true), Exit::Signal(9));
        assert_eq!(exit_of_shell(137, false), Exit::Code(137));
        assert_eq!(exit_of_shell(130, false), Exit::Signal(2));
        assert_eq!(exit_of_shell(1, true), Exit::Code(1));
        assert_eq!(exit_of_shell(255, true), Exit::Code(255));
    }
}
