//! What the built program costs: memory, processor time of a quiet tick, many tickets at once, a restart after `kill -9`.
//!
//! `cargo bench --bench program [-- NAME...]`. Prints figures; judges nothing. Ticks are counted in processor time, which does
//! not depend on who else uses the machine.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::process::Command;
use std::time::{Duration, Instant};

use support::{Board, Runner, cpu_ms, git, rss_kb, wait};

const WAITS: &str = "rollout: {mode: observe}\nworker: {runtime: exec}\nexec: {command: 'true'}";
const TICK: Duration = Duration::from_millis(500);

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with("--bench")).collect();
    // `cargo test --benches` only wants to know that it builds.
    if wanted.iter().any(|arg| arg == "--test") {
        return;
    }
    let all: [(&str, fn()); 5] = [
        ("waiting", waiting_tickets),
        ("workers", live_workers),
        ("at-once", fifty_at_once),
        ("pull-requests", waiting_pull_requests),
        ("restart", restart),
    ];
    for (name, bench) in all {
        if wanted.is_empty() || wanted.iter().any(|one| one == name) {
            bench();
        }
    }
}

fn ticking(settings: &str) -> String {
    format!("polling: {{interval_ms: {}}}\n{settings}", TICK.as_millis())
}

/// Processor time per tick, over so many of them.
fn per_tick(runner: &Runner, ticks: u32) -> f64 {
    let before = cpu_ms(runner.0.id());
    std::thread::sleep(TICK * ticks);
    (cpu_ms(runner.0.id()) - before) / f64::from(ticks)
}

/// Nothing on the board, and 10,000 tickets that wait.
fn waiting_tickets() {
    const TICKETS: usize = 10_000;
    let board = Board::with("", &ticking(WAITS), 200);
    let runner = board.run();
    std::thread::sleep(Duration::from_secs(12));
    let idle = rss_kb(runner.0.id());
    let empty = per_tick(&runner, 40);
    for n in 0..TICKETS {
        board.ticket(&format!("t-{n}"));
    }
    wait("all tickets are known", || board.in_phase("queued") == TICKETS);
    // What reading them took is given back after a while, threads included.
    std::thread::sleep(Duration::from_secs(30));
    let full = rss_kb(runner.0.id());
    let quiet = per_tick(&runner, 60);
    println!(
        "idle: {:.1} MB; a tick {empty:.2} ms of processor time. {TICKETS} waiting tickets: {:.1} MB, {:.2} KB each; a tick {quiet:.2} ms",
        idle / 1024.0,
        full / 1024.0,
        (full - idle) / TICKETS as f64
    );
    drop(runner);
    let runner = board.run();
    wait("all tickets are known", || board.in_phase("queued") == TICKETS);
    std::thread::sleep(Duration::from_secs(30));
    let again = rss_kb(runner.0.id());
    println!("after a restart with them: {:.1} MB, {:.2} KB each", again / 1024.0, (again - idle) / TICKETS as f64);
}

fn live_workers() {
    for count in [50, 200] {
        let board = Board::new("echo here\ntk comment 'I am here' >/dev/null\nexec sleep 600\n", count);
        let runner = board.run();
        for n in 0..count {
            board.ticket(&format!("m-{n}"));
        }
        let is_here = |n: &usize| {
            std::fs::read_to_string(board.repo().join(format!(".tickets/m-{n}.md")))
                .is_ok_and(|text| text.contains("I am here"))
        };
        wait("all workers are there", || (0..count).filter(is_here).count() == count);
        let busy = rss_kb(runner.0.id());
        std::thread::sleep(Duration::from_secs(15));
        println!(
            "{count} live exec workers: {:.1} MB, right after the last start {:.1} MB",
            rss_kb(runner.0.id()) / 1024.0,
            busy / 1024.0
        );
    }
}

/// From 50 ticket files to the last of their agents, beside 50 worktrees made two at a time and 50 shells by hand.
fn fifty_at_once() {
    const TICKETS: usize = 50;
    let stamps = tempfile::tempdir().unwrap();
    let agent = format!("date +%s%N > {}/$DIRIGENT_TICKET_KEY\nexec sleep 600\n", stamps.path().display());
    let board = Board::new(&agent, TICKETS);
    let runner = board.run();
    let (began, by_the_wall) = (Instant::now(), cpu_ms(runner.0.id()));
    for n in 0..TICKETS {
        board.ticket(&format!("b-{n}"));
    }
    wait("all agents run", || std::fs::read_dir(stamps.path()).unwrap().count() == TICKETS);
    let (ours, cpu) = (began.elapsed(), cpu_ms(runner.0.id()) - by_the_wall);
    drop(runner);
    let began = Instant::now();
    std::thread::scope(|scope| {
        for half in 0..2 {
            let board = &board;
            scope.spawn(move || {
                for n in (half..TICKETS).step_by(2) {
                    let path = board.dir.path().join(format!("by-hand-{n}"));
                    let branch = format!("by-hand-{n}");
                    git(&board.repo(), &["worktree", "add", "-q", "-b", &branch, path.to_str().unwrap(), "main"]);
                }
            });
        }
    });
    for _ in 0..TICKETS {
        assert!(Command::new("sh").args(["-c", "true"]).status().unwrap().success());
    }
    let by_hand = began.elapsed();
    println!(
        "{TICKETS} tickets at once to the last agent: {:.0} ms ({cpu:.0} ms of the runner's processor time); by hand: {:.0} ms; ratio {:.2}",
        ours.as_secs_f64() * 1e3,
        by_hand.as_secs_f64() * 1e3,
        ours.as_secs_f64() / by_hand.as_secs_f64()
    );
}

/// 16 pull requests wait for a person in a repository of 20,000 files.
fn waiting_pull_requests() {
    const REQUESTS: usize = 16;
    let agent = "echo done > $DIRIGENT_TICKET_KEY.txt\ngit add -A\ngit commit -qm done\n";
    let settings = ticking(
        "worker: {runtime: exec}\nexec: {command: sh ./agent.sh}\nrollout: {mode: merge}\nmerge: {mode: auto, require_human_approval: true, no_checks: pass, checks_grace_ms: 0}",
    );
    let board = Board::with(agent, &settings, 20_000);
    let runner = board.run();
    for n in 0..REQUESTS {
        board.ticket(&format!("p-{n}"));
    }
    wait("all wait for a person", || board.in_phase("waiting_for_human") == REQUESTS);
    std::thread::sleep(Duration::from_secs(5));
    println!(
        "{REQUESTS} waiting pull requests, 20,000 files: a tick {:.2} ms of processor time",
        per_tick(&runner, 60)
    );
}

/// Six agents with conversations, the runner killed, and started again.
fn restart() {
    const AGENTS: usize = 6;
    let stamps = tempfile::tempdir().unwrap();
    // A client of the Agent Client Protocol that can take a conversation up again.
    let agent = format!(
        r#"id_of() {{ printf '%s' "$1" | sed -n 's/.*"id":\([0-9][0-9]*\).*/\1/p'; }}
answer() {{ printf '{{"jsonrpc":"2.0","id":%s,"result":%s}}\n' "$1" "$2"; }}
while read -r line; do
    id=$(id_of "$line")
    case "$line" in
    *'"initialize"'*) answer "$id" '{{"protocolVersion":1,"agentCapabilities":{{"loadSession":true}}}}' ;;
    *'"session/new"'*) answer "$id" "{{\"sessionId\":\"s-$DIRIGENT_TICKET_KEY\"}}" ;;
    *'"session/load"'*) loaded=yes; answer "$id" '{{}}' ;;
    *'"session/prompt"'*) echo now >> "{stamps}/$DIRIGENT_TICKET_KEY.${{loaded:-new}}" ;;
    esac
done
"#,
        stamps = stamps.path().display()
    );
    let settings = format!(
        "worker: {{runtime: acp}}\nacp: {{command: sh ./agent.sh}}\nagent: {{max_concurrent_agents: {AGENTS}}}\nrollout: {{mode: mutate}}"
    );
    let board = Board::with(&agent, &settings, 200);
    let count = |ending: &str| {
        let names = std::fs::read_dir(stamps.path()).unwrap().map(|entry| entry.unwrap().file_name());
        names.filter(|name| name.to_string_lossy().ends_with(ending)).count()
    };
    let mut runner = board.run();
    for n in 0..AGENTS {
        board.ticket(&format!("r-{n}"));
    }
    wait("all agents work", || count(".new") == AGENTS);
    // Their conversations are written down.
    std::thread::sleep(Duration::from_secs(3));
    let mut took = Vec::new();
    for _ in 0..5 {
        runner.0.kill().unwrap();
        runner.0.wait().unwrap();
        for name in std::fs::read_dir(stamps.path()).unwrap() {
            std::fs::remove_file(name.unwrap().path()).unwrap();
        }
        let began = Instant::now();
        runner = Runner(board.dirigent(&["run", "--plain"]).spawn().unwrap());
        wait("all agents work again", || count(".yes") + count(".new") == AGENTS);
        took.push(began.elapsed().as_secs_f64());
        assert_eq!(count(".new"), 0, "each goes on with its conversation");
        std::thread::sleep(Duration::from_secs(3));
    }
    println!("restart after kill -9 to {AGENTS} agents with their conversations: {:.2} s", support::median(took));
}
