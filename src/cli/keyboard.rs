//! Reads single key presses while a live table is drawn. Ctrl-C and Ctrl-Z stay signals: only echo and line buffering of the terminal are
//! switched off, and restored at the end. In the background nothing is read or changed, because a background process that touches the
//! terminal is suspended.

use std::io::{IsTerminal, Stdin, stdin};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, poll};
use nix::sys::termios::{LocalFlags, SetArg, Termios, tcgetattr, tcsetattr};
use nix::unistd::{getpgrp, tcgetpgrp};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

const LOOK_EVERY_MS: u16 = 150;
const LOOK_EVERY: Duration = Duration::from_millis(LOOK_EVERY_MS as u64);
const ESCAPE: u8 = 0x1b;

pub struct Keyboard {
    open: Option<OpenKeyboard>,
}

struct OpenKeyboard {
    keys: mpsc::Receiver<char>,
    over: Arc<AtomicBool>,
    reader: JoinHandle<()>,
    /// Restores the terminal. Must be the last field, so that it is dropped last.
    _modes: TerminalModes,
}

impl Keyboard {
    /// Starts reading keys. The keyboard stays closed if stdin is not a terminal.
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

    /// Waits for the next key. Waits for ever if the keyboard is closed.
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

    /// Restores the terminal, after the reading thread has stopped.
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
        // After Ctrl-Z the shell may have set its own modes, so they are set again each time.
        single_keys();
        match typed() {
            Ok(letters) => letters.into_iter().for_each(|letter| {
                // A key that finds the channel full is dropped: nobody types that fast on purpose.
                let _ = keys.try_send(letter);
            }),
            Err(_) => return,
        }
    }
}

/// Returns the letters that are typed within `LOOK_EVERY`, or an error if the terminal is gone. This does not go through crossterm, whose
/// reader spins and never returns once the terminal is gone.
fn typed() -> nix::Result<Vec<char>> {
    let input = stdin();
    let mut waiting = [PollFd::new(input.as_fd(), PollFlags::POLLIN)];
    match poll(&mut waiting, LOOK_EVERY_MS) {
        Ok(0) | Err(Errno::EINTR) => return Ok(Vec::new()),
        Ok(_) => {}
        Err(error) => return Err(error),
    }
    let mut bytes = [0; 64];
    match nix::unistd::read(&input, &mut bytes) {
        Ok(0) => Err(Errno::EIO),
        Err(Errno::EINTR | Errno::EAGAIN) => Ok(Vec::new()),
        // The bytes of an arrow or a function key, in which letters mean something else.
        Ok(_) if bytes[0] == ESCAPE => Ok(Vec::new()),
        Ok(count) => {
            Ok(bytes[..count].iter().filter(|byte| byte.is_ascii_graphic()).map(|byte| char::from(*byte)).collect())
        }
        Err(error) => Err(error),
    }
}

/// Whether this process is in the foreground of the terminal on stdin.
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

/// The terminal's modes as they were before; restored on drop.
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
        // In the background the terminal belongs to the shell.
        if is_ours() {
            let _ = tcsetattr(&self.terminal, SetArg::TCSANOW, &self.before);
        }
    }
}
