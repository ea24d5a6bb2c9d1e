//! Watches the kill-switch file by looking every quarter of a second, which is cheap and works on every file system.

use std::path::PathBuf;
use std::time::Duration;

use tokio::sync::{mpsc, watch};

use super::handle::Message;
use crate::engine::event::Event;

const EVERY: Duration = Duration::from_millis(250);
/// After this many looks the driver is told again even if nothing changed: the gatekeeper may have seen a file that came and went between
/// two looks.
const AGAIN_AFTER: u32 = 20;

/// Tells the driver when the file appears or goes away, until the driver is gone. A reload may change `file`.
pub async fn watch_kill_file(file: watch::Receiver<PathBuf>, inbox: mpsc::Sender<Message>) {
    let mut last = None;
    let mut looks = 0;
    let mut clock = tokio::time::interval(EVERY);
    clock.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        clock.tick().await;
        let path = file.borrow().clone();
        let there = tokio::fs::try_exists(&path).await.unwrap_or(true);
        looks += 1;
        if last == Some(there) && looks < AGAIN_AFTER {
            continue;
        }
        last = Some(there);
        looks = 0;
        if inbox.send(Message::Event(Event::SwitchesChanged { file: there })).await.is_err() {
            return;
        }
    }
}
