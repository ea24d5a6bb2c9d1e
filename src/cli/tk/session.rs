//! The input and output of a `tk` command: the environment of the call, and the result. Commands read nothing else of the process and
//! print nothing themselves, so tests can call them as a shell does.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::path::{Path, PathBuf};

use super::failure::Failure;
use crate::tracker::tk::{BrokenFile, Store, discovery};

/// The environment of one call: the program's name, directory, variables and streams.
pub struct TkCall<'a> {
    /// The name by which the program was called, for usage lines.
    pub program: String,
    pub cwd: PathBuf,
    pub variables: BTreeMap<OsString, OsString>,
    pub stdin_is_terminal: bool,
    pub stdout_is_terminal: bool,
    pub read_stdin: &'a dyn Fn() -> std::io::Result<Vec<u8>>,
}

/// The result of a call. It is complete before anything is printed.
#[derive(Debug, Default)]
pub struct TkOutput {
    pub out: Vec<u8>,
    /// Lines for stderr; the command still succeeded.
    pub warnings: Vec<String>,
    pub code: u8,
    /// The ticket that got a note, and the note's text.
    pub noted: Option<(String, String)>,
    /// The program that replaces this process after `out` was printed.
    pub then: Option<Successor>,
}

/// A program that replaces this process.
#[derive(Debug)]
pub struct Successor {
    pub program: PathBuf,
    pub arguments: Vec<OsString>,
    /// Variables that are set in addition to those of the call.
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
    /// Returns the value of a variable; `None` if it is unset, empty or not UTF-8.
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

    /// Returns the path of a ticket's file as it is shown to people: under `$TICKETS_DIR` as they wrote it, if it is set.
    pub fn shown_path(&self, store: &Store, id: &str) -> PathBuf {
        match self.tickets_dir() {
            Some(dir) => Path::new(dir).join(format!("{id}.md")),
            None => store.path(id),
        }
    }

    pub fn broken_warnings(&self, broken: &[BrokenFile]) -> Vec<String> {
        broken.iter().map(|file| format!("Warning: skipped {}: {}", file.path.display(), file.why)).collect()
    }

    /// Returns the user's name from git's configuration.
    pub fn git_name(&self) -> Option<String> {
        let config = match git2::Repository::discover(&self.cwd) {
            Ok(repository) => repository.config(),
            Err(_) => git2::Config::open_default(),
        };
        config.and_then(|config| config.get_string("user.name")).ok().filter(|name| !name.is_empty())
    }

    /// Finds an executable program on the `PATH` of the call.
    pub fn find_program(&self, name: &str) -> Option<PathBuf> {
        use std::os::unix::fs::PermissionsExt;
        let path = self.variables.get(OsStr::new("PATH"))?;
        std::env::split_paths(path).map(|dir| dir.join(name)).find(|candidate| {
            candidate.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
        })
    }
}
