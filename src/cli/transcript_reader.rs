//! Reads the transcript of a run while it grows. Its end is written to files beside the beginning, which change places, and are joined with
//! the beginning when the run is over.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::agent::transcript::{may_follow_a_gap, newest_part, parts};

/// Said where lines may be left out.
const GAP: &[u8] = b"0 note lines may be left out here: the transcript is longer than what is kept of it\n";
/// How much of the end of two files is compared.
const COMPARED: u64 = 4096;

pub struct TranscriptReader {
    whole: PathBuf,
    /// The part that is being read. It stays readable when it is renamed or removed.
    file: File,
}

impl TranscriptReader {
    /// Begins with the first line.
    pub fn from_beginning(whole: &Path) -> io::Result<Self> {
        Ok(Self { whole: whole.to_owned(), file: File::open(whole)? })
    }

    /// Begins with a whole line among the last `back` bytes of the newest part.
    pub fn from_end(whole: &Path, back: u64) -> io::Result<Self> {
        let mut file = File::open(newest_part(whole))?;
        let start = file.metadata()?.len().saturating_sub(back);
        if start > 0 {
            file.seek(SeekFrom::Start(start))?;
            let cut = BufReader::new(&file).read_until(b'\n', &mut Vec::new())?;
            file.seek(SeekFrom::Start(start + cut as u64))?;
        }
        Ok(Self { whole: whole.to_owned(), file })
    }

    /// Gives what was added since the last call to `take`, in pieces.
    pub fn read(&mut self, mut take: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        let there = self.open_parts();
        self.rest(&mut take)?;
        let present = self.file.metadata()?;
        let is_present = |file: &File| file.metadata().is_ok_and(|other| other.ino() == present.ino());
        match there.iter().position(|(_, file)| is_present(file)) {
            Some(at) => {
                for (path, file) in there.into_iter().skip(at + 1) {
                    self.go_on(&path, file, &mut take)?;
                }
            }
            // The part is gone: dropped for newer ones, or joined with the beginning.
            None if there.len() > 1 => {
                take(GAP)?;
                for (_, file) in there.into_iter().skip(1) {
                    self.file = file;
                    self.rest(&mut take)?;
                }
            }
            None => {
                let Some((_, mut joined)) = there.into_iter().next() else { return Ok(()) };
                if !same_end(&mut self.file, &mut joined)? {
                    take(GAP)?;
                }
                joined.seek(SeekFrom::End(0))?;
                self.file = joined;
            }
        }
        Ok(())
    }

    /// Opens the parts that there are, oldest lines first. They are opened before the present one is read to its end, and the newest first, so
    /// that what changes place meanwhile is opened twice rather than not at all.
    fn open_parts(&self) -> Vec<(PathBuf, File)> {
        let opened =
            parts(&self.whole).into_iter().rev().filter_map(|path| Some((path.clone(), File::open(path).ok()?)));
        let mut there: Vec<(PathBuf, File)> = opened.collect();
        there.dedup_by_key(|(_, file)| file.metadata().map(|found| found.ino()).ok());
        there.reverse();
        there
    }

    fn go_on(&mut self, path: &Path, file: File, take: &mut impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        if may_follow_a_gap(&self.whole, path) {
            take(GAP)?;
        }
        self.file = file;
        self.rest(take)
    }

    fn rest(&mut self, take: &mut impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        let mut buffer = vec![0; 64 * 1024];
        loop {
            match self.file.read(&mut buffer)? {
                0 => return Ok(()),
                read => take(&buffer[..read])?,
            }
        }
    }
}

/// Whether the two files end with the same bytes. Leaves both at some other position.
fn same_end(one: &mut File, other: &mut File) -> io::Result<bool> {
    let compared = COMPARED.min(one.metadata()?.len()).min(other.metadata()?.len());
    let mut ends = [Vec::new(), Vec::new()];
    for (file, end) in [one, other].into_iter().zip(&mut ends) {
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length - compared))?;
        file.take(compared).read_to_end(end)?;
    }
    Ok(ends[0] == ends[1])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::transcript::{Stream, Transcript};
    use crate::domain::time::Timestamp;

    fn read(reader: &mut TranscriptReader) -> String {
        let mut text = Vec::new();
        let read = reader.read(|piece| {
            text.extend_from_slice(piece);
            Ok(())
        });
        read.unwrap();
        String::from_utf8(text).unwrap()
    }

    fn numbers(text: &str) -> Vec<u32> {
        text.lines().filter_map(|line| line.strip_prefix("7 out ")?.parse().ok()).collect()
    }

    #[test]
    fn every_line_is_read_once_while_the_transcript_grows_and_after_it_is_joined() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("transcript.log");
        let mut transcript = Transcript::create(&path, 4000).unwrap();
        let mut reader = TranscriptReader::from_beginning(&path).unwrap();
        let mut seen = String::new();
        for number in 0..600 {
            transcript.write(Timestamp(7), Stream::Stdout, number.to_string().as_bytes());
            if number % 10 == 0 {
                transcript.flush();
                seen.push_str(&read(&mut reader));
            }
        }
        transcript.finish();
        seen.push_str(&read(&mut reader));
        seen.push_str(&read(&mut reader));
        assert_eq!(numbers(&seen), (0..600).collect::<Vec<_>>());
        assert!(!seen.contains("left out"), "{seen}");
    }

    #[test]
    fn the_end_that_a_crash_left_beside_the_beginning_is_read_and_a_gap_is_told() {
        for (lines, gap) in [(120, false), (600, true)] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("transcript.log");
            let mut transcript = Transcript::create(&path, 4000).unwrap();
            for number in 0..lines {
                transcript.write(Timestamp(7), Stream::Stdout, number.to_string().as_bytes());
            }
            transcript.flush();
            drop(transcript);
            let text = read(&mut TranscriptReader::from_beginning(&path).unwrap());
            let found = numbers(&text);
            assert_eq!((found.first(), found.last()), (Some(&0), Some(&(lines - 1))), "{text}");
            assert_eq!(text.contains("left out"), gap, "{text}");
            let end = read(&mut TranscriptReader::from_end(&path, 60).unwrap());
            assert_eq!(numbers(&end).last(), Some(&(lines - 1)), "{end}");
        }
    }
}
