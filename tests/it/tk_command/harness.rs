//! Calls `tk` in a scratch directory and compares what it answers with a transcript.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use dirigent::cli::tk::{Successor, TkCall, call};

/// A project directory with a store, and the variables `tk` is called with.
pub struct Project {
    _temp: tempfile::TempDir,
    pub root: PathBuf,
    pub cwd: PathBuf,
    pub variables: BTreeMap<String, String>,
    pub stdin: Vec<u8>,
    pub terminal: bool,
}

pub struct Answer {
    pub out: String,
    pub err: String,
    pub code: u8,
    pub then: Option<Successor>,
}

impl Project {
    /// An empty project without a store.
    pub fn empty() -> Self {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().join("my-app");
        fs::create_dir(&root).unwrap();
        // A repository of its own, so that the name is not the one of whoever runs the tests.
        let repository = git2::Repository::init(&root).unwrap();
        repository.config().unwrap().set_str("user.name", "Al Ice").unwrap();
        Self { _temp: temp, cwd: root.clone(), root, variables: BTreeMap::new(), stdin: Vec::new(), terminal: false }
    }

    /// A project with a store that holds these tickets: id, status, further front-matter lines.
    pub fn with(tickets: &[(&str, &str, &str)]) -> Self {
        let project = Self::empty();
        fs::create_dir(project.store()).unwrap();
        for (id, status, more) in tickets {
            project.put(id, &format!("---\nid: {id}\nstatus: {status}\n{more}---\n# Title of {id}\n\n"));
        }
        project
    }

    pub fn store(&self) -> PathBuf {
        self.root.join(".tickets")
    }

    pub fn put(&self, id: &str, text: &str) {
        fs::write(self.store().join(format!("{id}.md")), text).unwrap();
    }

    pub fn read(&self, id: &str) -> String {
        fs::read_to_string(self.store().join(format!("{id}.md"))).unwrap()
    }

    pub fn tk(&self, arguments: &[&str]) -> Answer {
        let arguments: Vec<OsString> = arguments.iter().map(OsString::from).collect();
        let stdin = || Ok(self.stdin.clone());
        let session = TkCall {
            program: "tk".into(),
            cwd: self.cwd.clone(),
            variables: self.variables.iter().map(|(name, value)| (name.into(), value.into())).collect(),
            stdin_is_terminal: self.terminal,
            stdout_is_terminal: self.terminal,
            read_stdin: &stdin,
        };
        match call(&session, &arguments, Path::new("/bin/tk")) {
            Ok(reply) => Answer {
                out: String::from_utf8(reply.out).unwrap(),
                err: reply.warnings.iter().map(|warning| format!("{warning}\n")).collect(),
                code: reply.code,
                then: reply.then,
            },
            Err(failure) => {
                Answer { out: String::new(), err: format!("{}\n", failure.report()), code: failure.code(), then: None }
            }
        }
    }

    /// A command that must work; answers its output.
    pub fn ok(&self, arguments: &[&str]) -> String {
        let answer = self.tk(arguments);
        assert_eq!(answer.code, 0, "{arguments:?}: {}", answer.err);
        answer.out
    }

    /// A command that must fail with 1; answers what it says.
    pub fn fails(&self, arguments: &[&str]) -> String {
        let answer = self.tk(arguments);
        assert_eq!(answer.code, 1, "{arguments:?}: {} {}", answer.out, answer.err);
        assert_eq!(answer.out, "", "{arguments:?}");
        answer.err
    }

    /// Plays a transcript: `$ tk ...` lines are called; what follows is stdout, `! ` stderr, `? N` the exit code if it
    /// is not 0. Fresh ids and times are masked as `<id>` and `<time>`, the project's directory as `<dir>`.
    pub fn plays(&self, transcript: &str) {
        let lines = transcript.trim_start_matches('\n').trim_end().lines();
        let transcript: Vec<&str> = lines.map(|line| line.strip_prefix("    ").unwrap_or(line)).collect();
        let mut seen = Vec::new();
        for line in &transcript {
            let Some(command) = line.strip_prefix("$ tk") else { continue };
            seen.push((*line).to_owned());
            let words = split(command);
            let answer = self.tk(&words.iter().map(String::as_str).collect::<Vec<_>>());
            seen.extend(self.masked(&answer.out).lines().map(str::to_owned));
            seen.extend(self.masked(&answer.err).lines().map(|line| format!("! {line}")));
            if answer.code != 0 {
                seen.push(format!("? {}", answer.code));
            }
        }
        assert_eq!(seen.join("\n"), transcript.join("\n"));
    }

    pub fn masked(&self, text: &str) -> String {
        let text = text.replace(&self.root.display().to_string(), "<dir>");
        let words = text.split_inclusive(|c: char| c.is_whitespace() || c == '*');
        words
            .map(|word| {
                let end = word.trim_end_matches(|c: char| c.is_whitespace() || c == '*').len();
                let (core, rest) = word.split_at(end);
                let suffix = core.strip_prefix("ma-").unwrap_or_default();
                if suffix.len() == 4 && suffix.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit()) {
                    format!("<id>{rest}")
                } else if core.len() == 20 && core.ends_with('Z') && core.as_bytes()[10] == b'T' {
                    format!("<time>{rest}")
                } else {
                    word.to_owned()
                }
            })
            .collect()
    }
}

/// Words as a shell would split them; double quotes only.
fn split(line: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let (mut quoted, mut open) = (false, false);
    for c in line.chars() {
        match c {
            '"' => {
                quoted = !quoted;
                if !open {
                    words.push(String::new());
                    open = true;
                }
            }
            ' ' if !quoted => open = false,
            c => {
                if !open {
                    words.push(String::new());
                    open = true;
                }
                words.last_mut().unwrap().push(c);
            }
        }
    }
    words
}
