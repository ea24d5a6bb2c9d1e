//! What an agent and a gate can log in with: nothing of the user's, unless the workflow file passes it. Hooks are the workflow's
//! own commands and keep the user's environment.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use super::support::board::{Board, MERGE, text};
use super::support::git_in;

/// Tries every login that the user has, and writes down what came of it. `$1` is who tries.
const TRY: &str = r#"out="$HOME/tried-$1"
{
  echo "agent=${SSH_AUTH_SOCK:-none}"
  echo "gh=$(ls -A "${GH_CONFIG_DIR:-$HOME/.config/gh}" | tr '\n' ' ')"
  for host in plain.example special.example; do
    printf 'protocol=https\nhost=%s\n\n' $host | git credential fill 2>/dev/null | grep password
  done
  rm -rf "$HOME/cloned-$1"
  git clone -q "ssh://git@host$HOME/origin.git" "$HOME/cloned-$1" && echo cloned
  echo "token=${GITHUB_TOKEN:-none}"
} > "$out" 2>&1
exit 0
"#;

const AGENT: &str =
    "sh \"$HOME/try.sh\" agent\necho x > \"$DIRIGENT_TICKET_KEY.txt\"; git add -A; git commit -qm x; tk done x\n";

/// A home with credentials in every place that git, gh and ssh look at.
fn board(worker: &str) -> Board {
    let more = format!(
        "{MERGE}hooks: {{after_create: 'sh \"$HOME/try.sh\" hook'}}\ngates: {{task: ['sh \"$HOME/try.sh\" gate']}}\n"
    );
    let board = Board::new(AGENT, &more);
    let file = board
        .scratch
        .read("WORKFLOW.md")
        .replace("worker: {runtime: exec}", &format!("worker: {{runtime: exec{worker}}}"));
    board.scratch.write("WORKFLOW.md", &file);
    let home = board.scratch.dir.path();
    let helper = "!f() { echo username=me; echo password=of-the-user; }; f";
    let config = format!(
        "[credential]\n\thelper = \"{helper}\"\n[credential \"https://special.example\"]\n\thelper = \"{helper}\"\n[user]\n\tname = S\n\temail = s@example.invalid\n"
    );
    std::fs::write(home.join(".gitconfig"), config).unwrap();
    std::fs::create_dir_all(home.join(".config/gh")).unwrap();
    std::fs::write(home.join(".config/gh/hosts.yml"), "github.com: {oauth_token: x}\n").unwrap();
    std::fs::write(home.join("try.sh"), TRY).unwrap();
    git_in(home, ["clone", "-q", "--bare", "repo", "origin.git"]);
    // An ssh that only works for whoever has the agent.
    write_program(
        &home.join("bin/ssh"),
        "#!/bin/sh\n[ -n \"$SSH_AUTH_SOCK\" ] || { echo no key >&2; exit 255; }\nwhile [ $# -gt 1 ]; do shift; done\nexec sh -c \"$1\"\n",
    );
    board.ticket("t-1", "Try");
    board
}

fn write_program(path: &Path, script: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, script).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// Runs the board as a user with an SSH agent and a token; answers with what each has seen.
fn tried(board: &Board) -> [String; 3] {
    let home = board.scratch.dir.path();
    let mut command: Command = board.command(&["run", "--once"]);
    let path = format!("{}:{}", home.join("bin").display(), std::env::var("PATH").unwrap());
    let output = command
        .env("PATH", path)
        .env("SSH_AUTH_SOCK", "/the/agent")
        .env("GITHUB_TOKEN", "the-users-own-token")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(board.phase("t-1"), "done", "{}", text(&output.stderr));
    ["hook", "agent", "gate"].map(|who| std::fs::read_to_string(home.join(format!("tried-{who}"))).unwrap())
}

#[test]
fn agents_and_gates_have_no_login_and_hooks_keep_the_users() {
    let [hook, agent, gate] = tried(&board(""));
    let all = "agent=/the/agent\ngh=hosts.yml \npassword=of-the-user\npassword=of-the-user\ncloned\ntoken=the-users-own-token\n";
    assert_eq!(hook, all);
    for (who, seen) in [("agent", agent), ("gate", gate)] {
        let mut lines = seen.lines();
        assert_eq!(lines.next(), Some("agent=none"), "{who}: {seen}");
        assert_eq!(lines.next(), Some("gh="), "{who}: {seen}");
        assert!(!seen.contains("of-the-user") && !seen.contains("cloned\n"), "{who}: {seen}");
        assert!(seen.contains("worker.env_pass: [SSH_AUTH_SOCK]"), "{who} is told why: {seen}");
        assert!(seen.ends_with("token=none\n"), "{who}: {seen}");
    }
}

#[test]
fn what_the_file_passes_is_there() {
    let [_, agent, gate] = tried(&board(", env_pass: [SSH_AUTH_SOCK], env: {GH_CONFIG_DIR: /nowhere}"));
    for seen in [agent, gate] {
        assert!(seen.contains("agent=/the/agent") && seen.contains("cloned\n"), "{seen}");
        assert!(!seen.contains("of-the-user"), "{seen}");
        assert!(seen.contains("/nowhere"), "{seen}");
    }
}

#[test]
fn doctor_names_what_a_worker_could_still_read_and_asks_the_login_shell() {
    let board = board("");
    let told = board.ok(&["doctor"]);
    let line = told.lines().find(|line| line.contains("same user")).unwrap_or_else(|| panic!("{told}"));
    assert!(line.starts_with("warning") && line.contains("~/.config/gh") && !line.contains("~/.ssh"), "{line}");
    assert!(told.lines().any(|line| line.starts_with("ok") && line.contains("login shell")), "{told}");
    std::fs::remove_dir_all(board.scratch.dir.path().join(".config")).unwrap();
    assert!(!board.ok(&["doctor"]).contains("same user"));
}
