//! Every way a run can end, and what is left of it.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use dirigent::config::workspace::{Keep, OnDirty};
use dirigent::domain::failure::RunFailure;
use dirigent::domain::ids::RunId;
use dirigent::domain::permit::Permit;
use dirigent::domain::phase::Phase;
use dirigent::domain::run::{Activity, ProcessMark, RunOutcome, StopReason};
use dirigent::engine::permit::EffectKind;
use dirigent::launcher::{Child, LaunchError, LaunchOrder, Launcher, Leftover, Swept};
use dirigent::worker::{Control, Inbox, ReclaimOrder};

use super::bench::{Bench, PATIENCE, SECRET, allowed, fresh_run, git, members, poll};

fn failure(outcome: &RunOutcome) -> &RunFailure {
    match outcome {
        RunOutcome::Failed { failure } => failure,
        other => panic!("not a failure: {other:?}"),
    }
}

#[tokio::test]
async fn a_commit_is_a_success_and_leaves_only_the_branch() {
    let bench = Bench::new(&["say=hello", "warn=careful", "prompt=got.txt", "commit=got.txt"]);
    let mut running = bench.start();
    let run = running.run.clone();
    running.started().await;
    let said = running.activity(|activity| matches!(activity, Activity::Agent { said: Some(_), .. })).await;
    assert!(matches!(said, Activity::Agent { said: Some(text), .. } if text == "hello"));
    let report = running.report().await;
    assert_eq!(report.outcome, RunOutcome::Done, "{report:?}");
    assert!(report.made_commits());
    assert_eq!((report.commits_ahead, report.turns), (1, 1));
    let branch = "dirigent/t-1-make-it-work";
    assert_eq!(report.head.unwrap().as_str(), git(&bench.repo(), &["rev-parse", branch]));
    assert_eq!(report.salvage, None);
    bench.assert_nothing_left(&run);
    let transcript = bench.transcript(&run);
    assert!(transcript.contains(" out hello\n") && transcript.contains(" err careful\n"), "{transcript}");
    let prompt = fs::read_to_string(bench.path("state").join("runs").join(run.as_str()).join("prompt.md")).unwrap();
    assert_eq!(prompt, "Work on t-1.\nSecond line.\n");
}

#[tokio::test]
async fn uncommitted_work_of_a_success_is_committed() {
    let bench = Bench::new(&["dirty=new.txt", "dirty=README"]);
    let report = bench.run().await;
    assert_eq!(report.outcome, RunOutcome::Done, "{report:?}");
    assert_eq!(bench.content("dirigent/t-1-make-it-work", "new.txt"), "unfinished");
    assert_eq!((report.commits_ahead, report.salvage), (1, None));
}

/// What an agent leaves that needs a moment to end.
async fn left_after_a_stop(grace: Duration, needs: &str) -> Option<String> {
    let mut bench = Bench::new(&[]);
    let (up, left) = (bench.path("up"), bench.path("left"));
    let (ready, last) = (up.display(), left.display());
    bench.settings.exec.command =
        format!("trap '{needs} echo said goodbye > {last}; exit 0' TERM; echo > {ready}; while :; do sleep 0.1; done");
    bench.settings.agent.stop_grace = grace;
    let running = bench.start();
    let run = running.run.clone();
    poll("the agent is up", || up.exists()).await;
    running.control.try_send(Control::Stop(StopReason::Operator)).unwrap();
    assert_eq!(running.report().await.outcome, RunOutcome::Killed { reason: StopReason::Operator });
    bench.assert_nothing_left(&run);
    fs::read_to_string(left).ok()
}

#[tokio::test]
async fn an_agent_has_the_time_to_end_that_the_file_gives_it() {
    assert_eq!(left_after_a_stop(PATIENCE, "").await.as_deref(), Some("said goodbye\n"));
    assert_eq!(left_after_a_stop(Duration::from_millis(50), "sleep 100;").await, None);
}

#[tokio::test]
async fn with_on_dirty_fail_uncommitted_work_is_salvaged() {
    let mut bench = Bench::new(&["commit=a.txt", "dirty=new.txt"]);
    bench.settings.workspace.on_dirty = OnDirty::Fail;
    let running = bench.start();
    let run = running.run.clone();
    let report = running.report().await;
    assert_eq!(*failure(&report.outcome), RunFailure::Dirty);
    assert_eq!(bench.content(&report.salvage.unwrap().reference, "new.txt"), "unfinished");
    assert_eq!(report.commits_ahead, 1, "what was committed stays");
    bench.assert_nothing_left(&run);
}

#[tokio::test]
async fn a_failed_command_keeps_its_code_and_its_work() {
    let bench = Bench::new(&["dirty=new.txt", "exit=3"]);
    let running = bench.start();
    let run = running.run.clone();
    let report = running.report().await;
    assert_eq!(*failure(&report.outcome), RunFailure::Exit { code: 3, said: None });
    assert_eq!(bench.content(&report.salvage.unwrap().reference, "new.txt"), "unfinished");
    assert_eq!(report.commits_ahead, 0);
    bench.assert_nothing_left(&run);
}

#[tokio::test]
async fn a_death_in_the_middle_of_a_line_is_a_signal_and_the_line_is_kept() {
    let bench = Bench::new(&["half=half a li", "die=KILL"]);
    let running = bench.start();
    let run = running.run.clone();
    let report = running.report().await;
    assert_eq!(*failure(&report.outcome), RunFailure::Signal { signal: 9, said: None });
    assert!(bench.transcript(&run).contains(" out half a li\n"));
}

#[tokio::test]
async fn an_exit_0_with_nothing_done_is_no_success() {
    let bench = Bench::new(&["say=all done, trust me"]);
    assert_eq!(*failure(&bench.run().await.outcome), RunFailure::NoProgress);
}

#[tokio::test]
async fn a_ticket_that_moved_on_is_progress() {
    let bench = Bench::new(&["say=moved"]);
    let worker = bench.worker();
    let running = bench.start_with(worker);
    bench.ticket.lock().unwrap().state = "closed".into();
    assert_eq!(running.report().await.outcome, RunOutcome::Done);
}

#[tokio::test]
async fn a_column_that_the_runner_moves_tickets_to_is_no_progress() {
    let mut bench = Bench::new(&["say=nothing"]);
    bench.settings.orchestration.states.insert(Phase::Implementing, "In Progress".into());
    let running = bench.start();
    bench.ticket.lock().unwrap().state = "in progress".into();
    assert_eq!(*failure(&running.report().await.outcome), RunFailure::NoProgress);
}

#[tokio::test]
async fn a_command_that_is_not_there_is_permanent_and_named() {
    let mut bench = Bench::new(&[]);
    bench.settings.exec.command = "no-such-agent --go".into();
    let report = bench.run().await;
    let failure = failure(&report.outcome);
    assert!(failure.is_permanent(), "{failure}");
    assert!(failure.to_string().contains("no-such-agent"), "{failure}");
}

#[tokio::test]
async fn a_stop_ends_a_stubborn_tree_and_salvages() {
    let mut bench = Bench::new(&[]);
    let (up, daemon) = (bench.path("up"), bench.path("daemon"));
    bench.acts(&[
        "ignore_term",
        "dirty=new.txt",
        &format!("daemon={}", daemon.display()),
        &format!("flag={}", up.display()),
        "hang",
    ]);
    let running = bench.start();
    let run = running.run.clone();
    poll("the agent is up", || up.exists()).await;
    assert!(!members(&run).is_empty());
    running.control.try_send(Control::Stop(StopReason::Operator)).unwrap();
    let report = running.report().await;
    assert_eq!(report.outcome, RunOutcome::Killed { reason: StopReason::Operator });
    assert_eq!(bench.content(&report.salvage.unwrap().reference, "new.txt"), "unfinished");
    bench.assert_nothing_left(&run);
}

#[tokio::test]
async fn a_second_stop_does_not_wait_for_the_grace() {
    let mut bench = Bench::new(&[]);
    bench.settings.agent.stop_grace = PATIENCE * 10;
    let up = bench.path("up");
    bench.acts(&["ignore_term", &format!("flag={}", up.display()), "hang"]);
    let running = bench.start();
    poll("the agent is up", || up.exists()).await;
    let start = Instant::now();
    running.control.try_send(Control::Stop(StopReason::Operator)).unwrap();
    running.control.try_send(Control::Stop(StopReason::KillSwitch)).unwrap();
    let report = running.report().await;
    assert_eq!(report.outcome, RunOutcome::Killed { reason: StopReason::Operator });
    assert!(start.elapsed() < PATIENCE);
}

#[tokio::test]
async fn a_limit_is_a_failure_and_a_lost_runner_a_stop() {
    let mut bench = Bench::new(&[]);
    let up = bench.path("up");
    bench.acts(&[&format!("flag={}", up.display()), "hang"]);
    let running = bench.start();
    poll("the agent is up", || up.exists()).await;
    let stalled = RunFailure::Stalled { silent_ms: 2, limit_ms: 1 };
    running.control.try_send(Control::Stop(StopReason::Limit { failure: stalled.clone() })).unwrap();
    assert_eq!(*failure(&running.report().await.outcome), stalled);

    fs::remove_file(&up).unwrap();
    let running = bench.start();
    poll("the agent is up again", || up.exists()).await;
    drop(running.control);
    let report = tokio::time::timeout(PATIENCE, running.report).await.unwrap().unwrap();
    assert_eq!(report.outcome, RunOutcome::Killed { reason: StopReason::Shutdown });
}

#[tokio::test]
async fn a_stop_before_the_launch_starts_nothing() {
    let mut bench = Bench::new(&["commit=a.txt"]);
    bench.settings.hooks.before_run = Some("sleep 1000".into());
    bench.settings.hooks.timeout = PATIENCE * 10;
    let running = bench.start();
    let run = running.run.clone();
    poll("the hook runs", || !members(&run).is_empty()).await;
    running.control.try_send(Control::Stop(StopReason::Shutdown)).unwrap();
    let report = running.report().await;
    assert_eq!(report.outcome, RunOutcome::Killed { reason: StopReason::Shutdown });
    bench.assert_nothing_left(&run);
}

#[tokio::test]
async fn spec_9_a_hook_that_fails_or_hangs_ends_the_run_with_its_name() {
    let mut bench = Bench::new(&["commit=a.txt"]);
    bench.settings.hooks.after_create = Some("echo broken >&2; exit 4".into());
    let running = bench.start();
    let run = running.run.clone();
    let report = running.report().await;
    let RunFailure::Hook { hook, detail } = failure(&report.outcome) else { panic!("{report:?}") };
    assert!(hook == "after_create" && detail.contains("broken"), "{detail}");
    bench.assert_nothing_left(&run);

    bench.settings.hooks.after_create = None;
    bench.settings.hooks.before_run = Some("sleep 1000".into());
    bench.settings.hooks.timeout = Duration::from_millis(100);
    let report = bench.run().await;
    let RunFailure::Hook { hook, detail } = failure(&report.outcome) else { panic!("{report:?}") };
    assert!(hook == "before_run" && detail.contains("timeout_ms"), "{detail}");
}

#[tokio::test]
async fn spec_9_hooks_after_the_run_see_the_workspace_and_do_not_change_the_outcome() {
    let mut bench = Bench::new(&["commit=a.txt"]);
    let (after, before) = (bench.path("after"), bench.path("before"));
    bench.settings.hooks.after_run =
        Some(format!("test -f a.txt && echo $DIRIGENT_TICKET_KEY > {}; exit 1", after.display()));
    bench.settings.hooks.before_remove =
        Some(format!("test -f a.txt && echo left > late.txt && touch {}", before.display()));
    let report = bench.run().await;
    assert_eq!(report.outcome, RunOutcome::Done);
    assert_eq!(fs::read_to_string(after).unwrap(), "t-1\n");
    assert!(before.exists());
    assert_eq!(bench.content(&report.salvage.unwrap().reference, "late.txt"), "left", "what a hook left is not lost");
}

#[tokio::test]
async fn a_kept_worktree_is_named_and_lets_the_branch_go() {
    let mut bench = Bench::new(&["dirty=new.txt", "exit=1"]);
    bench.settings.workspace.keep = Keep::OnFailure;
    let report = bench.run().await;
    let kept = report.kept_worktree.unwrap();
    assert_eq!(fs::read_to_string(kept.join("new.txt")).unwrap(), "unfinished\n");
    assert!(report.salvage.is_some());
    bench.acts(&["commit=a.txt"]);
    let report = bench.run().await;
    assert_eq!(report.outcome, RunOutcome::Done, "{report:?}");
    assert_eq!(report.kept_worktree, None);
}

#[tokio::test]
async fn a_run_that_waits_for_its_place_to_prepare_can_be_stopped() {
    let bench = Bench::new(&["commit=a.txt"]);
    let mut worker = bench.worker();
    worker.preparing = Arc::new(tokio::sync::Semaphore::new(0));
    let running = bench.start_with(worker);
    let run = running.run.clone();
    running.control.try_send(Control::Stop(StopReason::Operator)).unwrap();
    assert_eq!(running.report().await.outcome, RunOutcome::Killed { reason: StopReason::Operator });
    bench.assert_nothing_left(&run);
}

/// Breaks down where an agent should be started.
struct Breaking(Arc<dyn Launcher>);

#[async_trait]
impl Launcher for Breaking {
    fn how(&self) -> &'static str {
        self.0.how()
    }

    async fn launch(&self, _: &Permit, order: LaunchOrder) -> Result<Child, LaunchError> {
        fs::write(order.cwd.join("new.txt"), "unfinished").unwrap();
        panic!("on purpose");
    }

    fn holder(&self) -> Vec<OsString> {
        self.0.holder()
    }

    fn probe(&self, mark: ProcessMark) -> bool {
        self.0.probe(mark)
    }

    async fn sweep(&self, leftovers: &[Leftover]) -> Swept {
        self.0.sweep(leftovers).await
    }
}

#[tokio::test]
async fn a_panic_inside_still_cleans_up_and_reports() {
    let bench = Bench::new(&["commit=a.txt"]);
    let mut worker = bench.worker();
    worker.launcher = Arc::new(Breaking(worker.launcher));
    let running = bench.start_with(worker);
    let run = running.run.clone();
    let report = running.report().await;
    assert!(failure(&report.outcome).to_string().contains("broke off"), "{report:?}");
    assert_eq!(bench.content(&report.salvage.unwrap().reference, "new.txt"), "unfinished");
    bench.assert_nothing_left(&run);
}

#[tokio::test]
async fn a_prompt_that_cannot_be_rendered_is_permanent() {
    let bench = Bench::new(&["commit=a.txt"]);
    let mut worker = bench.worker();
    worker.prompts = bench.prompts("Work on\n{{isue.key}}", "");
    let report = bench.start_with(worker).report().await;
    assert!(failure(&report.outcome).is_permanent());
    assert!(
        failure(&report.outcome).to_string().contains("prompt.md:2: there is no variable `isue.key`"),
        "{report:?}"
    );
}

#[tokio::test]
async fn a_missing_base_branch_is_permanent_and_named() {
    let mut bench = Bench::new(&["commit=a.txt"]);
    bench.settings.workspace.base = "nowhere".into();
    let (worker, order) = (bench.worker(), bench.order());
    let (_control, heard) = tokio::sync::mpsc::channel(64);
    let (teller, _events) = tokio::sync::mpsc::channel(64);
    let report = worker.run(allowed(EffectKind::StartRun), order, Inbox::new(heard), teller).await;
    assert!(failure(&report.outcome).is_permanent());
    assert!(failure(&report.outcome).to_string().contains("nowhere"));
}

#[tokio::test]
async fn the_workers_environment_holds_its_variables_and_no_secret() {
    let mut bench = Bench::new(&[]);
    let dump = bench.path("env");
    bench.settings.worker.env_pass = vec!["LINEAR_API_KEY".into(), "COPY".into()];
    bench.settings.worker.env.insert("SET".into(), SECRET.to_owned().into());
    bench.settings.worker.env.insert("FINE".into(), "yes".to_owned().into());
    bench.acts(&[&format!("env={}", dump.display()), "commit=a.txt"]);
    let running = bench.start();
    let run = running.run.clone();
    assert_eq!(running.report().await.outcome, RunOutcome::Done);
    let env = fs::read_to_string(&dump).unwrap();
    assert!(!env.contains(SECRET), "{env}");
    for wanted in [
        "DIRIGENT_TICKET_ID=t-1",
        "DIRIGENT_TICKET_KEY=t-1",
        &format!("DIRIGENT_RUN_ID={run}"),
        "DIRIGENT_ATTEMPT=1",
        "DIRIGENT_PHASE=implementing",
        "DIRIGENT_BRANCH=dirigent/t-1-make-it-work",
        "DIRIGENT_BASE=main",
        "PI_TEAMS_WORKER=1",
        "PI_TEAMS_TICKET_ID=t-1",
        "GIT_TERMINAL_PROMPT=0",
        "GIT_EDITOR=true",
        "FINE=yes",
    ] {
        assert!(env.lines().any(|line| line == wanted), "{wanted} is missing in\n{env}");
    }
    let value = |name: &str| env.lines().find_map(|line| line.strip_prefix(&format!("{name}="))).unwrap().to_owned();
    let first = value("PATH").split(':').next().unwrap().to_owned();
    assert!(Path::new(&first).join("tk").exists());
    assert!(value("DIRIGENT_SOCKET").len() < 108);
    assert!(Path::new(&value("DIRIGENT_ARTIFACTS")).is_dir(), "artifacts outlive the run");
    assert!(!Path::new(&value("DIRIGENT_SOCKET")).exists(), "the desk is closed");
    let transcript = bench.transcript(&run);
    assert!(!transcript.contains(SECRET));
}

#[tokio::test]
async fn a_lost_run_is_reclaimed_with_its_processes_salvaged_and_removed() {
    let bench = Bench::new(&[]);
    let run = fresh_run();
    let branch = "dirigent/t-1-make-it-work";
    let permit = allowed(EffectKind::StartRun);
    let worktree = bench.workspaces.prepare(&permit, &run, &"t-1".into(), branch, "main").await.unwrap();
    fs::write(worktree.path.join("new.txt"), "unfinished").unwrap();
    let mut stray = std::process::Command::new("sleep")
        .arg("1000")
        .current_dir(&worktree.path)
        .env("DIRIGENT_RUN_ID", run.as_str())
        .spawn()
        .unwrap();
    poll("the stray is up", || !members(&run).is_empty()).await;
    let reaper = std::thread::spawn(move || stray.wait());
    let worker = bench.worker();
    let lost =
        ReclaimOrder { run: run.clone(), key: "t-1".into(), branch: branch.into(), process: None, worktree: None };
    let reclaimed = worker.reclaim(&lost).await;
    reaper.join().unwrap().unwrap();
    assert!(reclaimed.removed && reclaimed.killed == 1 && reclaimed.trouble.is_none(), "{reclaimed:?}");
    let saved = reclaimed.salvage.unwrap();
    assert_eq!(bench.content(&saved.reference, "new.txt"), "unfinished");
    assert_eq!(reclaimed.head.unwrap(), worktree.head_before);
    bench.assert_nothing_left(&run);
    let again = worker.reclaim(&ReclaimOrder { worktree: Some(worktree.path), ..lost }).await;
    assert!(again.removed && again.killed == 0 && again.trouble.is_none(), "{again:?}");
    assert_eq!(again.salvage, Some(saved), "a life that died before it could say so is spoken for");
}

#[tokio::test]
async fn reclaiming_a_run_that_left_nothing_is_quiet() {
    let bench = Bench::new(&[]);
    let lost = ReclaimOrder {
        run: RunId::new("01NEVER"),
        key: "t-1".into(),
        branch: "dirigent/none".into(),
        process: None,
        worktree: None,
    };
    let reclaimed = bench.worker().reclaim(&lost).await;
    assert!(
        reclaimed.removed && reclaimed.salvage.is_none() && reclaimed.head.is_none() && reclaimed.trouble.is_none()
    );
}
