//! An index of all tickets in the store, kept up to date by reading only the files that changed.
//!
//! For each ticket it keeps the beginning of the file as raw bytes. It keeps bodies only up to a memory limit.

use std::collections::hash_map::RandomState;
use std::collections::{BTreeMap, BTreeSet};
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

/// The longest time between two scans of all files. A scan finds changes that the journal misses (a memory-mapped file, a network
/// mount).
const FULL_LOOK: Duration = Duration::from_secs(60);
/// The most bytes of bodies that are kept in memory. Bodies beyond it are read again whenever the board is listed after a change.
const BODIES: usize = 1 << 20;
/// The estimated overhead of a body besides its texts, in bytes.
const BODY: usize = 200;

pub(super) struct Index {
    store: Store,
    entries: BTreeMap<Box<str>, Entry>,
    journal: Option<Journal>,
    looked_at_all: Option<Instant>,
    /// Increases with every change of an entry.
    version: u64,
    /// A random number that distinguishes the versions of this index from those of another one.
    life: u64,
    /// The states in use, each stored once.
    states: Vec<Arc<str>>,
    /// The size of the bodies that are kept, in bytes.
    bodies: usize,
}

struct Entry {
    stamp: Stamp,
    /// Whether the file is a symbolic link. A link's target changes outside the directory, so it is checked every time.
    link: bool,
    content: Content,
    /// Read when it is first needed: most tickets of a large store are closed, and their bodies never are.
    body: Option<Arc<Body>>,
}

enum Content {
    Ticket {
        status: Arc<str>,
        /// The file up to and including its title.
        head: Box<[u8]>,
    },
    /// The file is readable but is not a ticket.
    Malformed(&'static str),
    Broken(Box<str>),
}

/// The fields of a ticket and its body.
pub(super) type Whole = (Record, Arc<Body>);

impl Entry {
    fn state(&self) -> Result<&str, &str> {
        match &self.content {
            Content::Ticket { status, .. } => Ok(status),
            Content::Malformed(why) => Err(why),
            Content::Broken(why) => Err(why),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    /// In nanoseconds, like `changed`.
    modified: i64,
    changed: i64,
    size: u64,
    inode: u64,
}

impl Stamp {
    fn of(meta: &Metadata) -> Self {
        Self {
            modified: nanoseconds(meta.mtime(), meta.mtime_nsec()),
            changed: nanoseconds(meta.ctime(), meta.ctime_nsec()),
            size: meta.size(),
            inode: meta.ino(),
        }
    }
}

/// Converts a time to nanoseconds. Works until the year 2262.
fn nanoseconds(seconds: i64, rest: i64) -> i64 {
    seconds.saturating_mul(1_000_000_000).saturating_add(rest)
}

impl Index {
    pub fn new(store: Store) -> Self {
        let life = RandomState::new().hash_one(std::process::id());
        let (entries, states) = (BTreeMap::new(), Vec::new());
        Self { store, entries, journal: None, looked_at_all: None, version: 0, life, states, bodies: 0 }
    }

    /// Updates every entry.
    pub fn refresh(&mut self) -> Result<(), StoreError> {
        let seen = match (&self.journal, self.looked_at_all) {
            (Some(journal), Some(at)) if at.elapsed() < FULL_LOOK => journal.look(self.store.dir()),
            _ => Seen::Lost,
        };
        match seen {
            Seen::Names(names) => {
                let looked = self.look_at_these(&names);
                if looked.is_err() {
                    // The journal does not report these names again.
                    self.looked_at_all = None;
                }
                looked
            }
            Seen::Lost => self.look_at_all(),
        }
    }

    /// Updates the entries of these files, and those of all links.
    fn look_at_these(&mut self, names: &BTreeSet<String>) -> Result<(), StoreError> {
        let links = self.entries.iter().filter(|(_, entry)| entry.link).map(|(id, _)| id.to_string());
        let links: Vec<String> = links.collect();
        for id in names.iter().filter_map(|name| id_of_file(name)) {
            self.look_at(id, true)?;
        }
        for id in links {
            self.look_at(&id, false)?;
        }
        Ok(())
    }

    fn look_at_all(&mut self) -> Result<(), StoreError> {
        // The new journal is opened before the files are read, so that no change is missed in between.
        self.looked_at_all = None;
        self.journal = Journal::open(self.store.dir()).ok();
        let ids = self.store.ids()?;
        for id in &ids {
            self.look_at(id, false)?;
        }
        if ids.len() != self.entries.len() {
            self.version += 1;
            self.entries.retain(|id, _| ids.binary_search_by(|known| known.as_str().cmp(id)).is_ok());
            self.bodies = self.entries.values().filter_map(|entry| entry.body.as_deref()).map(size_of_body).sum();
        }
        self.looked_at_all = Some(Instant::now());
        Ok(())
    }

    /// Updates one entry. With `always` the file is read even if it looks unchanged.
    pub fn look_at(&mut self, id: &str, always: bool) -> Result<(), StoreError> {
        let path = self.store.path(id);
        let known = self.entries.get(id);
        let own = fs::symlink_metadata(&path);
        let link = own.as_ref().is_ok_and(Metadata::is_symlink);
        let meta = match if link { fs::metadata(&path) } else { own } {
            Ok(meta) => meta,
            Err(source) if source.kind() == ErrorKind::NotFound && self.store.dir().is_dir() => {
                self.forget(id);
                return Ok(());
            }
            Err(source) => return Err(StoreError::Io { action: "read", path, source }),
        };
        let stamp = Stamp::of(&meta);
        if !always && known.is_some_and(|entry| entry.stamp == stamp) {
            return Ok(());
        }
        let content = match self.store.head(id) {
            Ok(doc) => self.content(id, &doc),
            Err(StoreError::NotFound(_)) => {
                self.forget(id);
                return Ok(());
            }
            Err(error @ StoreError::InvalidId { .. }) => {
                Content::Broken(format!("{error}; rename the file").into_boxed_str())
            }
            Err(error) => Content::Broken(error.to_string().into_boxed_str()),
        };
        let why = match &content {
            Content::Ticket { .. } => None,
            Content::Malformed(why) => Some(format!("{}: {why}", path.display())),
            Content::Broken(why) => Some(why.to_string()),
        };
        if let Some(why) = why {
            tracing::warn!("ticket left out: {why}");
        }
        let known = self.entries.insert(id.into(), Entry { stamp, link, content, body: None });
        self.let_go(known);
        self.version += 1;
        Ok(())
    }

    fn forget(&mut self, id: &str) {
        let known = self.entries.remove(id);
        self.version += u64::from(known.is_some());
        self.let_go(known);
    }

    fn let_go(&mut self, known: Option<Entry>) {
        self.bodies -= known.and_then(|entry| entry.body).map_or(0, |body| size_of_body(&body));
    }

    fn content(&mut self, id: &str, doc: &Document) -> Content {
        let record = Record::read(id, doc);
        if let Some(why) = record.malformed() {
            return Content::Malformed(why);
        }
        let known = self.states.iter().find(|state| ***state == *record.status).cloned();
        let status = known.unwrap_or_else(|| {
            let new: Arc<str> = record.status.as_str().into();
            // Misspelt states are not kept for ever.
            if self.states.len() < 32 {
                self.states.push(Arc::clone(&new));
            }
            new
        });
        Content::Ticket { status, head: doc.head().into() }
    }

    /// Returns a mark. Two equal marks mean equal tickets.
    pub fn mark(&self) -> String {
        format!("{:016x}.{}", self.life, self.version)
    }

    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(AsRef::as_ref)
    }

    /// Returns the fields of a ticket. An error means that the file exists and is not a ticket.
    pub fn record(&self, id: &str) -> Result<Option<Record>, &str> {
        match self.entries.get(id).map(|entry| &entry.content) {
            None => Ok(None),
            Some(Content::Ticket { head, .. }) => {
                Ok(Document::parse(head.to_vec()).ok().map(|doc| Record::read(id, &doc)))
            }
            Some(Content::Malformed(why)) => Err(why),
            Some(Content::Broken(why)) => Err(why),
        }
    }

    /// Returns the state of each ticket, or why its file is not a ticket.
    pub fn states(&self) -> impl Iterator<Item = (&str, Result<&str, &str>)> {
        self.entries.iter().map(|(id, entry)| (&**id, entry.state()))
    }

    pub fn state(&self, id: &str) -> Option<Result<&str, &str>> {
        self.entries.get(id).map(Entry::state)
    }

    /// Reads the bodies of these tickets until the memory limit is reached.
    pub fn keep_bodies(&mut self, ids: &[String]) {
        for id in ids {
            let is_kept = |index: &Self| index.entries.get(&**id).is_none_or(|entry| entry.body.is_some());
            if !is_kept(self) && (self.full(id).is_err() || !is_kept(self)) {
                return;
            }
        }
    }

    /// Returns the fields and the body of a ticket, both from the same version of its file.
    pub fn full(&mut self, id: &str) -> Result<Option<Whole>, StoreError> {
        let Some(entry) = self.entries.get(id).filter(|entry| entry.state().is_ok()) else { return Ok(None) };
        if let (Some(body), Ok(Some(record))) = (&entry.body, self.record(id)) {
            return Ok(Some((record, Arc::clone(body))));
        }
        let modified = entry.stamp.modified;
        let doc: Document = match self.store.document(id) {
            Ok(doc) => doc,
            Err(StoreError::NotFound(_)) => return Ok(None),
            Err(error) => return Err(error),
        };
        let (record, body) = (Record::read(id, &doc), Arc::new(Body::read(&doc, modified / 1_000_000)));
        let size = size_of_body(&body);
        if self.bodies + size <= BODIES {
            // The fields and the body that are kept come from the same version of the file.
            let content = self.content(id, &doc);
            if let Some(entry) = self.entries.get_mut(id) {
                entry.content = content;
                let before = entry.body.replace(Arc::clone(&body));
                self.bodies = self.bodies + size - before.map_or(0, |body| size_of_body(&body));
            }
        }
        Ok(Some((record, body)))
    }
}

fn size_of_body(body: &Body) -> usize {
    let comments: usize = body.comments.iter().map(|comment| BODY + comment.body.len()).sum();
    BODY + body.description.as_ref().map_or(0, String::len) + comments
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(dir: &std::path::Path, id: &str, title: &str, body: &str) {
        let text = format!("---\nid: {id}\nstatus: open\ndeps: [a, b]\n---\n# {title}\n\n{body}\n");
        fs::write(dir.join(format!("{id}.md")), text).unwrap();
    }

    #[test]
    fn what_is_beyond_the_room_for_bodies_is_read_again_and_is_the_same() {
        let dir = tempfile::tempdir().unwrap();
        let long = "x".repeat(BODIES / 3);
        for id in ["a", "b", "c", "d"] {
            write(dir.path(), id, &format!("Ticket {id}"), &long);
        }
        let mut index = Index::new(Store::at(dir.path()));
        index.refresh().unwrap();
        for _ in 0..2 {
            for id in ["a", "b", "c", "d"] {
                let (record, body) = index.full(id).unwrap().unwrap();
                assert_eq!((record.title_or_empty(), record.deps.len()), (&*format!("Ticket {id}"), 2));
                assert_eq!(body.description.as_deref(), Some(&*long));
            }
            assert!(index.bodies <= BODIES && index.bodies > BODIES / 2, "{}", index.bodies);
        }
        // A body that is removed or replaced frees its memory.
        write(dir.path(), "a", "Another", "short");
        fs::remove_file(dir.path().join("b.md")).unwrap();
        index.look_at("a", true).unwrap();
        index.look_at("b", true).unwrap();
        let kept: usize = index.entries.values().filter_map(|entry| entry.body.as_deref()).map(size_of_body).sum();
        assert_eq!(index.bodies, kept);
        assert_eq!(index.record("a").unwrap().unwrap().title_or_empty(), "Another");
        assert!(index.full("b").unwrap().is_none());
    }
    #[test]
    fn what_changed_beside_a_file_that_cannot_be_looked_at_is_not_forgotten() {
        let dir = tempfile::tempdir().unwrap();
        let mut index = Index::new(Store::at(dir.path()));
        index.refresh().unwrap();
        // A link that leads to itself.
        std::os::unix::fs::symlink(dir.path().join("a.md"), dir.path().join("a.md")).unwrap();
        write(dir.path(), "b", "Ticket b", "text");
        assert!(index.refresh().is_err());
        fs::remove_file(dir.path().join("a.md")).unwrap();
        index.refresh().unwrap();
        assert_eq!(index.ids().collect::<Vec<_>>(), ["b"]);
    }
}
