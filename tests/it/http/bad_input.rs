//! Whoever comes with the wrong things is told so in one sentence, and costs nothing.

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::json;

use super::client::raw;
use super::{ASKS, GOOD, ServedBoard};
use crate::support::board::{Board, MERGE, PATIENCE};

fn asks() -> ServedBoard {
    let served = ServedBoard::new(ASKS, MERGE, |board| board.ticket("t-1", "Ask"));
    served.until("it asks", || served.phase("t-1") == "blocked");
    served
}

#[test]
fn a_change_needs_the_token_json_and_a_page_of_ours() {
    let served = asks();
    let token = format!("Authorization: Bearer {}\r\n", served.token());
    let json = "Content-Type: application/json\r\n";
    let host = &served.address;
    let good = format!("{token}{json}");
    for (headers, status, code) in [
        (json.to_owned(), 401, "unauthorized"),
        (format!("Authorization: Bearer wrong\r\n{json}"), 401, "unauthorized"),
        (format!("Authorization: Basic YTpi\r\n{json}"), 401, "unauthorized"),
        (format!("Cookie: dirigent-token={}\r\n{json}", served.token()), 401, "unauthorized"),
        (token.clone(), 400, "not_json"),
        (format!("{token}Content-Type: application/x-www-form-urlencoded\r\n"), 400, "not_json"),
        (format!("{token}Content-Type: text/plain; a=application/json\r\n"), 400, "not_json"),
        (format!("{good}Origin: http://evil.example\r\n"), 403, "cross_origin"),
        (format!("{good}Origin: null\r\n"), 403, "cross_origin"),
        (format!("{good}Sec-Fetch-Site: cross-site\r\n"), 403, "cross_origin"),
        (format!("{good}Origin: http://{host}.evil.example\r\n"), 403, "cross_origin"),
    ] {
        let answer = served.post_with("/api/v1/pause", &headers, "{}");
        assert_eq!((answer.status, answer.error().as_str()), (status, code), "{headers}: {answer:?}");
    }
    assert!(served.get("/api/v1/state").json()["switches"].as_array().unwrap().is_empty(), "nothing was paused");
    let ours = format!("{good}Origin: http://{host}\r\nSec-Fetch-Site: same-origin\r\n");
    assert_eq!(served.post_with("/api/v1/pause", &ours, "{}").status, 200);
    let cross = served.post_with("/api/v1/refresh", "Origin: http://evil.example\r\n", "");
    assert_eq!((cross.status, cross.error().as_str()), (403, "cross_origin"));
    let unauthorized = served.post_with("/api/v1/pause", json, "{}");
    assert_eq!(unauthorized.header("www-authenticate"), Some("Bearer"));
}

#[test]
fn bodies_that_cannot_be_are_refused() {
    let served = asks();
    let good = format!("Authorization: Bearer {}\r\nContent-Type: application/json\r\n", served.token());
    for body in ["[]", "{", "null", "{\"x\": 1}", "\u{0}"] {
        let answer = served.post_with("/api/v1/t-1/pause", &good, body);
        assert_eq!((answer.status, answer.error().as_str()), (400, "bad_request"), "{body}: {answer:?}");
    }
    let huge = json!({ "text": "x".repeat(100 << 10) }).to_string();
    let answer = served.post_with("/api/v1/t-1/message", &good, &huge);
    assert_eq!((answer.status, answer.error().as_str()), (413, "too_large"));
    // One that does not say how long it is.
    let host = &served.address;
    let mut text = format!("POST /api/v1/t-1/message HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n{good}\r\n").into_bytes();
    for _ in 0..32 {
        text.extend_from_slice(format!("1000\r\n{}\r\n", " ".repeat(0x1000)).as_bytes());
    }
    assert_eq!(raw(host, &text).status, 413);
}

#[test]
fn an_address_that_leads_nowhere_is_said_in_the_one_envelope() {
    let served = asks();
    for (path, status, code) in [
        ("/api/v1/nobody", 404, "issue_not_found"),
        ("/api/v1/t-", 404, "issue_not_found"),
        ("/api/v1/..%2f..%2fetc%2fpasswd", 404, "issue_not_found"),
        ("/api/v1/%2e%2e", 404, "issue_not_found"),
        ("/api/v1/t-1%00", 404, "issue_not_found"),
        ("/api/v1/%ff%fe", 400, "bad_request"),
        ("/api/v1/../../etc/passwd", 404, "not_found"),
        ("/etc/passwd", 404, "not_found"),
        ("/api/v2/state", 404, "not_found"),
    ] {
        let answer = served.get(path);
        assert_eq!((answer.status, answer.error().as_str()), (status, code), "{path}: {answer:?}");
        assert!(!answer.body.contains("root:"), "{path}");
    }
    let wrong = served.post_with("/api/v1/state", "", "");
    assert_eq!((wrong.status, wrong.error().as_str()), (405, "method_not_allowed"));
    assert!(wrong.header("allow").is_some_and(|allow| allow.contains("GET")), "{}", wrong.headers);
    assert_eq!(served.get("/api/v1/refresh").status, 405, "a word of the API is not a ticket's key");
    let long = served.get(&format!("/api/v1/{}", "x".repeat(10_000)));
    assert_eq!(long.error(), "issue_not_found");
    assert!(long.body.len() < 500, "what was asked for is not said back: {}", long.body.len());
}

#[test]
fn a_name_that_is_not_ours_is_refused() {
    let served = asks();
    let host = &served.address;
    for name in ["evil.example", "127.0.0.1.evil.example:80", "localhost:1"] {
        let answer =
            raw(host, format!("GET /api/v1/state HTTP/1.1\r\nHost: {name}\r\nConnection: close\r\n\r\n").as_bytes());
        assert_eq!((answer.status, answer.error().as_str()), (403, "wrong_host"), "{name}");
    }
    let port = host.rsplit(':').next().unwrap();
    let by_name =
        raw(host, format!("GET /healthz HTTP/1.1\r\nHost: localhost:{port}\r\nConnection: close\r\n\r\n").as_bytes());
    assert_eq!(by_name.status, 200);
    let twice = raw(
        host,
        format!("GET /healthz HTTP/1.1\r\nHost: {host}\r\nHost: evil.example\r\nConnection: close\r\n\r\n").as_bytes(),
    );
    assert!((400..500).contains(&twice.status), "{twice:?}");
}

#[test]
fn whoever_asks_for_too_much_is_told_to_wait() {
    let served = asks();
    let headers = format!("Authorization: Bearer {}\r\nContent-Type: application/json\r\n", served.token());
    // Several at once, so that even a busy machine asks faster than is allowed.
    let flood = |path: &str, headers: &str, body: &str, fits: fn(u16) -> bool| {
        std::thread::scope(|scope| {
            let one = || (0..100).map(|_| served.post_with(path, headers, body)).find(|answer| fits(answer.status));
            let all: Vec<_> = (0..8).map(|_| scope.spawn(one)).collect();
            all.into_iter().filter_map(|one| one.join().unwrap()).next()
        })
    };
    let refused = flood("/api/v1/t-1/message", &headers, "{\"text\": \"again\"}", |status| status != 200).unwrap();
    assert_eq!((refused.status, refused.error().as_str()), (429, "too_many_requests"));
    assert!(refused.header("retry-after").unwrap().parse::<u64>().unwrap() >= 1);
    let wrong = "Authorization: Bearer wrong\r\nContent-Type: application/json\r\n";
    assert!(flood("/api/v1/pause", wrong, "{}", |status| status == 429).is_some(), "guessing is slow");
    assert_eq!(served.get("/api/v1/state").status, 200, "looking is not held back by it");
}

#[test]
fn a_connection_that_never_says_what_it_wants_is_given_up() {
    let served = asks();
    let host = &served.address;
    let mut slow = TcpStream::connect(host).unwrap();
    slow.set_read_timeout(Some(PATIENCE)).unwrap();
    slow.write_all(format!("GET /api/v1/state HTTP/1.1\r\nHost: {host}\r\n").as_bytes()).unwrap();
    let mut slow_body = TcpStream::connect(host).unwrap();
    slow_body.set_read_timeout(Some(PATIENCE)).unwrap();
    let head = format!(
        "POST /api/v1/pause HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\nContent-Length: 10\r\n\r\n{{",
        served.token()
    );
    slow_body.write_all(head.as_bytes()).unwrap();
    assert_eq!(served.get("/api/v1/state").status, 200, "others are served meanwhile");
    let mut said = Vec::new();
    let _ = slow.read_to_end(&mut said);
    assert!(!String::from_utf8_lossy(&said).contains(" 200 "), "{}", String::from_utf8_lossy(&said));
    let mut buffer = [0; 4096];
    let read = slow_body.read(&mut buffer).unwrap();
    assert!(
        String::from_utf8_lossy(&buffer[..read]).starts_with("HTTP/1.1 408"),
        "{}",
        String::from_utf8_lossy(&buffer[..read])
    );
    served.runner.end();
}

#[test]
fn what_is_not_http_is_no_reason_to_fall_over() {
    let served = asks();
    for bytes in [&b"\x16\x03\x01\x02\x00\x01\x00"[..], b"\r\n\r\n\r\n", b"GET\r\n\r\n", &[0xff; 70_000]] {
        let mut stream = TcpStream::connect(&served.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let _ = stream.write_all(bytes);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let _ = stream.read_to_end(&mut Vec::new());
    }
    assert_eq!(served.get("/healthz").status, 200);
    served.runner.end();
}

#[test]
fn wider_than_this_machine_needs_a_token_for_looking_too() {
    let board = Board::new(GOOD, &format!("{MERGE}server: {{port: 0, host: 0.0.0.0}}\n"));
    let refused = board.fails(&["run", "--plain"], 3);
    assert!(refused.contains("no token is configured"), "{refused}");
    let more = format!("{MERGE}server: {{port: 0, host: 0.0.0.0, names: [board.example], token: $OWN}}\n");
    let token = "0123456789abcdef0123";
    let served = ServedBoard::with(ASKS, &more, &[("OWN", token)], |board| board.ticket("t-1", "Ask"));
    let refused = served.get("/api/v1/state");
    assert_eq!((refused.status, refused.error().as_str()), (401, "unauthorized"));
    assert_eq!(served.get("/healthz").status, 200, "a balancer has no token");
    assert_eq!(served.get_with("/api/v1/state", &format!("Authorization: Bearer {token}\r\n")).status, 200);
    assert_eq!(served.get_with("/api/v1/state", &format!("Cookie: a=b; dirigent-token={token}\r\n")).status, 200);
    let known = "GET /healthz HTTP/1.1\r\nHost: board.example\r\nConnection: close\r\n\r\n";
    assert_eq!(raw(&served.address, known.as_bytes()).status, 200);
}

#[test]
fn a_process_of_a_run_is_refused_even_with_the_token() {
    let agent = "curl -s -o \"$HOME/seen\" -w '%{http_code}' http://$(cat \"$HOME/address\")/api/v1/state > \"$HOME/looked\" || :
curl -s -X POST -H \"Authorization: Bearer $(cat \"$HOME/token\")\" -H 'Content-Type: application/json' -d '{}' \\
  -w '%{http_code}' -o \"$HOME/seen2\" http://$(cat \"$HOME/address\")/api/v1/pause > \"$HOME/paused\" || :
cat \"$HOME\"/home/repos/*/api-token > \"$HOME/read\" 2>&1
tk blocked 'tried'\n";
    let served = ServedBoard::new(agent, MERGE, |_| {});
    let home = served.board.scratch.dir.path().to_owned();
    std::fs::write(home.join("address"), &served.address).unwrap();
    std::fs::write(home.join("token"), served.token()).unwrap();
    served.board.ticket("t-1", "Attack");
    served.until("it tried", || served.phase("t-1") == "blocked");
    let code = |name: &str| std::fs::read_to_string(home.join(name)).unwrap_or_default();
    assert_eq!([code("looked"), code("paused")], ["403", "403"], "{}", code("seen"));
    assert!(code("seen2").contains("inside a run"), "{}", code("seen2"));
    // Where runs have namespaces, they cannot read the token either.
    let doctor = served.board.run(&["doctor"]);
    let doctor = String::from_utf8_lossy(&doctor.stdout).into_owned();
    let has_namespaces = !doctor.contains("process group");
    assert_eq!(code("read").contains(&served.token()), !has_namespaces, "{doctor}");
    assert!(served.get("/api/v1/state").json()["switches"].as_array().unwrap().is_empty());
    served.runner.end();
}
