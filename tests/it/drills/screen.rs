//! The live table on a terminal: whether it is drawn, and how often.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use super::Board;

/// What is written when a picture is drawn over the one before.
const OVER: &str = "\u{1b}[J";

/// The runner on a terminal of its own, whose output is kept.
struct Terminal {
    script: Child,
    kept: PathBuf,
}

impl Terminal {
    fn new(board: &Board, words: &[&str]) -> Self {
        let kept = board.scratch.dir.path().join("screen");
        let plain = board.command(&[]);
        let sets: String = words.iter().map(|word| format!(" --set {word}")).collect();
        let run = format!("{} run --set polling.interval_ms=1h{sets}", env!("CARGO_BIN_EXE_dirigent"));
        let mut command = Command::new("script");
        command.args(["-qefc", &run]).arg(&kept).current_dir(board.repo()).env_clear();
        command.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?)))).env("TERM", "xterm");
        let script = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        Self { script, kept }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(&self.kept).unwrap_or_default()).into_owned()
    }

    /// How often the table was drawn over itself.
    fn drawings(&self) -> usize {
        self.text().matches(OVER).count()
    }

    /// Tells the runner to end, and waits until it has.
    fn end(mut self, board: &Board) {
        board.ok(&["stop"]);
        board.until("the runner is gone", || self.script.try_wait().unwrap().is_some());
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.script.kill();
        let _ = self.script.wait();
    }
}

fn is_up(board: &Board) -> bool {
    let status = board.ok(&["status"]);
    status.contains("runner up") && !status.contains("no runner up")
}

#[test]
fn the_live_table_is_drawn_where_the_file_does_not_switch_it_off() {
    for (words, drawn) in [(&[][..], true), (&["observability.dashboard_enabled=false"], false)] {
        let board = Board::new("true", "");
        let terminal = Terminal::new(&board, words);
        if drawn {
            board.until("the table is drawn", || terminal.drawings() > 2);
        }
        board.until("it listens", || is_up(&board));
        let kept = terminal.kept.clone();
        terminal.end(&board);
        let text = String::from_utf8_lossy(&std::fs::read(kept).unwrap()).into_owned();
        assert_eq!(text.contains(OVER), drawn, "{text}");
    }
}

#[test]
fn the_live_table_is_drawn_as_often_as_the_file_says() {
    let board = Board::new("true", "");
    let often = ["observability.refresh_ms=20", "observability.render_interval_ms=20"];
    let terminal = Terminal::new(&board, &often);
    board.until("it is drawn again and again", || terminal.drawings() > 60);
    terminal.end(&board);

    // Nothing happens, so that only the clock would draw it anew; and a long pause keeps nobody from ending.
    for words in [
        ["observability.refresh_ms=1h", "observability.render_interval_ms=20"],
        ["observability.refresh_ms=20", "observability.render_interval_ms=1h"],
    ] {
        let terminal = Terminal::new(&board, &words);
        board.until("the table is there", || terminal.text().contains("runner up"));
        board.until("it listens", || is_up(&board));
        std::thread::sleep(std::time::Duration::from_secs(2));
        let drawn = terminal.drawings();
        assert!(drawn < 60, "{words:?}: {drawn}");
        terminal.end(&board);
    }
}
