//! Lists the issues of a board, page by page, each with its complete inner lists.
//!
//! A large board may take longer than one call may, or more than an hour's limit allows. When a reading is interrupted for a
//! temporary reason, its pages are kept and the next call continues. The listing counts as of the moment when its first page was
//! requested; changes since then are read afterwards. A partial listing is never returned.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use super::LinearTracker;
use super::board::{DEEP, Malformed, Seen, WIDE, decode, read_page, variables};
use super::client::DatedReply;
use super::cursors::Cursors;
use super::documents::Issues;
use super::documents::issues::IssuesIssuesNodes as Node;
use super::ticket::is_cut_off;
use crate::domain::time::Timestamp;
use crate::tracker::TrackerError;

/// An interrupted reading that is older than this is started again.
const OLDEST: Duration = Duration::from_secs(4 * 3600);

/// A complete listing of a board.
pub struct Listing {
    pub nodes: Vec<Node>,
    /// The time of the request for the first page, by Linear's clock.
    pub asked_at: Option<Timestamp>,
}

/// A listing that is being read.
pub struct Unfinished {
    states: Vec<String>,
    began: Instant,
    asked_at: Option<Timestamp>,
    found: BTreeMap<String, Node>,
    left_out: Vec<String>,
    pages: Cursors,
    cursor: Option<String>,
    /// Issues whose inner lists were truncated and are read after all pages. `None` until the last page was read.
    shallow: Option<Vec<String>>,
}

impl Unfinished {
    fn new(states: &[String]) -> Self {
        Self {
            states: states.to_vec(),
            began: Instant::now(),
            asked_at: None,
            found: BTreeMap::new(),
            left_out: Vec::new(),
            pages: Cursors::default(),
            cursor: None,
            shallow: None,
        }
    }

    fn fits(&self, states: &[String]) -> bool {
        self.states == states && self.began.elapsed() < OLDEST
    }
}

impl LinearTracker {
    /// Lists every issue in one of these states. A record that cannot be understood is left out and recorded in `left_out`.
    pub(super) async fn list(&self, states: &[String]) -> Result<Listing, TrackerError> {
        // A caller that waits too long drops this call; the pages that were read stay in `unfinished`.
        let mut place = self.unfinished.lock().await;
        let known = place.take().filter(|known| known.fits(states));
        let reading = place.insert(known.unwrap_or_else(|| Unfinished::new(states)));
        if let Err(error) = self.read_to_the_end(reading).await {
            // For other errors the cause may be in what was read, such as a cursor that Linear no longer knows.
            if !passes(&error) {
                *place = None;
            }
            return Err(error);
        }
        let Some(Unfinished { found, left_out, asked_at, .. }) = place.take() else {
            return Err(TrackerError::Response("the list is not there any more".to_owned()));
        };
        *self.left_out.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = left_out;
        Ok(Listing { nodes: found.into_values().collect(), asked_at })
    }

    async fn read_to_the_end(&self, reading: &mut Unfinished) -> Result<(), TrackerError> {
        let filter = self.scope.in_states(&reading.states);
        while reading.shallow.is_none() {
            let asked = variables(&filter, &WIDE, reading.cursor.clone(), false);
            let DatedReply { data, asked_at } = self.client.ask_loosely::<Issues>(asked).await?;
            let (nodes, info) = read_page(data)?;
            let next = reading.pages.after(info.has_next_page, info.end_cursor)?;
            reading.asked_at = reading.asked_at.or(asked_at);
            for node in nodes {
                match decode(node) {
                    Ok(node) => {
                        reading.found.insert(node.id.clone(), node);
                    }
                    Err(Malformed { id, why }) => {
                        tracing::warn!(issue = id, why, "a malformed issue is left out of the board");
                        reading.left_out.push(format!("{id}: {why}"));
                    }
                }
            }
            if next.is_none() {
                let cut_off = reading.found.values().filter(|node| is_cut_off(node));
                reading.shallow = Some(cut_off.map(|node| node.id.clone()).collect());
            }
            reading.cursor = next;
        }
        while let Some(shallow) = reading.shallow.as_mut().filter(|shallow| !shallow.is_empty()) {
            let rest = shallow.len().saturating_sub(DEEP.first as usize);
            let mut deep = self.read_deeply(shallow[rest..].to_vec()).await?;
            for id in shallow.drain(rest..) {
                // An incomplete issue is not listed: what is missing may be what it waits for.
                reading.found.remove(&id);
                match deep.remove(&id) {
                    Some(Seen::Node(node)) => {
                        reading.found.insert(id, *node);
                    }
                    Some(Seen::Unreadable(why)) => {
                        tracing::warn!(issue = id, why, "a malformed issue is left out of the board");
                        reading.left_out.push(format!("{id}: {why}"));
                    }
                    // It is not shown any more.
                    None => {}
                }
            }
        }
        Ok(())
    }
}

/// Whether a reading may continue after this error.
fn passes(error: &TrackerError) -> bool {
    match error {
        TrackerError::RateLimited { .. } | TrackerError::Request(_) => true,
        TrackerError::Status { status, .. } => *status >= 500,
        _ => false,
    }
}
