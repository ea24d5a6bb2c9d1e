//! `top`: what keys mean and what is drawn, without a terminal; and once in a real one.

use dirigent::domain::job::SwitchSource;
use dirigent::domain::phase::Phase;
use dirigent::domain::snapshot::SwitchView;
use dirigent::domain::time::Timestamp;
use dirigent::runtime::Request;
use dirigent::tui::{TopAction, TopKey, TopState, Wish, draw};
use ratatui::Terminal;
use ratatui::backend::TestBackend;

use super::pictures::{at, picture};
use super::tmux::Tmux;
use crate::support::board::{Board, MUTATE};

fn state() -> TopState {
    TopState::new(picture(), "runner up".into())
}

fn press(state: &mut TopState, keys: &str) -> Option<Wish> {
    let key = |letter| match letter {
        '\n' => TopKey::Enter,
        '<' => TopKey::Back,
        '^' => TopKey::Up,
        'v' => TopKey::Down,
        letter => TopKey::Letter(letter),
    };
    keys.chars().map(|letter| state.reduce(TopAction::Key(key(letter)))).last().flatten()
}

fn screen(state: &TopState, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, state, at, false)).unwrap();
    terminal.backend().to_string()
}

#[test]
fn the_cursor_stays_with_its_ticket() {
    let mut state = state();
    assert_eq!(state.selected.as_deref(), Some("id-t-3"), "what waits for a person stands first");
    press(&mut state, "v");
    assert_eq!(state.selected.as_deref(), Some("id-t-2"));
    let mut later = picture();
    later.jobs[1].phase = Phase::Done;
    state.reduce(TopAction::Picture(Box::new(later), "runner up".into()));
    assert_eq!(state.selected.as_deref(), Some("id-t-2"));
    state.reduce(TopAction::Picture(Box::default(), "no runner up".into()));
    assert_eq!(state.selected, None);
    assert_eq!(press(&mut state, "vvp"), None, "nothing is there to act on");
}

#[test]
fn keys_ask_for_what_they_stand_for() {
    let ticket = || "id-t-3".to_owned();
    assert_eq!(press(&mut state(), "p"), Some(Wish::Ask(Request::Pause { ticket: ticket() })));
    assert_eq!(press(&mut state(), "r"), Some(Wish::Ask(Request::Retry { ticket: ticket() })));
    assert_eq!(press(&mut state(), "P"), Some(Wish::Ask(Request::PauseAll)));
    assert_eq!(press(&mut state(), "l"), Some(Wish::FollowLog { ticket: ticket() }));
    assert_eq!(press(&mut state(), "q"), Some(Wish::Quit));
    assert_eq!(press(&mut state(), "\nq"), None, "back to the board first");
    let mut paused = state();
    let switch = |source, subject: &str| SwitchView { source, subject: subject.into(), since: Timestamp(0) };
    paused.picture.switches =
        vec![switch(SwitchSource::PauseTicket, "t-3"), switch(SwitchSource::PauseAll, "everything")];
    assert_eq!(press(&mut paused, "p"), Some(Wish::Ask(Request::Resume { ticket: ticket() })));
    assert_eq!(press(&mut paused, "P"), Some(Wish::Ask(Request::ResumeAll)));
}

#[test]
fn stopping_asks_first_and_only_where_something_runs() {
    let mut idle = state();
    assert_eq!(press(&mut idle, "s"), None);
    assert!(screen(&idle, 80, 10).contains("nothing runs for this ticket"));
    let mut running = state();
    assert_eq!(press(&mut running, "vs"), None);
    assert!(screen(&running, 80, 10).contains("stop its run?"));
    assert_eq!(press(&mut running, "n"), None);
    assert_eq!(press(&mut running, "sy"), Some(Wish::Ask(Request::Stop { ticket: "id-t-2".into() })));
}

#[test]
fn a_message_is_typed_sent_and_taken_back() {
    let mut state = state();
    assert_eq!(press(&mut state, "mhi q"), None, "letters are text while it is typed");
    assert!(screen(&state, 80, 10).contains("say: hi q"));
    state.reduce(TopAction::Key(TopKey::Erase));
    let wish = press(&mut state, "\n");
    assert_eq!(wish, Some(Wish::Ask(Request::Message { ticket: "id-t-3".into(), text: "hi".into(), urgent: false })));
    assert_eq!(press(&mut state, "mno<"), None);
    assert_eq!(press(&mut state, "m\n"), None, "nothing is not a message");
}

#[test]
fn a_log_is_followed_and_scrolled() {
    let mut state = state();
    press(&mut state, "l");
    state.reduce(TopAction::LogLines((1..=30).map(|number| format!("line {number}")).collect()));
    assert!(screen(&state, 80, 10).contains("line 30"));
    press(&mut state, "^^^");
    let shown = screen(&state, 80, 10);
    assert!(shown.contains("line 27") && !shown.contains("line 30"), "{shown}");
}

#[test]
fn the_screens_fit_eighty_columns() {
    let mut state = state();
    insta::assert_snapshot!("top_board", screen(&state, 80, 12));
    press(&mut state, "v\n");
    insta::assert_snapshot!("top_ticket", screen(&state, 80, 16));
    // However small it is, it draws.
    for (width, height) in [(1, 1), (20, 3), (44, 5)] {
        screen(&state, width, height);
    }
}

#[test]
fn in_a_real_terminal_a_key_pauses_the_ticket_and_another_leaves() {
    if !Tmux::is_there() {
        return;
    }
    let board = Board::new("tk comment 'I am at it'\nwhile :; do sleep 1; done\n", MUTATE);
    board.ticket("t-1", "Paint the door");
    let runner = board.start();
    board.until("it works", || board.phase("t-1") == "implementing");
    let tmux = Tmux::showing(&board, "top", &["top"]);
    tmux.sees("Paint the door");
    tmux.sees("implementing");
    tmux.press("p");
    board.until("it is paused", || board.status(&[])["switches"].to_string().contains("pause_ticket"));
    tmux.press("Enter");
    tmux.sees("branch");
    tmux.press("q");
    tmux.press("q");
    board.until("it is gone", || !tmux.is_open());
    runner.end();
}
