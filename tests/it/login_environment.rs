//! The user's login shell is asked once per start and once per reload, and is never cut off in the middle of a profile without need.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use dirigent::launcher::environment::Secrets;
use dirigent::launcher::login::{self, LoginError, Patience};

use super::support::board::{Board, MERGE, MUTATE, PATIENCE, text};

const LONG: Patience = Patience { login: PATIENCE, farewell: PATIENCE };

/// Holds a lock, as version managers do, and counts how often it was read.
const PROFILE: &str = r#"mkdir "$HOME/profile.lock" || echo "somebody was cut off" >> "$HOME/reads"
echo "read" >> "$HOME/reads"
echo "profiles print things"
export FROM_PROFILE="set by the profile" PATH="$HOME/from-profile:$PATH"
rmdir "$HOME/profile.lock"
"#;

fn reads(board: &Board) -> String {
    std::fs::read_to_string(board.scratch.dir.path().join("reads")).unwrap_or_default()
}

fn home_with(profile: &str) -> (tempfile::TempDir, BTreeMap<String, String>) {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join(".profile"), profile).unwrap();
    let own = [
        ("HOME", home.path().display().to_string()),
        ("PATH", std::env::var("PATH").unwrap()),
        ("SHELL", "/bin/sh".to_owned()),
    ];
    (home, own.map(|(name, value)| (name.to_owned(), value)).into())
}

/// Processes whose command line holds these words.
fn at_work(words: &str) -> usize {
    let wanted = words.replace(' ', "\0");
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    entries
        .filter(|entry| text(&std::fs::read(entry.path().join("cmdline")).unwrap_or_default()).contains(&wanted))
        .count()
}

#[test]
fn spec_10_commands_have_the_login_environment_and_the_profile_is_read_once_per_start() {
    let agent = r#"env > "$HOME/agent-$DIRIGENT_TICKET_KEY"
echo x > "$DIRIGENT_TICKET_KEY.txt"; git add -A; git commit -qm x; tk done x
"#;
    let more = format!(
        "{MERGE}hooks: {{before_run: 'env > \"$HOME/hook-$DIRIGENT_TICKET_KEY\"', after_run: 'true'}}\n\
         gates: {{task: ['env > \"$HOME/gate\"', 'true']}}\n"
    );
    let board = Board::new(agent, &more);
    let file = board.scratch.read("WORKFLOW.md").replace("runtime: exec}", "runtime: exec, env_pass: [FROM_PROFILE]}");
    board.scratch.write("WORKFLOW.md", &file);
    board.scratch.commit("pass it");
    std::fs::write(board.scratch.dir.path().join(".profile"), PROFILE).unwrap();
    for id in ["t-1", "t-2", "t-3", "t-4"] {
        board.ticket(id, "Work");
    }
    board.ok(&["run", "--once"]);
    assert_eq!(reads(&board), "read\n", "four runs, eight hooks and eight gates");
    let home = board.scratch.dir.path();
    for name in ["agent-t-1", "agent-t-4", "hook-t-2", "gate"] {
        let seen = std::fs::read_to_string(home.join(name)).unwrap();
        assert!(seen.contains("FROM_PROFILE=set by the profile"), "{name}: {seen}");
        let path = seen.lines().find(|line| line.starts_with("PATH=")).unwrap();
        assert!(path.contains("/tools:") && path.ends_with("/from-profile"), "ours stays first: {path}");
    }
}

#[test]
fn a_reload_reads_the_login_environment_once_more() {
    let board = Board::new("echo x > x.txt; git add -A; git commit -qm x; tk done x\n", MUTATE);
    std::fs::write(board.scratch.dir.path().join(".profile"), PROFILE).unwrap();
    let runner = board.start();
    board.until("it is up", || !board.ok(&["status"]).contains("no runner up"));
    assert_eq!(reads(&board), "read\n");
    board.workflow(&format!("{MUTATE}budget: {{max_turns: 7}}\n"));
    board.until("it is read again", || reads(&board) == "read\nread\n");
    board.ticket("t-1", "Work");
    board.until("work is done", || board.phase("t-1") == "waiting_for_human" || board.phase("t-1") == "ready_to_merge");
    assert_eq!(reads(&board), "read\nread\n");
    runner.end();
}

#[test]
fn a_profile_that_hangs_is_named_and_the_runner_goes_on_with_its_own_environment() {
    let board = Board::new("echo x > x.txt; git add -A; git commit -qm x; tk done x\n", MERGE);
    let profile = board.scratch.dir.path().join(".profile");
    // Whoever is asked can clean up: the lock is not left behind.
    std::fs::write(
        &profile,
        "mkdir \"$HOME/held.lock\"\ntrap 'rmdir \"$HOME/held.lock\"; exit 1' TERM\nwhile :; do sleep 0.1; done\n",
    )
    .unwrap();
    board.ticket("t-1", "Work");
    let output = board.run(&["run", "--once"]);
    let said = text(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("was not ready after 10 s") && said.contains(&profile.display().to_string()), "{said}");
    assert!(said.contains("-lc true"), "what to do is said: {said}");
    assert_eq!(board.phase("t-1"), "done");
    assert!(!board.scratch.dir.path().join("held.lock").exists(), "it was cut off and not asked");
}

#[tokio::test]
async fn a_slow_profile_is_left_alone_until_it_ends() {
    let (home, own) = home_with("touch \"$HOME/began\"; sleep 1; touch \"$HOME/ended\"; export SLOW=yes\n");
    let login = login::read(&own, &Secrets::default(), LONG).await.unwrap();
    assert_eq!(login.environment["SLOW"], "yes");
    assert!(home.path().join("ended").exists() && login.took >= Duration::from_secs(1));
    for name in ["_", "SHLVL", "PWD"] {
        assert!(!login.environment.contains_key(name), "{name} is the shell's own");
    }
}

#[tokio::test]
async fn a_profile_that_does_not_listen_is_killed_with_everything_it_started() {
    let rest = format!("sleep 66666.{:010}", ulid::Ulid::generate().0 & 0xffff_ffff);
    // In its own group, in a session of its own, and a shell that ignores being asked.
    let profile = format!("trap '' TERM\nsetsid {rest} &\n{rest} &\nwhile :; do {rest}; done\n");
    let (home, own) = home_with(&profile);
    let patience = Patience { login: Duration::from_secs(2), farewell: Duration::from_millis(500) };
    let error = login::read(&own, &Secrets::default(), patience).await.unwrap_err();
    assert!(
        matches!(&error, LoginError::Hangs { profiles, .. } if profiles.contains(&home.path().join(".profile"))),
        "{error}"
    );
    let began = Instant::now();
    while at_work(&rest) > 0 {
        assert!(began.elapsed() < PATIENCE, "{} are left", at_work(&rest));
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[tokio::test]
async fn our_secrets_are_not_handed_to_the_login_shell() {
    let (home, mut own) = home_with("env > \"$HOME/seen\"\n");
    own.insert("TOKEN".into(), "a-long-secret-value".into());
    own.insert("COPY".into(), "Bearer a-long-secret-value".into());
    let secrets = Secrets { names: vec!["TOKEN".into()], values: vec!["a-long-secret-value".to_owned().into()] };
    login::read(&own, &secrets, LONG).await.unwrap();
    let seen = std::fs::read_to_string(home.path().join("seen")).unwrap();
    assert!(seen.contains("HOME=") && !seen.contains("a-long-secret-value"), "{seen}");
}

#[tokio::test]
async fn a_login_shell_that_breaks_off_is_told_from_one_that_hangs() {
    let (home, own) = home_with("exit 3\n");
    let error = login::read(&own, &Secrets::default(), LONG).await.unwrap_err();
    assert!(matches!(error, LoginError::Fails { .. }), "{error}");
    let said = error.to_string();
    let profile = Path::new(home.path()).join(".profile").display().to_string();
    assert!(said.contains("exit status: 3") && said.contains(&profile), "{said}");
}
