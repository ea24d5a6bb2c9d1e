//! How many events of an agent one session absorbs: pipe, lines, parse, accounting and transcript, beside `wc -l` on the same bytes.
//!
//! `cargo bench --bench agents`. Prints figures; judges nothing.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::cell::Cell;
use std::collections::BTreeMap;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::Command;
use std::rc::Rc;
use std::time::{Duration, Instant};

use dirigent::agent::acp::Acp;
use dirigent::agent::claude::Claude;
use dirigent::agent::codex::Codex;
use dirigent::agent::exec::Exec;
use dirigent::agent::pi::Pi;
use dirigent::agent::session::{HandshakeLimits, Session, SessionEvent};
use dirigent::agent::transcript::{self, Transcript};
use dirigent::agent::{Opening, Protocol};
use dirigent::config::exec::ExecEvents;
use dirigent::domain::ids::RunId;
use dirigent::engine::permit::by_hand;
use dirigent::launcher::{LaunchOrder, Launcher, LocalLauncher};

const EVENTS: usize = 1_000_000;
const SLOW_SESSIONS: usize = 200;
const SLOW_FOR: Duration = Duration::from_secs(40);

type Case = (&'static str, &'static str, fn() -> Box<dyn Protocol>);

const CASES: [Case; 5] = [
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
    (
        "acp",
        r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"Hello"}}}}"#,
        || Box::new(Acp::default()),
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
    println!("peak memory of this process, after {} events: {} MB", EVENTS * CASES.len(), peak_mb());
    stream_slowly(dir.path());
}

/// Sessions that stream as slowly as a model writes: a line every 200 ms each.
fn stream_slowly(dir: &Path) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let line = CASES[0].1;
    let script =
        format!("i=0; while [ $i -lt {} ]; do echo '{line}'; i=$((i+1)); sleep 0.2; done", SLOW_FOR.as_millis() / 200);
    let (spent, took) = runtime.block_on(async {
        let launcher = Rc::new(LocalLauncher::start(&dir.join("scratch")).unwrap());
        let sessions = tokio::task::LocalSet::new();
        let ready = Rc::new(Cell::new(0));
        for number in 0..SLOW_SESSIONS {
            let (launcher, ready, script, dir) =
                (Rc::clone(&launcher), Rc::clone(&ready), script.clone(), dir.to_owned());
            sessions.spawn_local(async move {
                let argv = vec!["/bin/sh".into(), "-c".into(), script];
                let transcript = dir.join(format!("slow-{number}.log"));
                let mut session =
                    open(&launcher, &dir, argv, &transcript, Box::new(Codex::new(Default::default()))).await;
                ready.set(ready.get() + 1);
                while !matches!(session.next().await, SessionEvent::Ended(_)) {}
                session.finish();
            });
        }
        sessions
            .run_until(async {
                // Starting two hundred shells is not what is measured here.
                while ready.get() < SLOW_SESSIONS {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
                let (began, before) = (Instant::now(), cpu_time());
                tokio::time::sleep(SLOW_FOR / 2).await;
                (cpu_time() - before, began.elapsed())
            })
            .await
    });
    let share = 100.0 * spent.as_secs_f64() / took.as_secs_f64();
    println!("{SLOW_SESSIONS} sessions with 5 events/s each: {share:.1} % of one core");
}

/// What this process, without its children, has spent.
fn cpu_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_ascii_whitespace().collect();
    let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
    Duration::from_millis(ticks * 10)
}

fn peak_mb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_ascii_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024
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
        let argv = vec!["/bin/cat".into(), file.display().to_string()];
        let began = Instant::now();
        let mut session = open(&launcher, dir, argv, &dir.join("transcript.log"), protocol).await;
        while !matches!(session.next().await, SessionEvent::Ended(_)) {}
        session.finish();
        began.elapsed()
    })
}

async fn open(
    launcher: &LocalLauncher,
    dir: &Path,
    argv: Vec<String>,
    transcript: &Path,
    protocol: Box<dyn Protocol>,
) -> Session {
    let run = RunId::new(ulid::Ulid::generate().to_string());
    let env = BTreeMap::from([("PATH".to_owned(), "/usr/bin:/bin".to_owned())]);
    let order = LaunchOrder { run, argv, cwd: dir.to_owned(), env, writable: Vec::new() };
    let opening = Opening { cwd: dir.to_owned(), ..Opening::default() };
    let limits = HandshakeLimits { start: Duration::from_secs(600), response: Duration::ZERO };
    let transcript = Transcript::open(transcript, transcript::DEFAULT_CAP).unwrap();
    let child = launcher.launch(&by_hand(), order).await.unwrap();
    Session::open(child, protocol, transcript, &opening, limits)
}
