//! What every page has around its content.

use serde::Serialize;

use super::assets;
use super::health::{Glance, HealthLevel};
use crate::domain::snapshot::Snapshot;

#[derive(Debug, Clone, Serialize)]
pub struct PageFrame {
    /// Which page it is.
    pub page: &'static str,
    pub repository: String,
    pub title: String,
    pub level: HealthLevel,
    /// Of the stylesheet and the script: another one is another address, so that both can be kept for ever.
    pub version: &'static str,
    /// When the picture was taken, in milliseconds: clocks of browsers may be wrong.
    pub at: i64,
    pub paused: bool,
    /// Whether there is anything to see yet: a page that asks for a token shows nothing of the board.
    pub live: bool,
}

impl PageFrame {
    pub fn new(picture: &Snapshot, verdict: &Glance, page: &'static str, repository: &str, title: &str) -> Self {
        Self {
            page,
            repository: repository.to_owned(),
            title: format!("{title} · {repository}"),
            level: verdict.level,
            version: assets::version(),
            at: picture.at.0,
            paused: verdict.paused,
            live: true,
        }
    }

    /// Around a page that shows nothing of the board.
    pub fn bare(page: &'static str, repository: &str, title: &str) -> Self {
        Self {
            page,
            repository: repository.to_owned(),
            title: format!("{title} · {repository}"),
            level: HealthLevel::Held,
            version: assets::version(),
            at: 0,
            paused: false,
            live: false,
        }
    }
}
