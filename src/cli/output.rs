//! Output of commands: tables for people, JSON for scripts, and colour only on a terminal.

use std::borrow::Cow;
use std::io::{IsTerminal, Write};
use std::sync::OnceLock;

use comfy_table::{ContentArrangement, Table, TableStyle};
use serde::Serialize;

use crate::domain::time::Timestamp;
pub use crate::domain::time::span;
pub use crate::domain::words::{SHORT_RUN, count, short_run, short_run_ids};

use super::Failure;

/// When to use colour, as `--color` says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum ColourChoice {
    /// On a terminal, unless NO_COLOR is set.
    #[default]
    Auto,
    Always,
    Never,
}

static COLOUR: OnceLock<ColourChoice> = OnceLock::new();

/// Sets when colour is used. Only the first call counts; it comes before anything is printed.
pub fn choose_colour(choice: ColourChoice) {
    let _ = COLOUR.set(choice);
}

pub fn colour_on_stderr() -> bool {
    colour(std::io::stderr().is_terminal())
}

pub fn colour_on_stdout() -> bool {
    colour(std::io::stdout().is_terminal())
}

fn colour(terminal: bool) -> bool {
    match COLOUR.get().copied().unwrap_or_default() {
        ColourChoice::Auto => terminal && !no_colour(),
        ColourChoice::Always => true,
        ColourChoice::Never => false,
    }
}

fn no_colour() -> bool {
    std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
}

/// Returns the width of the terminal; `None` if stdout is not one.
pub fn width() -> Option<u16> {
    let (width, _) = crossterm::terminal::size().ok().filter(|_| std::io::stdout().is_terminal())?;
    Some(width)
}

/// Returns a plain table with one heading line and no borders, as wide as the terminal allows.
pub fn table(headings: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> Table {
    let mut table = Table::new();
    table
        .load_style(TableStyle::new())
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_header(headings.to_vec());
    if let Some(width) = width() {
        table.set_width(width);
    }
    for row in rows {
        table.add_row(row);
    }
    table
}

/// Writes a text and a line end to stdout. A closed pipe is not an error.
pub fn print(text: &str) -> Result<(), Failure> {
    print_part(&format!("{text}\n"))
}

/// Writes a text to stdout as it is. A closed pipe is not an error.
pub fn print_part(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    let shown = if out.is_terminal() { harmless(text) } else { text.into() };
    match out.write_all(shown.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        other => Ok(other?),
    }
}

/// Writes a line to stderr. Errors are ignored.
pub fn complain(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// Clears the terminal, then prints.
pub fn print_anew(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    if out.is_terminal() {
        out.write_all(b"\x1b[2J\x1b[H")?;
    }
    drop(out);
    print(text)
}

pub fn print_json<T: Serialize>(value: &T) -> Result<(), Failure> {
    print(&serde_json::to_string_pretty(value).map_err(Failure::plain)?)
}

/// Replaces control characters other than line ends and tabs. Titles and comments are other people's text and must not control the
/// terminal.
pub fn harmless(text: &str) -> Cow<'_, str> {
    let steers = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    if text.contains(steers) { text.replace(steers, "\u{fffd}").into() } else { text.into() }
}

pub fn time(at: Timestamp) -> String {
    match jiff::Timestamp::from_millisecond(at.0) {
        Ok(at) => at.to_zoned(jiff::tz::TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S").to_string(),
        Err(_) => at.0.to_string(),
    }
}

/// Joins all lines of the text into one.
pub fn line(text: &str) -> String {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" · ")
}

pub fn time_of_day(at: Timestamp) -> String {
    time(at).split(' ').next_back().unwrap_or_default().to_owned()
}

pub fn clip(text: &str, width: usize) -> String {
    let line = text.lines().next().unwrap_or_default();
    if line.chars().count() <= width {
        return line.to_owned();
    }
    line.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_peoples_text_does_not_steer_the_terminal() {
        assert_eq!(harmless("a\tb\nc"), "a\tb\nc");
        assert_eq!(harmless("evil \x1b]0;title\x07 \r\u{9b}2J"), "evil \u{fffd}]0;title\u{fffd} \u{fffd}\u{fffd}2J");
    }
}
