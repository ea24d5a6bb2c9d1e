//! Reads transcripts in pieces, and the transcript of a live run while it grows. Once its file is full, newer lines go to files beside it, of
//! which the older ones are dropped. When the run ends, what is left of them is joined to the file.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::fcntl::OFlag;

use super::clean::Clean;
use crate::agent::transcript::{newest_part, part_before_newest};

/// Limit of a line that is served as a whole. A longer one is served in pieces.
pub(super) const LONGEST_LINE: u64 = 12 << 20;
/// Step width for searching the beginning of a line backwards, in bytes.
const STEP: u64 = 64 << 10;
pub(super) const PIECE: usize = 256 << 10;
/// How many bytes are compared to find a part again in the joined file.
const COMPARED: u64 = 4 << 10;
/// The beginning of the line that says how much was dropped before the joined parts.
const LEFT_OUT: &[u8] = b"0 note about ";
/// How often one reading goes on to another file. Each of them is gone on from only once.
const MOST_TURNS: usize = 4;

/// Where the reading of a transcript ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Until {
    Offset(u64),
    /// The end of the last line that is complete: the next one is still being written.
    LastLine,
    /// The end of a file that nobody writes any more.
    End,
}

/// Reads whole lines, beginning at offset `from`. Starts reading at the beginning of the line that contains `from`, so that secrets in it
/// are recognised. Returns nothing at the end.
pub(super) fn read_piece(file: &mut File, from: u64, until: Until, clean: &Clean) -> io::Result<Vec<u8>> {
    let length = file.metadata()?.len();
    let end = match until {
        Until::Offset(offset) => offset.min(length),
        Until::LastLine | Until::End => length,
    };
    if from >= end {
        return Ok(Vec::new());
    }
    let start = line_start(file, from)?;
    file.seek(SeekFrom::Start(start))?;
    let mut reader = BufReader::new(file);
    let mut lines = Vec::new();
    while lines.len() < PIECE || start + lines.len() as u64 <= from {
        let before = lines.len();
        (&mut reader).take(LONGEST_LINE).read_until(b'\n', &mut lines)?;
        let whole = lines.ends_with(b"\n") || lines.len() - before >= LONGEST_LINE as usize;
        if !whole && until == Until::LastLine {
            lines.truncate(before);
        }
        if !whole || lines.len() == before {
            break;
        }
    }
    let mut masked = clean.masked(&lines);
    let after = usize::try_from(end.saturating_sub(start)).unwrap_or(usize::MAX);
    if matches!(until, Until::Offset(_)) {
        masked.truncate(after);
    }
    Ok(masked.split_off(usize::try_from(from - start).unwrap_or(usize::MAX).min(masked.len())))
}

/// Returns the offset at which the line that contains this byte begins.
pub(super) fn line_start(file: &mut File, at: u64) -> io::Result<u64> {
    let mut end = at;
    while end > 0 && at - end < LONGEST_LINE {
        let begin = end.saturating_sub(STEP);
        let mut step = vec![0; usize::try_from(end - begin).unwrap_or(0)];
        file.seek(SeekFrom::Start(begin))?;
        file.read_exact(&mut step)?;
        if let Some(newline) = step.iter().rposition(|byte| *byte == b'\n') {
            return Ok(begin + newline as u64 + 1);
        }
        end = begin;
    }
    Ok(end)
}

pub(super) fn open(path: &Path) -> io::Result<File> {
    File::options().read(true).custom_flags((OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK).bits()).open(path)
}

pub struct Follower {
    path: PathBuf,
    /// How much of the file itself was read.
    at: u64,
    /// The part beside it that is being read.
    part: Option<Part>,
}

struct Part {
    file: File,
    at: u64,
}

impl Part {
    /// Opens a part from its beginning. `None` if it is not there.
    fn open(path: Option<PathBuf>) -> Option<Self> {
        open(&path?).ok().map(|file| Self { file, at: 0 })
    }

    fn is(&self, other: &Self) -> bool {
        let id = |part: &Self| part.file.metadata().ok().map(|found| (found.dev(), found.ino()));
        id(self).is_some() && id(self) == id(other)
    }
}

impl Follower {
    /// `at` is the offset in the file at which reading begins.
    pub fn new(path: PathBuf, at: u64) -> Self {
        Self { path, at, part: None }
    }

    /// Returns the next lines, or nothing if there are none yet. `is_over`: nothing is written any more, so a last line that is not complete
    /// is returned, too.
    pub fn next(&mut self, clean: &Clean, is_over: bool) -> io::Result<Vec<u8>> {
        let until = if is_over { Until::End } else { Until::LastLine };
        for _ in 0..MOST_TURNS {
            // Opened before reading: if there is a newer part, nothing is written any more to the one that is read below. The newest comes
            // first, because it may become the one before meanwhile.
            let newest = Part::open(Some(newest_part(&self.path)).filter(|newest| *newest != self.path));
            let before = Part::open(part_before_newest(&self.path));
            let piece = match &mut self.part {
                Some(part) => {
                    let piece = read_piece(&mut part.file, part.at, until, clean)?;
                    part.at += piece.len() as u64;
                    piece
                }
                None => {
                    let piece = read_piece(&mut open(&self.path)?, self.at, until, clean)?;
                    self.at += piece.len() as u64;
                    piece
                }
            };
            if !piece.is_empty() {
                return Ok(piece);
            }
            if !self.turn(newest, before)? {
                break;
            }
        }
        Ok(Vec::new())
    }

    /// Goes on to the file that continues the one that was read to its end. Returns false if there is none.
    fn turn(&mut self, newest: Option<Part>, before: Option<Part>) -> io::Result<bool> {
        match (&mut self.part, newest) {
            (None, None) => Ok(false),
            (None, newest) => {
                self.part = before.or(newest);
                Ok(true)
            }
            // The parts were joined to the file.
            (Some(part), None) => {
                self.at = joined_after(&mut open(&self.path)?, self.at, part)?;
                self.part = None;
                Ok(true)
            }
            (Some(part), Some(newest)) if part.is(&newest) => Ok(false),
            (Some(part), Some(newest)) => {
                // If even the part before the newest is another one, the parts between were dropped already.
                let is_next = before.as_ref().is_none_or(|before| part.is(before));
                self.part = if is_next { Some(newest) } else { before };
                Ok(true)
            }
        }
    }
}

/// Returns the offset in the joined file at which the reading of a part goes on. The parts begin at offset `from`.
fn joined_after(joined: &mut File, from: u64, part: &mut Part) -> io::Result<u64> {
    let (length, end) = (part.file.metadata()?.len(), joined.metadata()?.len());
    let last = end.saturating_sub(length);
    if last >= from && is_same(joined, last, part)? {
        return Ok(last + part.at);
    }
    joined.seek(SeekFrom::Start(from))?;
    let mut note = Vec::new();
    BufReader::new(&mut *joined).take(COMPARED).read_until(b'\n', &mut note)?;
    let first = from + if note.starts_with(LEFT_OUT) { note.len() as u64 } else { 0 };
    Ok(if is_same(joined, first, part)? { first + part.at } else { from })
}

fn is_same(joined: &mut File, at: u64, part: &mut Part) -> io::Result<bool> {
    let read = |file: &mut File, at: u64| {
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(at))?;
        file.take(COMPARED).read_to_end(&mut bytes)?;
        io::Result::Ok(bytes)
    };
    Ok(read(joined, at)?.starts_with(&read(&mut part.file, 0)?))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;

    use super::*;

    /// A transcript as its writer leaves it, file by file.
    struct Written(tempfile::TempDir);

    impl Written {
        fn path(&self, ending: &str) -> PathBuf {
            self.0.path().join(format!("log{ending}"))
        }

        fn add(&self, ending: &str, text: &str) {
            let file = File::options().create(true).append(true).open(self.path(ending));
            file.unwrap().write_all(text.as_bytes()).unwrap();
        }

        fn turn_page(&self) {
            fs::rename(self.path(".end-b"), self.path(".end-a")).unwrap();
        }

        fn join(&self, note: &str) {
            self.add("", note);
            for part in [".end-a", ".end-b"].map(|ending| self.path(ending)) {
                if let Ok(text) = fs::read_to_string(&part) {
                    self.add("", &text);
                    fs::remove_file(part).unwrap();
                }
            }
        }
    }

    fn all(follower: &mut Follower, is_over: bool) -> String {
        let mut read = Vec::new();
        loop {
            let piece = follower.next(&Clean::default(), is_over).unwrap();
            if piece.is_empty() {
                return String::from_utf8(read).unwrap();
            }
            read.extend(piece);
        }
    }

    fn begun() -> (Written, Follower) {
        let written = Written(tempfile::tempdir().unwrap());
        written.add("", "7 out one\n");
        let mut follower = Follower::new(written.path(""), 0);
        assert_eq!(all(&mut follower, false), "7 out one\n");
        (written, follower)
    }

    #[test]
    fn newer_lines_are_followed_from_file_to_file() {
        let (written, mut follower) = begun();
        written.add("", "7 out two\n");
        written.add(".end-b", "7 out three\n");
        assert_eq!(all(&mut follower, false), "7 out two\n7 out three\n");
        written.add(".end-b", "7 out four\n7 out fi");
        assert_eq!(all(&mut follower, false), "7 out four\n");
        written.add(".end-b", "ve\n");
        written.turn_page();
        written.add(".end-b", "7 out six\n");
        assert_eq!(all(&mut follower, false), "7 out five\n7 out six\n");
        written.turn_page();
        written.add(".end-b", "7 out seven\n");
        written.turn_page();
        written.add(".end-b", "7 out eight\n");
        assert_eq!(all(&mut follower, false), "7 out seven\n7 out eight\n");
        written.add(".end-b", "7 out ni");
        written.join("0 note about 20 bytes are left out here\n");
        assert_eq!(all(&mut follower, false), "");
        assert_eq!(all(&mut follower, true), "7 out ni", "nobody completes it any more");
    }

    #[test]
    fn nothing_is_missed_or_repeated_when_the_parts_are_joined() {
        for note in ["", "0 note about 20 bytes are left out here\n"] {
            // Before any part was read.
            let (written, mut follower) = begun();
            written.add(".end-b", "7 out two\n");
            written.join("");
            assert_eq!(all(&mut follower, true), "7 out two\n");

            // While the last part was read, and while the one before it was.
            for pages in [1, 2] {
                let (written, mut follower) = begun();
                written.add(".end-b", "7 out two\n");
                assert_eq!(all(&mut follower, false), "7 out two\n");
                written.add(".end-b", "7 out three\n");
                if pages == 2 {
                    written.turn_page();
                    written.add(".end-b", "7 out four\n");
                }
                written.join(note);
                let rest = if pages == 2 { "7 out three\n7 out four\n" } else { "7 out three\n" };
                assert_eq!(all(&mut follower, true), rest, "{pages} {note}");
                assert_eq!(all(&mut follower, true), "");
            }
        }
    }

    #[test]
    fn a_transcript_that_is_not_there_is_an_error() {
        assert!(Follower::new(Path::new("/nowhere/log").to_owned(), 0).next(&Clean::default(), false).is_err());
    }
}
