//! Agents, hooks and gates that look for secrets everywhere they can, on a board where everything happens that can happen.
//! Afterwards everything that was written or told is searched for them.

use std::path::Path;
use std::process::Stdio;

use nix::sys::signal::Signal;

use super::{Board, MERGE, Runner, text};

/// The server's token, which the workflow names.
const SERVER: &str = "cnry/7f>?~Zq+server-secret.0a1b";
/// Variables of the runner that no setting names: only an allow-list keeps them from agents and gates.
const BYSTANDERS: [(&str, &str); 4] = [
    ("GITHUB_TOKEN", "ghp_cnry>?~github/0a1b2c3d4e5f"),
    ("LINEAR_API_KEY", "lin_cnry>?~linear/0a1b2c3d4e5f"),
    ("AWS_SECRET_ACCESS_KEY", "aws+cnry>?~amazon/0a1b2c3d4e5f"),
    ("DATABASE_URL", "postgres://u:cnry>?~base%2F0a1b2c@host/db"),
];

/// Writes down everything that it can see, in files, on its output, on its ticket and in its messages.
const AGENT: &str = r#"look() {
  env | sort
  cat /proc/*/environ 2>/dev/null | tr '\0' '\n'
  cat /proc/*/cmdline 2>/dev/null | tr '\0' '\n'
  cat "$DIRIGENT_PROMPT_FILE"
  tk show 2>&1
}
look > "seen-$DIRIGENT_TICKET_KEY-$DIRIGENT_ATTEMPT.txt"
look
look >&2
tk comment "$(env; env | base64 -w0)"
case "$DIRIGENT_TICKET_KEY-$DIRIGENT_ATTEMPT" in
t-fail-*) [ -e "$HOME/mended" ] || exit 3 ;;
t-ask-1) tk blocked "which of these? $(env)"; exit 0 ;;
t-kill-1) : > "$HOME/hangs"; while :; do sleep 1; done ;;
t-rework-1) touch bad.txt ;;
t-rework-2) rm bad.txt ;;
esac
git add -A
git commit -qm "Do $DIRIGENT_TICKET_KEY"
tk done "$(env)"
"#;

const MORE: &str = "server: {token: $CANARY}
hooks: {after_create: '. $HOME/hook.sh; look > created-$DIRIGENT_TICKET_KEY.txt; look', before_run: '. $HOME/hook.sh; look > hook-$DIRIGENT_TICKET_KEY.txt; look >&2', after_run: '. $HOME/hook.sh; look; look > ran-$DIRIGENT_TICKET_KEY.txt', before_remove: '. $HOME/hook.sh; look'}
gates: {task: ['env; env > gate.txt; env | base64; test ! -e bad.txt']}
orchestration: {phase_store: workpad, comment_min_interval_ms: 0}
";

/// Hooks are the user's own commands and know what no setting names: they look at everything else.
const HOOK: &str = "look() { env | grep -vE '^(GITHUB_TOKEN|LINEAR_API_KEY|AWS_SECRET_ACCESS_KEY|DATABASE_URL)='; }\n";

fn base64(bytes: &[u8], alphabet: &[u8; 64]) -> String {
    let mut out = String::new();
    for chunk in bytes.chunks(3) {
        let word = chunk.iter().fold(0_u32, |word, byte| word << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for place in 0..=chunk.len() {
            out.push(char::from(alphabet[(word >> (18 - 6 * place) & 63) as usize]));
        }
    }
    out
}

/// The secret as it would look: plain, in JSON, with percent signs, and in base64 wherever it begins in a longer text.
fn forms(secret: &str) -> Vec<String> {
    let in_json = serde_json::to_string(secret).unwrap().trim_matches('"').to_owned();
    let percent = |keep: &str, upper: bool| -> String {
        let one = |byte: u8| match char::from(byte) {
            c if c.is_ascii_alphanumeric() || keep.contains(c) => c.to_string(),
            _ if upper => format!("%{byte:02X}"),
            _ => format!("%{byte:02x}"),
        };
        secret.bytes().map(one).collect()
    };
    let mut all = vec![secret.to_owned(), in_json];
    for keep in ["", "-_.~", "-_.!~*'()/:", "-_.~/"] {
        all.extend([percent(keep, true), percent(keep, false)]);
    }
    let letters = *b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut for_urls = letters;
    for_urls[62..].copy_from_slice(b"-_");
    for alphabet in [letters, for_urls] {
        for before in 0..3 {
            let shifted = [&vec![0; before][..], secret.as_bytes()].concat();
            let encoded = base64(&shifted, &alphabet);
            // The first and the last letters depend on what stands beside it.
            let sure = encoded.len() - 2;
            all.push(encoded[if before == 0 { 0 } else { before + 1 }..sure].to_owned());
        }
    }
    all.sort();
    all.dedup();
    all
}

struct Canaries {
    forms: Vec<(String, String)>,
}

impl Canaries {
    fn new() -> Self {
        let secrets = std::iter::once(("CANARY", SERVER)).chain(BYSTANDERS);
        Self {
            forms: secrets.flat_map(|(name, value)| forms(value).into_iter().map(|f| (name.to_owned(), f))).collect(),
        }
    }

    fn found_in(&self, bytes: &[u8]) -> Option<&str> {
        let text = String::from_utf8_lossy(bytes);
        self.forms.iter().find(|(_, form)| text.contains(form.as_str())).map(|(name, _)| name.as_str())
    }

    fn check(&self, what: &str, bytes: &[u8]) {
        if let Some(name) = self.found_in(bytes) {
            panic!("{name} is in {what}");
        }
    }

    /// Every file below a folder.
    fn search(&self, place: &Path) {
        for entry in std::fs::read_dir(place).unwrap().flatten() {
            let kind = entry.file_type().unwrap();
            if kind.is_dir() {
                self.search(&entry.path());
            } else if kind.is_file() {
                // A file may go while it is looked for.
                let bytes = std::fs::read(entry.path()).unwrap_or_default();
                self.check(&entry.path().display().to_string(), &bytes);
            }
        }
    }

    /// Every object of the repository, whatever leads to it; they are compressed, so the files do not show them.
    fn search_objects(&self, board: &Board) {
        let all = board.scratch.git(["cat-file", "--batch-all-objects", "--batch"]);
        assert!(all.contains("an-ordinary-value"), "nobody looked");
        self.check("the repository", all.as_bytes());
    }
}

#[test]
fn the_search_finds_each_form() {
    let canaries = Canaries::new();
    for (_, secret) in std::iter::once(("", SERVER)).chain(BYSTANDERS) {
        let letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        for before in ["", "x", "ab", "NAME=", "user:"] {
            let encoded = base64(format!("{before}{secret} and more").as_bytes(), letters);
            assert!(canaries.found_in(encoded.as_bytes()).is_some(), "{before}{secret}: {encoded}");
            assert!(canaries.found_in(format!("{before}{secret}").as_bytes()).is_some());
        }
        assert!(canaries.found_in(serde_json::json!({"a": secret}).to_string().as_bytes()).is_some());
    }
    assert!(canaries.found_in(b"an ordinary text, cnry").is_none());
}

#[test]
fn no_secret_of_the_server_reaches_an_agent_or_anything_it_leaves() {
    let canaries = Canaries::new();
    let board = Board::new(AGENT, &format!("{MERGE}{MORE}"));
    let text_of_it = board.scratch.read("WORKFLOW.md");
    let text_of_it = text_of_it.replace("runtime: exec}", "runtime: exec, env_pass: [PASSED_*, CANARY]}");
    let text_of_it =
        text_of_it.replace("stop_grace_ms: 1000", "stop_grace_ms: 1000, max_retries: 1, max_retry_backoff_ms: 50");
    board.scratch.write("WORKFLOW.md", &text_of_it);
    std::fs::write(board.scratch.dir.path().join("hook.sh"), HOOK).unwrap();
    for id in ["t-good", "t-fail", "t-ask", "t-rework", "t-kill"] {
        board.ticket(id, &format!("Look around as {id}"));
    }
    let encoded = |before: &str| {
        base64(
            format!("{before}{SERVER}").as_bytes(),
            b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
        )
    };
    let command = |args: &[&str]| {
        let mut command = board.command(args);
        command.env("CANARY", SERVER).envs(BYSTANDERS).env("PASSED_OTHER", "an-ordinary-value");
        command.env("PASSED_PLAIN", format!("Bearer {SERVER}"));
        command.env("PASSED_URL", forms(SERVER).into_iter().find(|form| form.contains("%2F")).unwrap());
        for (name, before) in [("PASSED_B0", ""), ("PASSED_B1", "x:"), ("PASSED_B2", "x")] {
            command.env(name, encoded(before));
        }
        command.env("PASSED_BASIC", format!("Authorization: Basic {}==", encoded("user:")));
        command
    };
    let record = board.scratch.dir.path().join("events.jsonl").display().to_string();
    let start = || {
        let log = board.scratch.dir.path().join("runner.log");
        let file = std::fs::OpenOptions::new().create(true).append(true).open(&log).unwrap();
        let child =
            command(&["run", "--plain", "--record", &record]).stderr(file).stdout(Stdio::null()).spawn().unwrap();
        Runner { child, log }
    };
    let tell = |args: &[&str]| {
        let output = command(args).output().unwrap();
        canaries.check(&format!("what {args:?} tells"), &output.stdout);
        canaries.check(&format!("what {args:?} complains about"), &output.stderr);
        assert!(output.status.success(), "{args:?}: {}{}", text(&output.stdout), text(&output.stderr));
        text(&output.stdout)
    };
    tell(&["doctor"]);
    let runner = start();
    let phase = |id: &str| board.phase(id);
    board.until("one hangs, the others are through", || {
        board.scratch.dir.path().join("hangs").exists()
            && phase("t-good") == "done"
            && phase("t-rework") == "done"
            && phase("t-fail") == "blocked"
            && phase("t-ask") == "blocked"
    });
    tell(&["status"]);
    tell(&["status", "--json"]);
    // With a worker at it, and after an end without a farewell.
    canaries.search(board.scratch.dir.path());
    runner.signal(Signal::SIGKILL);
    drop(runner);
    canaries.search(board.scratch.dir.path());
    let runner = start();
    board.until("the one that hung is done", || phase("t-kill") == "done");
    tell(&["message", "t-ask", "the first one"]);
    board.until("the answered one is done", || phase("t-ask") == "done");
    std::fs::write(board.scratch.dir.path().join("mended"), "").unwrap();
    tell(&["retry", "t-fail"]);
    board.until("the retried one is done", || phase("t-fail") == "done");
    runner.end();

    let bundle = board.scratch.dir.path().join("report.tar").display().to_string();
    tell(&["doctor", "--bundle", &bundle, "--events", &record]);
    for args in [
        &["doctor", "--json"][..],
        &["status", "--json"],
        &["config", "show"],
        &["config", "show", "--json"],
        &["salvage", "list", "--json"],
        &["gc", "--dry-run"],
        &["replay", &record],
        &["tk", "ls", "--json"],
    ] {
        tell(args);
    }
    for id in ["t-good", "t-fail", "t-ask", "t-rework", "t-kill"] {
        assert!(tell(&["logs", id]).contains("an-ordinary-value"), "{id} did not look");
        tell(&["explain", id]);
        tell(&["explain", id, "--json"]);
        tell(&["tk", "show", id]);
    }
    for name in ["seen-t-good-1.txt", "created-t-good.txt", "hook-t-good.txt"] {
        assert!(board.scratch.read(name).contains("PATH="), "nobody looked in {name}");
    }
    assert!(board.scratch.git(["for-each-ref", "refs/dirigent/salvage"]).lines().count() >= 2);
    canaries.search_objects(&board);
    canaries.search(board.scratch.dir.path());
}

/// The last is where nothing else keeps a worker from looking into the runner: no namespaces, and the same user, who is not root.
#[test]
fn a_worker_cannot_read_the_runners_environment_from_proc() {
    look_into_the_runner(|board| board);
    look_into_the_runner(Board::without_namespaces);
}

fn look_into_the_runner(on: impl FnOnce(Board) -> Board) {
    let agent = "for pid in /proc/[0-9]*; do tr '\\0' '\\n' < $pid/environ; done > seen.txt 2>/dev/null
git add -A; git commit -qm looked; tk done x
";
    let board = on(Board::new(agent, MERGE));
    board.ticket("t-1", "Look into the runner");
    let output = board
        .command_of_an_ordinary_user(&["run", "--once", "--plain"])
        .env("GITHUB_TOKEN", BYSTANDERS[0].1)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
    let seen = board.scratch.read("seen.txt");
    assert!(seen.contains("DIRIGENT_RUN_ID="), "it saw nothing, not even itself: {seen}");
    assert!(!seen.contains(BYSTANDERS[0].1), "the runner's environment can be read");
}
