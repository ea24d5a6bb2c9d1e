//! Binds a protocol to a child process: bytes to lines, lines to events, the transcript, deadlines of the handshake.
//!
//! It reports and obeys; when to prompt, stop or give up is the worker's business.

use std::collections::VecDeque;
use std::io;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::time::{Instant, sleep_until};

use super::framing::{Framer, LINE_LIMIT, Line};
use super::tally::Tally;
use super::transcript::{Stream, Transcript};
use super::{AgentEvent, Answer, Opening, Protocol, Question, Reaction, Reset, TurnEnd};
use crate::domain::failure::TurnError;
use crate::domain::ids::SessionId;
use crate::domain::run::ProcessMark;
use crate::domain::time::Timestamp;
use crate::launcher::{Child, Exit};

const STDOUT_BUFFER: usize = 16 << 10;
const STDERR_BUFFER: usize = 2 << 10;
/// What is kept of stderr to explain an end.
const STDERR_TAIL: usize = 2 << 10;
/// Pipes that somebody else still holds are not read longer than this after the end.
const DRAIN_LIMIT: Duration = Duration::from_secs(5);
/// Between a kill and giving up on a process that the kernel does not let go.
const KILL_LIMIT: Duration = Duration::from_secs(30);

/// What the worker has to know at once. Everything else is in the tally.
#[derive(Debug, Clone, PartialEq)]
pub enum Heard {
    Ready,
    /// Neither ready nor gone within its time.
    HandshakeOverdue {
        detail: String,
    },
    SessionStarted {
        id: SessionId,
    },
    ResumeFailed {
        detail: String,
    },
    TurnEnded(TurnEnd),
    RateLimited {
        description: String,
        reset_at: Option<Timestamp>,
    },
    Asked {
        ask: String,
        question: Question,
    },
    SteerFailed {
        text: String,
    },
    /// The process tree is gone. Said again whenever it is asked.
    Ended(Exit),
}

/// How long the agent may take until it is ready.
#[derive(Debug, Clone, Copy)]
pub struct HandshakeLimits {
    /// From the launch.
    pub start: Duration,
    /// Between two of its words, once it has begun to speak. Zero is off.
    pub response: Duration,
}

/// A trouble the agent spoke of, kept to explain an end without a word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    pub class: TurnError,
    pub detail: String,
    pub reset_at: Option<Timestamp>,
}

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
    tally: Tally,
    heard: VecDeque<Heard>,
    stderr_tail: Vec<u8>,
    trouble: Option<Trouble>,
    handshake: Option<Handshake>,
    exit: Option<(Exit, Instant)>,
}

struct Handshake {
    limits: HandshakeLimits,
    launched: Instant,
    last_word: Option<Instant>,
}

enum Step {
    Out(usize),
    Err(usize),
    Sent(io::Result<usize>),
    Exit(io::Result<Exit>),
    DrainOver,
    Overdue,
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
            tally: Tally::default(),
            heard: VecDeque::new(),
            stderr_tail: Vec::new(),
            trouble: None,
            handshake: Some(Handshake { limits, launched: Instant::now(), last_word: None }),
            exit: None,
        };
        session.react(first);
        session
    }

    pub fn mark(&self) -> ProcessMark {
        self.child.mark
    }

    /// Waits for the next thing worth knowing. Can be dropped and called again.
    pub async fn next(&mut self) -> Heard {
        loop {
            if let Some(heard) = self.heard.pop_front() {
                return heard;
            }
            if let Some((exit, _)) = self.exit
                && self.stdout.is_none()
                && self.stderr.is_none()
            {
                return Heard::Ended(exit);
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
                Step::Overdue => return self.overdue(),
            }
        }
    }

    async fn step(&mut self) -> Step {
        let overdue = self.handshake.as_ref().filter(|_| self.exit.is_none()).map(Handshake::deadline);
        let drain_until = self.exit.map(|(_, until)| until);
        let Self { child, stdin, outgoing, stdout, stderr, out_buffer, err_buffer, .. } = self;
        tokio::select! {
            // An error while reading is as good as the end.
            count = read(stdout, out_buffer), if stdout.is_some() => Step::Out(count),
            count = read(stderr, err_buffer), if stderr.is_some() => Step::Err(count),
            sent = write(stdin, outgoing), if stdin.is_some() && !outgoing.is_empty() => Step::Sent(sent),
            exit = child.wait(), if drain_until.is_none() => Step::Exit(exit),
            () = until(drain_until), if drain_until.is_some() => Step::DrainOver,
            () = until(overdue), if overdue.is_some() => Step::Overdue,
        }
    }

    fn take_stdout(&mut self, count: usize) {
        let at = now();
        let mut lines = std::mem::replace(&mut self.out_lines, Framer::new(LINE_LIMIT));
        let buffer = std::mem::take(&mut self.out_buffer);
        let mut hear = |line: Line<'_>| self.hear_line(at, line);
        if count == 0 {
            lines.finish(&mut hear);
            self.stdout = None;
        } else {
            lines.push(buffer.get(..count).unwrap_or_default(), &mut hear);
            if self.protocol.one_shot() {
                // Even a line that never ends shows that the command is alive.
                self.tally.alive();
            }
            if let Some(handshake) = &mut self.handshake {
                handshake.last_word = Some(Instant::now());
            }
        }
        if count < buffer.len() {
            self.transcript.flush();
        }
        (self.out_lines, self.out_buffer) = (lines, buffer);
    }

    fn hear_line(&mut self, at: Timestamp, line: Line<'_>) {
        match line.cut {
            Some(dropped) => {
                self.note(&format!("the line before was cut: {dropped} more bytes are left out"));
            }
            None => {
                self.transcript.write(at, Stream::Stdout, line.bytes);
                let reaction = self.protocol.line(line.bytes);
                self.react(reaction);
            }
        }
    }

    fn take_stderr(&mut self, count: usize) {
        let at = now();
        let mut lines = std::mem::replace(&mut self.err_lines, Framer::new(LINE_LIMIT));
        let buffer = std::mem::take(&mut self.err_buffer);
        let mut keep = |line: Line<'_>| match line.cut {
            Some(dropped) => self.note(&format!("the line before was cut: {dropped} more bytes are left out")),
            None => self.transcript.write(at, Stream::Stderr, line.bytes),
        };
        if count == 0 {
            lines.finish(&mut keep);
            self.stderr = None;
        } else {
            let piece = buffer.get(..count).unwrap_or_default();
            lines.push(piece, &mut keep);
            self.stderr_tail.extend_from_slice(piece);
            let excess = self.stderr_tail.len().saturating_sub(STDERR_TAIL);
            self.stderr_tail.drain(..excess);
            if self.protocol.one_shot() {
                self.tally.alive();
            }
        }
        if count < buffer.len() {
            self.transcript.flush();
        }
        (self.err_lines, self.err_buffer) = (lines, buffer);
    }

    fn take_sent(&mut self, sent: io::Result<usize>) {
        match sent {
            Ok(count) if count > 0 => {
                self.outgoing.drain(..count.min(self.outgoing.len()));
            }
            Ok(_) | Err(_) => {
                self.note("the agent closed its input");
                self.outgoing.clear();
                self.stdin = None;
            }
        }
        if self.outgoing.is_empty() {
            self.outgoing = Vec::new();
            if self.close_when_sent {
                self.stdin = None;
            }
        }
    }

    fn react(&mut self, reaction: Reaction) {
        let at = now();
        for line in reaction.send {
            for part in line.split('\n') {
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

    fn take_event(&mut self, event: AgentEvent, at: Timestamp) {
        self.tally.alive();
        let heard = match event {
            AgentEvent::Ready => {
                self.handshake = None;
                Heard::Ready
            }
            AgentEvent::SessionStarted { id } => Heard::SessionStarted { id },
            AgentEvent::ResumeFailed { detail } => Heard::ResumeFailed { detail },
            AgentEvent::TurnEnded(end) => {
                self.tally.turn_ended();
                Heard::TurnEnded(end)
            }
            AgentEvent::Message { text } => return self.tally.said(&text),
            AgentEvent::ToolStarted { id, name, about } => {
                self.tally.tool_started(&id, at);
                return self.tally.said(&format!("{name} {about}"));
            }
            AgentEvent::ToolFinished { id, .. } => return self.tally.tool_finished(&id),
            AgentEvent::Usage(usage) => return self.tally.used(usage),
            AgentEvent::RateLimited { description, reset } => {
                Heard::RateLimited { description, reset_at: reset.map(|reset| reset_at(reset, at)) }
            }
            AgentEvent::Asked { ask, question } => {
                self.tally.tool_started(&parked(&ask), at);
                Heard::Asked { ask, question }
            }
            AgentEvent::Error { class, detail, reset, .. } => {
                self.tally.said(&detail);
                self.trouble = Some(Trouble { class, detail, reset_at: reset.map(|reset| reset_at(reset, at)) });
                return;
            }
            AgentEvent::SteerFailed { text } => Heard::SteerFailed { text },
            AgentEvent::UnsupportedTool { name } => {
                return self.note(&format!("the agent called the unknown tool {name}"));
            }
            AgentEvent::Malformed { detail } => return self.note(&format!("not understood: {detail}")),
            AgentEvent::TurnStarted | AgentEvent::Alive => return,
        };
        self.heard.push_back(heard);
    }

    fn overdue(&mut self) -> Heard {
        let detail = match self.handshake.take() {
            Some(Handshake { limits, last_word: Some(_), .. }) if limits.response > Duration::ZERO => {
                format!(
                    "no word for {} ms (or not ready after {} ms)",
                    limits.response.as_millis(),
                    limits.start.as_millis()
                )
            }
            Some(Handshake { limits, .. }) => format!("not ready after {} ms", limits.start.as_millis()),
            None => "not ready".to_owned(),
        };
        Heard::HandshakeOverdue { detail }
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

    /// Speaks into the running turn. `false` where the agent cannot listen now.
    pub fn steer(&mut self, text: &str) -> bool {
        let reaction = self.protocol.steer(text);
        let can = reaction.is_some();
        self.react(reaction.unwrap_or_default());
        can
    }

    /// Asks for the end of the running turn. `false` where the agent cannot be asked.
    pub fn interrupt(&mut self) -> bool {
        let reaction = self.protocol.interrupt();
        let can = reaction.is_some();
        self.react(reaction.unwrap_or_default());
        can
    }

    pub fn answer(&mut self, ask: &str, answer: &Answer) {
        self.tally.tool_finished(&parked(ask));
        let reaction = self.protocol.answer(ask, answer);
        self.react(reaction);
    }

    /// A remark of the runner's own in the transcript.
    pub fn note(&mut self, text: &str) {
        self.transcript.write(now(), Stream::Note, text.as_bytes());
    }

    pub fn tally(&mut self) -> &mut Tally {
        &mut self.tally
    }

    pub fn trouble(&self) -> Option<&Trouble> {
        self.trouble.as_ref()
    }

    /// The last words on stderr, for a sentence about an end.
    pub fn last_stderr(&self) -> String {
        String::from_utf8_lossy(&self.stderr_tail).trim().to_owned()
    }

    pub fn close_stdin(&mut self) {
        self.outgoing = Vec::new();
        self.stdin = None;
    }

    /// Closes stdin and asks the whole tree to end.
    pub fn terminate(&mut self) {
        self.close_stdin();
        self.child.terminate();
    }

    /// Ends the whole tree at once.
    pub fn kill(&mut self) {
        self.close_stdin();
        self.child.kill();
    }

    /// Closes stdin, then asks after `patience`, then kills after `grace`; reads all the while. `None` when even a kill
    /// did not help.
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
                if let Heard::Ended(exit) = self.next().await {
                    return exit;
                }
            }
        };
        tokio::time::timeout(limit, ended).await.ok()
    }

    /// Completes the transcript. The child, if it is still there, is ended by its drop.
    pub fn finish(mut self) {
        self.note("end of the run");
        self.transcript.finish();
    }
}

impl Handshake {
    fn deadline(&self) -> Instant {
        let start = self.launched + self.limits.start;
        match self.last_word {
            Some(word) if self.limits.response > Duration::ZERO => start.min(word + self.limits.response),
            _ => start,
        }
    }
}

fn parked(ask: &str) -> String {
    format!("question {ask}")
}

fn reset_at(reset: Reset, now: Timestamp) -> Timestamp {
    match reset {
        Reset::At(at) => at,
        Reset::In(span) => now + span,
    }
}

/// When a failed turn may be tried again.
pub fn reset_time(reset: Option<Reset>) -> Option<Timestamp> {
    reset.map(|reset| reset_at(reset, now()))
}

pub fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
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
