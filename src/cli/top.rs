//! `top`: shows the board on the whole terminal, live, with keys to act on it. `tui` decides what keys mean and what is drawn.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};

use crate::domain::ids::TicketId;
use crate::runtime::assembly::secrets;
use crate::tui::{TopAction, TopKey, TopState, Wish, draw};
use crate::worker::transcript_path;

use super::Failure;
use super::context::Context;
use super::logs;
use super::operate;
use super::output;
use super::snapshot_source;
use super::transcript_reader::TranscriptReader;
use super::transcript_view::TranscriptView;

const PICTURE_EVERY: Duration = Duration::from_millis(500);
const LOG_EVERY: Duration = Duration::from_millis(200);

pub fn top(context: &Context) -> Result<(), Failure> {
    if !std::io::stdout().is_terminal() || !std::io::stdin().is_terminal() {
        return Err(Failure::Usage(
            "`dirigent top` needs a terminal; `dirigent status` prints the same for scripts".into(),
        ));
    }
    let seen = snapshot_source::now(context)?;
    let mut state = TopState::new(seen.snapshot, seen.behind.name());
    let mut terminal = ratatui::try_init()?;
    let result = work(context, &mut terminal, &mut state);
    ratatui::restore();
    result
}

fn work(context: &Context, terminal: &mut ratatui::DefaultTerminal, state: &mut TopState) -> Result<(), Failure> {
    let colour = output::colour_on_stdout();
    let mut looked = Instant::now();
    let mut log: Option<FollowedLog> = None;
    loop {
        terminal.draw(|frame| draw(frame, state, output::time, colour))?;
        let action = if event::poll(LOG_EVERY)? { pressed(&event::read()?) } else { None };
        if let Some(key) = action {
            match state.reduce(TopAction::Key(key)) {
                Some(Wish::Quit) => return Ok(()),
                Some(Wish::Ask(request)) => {
                    let answer = operate::told(context, &request).unwrap_or_else(|failure| failure.text());
                    state.reduce(TopAction::Answer(answer));
                    looked -= PICTURE_EVERY;
                }
                Some(Wish::FollowLog { ticket }) => match FollowedLog::open(context, &ticket) {
                    Ok(opened) => log = Some(opened),
                    Err(failure) => {
                        log = None;
                        state.reduce(TopAction::LogLines(vec![failure.text()]));
                    }
                },
                None => {}
            }
        }
        if let Some(lines) = log.as_mut().and_then(FollowedLog::more) {
            state.reduce(TopAction::LogLines(lines));
        }
        if looked.elapsed() >= PICTURE_EVERY {
            match snapshot_source::now(context) {
                Ok(seen) => state.reduce(TopAction::Picture(Box::new(seen.snapshot), seen.behind.name())),
                Err(failure) => state.reduce(TopAction::Answer(failure.text())),
            };
            looked = Instant::now();
        }
    }
}

/// Translates a terminal event into a key of `top`. Ctrl-C means "back", because in raw mode the terminal does not turn it into a signal.
fn pressed(event: &Event) -> Option<TopKey> {
    let Event::Key(key) = event else { return None };
    if key.kind == KeyEventKind::Release {
        return None;
    }
    Some(match key.code {
        KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => TopKey::Back,
        KeyCode::Char(letter) => TopKey::Letter(letter),
        KeyCode::Up => TopKey::Up,
        KeyCode::Down => TopKey::Down,
        KeyCode::Enter => TopKey::Enter,
        KeyCode::Esc => TopKey::Back,
        KeyCode::Backspace => TopKey::Erase,
        _ => return None,
    })
}

/// How many bytes of a run's log are read, counted from its end.
const BACK: u64 = 512 << 10;

/// The transcript of a ticket's newest run.
struct FollowedLog {
    reader: TranscriptReader,
    page: TranscriptView,
    /// The beginning of a line that is not complete yet.
    rest: String,
}

impl FollowedLog {
    fn open(context: &Context, ticket: &str) -> Result<Self, Failure> {
        let loaded = context.load(None)?;
        let place = context.place(&loaded);
        let run = logs::named_run(&loaded, &place, TicketId::new(ticket).as_str())?;
        let reader = TranscriptReader::from_end(&transcript_path(&place.state_dir, &run), BACK)?;
        let page = TranscriptView::new(false, false, secrets(&loaded));
        Ok(Self { reader, page: logs::view_of(&loaded, &place, &run, page), rest: String::new() })
    }

    fn more(&mut self) -> Option<Vec<String>> {
        let Self { reader, page, rest } = self;
        let read = reader.read(|piece| {
            rest.push_str(&page.take(piece));
            Ok(())
        });
        read.ok()?;
        let end = rest.rfind('\n')? + 1;
        let whole: String = rest.drain(..end).collect();
        Some(whole.lines().map(str::to_owned).collect())
    }
}
