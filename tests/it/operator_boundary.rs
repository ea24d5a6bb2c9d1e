//! A worker is never an operator. An agent, a gate and a hook try every command, the socket itself, a copied client without an
//! environment, a detached child and the ledger file; what became of it is looked at from outside.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::support::board::{Board, text};

/// Work waits for a person's approval; hooks, agent and gate attack when they are armed.
const MORE: &str = "rollout: {mode: merge}
pr: {forge: local}
merge: {mode: auto, no_checks: pass, require_human_approval: true}
hooks: {before_run: 'sh \"$HOME/attack.sh\" hook'}
gates: {task: ['sh \"$HOME/attack.sh\" gate']}
";

const AGENT: &str = r#"echo x > "$DIRIGENT_TICKET_KEY.txt"
git add -A
git commit -qm "Do $DIRIGENT_TICKET_KEY"
sh "$HOME/attack.sh" agent
tk done "did it"
"#;

/// Each attempt leaves a file with what it was told and how it ended. `$1` is who attacks.
const ATTACK: &str = r#"[ -e "$HOME/armed" ] || exit 0
. "$HOME/facts.sh"
out="$HOME/results/$1"
mkdir -p "$out"
cp "$BIN" "$out/copy"
mine="$PWD"
note() { name=$1; shift; "$@" > "$out/$name" 2>&1; echo "exit $?" >> "$out/$name"; }

# Every operator command, against the runner that owns this run.
cd "$REPO"
export DIRIGENT_HOME="$OWNER"
for command in 'approve t-victim' 'pause t-victim' pause 'resume t-victim' resume 'stop t-victim' stop 'retry t-victim' \
    'message t-victim hello' 'reject t-victim no' 'undo t-victim' 'try t-victim' top token 'run --once' 'gc --max-age 0s' \
    doctor quickstart 'salvage restore t-victim' 'agents test exec'; do
  note "command-$(echo "$command" | tr -c 'a-z0-9\n' '-')" "$BIN" $command
done
# Looking is refused too: the ticket is a worker's only channel.
note looks "$BIN" status

# A copy that knows nothing of where it is, alone and as a detached child of nobody.
scrubbed() { env -i HOME="$HOME" PATH="$PATH" DIRIGENT_HOME="$OWNER" "$@"; }
note copy-approve scrubbed "$out/copy" approve t-victim
note copy-pause scrubbed "$out/copy" pause
(setsid env -i HOME="$HOME" PATH="$PATH" DIRIGENT_HOME="$OWNER" OUT="$out" sh -c '
  (for command in "approve t-victim" pause stop; do
     "$OUT/copy" $command; echo "exit $?"
   done > "$OUT/detached.part" 2>&1; mv "$OUT/detached.part" "$OUT/detached") &
' > /dev/null 2>&1 &)

# The socket itself: a line for each request, and one whose sender is gone before it is read.
cat > "$out/raw.py" <<'PY'
import json, os, socket, sys
path, out = sys.argv[1:]
requests = [{"request": name} for name in ("snapshot", "pause_all", "resume_all", "poll", "shutdown")]
requests += [{"request": name, "ticket": "t-victim"} for name in ("pause", "resume", "stop", "retry", "approve", "forget")]
requests += [{"request": "message", "ticket": "t-victim", "text": "hello", "urgent": False}]
requests += [{"request": "reject", "ticket": "t-victim", "text": "no"}]
def connect():
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(30)
    s.connect(path)
    return s
with open(out, "w") as report:
    for request in requests:
        s = connect()
        s.sendall(json.dumps(request).encode() + b"\n")
        report.write(request["request"] + ": " + s.makefile().readline())
    # The one that connects is gone; its child holds the connection.
    report.flush()
    ready, go = os.pipe()
    if os.fork() == 0:
        s = connect()
        if os.fork() == 0:
            os.close(go)
            os.read(ready, 1)
            s.sendall(json.dumps({"request": "approve", "ticket": "t-victim"}).encode() + b"\n")
            report.write("handed on: " + s.makefile().readline())
            report.flush()
        os._exit(0)
    os.wait()
    os.close(go)
    os.close(ready)
PY
note raw "$PYTHON" "$out/raw.py" "$SOCKET" "$out/raw.lines"
note bare env -i "$PYTHON" "$out/raw.py" "$SOCKET" "$out/bare.lines"

# The ledger, without changing it.
note ledger "$PYTHON" -c '
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], timeout=30, isolation_level=None)
db.execute("begin immediate")
db.execute("create table attack (x)")
db.execute("rollback")
print("it can be written")' "$LEDGER"

# The folders of other boards, and the folder of all of them put out of the way.
note others mkdir "$OWNER/repos/another"
note moved mv "$OWNER" "$OWNER.away"
[ -e "$OWNER" ] || mv "$OWNER.away" "$OWNER"
rmdir "$OWNER/repos/another" 2> /dev/null

tries=0
while [ ! -e "$out/detached" ] && [ $tries -lt 600 ]; do sleep 0.1; tries=$((tries+1)); done
cd "$mine"
touch "$out/over"
exit 0
"#;

struct Scene {
    board: Board,
    results: PathBuf,
}

impl Scene {
    /// A board with a ticket whose work is going to wait for approval.
    fn new(on: impl FnOnce(Board) -> Board) -> Self {
        let board = on(Board::new(AGENT, MORE));
        let place = board.scratch.dir.path().to_owned();
        std::fs::write(place.join("attack.sh"), ATTACK).unwrap();
        write_facts(&board);
        board.ticket("t-victim", "Wait for approval");
        Self { results: place.join("results"), board }
    }

    fn result(&self, who: &str, name: &str) -> String {
        let path = self.results.join(who).join(name);
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    fn attack(&self) {
        let board = &self.board;
        let runner = board.start();
        board.until("the work waits for approval", || board.phase("t-victim") == "waiting_for_human");
        let main = board.scratch.head("main");
        std::fs::write(board.scratch.dir.path().join("armed"), "").unwrap();
        board.ticket("t-attack", "Attack");
        for who in ATTACKERS {
            board.until(&format!("the {who} has tried everything"), || self.results.join(who).join("over").exists());
        }
        board.until("the attack's own work waits too", || board.phase("t-attack") == "waiting_for_human");

        assert_eq!(board.phase("t-victim"), "waiting_for_human", "{}", runner.log());
        assert_eq!(board.scratch.head("main"), main, "something was merged");
        let snapshot = board.status(&[]);
        assert_eq!(
            snapshot["switches"].as_array().map(Vec::len),
            Some(0),
            "something was paused: {}",
            snapshot["switches"]
        );
        let story = board.ok(&["explain", "t-victim"]);
        for word in ["operator", "paused", "stopped by"] {
            assert!(!story.contains(word), "{word}: {story}");
        }
        assert!(runner.log().contains("a command was refused: this comes from inside a run"), "{}", runner.log());
        for who in ATTACKERS {
            self.refused_everywhere(who);
        }
        // The same words from outside do what they say.
        board.ok(&["approve", "t-victim"]);
        board.until("it is merged for a person", || board.phase("t-victim") == "done");
        runner.end();
    }

    fn refused_everywhere(&self, who: &str) {
        let folder = self.results.join(who);
        let mut commands = 0;
        for entry in std::fs::read_dir(&folder).unwrap().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with("command-") || name.starts_with("copy-") || name == "looks" {
                let said = self.result(who, &name);
                assert!(said.contains("is never an operator") && said.contains("exit 1"), "{who} {name}: {said}");
                commands += 1;
            }
        }
        assert_eq!(commands, 23, "{who} has not tried all");
        let detached = self.result(who, "detached");
        assert_eq!(detached.matches("is never an operator").count(), 3, "{who}: {detached}");
        for way in ["raw", "bare"] {
            self.refused_at_the_socket(who, way);
        }
    }

    fn refused_at_the_socket(&self, who: &str, way: &str) {
        let said = self.result(who, way);
        assert!(said.ends_with("exit 0\n"), "{who} {way}: {said}");
        let raw = self.result(who, &format!("{way}.lines"));
        let (handed_on, direct): (Vec<&str>, Vec<&str>) = raw.lines().partition(|line| line.starts_with("handed on"));
        assert_eq!(direct.len(), 13, "{who} {way}: {raw}");
        for line in direct {
            assert!(
                line.contains(r#""reply":"refused""#) && line.contains("is never an operator"),
                "{who} {way}: {line}"
            );
        }
        assert_eq!(handed_on.len(), 1, "{who} {way}: {raw}");
        assert!(handed_on[0].contains(r#""reply":"refused""#), "{who} {way}: {raw}");
    }
}

const ATTACKERS: [&str; 3] = ["hook", "agent", "gate"];

/// What an attacker wants to know.
fn write_facts(board: &Board) {
    let state = state_dir(board);
    // The real interpreter: what stands for it on somebody's PATH may need that person's home.
    let python = Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output().unwrap();
    let facts = [
        ("BIN", env!("CARGO_BIN_EXE_dirigent").to_owned()),
        ("REPO", board.repo().display().to_string()),
        ("OWNER", board.home().display().to_string()),
        ("SOCKET", find_socket(&state).display().to_string()),
        ("LEDGER", state.join("ledger.db").display().to_string()),
        ("PYTHON", text(&python.stdout).trim().to_owned()),
    ];
    let facts: String = facts.iter().map(|(name, value)| format!("{name}='{value}'\n")).collect();
    std::fs::write(board.scratch.dir.path().join("facts.sh"), facts).unwrap();
}

fn state_dir(board: &Board) -> PathBuf {
    let mark = dirigent::workflow::resolve::path_mark(&board.repo().canonicalize().unwrap());
    board.home().join("repos").join(mark)
}

/// In the state folder, or in the short one where the path would be too long for a socket.
fn find_socket(state: &Path) -> PathBuf {
    let long = state.join("control.sock");
    if long.as_os_str().len() <= 100 {
        return long;
    }
    let mark = state.file_name().unwrap().to_str().unwrap();
    let short = format!("{}.sock", &mark[mark.len() - 8..]);
    dirigent::worker::desk::socket_directory(None).unwrap().join(short)
}

#[test]
fn no_agent_gate_or_hook_can_operate_its_runner() {
    let scene = Scene::new(|board| board);
    scene.attack();
    if !scene.board.ok(&["doctor"]).contains("read-only for runs") {
        println!("not looked at: there is no shield around the ledger here");
        return;
    }
    for who in ATTACKERS {
        assert!(scene.result(who, "ledger").contains("readonly database"), "{}", scene.result(who, "ledger"));
        let others = scene.result(who, "others");
        assert!(others.contains("Read-only file system") && !others.contains("exit 0"), "{others}");
        let moved = scene.result(who, "moved");
        assert!(moved.contains("busy"), "{moved}");
    }
}

#[test]
fn no_agent_gate_or_hook_can_operate_its_runner_without_namespaces() {
    let scene = Scene::new(Board::without_namespaces);
    scene.attack();
    // Nothing but the user's own rights protects the file here; docs/security.md says so.
    for who in ATTACKERS {
        assert!(scene.result(who, "ledger").contains("it can be written"), "{}", scene.result(who, "ledger"));
    }
}

/// An agent that works a board of its own, as this project's tests do: it is the operator there, and its own worker is not.
const NESTING: &str = r#". "$HOME/facts.sh"
echo x > "$DIRIGENT_TICKET_KEY.txt"; git add -A; git commit -qm x
export DIRIGENT_HOME="$HOME/inner-state"
mkdir -p "$HOME/inner/.tickets"
cd "$HOME/inner"
cat > WORKFLOW.md <<'FILE'
---
tracker: {kind: tk}
polling: {interval_ms: 500}
worker: {runtime: exec}
exec: {command: sh ./agent.sh}
rollout: {mode: mutate}
pr: {forge: local}
---
FILE
echo '. "$HOME/facts.sh"; cd "$HOME/inner"; DIRIGENT_HOME="$HOME/inner-state" "$BIN" pause > "$HOME/inner-worker-$DIRIGENT_ATTEMPT" 2>&1
env -i HOME="$HOME" PATH="$PATH" DIRIGENT_HOME="$HOME/inner-state" "$BIN" pause >> "$HOME/inner-worker-$DIRIGENT_ATTEMPT" 2>&1
DIRIGENT_HOME="$OWNER" "$BIN" --workflow "$REPO/WORKFLOW.md" pause >> "$HOME/inner-worker-$DIRIGENT_ATTEMPT" 2>&1
tk blocked "asked"' > agent.sh
printf -- '---\nid: i-1\nstatus: open\ndeps: []\nlinks: []\ncreated: 2026-01-01T00:00:00Z\ntype: task\npriority: 2\n---\n# In\n' > .tickets/i-1.md
git init -q -b main . && git add -A && git -c user.name=S -c user.email=s@example.invalid commit -qm board
"$BIN" run --plain > "$HOME/inner.log" 2>&1 &
tries=0
while ! "$BIN" status i-1 --field phase 2>/dev/null | grep -q blocked && [ $tries -lt 600 ]; do sleep 0.1; tries=$((tries+1)); done
for command in pause resume 'retry i-1' 'stop i-1' stop; do
  "$BIN" $command; echo "$command: $?"
done > "$HOME/inner-operator" 2>&1
wait
cd - > /dev/null
tk done nested
"#;

fn an_agent_operates_a_board_of_its_own(on: impl FnOnce(Board) -> Board) {
    let board = on(Board::new(NESTING, super::support::board::MUTATE));
    write_facts(&board);
    board.ticket("t-1", "Nest");
    board.ok(&["run", "--once"]);
    let read = |name: &str| std::fs::read_to_string(board.scratch.dir.path().join(name)).unwrap_or_default();
    let operator = read("inner-operator");
    for command in ["pause", "resume", "retry i-1", "stop i-1", "stop"] {
        assert!(operator.contains(&format!("{command}: 0\n")), "{command}: {operator}\n{}", read("inner.log"));
    }
    let worker = read("inner-worker-1");
    assert!(worker.matches("is never an operator").count() >= 3, "{worker}\n{}", read("inner.log"));
    assert!(!board.ok(&["status"]).contains("STOPPED"));
}

#[test]
fn a_nested_dirigent_with_a_state_folder_of_its_own_works() {
    an_agent_operates_a_board_of_its_own(|board| board);
}

#[test]
fn a_nested_dirigent_works_without_namespaces_too() {
    an_agent_operates_a_board_of_its_own(Board::without_namespaces);
}

/// An agent without root's rights that wants to write where it may not, and brings every tool for it.
const LIFTING: &str = r#". "$HOME/facts.sh"
repos="$OWNER/repos"
grep CapEff /proc/self/status > "$HOME/lifted"
for attempt in 'mount -o remount,rw,bind' umount 'umount -l'; do
  $attempt "$repos" >> "$HOME/lifted" 2>&1
  unshare --user --map-root-user --mount -- sh -c "$attempt '$repos'; touch '$repos/inner' && echo written" >> "$HOME/lifted" 2>&1
  touch "$repos/outer" >> "$HOME/lifted" 2>&1 && echo written >> "$HOME/lifted"
done
mv "$OWNER" "$OWNER.away" && echo moved >> "$HOME/lifted"
echo kept > "$DIRIGENT_ARTIFACTS/mine" || echo "no artifacts" >> "$HOME/lifted"
cd "$REPO"
env -i HOME="$HOME" PATH="$PATH" DIRIGENT_HOME="$OWNER" setsid "$HOME/dirigent" pause > "$HOME/asked" 2>&1
cd - > /dev/null
touch "$HOME/up"
tries=0
while [ ! -e "$HOME/go" ] && [ $tries -lt 1200 ]; do sleep 0.1; tries=$((tries+1)); done
echo x > x.txt; git add -A; git commit -qm x; tk done x
"#;

#[test]
fn an_ordinary_users_agent_is_no_operator_and_cannot_lift_the_shield() {
    let board = Board::new(LIFTING, super::support::board::MUTATE);
    write_facts(&board);
    let told = text(&board.command_of_an_ordinary_user(&["doctor"]).output().unwrap().stdout);
    if !told.contains("read-only for runs") {
        println!("skipped: ordinary users have no namespaces here");
        return;
    }
    board.ticket("t-1", "Lift it");
    let mut runner = board
        .command_of_an_ordinary_user(&["run", "--once", "--plain"])
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let up = board.scratch.dir.path().join("up");
    board.until("the agent has tried", || up.exists());
    // A person of the same user is heard, also where nobody is root.
    let said = board.command_of_an_ordinary_user(&["message", "t-1", "hello"]).output().unwrap();
    assert!(said.status.success(), "{}", text(&said.stderr));
    std::fs::write(board.scratch.dir.path().join("go"), "").unwrap();
    // What the message holds waits for a person, which is an end as good as the other.
    assert!(matches!(runner.wait().unwrap().code(), Some(0 | 10)));
    let asked = std::fs::read_to_string(board.scratch.dir.path().join("asked")).unwrap();
    assert!(asked.contains("is never an operator"), "{asked}");
    let lifted = std::fs::read_to_string(board.scratch.dir.path().join("lifted")).unwrap();
    assert!(lifted.starts_with("CapEff:\t0000000000000000\n"), "{lifted}");
    for word in ["written", "moved", "no artifacts"] {
        assert!(!lifted.contains(word), "{lifted}");
    }
    assert!(lifted.matches("Read-only file system").count() >= 3, "{lifted}");
    let repos = board.home().join("repos");
    assert!(!repos.join("inner").exists() && !repos.join("outer").exists());
    let kept = std::fs::read_dir(state_dir(&board).join("runs")).unwrap().flatten();
    assert!(kept.map(|run| run.path().join("artifacts/mine")).any(|mine| mine.exists()), "a run keeps its artifacts");
}
