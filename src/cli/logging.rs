//! The log of a runner: one short line per event for people, or lines with all fields for programs. A rotating log file beside the ledger
//! is always written, at level info and above unless `DIRIGENT_LOG` says otherwise.

use std::fmt::{self, Debug};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::{FormatEvent, FormatFields, Writer, debug_fn};
use tracing_subscriber::fmt::{FmtContext, FormattedFields, MakeWriter};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer};

use crate::config::observability::LogFormat;
use crate::domain::phase::Phase;
use crate::runtime::{self, RunnerFolder};

use super::output;
use super::recent_lines::RecentLines;

/// Name of the log file, which is beside the ledger.
const FILE: &str = "dirigent.log";
const LARGEST: u64 = 10 << 20;
/// How many older log files are kept.
const KEPT: u32 = 5;

/// How much of the log is printed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Loudness {
    /// Only warnings and errors.
    Quiet,
    #[default]
    Usual,
    /// Also debug output, which helps to find a fault.
    Verbose,
}

impl Loudness {
    fn filter(self) -> EnvFilter {
        EnvFilter::new(match self {
            Self::Quiet => "warn",
            Self::Usual => "info",
            Self::Verbose => "dirigent=debug,info",
        })
    }
}

/// Where the log goes, in addition to the log file.
pub enum ScreenLog {
    Stderr(LogFormat),
    /// Kept in memory for the live table, which has the terminal and shows as many lines as fit.
    Kept(RecentLines),
}

/// Starts the log: on the screen as `shown` says, and in the log file.
pub fn start(place: &RunnerFolder, shown: ScreenLog, loudness: Loudness) -> io::Result<()> {
    let asked = || EnvFilter::try_from_env("DIRIGENT_LOG").ok();
    let file = RotatingFile::open(&place.state_dir.join(FILE))?;
    let in_file = layer()
        .fmt_fields(debug_fn(write_field))
        .with_writer(file)
        .with_filter(asked().unwrap_or_else(|| Loudness::Usual.filter()));
    let filter = asked().unwrap_or_else(|| loudness.filter());
    let on_screen = match shown {
        ScreenLog::Stderr(LogFormat::Json) => layer().json().with_writer(io::stderr).with_filter(filter).boxed(),
        ScreenLog::Stderr(LogFormat::Full) => {
            layer().fmt_fields(debug_fn(write_full_field)).with_writer(io::stderr).with_filter(filter).boxed()
        }
        ScreenLog::Stderr(LogFormat::Text) => {
            let people = ForPeople { colour: output::colour_on_stderr() };
            layer().event_format(people).with_writer(io::stderr).with_filter(filter).boxed()
        }
        ScreenLog::Kept(lines) => {
            let people = ForPeople { colour: false };
            layer().event_format(people).with_writer(lines).with_filter(filter).boxed()
        }
    };
    // If a log was already started in this process, that one stays in use.
    let _ = tracing_subscriber::registry().with(in_file).with(on_screen).try_init();
    Ok(())
}

/// Returns a log layer without a target and colours. A log that cannot be written (a full disk, a closed pipe) must not stop the work, so
/// write errors are ignored.
fn layer<S: Subscriber + for<'a> LookupSpan<'a>>() -> tracing_subscriber::fmt::Layer<S> {
    tracing_subscriber::fmt::layer().with_target(false).log_internal_errors(false).with_ansi(false)
}

/// Writes the message, then the fields as `name=value`. Empty fields are left out, except for `session_id`: readers search for lines of a
/// ticket that belong to no session.
fn write_field(out: &mut Writer<'_>, field: &Field, value: &dyn Debug) -> fmt::Result {
    match (field.name(), format!("{value:?}")) {
        ("message", text) => write!(out, "{text}"),
        (name, text) if text == "\"\"" && name != "session_id" => Ok(()),
        (name, text) => write!(out, " {name}={text}"),
    }
}

/// Does the same as [`write_field`]. It is a function of its own so that its layer has a type of its own: layers of one type would share
/// the formatted fields of a span.
fn write_full_field(out: &mut Writer<'_>, field: &Field, value: &dyn Debug) -> fmt::Result {
    write_field(out, field, value)
}

/// Formats an event as one short line: `16:10:23 demo-2  waiting for checks → ready to merge`.
struct ForPeople {
    colour: bool,
}

impl<S, N> FormatEvent<S, N> for ForPeople
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, context: &FmtContext<'_, S, N>, mut out: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let mut said = Sentence::default();
        event.record(&mut said);
        if said.key.is_empty() {
            said.key = context
                .event_scope()
                .into_iter()
                .flatten()
                .find_map(|span| {
                    let fields = span.extensions();
                    key_in(&fields.get::<FormattedFields<N>>()?.fields)
                })
                .unwrap_or_default();
        }
        let line = said.line(&output::time_of_day(runtime::now()), *event.metadata().level(), self.colour);
        writeln!(out, "{line}")
    }
}

/// Finds a ticket's key in the formatted fields of the span that a line belongs to.
fn key_in(fields: &str) -> Option<String> {
    let rest = fields.split("issue_identifier=").nth(1)?;
    let key = rest.trim_start_matches('"').split(['"', ' ']).next()?;
    (!key.is_empty()).then(|| key.to_owned())
}

/// The part of an event that is for people.
#[derive(Debug, Default)]
struct Sentence {
    key: String,
    text: String,
    error: Option<String>,
}

impl Visit for Sentence {
    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "issue_identifier" => value.clone_into(&mut self.key),
            "message" => value.clone_into(&mut self.text),
            "error" | "refusal" | "why" | "warning" => self.error = Some(value.to_owned()),
            _ => {}
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.record_str(field, &format!("{value:?}"));
    }
}

impl Sentence {
    fn line(&self, time: &str, level: Level, colour: bool) -> String {
        // The line begins with the ticket's key, so the key is removed from the message.
        let rest = self.text.strip_prefix(&self.key).filter(|_| !self.key.is_empty());
        let own =
            rest.and_then(|rest| rest.strip_prefix(": ").or_else(|| rest.strip_prefix(' '))).unwrap_or(&self.text);
        let mut text = output::short_run_ids(&output::line(&without_needless_words(own)));
        if let Some(error) = &self.error {
            text = format!("{text}: {}", output::line(error));
        }
        let (text, key) = (output::harmless(&text), output::harmless(&self.key));
        let subject = if key.is_empty() { String::new() } else { format!("{key}  ") };
        let text = match level {
            Level::ERROR => format!("{}{text}", paint("error: ", "31", colour)),
            Level::WARN => format!("{}{text}", paint("warning: ", "33", colour)),
            _ => painted_phase(&text, colour),
        };
        format!("{} {}{text}", paint(time, "2", colour), paint(&subject, "1", colour))
    }
}

/// Shortens the message of a phase change, `a → b: because`, to `a → b` where the new phase is an ordinary step that needs no reason.
fn without_needless_words(text: &str) -> String {
    let Some((moved, _)) = text.split_once(": ") else { return text.to_owned() };
    let Some((from, to)) = moved.split_once(" → ") else { return text.to_owned() };
    let phase = |words: &str| Phase::ALL.into_iter().find(|phase| phase.words() == words);
    match (phase(from), phase(to)) {
        (Some(_), Some(Phase::Rework | Phase::Blocked | Phase::WaitingForHuman | Phase::Released | Phase::Done)) => {
            text.to_owned()
        }
        (Some(_), Some(_)) => moved.to_owned(),
        _ => text.to_owned(),
    }
}

/// Colours the new phase: green if the ticket has ended well, yellow if a person is needed.
fn painted_phase(text: &str, colour: bool) -> String {
    let Some((from, to)) = text.split_once(" → ") else { return text.to_owned() };
    let code = match to.split(':').next() {
        Some("done") => "32",
        Some("blocked" | "waiting for approval") => "33",
        _ => return text.to_owned(),
    };
    format!("{from} → {}", paint(to, code, colour))
}

fn paint(text: &str, code: &str, colour: bool) -> String {
    if colour && !text.is_empty() { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
}

/// A log file that is rotated: `path` has the newest lines, `path.1` older ones, and so on.
struct RotatingFile {
    path: PathBuf,
    open: Mutex<OpenLog>,
}

struct OpenLog {
    file: Option<File>,
    written: u64,
}

impl RotatingFile {
    fn open(path: &Path) -> io::Result<Self> {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        let written = file.metadata()?.len();
        Ok(Self { path: path.to_owned(), open: Mutex::new(OpenLog { file: Some(file), written }) })
    }

    fn numbered(&self, number: u32) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(format!(".{number}"));
        name.into()
    }

    fn rotate(&self, open: &mut OpenLog) {
        for number in (1..KEPT).rev() {
            let _ = std::fs::rename(self.numbered(number), self.numbered(number + 1));
        }
        let _ = std::fs::rename(&self.path, self.numbered(1));
        self.reopen(open);
    }

    fn reopen(&self, open: &mut OpenLog) {
        open.file = OpenOptions::new().create(true).append(true).open(&self.path).ok();
        let length = open.file.as_ref().and_then(|file| file.metadata().ok()).map_or(0, |found| found.len());
        // A file that could not be renamed is full already. It grows by as much again before that is tried once more.
        open.written = if length >= LARGEST / 2 { 0 } else { length };
    }

    /// Appends a line. A line that cannot be written is lost, without an error.
    fn append(&self, line: &[u8]) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.written + line.len() as u64 > LARGEST && open.written > 0 {
            self.rotate(&mut open);
        }
        if open.file.is_none() {
            self.reopen(&mut open);
        }
        let OpenLog { file: Some(file), written } = &mut *open else { return };
        let _ = file.write_all(line);
        *written += line.len() as u64;
    }
}

impl<'a> MakeWriter<'a> for RotatingFile {
    type Writer = LogLine<'a>;

    fn make_writer(&'a self) -> Self::Writer {
        LogLine { file: self }
    }
}

struct LogLine<'a> {
    file: &'a RotatingFile,
}

impl Write for LogLine<'_> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.file.append(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(key: &str, text: &str, level: Level, colour: bool) -> String {
        Sentence { key: key.into(), text: text.into(), error: None }.line("16:10:23", level, colour)
    }

    #[test]
    fn a_line_for_people_is_short() {
        let moved = "demo-2: waiting for checks → ready to merge: ready; it is looked at once more and merged";
        assert_eq!(line("demo-2", moved, Level::INFO, false), "16:10:23 demo-2  waiting for checks → ready to merge");
        let blocked = "demo-5: implementing → blocked: the worker asks: which colour?";
        assert_eq!(
            line("demo-5", blocked, Level::INFO, false),
            "16:10:23 demo-5  implementing → blocked: the worker asks: which colour?"
        );
        let ended = "run 01KA9ZJ3S2V6B8Q4TTK1MYNZ7E ended: done";
        assert_eq!(line("demo-2", ended, Level::INFO, false), "16:10:23 demo-2  run MYNZ7E ended: done");
        assert_eq!(
            line("", "the workflow was reloaded", Level::WARN, false),
            "16:10:23 warning: the workflow was reloaded"
        );
    }

    #[test]
    fn an_error_is_told_and_steers_nothing() {
        let said = Sentence { key: String::new(), text: "no board".into(), error: Some("a\u{1b}[2J\nb".into()) };
        assert_eq!(said.line("16:10:23", Level::ERROR, false), "16:10:23 error: no board: a\u{fffd}[2J · b");
    }

    #[test]
    fn colour_is_by_meaning() {
        assert!(line("t", "merging → done: merged", Level::INFO, true).contains("\u{1b}[32mdone: merged\u{1b}[0m"));
        assert!(line("t", "queued → implementing", Level::INFO, true).ends_with("queued → implementing"));
    }

    #[test]
    fn the_key_is_found_among_the_fields_of_a_span() {
        assert_eq!(key_in(" issue_id=\"9\" issue_identifier=\"t-1\" run_id=x"), Some("t-1".into()));
        assert_eq!(key_in("issue_identifier=t-1 run_id=x"), Some("t-1".into()));
        assert_eq!(key_in("run_id=x"), None);
    }

    #[test]
    fn a_file_that_is_full_makes_room_and_the_oldest_goes() {
        let folder = tempfile::tempdir().unwrap();
        let log = RotatingFile::open(&folder.path().join(FILE)).unwrap();
        let line = vec![b'x'; (LARGEST / 2 + 1) as usize];
        (0..8).for_each(|_| log.append(&line));
        let mut names: Vec<String> = std::fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        assert_eq!(
            names,
            ["dirigent.log", "dirigent.log.1", "dirigent.log.2", "dirigent.log.3", "dirigent.log.4", "dirigent.log.5"]
        );
        assert!(names.iter().all(|name| std::fs::metadata(folder.path().join(name)).unwrap().len() <= LARGEST));
    }

    #[test]
    fn a_file_that_could_not_be_opened_after_a_rotation_is_tried_again_with_the_next_line() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("state");
        let log = RotatingFile::open(&place.join(FILE)).unwrap();
        log.append(&vec![b'x'; LARGEST as usize]);
        std::fs::remove_dir_all(&place).unwrap();
        log.append(b"lost\n");
        std::fs::create_dir(&place).unwrap();
        log.append(b"kept\n");
        assert_eq!(std::fs::read_to_string(place.join(FILE)).unwrap(), "kept\n");
    }
}
