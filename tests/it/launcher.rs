//! Real process trees: started, stopped, and gone even when the runner is killed.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use dirigent::config::policy::RolloutMode;
use dirigent::domain::ids::RunId;
use dirigent::domain::permit::Permit;
use dirigent::domain::run::ProcessMark;
use dirigent::engine::permit::{Circumstances, EffectKind, permit};
use dirigent::launcher::{
    Child, Containment, Exit, LaunchError, LaunchOrder, Launcher, Leftover, LocalLauncher, Orphans,
};
use tokio::io::AsyncReadExt;

const PATIENCE: Duration = Duration::from_secs(60);

/// Says who the test's second process is: the runner that gets killed.
const ROLE: &str = "DIRIGENT_TEST_RUNNER_DIR";

fn allowed() -> Permit {
    let free = Circumstances { switch: None, rollout: RolloutMode::Merge, preflight_missing: false, owned: true };
    permit(EffectKind::StartRun, &free).unwrap()
}

fn env() -> BTreeMap<String, String> {
    BTreeMap::from([("PATH".to_owned(), std::env::var("PATH").unwrap())])
}

fn order(run: &str, script: &str, cwd: &Path) -> LaunchOrder {
    LaunchOrder {
        run: RunId::new(run),
        argv: vec!["sh".into(), "-c".into(), script.into()],
        cwd: cwd.into(),
        env: env(),
        writable: Vec::new(),
    }
}

fn fresh_run() -> String {
    ulid::Ulid::generate().to_string()
}

async fn launch(launcher: &LocalLauncher, order: LaunchOrder) -> Child {
    launcher.launch(&allowed(), order).await.unwrap()
}

/// Every containment that this machine has.
fn launchers(scratch: &Path) -> Vec<LocalLauncher> {
    [Containment::Bubblewrap, Containment::PidNamespace, Containment::UserPidNamespace, Containment::ProcessGroup]
        .into_iter()
        .filter_map(|containment| LocalLauncher::start_with(scratch, containment, None).ok())
        .collect()
}

fn poll(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < PATIENCE, "still waiting: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The processes of a run, by the variable that they all carry.
fn members(run: &str) -> Vec<i32> {
    let wanted = format!("DIRIGENT_RUN_ID={run}");
    fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok())
        .filter(|pid| {
            fs::read(format!("/proc/{pid}/environ"))
                .is_ok_and(|environ| environ.split(|byte| *byte == 0).any(|one| one == wanted.as_bytes()))
        })
        .collect()
}

/// A command that ignores TERM and leaves a double-forked daemon in a session of its own.
fn stubborn(flag: &Path) -> String {
    format!(
        "trap '' TERM; (setsid sh -c 'trap \"\" TERM HUP; echo up > {flag}; while :; do sleep 1; done' &) ; \
         while :; do sleep 1; done",
        flag = flag.display()
    )
}

#[tokio::test]
async fn exit_codes_and_signals_are_told_apart() {
    let dir = tempfile::tempdir().unwrap();
    for launcher in launchers(dir.path()) {
        for (script, expected) in [
            ("exit 0", Exit::Code(0)),
            ("exit 3", Exit::Code(3)),
            ("exit 137", Exit::Code(137)),
            ("exit 143", Exit::Code(143)),
            ("kill -KILL $$", Exit::Signal(9)),
            ("kill -TERM $$", Exit::Signal(15)),
            ("kill -SEGV $$", Exit::Signal(11)),
        ] {
            let mut child = launch(&launcher, order(&fresh_run(), script, dir.path())).await;
            assert_eq!(child.wait().await.unwrap(), expected, "{script} under {}", launcher.how());
        }
    }
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "status files are removed");
}

#[tokio::test]
async fn the_command_gets_its_environment_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    for launcher in launchers(dir.path()) {
        let mut order = order("run-env", "exec env", dir.path());
        order.env.insert("ONLY".into(), "this".into());
        let mut child = launch(&launcher, order).await;
        let mut output = String::new();
        child.stdout.take().unwrap().read_to_string(&mut output).await.unwrap();
        child.wait().await.unwrap();
        let mut names: Vec<&str> = output.lines().filter_map(|line| Some(line.split_once('=')?.0)).collect();
        names.sort_unstable();
        names.retain(|name| !["_", "OLDPWD", "SHLVL"].contains(name));
        assert_eq!(names, ["DIRIGENT_RUN_ID", "ONLY", "PATH", "PWD"], "under {}", launcher.how());
    }
}

#[tokio::test]
async fn a_shell_reads_no_profile_and_gets_the_path_that_was_given() {
    let dir = tempfile::tempdir().unwrap();
    let tools = dir.path().join("tools");
    fs::create_dir(&tools).unwrap();
    let launcher = LocalLauncher::start(dir.path()).unwrap();
    let mut env = env();
    let path = format!("{}:{}", tools.display(), env["PATH"]);
    env.insert("PATH".into(), path.clone());
    env.insert("HOME".into(), dir.path().display().to_string());
    fs::write(dir.path().join(".profile"), "PATH=/from/the/profile\n").unwrap();
    let order = LaunchOrder::shell(RunId::new("run-path"), "echo \"$PATH\"", dir.path().into(), env);
    let mut child = launch(&launcher, order).await;
    let mut output = String::new();
    child.stdout.take().unwrap().read_to_string(&mut output).await.unwrap();
    child.wait().await.unwrap();
    assert_eq!(output.trim(), path);
}

#[tokio::test]
async fn a_missing_program_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let launcher = LocalLauncher::start(dir.path()).unwrap();
    let order = LaunchOrder { argv: vec!["no-such-agent".into()], ..order("run-missing", "", dir.path()) };
    let error = launcher.launch(&allowed(), order).await.unwrap_err();
    assert!(matches!(&error, LaunchError::NotFound { program } if program == "no-such-agent"), "{error}");
    assert!(error.is_permanent());
}

#[tokio::test]
async fn a_missing_working_directory_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let launcher = LocalLauncher::start(dir.path()).unwrap();
    let error = launcher.launch(&allowed(), order("run-cwd", "true", &dir.path().join("gone"))).await.unwrap_err();
    assert!(error.to_string().contains("gone"), "{error}");
}

#[tokio::test]
async fn term_reaches_everything_in_the_tree() {
    let dir = tempfile::tempdir().unwrap();
    for (number, launcher) in launchers(dir.path()).into_iter().enumerate() {
        let run = fresh_run();
        let (up, got) = (dir.path().join(format!("up{number}")), dir.path().join(format!("got{number}")));
        let script = format!(
            "trap 'exit 42' TERM; sh -c 'trap \"echo > {got}; exit 0\" TERM; echo > {up}; while :; do sleep 0.1; done' & \
             while :; do sleep 0.1; done",
            got = got.display(),
            up = up.display()
        );
        let mut child = launch(&launcher, order(&run, &script, dir.path())).await;
        poll("the child's child is up", || up.exists());
        child.terminate();
        assert_eq!(child.wait().await.unwrap(), Exit::Code(42), "under {}", launcher.how());
        if launcher.containment() == Containment::ProcessGroup {
            assert!(members(&run).is_empty());
        } else {
            poll("the child's child was asked too, or the namespace is gone", || {
                got.exists() || members(&run).is_empty()
            });
        }
    }
}

#[tokio::test]
async fn kill_ends_a_stubborn_tree_with_its_daemon() {
    let dir = tempfile::tempdir().unwrap();
    for (number, launcher) in launchers(dir.path()).into_iter().enumerate() {
        let run = fresh_run();
        let flag = dir.path().join(format!("flag{number}"));
        let mut child = launch(&launcher, order(&run, &stubborn(&flag), dir.path())).await;
        poll("the daemon is up", || flag.exists());
        child.terminate();
        assert!(launcher.probe(child.mark));
        child.kill();
        child.wait().await.unwrap();
        assert_eq!(members(&run), Vec::<i32>::new(), "under {}", launcher.how());
        assert!(!launcher.probe(child.mark));
    }
}

/// The shell below `marker` goes on when its parent is gone, and does not mind being asked.
fn orphan(marker: &Path) -> String {
    format!("(setsid sh -c 'trap : TERM; touch {}; while :; do sleep 0.1; done' &)", marker.display())
}

#[tokio::test]
async fn orphans_end_while_the_command_and_its_children_go_on() {
    let dir = tempfile::tempdir().unwrap();
    for launcher in launchers(&dir.path().join("scratch")) {
        let run = fresh_run();
        let (old, new) = (dir.path().join(format!("{run}-old")), dir.path().join(format!("{run}-new")));
        let go = dir.path().join(format!("{run}-go"));
        let script = format!(
            "{}; while [ ! -e {} ]; do sleep 0.1; done; {}; while :; do sleep 0.1; done",
            orphan(&old),
            go.display(),
            orphan(&new)
        );
        let mut child = launch(&launcher, order(&run, &script, dir.path())).await;
        poll("the first orphan runs", || old.exists());
        let mut orphans = Orphans::default();
        poll("the orphan is seen", || child.end_orphans(&mut orphans) > 0);
        orphans.no_newer();
        // Start times are counted in hundredths of a second.
        std::thread::sleep(Duration::from_millis(50));
        fs::write(&go, "").unwrap();
        poll("the second orphan runs", || new.exists());
        poll("the first orphan is killed", || child.end_orphans(&mut orphans) == 0);
        assert!(launcher.probe(child.mark), "{}: the command is still there", launcher.how());
        poll("the later one is seen by a new look", || child.end_orphans(&mut Orphans::default()) > 0);
        child.kill();
        child.wait().await.unwrap();
        assert_eq!(child.end_orphans(&mut orphans), 0, "{}: nothing is left", launcher.how());
    }
}

#[tokio::test]
async fn a_command_that_ends_leaves_no_daemon_behind() {
    let dir = tempfile::tempdir().unwrap();
    for (number, launcher) in launchers(dir.path()).into_iter().enumerate() {
        let run = fresh_run();
        let flag = dir.path().join(format!("left{number}"));
        let script = format!(
            "(setsid sh -c 'echo up > {flag}; sleep 1000' &) ; while ! [ -s {flag} ]; do sleep 0.01; done",
            flag = flag.display()
        );
        let mut child = launch(&launcher, order(&run, &script, dir.path())).await;
        assert_eq!(child.wait().await.unwrap(), Exit::Code(0));
        assert_eq!(members(&run), Vec::<i32>::new(), "under {}", launcher.how());
    }
}

#[tokio::test]
async fn dropping_a_child_ends_its_tree() {
    let dir = tempfile::tempdir().unwrap();
    for (number, launcher) in launchers(dir.path()).into_iter().enumerate() {
        let run = fresh_run();
        let flag = dir.path().join(format!("drop{number}"));
        let script = format!("echo up > {}; sleep 1000 & sleep 1000", flag.display());
        let child = launch(&launcher, order(&run, &script, dir.path())).await;
        poll("it is up", || flag.exists());
        drop(child);
        poll("all is gone", || members(&run).is_empty());
    }
}

/// Started again by the next test as a process of its own; alone it shows that a plain run works.
#[tokio::test]
async fn runner_process() {
    let dir = tempfile::tempdir().unwrap();
    let Ok(given) = std::env::var(ROLE) else {
        let launcher = LocalLauncher::start(dir.path()).unwrap();
        let mut child = launch(&launcher, order("run-plain", "true", dir.path())).await;
        assert_eq!(child.wait().await.unwrap(), Exit::Code(0));
        return;
    };
    let given = PathBuf::from(given);
    let run = given.file_name().unwrap().to_str().unwrap().to_owned();
    let launcher = LocalLauncher::start(&given.join("scratch")).unwrap();
    let mut child = launch(&launcher, order(&run, &stubborn(&given.join("daemon")), &given)).await;
    let mark = serde_json::to_string(&child.mark).unwrap();
    fs::write(given.join("containment"), launcher.how()).unwrap();
    fs::write(given.join("mark.part"), mark).unwrap();
    fs::rename(given.join("mark.part"), given.join("mark")).unwrap();
    child.wait().await.unwrap();
}

/// Starts the runner above with one worker; gives back its process and the worker's mark.
fn start_runner(given: &Path) -> (std::process::Child, ProcessMark) {
    let runner = Command::new(std::env::current_exe().unwrap())
        .args(["launcher::runner_process", "--exact", "--nocapture"])
        .env(ROLE, given)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    poll("the worker and its daemon are up", || given.join("daemon").exists() && given.join("mark").exists());
    let mark = serde_json::from_str(&fs::read_to_string(given.join("mark")).unwrap()).unwrap();
    (runner, mark)
}

#[tokio::test]
async fn killing_the_runner_ends_worker_and_daemon_and_the_next_start_finds_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let run = fresh_run();
    let given = dir.path().join(&run);
    fs::create_dir(&given).unwrap();
    let (mut runner, mark) = start_runner(&given);
    let launcher = LocalLauncher::start(dir.path()).unwrap();
    assert!(launcher.probe(mark));
    assert!(members(&run).len() >= 2);
    runner.kill().unwrap();
    runner.wait().unwrap();
    if launcher.containment() == Containment::ProcessGroup {
        // Nothing but the next start can end them here.
        launcher.sweep(&[Leftover { run: RunId::new(&run), process: Some(mark) }]).await;
    }
    poll("everything is gone", || members(&run).is_empty());
    assert!(!launcher.probe(mark));
    let swept = launcher.sweep(&[Leftover { run: RunId::new(&run), process: Some(mark) }]).await;
    assert_eq!((swept.killed, swept.survivors.len()), (0, 0));
}

#[tokio::test]
async fn a_sweep_ends_leftovers_by_their_run_and_spares_others() {
    let dir = tempfile::tempdir().unwrap();
    let launcher = LocalLauncher::start(dir.path()).unwrap();
    let (lost, other) = (fresh_run(), fresh_run());
    let mut leftover = Command::new("setsid")
        .args(["sh", "-c", "sleep 1000 & sleep 1000"])
        .env("DIRIGENT_RUN_ID", &lost)
        .spawn()
        .unwrap();
    let mut bystander = Command::new("sleep").arg("1000").env("DIRIGENT_RUN_ID", &other).spawn().unwrap();
    poll("both are up", || members(&lost).len() >= 2 && !members(&other).is_empty());
    // A mark whose pid now belongs to somebody else must not hit that one.
    let stale = ProcessMark { pid: i32::try_from(bystander.id()).unwrap(), started_ticks: 1 };
    let reaper = std::thread::spawn(move || leftover.wait().unwrap());
    let swept = launcher.sweep(&[Leftover { run: RunId::new(&lost), process: Some(stale) }]).await;
    reaper.join().unwrap();
    assert!(swept.killed >= 2 && swept.survivors.is_empty(), "{swept:?}");
    assert!(members(&lost).is_empty());
    assert!(bystander.try_wait().unwrap().is_none(), "the bystander lives");
    bystander.kill().unwrap();
    bystander.wait().unwrap();
}
