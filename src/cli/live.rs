//! The live table of `run`: drawn over itself whenever something changed.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crossterm::cursor::MoveToPreviousLine;
use crossterm::queue;
use crossterm::terminal::{Clear, ClearType};
use tokio::sync::watch::error::RecvError;

use crate::config::observability::ObservabilitySettings;
use crate::domain::snapshot::Snapshot;
use crate::runtime::{Handle, Snapshots};

use super::output;
use super::snapshot_source::{Behind, SnapshotSource};
use super::status;

pub const STOPPING: &str = "stopping: live runs are ended and their work is saved (once more to end at once)";

/// Draws until the driver is gone; then the picture goes, for what is said at the end takes its place. `stopping` is set
/// when the end was asked for. Ages grow also when nothing happens: it is drawn anew at every `refresh_ms` at the latest.
pub async fn show(handle: Handle, stopping: Arc<AtomicBool>, settings: ObservabilitySettings) {
    let Handle { inbox, mut snapshots, .. } = handle;
    // Only the driver's end of the watch tells when it is over.
    drop(inbox);
    let mut drawn = 0;
    loop {
        let mut snapshot = Snapshot::clone(&snapshots.borrow_and_update());
        snapshot.at = crate::runtime::now();
        let mut text = status::all(&SnapshotSource { snapshot, behind: Behind::Live }, false);
        if stopping.load(Ordering::Relaxed) {
            text = format!("{STOPPING}\n{text}");
        }
        drawn = draw(&text, drawn).unwrap_or(0);
        if next_picture(&mut snapshots, &settings).await.is_err() {
            let _ = draw("", drawn);
            return;
        }
    }
}

/// Waits until it is time to draw again; an error where the driver is gone, however long the pause would have been.
async fn next_picture(snapshots: &mut Snapshots, settings: &ObservabilitySettings) -> Result<(), RecvError> {
    let pause = tokio::time::sleep(settings.render_interval);
    tokio::pin!(pause);
    let mut news = false;
    loop {
        tokio::select! {
            () = &mut pause => break,
            changed = snapshots.changed() => {
                changed?;
                news = true;
            }
        }
    }
    match news {
        true => Ok(()),
        false => tokio::time::timeout(settings.refresh, snapshots.changed()).await.unwrap_or(Ok(())),
    }
}

/// As much of the line as fits: one that wraps would move everything below it.
fn fitting(line: &str, width: usize) -> String {
    let mut left = width;
    let fits = |c: &char| {
        let needs = columns(*c);
        let fits = needs <= left;
        left = if fits { left - needs } else { 0 };
        fits
    };
    line.chars().take_while(fits).collect()
}

/// How many places of a terminal a character takes: East Asian ones and pictures take two.
fn columns(c: char) -> usize {
    let wide = matches!(u32::from(c),
        0x1100..=0x115f | 0x2e80..=0xa4cf | 0xac00..=0xd7a3 | 0xf900..=0xfaff | 0xfe30..=0xfe6f
        | 0xff00..=0xff60 | 0xffe0..=0xffe6 | 0x1f300..=0x1faff | 0x20000..=0x3fffd);
    if wide { 2 } else { 1 }
}

/// Replaces the lines of the last picture. Answers with how many there are now.
fn draw(text: &str, last: u16) -> std::io::Result<u16> {
    let (width, height) = crossterm::terminal::size().unwrap_or((120, 40));
    let mut out = std::io::stdout().lock();
    if last > 0 {
        queue!(out, MoveToPreviousLine(last), Clear(ClearType::FromCursorDown))?;
    }
    let lines: Vec<String> = output::harmless(text)
        .lines()
        .take(usize::from(height.saturating_sub(1)))
        .map(|line| fitting(line, usize::from(width)))
        .collect();
    for line in &lines {
        writeln!(out, "{line}")?;
    }
    out.flush()?;
    Ok(u16::try_from(lines.len()).unwrap_or(u16::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        assert_eq!(fitting("short", 10), "short");
        assert_eq!(fitting("a long line", 6), "a long");
        assert_eq!(fitting("漢字漢字", 5), "漢字");
        assert_eq!(fitting("a漢b", 2), "a");
    }
}
