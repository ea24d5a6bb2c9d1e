//! How many events of an agent one session absorbs: pipe, lines, parse, accounting and transcript, beside `wc -l` on the same bytes.
//!
//! `cargo bench --bench agents`. Prints figures; judges nothing.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::BTreeMap;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use dirigent::agent::claude::Claude;
use dirigent::agent::codex::Codex;
use dirigent::agent::exec::Exec;
use dirigent::agent::pi::Pi;
use dirigent::agent::session::{HandshakeLimits, Heard, Session};
use dirigent::agent::transcript::{self, Transcript};
use dirigent::agent::{Opening, Protocol};
use dirigent::config::exec::ExecEvents;
use dirigent::domain::ids::RunId;
use dirigent::engine::permit::by_hand;
use dirigent::launcher::{LaunchOrder, Launcher, LocalLauncher};

const EVENTS: usize = 1_000_000;

type Case = (&'static str, &'static str, fn() -> Box<dyn Protocol>);

const CASES: [Case; 4] = [
    (
        "codex",
        r#"{"method":"item/agentMessage/delta","params":{"threadId":"t","turnId":"u","itemId":"msg_1","delta":"Hello"}}"#,
        || Box::new(Codex::new(Default::default())),
    ),
    (
        "claude",
        r#"{"type":"assistant","message":{"id":"m","role":"assistant","content":[{"type":"text","text":"Hello"}]},"session_id":"s"}"#,
        || Box::new(Claude::default()),
    ),
    (
        "pi",
        r#"{"type":"message_update","assistantMessageEvent":{"type":"text_delta","contentIndex":0,"delta":"Hello"}}"#,
        || Box::new(Pi::default()),
    ),
    ("exec", r#"{"type":"usage","input":10,"cached_input":5,"output":2}"#, || Box::new(Exec::new(ExecEvents::Jsonl))),
];

fn main() {
    // `cargo test --benches` only wants to know that it builds.
    if std::env::args().any(|arg| arg == "--test") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    println!("{EVENTS} events each, on one core");
    for (name, line, protocol) in CASES {
        let file = dir.path().join(name);
        let mut out = BufWriter::new(std::fs::File::create(&file).unwrap());
        for _ in 0..EVENTS {
            writeln!(out, "{line}").unwrap();
        }
        drop(out);
        let counted = wc(&file);
        let ours = absorb(dir.path(), &file, protocol());
        let rate = |time: Duration| EVENTS as f64 / time.as_secs_f64();
        println!(
            "{name:<8}{:>12.0} events/s   wc -l {:>12.0} lines/s   {:.0} MB/s",
            rate(ours),
            rate(counted),
            std::fs::metadata(&file).unwrap().len() as f64 / 1e6 / ours.as_secs_f64()
        );
    }
}

fn wc(file: &Path) -> Duration {
    let began = Instant::now();
    let output = Command::new("sh").arg("-c").arg(format!("cat '{}' | wc -l", file.display())).output().unwrap();
    let took = began.elapsed();
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), EVENTS.to_string());
    took
}

fn absorb(dir: &Path, file: &Path, protocol: Box<dyn Protocol>) -> Duration {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let launcher = LocalLauncher::start(&dir.join("scratch")).unwrap();
        let order = LaunchOrder {
            run: RunId::new(ulid::Ulid::generate().to_string()),
            argv: vec!["/bin/cat".into(), file.display().to_string()],
            cwd: dir.to_owned(),
            env: BTreeMap::new(),
        };
        let opening =
            Opening { cwd: dir.to_owned(), resume: None, model: None, thinking_level: None, tools: Vec::new() };
        let limits = HandshakeLimits { start: Duration::from_secs(600), response: Duration::ZERO };
        let began = Instant::now();
        let transcript = Transcript::create(&dir.join("transcript.log"), transcript::DEFAULT_CAP).unwrap();
        let child = launcher.launch(&by_hand(), order).await.unwrap();
        let mut session = Session::open(child, protocol, transcript, &opening, limits);
        while !matches!(session.next().await, Heard::Ended(_)) {}
        session.finish();
        began.elapsed()
    })
}
