//! GitHub Apps and their installations.

use jiff::Timestamp;

#[derive(Clone, Debug)]
pub struct App {
    pub id: u64,
    pub slug: String,
    pub owner: String,
    pub installation: u64,
    pub created_at: Timestamp,
}

impl App {
    /// The account that the app writes as.
    pub fn login(&self) -> String {
        format!("{}[bot]", self.slug)
    }
}
