//! When the live table is drawn, and what becomes of its runner when the terminal goes away.

use std::path::{Path, PathBuf};

use super::tmux::Tmux;
use crate::support::board::{Board, MERGE};

/// What is written before a picture is drawn over the one before.
const OVER: &str = "\u{1b}[J";

/// A runner on a terminal whose every byte is kept in a file.
struct Recorded<'a> {
    tmux: Tmux<'a>,
    kept: PathBuf,
}

impl<'a> Recorded<'a> {
    fn run(board: &'a Board, name: &'static str, sets: &[&str]) -> Self {
        let kept = board.repo().join(format!("../{name}.screen"));
        let mut args = vec!["run", "--set", "polling.interval_ms=1h"];
        args.extend(sets.iter().flat_map(|set| ["--set", set]));
        // The terminal is recorded before the first byte is written to it.
        let go = board.repo().join(format!("../{name}.go"));
        let wait = format!("until [ -e '{}' ]; do sleep 0.05; done", go.display());
        let shell = format!("{wait}; exec {}", super::tmux::command_line(board, &args));
        let tmux = Tmux::running(board, name, &shell);
        tmux.record(&kept);
        std::fs::write(&go, "").unwrap();
        Self { tmux, kept }
    }

    fn text(&self) -> String {
        read(&self.kept)
    }

    fn drawings(&self) -> usize {
        self.text().matches(OVER).count()
    }
}

fn read(kept: &Path) -> String {
    String::from_utf8_lossy(&std::fs::read(kept).unwrap_or_default()).into_owned()
}

fn is_up(board: &Board) -> bool {
    let status = board.ok(&["status"]);
    status.contains("runner up") && !status.contains("no runner up")
}

fn stop(board: &Board, terminal: &Recorded<'_>) {
    board.ok(&["stop"]);
    board.until("the runner is gone", || !terminal.tmux.is_open());
}

#[test]
fn the_live_table_is_drawn_where_the_file_does_not_switch_it_off() {
    if !Tmux::is_there() {
        return;
    }
    let board = Board::new("true", "");
    let terminal = Recorded::run(&board, "shown", &[]);
    board.until("the table is drawn", || terminal.drawings() > 2);
    stop(&board, &terminal);

    let plain = Recorded::run(&board, "plain", &["observability.dashboard_enabled=false"]);
    board.until("it says that it runs", || is_up(&board) && !plain.text().is_empty());
    stop(&board, &plain);
    assert!(!plain.text().contains(OVER), "{}", plain.text());
}

#[test]
fn the_live_table_is_drawn_as_often_as_the_file_says() {
    if !Tmux::is_there() {
        return;
    }
    let board = Board::new("true", "");
    let often = Recorded::run(&board, "often", &["observability.refresh_ms=20", "observability.render_interval_ms=20"]);
    board.until("it is drawn again and again", || often.drawings() > 100);
    stop(&board, &often);

    // Nothing happens on this board, so that only the clock would draw the table anew; and a long pause keeps nobody from ending.
    for (name, sets) in [
        ("refresh", ["observability.refresh_ms=1h", "observability.render_interval_ms=20"]),
        ("render", ["observability.refresh_ms=20", "observability.render_interval_ms=1h"]),
    ] {
        let terminal = Recorded::run(&board, name, &sets);
        board.until("the table is there", || terminal.text().contains("mode "));
        board.until("it listens", || is_up(&board));
        std::thread::sleep(std::time::Duration::from_secs(3));
        let drawn = terminal.drawings();
        assert!(drawn < 100, "{sets:?}: {drawn}");
        stop(&board, &terminal);
    }
}

#[test]
fn a_terminal_that_goes_away_ends_its_runner_in_good_order() {
    if !Tmux::is_there() {
        return;
    }
    let board = Board::new("tk comment 'I am at it'\necho half > half.txt\nwhile :; do sleep 1; done\n", MERGE);
    board.ticket("t-1", "Paint the door");
    let terminal = Recorded::run(&board, "gone", &[]);
    terminal.tmux.sees("I am at it");
    assert!(is_up(&board));
    drop(terminal);
    board.until("the runner is gone", || !is_up(&board));
    board.until("its agent is gone", || board.worker_processes().is_empty());
    let story = board.ok(&["explain", "t-1"]);
    assert!(story.contains("half.txt") || story.contains("saved"), "what was half done is kept: {story}");
}
