//! Splits a stream of bytes into lines, with bounded memory.

use std::mem;

/// The longest line in bytes. A longer one is truncated; the rest of it is counted and dropped.
pub const LINE_LIMIT: usize = 10 << 20;

/// A buffer that grew beyond this is freed once it is empty.
const KEEP_CAPACITY: usize = 64 << 10;

/// One line, without its newline.
#[derive(Debug, PartialEq, Eq)]
pub struct Line<'a> {
    pub bytes: &'a [u8],
    /// Set at the end of a truncated line: how many bytes were dropped after the part that was delivered before.
    pub cut: Option<u64>,
}

#[derive(Debug)]
pub struct Framer {
    limit: usize,
    partial: Vec<u8>,
    /// How many bytes were dropped of the line that is being skipped.
    skipping: Option<u64>,
}

impl Framer {
    pub fn new(limit: usize) -> Self {
        Self { limit, partial: Vec::new(), skipping: None }
    }

    /// Takes in a piece of the stream and passes on every line that it completes.
    pub fn push(&mut self, mut piece: &[u8], mut each: impl FnMut(Line<'_>)) {
        while let Some(end) = piece.iter().position(|byte| *byte == b'\n') {
            let (head, rest) = piece.split_at(end);
            piece = rest.get(1..).unwrap_or_default();
            match self.skipping.take() {
                Some(dropped) => each(Line { bytes: b"", cut: Some(dropped + head.len() as u64) }),
                None if self.partial.is_empty() => each(Line { bytes: head, cut: None }),
                None => {
                    self.partial.extend_from_slice(head);
                    let line = mem::take(&mut self.partial);
                    each(Line { bytes: &line, cut: None });
                    self.recycle(line);
                }
            }
        }
        self.hold(piece, each);
    }

    /// Passes on what was left without a newline at the end of the stream.
    pub fn finish(&mut self, mut each: impl FnMut(Line<'_>)) {
        if let Some(dropped) = self.skipping.take() {
            each(Line { bytes: b"", cut: Some(dropped) });
        } else if !self.partial.is_empty() {
            each(Line { bytes: &mem::take(&mut self.partial), cut: None });
        }
    }

    fn hold(&mut self, piece: &[u8], mut each: impl FnMut(Line<'_>)) {
        if let Some(dropped) = &mut self.skipping {
            *dropped += piece.len() as u64;
            return;
        }
        let room = self.limit.saturating_sub(self.partial.len());
        let (kept, dropped) = piece.split_at(piece.len().min(room));
        self.partial.extend_from_slice(kept);
        if !dropped.is_empty() {
            each(Line { bytes: &mem::take(&mut self.partial), cut: None });
            self.skipping = Some(dropped.len() as u64);
        }
    }

    fn recycle(&mut self, mut line: Vec<u8>) {
        if line.capacity() <= KEEP_CAPACITY {
            line.clear();
            self.partial = line;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(limit: usize, pieces: &[&str]) -> Vec<String> {
        let mut framer = Framer::new(limit);
        let mut found = Vec::new();
        let mut note = |line: Line<'_>| match line.cut {
            Some(dropped) => found.push(format!("[{dropped}]")),
            None => found.push(String::from_utf8_lossy(line.bytes).into_owned()),
        };
        for piece in pieces {
            framer.push(piece.as_bytes(), &mut note);
        }
        framer.finish(&mut note);
        found
    }

    #[test]
    fn lines_may_come_in_pieces_and_the_last_one_without_a_newline() {
        assert_eq!(lines(100, &["a\nb", "c", "\n\nd"]), ["a", "bc", "", "d"]);
    }

    #[test]
    fn a_line_over_the_limit_is_cut_and_the_next_one_is_whole() {
        assert_eq!(lines(4, &["abcdef", "gh\nij\n"]), ["abcd", "[4]", "ij"]);
        assert_eq!(lines(4, &["abcdef"]), ["abcd", "[2]"]);
    }

    #[test]
    fn an_endless_line_does_not_fill_the_memory() {
        let mut framer = Framer::new(1000);
        for _ in 0..10_000 {
            framer.push(&[b'x'; 1000], |_| {});
        }
        assert!(framer.partial.capacity() <= 4000);
    }
}
