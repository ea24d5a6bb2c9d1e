//! `gates.task` on an exact commit.

use std::fs;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use dirigent::config::gates::{GateCommand, GatesSettings};
use dirigent::domain::ids::CommitId;
use dirigent::engine::permit::EffectKind;
use dirigent::gates::Gates;

use super::bench::{Bench, allowed, git, poll};

fn gates(bench: &Bench, commands: &[&str], timeout: Duration) -> Gates {
    let task = commands.iter().map(|run| GateCommand { run: (*run).to_owned(), ..GateCommand::default() }).collect();
    Gates {
        settings: GatesSettings { task, timeout, ..GatesSettings::default() },
        workspaces: bench.workspaces.clone(),
        launcher: Arc::clone(&bench.launcher),
        environment: bench
            .environment
            .iter()
            .filter(|(name, _)| *name == "PATH")
            .map(|(n, v)| (n.clone(), v.clone()))
            .collect(),
        hook: None,
    }
}

fn head(bench: &Bench) -> CommitId {
    CommitId::new(git(&bench.repo(), &["rev-parse", "main"]))
}

const LONG: Duration = Duration::from_secs(600);

#[tokio::test]
async fn commands_run_on_exactly_the_commit_and_leave_nothing() {
    let bench = Bench::new(&[]);
    let commit = head(&bench);
    // Later commits and the user's own dirt must not be seen.
    fs::write(bench.repo().join("README"), "changed\n").unwrap();
    git(&bench.repo(), &["commit", "-qam", "Later"]);
    fs::write(bench.repo().join("dirt"), "x").unwrap();
    let commands = [
        "grep -q hello README && ! test -e dirt && echo fine",
        "echo broken >&2; exit 3",
        "kill -9 $$",
        "echo left > build.out; env | grep -c ^LINEAR; true",
    ];
    let gates = gates(&bench, &commands, LONG);
    let permit = allowed(EffectKind::RunGate);
    let results = gates.run_task(&permit, &"t-1".into(), "dirigent/t-1", &commit, pending()).await.unwrap();
    let told: Vec<_> = results.iter().map(|one| (one.passed, one.exit_code, one.timed_out)).collect();
    assert_eq!(told, [(true, Some(0), false), (false, Some(3), false), (false, None, false), (true, Some(0), false)]);
    assert_eq!(results[0].output_tail.trim(), "fine");
    assert_eq!(results[1].output_tail.trim(), "broken");
    assert!(results[2].output_tail.contains("signal 9"));
    assert_eq!(results[3].output_tail.trim(), "0", "no secret in a gate's environment");
    assert_eq!(git(&bench.repo(), &["worktree", "list"]).lines().count(), 1);
    assert_eq!(gates.clear_leftovers().await.unwrap(), 0);
    assert_eq!(git(&bench.repo(), &["rev-list", "--all", "--count"]), "2", "nothing was committed anywhere");
}

#[tokio::test]
async fn a_gate_may_have_a_time_of_its_own() {
    let bench = Bench::new(&[]);
    let mut gates = gates(&bench, &["sleep 1000", "echo next"], LONG);
    gates.settings.task[0].timeout = Some(Duration::from_millis(300));
    let permit = allowed(EffectKind::RunGate);
    let results = gates.run_task(&permit, &"t-1".into(), "b", &head(&bench), pending()).await.unwrap();
    assert_eq!(results.iter().map(|one| one.timed_out).collect::<Vec<_>>(), [true, false]);
}

#[tokio::test]
async fn a_gate_that_hangs_is_stopped_with_its_daemon() {
    let bench = Bench::new(&[]);
    let daemon = bench.path("daemon");
    let hang = format!("(setsid sh -c 'echo $$ > {}; sleep 1000' &) ; echo begun; sleep 1000", daemon.display());
    let gates = gates(&bench, &[&hang, "echo next"], Duration::from_millis(700));
    let permit = allowed(EffectKind::RunGate);
    let results = gates.run_task(&permit, &"t-1".into(), "b", &head(&bench), pending()).await.unwrap();
    assert!(results[0].timed_out && !results[0].passed, "{results:?}");
    assert!(results[0].output_tail.contains("begun") && results[0].output_tail.contains("still running"));
    assert!(results[1].passed, "the next one still runs");
    let marker = daemon.display().to_string();
    poll("the daemon is gone", || {
        !fs::read_dir("/proc")
            .unwrap()
            .flatten()
            .any(|entry| fs::read_to_string(entry.path().join("cmdline")).is_ok_and(|line| line.contains(&marker)))
    })
    .await;
}

#[tokio::test]
async fn only_the_end_of_a_flood_is_kept() {
    let bench = Bench::new(&[]);
    let gates = gates(&bench, &["yes line | head -c 20000000; echo last"], LONG);
    let permit = allowed(EffectKind::RunGate);
    let results = gates.run_task(&permit, &"t-1".into(), "b", &head(&bench), pending()).await.unwrap();
    assert!(results[0].passed && results[0].output_tail.len() < 9000);
    assert!(results[0].output_tail.trim_end().ends_with("last"));
}

#[tokio::test]
async fn a_commit_that_does_not_exist_is_named() {
    let bench = Bench::new(&[]);
    let gates = gates(&bench, &["true"], LONG);
    let nowhere = CommitId::new("1234567890123456789012345678901234567890");
    let permit = allowed(EffectKind::RunGate);
    let error = gates.run_task(&permit, &"t-1".into(), "b", &nowhere, pending()).await.unwrap_err();
    assert!(error.to_string().contains("commit"), "{error}");
}

#[tokio::test]
async fn what_a_killed_gate_left_is_cleared_at_the_next_start() {
    let bench = Bench::new(&[]);
    let permit = allowed(EffectKind::RunGate);
    let run = "gate-lost".into();
    let left = bench.workspaces.prepare_detached(&permit, &run, &"t-1".into(), "b", &head(&bench)).await.unwrap();
    fs::write(left.path.join("build.out"), "x").unwrap();
    let gates = gates(&bench, &[], LONG);
    assert_eq!(gates.clear_leftovers().await.unwrap(), 1);
    assert!(!left.path.exists());
    assert_eq!(git(&bench.repo(), &["for-each-ref", "refs/dirigent"]), "", "a gate's litter is no work");
}
