//! The record of which receiver was told what, a file in the runner's folder.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::{Path, PathBuf};

use secrecy::ExposeSecret;
use serde::{Deserialize, Serialize};

use super::notices::Notice;
use crate::config::notify::NotifySettings;
use crate::domain::hash::stable_hash;
use crate::domain::time::Timestamp;

const KEPT_MS: i64 = 30 * 86_400_000;

#[derive(Debug, Default)]
pub struct SentNotices {
    path: PathBuf,
    known: Known,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Known {
    /// Fingerprints of all receivers that have been configured so far. A new receiver is not told what was already true when it was added.
    receivers: BTreeSet<String>,
    sent: BTreeMap<String, Timestamp>,
}

/// Identifies a receiver by its URL and command: with other settings changed it is still the same receiver.
fn fingerprint(receiver: &NotifySettings) -> String {
    let url = receiver.url.as_ref().map_or("", |url| url.expose_secret());
    format!("{:016x}", stable_hash(&[url, receiver.command.as_deref().unwrap_or_default()]))
}

pub fn id_of(receiver: &NotifySettings, notice: &Notice) -> String {
    format!("{}/{}", fingerprint(receiver), notice.id)
}

impl SentNotices {
    pub fn read(path: &Path) -> Self {
        let known = std::fs::read(path).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
        Self { path: path.to_owned(), known }
    }

    /// Marks everything that is true now as told for receivers that are new. Drops old entries that are not true any more.
    pub fn begin(&mut self, receivers: &[NotifySettings], true_now: &[Notice], now: Timestamp) {
        for receiver in receivers {
            if self.known.receivers.insert(fingerprint(receiver)) {
                self.known.sent.extend(true_now.iter().map(|notice| (id_of(receiver, notice), now)));
            }
        }
        let current: BTreeSet<String> =
            receivers.iter().flat_map(|receiver| true_now.iter().map(|notice| id_of(receiver, notice))).collect();
        self.known.sent.retain(|id, at| now.0 - at.0 < KEPT_MS || current.contains(id));
        self.write();
    }

    pub fn knows(&self, id: &str) -> bool {
        self.known.sent.contains_key(id)
    }

    pub fn add(&mut self, id: String, now: Timestamp) {
        self.known.sent.insert(id, now);
        self.write();
    }

    /// Writes the record atomically. If that fails, the failure is only logged: something may be told twice, which is better than never.
    fn write(&self) {
        let Some(folder) = self.path.parent() else { return };
        let written = || -> std::io::Result<()> {
            let mut file = tempfile::NamedTempFile::new_in(folder)?;
            serde_json::to_writer(&mut file, &self.known)?;
            file.flush()?;
            file.persist(&self.path).map_err(|error| error.error)?;
            Ok(())
        };
        if let Err(error) = written() {
            tracing::warn!(%error, "what was told in notifications could not be written down");
        }
    }
}
