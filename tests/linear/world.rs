//! Everything that the loopback Linear holds.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::board::{Board, Id};
use super::faults::Fault;

/// One request, as it was asked and answered.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The operation's name.
    pub operation: String,
    pub is_mutation: bool,
    pub variables: Value,
    pub complexity: u64,
    /// What was answered; `None` if nothing was.
    pub status: Option<u16>,
    /// Whether a mutation went through, also if a fault hid the answer.
    pub took_effect: bool,
}

/// What readers see of a board that has gone on.
#[derive(Clone, Debug, Default)]
pub enum Lag {
    #[default]
    None,
    /// Everything as it was when it settled last.
    Frozen,
    /// Every other request is answered by a replica that has stayed behind.
    EveryOther,
}

pub struct Limit {
    pub limit: u64,
    pub used: u64,
}

pub struct World {
    pub board: Arc<Board>,
    pub lag: Lag,
    pub settled: Arc<Board>,
    pub keys: BTreeMap<String, Id>,
    pub requests: Limit,
    pub complexity: Limit,
    pub faults: Vec<Fault>,
    pub journal: Vec<Entry>,
    /// Issues whose title is null in answers, whatever the schema says.
    pub garbled: Vec<Id>,
    pub oldest_history_first: bool,
    /// What people put into issues, by name.
    pub files: BTreeMap<String, Vec<u8>>,
    /// What was answered, where a test wants to have it.
    pub tape: Option<Vec<Vec<u8>>>,
    pub violations: Vec<String>,
    ahead: SignedDuration,
    last: Timestamp,
    made: u64,
}

impl World {
    pub fn new() -> Self {
        Self {
            board: Arc::default(),
            lag: Lag::None,
            settled: Arc::default(),
            keys: BTreeMap::new(),
            requests: Limit { limit: 2500, used: 0 },
            complexity: Limit { limit: 3_000_000, used: 0 },
            faults: Vec::new(),
            journal: Vec::new(),
            garbled: Vec::new(),
            oldest_history_first: false,
            files: BTreeMap::new(),
            tape: None,
            violations: Vec::new(),
            ahead: SignedDuration::ZERO,
            last: Timestamp::UNIX_EPOCH,
            made: 0,
        }
    }

    /// The real clock, put forward by tests; no two moments are the same.
    pub fn now(&mut self) -> Timestamp {
        let real = Timestamp::from_millisecond((Timestamp::now() + self.ahead).as_millisecond()).unwrap();
        self.last = real.max(self.last + SignedDuration::from_millis(1));
        self.last
    }

    pub fn advance(&mut self, by: SignedDuration) {
        self.ahead += by;
    }

    pub fn next_id(&mut self) -> Id {
        self.made += 1;
        format!("{:08x}-0000-4000-8000-{:012x}", self.made, 0xabcd_0000_0000_u64 + self.made)
    }

    pub fn change<T>(&mut self, change: impl FnOnce(&mut Board) -> T) -> T {
        change(Arc::make_mut(&mut self.board))
    }

    /// The board as the next reader sees it.
    pub fn shown(&self) -> Arc<Board> {
        match self.lag {
            Lag::None => self.board.clone(),
            Lag::Frozen => self.settled.clone(),
            Lag::EveryOther if self.journal.len().is_multiple_of(2) => self.settled.clone(),
            Lag::EveryOther => self.board.clone(),
        }
    }

    pub fn settle(&mut self) {
        self.settled = self.board.clone();
    }

    pub fn violate(&mut self, words: String) {
        eprintln!("loopback Linear: {words}");
        self.violations.push(words);
    }
}
