//! `doctor --bundle`: packs what a bug report needs into one tar file. Known secrets are removed wherever their value occurs.
//!
//! The ledger is packed as text, not as a database, because secrets can only be removed from text.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use serde::Serialize;

use crate::launcher::environment::Secrets;
use crate::ledger::LedgerError;
use crate::runtime::{self, RunnerFolder};
use crate::workflow::Loaded;

use super::Failure;
use super::context::Context;

/// How many bytes of a log or a recording are packed, counted from its end.
const TAIL: u64 = 4 << 20;
const NEWEST_NOTES: usize = 20_000;
/// The value of an environment variable whose name contains one of these is treated as a secret, even if no setting uses it.
const SECRET_NAMES: [&str; 6] = ["TOKEN", "SECRET", "PASSWORD", "PASSWD", "KEY", "CREDENTIAL"];

/// Packs everything into `target`. Returns a message that says what was packed.
pub fn pack(
    context: &Context,
    loaded: &Loaded,
    place: &RunnerFolder,
    findings: &impl Serialize,
    recording: Option<&Path>,
    target: &Path,
) -> Result<String, Failure> {
    let secrets = secrets(context, loaded);
    let mut parts = vec![
        ("version.txt", format!("dirigent {}\nWORKFLOW.md {}\n", env!("CARGO_PKG_VERSION"), loaded.hash)),
        ("doctor.json", json(findings)?),
        ("config.json", json(&loaded.values)?),
        ("ledger.jsonl", ledger(place)?),
    ];
    if let Some(log) = tail(&place.state_dir.join("dirigent.log"))? {
        parts.push(("dirigent.log", log));
    }
    if let Some(path) = recording {
        let events = tail(path)?.ok_or_else(|| Failure::plain(format!("{} is not there", path.display())))?;
        parts.push(("events.jsonl", events));
    }
    let failed = |error: io::Error| Failure::plain(format!("{} cannot be written: {error}", target.display()));
    let mut archive =
        File::options().write(true).create(true).truncate(true).mode(0o600).open(target).map_err(failed)?;
    for (name, text) in &parts {
        add(&mut archive, name, secrets.cut_from(text).as_bytes()).map_err(failed)?;
    }
    // Two empty blocks end a tar file.
    archive.write_all(&[0; 1024]).and_then(|()| archive.sync_all()).map_err(failed)?;
    let names: Vec<&str> = parts.iter().map(|(name, _)| *name).collect();
    Ok(format!("packed {} into {}; read it before you send it", names.join(", "), target.display()))
}

fn secrets(context: &Context, loaded: &Loaded) -> Secrets {
    let named = context.env.vars().iter().filter(|(name, _)| {
        let name = name.to_uppercase();
        SECRET_NAMES.iter().any(|part| name.contains(part))
    });
    let mut values = loaded.settings.secrets();
    values.extend(loaded.settings.pr.provider.token.clone());
    values.extend(loaded.settings.worker.env.values().cloned());
    values.extend(named.map(|(_, value)| value.clone().into()));
    Secrets { names: Vec::new(), values }
}

fn json(value: &impl Serialize) -> Result<String, Failure> {
    serde_json::to_string_pretty(value).map(|text| text + "\n").map_err(Failure::plain)
}

/// Returns the ledger as text, one record per line: the state (as at the beginning of a recording), the notes, and the finished runs.
fn ledger(place: &RunnerFolder) -> Result<String, Failure> {
    let ledger = place.read_ledger()?;
    let state = ledger.load()?;
    let mut text = String::new();
    let mut line = |value: serde_json::Result<String>| -> Result<(), Failure> {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}", value.map_err(Failure::plain)?);
        Ok(())
    };
    line(serde_json::to_string(&runtime::RecordLine::begun(runtime::now(), &state)))?;
    for note in ledger.notes(None, NEWEST_NOTES)? {
        line(serde_json::to_string(&note))?;
    }
    let runs: Result<Vec<_>, LedgerError> = state.jobs.keys().map(|id| ledger.finished_runs(id)).collect();
    for run in runs?.iter().flatten() {
        line(serde_json::to_string(run))?;
    }
    Ok(text)
}

/// Returns the end of a file, beginning at the start of a line. `None` if there is no such file.
fn tail(path: &Path) -> Result<Option<String>, Failure> {
    let failed = |error: io::Error| Failure::plain(format!("{} cannot be read: {error}", path.display()));
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    let length = file.metadata().map_err(failed)?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL))).map_err(failed)?;
    let mut bytes = Vec::new();
    file.take(TAIL).read_to_end(&mut bytes).map_err(failed)?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    Ok(Some(match text.split_once('\n') {
        Some((_, whole)) if length > TAIL => whole.to_owned(),
        _ => text,
    }))
}

/// Appends a file to the tar archive (ustar): a header block, then the bytes, filled up to whole blocks.
fn add(archive: &mut File, name: &str, bytes: &[u8]) -> io::Result<()> {
    let mut header = [0_u8; 512];
    let mut field = |at: usize, text: &str| {
        for (place, byte) in header.iter_mut().skip(at).zip(text.bytes()) {
            *place = byte;
        }
    };
    field(0, name);
    field(100, "0000600");
    field(108, "0000000");
    field(116, "0000000");
    field(124, &format!("{:011o}", bytes.len()));
    field(136, &format!("{:011o}", runtime::now().0.max(0) / 1000));
    field(148, "        ");
    field(156, "0");
    field(257, "ustar");
    field(263, "00");
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    for (place, byte) in header.iter_mut().skip(148).zip(format!("{sum:06o}\0 ").bytes()) {
        *place = byte;
    }
    archive.write_all(&header)?;
    archive.write_all(bytes)?;
    archive.write_all(&vec![0; bytes.len().next_multiple_of(512) - bytes.len()])
}
