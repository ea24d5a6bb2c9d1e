//! What a `tk` command knows of the world it was called in, and what it answers. Commands read nothing else and print
//! nothing themselves, so each can be called from a test as it is from a shell.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::path::{Path, PathBuf};

use super::failure::Failure;
use crate::tracker::tk::{BrokenFile, Store, discovery};

/// The call: who, where, with which variables and streams.
pub struct TkCall<'a> {
    /// The name it was called by, for usage lines.
    pub program: String,
    pub cwd: PathBuf,
    pub variables: BTreeMap<OsString, OsString>,
    pub stdin_is_terminal: bool,
    pub stdout_is_terminal: bool,
    pub read_stdin: &'a dyn Fn() -> std::io::Result<Vec<u8>>,
}

/// The answer. What it prints is whole before anything is printed.
#[derive(Debug, Default)]
pub struct TkOutput {
    pub out: Vec<u8>,
    /// For stderr; the command still succeeded.
    pub warnings: Vec<String>,
    pub code: u8,
    /// The ticket that got this note.
    pub noted: Option<(String, String)>,
    /// The program that takes over after `out` was printed.
    pub then: Option<Successor>,
}

/// A program to become.
#[derive(Debug)]
pub struct Successor {
    pub program: PathBuf,
    pub arguments: Vec<OsString>,
    /// Set on top of the session's variables.
    pub variables: Vec<(&'static str, OsString)>,
    pub stdin: Option<File>,
}

impl TkOutput {
    pub fn text(out: impl Into<String>) -> Self {
        Self { out: out.into().into_bytes(), ..Self::default() }
    }

    pub fn line(line: impl Into<String>) -> Self {
        let mut text = line.into();
        text.push('\n');
        Self::text(text)
    }

    pub fn exec(exec: Successor) -> Self {
        Self { then: Some(exec), ..Self::default() }
    }

    pub fn with_code(mut self, code: u8) -> Self {
        self.code = code;
        self
    }

    pub fn warn(mut self, warnings: impl IntoIterator<Item = String>) -> Self {
        self.warnings.extend(warnings);
        self
    }
}

impl TkCall<'_> {
    /// A variable's text; an empty one counts as unset.
    pub fn variable(&self, name: &str) -> Option<&str> {
        self.variables.get(OsStr::new(name)).and_then(|value| value.to_str()).filter(|value| !value.is_empty())
    }

    pub fn tickets_dir(&self) -> Option<&OsStr> {
        self.variables.get(OsStr::new("TICKETS_DIR")).map(OsString::as_os_str).filter(|value| !value.is_empty())
    }

    pub fn store(&self) -> Result<Store, Failure> {
        Ok(Store::at(discovery::find(self.tickets_dir(), &self.cwd)?))
    }

    pub fn store_or_new(&self) -> Result<Store, Failure> {
        Ok(Store::at(discovery::find_or_init(self.tickets_dir(), &self.cwd)?))
    }

    /// A ticket's file as people see it: under the directory they named, where they named one.
    pub fn shown_path(&self, store: &Store, id: &str) -> PathBuf {
        match self.tickets_dir() {
            Some(dir) => Path::new(dir).join(format!("{id}.md")),
            None => store.path(id),
        }
    }

    pub fn broken_warnings(&self, broken: &[BrokenFile]) -> Vec<String> {
        broken.iter().map(|file| format!("Warning: skipped {}: {}", file.path.display(), file.why)).collect()
    }

    /// Who acts, by the name that git knows.
    pub fn git_name(&self) -> Option<String> {
        let config = match git2::Repository::discover(&self.cwd) {
            Ok(repository) => repository.config(),
            Err(_) => git2::Config::open_default(),
        };
        config.and_then(|config| config.get_string("user.name")).ok().filter(|name| !name.is_empty())
    }

    /// Finds a program on the session's `PATH`.
    pub fn find_program(&self, name: &str) -> Option<PathBuf> {
        use std::os::unix::fs::PermissionsExt;
        let path = self.variables.get(OsStr::new("PATH"))?;
        std::env::split_paths(path).map(|dir| dir.join(name)).find(|candidate| {
            candidate.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
        })
    }
}
