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
    /// What each receiver was to be told when the runner last started, as `fingerprint/occasion`. A new receiver, or one with a new occasion,
    /// is not told what was already true when that was added. An entry without an occasion was written by an older version.
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

    /// Marks what is true now as told, for receivers that are new and for occasions that are new to theirs. Drops old entries that are not
    /// true any more.
    pub fn begin(&mut self, receivers: &[NotifySettings], true_now: &[Notice], now: Timestamp) {
        let before = std::mem::take(&mut self.known.receivers);
        for receiver in receivers {
            for occasion in &receiver.when {
                let entry = format!("{}/{}", fingerprint(receiver), occasion.name());
                if !before.contains(&entry) && !before.contains(&fingerprint(receiver)) {
                    let present = true_now.iter().filter(|notice| notice.occasion == *occasion);
                    self.known.sent.extend(present.map(|notice| (id_of(receiver, notice), now)));
                }
                self.known.receivers.insert(entry);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::notify::Occasion;

    fn receiver(when: &[Occasion]) -> NotifySettings {
        NotifySettings { when: when.to_vec(), command: Some("tell".into()), ..NotifySettings::default() }
    }

    fn notice(occasion: Occasion) -> Notice {
        Notice {
            id: format!("{}:t-1:7", occasion.name()),
            occasion,
            ticket: None,
            key: None,
            title: String::new(),
            sentence: String::new(),
            next: None,
            url: None,
            at: Timestamp(7),
        }
    }

    #[test]
    fn an_occasion_that_is_added_is_about_what_comes_then() {
        let (old, both) = (receiver(&[Occasion::Blocked]), receiver(&[Occasion::Blocked, Occasion::Done]));
        let (blocked, done) = (notice(Occasion::Blocked), notice(Occasion::Done));
        let mut sent = SentNotices::default();
        sent.begin(&[old.clone()], &[], Timestamp(1));
        sent.begin(&[both.clone()], &[blocked.clone(), done.clone()], Timestamp(2));
        assert!(sent.knows(&id_of(&both, &done)), "it was done before anybody wanted to know");
        assert!(!sent.knows(&id_of(&both, &blocked)), "and this was wanted all along");
        let later = Notice { id: "done:t-2:9".into(), ..done };
        sent.begin(&[both.clone()], &[later.clone()], Timestamp(3));
        assert!(!sent.knows(&id_of(&both, &later)));
        // Taken out and put in again, it is new once more.
        sent.begin(&[old], &[], Timestamp(4));
        sent.begin(&[both.clone()], &[later.clone()], Timestamp(5));
        assert!(sent.knows(&id_of(&both, &later)));
    }

    #[test]
    fn a_record_of_an_older_version_makes_no_receiver_new() {
        let receiver = receiver(&[Occasion::Done]);
        let known = Known { receivers: [fingerprint(&receiver)].into(), ..Known::default() };
        let mut sent = SentNotices { known, ..SentNotices::default() };
        let done = notice(Occasion::Done);
        sent.begin(&[receiver.clone()], &[done.clone()], Timestamp(1));
        assert!(!sent.knows(&id_of(&receiver, &done)));
    }
}
