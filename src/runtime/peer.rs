//! Who is at the other end of the control socket or of a TCP connection. A worker is never an operator: whatever a run, a gate or a hook has started
//! is refused, however it dresses up, and whoever cannot be told from one may look but not touch.

use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::net::UnixStream;

use crate::launcher::RUN_ID_VARIABLE;
use crate::launcher::run_mark::{self, Origin, Sign};
use crate::launcher::sockets;

/// At most one line in the log in this time.
const BETWEEN_LINES: Duration = Duration::from_secs(10);

/// What somebody may ask for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    Operator,
    /// Of another user or another machine: a token has to speak for it. Only over TCP.
    Stranger,
    /// Of a run: may ask for nothing. The text says why.
    Worker(String),
    /// May look. The text says why not more.
    Doubtful(String),
}

impl Standing {
    /// Why this is refused, if it is.
    pub fn objection(&self, changes_something: bool) -> Option<&str> {
        match self {
            Self::Worker(why) => Some(why),
            Self::Doubtful(why) if changes_something => Some(why),
            Self::Doubtful(_) | Self::Operator | Self::Stranger => None,
        }
    }
}

/// Asked right after the connection was accepted.
pub fn standing(stream: &UnixStream) -> Standing {
    if !cfg!(target_os = "linux") {
        // Nothing can be seen of other processes here; `docs/security.md` says so.
        return Standing::Operator;
    }
    let accepted = run_mark::ticks_now();
    let Ok(peer) = stream.peer_cred() else { return doubtful("the system does not say which process asks") };
    if peer.uid() != nix::unistd::getuid().as_raw() {
        return doubtful("it belongs to another user");
    }
    let pid = peer.pid().unwrap_or(0);
    match origin_of(pid) {
        // One that began after it was accepted has only inherited the number of the one that asked.
        Origin::Outside if run_mark::began(pid).zip(accepted).is_some_and(|(began, accepted)| began > accepted) => {
            doubtful("its process is gone")
        }
        Origin::Outside => Standing::Operator,
        Origin::Run(sign) => worker(sign),
        Origin::Unclear(what) => doubtful(what),
    }
}

/// The process at the other end of a TCP connection. `known` is one that was found to be an operator's a moment ago; whoever is
/// one now is put there. Looks through `/proc`: not for a thread that others wait for.
pub fn standing_over_tcp(ours: SocketAddr, theirs: SocketAddr, known: &Mutex<Option<i32>>) -> Standing {
    if !cfg!(target_os = "linux") {
        return Standing::Operator;
    }
    let Some(socket) = sockets::other_end(ours, theirs) else {
        // Nothing of this machine, unless it hides in a namespace of its own or is closed already.
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

/// Tells the log about refusals without letting anybody fill it.
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
