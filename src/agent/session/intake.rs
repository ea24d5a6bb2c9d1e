//! Splits the child's bytes into lines and passes them to the transcript and the protocol; also handles what is written to the child.

use std::io;

use super::{STDERR_TAIL, Session, now};
use crate::agent::framing::{Framer, LINE_LIMIT, Line};
use crate::agent::transcript::Stream;
use crate::domain::time::Timestamp;

impl Session {
    pub(super) fn take_stdout(&mut self, count: usize) {
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
                self.usage_totals.alive();
            }
            if let Some(handshake) = &mut self.handshake {
                handshake.spoke();
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

    pub(super) fn take_stderr(&mut self, count: usize) {
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
                self.usage_totals.alive();
            }
        }
        if count < buffer.len() {
            self.transcript.flush();
        }
        (self.err_lines, self.err_buffer) = (lines, buffer);
    }

    pub(super) fn take_sent(&mut self, sent: io::Result<usize>) {
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
}
