//! The live table of `run`: draws it again in place whenever something changed. `tui::compact` decides what the table contains.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crossterm::cursor::MoveToPreviousLine;
use crossterm::queue;
use crossterm::terminal::{Clear, ClearType};
use nix::sys::signal::{Signal, raise};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;
use tokio::sync::watch::error::RecvError;

use crate::config::observability::ObservabilitySettings;
use crate::domain::snapshot::Snapshot;
use crate::engine::event::OperatorCommand;
use crate::runtime::{self, Command, Handle, Snapshots};
use crate::tui::{CompactView, compact};

use super::keyboard::Keyboard;
use super::output;
use super::recent_lines::RecentLines;

pub const STOPPING: &str = "stopping: live runs are ended and their work is saved (once more to end at once)";

/// What the live table is drawn from.
pub struct LiveTable {
    pub handle: Handle,
    /// Set when the runner was asked to stop.
    pub stopping: Arc<AtomicBool>,
    pub settings: ObservabilitySettings,
    pub log: RecentLines,
}

/// Draws the table until the driver (the runner's loop) is gone, then erases it to make room for the summary. Without changes it is drawn
/// again every `refresh_ms`, because the ages in it grow.
pub async fn show(table: LiveTable) {
    let LiveTable { handle, stopping, settings, log } = table;
    let mut snapshots = handle.snapshots.clone();
    let mut keyboard = Keyboard::open();
    let (mut drawn, mut shows_log, mut answer) = (0, false, None);
    loop {
        let mut snapshot = Snapshot::clone(&snapshots.borrow_and_update());
        snapshot.at = runtime::now();
        let (width, height) = crossterm::terminal::size().unwrap_or((120, 40));
        let is_ending = stopping.load(Ordering::Relaxed);
        let (lines, warnings) = (log.all(), log.warnings(snapshot.at));
        let view = CompactView {
            width,
            // The cursor stays on the line below the table.
            height: height.saturating_sub(1),
            time: output::time,
            notice: is_ending.then(|| STOPPING.to_owned()).or_else(|| answer.clone()),
            warnings: &warnings,
            log: shows_log.then_some(lines.as_slice()),
            keys: keyboard.is_open(),
        };
        drawn = draw(&compact(&snapshot, &view), drawn).unwrap_or(0);
        tokio::select! {
            seen = next_picture(&mut snapshots, &settings) => if seen.is_err() { break },
            key = keyboard.next() => match key {
                // Does the same as Ctrl-C.
                'q' => drop(raise(Signal::SIGINT)),
                'l' => shows_log = !shows_log,
                'p' => answer = Some(switched(&handle, snapshot.paused_by_command()).await),
                _ => answer = None,
            },
        }
    }
    let _ = draw(&[], drawn);
    keyboard.close().await;
}

/// Waits until it is time to draw again. Returns an error as soon as the driver is gone.
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

async fn switched(handle: &Handle, is_paused: bool) -> String {
    let command = if is_paused { OperatorCommand::ResumeAll } else { OperatorCommand::PauseAll };
    handle.command(Command::Operator(command), "terminal").await.unwrap_or_else(|refused| refused)
}

/// Draws the lines over the `last` lines drawn before. Returns how many lines there are now.
fn draw(lines: &[Line<'_>], last: u16) -> std::io::Result<u16> {
    let colour = output::colour_on_stdout();
    let mut out = std::io::stdout().lock();
    if last > 0 {
        queue!(out, MoveToPreviousLine(last), Clear(ClearType::FromCursorDown))?;
    }
    for line in lines {
        writeln!(out, "{}", painted(line, colour).trim_end())?;
    }
    out.flush()?;
    Ok(u16::try_from(lines.len()).unwrap_or(u16::MAX))
}

fn painted(line: &Line<'_>, colour: bool) -> String {
    let paint = |(text, style): (&str, Style)| match code(style) {
        Some(code) if colour && !text.trim().is_empty() => format!("\u{1b}[{code}m{text}\u{1b}[0m"),
        _ => text.to_owned(),
    };
    line.spans.iter().map(|span| paint((span.content.as_ref(), line.style.patch(span.style)))).collect()
}

fn code(style: Style) -> Option<&'static str> {
    let bold = style.add_modifier.contains(Modifier::BOLD);
    Some(match style.fg {
        Some(Color::Red) => "31",
        Some(Color::Green) => "32",
        Some(Color::Yellow) => "33",
        Some(Color::Blue) => "34",
        _ if bold => "1",
        _ if style.add_modifier.contains(Modifier::DIM) => "2",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colour_is_written_only_where_it_is_wanted() {
        let line = Line::styled("blocked", Style::new().fg(Color::Yellow));
        assert_eq!(painted(&line, true), "\u{1b}[33mblocked\u{1b}[0m");
        assert_eq!(painted(&line, false), "blocked");
        assert_eq!(painted(&Line::raw("plain"), true), "plain");
    }
}
