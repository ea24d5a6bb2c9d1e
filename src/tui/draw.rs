//! Draws the screens of `top`.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Cell, Paragraph, Row, Table, TableState, Wrap};

use super::rows::{doing, harmless, meaning, span};
use super::state::{Asking, Screen, TopState};
use super::troubles::{Weight, troubles};
use crate::domain::snapshot::{JobView, Snapshot};
use crate::domain::time::Timestamp;
use crate::domain::words::short_run_ids;

/// Draws the whole screen. `time` formats a point in time; with `colour` off only bold, dim and reversed text is used.
pub fn draw(frame: &mut Frame<'_>, state: &TopState, time: fn(Timestamp) -> String, colour: bool) {
    let mut head = header(&state.picture, &state.behind, time, colour);
    // However long the heading is, the tickets keep at least half of the screen.
    head.truncate((usize::from(frame.area().height) / 2).max(1));
    let rows = [Constraint::Length(head.len() as u16), Constraint::Min(1), Constraint::Length(1)];
    let [top, middle, bottom] = Layout::vertical(rows).areas(frame.area());
    frame.render_widget(Paragraph::new(head), top);
    match &state.screen {
        Screen::Board => board(frame, middle, state, colour),
        Screen::Ticket(id) => {
            let text = state
                .job(id)
                .map_or_else(|| vec![Line::from("this ticket is over")], |job| ticket(job, state.picture.at));
            frame.render_widget(Paragraph::new(text).wrap(Wrap { trim: false }), middle);
        }
        Screen::Log(_) => log(frame, middle, state),
    }
    frame.render_widget(Paragraph::new(footer(state)).style(Style::new().add_modifier(Modifier::REVERSED)), bottom);
}

/// Returns the heading: the counts, and under them what stops or troubles the runner.
fn header(picture: &Snapshot, behind: &str, time: fn(Timestamp) -> String, colour: bool) -> Vec<Line<'static>> {
    let counts = &picture.counts;
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let mut lines = vec![Line::from(vec![
        Span::styled(format!("{behind} · {}", picture.rollout), bold),
        Span::raw(format!(
            " · {} running · {} queued · {} waiting · {} blocked · {} done",
            counts.running,
            counts.queued + counts.retrying,
            counts.waiting,
            counts.blocked,
            counts.done
        )),
    ])];
    lines.extend(troubles(picture, time).into_iter().map(|trouble| {
        let style = match trouble.weight {
            Weight::Grave => bold.fg(if colour { Color::Red } else { Color::Reset }),
            Weight::Doubtful => Style::new().fg(if colour { Color::Yellow } else { Color::Reset }),
            Weight::Told => Style::new(),
        };
        Line::styled(harmless(&trouble.text), style)
    }));
    lines.push(Line::default());
    lines
}

fn board(frame: &mut Frame<'_>, area: Rect, state: &TopState, colour: bool) {
    let jobs = state.rows();
    if jobs.is_empty() {
        frame.render_widget(Paragraph::new("no tickets"), area);
        return;
    }
    let at = state.picture.at;
    let selected = jobs.iter().position(|job| Some(&job.id) == state.selected.as_ref());
    let rows = jobs.iter().map(|job| {
        let style = if colour { Style::new().fg(meaning(job.phase)) } else { Style::new() };
        Row::new([
            Cell::from(harmless(&job.key)),
            Cell::from(Span::styled(job.phase.words(), style)),
            Cell::from(span(at, job.since)),
            Cell::from(harmless(&job.title)),
            Cell::from(doing(job, at)),
        ])
    });
    let key = jobs.iter().map(|job| job.key.chars().count()).max().unwrap_or(6).clamp(6, 20) as u16;
    let widths = [
        Constraint::Length(key),
        Constraint::Length(20),
        Constraint::Length(5),
        Constraint::Fill(2),
        Constraint::Fill(3),
    ];
    let table = Table::new(rows, widths)
        .header(Row::new(["TICKET", "PHASE", "SINCE", "TITLE", "WHY"]).style(Style::new().add_modifier(Modifier::DIM)))
        .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED));
    let mut cursor = TableState::new().with_selected(selected);
    frame.render_stateful_widget(table, area, &mut cursor);
}

fn ticket(job: &JobView, at: Timestamp) -> Vec<Line<'static>> {
    let mut lines = vec![
        field("ticket", &format!("{} {}", job.key, job.title)),
        field("phase", &format!("{} for {}", job.phase.words(), span(at, job.since))),
        field("why", &short_run_ids(&job.sentence)),
        field("next", &job.next),
        field("branch", &job.branch),
    ];
    if let Some(pr) = &job.pr {
        lines.push(field("pull request", &format!("#{} {}, checks {}", pr.number, pr.state, pr.checks)));
    }
    lines.push(field("runs", &format!("{}, {} rework rounds", job.attempts, job.rework_cycles)));
    let spent = format!("{} tokens, {:.4} USD, turns: {}", job.spent.tokens(), job.spent.cost_usd(), job.spent.turns);
    lines.push(field("spent", &spent));
    if let Some(run) = &job.run {
        lines.push(field("running", &format!("{} for {}", run.kind.name(), span(at, run.started_at))));
        for (name, value) in [("model", &run.model), ("tool", &run.tool), ("last words", &run.said)] {
            lines.extend(value.as_deref().map(|value| field(name, value)));
        }
    }
    for line in job.detail.iter().flat_map(|detail| detail.lines()) {
        lines.push(Line::from(harmless(line)));
    }
    lines
}

fn log(frame: &mut Frame<'_>, area: Rect, state: &TopState) {
    if state.log.is_empty() {
        frame.render_widget(Paragraph::new("nothing has been said yet"), area);
        return;
    }
    let end = state.log.len().saturating_sub(state.log_back);
    let start = end.saturating_sub(usize::from(area.height));
    let lines: Vec<Line<'_>> = state.log[start..end].iter().map(|line| Line::from(harmless(line))).collect();
    frame.render_widget(Paragraph::new(lines), area);
}

fn footer(state: &TopState) -> Line<'static> {
    if let Some(asking) = &state.asking {
        return match asking {
            Asking::Message { text, .. } => Line::from(format!("say: {}▏ (Enter sends, Esc does not)", harmless(text))),
            Asking::ReallyStop { .. } => {
                Line::from("stop its run? its work is saved (y stops, any other key does not)")
            }
        };
    }
    if let Some(answer) = &state.answer {
        return Line::from(harmless(answer));
    }
    Line::from(match state.screen {
        Screen::Board => "↑↓ Enter open · l log · p pause (P all) · s stop · r retry · m message · q quit",
        Screen::Ticket(_) => "↑↓ next · l log · p pause · s stop · r retry · m message · q back",
        Screen::Log(_) => "↑↓ scroll · m message · s stop · q back",
    })
}

fn field(name: &str, value: &str) -> Line<'static> {
    Line::from(vec![
        Span::styled(format!("{name:<14}"), Style::new().add_modifier(Modifier::DIM)),
        Span::raw(harmless(value)),
    ])
}
