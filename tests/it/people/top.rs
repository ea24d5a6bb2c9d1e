//! `top`: what keys mean and what is drawn, without a terminal; and once in a real one.

use std::process::Command;

use dirigent::domain::job::SwitchSource;
use dirigent::domain::phase::Phase;
use dirigent::domain::run::RunKind;
use dirigent::domain::snapshot::{Counts, JobView, RunView, Snapshot, SwitchView};
use dirigent::domain::time::Timestamp;
use dirigent::domain::usage::Usage;
use dirigent::runtime::Request;
use dirigent::tui::{TopAction, TopKey, TopState, Wish, draw};
use ratatui::Terminal;
use ratatui::backend::TestBackend;

use crate::support::board::{Board, MUTATE};

fn job(key: &str, phase: Phase, title: &str) -> JobView {
    JobView {
        id: format!("id-{key}"),
        key: key.into(),
        title: title.into(),
        state: "open".into(),
        url: None,
        labels: Vec::new(),
        priority: None,
        blocked_by: Vec::new(),
        phase,
        reason: "x".into(),
        sentence: format!("{key} is where it is"),
        next: "nothing".into(),
        detail: None,
        since: Timestamp(0),
        branch: format!("dirigent/{key}"),
        head: None,
        pr: None,
        attempts: 1,
        failures: 0,
        rework_cycles: 0,
        spent: Usage::default(),
        run: None,
        retry_at: None,
        verification: None,
        approved_head: None,
        budget: Vec::new(),
        merged_commit: None,
        merged_by_us: None,
        conditions: Vec::new(),
        remarks: Vec::new(),
        review: None,
    }
}

fn picture() -> Snapshot {
    let mut working = job("t-2", Phase::Implementing, "Paint the \u{1b}[2Jdoor");
    working.run = Some(RunView {
        runtime: "exec".into(),
        id: "01KA9ZJ3S2V6B8Q4TTK1MYNZ7E".into(),
        kind: RunKind::Implement,
        attempt: 1,
        started_at: Timestamp(0),
        last_event_at: Timestamp(0),
        turn_count: 1,
        session: None,
        pid: Some(7),
        usage: Usage::default(),
        said: Some("mixing the paint".into()),
        model: None,
        tool: None,
        quiet_since: None,
        stalls_at: None,
        stopping: None,
    });
    Snapshot {
        at: Timestamp(90_000),
        rollout: "merge".into(),
        counts: Counts { running: 1, blocked: 1, done: 1, ..Counts::default() },
        jobs: vec![
            job("t-1", Phase::Done, "Write the greeting"),
            working,
            job("t-3", Phase::Blocked, "Count to three"),
            job("t-4", Phase::Released, "Given back"),
        ],
        ..Snapshot::default()
    }
}

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
    terminal.draw(|frame| draw(frame, state, false)).unwrap();
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

/// A terminal of tmux with this board in it; ends with the test.
struct Tmux<'a> {
    board: &'a Board,
    socket: String,
}

impl Tmux<'_> {
    fn run(&self, args: &[&str]) -> String {
        let output = Command::new("tmux").args(["-L", &self.socket]).args(args).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn sees(&self, words: &str) {
        self.board.until(words, || self.run(&["capture-pane", "-p", "-t", "top"]).contains(words));
    }
}

impl Drop for Tmux<'_> {
    fn drop(&mut self) {
        self.run(&["kill-server"]);
    }
}

#[test]
fn in_a_real_terminal_a_key_pauses_the_ticket_and_another_leaves() {
    if Command::new("tmux").arg("-V").output().is_err() {
        println!("skipped: there is no tmux");
        return;
    }
    let board = Board::new("tk comment 'I am at it'\nwhile :; do sleep 1; done\n", MUTATE);
    board.ticket("t-1", "Paint the door");
    let runner = board.start();
    board.until("it works", || board.phase("t-1") == "implementing");
    let tmux = Tmux { board: &board, socket: format!("dirigent-test-{}", std::process::id()) };
    let plain = board.command(&["top"]);
    let mut words: Vec<String> = vec!["env".into(), "-i".into(), "TERM=screen".into()];
    words.extend(
        plain
            .get_envs()
            .map(|(name, value)| format!("{}={}", name.to_string_lossy(), value.unwrap_or_default().to_string_lossy())),
    );
    words.extend([plain.get_program().to_string_lossy().into_owned(), "top".into()]);
    let quoted: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
    let place = board.repo().display().to_string();
    tmux.run(&["new-session", "-d", "-s", "top", "-x", "80", "-y", "24", "-c", &place, &quoted.join(" ")]);
    tmux.sees("Paint the door");
    tmux.sees("implementing");
    tmux.run(&["send-keys", "-t", "top", "p"]);
    board.until("it is paused", || board.status(&[])["switches"].to_string().contains("pause_ticket"));
    tmux.run(&["send-keys", "-t", "top", "Enter"]);
    tmux.sees("branch");
    tmux.run(&["send-keys", "-t", "top", "q"]);
    tmux.run(&["send-keys", "-t", "top", "q"]);
    board.until("it is gone", || !tmux.run(&["list-sessions"]).contains("top"));
    runner.end();
}
