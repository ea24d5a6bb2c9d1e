//! Whatever is handed in from outside (ticket files, requests to the desk and to the control socket, lines of an agent,
//! recordings) is understood or refused; nothing panics, and an edit keeps what it does not mean to change.
//!
//! Workflow files and the agents' own protocols have such tests beside their others. `PROPTEST_CASES` raises the number of
//! tries; what once went wrong is kept in `tests/fixtures/fuzz/` and tried first.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use dirigent::agent::Protocol;
use dirigent::agent::exec::Exec;
use dirigent::config::exec::ExecEvents;
use dirigent::runtime::{Reply, Request, replay};
use dirigent::tracker::tk::Document;
use dirigent::worker::desk::socket_directory;
use dirigent::worker::desk_protocol::{DeskRequest, DeskVerb};
use dirigent::workflow::{self, Env};
use proptest::prelude::*;

use super::support::board::{Board, MUTATE, PATIENCE};

fn corpus(kind: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/fuzz").join(kind);
    let files: Vec<PathBuf> = std::fs::read_dir(&folder).unwrap().flatten().map(|entry| entry.path()).collect();
    assert!(!files.is_empty(), "{} is empty", folder.display());
    files.into_iter().map(|path| (path.clone(), std::fs::read(path).unwrap())).collect()
}

fn lines(bytes: &[u8]) -> Vec<&[u8]> {
    bytes.split(|byte| *byte == b'\n').collect()
}

/// The fields of a ticket as anybody else would see them.
fn fields(doc: &Document) -> Vec<(String, Option<String>, Vec<String>)> {
    let keys: Vec<String> = doc.keys().map(|key| key.into_owned()).collect();
    keys.into_iter().map(|key| (key.clone(), doc.text(&key), doc.list(&key))).collect()
}

/// Every edit that Dirigent makes, each on its own copy.
fn edit_ticket(bytes: &[u8]) {
    let Ok(doc) = Document::parse(bytes.to_vec()) else { return };
    assert_eq!(doc.bytes(), bytes, "reading alone changes the file");
    let (before, body) = (fields(&doc), doc.body().to_vec());
    let others =
        |doc: &Document, key: &str| -> Vec<_> { fields(doc).into_iter().filter(|(name, _, _)| name != key).collect() };

    let mut edited = doc.clone();
    edited.set_word("status", "closed");
    assert_eq!(edited.word("status").as_deref(), Some("closed"));
    assert_eq!(edited.body(), body, "the body changed with the status");
    assert_eq!(others(&edited, "status"), others(&doc, "status"), "other fields changed with the status");
    let again = Document::parse(edited.bytes().to_vec()).expect("what was written can be read");
    assert_eq!(again.word("status").as_deref(), Some("closed"));

    let mut edited = doc.clone();
    if edited.list_add("deps", "zz-99") {
        assert!(edited.list("deps").contains(&"zz-99".to_owned()), "{:?}", edited.list("deps"));
        assert!(edited.list_remove("deps", "zz-99"));
        assert!(!edited.list("deps").contains(&"zz-99".to_owned()));
    }
    assert_eq!(others(&edited, "deps"), others(&doc, "deps"), "other fields changed with the list");
    assert_eq!(edited.body(), body, "the body changed with the list");

    let mut edited = doc.clone();
    let notes = edited.notes().len();
    edited.add_note("2026-01-01T00:00:00Z", "a note\n**2026-01-02T00:00:00Z**\n---");
    assert!(edited.bytes().starts_with(bytes), "a note changed what was before it");
    assert_eq!(fields(&edited), before, "a note changed the fields");
    assert_eq!(edited.notes().len(), notes + 1, "one note is one note");
    assert!(edited.notes().last().unwrap().text.starts_with("a note"));
}

fn ask_desk(bytes: &[u8]) {
    if let Ok(request) = serde_json::from_slice::<DeskRequest>(bytes) {
        assert!(!request.verb.name().is_empty());
        let again: DeskRequest = serde_json::from_slice(&serde_json::to_vec(&request).unwrap()).unwrap();
        assert_eq!(again, request);
    }
}

fn ask_runner(bytes: &[u8]) {
    if let Ok(request) = serde_json::from_slice::<Request>(bytes) {
        let again: Request = serde_json::from_slice(&serde_json::to_vec(&request).unwrap()).unwrap();
        assert_eq!(again, request);
    }
}

fn listen(bytes: &[u8]) {
    for events in [ExecEvents::Plain, ExecEvents::Jsonl] {
        let mut protocol = Exec::new(events);
        for line in lines(bytes) {
            let reaction = protocol.line(line);
            assert!(reaction.send.is_empty(), "a one-shot command is answered");
        }
    }
}

#[test]
fn what_once_went_wrong_goes_well() {
    corpus("tickets").iter().for_each(|(path, bytes)| {
        eprintln!("{}", path.display());
        edit_ticket(bytes);
    });
    corpus("desk").iter().for_each(|(_, bytes)| ask_desk(bytes));
    corpus("control").iter().for_each(|(_, bytes)| ask_runner(bytes));
    corpus("exec").iter().for_each(|(_, bytes)| listen(bytes));
    corpus("recordings").iter().for_each(|(path, bytes)| assert!(replay(&bytes[..]).is_err(), "{}", path.display()));
    let dir = tempfile::tempdir().unwrap();
    for (path, bytes) in corpus("workflows") {
        let copy = dir.path().join("WORKFLOW.md");
        std::fs::write(&copy, bytes).unwrap();
        if let Err(error) = workflow::load(&copy, &Env::of([("HOME", "/nowhere")])) {
            assert!(!format!("{:?}", miette::Report::new(error)).is_empty(), "{}", path.display());
        }
    }
}

/// Text near the format of a ticket file.
fn ticket() -> impl Strategy<Value = Vec<u8>> {
    let line = prop_oneof![
        Just("id: t-1".to_owned()),
        "status: ?(open|\"open\"|'open' # x|in_progress)?",
        "(deps|tags|links): ?(\\[\\]|\\[a\\]|\\[a, \"b\"\\]|\\[a, b\\] # c|a)?",
        "  - [a-z\"'#]{0,4}",
        "[a-z]{1,4}: ?[a-z#\\[\\]\"':, ]{0,8}",
        Just("---".to_owned()),
        Just("# Title".to_owned()),
        Just("## Notes".to_owned()),
        Just("**2026-01-01T00:00:00Z**".to_owned()),
        Just("<!-- dirigent:k -->".to_owned()),
        "[a-z# *é-]{0,6}",
    ];
    let newline = prop_oneof![4 => Just("\n"), 1 => Just("\r\n")];
    (prop::collection::vec((line, newline), 0..14), any::<bool>(), any::<bool>()).prop_map(|(lines, opened, cut)| {
        let mut text = if opened { "---\n".to_owned() } else { String::new() };
        lines.iter().for_each(|(line, newline)| text.push_str(&format!("{line}{newline}")));
        if cut {
            text.pop();
        }
        text.into_bytes()
    })
}

/// JSON near the requests, whole or cut.
fn request() -> impl Strategy<Value = Vec<u8>> {
    let word = prop_oneof![
        Just("show".to_owned()),
        Just("comment".to_owned()),
        Just("done".to_owned()),
        Just("evidence".to_owned()),
        Just("snapshot".to_owned()),
        Just("pause".to_owned()),
        Just("message".to_owned()),
        "\\PC{0,6}",
    ];
    let value = prop_oneof![
        Just("null".to_owned()),
        Just("true".to_owned()),
        Just("1".to_owned()),
        Just("-1e400".to_owned()),
        Just("[]".to_owned()),
        word.clone().prop_map(|word| serde_json::to_string(&word).unwrap()),
    ];
    let key = prop_oneof![
        Just("v"),
        Just("token"),
        Just("verb"),
        Just("args"),
        Just("ask"),
        Just("ticket"),
        Just("text"),
        Just("urgent"),
        Just("new"),
        Just("summary"),
        Just("request"),
        Just("type"),
        Just("reset_at"),
        Just("cost_usd"),
        Just("input"),
    ];
    let flat = prop::collection::vec((key.clone(), value), 0..6).prop_map(|pairs| {
        let pairs: Vec<String> = pairs.iter().map(|(key, value)| format!("\"{key}\":{value}")).collect();
        format!("{{{}}}", pairs.join(","))
    });
    (flat.clone(), key, flat, any::<bool>(), 0usize..80).prop_map(|(outer, key, inner, cut, at)| {
        let mut text = outer.replacen('}', &format!(",\"{key}\":{inner}}}"), 1).replace("{,", "{").into_bytes();
        if cut {
            text.truncate(at);
        }
        text
    })
}

proptest! {
    #[test]
    fn ticket_files_are_edited_without_harm(bytes in ticket()) {
        edit_ticket(&bytes);
    }

    #[test]
    fn bytes_at_random_are_no_ticket_that_panics(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        edit_ticket(&bytes);
        edit_ticket(&[b"---\nid: a\n".as_slice(), &bytes, b"\n---\n"].concat());
    }

    #[test]
    fn requests_are_understood_or_refused(bytes in request(), raw in prop::collection::vec(any::<u8>(), 0..100)) {
        for bytes in [bytes, raw] {
            ask_desk(&bytes);
            ask_runner(&bytes);
            listen(&bytes);
            let _ = replay(&bytes[..]);
        }
    }

    #[test]
    fn a_comment_reaches_the_desk_byte_by_byte(text in "\\PC{0,80}", token in "\\PC{0,20}") {
        let verb = DeskVerb::Comment { text, ticket: None };
        let request = DeskRequest { v: 1, token, verb };
        let wire = serde_json::to_vec(&request).unwrap();
        prop_assert!(!wire.contains(&b'\n'), "a request is one line");
        prop_assert_eq!(serde_json::from_slice::<DeskRequest>(&wire).unwrap(), request);
    }
}

#[test]
fn the_control_socket_answers_every_line_and_lives_on() {
    let board = Board::new("while :; do sleep 1; done\n", MUTATE);
    let runner = board.start();
    board.until("it listens", || find_socket(&board).is_some());
    let socket = find_socket(&board).unwrap();
    let mut sent: Vec<Vec<u8>> = corpus("control").into_iter().chain(corpus("desk")).map(|(_, bytes)| bytes).collect();
    sent.extend([Vec::new(), vec![0; 1000], vec![b'a'; 3 << 20], b"{}\n{}\n".to_vec(), vec![0xff, b'\n']]);
    for mut bytes in sent {
        bytes.push(b'\n');
        let mut stream = UnixStream::connect(&socket).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        // A runner that refuses early may close before it has read everything.
        let _ = stream.write_all(&bytes);
        let _ = stream.shutdown(Shutdown::Write);
        let mut answer = String::new();
        let read = stream.read_to_string(&mut answer);
        if read.is_ok() && !answer.is_empty() {
            let reply: Reply = serde_json::from_str(&answer).unwrap();
            assert!(matches!(reply, Reply::Refused { .. }), "{reply:?}");
        }
    }
    // Somebody who connects and says nothing holds nobody up.
    let _silent = UnixStream::connect(&socket).unwrap();
    std::thread::sleep(Duration::from_millis(50));
    assert!(board.run(&["status", "--field", "at"]).status.success());
    runner.end();
}

/// In the state folder, or in the short one where the path would be too long for a socket.
fn find_socket(board: &Board) -> Option<PathBuf> {
    let state = std::fs::read_dir(board.home().join("repos")).ok()?.flatten().next()?.path();
    let name = state.file_name().unwrap().to_string_lossy().into_owned();
    let short = format!("{}.sock", &name[name.len().saturating_sub(8)..]);
    let places = [state.join("control.sock"), socket_directory(None).unwrap().join(short)];
    places.into_iter().find(|path| path.exists())
}
