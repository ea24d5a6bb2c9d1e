//! Binds a protocol to a child process: bytes to lines, lines to events, the transcript, deadlines of the handshake.
//!
//! A session reports events and does what it is told; the worker decides when to prompt, stop or give up.

mod events;
mod handshake;
mod intake;
mod last_words;

use std::borrow::Cow;
use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::time::{Instant, sleep_until};

use self::events::parked;
pub use self::events::{SessionEvent, Trouble, now, reset_time};
use self::handshake::Handshake;
pub use self::handshake::HandshakeLimits;
use self::last_words::LastWords;
use super::framing::{Framer, LINE_LIMIT};
use super::spent_file::{self, SpentFile};
use super::transcript::{Stream, Transcript};
use super::usage_totals::UsageTotals;
use super::{Answer, Opening, Protocol, Reaction};
use crate::domain::ids::SessionId;
use crate::domain::run::ProcessMark;
use crate::domain::usage::Usage;
use crate::launcher::{Child, Exit, Orphans};

/// Few lines are longer, and two hundred workers may be alive.
const STDOUT_BUFFER: usize = 4 << 10;
const STDERR_BUFFER: usize = 2 << 10;
/// How often orphans of an interrupted turn are looked for.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// How many bytes of stderr are kept to explain an exit.
const STDERR_TAIL: usize = 2 << 10;
/// How long pipes that another process still holds are read after the exit.
const DRAIN_LIMIT: Duration = Duration::from_secs(5);
/// How long to wait after a kill for a process that the kernel does not release.
const KILL_LIMIT: Duration = Duration::from_secs(30);

pub struct Session {
    child: Child,
    protocol: Box<dyn Protocol>,
    stdin: Option<ChildStdin>,
    outgoing: Vec<u8>,
    close_when_sent: bool,
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    out_buffer: Box<[u8]>,
    err_buffer: Box<[u8]>,
    out_lines: Framer,
    err_lines: Framer,
    transcript: Transcript,
    usage_totals: UsageTotals,
    /// `None` if it was not requested or cannot be written.
    spent_file: Option<SpentFile>,
    /// The folder for what each conversation has used, and the file of this one once it has begun.
    conversations: Option<PathBuf>,
    conversation_file: Option<SpentFile>,
    last_words: LastWords,
    heard: VecDeque<SessionEvent>,
    stderr_tail: Vec<u8>,
    trouble: Option<Trouble>,
    handshake: Option<Handshake>,
    interrupting: bool,
    /// Set from an interrupted turn until the end of the next one: the search for orphans of its command, and when to look again.
    orphans: Option<(Orphans, Instant)>,
    exit: Option<(Exit, Instant)>,
    /// A secret that the handshake may contain and the transcript must not show.
    hidden: Option<SecretString>,
}

enum Step {
    Out(usize),
    Err(usize),
    Sent(io::Result<usize>),
    Exit(io::Result<Exit>),
    DrainOver,
    Overdue,
    LookForOrphans,
}

impl Session {
    /// Opens the conversation with a child that was just launched.
    pub fn open(
        mut child: Child,
        mut protocol: Box<dyn Protocol>,
        transcript: Transcript,
        opening: &Opening,
        limits: HandshakeLimits,
    ) -> Self {
        let first = protocol.open(opening);
        let mut session = Self {
            stdin: child.stdin.take(),
            stdout: child.stdout.take(),
            stderr: child.stderr.take(),
            child,
            protocol,
            outgoing: Vec::new(),
            close_when_sent: false,
            out_buffer: vec![0; STDOUT_BUFFER].into(),
            err_buffer: vec![0; STDERR_BUFFER].into(),
            out_lines: Framer::new(LINE_LIMIT),
            err_lines: Framer::new(LINE_LIMIT),
            transcript,
            usage_totals: UsageTotals::default(),
            spent_file: None,
            conversations: None,
            conversation_file: None,
            last_words: LastWords::default(),
            heard: VecDeque::new(),
            stderr_tail: Vec::new(),
            trouble: None,
            handshake: Some(Handshake::begun(limits)),
            interrupting: false,
            orphans: None,
            exit: None,
            hidden: opening.desk.as_ref().map(|desk| desk.token.clone()),
        };
        session.react(first);
        session
    }

    pub fn mark(&self) -> ProcessMark {
        self.child.mark
    }

    /// Waits for the next event. Can be dropped and called again.
    pub async fn next(&mut self) -> SessionEvent {
        loop {
            if let Some(heard) = self.heard.pop_front() {
                return heard;
            }
            if let Some((exit, _)) = self.exit
                && self.stdout.is_none()
                && self.stderr.is_none()
            {
                return SessionEvent::Ended(exit);
            }
            match self.step().await {
                Step::Out(count) => self.take_stdout(count),
                Step::Err(count) => self.take_stderr(count),
                Step::Sent(sent) => self.take_sent(sent),
                Step::Exit(exit) => {
                    let exit = exit.unwrap_or_else(|error| {
                        self.note(&format!("the process could not be waited for: {error}"));
                        Exit::Code(-1)
                    });
                    self.stdin = None;
                    self.exit = Some((exit, Instant::now() + DRAIN_LIMIT));
                }
                Step::DrainOver => {
                    self.take_stdout(0);
                    self.take_stderr(0);
                }
                Step::Overdue => {
                    let detail = self.handshake.take().map(|handshake| handshake.overdue());
                    return SessionEvent::HandshakeOverdue { detail: detail.unwrap_or_default() };
                }
                Step::LookForOrphans => self.look_for_orphans(),
            }
        }
    }

    async fn step(&mut self) -> Step {
        let overdue = self.handshake.as_ref().filter(|_| self.exit.is_none()).map(Handshake::deadline);
        let drain_until = self.exit.map(|(_, until)| until);
        let look_at = self.orphans.as_ref().filter(|_| self.exit.is_none()).map(|(_, at)| *at);
        let Self { child, stdin, outgoing, stdout, stderr, out_buffer, err_buffer, .. } = self;
        tokio::select! {
            // An error while reading is treated as the end of the stream.
            count = read(stdout, out_buffer), if stdout.is_some() => Step::Out(count),
            count = read(stderr, err_buffer), if stderr.is_some() => Step::Err(count),
            sent = write(stdin, outgoing), if stdin.is_some() && !outgoing.is_empty() => Step::Sent(sent),
            exit = child.wait(), if drain_until.is_none() => Step::Exit(exit),
            () = until(drain_until), if drain_until.is_some() => Step::DrainOver,
            () = until(overdue), if overdue.is_some() => Step::Overdue,
            () = until(look_at), if look_at.is_some() => Step::LookForOrphans,
        }
    }

    fn react(&mut self, reaction: Reaction) {
        let at = now();
        for line in reaction.send {
            let shown = self.hidden.iter().fold(Cow::Borrowed(line.as_str()), |shown, hidden| {
                let hidden = hidden.expose_secret();
                if shown.contains(hidden) { Cow::Owned(shown.replace(hidden, "***")) } else { shown }
            });
            for part in shown.split('\n') {
                self.transcript.write(at, Stream::Stdin, part.as_bytes());
            }
            if self.stdin.is_some() {
                self.outgoing.extend_from_slice(line.as_bytes());
                self.outgoing.push(b'\n');
            }
        }
        for event in reaction.events {
            self.take_event(event, at);
        }
    }

    fn look_for_orphans(&mut self) {
        let Some((orphans, at)) = &mut self.orphans else { return };
        *at = Instant::now() + LOOK_EVERY;
        let found = self.child.end_orphans(orphans);
        if found > 0 {
            self.note(&format!("ending what the interrupted turn left running: {found} without a parent"));
        }
    }

    /// Starts a turn.
    pub fn prompt(&mut self, text: &str) {
        let reaction = self.protocol.prompt(text);
        self.react(reaction);
        self.close_when_sent = self.protocol.one_shot();
        if self.close_when_sent && self.outgoing.is_empty() {
            self.stdin = None;
        }
    }

    /// Sends a message into the running turn. `false` if this agent takes no messages during a turn.
    pub fn steer(&mut self, text: &str) -> bool {
        let reaction = self.protocol.steer(text);
        let can = reaction.is_some();
        self.react(reaction.unwrap_or_default());
        can
    }

    /// Requests the end of the running turn. `false` if this agent cannot interrupt a turn.
    pub fn interrupt(&mut self) -> bool {
        let reaction = self.protocol.interrupt();
        let can = reaction.is_some();
        self.interrupting |= can;
        self.react(reaction.unwrap_or_default());
        can
    }

    pub fn answer(&mut self, ask: &str, answer: &Answer) {
        self.usage_totals.tool_finished(&parked(ask));
        let reaction = self.protocol.answer(ask, answer);
        self.react(reaction);
    }

    /// Writes a note of the runner to the transcript.
    pub fn note(&mut self, text: &str) {
        self.transcript.write(now(), Stream::Note, text.as_bytes());
    }

    pub fn usage_totals(&mut self) -> &mut UsageTotals {
        &mut self.usage_totals
    }

    /// From now on writes all usage to this file as soon as it is reported.
    pub fn account_in(&mut self, file: SpentFile) {
        self.spent_file = Some(file);
    }

    /// From now on also adds up what each conversation uses in a file of this folder, so that a later process that resumes it can tell
    /// the earlier part of its totals.
    pub fn account_conversations_in(&mut self, folder: PathBuf) {
        self.conversations = Some(folder);
    }

    fn conversation_began(&mut self, id: &SessionId) {
        let Some(folder) = &self.conversations else { return };
        let path = spent_file::of_conversation(folder, id);
        match std::fs::create_dir_all(folder).and_then(|()| SpentFile::open(&path)) {
            Ok(file) => self.conversation_file = Some(file),
            Err(error) => self.note(&format!("what the conversation uses cannot be written down: {error}")),
        }
    }

    fn write_down(&mut self, usage: Usage) {
        if let Some(Err(error)) = self.conversation_file.as_mut().map(|file| file.add(usage)) {
            self.conversation_file = None;
            self.note(&format!("what the conversation uses cannot be written down any more: {error}"));
        }
        let Some(file) = &mut self.spent_file else { return };
        if let Err(error) = file.add(usage) {
            self.spent_file = None;
            self.note(&format!("what is spent cannot be written down any more: {error}"));
        }
    }

    /// Returns what the agent said in its last turn, or as much of its end as is kept.
    pub fn last_words(&self) -> Option<&str> {
        self.last_words.text()
    }

    pub fn trouble(&self) -> Option<&Trouble> {
        self.trouble.as_ref()
    }

    /// Returns the last output on stderr, for the explanation of an exit.
    pub fn last_stderr(&self) -> String {
        String::from_utf8_lossy(&self.stderr_tail).trim().to_owned()
    }

    pub fn close_stdin(&mut self) {
        self.outgoing = Vec::new();
        self.stdin = None;
    }

    /// Closes stdin and sends TERM to the whole tree.
    pub fn terminate(&mut self) {
        self.close_stdin();
        self.child.terminate();
    }

    /// Kills the whole tree at once.
    pub fn kill(&mut self) {
        self.close_stdin();
        self.child.kill();
    }

    /// Closes stdin, sends TERM after `patience`, and kills after another `grace`; reads all the while. `None` if even the kill did not
    /// help.
    pub async fn shut_down(&mut self, patience: Duration, grace: Duration) -> Option<Exit> {
        self.close_stdin();
        if let Some(exit) = self.ended_within(patience).await {
            return Some(exit);
        }
        self.terminate();
        if let Some(exit) = self.ended_within(grace).await {
            return Some(exit);
        }
        self.kill();
        self.ended_within(KILL_LIMIT).await
    }

    async fn ended_within(&mut self, limit: Duration) -> Option<Exit> {
        let ended = async {
            loop {
                if let SessionEvent::Ended(exit) = self.next().await {
                    return exit;
                }
            }
        };
        tokio::time::timeout(limit, ended).await.ok()
    }

    /// Completes the transcript. If the child is still there, dropping it kills it.
    pub fn finish(mut self) {
        self.note("end of the run");
        self.transcript.finish();
    }
}

async fn read(pipe: &mut Option<impl AsyncReadExt + Unpin>, buffer: &mut [u8]) -> usize {
    match pipe {
        Some(pipe) => pipe.read(buffer).await.unwrap_or(0),
        None => std::future::pending().await,
    }
}

async fn write(pipe: &mut Option<ChildStdin>, bytes: &[u8]) -> io::Result<usize> {
    match pipe {
        Some(pipe) => pipe.write(bytes).await,
        None => std::future::pending().await,
    }
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
