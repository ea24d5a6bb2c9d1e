//! The ticket store: a directory of `<id>.md` files. Shared by the tracker adapter and the `tk` command.
//!
//! Reads take no lock. Every write holds the store's lock, starts from the current content of the file, and replaces the file as a
//! whole.

use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use super::document::{Document, Malformed};
use super::draft::Draft;
use super::error::StoreError;
use super::names;
use super::notes;
use super::record::{FAILED, RESOLUTION, Record};
use super::replace::{self, Replaced, StoreLock};

/// Bytes in the first read: enough for the front matter and the title of nearly every ticket.
const HEAD: usize = 4096;
const ATTEMPTS: usize = 50;

#[derive(Debug, Clone)]
pub struct Store {
    dir: PathBuf,
}

/// A file that lists cannot show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokenFile {
    pub path: PathBuf,
    pub why: String,
}

/// The content of the store, ordered by id.
#[derive(Debug, Clone, Default)]
pub struct Listing {
    pub records: Vec<Record>,
    pub broken: Vec<BrokenFile>,
}

impl Store {
    pub fn at(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into() }
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    pub fn path(&self, id: &str) -> PathBuf {
        self.dir.join(format!("{id}.md"))
    }

    /// Returns the ids of all files, sorted. A directory that cannot be read is an error, never an empty list.
    pub fn ids(&self) -> Result<Vec<String>, StoreError> {
        let entries = fs::read_dir(&self.dir).map_err(|source| match source.kind() {
            ErrorKind::NotFound => StoreError::Missing(self.dir.clone()),
            ErrorKind::NotADirectory => StoreError::NotADirectory(self.dir.clone()),
            _ => StoreError::Io { action: "read the directory", path: self.dir.clone(), source },
        })?;
        let mut ids = Vec::new();
        for entry in entries {
            let entry = entry.map_err(StoreError::io("read the directory", &self.dir))?;
            if let Some(id) = entry.file_name().to_str().and_then(id_of_file) {
                ids.push(id.to_owned());
            }
        }
        ids.sort_unstable();
        Ok(ids)
    }

    /// Returns all tickets without their bodies, and the files that cannot be understood.
    pub fn list(&self) -> Result<Listing, StoreError> {
        let mut listing = Listing::default();
        for id in self.ids()? {
            match self.record(&id) {
                Ok(record) if record.declared_id.is_some() => listing.records.push(record),
                Ok(_) => listing.broken.push(self.broken(&id, "it has no `id:` line".into())),
                Err(StoreError::NotFound(_)) => {}
                Err(StoreError::Broken { why, .. }) if !is_readme(&id) => listing.broken.push(self.broken(&id, why)),
                Err(StoreError::Broken { .. }) => {}
                Err(error) => listing.broken.push(self.broken(&id, error.to_string())),
            }
        }
        Ok(listing)
    }

    /// Returns one ticket without its body.
    pub fn record(&self, id: &str) -> Result<Record, StoreError> {
        self.head(id).map(|doc| Record::read(id, &doc))
    }

    /// Returns the file up to its title. Reads the rest of the file only if the title is not within the first `HEAD` bytes.
    pub fn head(&self, id: &str) -> Result<Document, StoreError> {
        names::check_id(id)?;
        let path = self.path(id);
        let mut file = File::open(&path).map_err(|source| self.open_error(id, &path, source))?;
        let mut bytes = Vec::with_capacity(HEAD);
        (&mut file).take(HEAD as u64).read_to_end(&mut bytes).map_err(StoreError::io("read", &path))?;
        let whole = bytes.len() < HEAD;
        if !whole {
            let head = bytes.clone();
            match Document::parse(head) {
                Ok(doc) if doc.title_line().is_some_and(|line| line.end < doc.bytes().len()) => return Ok(doc),
                _ => {
                    file.read_to_end(&mut bytes).map_err(StoreError::io("read", &path))?;
                }
            }
        }
        Document::parse(bytes).map_err(|malformed| self.malformed(id, malformed))
    }

    /// Returns the whole file.
    pub fn document(&self, id: &str) -> Result<Document, StoreError> {
        Document::parse(self.raw(id)?).map_err(|malformed| self.malformed(id, malformed))
    }

    pub fn raw(&self, id: &str) -> Result<Vec<u8>, StoreError> {
        names::check_id(id)?;
        let path = self.path(id);
        fs::read(&path).map_err(|source| self.open_error(id, &path, source))
    }

    /// Finds the full id for a typed one: an exact match, or else the only id that contains it.
    pub fn resolve(&self, typed: &str) -> Result<String, StoreError> {
        let typed = typed.trim();
        names::check_id(typed)?;
        if fs::metadata(self.path(typed)).is_ok_and(|meta| meta.is_file()) {
            return Ok(typed.to_owned());
        }
        let mut matches: Vec<String> = self.ids()?.into_iter().filter(|id| id.contains(typed)).collect();
        match matches.len() {
            0 => Err(StoreError::NotFound(typed.to_owned())),
            1 => Ok(matches.remove(0)),
            _ => Err(StoreError::Ambiguous { id: typed.to_owned(), matches }),
        }
    }

    /// Waits for the store's lock. All writes go through the returned value.
    pub fn lock(&self) -> Result<LockedStore<'_>, StoreError> {
        if !self.dir.is_dir() {
            return Err(match self.dir.exists() {
                true => StoreError::NotADirectory(self.dir.clone()),
                false => StoreError::Missing(self.dir.clone()),
            });
        }
        Ok(LockedStore { store: self, _lock: StoreLock::acquire(&self.dir)? })
    }

    /// Applies one change to one ticket, under the lock.
    pub fn update<T>(
        &self,
        id: &str,
        edit: impl FnMut(&mut Document) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.lock()?.update(id, edit)
    }

    fn broken(&self, id: &str, why: String) -> BrokenFile {
        BrokenFile { path: self.path(id), why }
    }

    fn malformed(&self, id: &str, malformed: Malformed) -> StoreError {
        StoreError::Broken { path: self.path(id), why: malformed.sentence().to_owned() }
    }

    fn open_error(&self, id: &str, path: &Path, source: std::io::Error) -> StoreError {
        if source.kind() == ErrorKind::NotFound && self.dir.is_dir() {
            return StoreError::NotFound(id.to_owned());
        }
        StoreError::Io { action: "read", path: path.to_path_buf(), source }
    }
}

/// The store with its lock held.
#[derive(Debug)]
pub struct LockedStore<'a> {
    store: &'a Store,
    _lock: StoreLock,
}

impl LockedStore<'_> {
    /// Applies `edit` to the current content of the file. If a program that does not take the lock saves meanwhile, `edit` is
    /// applied again to the saved content; so it may be called more than once.
    pub fn update<T>(
        &self,
        id: &str,
        mut edit: impl FnMut(&mut Document) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let path = self.store.path(id);
        for _ in 0..ATTEMPTS {
            let base = self.store.raw(id)?;
            let mut doc = Document::parse(base.clone()).map_err(|malformed| self.store.malformed(id, malformed))?;
            let outcome = edit(&mut doc)?;
            if doc.bytes() == base {
                return Ok(outcome);
            }
            if replace::replace(&path, &base, doc.bytes())? == Replaced::Done {
                return Ok(outcome);
            }
        }
        Err(StoreError::Contended(path))
    }

    /// Creates a ticket under a new id, and returns the id.
    pub fn create(&self, prefix: &str, draft: &Draft) -> Result<String, StoreError> {
        for _ in 0..ATTEMPTS {
            let id = names::fresh_id(prefix);
            names::check_id(&id)?;
            if self.create_as(&id, draft.render(&id).as_bytes())? {
                return Ok(id);
            }
        }
        Err(StoreError::Invalid(format!("no free id with the prefix '{prefix}' was found; try again")))
    }

    /// Creates the file of this id. `false` if it exists already.
    pub fn create_as(&self, id: &str, content: &[u8]) -> Result<bool, StoreError> {
        names::check_id(id)?;
        replace::create(&self.store.path(id), content)
    }
}

/// The changes to a ticket that both the command and the adapter make.
impl Document {
    /// Sets the status and removes `resolution`, which describes how the ticket was closed before.
    pub fn set_status(&mut self, status: &str) {
        self.set_word("status", status);
        self.remove(RESOLUTION);
    }

    /// Closes the ticket without success. Other programs see a closed ticket; Dirigent also sees that it failed.
    pub fn set_failed(&mut self) {
        self.set_word("status", "closed");
        self.set_word(RESOLUTION, FAILED);
    }

    /// Adds a note with a hidden key, which marks it as written by Dirigent or by a worker.
    pub fn add_keyed_note(&mut self, timestamp: &str, text: &str, key: &str) {
        self.add_note(timestamp, text);
        let marker = notes::marker_line(key, self.newline());
        let end = self.bytes().len();
        self.splice(end..end, &marker);
    }
}

/// Returns the id for a file name. `None` for hidden files and files that are not `.md`.
pub fn id_of_file(name: &str) -> Option<&str> {
    name.strip_suffix(".md").filter(|id| !id.is_empty() && !id.starts_with('.'))
}

/// Whether the file is a README, which is not a broken ticket.
pub fn is_readme(id: &str) -> bool {
    id.eq_ignore_ascii_case("readme")
}

/// Returns the current time as the format writes it: UTC, whole seconds.
pub fn timestamp_now() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
