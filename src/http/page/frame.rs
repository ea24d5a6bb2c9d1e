//! The frame around the content of every page.

use serde::Serialize;

use super::assets;
use super::health::{Glance, HealthLevel};
use crate::domain::snapshot::Snapshot;

#[derive(Debug, Clone, Serialize)]
pub struct PageFrame {
    /// The name of the page.
    pub page: &'static str,
    pub repository: String,
    pub title: String,
    pub level: HealthLevel,
    /// The version of stylesheet and script. It is part of their addresses, so that browsers may cache both forever.
    pub version: &'static str,
    /// When the picture was taken, in milliseconds. The script uses it because a browser's clock may be wrong.
    pub at: i64,
    pub paused: bool,
    /// Whether the page shows the board. The page that asks for a token does not.
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

    /// Returns the frame of a page that shows nothing of the board.
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
