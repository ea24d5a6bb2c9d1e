//! Single keys while a live table is drawn. Ctrl-C and Ctrl-Z stay signals: only echo and waiting for whole lines are taken from
//! the terminal, and given back at the end. In the background nothing is read and nothing is changed, for whoever does that there
//! is suspended.

use std::io::{IsTerminal, Stdin, stdin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crossterm::event::{self, Event, KeyCode, KeyEventKind};
use nix::sys::termios::{LocalFlags, SetArg, Termios, tcgetattr, tcsetattr};
use nix::unistd::{getpgrp, tcgetpgrp};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

const LOOK_EVERY: Duration = Duration::from_millis(150);

pub struct Keyboard {
    open: Option<OpenKeyboard>,
}

struct OpenKeyboard {
    keys: mpsc::Receiver<char>,
    over: Arc<AtomicBool>,
    reader: JoinHandle<()>,
    /// Dropped last.
    _modes: TerminalModes,
}

impl Keyboard {
    /// Closed where nobody sits at the input.
    pub fn open() -> Self {
        let Some(modes) = TerminalModes::of_now() else { return Self { open: None } };
        let (sender, keys) = mpsc::channel(16);
        let over = Arc::new(AtomicBool::new(false));
        let told = over.clone();
        let reader = tokio::task::spawn_blocking(move || read(&sender, &told));
        Self { open: Some(OpenKeyboard { keys, over, reader, _modes: modes }) }
    }

    pub fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Waits for ever where there is no keyboard.
    pub async fn next(&mut self) -> char {
        let key = match &mut self.open {
            Some(open) => open.keys.recv().await,
            None => None,
        };
        match key {
            Some(key) => key,
            None => std::future::pending().await,
        }
    }

    /// Gives the terminal back, after its reader has ended.
    pub async fn close(mut self) {
        if let Some(mut open) = self.open.take() {
            open.over.store(true, Ordering::Relaxed);
            let _ = (&mut open.reader).await;
        }
    }
}

impl Drop for OpenKeyboard {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

fn read(keys: &mpsc::Sender<char>, over: &AtomicBool) {
    while !over.load(Ordering::Relaxed) {
        if !is_ours() {
            std::thread::sleep(LOOK_EVERY);
            continue;
        }
        // A shell that was here meanwhile (Ctrl-Z) has set its own.
        single_keys();
        let pressed = match event::poll(LOOK_EVERY) {
            Ok(true) => event::read(),
            Ok(false) => continue,
            Err(_) => return,
        };
        if let Ok(Event::Key(key)) = pressed
            && key.kind != KeyEventKind::Release
            && let KeyCode::Char(letter) = key.code
        {
            // Whoever presses faster than that is not losing anything.
            let _ = keys.try_send(letter);
        }
    }
}

/// Whether we are in the foreground of the terminal that is our input.
fn is_ours() -> bool {
    tcgetpgrp(stdin()).is_ok_and(|group| group == getpgrp())
}

fn single_keys() {
    let whole_lines = LocalFlags::ICANON | LocalFlags::ECHO;
    if let Ok(mut modes) = tcgetattr(stdin())
        && modes.local_flags.intersects(whole_lines)
    {
        modes.local_flags.remove(whole_lines);
        let _ = tcsetattr(stdin(), SetArg::TCSANOW, &modes);
    }
}

/// How the terminal was.
struct TerminalModes {
    terminal: Stdin,
    before: Termios,
}

impl TerminalModes {
    fn of_now() -> Option<Self> {
        let terminal = stdin();
        let before = tcgetattr(&terminal).ok().filter(|_| terminal.is_terminal())?;
        Some(Self { terminal, before })
    }
}

impl Drop for TerminalModes {
    fn drop(&mut self) {
        // In the background it is the shell's.
        if is_ours() {
            let _ = tcsetattr(&self.terminal, SetArg::TCSANOW, &self.before);
        }
    }
}
