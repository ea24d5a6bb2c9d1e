//! What agents printed: the transcript of a run, in ranges or as it grows, and a summary of what the agent said and did.
//!
//! A transcript is served with its exact length: secrets and paths are masked in place, so that a byte range always means the same.

use std::io::{self, Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{Path, RawQuery, State};
use axum::http::header::{ACCEPT_RANGES, CONTENT_RANGE, CONTENT_TYPE, RANGE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::Response;
use http_body_util::channel::{Channel, Sender};
use schemars::JsonSchema;
use serde::Serialize;

use super::clean::Clean;
use super::error::ApiError;
use super::follow::{Follower, LONGEST_LINE, Until, line_start, open, read_piece};
use super::listen::until_true;
use super::routes::json_text;
use super::shapes::time;
use super::{Site, find};
use crate::agent::peek::peek;
use crate::agent::transcript::newest_part;
use crate::domain::ids::RunId;
use crate::worker::transcript_path;

/// How often a growing transcript is checked for new lines.
const LOOK: Duration = Duration::from_millis(300);
/// How many bytes at the end of the transcript a summary is made from.
const PEEKED: u64 = 2 << 20;
const USUAL_LINES: usize = 200;
const MOST_LINES: usize = 2000;

/// Handles `GET /api/v1/runs/{run}/log`.
pub async fn log(
    State(site): State<Arc<Site>>,
    Path(run): Path<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let path = record_of(&site, &run)?;
    let follow = parameter(query.as_deref(), "follow").is_some_and(|value| matches!(value, "" | "1" | "true"));
    // The last line of a live run is served once it is complete: half a line could contain half a secret, which would not be recognised.
    let length = length_of(&path, is_live(&site, &run)).ok_or_else(|| no_such_run(&run))?;
    let range = match headers.get(RANGE).and_then(|range| range.to_str().ok()) {
        Some(range) => Some(read_range(range, length)?),
        None => None,
    };
    let (from, to) = range.unwrap_or((0, length));
    let place = site.followers.clone().try_acquire_owned();
    let place = place.map_err(|_| ApiError::unavailable("too many are told something already"))?;
    let (sender, body) = Channel::<Bytes>::new(1);
    let (clean, teller) = (site.clean.clone(), site.clone());
    tokio::spawn(async move {
        let mut ended = teller.pictures.ended();
        let told = async {
            match follow {
                true => tell_as_it_grows(&teller, &run, Follower::new(path, from), clean, sender).await,
                false => tell(path, clean, (from, to), sender).await,
            }
        };
        tokio::select! {
            () = told => {}
            () = until_true(&mut ended) => {}
        }
        drop(place);
    });
    let mut response = Response::new(Body::new(body));
    let head = response.headers_mut();
    head.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    head.insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    if range.is_some() && !follow {
        let told = format!("bytes {from}-{}/{length}", to.saturating_sub(1));
        if let Ok(told) = HeaderValue::from_str(&told) {
            head.insert(CONTENT_RANGE, told);
        }
        *response.status_mut() = StatusCode::PARTIAL_CONTENT;
    }
    Ok(response)
}

/// Sends the transcript from one offset to another.
async fn tell(path: PathBuf, clean: Arc<Clean>, (mut at, to): (u64, u64), mut client: Sender<Bytes>) {
    loop {
        let (place, clean) = (path.clone(), clean.clone());
        let read = move || read_piece(&mut open(&place)?, at, Until::Offset(to), &clean);
        match tokio::task::spawn_blocking(read).await {
            Ok(Ok(piece)) if !piece.is_empty() => {
                at += piece.len() as u64;
                if client.send_data(Bytes::from(piece)).await.is_err() {
                    return;
                }
            }
            _ => return,
        }
    }
}

/// Sends the transcript until the run is over.
async fn tell_as_it_grows(
    site: &Site,
    run: &str,
    mut follower: Follower,
    clean: Arc<Clean>,
    mut client: Sender<Bytes>,
) {
    loop {
        // Checked before reading: what was written before the check is read below.
        let lives = is_live(site, run);
        let clean = clean.clone();
        let read = tokio::task::spawn_blocking(move || {
            let piece = follower.next(&clean, !lives);
            (follower, piece)
        });
        let Ok((still, Ok(piece))) = read.await else { return };
        follower = still;
        if !piece.is_empty() {
            if client.send_data(Bytes::from(piece)).await.is_err() {
                return;
            }
        } else if lives {
            tokio::time::sleep(LOOK).await;
        } else {
            return;
        }
    }
}

fn is_live(site: &Site, run: &str) -> bool {
    site.handle.snapshot().jobs.iter().any(|job| job.run.as_ref().is_some_and(|live| live.id == run))
}

/// Returns the path of a run's transcript. Only a complete run id is accepted, which cannot be a path.
fn record_of(site: &Site, run: &str) -> Result<PathBuf, ApiError> {
    let is_id = !run.is_empty() && run.len() <= 64 && run.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if is_id { Ok(transcript_path(&site.records.state_dir, &RunId::new(run))) } else { Err(no_such_run(run)) }
}

fn no_such_run(run: &str) -> ApiError {
    let run: String = run.chars().take(40).collect();
    ApiError::new(StatusCode::NOT_FOUND, "run_not_found", format!("run `{run}` has no record"))
}

/// Returns the length of a transcript. If it still grows, only whole lines count.
fn length_of(path: &std::path::Path, grows: bool) -> Option<u64> {
    let mut file = open(path).ok()?;
    let length = file.metadata().ok().filter(std::fs::Metadata::is_file)?.len();
    if grows { line_start(&mut file, length).ok() } else { Some(length) }
}

/// Parses `bytes=a-b`, `bytes=a-` or `bytes=-n` into a half-open range.
fn read_range(range: &str, length: u64) -> Result<(u64, u64), ApiError> {
    let unusable = || {
        let message =
            format!("the range cannot be had: the record has {length} bytes, and one `bytes=FROM-TO` is understood");
        ApiError::new(StatusCode::RANGE_NOT_SATISFIABLE, "bad_range", message)
    };
    let (from, to) =
        range.trim().strip_prefix("bytes=").and_then(|range| range.split_once('-')).ok_or_else(unusable)?;
    let (from, to) = match (from.parse::<u64>(), to.parse::<u64>()) {
        (Ok(from), Ok(to)) if from <= to => (from, to.saturating_add(1).min(length)),
        (Ok(from), Err(_)) if to.is_empty() => (from, length),
        (Err(_), Ok(last)) if from.is_empty() && last > 0 => (length.saturating_sub(last), length),
        _ => return Err(unusable()),
    };
    if from < to { Ok((from, to)) } else { Err(unusable()) }
}

/// Returns the value of a query parameter, without decoding it.
pub fn parameter<'a>(query: Option<&'a str>, name: &str) -> Option<&'a str> {
    let pairs = query.unwrap_or_default().split('&').map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    pairs.filter(|(found, _)| *found == name).map(|(_, value)| value).next()
}

/// The response of `GET /api/v1/transcript/{run}`: what the agent said and which tools it used, the newest last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TranscriptAnswer {
    pub run: String,
    /// Whether the run is live, so that the transcript may still grow.
    pub live: bool,
    /// Whether the log contains more than these lines.
    pub cut: bool,
    pub lines: Vec<TranscriptLine>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TranscriptLine {
    pub at: String,
    /// `message`, `tool`, `trouble`, `note` or `turn`.
    pub kind: String,
    pub text: String,
}

pub async fn transcript(
    State(site): State<Arc<Site>>,
    Path(run): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Response, ApiError> {
    let last = parameter(query.as_deref(), "last").map_or(Ok(USUAL_LINES), str::parse);
    let last = last.map_err(|_| ApiError::bad_request("`last` is not a number"))?.min(MOST_LINES);
    let answer = site.transcript(&run, last).await?;
    let text = serde_json::to_string(&answer).map_err(|_| ApiError::internal("the answer could not be written"))?;
    Ok(json_text(StatusCode::OK, text))
}

impl Site {
    /// Returns the last lines of what a run's agent said and did, without secrets and paths.
    pub async fn transcript(&self, run: &str, last: usize) -> Result<TranscriptAnswer, ApiError> {
        let path = record_of(self, run)?;
        let picture = self.handle.snapshot();
        let live = is_live(self, run);
        let (id, exec, clean) = (RunId::new(run), self.records.exec_events, self.clean.clone());
        let of_live = picture.jobs.iter().filter_map(|job| job.run.as_ref()).find(|live| live.id == run);
        let runtime = match of_live {
            Some(live) => live.runtime.clone(),
            None => {
                let finished = id.clone();
                let known = self.records.ask(move |ledger| ledger.finished_run(&finished)).await?;
                known.map(|finished| finished.run.runtime).unwrap_or_default()
            }
        };
        let read = tokio::task::spawn_blocking(move || -> io::Result<(String, bool)> {
            let newest = newest_part(&path);
            let mut file = open(&newest)?;
            let length = file.metadata()?.len();
            let from = line_start(&mut file, length.saturating_sub(PEEKED))?;
            file.seek(SeekFrom::Start(from))?;
            let mut bytes = Vec::new();
            file.take(PEEKED + LONGEST_LINE).read_to_end(&mut bytes)?;
            Ok((String::from_utf8_lossy(&bytes).into_owned(), from > 0 || newest != path))
        });
        let (text, from_the_middle) = match read.await {
            Ok(Ok(read)) => read,
            _ => return Err(no_such_run(id.as_str())),
        };
        // Secrets are removed before lines are shortened: afterwards a truncated secret would not be recognised.
        let read = tokio::task::spawn_blocking(move || peek(&runtime, exec, &clean.text(&text))).await;
        let seen = read.map_err(|_| ApiError::internal("the record could not be read"))?;
        let cut = from_the_middle || seen.len() > last;
        let lines = seen.iter().skip(seen.len().saturating_sub(last)).map(|line| TranscriptLine {
            at: time(line.at),
            kind: line.kind.name().to_owned(),
            text: line.text.clone(),
        });
        Ok(TranscriptAnswer { run: id.to_string(), live, cut, lines: lines.collect() })
    }

    /// Returns the run that a ticket's page follows: the live one, else the last one.
    pub async fn newest_run(&self, name: &str) -> Result<Option<String>, ApiError> {
        let picture = self.handle.snapshot();
        if let Some(run) = find(&picture, name).and_then(|job| job.run.as_ref()) {
            return Ok(Some(run.id.clone()));
        }
        Ok(self.records.ticket(picture, name).await?.runs.last().map(|finished| finished.run.id.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use secrecy::SecretString;

    use super::super::follow::PIECE;
    use super::*;
    use crate::launcher::environment::Secrets;

    #[test]
    fn ranges_are_read_as_the_protocol_says() {
        for (range, expected) in
            [("bytes=0-9", (0, 10)), ("bytes=5-", (5, 100)), ("bytes=-7", (93, 100)), ("bytes=90-500", (90, 100))]
        {
            assert_eq!(read_range(range, 100).unwrap(), expected, "{range}");
        }
        for range in ["bytes=100-", "bytes=9-5", "lines=1-2", "bytes=-0", "bytes=0-1,3-4", "bytes=-"] {
            assert_eq!(read_range(range, 100).unwrap_err().code, "bad_range", "{range}");
        }
    }

    #[test]
    fn a_secret_is_starred_wherever_a_range_or_a_piece_ends() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let token = "ghp_0123456789abcdefghij";
        let secrets = Secrets { names: Vec::new(), values: vec![SecretString::from(token)] };
        let clean = Clean::new(secrets, &[(Path::new("/srv/work/repo"), "<repo>")]);
        // Many pieces, with the secret and the path across all their borders.
        let line = format!("7 out it is {token} in /srv/work/repo/x and {token}\n");
        let text = line.repeat(3 * PIECE / line.len());
        std::fs::write(&path, &text).unwrap();
        let whole = clean.masked(text.as_bytes());
        assert!(whole.len() == text.len() && !String::from_utf8_lossy(&whole).contains("ghp_"));
        let (mut at, mut read) = (0, Vec::new());
        while at < text.len() as u64 {
            let piece = read_piece(&mut open(&path).unwrap(), at, Until::LastLine, &clean).unwrap();
            at += piece.len() as u64;
            read.extend(piece);
        }
        assert!(read == whole);
        for from in 0..line.len() as u64 {
            for to in [from + 1, from + 5, from + 40, from + 2 * line.len() as u64] {
                let told = read_piece(&mut open(&path).unwrap(), from, Until::Offset(to), &clean).unwrap();
                assert!(told == whole[from as usize..to as usize], "{from}-{to}: {}", String::from_utf8_lossy(&told));
            }
        }
    }

    #[test]
    fn pieces_of_a_record_are_the_record() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let text: String = (0..20_000).map(|number| format!("7 out line {number} of many\n")).collect();
        std::fs::write(&path, format!("{text}half a line")).unwrap();
        let clean = Clean::default();
        let (mut at, mut read) = (0, Vec::new());
        loop {
            let piece = read_piece(&mut open(&path).unwrap(), at, Until::LastLine, &clean).unwrap();
            if piece.is_empty() {
                break;
            }
            at += piece.len() as u64;
            read.extend(piece);
        }
        assert!(read == text.as_bytes(), "what is not whole yet is left for later");
        let mut file = open(&path).unwrap();
        assert_eq!(read_piece(&mut file, 3, Until::Offset(30), &clean).unwrap(), &text.as_bytes()[3..30]);
        assert_eq!(length_of(&path, true), Some(text.len() as u64));
        let end = text.len() as u64 + 11;
        assert_eq!(length_of(&path, false), Some(end));
        assert_eq!(read_piece(&mut file, end - 4, Until::Offset(end), &clean).unwrap(), b"line");
        assert_eq!(read_piece(&mut file, at, Until::End, &clean).unwrap(), b"half a line");
    }
}
