//! The transcript of one run: a text file with one line per entry: milliseconds since the epoch, the stream, the text.
//!
//! It never grows beyond its cap: the beginning and the end stay, and a note says how much is missing between them.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::domain::time::Timestamp;

pub const DEFAULT_CAP: u64 = 64 << 20;

const BUFFER: usize = 4 << 10;

/// The endings of the segments' names.
const NEWEST: &str = ".end-b";
const BEFORE: &str = ".end-a";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    Stdout,
    Stderr,
    Stdin,
    /// Notes of the runner.
    Note,
}

impl Stream {
    fn tag(self) -> &'static str {
        match self {
            Self::Stdout => "out",
            Self::Stderr => "err",
            Self::Stdin => "in",
            Self::Note => "note",
        }
    }
}

#[derive(Debug, Error)]
#[error("cannot write the transcript {}: {source}", .path.display())]
pub struct TranscriptError {
    path: PathBuf,
    source: io::Error,
}

#[derive(Debug)]
pub struct Transcript {
    path: PathBuf,
    cap: u64,
    written: u64,
    out: Out,
    /// Whether writing failed (a full disk). Reported once; nothing more is written.
    broken: bool,
}

#[derive(Debug)]
enum Out {
    Beginning(BufWriter<File>),
    /// Two segments, so that the newest lines are always there: the newest segment, and the one before it.
    End {
        segment: BufWriter<File>,
        size: u64,
        segments: u64,
        dropped: u64,
    },
}

impl Transcript {
    /// Opens the transcript and continues after what an earlier process of the same run left in it.
    pub fn open(path: &Path, cap: u64) -> Result<Self, TranscriptError> {
        let file = OpenOptions::new().create(true).append(true).open(path);
        let opened = file.and_then(|file| Ok((file.metadata()?.len(), file)));
        let (written, file) = opened.map_err(|source| TranscriptError { path: path.into(), source })?;
        let out = Out::Beginning(BufWriter::with_capacity(BUFFER, file));
        Ok(Self { path: path.into(), cap, written, out, broken: false })
    }

    pub fn write(&mut self, at: Timestamp, stream: Stream, text: &[u8]) {
        if self.broken {
            return;
        }
        if let Err(source) = self.try_write(at, stream, text) {
            self.broken = true;
            tracing::warn!(path = %self.path.display(), error = %source, "the transcript cannot be written any more");
        }
    }

    pub fn flush(&mut self) {
        let flushed = match &mut self.out {
            Out::Beginning(file) | Out::End { segment: file, .. } => file.flush(),
        };
        if flushed.is_err() {
            self.broken = true;
        }
    }

    /// Joins the beginning and the end in one file.
    pub fn finish(mut self) {
        self.flush();
        if let Err(source) = self.join() {
            tracing::warn!(path = %self.path.display(), error = %source, "the end of the transcript stays in a file beside it");
        }
    }

    fn try_write(&mut self, at: Timestamp, stream: Stream, text: &[u8]) -> io::Result<()> {
        self.turn_page()?;
        let (file, size) = match &mut self.out {
            Out::Beginning(file) => (file, &mut self.written),
            Out::End { segment, size, .. } => (segment, size),
        };
        write!(file, "{} {} ", at.0, stream.tag())?;
        file.write_all(text)?;
        file.write_all(b"\n")?;
        *size += text.len() as u64 + 20;
        Ok(())
    }

    fn turn_page(&mut self) -> io::Result<()> {
        let next = match &mut self.out {
            Out::Beginning(file) if self.written >= self.cap / 2 => {
                file.flush()?;
                Some((0, 0))
            }
            Out::End { segment, size, segments, dropped } if *size >= self.cap / 4 => {
                segment.flush()?;
                // Two segments stay; the one before them is dropped.
                let lost = if *segments >= 2 { self.cap / 4 } else { 0 };
                Some((*segments, *dropped + lost))
            }
            Out::Beginning(_) | Out::End { .. } => None,
        };
        if let Some((segments, dropped)) = next {
            let newest = end_of(&self.path, NEWEST);
            if segments > 0 {
                fs::rename(&newest, end_of(&self.path, BEFORE))?;
            }
            let file = File::create(newest)?;
            let segment = BufWriter::with_capacity(BUFFER, file);
            self.out = Out::End { segment, size: 0, segments: segments + 1, dropped };
        }
        Ok(())
    }

    fn join(&self) -> io::Result<()> {
        let Out::End { segments, dropped, .. } = &self.out else { return Ok(()) };
        let mut whole = OpenOptions::new().append(true).open(&self.path)?;
        let dropped = if *segments > 2 { dropped.max(&1) } else { &0 };
        if *dropped > 0 {
            writeln!(
                whole,
                "0 note about {dropped} bytes are left out here: the transcript is capped at {} bytes",
                self.cap
            )?;
        }
        let ends = if *segments > 1 { [BEFORE, NEWEST].as_slice() } else { &[NEWEST] };
        for path in ends.iter().map(|which| end_of(&self.path, which)) {
            io::copy(&mut File::open(&path)?, &mut whole)?;
            fs::remove_file(&path)?;
        }
        Ok(())
    }
}

fn end_of(path: &Path, which: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(which);
    path.with_file_name(name)
}

/// Returns the files that hold a run's transcript, oldest lines first. While the run is live, or after a crash, the end is in files beside
/// the beginning once that is full.
pub fn parts(path: &Path) -> Vec<PathBuf> {
    let ends = [BEFORE, NEWEST].map(|which| end_of(path, which)).into_iter().filter(|end| end.is_file());
    [path.to_owned()].into_iter().chain(ends).collect()
}

/// Whether lines may be missing before this part of the transcript. All lines between two other parts are there.
pub fn may_follow_a_gap(path: &Path, part: &Path) -> bool {
    part == end_of(path, BEFORE)
}

/// Returns the file that holds the newest lines of a live run's transcript.
pub fn newest_part(path: &Path) -> PathBuf {
    parts(path).pop().unwrap_or_else(|| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(cap: u64, lines: u32) -> (String, usize) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("transcript.log");
        let mut transcript = Transcript::open(&path, cap).unwrap();
        for number in 0..lines {
            transcript.write(Timestamp(7), Stream::Stdout, format!("line {number}").as_bytes());
        }
        transcript.finish();
        (fs::read_to_string(&path).unwrap(), fs::read_dir(dir.path()).unwrap().count())
    }

    #[test]
    fn lines_carry_time_and_stream() {
        assert_eq!(written(1000, 2).0, "7 out line 0\n7 out line 1\n");
    }

    #[test]
    fn beginning_and_end_stay_and_a_note_says_what_is_missing() {
        let (text, files) = written(4000, 10_000);
        assert!(text.starts_with("7 out line 0\n"));
        assert!(text.ends_with("7 out line 9999\n"));
        assert!(text.contains("bytes are left out here"));
        assert!(text.len() < 5000, "{}", text.len());
        assert_eq!(files, 1, "no segment is left beside it");
    }

    #[test]
    fn the_newest_lines_are_found_wherever_they_are_written() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("transcript.log");
        let mut transcript = Transcript::open(&path, 4000).unwrap();
        for number in 0..600 {
            let line = format!("line {number}");
            transcript.write(Timestamp(7), Stream::Stdout, line.as_bytes());
            transcript.flush();
            let newest = fs::read_to_string(newest_part(&path)).unwrap();
            assert!(newest.ends_with(&format!(" {line}\n")), "{line}: {}", newest_part(&path).display());
        }
        assert_ne!(newest_part(&path), path);
        transcript.finish();
        assert_eq!(newest_part(&path), path);
    }

    #[test]
    fn a_second_process_of_the_run_continues_the_transcript_of_the_first() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("transcript.log");
        for process in ["first", "second"] {
            let mut transcript = Transcript::open(&path, 4000).unwrap();
            for number in 0..1000 {
                let line = format!("{process} {number}");
                transcript.write(Timestamp(7), Stream::Stdout, line.as_bytes());
            }
            transcript.finish();
        }
        let text = fs::read_to_string(&path).unwrap();
        let lines = ["first 0", "first 999", "second 999"].map(|line| text.find(&format!(" {line}\n")).unwrap());
        assert!(lines.is_sorted(), "{lines:?}");
        assert!(text.len() < 8000, "{}", text.len());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "no segment is left beside it");
    }

    #[test]
    fn nothing_is_lost_below_the_cap() {
        let (text, _) = written(4000, 140);
        assert_eq!(text.lines().count(), 140);
        assert!(!text.contains("left out"));
    }
}
