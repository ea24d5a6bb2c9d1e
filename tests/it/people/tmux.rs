//! A real terminal of eighty columns, where there is tmux.

use std::path::Path;
use std::process::Command;

use crate::support::board::Board;

/// Ends with the test.
pub struct Tmux<'a> {
    board: &'a Board,
    socket: String,
    name: &'static str,
}

impl<'a> Tmux<'a> {
    pub fn is_there() -> bool {
        let is_there = Command::new("tmux").arg("-V").output().is_ok();
        if !is_there {
            println!("skipped: there is no tmux");
        }
        is_there
    }

    /// This command of ours alone.
    pub fn showing(board: &'a Board, name: &'static str, args: &[&str]) -> Self {
        let shell = format!("exec {}", command_line(board, args));
        Self::running(board, name, &shell)
    }

    /// A line of shell.
    pub fn running(board: &'a Board, name: &'static str, shell: &str) -> Self {
        let tmux = Self { board, socket: format!("dirigent-{name}-{}", std::process::id()), name };
        let place = board.repo().display().to_string();
        tmux.run(&["-f", "/dev/null", "new-session", "-d", "-s", name, "-x", "80", "-y", "24", "-c", &place, shell]);
        tmux
    }

    fn run(&self, args: &[&str]) -> String {
        let output = Command::new("tmux").args(["-L", &self.socket]).args(args).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Keeps all that is written to the terminal from now on.
    pub fn record(&self, file: &Path) {
        self.run(&["pipe-pane", "-t", self.name, &format!("cat >> '{}'", file.display())]);
    }

    pub fn press(&self, key: &str) {
        self.run(&["send-keys", "-t", self.name, key]);
    }

    pub fn screen(&self) -> String {
        self.run(&["capture-pane", "-p", "-t", self.name])
    }

    pub fn sees(&self, words: &str) {
        self.board.until(words, || self.screen().contains(words));
    }

    pub fn is_open(&self) -> bool {
        self.run(&["list-sessions"]).contains(self.name)
    }
}

/// The command with the board's own environment and nothing else, for a shell.
pub fn command_line(board: &Board, args: &[&str]) -> String {
    let plain = board.command(args);
    let mut words: Vec<String> = vec!["env".into(), "-i".into(), "TERM=screen".into()];
    let env = plain.get_envs();
    words.extend(
        env.map(|(name, value)| format!("{}={}", name.to_string_lossy(), value.unwrap_or_default().to_string_lossy())),
    );
    words.push(plain.get_program().to_string_lossy().into_owned());
    words.extend(plain.get_args().map(|arg| arg.to_string_lossy().into_owned()));
    words.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" ")
}

impl Drop for Tmux<'_> {
    fn drop(&mut self) {
        self.run(&["kill-server"]);
    }
}
