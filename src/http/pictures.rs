//! Renders published pictures (snapshots of the state) once for all clients: the state as JSON, and the changes since the last picture as
//! an event. The scheduler only publishes; slow rendering delays nothing but the views.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::Bytes;
use tokio::sync::watch;

use super::clean::Clean;
use super::shapes::{state_answer, ticket_shape};
use crate::domain::snapshot::Snapshot;
use crate::runtime::{Handle, Published, now};

/// Limits of events that are kept for clients that were away, by number and by size in bytes.
const KEPT_EVENTS: usize = 512;
const KEPT_BYTES: usize = 8 << 20;
/// How long a request waits for the rendering of a picture that was just published.
const MOMENT: Duration = Duration::from_secs(1);
/// How often pictures are rendered anew while a run is live: ages and sums grow even if nothing happens.
const REFRESH: Duration = Duration::from_secs(1);

/// A rendered picture.
#[derive(Debug)]
pub struct Rendered {
    pub picture: Arc<Snapshot>,
    /// The published picture that it was made from. `picture` may be later: ages may have grown since.
    source: Arc<Published>,
    /// The body of `GET /api/v1/state`.
    pub state: Bytes,
    /// The number of the last event before it.
    pub event: u64,
}

/// The newest rendered picture and the events before it.
#[derive(Debug)]
pub struct Pictures {
    /// The start time of this runner process, which tells its events from those of another process.
    life: i64,
    newest: watch::Sender<Arc<Rendered>>,
    /// Whether the last picture was rendered.
    ended: watch::Sender<bool>,
    kept: Mutex<Ring>,
    clean: Arc<Clean>,
    handle: Handle,
}

#[derive(Debug, Default)]
struct Ring {
    events: VecDeque<(u64, Bytes)>,
    bytes: usize,
}

/// What a client has missed since the last event that it has seen.
#[derive(Debug, PartialEq, Eq)]
pub enum Missed {
    Nothing,
    Events(Vec<Bytes>, u64),
    /// More than is kept: the client needs the whole state.
    TooMuch,
}

impl Pictures {
    pub fn new(handle: &Handle, clean: Arc<Clean>) -> Arc<Self> {
        let source = handle.snapshots.published();
        let picture = source.snapshot();
        let mut darkroom = Darkroom::default();
        let (state, _) = darkroom.develop(&picture, &clean);
        let (newest, _) = watch::channel(Arc::new(Rendered { source, picture, state, event: 0 }));
        let pictures = Arc::new(Self {
            life: now().0,
            newest,
            ended: watch::channel(false).0,
            kept: Mutex::default(),
            clean,
            handle: handle.clone(),
        });
        let followed = pictures.clone();
        tokio::spawn(async move {
            follow(&followed, darkroom).await;
            followed.ended.send_replace(true);
        });
        pictures
    }

    /// Returns the newest picture. It contains everything that was published before this call, unless rendering takes longer than a moment.
    pub async fn latest(&self) -> Arc<Rendered> {
        let published = self.handle.snapshots.published();
        let mut seen = self.newest.subscribe();
        let is_it =
            |ready: &Arc<Rendered>| Arc::ptr_eq(&ready.source, &published) || ready.source.at() > published.at();
        match tokio::time::timeout(MOMENT, seen.wait_for(is_it)).await {
            Ok(Ok(ready)) => ready.clone(),
            _ => self.newest.borrow().clone(),
        }
    }

    pub fn changes(&self) -> watch::Receiver<Arc<Rendered>> {
        self.newest.subscribe()
    }

    /// Returns a flag that becomes true when no more pictures will come.
    pub fn ended(&self) -> watch::Receiver<bool> {
        self.ended.subscribe()
    }

    /// Returns the id of an event, which is unique across runner processes.
    pub fn event_id(&self, event: u64) -> String {
        format!("{}-{event}", self.life)
    }

    /// Returns the number in an event id. `None` if the id belongs to another runner process.
    pub fn event_number(&self, id: &str) -> Option<u64> {
        let (life, event) = id.trim().split_once('-')?;
        let event = event.parse().ok()?;
        (life == self.life.to_string() && event <= self.newest.borrow().event).then_some(event)
    }

    pub fn since(&self, seen: u64) -> Missed {
        let ring = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((newest, _)) = ring.events.back() else { return Missed::Nothing };
        if *newest <= seen {
            return Missed::Nothing;
        }
        match ring.events.front() {
            Some((oldest, _)) if *oldest <= seen + 1 => {
                let missed = ring.events.iter().filter(|(number, _)| *number > seen);
                Missed::Events(missed.map(|(_, event)| event.clone()).collect(), *newest)
            }
            _ => Missed::TooMuch,
        }
    }

    fn keep(&self, number: u64, event: Bytes) {
        let mut ring = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        ring.bytes += event.len();
        ring.events.push_back((number, event));
        while ring.events.len() > KEPT_EVENTS || (ring.bytes > KEPT_BYTES && ring.events.len() > 1) {
            let Some((_, gone)) = ring.events.pop_front() else { break };
            ring.bytes -= gone.len();
        }
    }

    /// Renders a picture and makes it the newest.
    async fn show(&self, picture: Arc<Snapshot>, source: Arc<Published>, mut darkroom: Darkroom) -> Option<Darkroom> {
        let (shown, clean) = (picture.clone(), self.clean.clone());
        let developed = tokio::task::spawn_blocking(move || {
            let (state, change) = darkroom.develop(&shown, &clean);
            (state, change, darkroom)
        });
        let (state, change, darkroom) = developed.await.ok()?;
        let mut event = self.newest.borrow().event;
        if let Some(change) = change {
            event += 1;
            self.keep(event, Bytes::from(format!("id: {}\nevent: change\ndata: {change}\n\n", self.event_id(event))));
        }
        self.newest.send_replace(Arc::new(Rendered { picture, source, state, event }));
        Some(darkroom)
    }
}

/// Renders every published picture until the driver is gone.
async fn follow(pictures: &Pictures, mut darkroom: Darkroom) {
    let mut snapshots = pictures.handle.snapshots.clone();
    let mut published = snapshots.newest();
    let mut last = published.snapshot();
    loop {
        let changed = tokio::time::timeout(REFRESH, snapshots.changed()).await;
        let picture = match changed {
            Ok(Ok(())) => {
                published = snapshots.newest();
                last = published.snapshot();
                last.clone()
            }
            Ok(Err(_)) => return,
            Err(_) if last.counts.running > 0 => Arc::new(grown(&last)),
            Err(_) => continue,
        };
        let Some(back) = pictures.show(picture, published.clone(), darkroom).await else { return };
        darkroom = back;
    }
}

/// Returns the same picture with ages and sums as of now.
fn grown(picture: &Snapshot) -> Snapshot {
    let mut grown = picture.clone();
    grown.at = now();
    let each = grown.at.since(picture.at).as_secs();
    grown.totals.seconds_running += each * picture.counts.running as u64;
    grown
}

/// Renders pictures as JSON. Tickets that have not changed since the last picture are not rendered again.
#[derive(Debug, Default)]
struct Darkroom {
    /// By ticket id: the JSON before and after secrets and paths were removed.
    tickets: BTreeMap<String, (String, Arc<str>)>,
    /// The last rendered state without its tickets and times.
    head: String,
}

impl Darkroom {
    /// Returns the whole state, and the changes since the last picture. `None` if there are none.
    fn develop(&mut self, picture: &Snapshot, clean: &Clean) -> (Bytes, Option<String>) {
        let mut before = std::mem::take(&mut self.tickets);
        let (mut all, mut changed) = (Vec::new(), Vec::new());
        for job in &picture.jobs {
            let raw = json(&ticket_shape(job));
            let known = before.remove(&job.id).filter(|(known, _)| *known == raw);
            let shown = match known {
                Some((_, shown)) => shown,
                None => {
                    let shown: Arc<str> = clean.text(&raw).into();
                    changed.push(shown.clone());
                    shown
                }
            };
            all.push(shown.clone());
            self.tickets.insert(job.id.clone(), (raw, shown));
        }
        let gone: Vec<&String> = before.keys().filter(|id| !self.tickets.contains_key(*id)).collect();
        let mut head = state_answer(picture);
        let generated_at = std::mem::take(&mut head.generated_at);
        let (tokens, seconds) = (head.totals.seconds_running.take(), head.codex_totals.seconds_running.take());
        let timeless = json(&head);
        let is_new = self.head != timeless || !changed.is_empty() || !gone.is_empty();
        self.head = timeless;
        (head.generated_at, head.totals.seconds_running, head.codex_totals.seconds_running) =
            (generated_at, tokens, seconds);
        let head = clean.text(&json(&head));
        // The JSON ends with an empty list of tickets, which is replaced here.
        let head = head.strip_suffix("\"tickets\":[]}").unwrap_or(&head);
        let state = format!("{head}\"tickets\":{}}}", list(&all));
        let change =
            is_new.then(|| format!("{head}\"changed\":{},\"gone\":{}}}", list(&changed), clean.text(&json(&gone))));
        (Bytes::from(state), change)
    }
}

fn list(items: &[Arc<str>]) -> String {
    let mut out = String::with_capacity(items.iter().map(|item| item.len() + 1).sum::<usize>() + 2);
    out.push('[');
    for (index, item) in items.iter().enumerate() {
        let _ = write!(out, "{}{item}", if index == 0 { "" } else { "," });
    }
    out.push(']');
    out
}

/// Serialises a value. The shapes contain nothing that JSON cannot represent, so the fallback is never used.
fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned())
}
