//! A client that says exactly what it is told to, and a board that is served.

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::Value;

use super::contract;
use crate::support::board::{Board, PATIENCE, Runner};

#[derive(Debug, Clone)]
pub struct Answer {
    pub status: u16,
    pub headers: String,
    pub body: String,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        let lines = self.headers.lines().filter_map(|line| line.split_once(':'));
        lines.clone().find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    }

    /// The code of the one error envelope.
    pub fn error(&self) -> String {
        let answer = self.json();
        let error = answer["error"].as_object().unwrap_or_else(|| panic!("no envelope: {self:?}"));
        assert_eq!(answer.as_object().unwrap().len(), 1, "{answer}");
        assert!(error["message"].as_str().is_some_and(|message| !message.is_empty()), "{answer}");
        assert_eq!(error.len(), 2, "{answer}");
        error["code"].as_str().unwrap().to_owned()
    }
}

/// Says it, and reads until the other end has nothing more to say.
pub fn raw(address: &str, text: &[u8]) -> Answer {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    // A body that is refused early is not read to its end.
    let _ = stream.write_all(text);
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes);
    parse(&bytes)
}

fn parse(bytes: &[u8]) -> Answer {
    let split = bytes.windows(4).position(|four| four == b"\r\n\r\n");
    let Some(split) = split else { panic!("not an answer: {:?}", String::from_utf8_lossy(bytes)) };
    let headers = String::from_utf8_lossy(&bytes[..split]).into_owned();
    let status = headers.split(' ').nth(1).unwrap().parse().unwrap();
    let chunked = headers.to_lowercase().contains("transfer-encoding: chunked");
    let body = if chunked { unchunked(&bytes[split + 4..]) } else { bytes[split + 4..].to_vec() };
    Answer { status, headers, body: String::from_utf8_lossy(&body).into_owned() }
}

fn unchunked(mut rest: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(end) = rest.windows(2).position(|two| two == b"\r\n") {
        let size = usize::from_str_radix(std::str::from_utf8(&rest[..end]).unwrap().trim(), 16).unwrap();
        if size == 0 {
            break;
        }
        body.extend_from_slice(&rest[end + 2..end + 2 + size]);
        rest = &rest[end + 4 + size..];
    }
    body
}

/// A board whose runner serves it.
pub struct ServedBoard {
    pub board: Board,
    pub runner: Runner,
    pub address: String,
}

pub const SERVED: &str = "server: {port: 0}\n";

impl ServedBoard {
    /// `more` is further front matter; `ready` makes the tickets.
    pub fn new(agent: &str, more: &str, ready: impl FnOnce(&Board)) -> Self {
        Self::with(agent, &format!("{SERVED}{more}"), &[], ready)
    }

    pub fn with(agent: &str, more: &str, environment: &[(&str, &str)], ready: impl FnOnce(&Board)) -> Self {
        let board = Board::new(agent, more);
        ready(&board);
        let runner = board.start_with(environment);
        Self::of(board, runner)
    }

    pub fn of(board: Board, runner: Runner) -> Self {
        let mut url = String::new();
        board.until("it is served", || {
            let said = board.run(&["status", "--field", "served_at"]);
            url = String::from_utf8_lossy(&said.stdout).trim().to_owned();
            url.starts_with("http://")
        });
        let address = url.trim_start_matches("http://").to_owned();
        Self { board, runner, address }
    }

    pub fn token(&self) -> String {
        self.board.ok(&["token"]).trim().to_owned()
    }

    pub fn get(&self, path: &str) -> Answer {
        self.get_with(path, "")
    }

    /// `headers` are whole lines, each with its end.
    pub fn get_with(&self, path: &str, headers: &str) -> Answer {
        let host = &self.address;
        let text = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{headers}\r\n");
        let answer = raw(host, text.as_bytes());
        contract::check("get", path, &answer);
        answer
    }

    /// With the token, as a person's client does.
    pub fn post(&self, path: &str, body: &Value) -> Answer {
        let token = self.token();
        self.post_with(
            path,
            &format!("Authorization: Bearer {token}\r\nContent-Type: application/json\r\n"),
            &body.to_string(),
        )
    }

    pub fn post_with(&self, path: &str, headers: &str, body: &str) -> Answer {
        let (host, length) = (&self.address, body.len());
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Length: {length}\r\n{headers}\r\n"
        );
        let answer = raw(host, format!("{head}{body}").as_bytes());
        contract::check("post", path, &answer);
        answer
    }

    pub fn until(&self, what: &str, holds: impl FnMut() -> bool) {
        self.board.until(what, holds);
    }

    /// One ticket's phase as the API tells it.
    pub fn phase(&self, key: &str) -> String {
        let answer = self.get(&format!("/api/v1/{key}"));
        if answer.status == 200 { answer.json()["ticket"]["phase"].as_str().unwrap().to_owned() } else { String::new() }
    }
}

/// Reads server-sent events off a connection.
pub struct Events {
    stream: TcpStream,
    text: String,
    bytes: Vec<u8>,
    in_body: bool,
}

#[derive(Debug, Clone)]
pub struct Event {
    pub id: String,
    pub kind: String,
    pub data: Value,
}

impl Events {
    pub fn open(address: &str, headers: &str) -> Self {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
            .write_all(format!("GET /api/v1/events HTTP/1.1\r\nHost: {address}\r\n{headers}\r\n").as_bytes())
            .unwrap();
        Self { stream, text: String::new(), bytes: Vec::new(), in_body: false }
    }

    /// The next one; `None` when the other end has closed.
    pub fn read(&mut self) -> Option<Event> {
        loop {
            while let Some(end) = self.text.find("\n\n") {
                let block: String = self.text.drain(..end + 2).collect();
                let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned);
                let Some(data) = field("data: ") else { continue };
                return Some(Event {
                    id: field("id: ").unwrap_or_default(),
                    kind: field("event: ").unwrap_or_default(),
                    data: serde_json::from_str(&data).unwrap(),
                });
            }
            let mut buffer = [0; 65536];
            let read = self.stream.read(&mut buffer).unwrap_or(0);
            if read == 0 {
                return None;
            }
            self.bytes.extend_from_slice(&buffer[..read]);
            self.take_chunks();
        }
    }

    fn take_chunks(&mut self) {
        if !self.in_body {
            let Some(end) = self.bytes.windows(4).position(|four| four == b"\r\n\r\n") else { return };
            let head: Vec<u8> = self.bytes.drain(..end + 4).collect();
            let head = String::from_utf8_lossy(&head);
            assert!(head.starts_with("HTTP/1.1 200"), "{head}");
            self.in_body = true;
        }
        while let Some(end) = self.bytes.windows(2).position(|two| two == b"\r\n") {
            let size = usize::from_str_radix(std::str::from_utf8(&self.bytes[..end]).unwrap().trim(), 16).unwrap();
            if self.bytes.len() < end + 2 + size + 2 {
                return;
            }
            self.text.push_str(std::str::from_utf8(&self.bytes[end + 2..end + 2 + size]).unwrap());
            self.bytes.drain(..end + 4 + size);
        }
    }

    /// The next one that is so.
    pub fn wait(&mut self, what: &str, mut is_it: impl FnMut(&Event) -> bool) -> Event {
        let began = std::time::Instant::now();
        while began.elapsed() < PATIENCE {
            match self.read() {
                Some(event) if is_it(&event) => return event,
                Some(_) => {}
                None => panic!("the events ended before: {what}"),
            }
        }
        panic!("never came: {what}")
    }
}
