//! `top`: shows the board on the whole terminal, live, with keys to act on it. `tui` decides what keys mean and what is drawn.

use std::fs::File;
use std::io::{BufRead, BufReader, IsTerminal, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};

use crate::agent::transcript::newest_part;
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
    whole: PathBuf,
    /// The part of the transcript that is followed now.
    file: File,
    page: TranscriptView,
    /// The beginning of a line that is not complete yet.
    rest: String,
}

impl FollowedLog {
    fn open(context: &Context, ticket: &str) -> Result<Self, Failure> {
        let loaded = context.load(None)?;
        let place = context.place(&loaded);
        let run = logs::named_run(&loaded, &place, TicketId::new(ticket).as_str())?;
        let whole = transcript_path(&place.state_dir, &run);
        let mut file = File::open(newest_part(&whole))?;
        let back = file.metadata()?.len().saturating_sub(BACK);
        if back > 0 {
            // Begins at the next whole line.
            file.seek(SeekFrom::Start(back))?;
            let mut line = BufReader::new(&file);
            let cut = line.read_until(b'\n', &mut Vec::new())?;
            file.seek(SeekFrom::Start(back + cut as u64))?;
        }
        let page = TranscriptView::new(false, false, secrets(&loaded));
        Ok(Self { page: logs::view_of(&loaded, &place, &run, page), whole, file, rest: String::new() })
    }

    fn more(&mut self) -> Option<Vec<String>> {
        // The open file stays readable even if it has been renamed, so its rest is read before the next part is opened.
        let newest = newest_part(&self.whole);
        let is_another = |file: &File| Some(file.metadata().ok()?.ino() != newest.metadata().ok()?.ino());
        let goes_on = newest != self.whole && is_another(&self.file).unwrap_or(false);
        let mut bytes = self.unread()?;
        if goes_on {
            self.file = File::open(&newest).ok()?;
            bytes.extend(self.unread()?);
        }
        if bytes.is_empty() {
            return None;
        }
        self.rest.push_str(&self.page.take(&bytes));
        let end = self.rest.rfind('\n')? + 1;
        let whole: String = self.rest.drain(..end).collect();
        Some(whole.lines().map(str::to_owned).collect())
    }

    fn unread(&mut self) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        self.file.read_to_end(&mut bytes).ok()?;
        Some(bytes)
    }
}
