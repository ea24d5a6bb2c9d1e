//! What `top` looks like.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Cell, Paragraph, Row, Table, TableState, Wrap};

use super::state::{Asking, Screen, TopState};
use crate::domain::job::SwitchSource;
use crate::domain::phase::Phase;
use crate::domain::snapshot::{JobView, Snapshot};
use crate::domain::time::{self, Timestamp};

/// `colour` is off where nobody wants any.
pub fn draw(frame: &mut Frame<'_>, state: &TopState, colour: bool) {
    let head = header(&state.picture, &state.behind);
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

/// The counts, and under them what a person must know first.
fn header<'a>(picture: &'a Snapshot, behind: &'a str) -> Vec<Line<'a>> {
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
    for switch in &picture.switches {
        if matches!(switch.source, SwitchSource::File | SwitchSource::PauseAll) {
            lines.push(Line::styled(format!("STOPPED: {} ({})", switch.source.name(), switch.subject), bold));
        }
    }
    let errors = [&picture.ledger_error, &picture.tracker.last_error, &picture.workflow.reload_error];
    lines.extend(errors.into_iter().flatten().map(|error| Line::styled(harmless(error), bold)));
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
        field("why", &job.sentence),
        field("next", &job.next),
        field("branch", &job.branch),
    ];
    if let Some(pr) = &job.pr {
        lines.push(field("pull request", &format!("#{} {}, checks {}", pr.number, pr.state, pr.checks)));
    }
    lines.push(field("runs", &format!("{}, {} rework rounds", job.attempts, job.rework_cycles)));
    let spent = format!("{} tokens, {:.4} USD, {} turns", job.spent.tokens(), job.spent.cost_usd(), job.spent.turns);
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

/// What its agent is doing, else why it is where it is.
fn doing(job: &JobView, at: Timestamp) -> String {
    let run = job.run.as_ref();
    let said = run.and_then(|run| match run.quiet_since {
        Some(since) => Some(format!("quiet for {}", span(at, since))),
        None => run.tool.clone().or_else(|| run.said.clone()),
    });
    harmless(&said.unwrap_or_else(|| job.sentence.clone()))
}

/// Yellow needs a person, green is over well, blue moves.
fn meaning(phase: Phase) -> Color {
    match phase {
        Phase::WaitingForHuman | Phase::Blocked => Color::Yellow,
        Phase::Done => Color::Green,
        Phase::Implementing | Phase::Reviewing | Phase::Rework | Phase::Merging => Color::Blue,
        _ => Color::Reset,
    }
}

fn span(at: Timestamp, since: Timestamp) -> String {
    time::span(at.since(since).as_secs())
}

/// Other people's text on one line, without what would steer a terminal.
fn harmless(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
