//! What all views of the board have in common: the order of tickets, the text about each, colours, ages and column widths.

use ratatui::style::Color;

use crate::domain::phase::Phase;
use crate::domain::snapshot::{JobView, Snapshot};
use crate::domain::time::{self, Timestamp};
use crate::domain::words::short_run_ids;

/// The rank of a phase in the table: tickets that wait for a person come first, then those in progress, and finished ones last.
pub fn order(phase: Phase) -> u8 {
    match phase {
        Phase::WaitingForHuman => 0,
        Phase::Blocked => 1,
        Phase::Implementing | Phase::Reviewing | Phase::Rework | Phase::Merging => 2,
        Phase::ReadyToMerge | Phase::WaitingForChecks => 3,
        Phase::Queued => 4,
        Phase::Done => 5,
        Phase::Released => 6,
    }
}

/// Returns the tickets in the order of [`order`], then by key. Released tickets are left out.
pub fn rows(picture: &Snapshot) -> Vec<&JobView> {
    let mut jobs: Vec<&JobView> = picture.jobs.iter().filter(|job| job.phase != Phase::Released).collect();
    jobs.sort_by(|one, other| (order(one.phase), &one.key).cmp(&(order(other.phase), &other.key)));
    jobs
}

/// Describes what the ticket's agent is doing or said last; without a live run, why the ticket is where it is.
pub fn doing(job: &JobView, at: Timestamp) -> String {
    let said = job.run.as_ref().and_then(|run| match run.quiet_since {
        Some(since) => Some(format!("quiet for {}", span(at, since))),
        None => run.tool.clone().or_else(|| run.said.clone()),
    });
    harmless(&said.unwrap_or_else(|| short_run_ids(&job.sentence)))
}

/// The colour of a phase: yellow needs a person, green has ended well, blue is in progress.
pub fn meaning(phase: Phase) -> Color {
    match phase {
        Phase::WaitingForHuman | Phase::Blocked => Color::Yellow,
        Phase::Done => Color::Green,
        Phase::Implementing | Phase::Reviewing | Phase::Rework | Phase::Merging => Color::Blue,
        _ => Color::Reset,
    }
}

/// Formats the time from `since` to `at` in one unit: `42s`, `7m`, `3h`, `2d`.
pub fn span(at: Timestamp, since: Timestamp) -> String {
    time::span(at.since(since).as_secs())
}

/// Returns the text on one line, with control characters replaced by blanks. Text of other people must not control the terminal.
pub fn harmless(text: &str) -> String {
    text.trim_end().chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// Truncates the text to `width` terminal columns; a truncated text ends with `…`.
pub fn fitting(text: &str, width: usize) -> String {
    if text.chars().map(columns).sum::<usize>() <= width {
        return text.to_owned();
    }
    let mut left = width.saturating_sub(1);
    let fits = |c: &char| {
        let needs = columns(*c);
        let fits = needs <= left;
        left = if fits { left - needs } else { 0 };
        fits
    };
    let mut cut: String = text.chars().take_while(fits).collect();
    if width > 0 {
        cut.push('…');
    }
    cut
}

/// Like [`fitting`], and fills a shorter text up with blanks.
pub fn padded(text: &str, width: usize) -> String {
    let mut cell = fitting(text, width);
    let taken: usize = cell.chars().map(columns).sum();
    cell.extend(std::iter::repeat_n(' ', width.saturating_sub(taken)));
    cell
}

/// How many terminal columns a character takes: two for East Asian characters and emoji, else one.
fn columns(c: char) -> usize {
    let wide = matches!(u32::from(c),
        0x1100..=0x115f | 0x2e80..=0xa4cf | 0xac00..=0xd7a3 | 0xf900..=0xfaff | 0xfe30..=0xfe6f
        | 0xff00..=0xff60 | 0xffe0..=0xffe6 | 0x1f300..=0x1faff | 0x20000..=0x3fffd);
    if wide { 2 } else { 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_is_wider_than_its_place() {
        assert_eq!(fitting("short", 10), "short");
        assert_eq!(fitting("a long line", 6), "a lon…");
        assert_eq!(fitting("漢字漢字", 5), "漢字…");
        assert_eq!(fitting("漢字漢字", 8), "漢字漢字");
        assert_eq!(fitting("a", 0), "");
        assert_eq!(padded("漢", 4), "漢  ");
        assert_eq!(padded("a漢b", 3), "a… ");
    }
}
