//! Agents that do not want to end: none of their processes, worktrees or file descriptors stays, however often they are
//! stopped, with namespaces and without. `DIRIGENT_KILL_CYCLES` raises the number of rounds.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use dirigent::domain::ids::RunId;
use dirigent::engine::permit::EffectKind;
use dirigent::launcher::{Containment, LaunchOrder, Launcher, LocalLauncher};
use dirigent::workspace::hooks::{Hook, run_hook};
use nix::sys::signal::Signal;

use super::support::allowed;
use super::support::board::{Board, MUTATE, PATIENCE};

/// `REST` is a command that sleeps for ever and can be told apart from everybody else's; `UP` says that all is in place.
const ATTACKS: [(&str, &str); 9] = [
    ("forks twice", "(sh -c 'REST & REST &' &); UP; REST"),
    (
        "has a session of its own",
        "(setsid sh -c 'trap \"\" TERM HUP INT; while :; do REST; done' >/dev/null 2>&1 &); UP; REST",
    ),
    ("ignores TERM", "trap '' TERM HUP INT; UP; while :; do REST; done"),
    ("fills the pipe", "UP; (yes 'REST' >&2 &); yes 'REST'; REST"),
    ("closes its output and lives on", "exec >/dev/null 2>&1 </dev/null; exec 1>&- 2>&-; UP; while :; do REST; done"),
    ("has two hundred children", "i=0; while [ $i -lt 200 ]; do REST & i=$((i+1)); done; UP; wait"),
    ("stops itself", "REST & UP; kill -STOP $$; REST"),
    ("breeds while it is ended", "UP; trap 'REST & REST &' TERM; while :; do (REST &); sleep 0.05; done"),
    ("becomes a daemon and ends", "(setsid sh -c 'REST & UP; REST' >/dev/null 2>&1 &); UP; exit 0"),
];

/// What only a namespace holds: no parent, no session, no variable leads back to the run.
const ESCAPE: &str =
    "(setsid env -i sh -c 'REST & UP; REST' >/dev/null 2>&1 &); while [ ! -e FLAG ]; do sleep 0.02; done; REST";

fn cycles(usual: usize) -> usize {
    std::env::var("DIRIGENT_KILL_CYCLES").ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// A number of seconds that only this test sleeps.
fn fresh_rest() -> String {
    let unique = u64::try_from(ulid::Ulid::generate().0 & 0xffff_ffff).unwrap();
    format!("sleep 77777.{unique:010}")
}

fn script(attack: &str, rest: &str, flag: &str) -> String {
    attack.replace("REST", rest).replace("UP", &format!(": > {flag}")).replace("FLAG", flag)
}

/// The living processes with these words in their command line.
fn sleepers(rest: &str) -> Vec<i32> {
    let wanted = rest.replace(' ', "\0");
    std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| entry.file_name().to_string_lossy().parse::<i32>().ok())
        .filter(|pid| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).into_owned();
            line.contains(&wanted) || line.contains(rest)
        })
        .filter(|pid| *pid != std::process::id() as i32)
        .collect()
}

fn poll(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < PATIENCE, "still waiting: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn launchers(scratch: &Path) -> Vec<LocalLauncher> {
    [Containment::Bubblewrap, Containment::PidNamespace, Containment::UserPidNamespace, Containment::ProcessGroup]
        .into_iter()
        .filter_map(|containment| LocalLauncher::start_with(scratch, containment, None).ok())
        .collect()
}

/// Starts it, waits until it is up, ends it gently and then hard, and wants nothing left.
async fn attack(launcher: &LocalLauncher, dir: &Path, name: &str, attack: &str) {
    let (rest, run) = (fresh_rest(), ulid::Ulid::generate().to_string());
    let flag = dir.join(format!("up-{run}"));
    let order = LaunchOrder {
        run: RunId::new(run),
        argv: vec!["sh".into(), "-c".into(), script(attack, &rest, &flag.display().to_string())],
        cwd: dir.into(),
        env: BTreeMap::from([("PATH".to_owned(), std::env::var("PATH").unwrap())]),
        writable: Vec::new(),
    };
    let mut child = launcher.launch(&allowed(EffectKind::StartRun), order).await.unwrap();
    let what = format!("{name} under {}", launcher.how());
    poll(&format!("{what} is up"), || flag.exists());
    child.terminate();
    // Nobody reads its pipes, as when the runner is busy elsewhere.
    let gentle = tokio::time::timeout(Duration::from_millis(50), child.wait()).await;
    if gentle.is_err() {
        child.kill();
        tokio::time::timeout(PATIENCE, child.wait()).await.unwrap_or_else(|_| panic!("{what} does not end")).unwrap();
    }
    let left = sleepers(&rest);
    assert!(left.is_empty(), "{what} leaves {left:?}");
    std::fs::remove_file(flag).unwrap();
}

#[tokio::test]
async fn no_attack_leaves_a_process_under_any_containment() {
    let dir = tempfile::tempdir().unwrap();
    for launcher in launchers(dir.path()) {
        for (name, script) in ATTACKS {
            attack(&launcher, dir.path(), name, script).await;
        }
        if launcher.containment().is_namespace() {
            attack(&launcher, dir.path(), "hides every trace", ESCAPE).await;
        }
    }
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "status files stay");
}

/// Only root may count those of a runner, which is closed to others.
fn descriptors(pid: u32) -> Option<usize> {
    Some(std::fs::read_dir(format!("/proc/{pid}/fd")).ok()?.count())
}

/// An agent that attacks in another way at every attempt.
fn attacker(rest: &str) -> String {
    let flag = "\"$HOME/up-$DIRIGENT_ATTEMPT\"";
    let mut text = "echo unsaved > \"$DIRIGENT_TICKET_KEY.txt\"\ncase $((DIRIGENT_ATTEMPT % 8)) in\n".to_owned();
    for (number, (_, attack)) in ATTACKS.iter().take(8).enumerate() {
        // The flag's name is quoted for the outer shell; none of these says UP inside of quotes.
        text.push_str(&format!("{number}) {} ;;\n", script(attack, rest, flag)));
    }
    text.push_str("esac\nwhile :; do sleep 1; done\n");
    text
}

fn resisting(rest: &str) -> Board {
    let board = Board::new(&attacker(rest), MUTATE);
    board.ticket("t-1", "Resist");
    board
}

fn many_stops(board: &Board, rest: &str, rounds: usize) {
    let runner = board.start();
    let mut after_warm_up = None;
    for round in 1..=rounds {
        let up = board.scratch.dir.path().join(format!("up-{round}"));
        board.until(&format!("attempt {round} is up"), || up.exists());
        board.ok(&["stop", "t-1"]);
        board.until(&format!("attempt {round} is over"), || board.phase("t-1") == "blocked");
        let left = sleepers(rest);
        assert!(left.is_empty(), "attempt {round} leaves {left:?}");
        assert!(board.worktrees().is_empty(), "attempt {round} leaves {:?}", board.worktrees());
        let open = descriptors(runner.child.id());
        assert!(open.is_some() || !nix::unistd::geteuid().is_root());
        if round == rounds.min(8) {
            after_warm_up = open;
        }
        if let (Some(first), Some(open)) = (after_warm_up, open) {
            assert!(open <= first + 4, "attempt {round}: {open} descriptors are open, {first} were");
        }
        board.ok(&["retry", "t-1"]);
    }
    runner.end();
    nothing_is_left(board, rest);
    let salvaged = board.scratch.git(["for-each-ref", "refs/dirigent/salvage"]);
    assert!(salvaged.lines().count() >= rounds, "work was lost: {} saved of {rounds}", salvaged.lines().count());
}

fn nothing_is_left(board: &Board, rest: &str) {
    assert!(sleepers(rest).is_empty(), "{:?}", sleepers(rest));
    assert!(board.worktrees().is_empty(), "{:?}", board.worktrees());
    let worktrees = board.scratch.git(["worktree", "list", "--porcelain"]);
    assert_eq!(worktrees.matches("worktree ").count(), 1, "{worktrees}");
}

#[test]
fn many_stops_leave_no_process_no_worktree_and_no_descriptor() {
    let rest = fresh_rest();
    many_stops(&resisting(&rest), &rest, cycles(30));
}

#[test]
fn many_stops_without_namespaces_leave_nothing_either() {
    let rest = fresh_rest();
    let board = resisting(&rest).without_namespaces();
    assert!(board.ok(&["doctor"]).contains(Containment::ProcessGroup.describe()));
    many_stops(&board, &rest, cycles(9));
}

/// `at_once` says that the processes of a killed runner need no next start to end.
fn many_kills(board: &Board, rest: &str, rounds: usize, at_once: bool) {
    for round in 1..=rounds {
        let runner = board.start();
        let up = || {
            let up = |attempt: usize| board.scratch.dir.path().join(format!("up-{attempt}")).exists();
            let is_up = (1..=4 * round).filter(|attempt| up(*attempt)).count() >= round;
            if !is_up && ["queued", "blocked"].contains(&board.phase("t-1").as_str()) {
                // Nobody waits for the pause between two attempts, which grows with every kill.
                board.run(&["retry", "t-1"]);
            }
            is_up
        };
        board.until(&format!("round {round} is up"), up);
        runner.signal(Signal::SIGKILL);
        drop(runner);
        if at_once {
            poll("the namespace is empty", || sleepers(rest).is_empty());
        }
    }
    std::fs::create_dir_all(board.repo().join(".dirigent")).unwrap();
    std::fs::write(board.repo().join(".dirigent/pause"), "").unwrap();
    board.ok(&["run", "--once"]);
    nothing_is_left(board, rest);
    let salvaged = board.scratch.git(["for-each-ref", "refs/dirigent/salvage"]);
    assert!(salvaged.lines().count() >= rounds, "work was lost: {} saved of {rounds}", salvaged.lines().count());
}

// Starting a runner is dear; a tenth of the rounds shows the same.

#[test]
fn killing_the_runner_again_and_again_leaves_nothing_behind() {
    let rest = fresh_rest();
    let dir = tempfile::tempdir().unwrap();
    let at_once = LocalLauncher::start(dir.path()).unwrap().containment().is_namespace();
    many_kills(&resisting(&rest), &rest, cycles(30).div_ceil(10), at_once);
}

#[test]
fn killing_the_runner_without_namespaces_leaves_nothing_after_the_next_start() {
    let rest = fresh_rest();
    many_kills(&resisting(&rest).without_namespaces(), &rest, cycles(20).div_ceil(10), false);
}

#[test]
fn hooks_and_gates_end_with_a_killed_runner() {
    let dir = tempfile::tempdir().unwrap();
    if !LocalLauncher::start(dir.path()).unwrap().containment().is_namespace() {
        println!("skipped: without a namespace the next start sweeps");
        return;
    }
    // A child of its own, one that has left for a session of its own, and the hook itself, which does not end.
    let attack =
        |flag: &str, rest: &str| format!("(setsid {rest} >/dev/null 2>&1 &); {rest} & echo up > \"{flag}\"; {rest}");
    for place in ["hook", "gate"] {
        let rest = fresh_rest();
        let flag = dir.path().join(format!("up-{place}"));
        let script = attack(&flag.display().to_string(), &rest);
        let more = match place {
            "hook" => format!("{MUTATE}hooks:\n  before_run: |\n    {script}\n"),
            _ => format!("{MUTATE}gates:\n  task:\n    - run: |\n        {script}\n"),
        };
        let agent = "echo x > \"$DIRIGENT_TICKET_KEY.txt\"; git add -A; git commit -qm x; tk done ok\n";
        let board = Board::new(agent, &more);
        board.ticket("t-1", "Check");
        let runner = board.start();
        board.until(&format!("the {place} is up"), || flag.exists());
        assert!(!sleepers(&rest).is_empty());
        runner.signal(Signal::SIGKILL);
        drop(runner);
        poll(&format!("the {place} of a killed runner is gone"), || sleepers(&rest).is_empty());
    }
}

#[test]
fn what_a_hook_leaves_running_ends_with_it() {
    let dir = tempfile::tempdir().unwrap();
    for launcher in launchers(dir.path()).into_iter().filter(|launcher| launcher.containment().is_namespace()) {
        let rest = fresh_rest();
        let script = format!("(setsid {rest} >/dev/null 2>&1 &); echo here; exit 3");
        let env = BTreeMap::from([("PATH".into(), std::env::var_os("PATH").unwrap())]);
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let ran = runtime.block_on(run_hook(
            Hook::BeforeRun,
            &script,
            dir.path(),
            &env,
            Duration::from_secs(60),
            &launcher.holder(),
        ));
        let said = ran.unwrap_err().to_string();
        assert!(said.contains("exit status: 3") && said.ends_with("here"), "{}: {said}", launcher.how());
        poll("nothing of it is left", || sleepers(&rest).is_empty());
    }
}
