//! The live table of `run`: drawn over itself whenever something changed.

use std::io::Write;
use std::time::Duration;

use crossterm::cursor::MoveToPreviousLine;
use crossterm::queue;
use crossterm::terminal::{Clear, ClearType};

use crate::runtime::Handle;

use super::output;
use super::seen::{Behind, Seen};
use super::status;

const AT_MOST_EVERY: Duration = Duration::from_millis(200);
/// Ages grow also when nothing happens.
const AT_LEAST_EVERY: Duration = Duration::from_secs(1);

/// Draws until the driver is gone.
pub async fn show(handle: Handle) {
    let Handle { inbox, mut snapshots } = handle;
    // Only the driver's end of the watch tells when it is over.
    drop(inbox);
    let mut drawn = 0;
    loop {
        let mut snapshot = (**snapshots.borrow_and_update()).clone();
        snapshot.at = crate::runtime::now();
        drawn = draw(&status::all(&Seen { snapshot, behind: Behind::Live }, false), drawn).unwrap_or(0);
        tokio::time::sleep(AT_MOST_EVERY).await;
        if let Ok(Err(_)) = tokio::time::timeout(AT_LEAST_EVERY, snapshots.changed()).await {
            return;
        }
    }
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
        .map(|line| line.chars().take(usize::from(width)).collect())
        .collect();
    for line in &lines {
        writeln!(out, "{line}")?;
    }
    out.flush()?;
    Ok(u16::try_from(lines.len()).unwrap_or(u16::MAX))
}
