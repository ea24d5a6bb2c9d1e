//! The store's tickets in memory, brought up to date by looking only at what changed.

use std::collections::BTreeMap;
use std::collections::hash_map::RandomState;
use std::fs::{self, Metadata};
use std::hash::BuildHasher;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::document::Document;
use super::error::StoreError;
use super::journal::{Journal, Seen};
use super::record::Record;
use super::store::{Store, id_of_file};
use super::ticket::Body;

/// Changes that leave no trace in the journal (a mapped file, a network mount) are found at the latest after this.
const FULL_LOOK: Duration = Duration::from_secs(60);

pub(super) struct Index {
    store: Store,
    entries: BTreeMap<String, Entry>,
    journal: Option<Journal>,
    looked_at_all: Option<Instant>,
    /// Grows with every change of an entry.
    version: u64,
    /// Another index counts its own versions.
    life: u64,
}

struct Entry {
    stamp: Stamp,
    /// A link's target changes outside the directory, so it is looked at every time.
    link: bool,
    content: Result<Parsed, String>,
}

/// A ticket's fields and its body.
pub(super) type Whole = (Arc<Record>, Arc<Body>);

struct Parsed {
    record: Arc<Record>,
    /// Read when first asked for: most tickets of a large store are closed and never are.
    body: Option<Arc<Body>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    modified: (i64, i64),
    changed: (i64, i64),
    size: u64,
    inode: u64,
}

impl Stamp {
    fn of(meta: &Metadata) -> Self {
        Self {
            modified: (meta.mtime(), meta.mtime_nsec()),
            changed: (meta.ctime(), meta.ctime_nsec()),
            size: meta.size(),
            inode: meta.ino(),
        }
    }
}

impl Index {
    pub fn new(store: Store) -> Self {
        let life = RandomState::new().hash_one(std::process::id());
        Self { store, entries: BTreeMap::new(), journal: None, looked_at_all: None, version: 0, life }
    }

    /// Brings every entry up to date.
    pub fn refresh(&mut self) -> Result<(), StoreError> {
        let seen = match (&self.journal, self.looked_at_all) {
            (Some(journal), Some(at)) if at.elapsed() < FULL_LOOK => journal.look(self.store.dir()),
            _ => Seen::Lost,
        };
        match seen {
            Seen::Names(names) => {
                let links = self.entries.iter().filter(|(_, entry)| entry.link).map(|(id, _)| id.clone());
                let links: Vec<String> = links.collect();
                for id in names.iter().filter_map(|name| id_of_file(name)) {
                    self.look_at(id, true)?;
                }
                for id in links {
                    self.look_at(&id, false)?;
                }
                Ok(())
            }
            Seen::Lost => self.look_at_all(),
        }
    }

    fn look_at_all(&mut self) -> Result<(), StoreError> {
        // The new journal is opened before the look, so that nothing falls between the two.
        self.looked_at_all = None;
        self.journal = Journal::open(self.store.dir()).ok();
        let ids = self.store.ids()?;
        for id in &ids {
            self.look_at(id, false)?;
        }
        if ids.len() != self.entries.len() {
            self.version += 1;
            self.entries.retain(|id, _| ids.binary_search(id).is_ok());
        }
        self.looked_at_all = Some(Instant::now());
        Ok(())
    }

    /// Brings one entry up to date. With `always` the file is read even if it looks unchanged.
    pub fn look_at(&mut self, id: &str, always: bool) -> Result<(), StoreError> {
        let path = self.store.path(id);
        let known = self.entries.get(id);
        let own = fs::symlink_metadata(&path);
        let link = own.as_ref().is_ok_and(Metadata::is_symlink);
        let meta = match if link { fs::metadata(&path) } else { own } {
            Ok(meta) => meta,
            Err(source) if source.kind() == ErrorKind::NotFound && self.store.dir().is_dir() => {
                self.version += u64::from(self.entries.remove(id).is_some());
                return Ok(());
            }
            Err(source) => return Err(StoreError::Io { action: "read", path, source }),
        };
        let stamp = Stamp::of(&meta);
        if !always && known.is_some_and(|entry| entry.stamp == stamp) {
            return Ok(());
        }
        let content = match self.store.record(id) {
            Ok(record) => Ok(Parsed { record: Arc::new(record), body: None }),
            Err(StoreError::NotFound(_)) => {
                self.version += u64::from(self.entries.remove(id).is_some());
                return Ok(());
            }
            Err(error) => Err(error.to_string()),
        };
        let why = match &content {
            Ok(parsed) => parsed.record.malformed().map(|why| format!("{}: {why}", path.display())),
            Err(why) => Some(why.clone()),
        };
        if let Some(why) = why {
            tracing::warn!("ticket left out: {why}");
        }
        self.entries.insert(id.to_owned(), Entry { stamp, link, content });
        self.version += 1;
        Ok(())
    }

    /// The same mark: the same tickets.
    pub fn mark(&self) -> String {
        format!("{:016x}.{}", self.life, self.version)
    }

    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(String::as_str)
    }

    /// The ticket's fields; an error for a file that is there and broken.
    pub fn record(&self, id: &str) -> Result<Option<&Arc<Record>>, &str> {
        match self.entries.get(id).map(|entry| &entry.content) {
            None => Ok(None),
            Some(Ok(parsed)) => Ok(Some(&parsed.record)),
            Some(Err(why)) => Err(why),
        }
    }

    /// The ticket's fields and body, from the same version of the file.
    pub fn full(&mut self, id: &str) -> Result<Option<Whole>, StoreError> {
        let Some(entry) = self.entries.get_mut(id) else { return Ok(None) };
        let Ok(parsed) = &mut entry.content else { return Ok(None) };
        if let Some(body) = &parsed.body {
            return Ok(Some((Arc::clone(&parsed.record), Arc::clone(body))));
        }
        let doc: Document = match self.store.document(id) {
            Ok(doc) => doc,
            Err(StoreError::NotFound(_)) => return Ok(None),
            Err(error) => return Err(error),
        };
        let body = Arc::new(Body::read(&doc, entry.stamp.modified.0 * 1000 + entry.stamp.modified.1 / 1_000_000));
        parsed.record = Arc::new(Record::read(id, &doc));
        parsed.body = Some(Arc::clone(&body));
        Ok(Some((Arc::clone(&parsed.record), body)))
    }
}
