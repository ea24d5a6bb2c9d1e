//! The live table of `run`: lines for a terminal of any size. Tickets that wait for a person come first; tickets that do not fit are
//! counted in a last line.

use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};

use super::rows::{doing, fitting, harmless, meaning, padded, rows, span};
use super::troubles::{Weight, troubles};
use crate::domain::snapshot::{JobView, Snapshot};
use crate::domain::time::Timestamp;

/// From this width on the table has a column for titles.
const WIDE: usize = 100;
const SINCE: usize = 5;

/// What the live table shows besides the snapshot, and the space it has.
#[derive(Debug, Clone)]
pub struct CompactView<'a> {
    pub width: u16,
    pub height: u16,
    /// Formats a point in time.
    pub time: fn(Timestamp) -> String,
    /// Shown first: that the runner is stopping, or the result of a key press.
    pub notice: Option<String>,
    /// The newest warnings of the log.
    pub warnings: &'a [String],
    /// Lines of the log, shown in place of the tickets. `None` shows the tickets.
    pub log: Option<&'a [String]>,
    /// Whether to show the line that explains the keys. `false` where the input is not a terminal.
    pub keys: bool,
}

pub fn compact(picture: &Snapshot, view: &CompactView<'_>) -> Vec<Line<'static>> {
    let (width, height) = (usize::from(view.width), usize::from(view.height));
    let mut lines = vec![Line::styled(fitting(&counts(picture), width), Style::new().add_modifier(Modifier::BOLD))];
    lines.extend(notes(picture, view, width, (height / 3).max(2)));
    let footer = view.keys.then(|| Line::styled(fitting(&keys(picture, view), width), dim()));
    // The table has an empty line above it, and one below it where there is a footer.
    let room = height.saturating_sub(lines.len() + 1 + footer.iter().count() * 2);
    lines.push(Line::default());
    match view.log {
        Some(log) => {
            let newest = &log[log.len().saturating_sub(room)..];
            lines.extend(newest.iter().map(|line| Line::raw(fitting(&harmless(line), width))));
        }
        None => lines.extend(tickets(picture, width, room)),
    }
    if let Some(footer) = footer {
        lines.extend([Line::default(), footer]);
    }
    lines.truncate(height);
    lines.into_iter().map(|line| cut(line, width)).collect()
}

/// Truncates a line to `width`, for a terminal that is narrower than the columns.
fn cut(line: Line<'static>, width: usize) -> Line<'static> {
    if line.width() <= width {
        return line;
    }
    let mut left = width;
    let spans = line.spans.into_iter().map(|span| {
        let text = fitting(&span.content, left);
        let span = Span::styled(text, span.style);
        left = left.saturating_sub(span.width());
        span
    });
    Line::from(spans.collect::<Vec<_>>()).style(line.style)
}

/// The heading: the rollout mode and how many tickets are in each group. Groups with none are left out to save space.
fn counts(picture: &Snapshot) -> String {
    let counts = &picture.counts;
    let parts = [
        (counts.running, "running"),
        (counts.queued + counts.retrying, "queued"),
        (counts.waiting, "waiting"),
        (counts.blocked, "blocked"),
        (counts.done, "done"),
    ];
    let told = parts.iter().filter(|(count, _)| *count > 0).map(|(count, word)| format!(" · {count} {word}"));
    format!("mode {}{}", picture.rollout, told.collect::<String>())
}

fn notes(picture: &Snapshot, view: &CompactView<'_>, width: usize, most: usize) -> Vec<Line<'static>> {
    let mut notes: Vec<(Weight, String)> = view.notice.iter().map(|notice| (Weight::Grave, notice.clone())).collect();
    notes.extend(troubles(picture, view.time).into_iter().map(|trouble| (trouble.weight, trouble.text)));
    notes.extend(view.warnings.iter().map(|warning| (Weight::Doubtful, warning.clone())));
    let hidden = notes.len().saturating_sub(most);
    let shown = if hidden > 0 { most.saturating_sub(1) } else { most };
    let missing = notes.len().saturating_sub(shown);
    let line = |(weight, text): &(Weight, String)| {
        let style = match weight {
            Weight::Grave => Style::new().fg(Color::Red),
            Weight::Doubtful => Style::new().fg(Color::Yellow),
            Weight::Told => Style::new(),
        };
        Line::styled(fitting(&harmless(&text.replace('\n', " · ")), width), style)
    };
    let mut lines: Vec<Line<'static>> = notes.iter().take(shown).map(line).collect();
    if missing > 0 {
        lines.push(Line::styled(fitting(&format!("+{missing} more: dirigent status"), width), dim()));
    }
    lines
}

fn tickets(picture: &Snapshot, width: usize, room: usize) -> Vec<Line<'static>> {
    let jobs = rows(picture);
    if jobs.is_empty() {
        return vec![Line::raw("no tickets")];
    }
    // One line is for the headings; if not all tickets fit, another one counts the rest.
    let places = room.saturating_sub(1);
    let shown = if jobs.len() > places { places.saturating_sub(1) } else { jobs.len() };
    let widest = |of: fn(&JobView) -> String, least: usize, most: usize| {
        jobs.iter().take(shown).map(|job| of(job).chars().count()).max().unwrap_or(least).clamp(least, most)
    };
    let key = widest(|job| harmless(&job.key), "TICKET".len(), 20);
    let phase = widest(|job| job.phase.words().to_owned(), "PHASE".len(), 20);
    let rest = width.saturating_sub(key + phase + SINCE + 6);
    let title = if width >= WIDE { rest.saturating_sub(2) * 2 / 5 } else { 0 };
    let gap = |title: usize| if title > 0 { title + 2 } else { 0 };
    let line = |cells: [(String, Style); 5]| {
        let widths = [key, phase, SINCE, title, rest.saturating_sub(gap(title))];
        let mut spans: Vec<Span<'static>> = Vec::new();
        for ((text, style), width) in cells.into_iter().zip(widths).filter(|(_, width)| *width > 0) {
            if !spans.is_empty() {
                spans.push(Span::raw("  "));
            }
            spans.push(Span::styled(padded(&text, width), style));
        }
        Line::from(spans)
    };
    let heading = ["TICKET", "PHASE", "SINCE", "TITLE", "WHAT"].map(|name| (name.to_owned(), dim()));
    let mut lines = vec![line(heading)];
    lines.extend(jobs.iter().take(shown).map(|job| {
        let colour = Style::new().fg(meaning(job.phase));
        let plain = Style::new();
        line([
            (harmless(&job.key), plain),
            (job.phase.words().to_owned(), colour),
            (span(picture.at, job.since), plain),
            (harmless(&job.title), plain),
            (doing(job, picture.at), plain),
        ])
    }));
    if jobs.len() > shown {
        lines.push(Line::styled(fitting(&format!("+{} more: dirigent status", jobs.len() - shown), width), dim()));
    }
    lines
}

fn keys(picture: &Snapshot, view: &CompactView<'_>) -> String {
    let pause = if picture.paused_by_command() { "p go on" } else { "p pause everything" };
    let log = if view.log.is_some() { "l tickets" } else { "l log" };
    format!("q end · {pause} · {log}")
}

fn dim() -> Style {
    Style::new().add_modifier(Modifier::DIM)
}
