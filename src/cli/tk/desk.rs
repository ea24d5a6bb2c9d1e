//! `tk` inside a worker: the same commands, sent as requests to the runner over its socket (the desk), whatever the real tracker is.
//!
//! A worktree may contain a copy of `.tickets`; it is never read here.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use super::arguments::{Argument, Arguments};
use super::create::{Dialect, NewTicketArguments};
use super::evidence;
use super::failure::Failure;
use super::help;
use super::notes;
use super::session::{TkCall, TkOutput};
use crate::worker::desk_protocol::{AnswerKind, DESK_VERSION, DeskRequest, DeskResponse, DeskVerb};

/// How long to wait for the runner's response: it may first have to write to a remote tracker.
const PATIENCE: Duration = Duration::from_secs(120);
const MAX_ANSWER_BYTES: u64 = 64 * 1024 * 1024;

/// Whether this process runs inside a worker.
pub fn is_worker(session: &TkCall<'_>) -> bool {
    ["DIRIGENT_SOCKET", "DIRIGENT_RUN_ID"].iter().any(|name| session.variable(name).is_some())
}

pub fn run(session: &TkCall<'_>, command: &str, arguments: &[String]) -> Result<TkOutput, Failure> {
    let mut as_json = false;
    let verb = match command {
        "help" | "--help" | "-h" => return Ok(help::worker_help(session)),
        "show" => {
            let (json, verb) = show(arguments)?;
            as_json = json;
            verb
        }
        "comment" | "add-note" => {
            let (ticket, words) = split_ticket(session, arguments);
            DeskVerb::Comment { text: notes::text(session, words)?, ticket }
        }
        "evidence" => DeskVerb::Evidence { evidence: evidence::parse(session, arguments)?, ticket: None },
        "answer" => answer_to(session, arguments)?,
        "done" => {
            let (ticket, words) = split_ticket(session, arguments);
            DeskVerb::Done { summary: said(session, words)?, ticket }
        }
        "failed" => {
            let (ticket, words) = split_ticket(session, arguments);
            let why = said(session, words)?;
            if why.trim().is_empty() {
                return Err(Failure::Usage(format!("Usage: {} failed WHY", session.program)));
            }
            DeskVerb::Failed { why, ticket }
        }
        "blocked" => {
            let (ticket, words) = split_ticket(session, arguments);
            let reason = said(session, words)?;
            if reason.trim().is_empty() {
                return Err(Failure::Usage(format!("Usage: {} blocked REASON", session.program)));
            }
            DeskVerb::Blocked { reason, ticket }
        }
        "plan" => DeskVerb::Plan { text: plan(session, arguments)?, ticket: None },
        "api" => DeskVerb::Api { request: api_request(session, arguments)?, tool: None },
        "create" => follow_up(arguments, Dialect::Public)?,
        "add" => follow_up(arguments, Dialect::Design)?,
        "close" => return Err(only_here(session, "close", "Use 'done SUMMARY' when the work is finished.")),
        "start" | "reopen" | "status" | "claim" => {
            return Err(only_here(session, command, "The runner moves your ticket itself."));
        }
        _ => return Err(only_here(session, command, "Here you can only reach your own ticket: see 'help'.")),
    };
    let response = ask(session, verb)?;
    answer(response, as_json)
}

fn only_here(session: &TkCall<'_>, command: &str, hint: &str) -> Failure {
    Failure::said(format!("'{} {command}' does not work inside a worker. {hint}", session.program))
}

fn show(arguments: &[String]) -> Result<(bool, DeskVerb), Failure> {
    let mut walk = Arguments::new(arguments);
    let (mut json, mut new, mut ticket) = (false, false, None);
    while let Some(argument) = walk.next() {
        match argument {
            Argument::Word(word) => ticket = Some(word.to_owned()),
            Argument::Option(option) if option.name == "--new" => {
                option.plain()?;
                new = true;
            }
            Argument::Option(option) if option.name == "--json" => {
                option.plain()?;
                json = true;
            }
            Argument::Option(option) => return Err(option.unknown()),
        }
    }
    Ok((json, DeskVerb::Show { new, ticket }))
}

fn answer_to(session: &TkCall<'_>, arguments: &[String]) -> Result<DeskVerb, Failure> {
    let [remark, answer, words @ ..] = arguments else {
        let usage = format!("Usage: {} answer REMARK fixed|explained|declined TEXT", session.program);
        return Err(Failure::Usage(usage));
    };
    let Some(answer) = AnswerKind::ALL.into_iter().find(|kind| kind.name() == answer) else {
        return Err(Failure::said(format!("an answer is fixed, explained or declined, not '{answer}'")));
    };
    let text = said(session, words)?;
    if text.trim().is_empty() {
        return Err(Failure::said("say in a sentence what you did, or why not"));
    }
    Ok(DeskVerb::Answer { remark: remark.clone(), answer, text, ticket: None })
}

/// Returns the words joined by blanks; a single `-` reads stdin instead. Stdin is never read without `-`, because an agent's stdin may
/// stay open for ever.
fn said(session: &TkCall<'_>, words: &[String]) -> Result<String, Failure> {
    match words {
        [dash] if dash == "-" => notes::stdin_text(session),
        words => Ok(words.join(" ")),
    }
}

fn plan(session: &TkCall<'_>, arguments: &[String]) -> Result<String, Failure> {
    let [file] = arguments else {
        return Err(Failure::Usage(format!("Usage: {} plan FILE   (- is stdin)", session.program)));
    };
    if file == "-" {
        return notes::stdin_text(session);
    }
    let path = session.cwd.join(file);
    std::fs::read_to_string(&path).map_err(|error| Failure::said(format!("could not read {file}: {error}")))
}

/// Parses a request to the tracker's API: JSON, or a path with parameters such as `GET issues/12 per_page=5`.
fn api_request(session: &TkCall<'_>, arguments: &[String]) -> Result<Value, Failure> {
    let json = |text: &str| serde_json::from_str(text).map_err(|error| Failure::said(format!("not JSON: {error}")));
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (method, path, rest) = match words.as_slice() {
        ["-"] => return json(&notes::stdin_text(session)?),
        [text] if text.trim_start().starts_with('{') => return json(text),
        [method @ ("GET" | "POST" | "PATCH" | "PUT" | "DELETE"), path, rest @ ..] => (*method, *path, rest),
        [path, rest @ ..] if !path.starts_with('-') => ("GET", *path, rest),
        _ => {
            return Err(Failure::Usage(format!("Usage: {} api [METHOD] PATH [NAME=VALUE...] [JSON]", session.program)));
        }
    };
    let mut request = json!({ "method": method, "path": path });
    let mut params = serde_json::Map::new();
    for word in rest {
        if word.starts_with('{') {
            request["body"] = json(word)?;
        } else if let Some((name, value)) = word.split_once('=') {
            params.insert(name.to_owned(), value.into());
        } else {
            return Err(Failure::said(format!("'{word}' is neither NAME=VALUE nor a JSON object")));
        }
    }
    if !params.is_empty() {
        request["params"] = Value::Object(params);
    }
    Ok(request)
}

fn follow_up(arguments: &[String], dialect: Dialect) -> Result<DeskVerb, Failure> {
    let parsed = NewTicketArguments::parse(arguments, dialect)?;
    parsed.check()?;
    let mut description = parsed.description.clone();
    for (heading, text) in [("Design", &parsed.design), ("Acceptance Criteria", &parsed.acceptance)] {
        if !text.is_empty() {
            description.push_str(&format!("\n\n## {heading}\n\n{text}"));
        }
    }
    // Priorities begin at 0 on the command line and in ticket files, but at 1 in the runner.
    let priority = match &parsed.priority {
        Some(text) => {
            let number = text.parse::<i64>().ok().filter(|number| (0..=4).contains(number));
            Some(number.ok_or_else(|| Failure::said(format!("the priority is 0 to 4, not '{text}'")))? + 1)
        }
        None => None,
    };
    Ok(DeskVerb::Create {
        title: parsed.title_or_default().to_owned(),
        description: description.trim().to_owned(),
        labels: parsed.tag_list(),
        priority,
    })
}

/// Splits off the first word if it is the run's own ticket, or looks like the id of another one. The runner decides which ticket may be
/// changed.
fn split_ticket<'a>(session: &TkCall<'_>, arguments: &'a [String]) -> (Option<String>, &'a [String]) {
    let own = ["DIRIGENT_TICKET_ID", "DIRIGENT_TICKET_KEY"].map(|name| session.variable(name));
    match arguments.split_first() {
        Some((first, rest)) if own.contains(&Some(first.as_str())) => (Some(first.clone()), rest),
        Some((first, rest)) if !rest.is_empty() && own.iter().flatten().any(|own| alike(own, first)) => {
            (Some(first.clone()), rest)
        }
        _ => (None, arguments),
    }
}

/// Whether two ids have the same prefix, such as `app-x3f9` and `app-77aa`, `ENG-12` and `ENG-7`, `#3` and `#44`.
fn alike(own: &str, word: &str) -> bool {
    let parts = |text: &str| -> Option<(String, String)> {
        let at = text.rfind(['-', '#'])? + 1;
        let (prefix, rest) = text.split_at(at);
        (!rest.is_empty() && rest.chars().all(|c| c.is_ascii_alphanumeric()))
            .then(|| (prefix.to_owned(), rest.to_owned()))
    };
    match (parts(own), parts(word)) {
        (Some((prefix, _)), Some((same, _))) => prefix == same,
        _ => false,
    }
}

fn ask(session: &TkCall<'_>, verb: DeskVerb) -> Result<DeskResponse, Failure> {
    let Some(socket) = session.variable("DIRIGENT_SOCKET") else {
        return Err(Failure::said(
            "this is a worker, but DIRIGENT_SOCKET is not set, so the runner cannot be reached; nothing was recorded",
        ));
    };
    let token = session.variable("DIRIGENT_TOKEN").unwrap_or_default();
    send(socket, token, verb).map_err(Failure::said)
}

/// Sends one request to the runner and waits for its response. The error is a message for people.
pub fn send(socket: &str, token: &str, verb: DeskVerb) -> Result<DeskResponse, String> {
    let request = DeskRequest { v: DESK_VERSION, token: token.to_owned(), verb };
    let lost = |what: &str, error: &dyn std::fmt::Display| {
        format!("the runner at {socket} {what} ({error}); it may not have been recorded")
    };
    let mut stream = UnixStream::connect(Path::new(socket))
        .map_err(|error| format!("the runner cannot be reached at {socket} ({error}); nothing was recorded"))?;
    let timeouts = stream.set_read_timeout(Some(PATIENCE)).and_then(|()| stream.set_write_timeout(Some(PATIENCE)));
    timeouts.map_err(|error| lost("cannot be talked to", &error))?;
    let mut line = serde_json::to_vec(&request).map_err(|error| lost("cannot be asked this", &error))?;
    line.push(b'\n');
    // A desk that refuses early may close the connection before it has read everything; its response can still be read.
    match stream.write_all(&line) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => return Err(lost("did not take the request", &error)),
        _ => {}
    }
    let _ = stream.shutdown(Shutdown::Write);
    let mut answer = String::new();
    BufReader::new(stream.take(MAX_ANSWER_BYTES))
        .read_line(&mut answer)
        .map_err(|error| lost("did not answer", &error))?;
    if answer.trim().is_empty() {
        return Err(lost("hung up without an answer", &"the run may be over"));
    }
    serde_json::from_str(&answer).map_err(|error| lost("gave an answer that makes no sense", &error))
}

fn answer(response: DeskResponse, as_json: bool) -> Result<TkOutput, Failure> {
    if let Some(error) = response.error.filter(|_| !response.ok) {
        return Err(Failure::said(error.message));
    }
    if !response.ok {
        return Err(Failure::said("the runner refused without a reason"));
    }
    if as_json && let Some(data) = &response.data {
        return Ok(super::json::reply(data));
    }
    let mut text = response.text.unwrap_or_default();
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    Ok(TkOutput::text(text))
}
