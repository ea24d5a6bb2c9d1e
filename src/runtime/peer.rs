//! Finds out who is at the other end of the control socket or of a TCP connection. A worker is never an operator: every process that a run,
//! a gate or a hook has started is refused, whatever it pretends to be. A peer that cannot be told from a worker may look but change
//! nothing.

use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::net::UnixStream;

use crate::launcher::RUN_ID_VARIABLE;
use crate::launcher::run_mark::{self, Origin, Sign};
use crate::launcher::sockets;

/// The least time between two log lines about refusals.
const BETWEEN_LINES: Duration = Duration::from_secs(10);

/// What a peer may request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    Operator,
    /// A process of another user or another machine, which needs a token. Only over TCP.
    Stranger,
    /// A process of a run, a gate or a hook: may request nothing. The text says why.
    Worker(String),
    /// May look, but change nothing. The text says why.
    Doubtful(String),
}

impl Standing {
    /// Returns why the request is refused, or `None` if it is allowed.
    pub fn objection(&self, changes_something: bool) -> Option<&str> {
        match self {
            Self::Worker(why) => Some(why),
            Self::Doubtful(why) if changes_something => Some(why),
            Self::Doubtful(_) | Self::Operator | Self::Stranger => None,
        }
    }
}

/// Returns the standing of the process that opened this connection. To be called right after the connection was accepted.
pub fn standing(stream: &UnixStream) -> Standing {
    if !cfg!(target_os = "linux") {
        // Other systems do not show enough of foreign processes; `docs/security.md` says so.
        return Standing::Operator;
    }
    let accepted = run_mark::ticks_now();
    let Ok(peer) = stream.peer_cred() else { return doubtful("the system does not say which process asks") };
    if peer.uid() != nix::unistd::getuid().as_raw() {
        return doubtful("it belongs to another user");
    }
    let pid = peer.pid().unwrap_or(0);
    match origin_of(pid) {
        // A process that began after the connection was accepted has only inherited the process id of the one that connected.
        Origin::Outside if run_mark::began(pid).zip(accepted).is_some_and(|(began, accepted)| began > accepted) => {
            doubtful("its process is gone")
        }
        Origin::Outside => Standing::Operator,
        Origin::Run(sign) => worker(sign),
        Origin::Unclear(what) => doubtful(what),
    }
}

/// Returns the standing of the process at the other end of a TCP connection. `known` holds a process that was recently found to be an
/// operator's and is tried first; a newly found operator is stored there. It searches `/proc`, which blocks the thread.
pub fn standing_over_tcp(ours: SocketAddr, theirs: SocketAddr, known: &Mutex<Option<i32>>) -> Standing {
    if !cfg!(target_os = "linux") {
        return Standing::Operator;
    }
    let Some(socket) = sockets::other_end(ours, theirs) else {
        // The peer is on another machine, hides in a network namespace of its own, or has closed its end already.
        return if theirs.ip().to_canonical().is_loopback() { doubtful(NOT_SEEN) } else { Standing::Stranger };
    };
    if socket.inode == 0 {
        return doubtful("its process is gone");
    }
    let first = *known.lock().unwrap_or_else(PoisonError::into_inner);
    let found = sockets::holder(socket.inode, first.as_slice());
    match found.map(|pid| (pid, origin_of(pid))) {
        Some((_, Origin::Run(sign))) => worker(sign),
        _ if socket.uid != nix::unistd::getuid().as_raw() => Standing::Stranger,
        Some((pid, Origin::Outside)) => {
            *known.lock().unwrap_or_else(PoisonError::into_inner) = Some(pid);
            Standing::Operator
        }
        Some((_, Origin::Unclear(what))) => doubtful(what),
        None => doubtful(NOT_SEEN),
    }
}

const NOT_SEEN: &str = "its process cannot be seen from here";

fn origin_of(pid: i32) -> Origin {
    let ours = std::env::var(RUN_ID_VARIABLE).ok().filter(|run| !run.is_empty());
    run_mark::origin_of(pid, ours.as_deref())
}

fn worker(sign: Sign) -> Standing {
    Standing::Worker(format!(
        "refused: this comes from inside a run ({} shows it), and a worker, a gate or a hook is never an operator\n  \
         fix: say on the ticket what is needed (`tk comment`, `tk blocked`); people give commands from a shell of their own",
        sign.words()
    ))
}

fn doubtful(what: &str) -> Standing {
    Standing::Doubtful(format!(
        "refused: whoever asks cannot be told from a worker ({what})\n  \
         fix: give the command as the runner's own user, on the same system and outside of any container of its own"
    ))
}

/// Logs refusals, at a limited rate so that nobody can fill the log with them.
#[derive(Debug, Default)]
pub struct RefusalLog {
    last: Mutex<Option<(Instant, u64)>>,
}

impl RefusalLog {
    pub fn note(&self, pid: Option<i32>, request: &str, why: &str) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        match last.as_mut() {
            Some((at, held_back)) if at.elapsed() < BETWEEN_LINES => *held_back += 1,
            _ => {
                let not_told = last.map_or(0, |(_, held_back)| held_back);
                let why = why.lines().next().unwrap_or_default();
                tracing::warn!(pid, request, not_told, "a command was {why}");
                *last = Some((Instant::now(), 0));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_may_nothing_and_a_stranger_may_look() {
        let (worker, doubtful) = (Standing::Worker("w".into()), Standing::Doubtful("d".into()));
        assert_eq!([worker.objection(false), worker.objection(true)], [Some("w"), Some("w")]);
        assert_eq!([doubtful.objection(false), doubtful.objection(true)], [None, Some("d")]);
        assert_eq!(Standing::Operator.objection(true), None);
    }
}
