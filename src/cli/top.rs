//! `top`: the board on the whole terminal, live, with keys to act on it. What keys mean and what is drawn is in `tui`.

use std::io::{IsTerminal, Read, Seek, SeekFrom};
use std::time::{Duration, Instant};

use crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};

use crate::domain::ids::TicketId;
use crate::tui::{TopAction, TopKey, TopState, Wish, draw};
use crate::worker::transcript_path;

use super::Failure;
use super::context::Context;
use super::logs;
use super::operate;
use super::output;
use super::snapshot_source;
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

/// In raw mode the terminal does not turn Ctrl-C into a signal.
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

/// The transcript of a ticket's newest run, from its beginning.
struct FollowedLog {
    file: std::fs::File,
    page: TranscriptView,
    /// The beginning of a line whose end has not come yet.
    rest: String,
}

impl FollowedLog {
    fn open(context: &Context, ticket: &str) -> Result<Self, Failure> {
        let loaded = context.load(None)?;
        let place = context.place(&loaded);
        let run = logs::named_run(&loaded, &place, TicketId::new(ticket).as_str())?;
        let file = std::fs::File::open(transcript_path(&place.state_dir, &run))?;
        Ok(Self { file, page: TranscriptView::new(false, false), rest: String::new() })
    }

    fn more(&mut self) -> Option<Vec<String>> {
        let mut bytes = Vec::new();
        // One that was cut in the middle is shorter than before.
        let (at, length) = (self.file.stream_position().ok()?, self.file.metadata().ok()?.len());
        if length < at {
            self.file.seek(SeekFrom::End(0)).ok()?;
        }
        self.file.read_to_end(&mut bytes).ok()?;
        if bytes.is_empty() {
            return None;
        }
        self.rest.push_str(&self.page.take(&bytes));
        let end = self.rest.rfind('\n')? + 1;
        let whole: String = self.rest.drain(..end).collect();
        Some(whole.lines().map(str::to_owned).collect())
    }
}
