//! What every view of the board has in common: the order of tickets, what is said of each, colours, ages, widths.

use ratatui::style::Color;

use crate::domain::phase::Phase;
use crate::domain::snapshot::{JobView, Snapshot};
use crate::domain::time::Timestamp;
use crate::domain::words::short_run_ids;

/// What waits for a person comes first, then what is moving, and last what is over.
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

/// Tickets that are ours, in that order.
pub fn rows(picture: &Snapshot) -> Vec<&JobView> {
    let mut jobs: Vec<&JobView> = picture.jobs.iter().filter(|job| job.phase != Phase::Released).collect();
    jobs.sort_by(|one, other| (order(one.phase), &one.key).cmp(&(order(other.phase), &other.key)));
    jobs
}

/// What its agent is doing or said last, else why the ticket is where it is.
pub fn doing(job: &JobView, at: Timestamp) -> String {
    let said = job.run.as_ref().and_then(|run| match run.quiet_since {
        Some(since) => Some(format!("quiet for {}", span(at, since))),
        None => run.tool.clone().or_else(|| run.said.clone()),
    });
    harmless(&said.unwrap_or_else(|| short_run_ids(&job.sentence)))
}

/// Yellow needs a person, green has ended well, blue moves.
pub fn meaning(phase: Phase) -> Color {
    match phase {
        Phase::WaitingForHuman | Phase::Blocked => Color::Yellow,
        Phase::Done => Color::Green,
        Phase::Implementing | Phase::Reviewing | Phase::Rework | Phase::Merging => Color::Blue,
        _ => Color::Reset,
    }
}

/// `42s`, `7m`, `3h`, `2d`.
pub fn span(at: Timestamp, since: Timestamp) -> String {
    match at.since(since).as_secs() {
        seconds @ 0..=119 => format!("{seconds}s"),
        seconds @ 120..=7_199 => format!("{}m", seconds / 60),
        seconds @ 7_200..=172_799 => format!("{}h", seconds / 3_600),
        seconds => format!("{}d", seconds / 86_400),
    }
}

/// Other people's text on one line, without what would steer a terminal.
pub fn harmless(text: &str) -> String {
    text.trim_end().chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// As much of the text as fits, with a sign that something is missing.
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

/// The same, filled up with blanks.
pub fn padded(text: &str, width: usize) -> String {
    let mut cell = fitting(text, width);
    let taken: usize = cell.chars().map(columns).sum();
    cell.extend(std::iter::repeat_n(' ', width.saturating_sub(taken)));
    cell
}

/// How many places of a terminal a character takes: East Asian ones and pictures take two.
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
