//! The same conversation on every kind of board comes to the same: a question, a remark during a run, one while it waits, a
//! stranger, a declined remark, one that is overruled, and an approval by head. Asserted from outside, on what people can see.

use std::time::{Duration, Instant};

use dirigent::domain::comment::{Author, TrustLevel};
use dirigent::domain::ids::TicketId;

use super::support::board::{Board, PATIENCE, Runner};
use super::support::driven::{Driven, Play, Stage};

/// What people can do on a board, and what they can see there.
trait Scene {
    fn says(&self, text: &str);
    /// Answers whether the board knows strangers at all.
    fn stranger_says(&self, text: &str) -> bool;
    fn field(&self, name: &str) -> String;
    /// How many comments on the ticket contain this.
    fn comments_with(&self, text: &str) -> usize;
    fn landed(&self) -> usize;

    fn until(&self, what: &str, holds: impl Fn() -> bool)
    where
        Self: Sized,
    {
        let began = Instant::now();
        while !holds() {
            let seen: Vec<String> = ["phase", "sentence", "next"].iter().map(|name| self.field(name)).collect();
            assert!(began.elapsed() < PATIENCE, "never came about: {what}\n{seen:?}");
            std::thread::sleep(Duration::from_millis(30));
        }
    }

    fn stands(&self, phase: &str, reason: &str) -> bool {
        self.field("phase") == phase && self.field("reason") == reason
    }
}

/// Plays it, and answers with what could be seen on the way.
fn play(scene: &impl Scene) -> Vec<String> {
    let mut seen = Vec::new();
    let mut see = |what: &str| {
        seen.push(format!(
            "{what}: {} ({}), {} runs, {} merged",
            scene.field("phase"),
            scene.field("reason"),
            scene.field("attempts"),
            scene.landed()
        ));
    };
    scene.until("it asks", || scene.stands("blocked", "worker_asked"));
    see("a question");

    scene.says("Call it b.");
    scene.until("it goes on", || scene.field("attempts") == "2" && scene.field("phase") == "implementing");
    scene.says("Mind the gap.");
    // A moment before that, the words stand as they were said.
    let dealt_with = || scene.field("sentence").contains("a run has dealt with");
    scene.until("what a run made of it waits for somebody", || {
        scene.stands("waiting_for_human", "remarks") && dealt_with()
    });
    see("a remark during a run");
    assert!(!scene.field("next").contains("--anyway"), "{}", scene.field("next"));

    let head = scene.field("head");
    if scene.stranger_says(&format!("/dirigent approve {head} --anyway")) {
        scene.says("/dirigent explain");
        scene.until("it was read", || scene.comments_with("is at ") == 1);
        assert_eq!(scene.field("approved_head"), "null", "by a stranger");
    }
    see("a stranger");

    scene.says("Wait for me.");
    scene.until("it holds", || scene.field("sentence").contains("words of"));
    scene.says(&format!("/dirigent approve {head}"));
    scene.until("it is refused", || scene.comments_with("was not carried out") == 1);
    see("a remark while it waits");

    scene.says("/dirigent reject use another name");
    scene.until("it is reworked, and declined", || {
        scene.field("attempts") == "3" && scene.stands("waiting_for_human", "remarks")
    });
    see("declined");

    let head = scene.field("head");
    scene.says("Hold on.");
    scene.until("it holds", || scene.field("sentence").contains("words of"));
    scene.says(&format!("/dirigent approve {head}"));
    scene.until("it is refused", || scene.comments_with("was not carried out") == 2);
    see("refused");
    // The beginning of its name is enough.
    scene.says(&format!("/dirigent approve {} --anyway", &head[..9]));
    scene.until("it is merged", || scene.field("phase") == "done");
    see("overruled and approved by head");
    seen
}

/// A board in memory.
struct InMemory {
    driven: Driven,
    _runtime: tokio::runtime::Runtime,
    person: Author,
}

impl InMemory {
    fn new(shared: bool) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let mut stage = Stage::new(&["t-1"], Play::Converses);
        stage.policy.merge.require_human_approval = true;
        stage.policy.orchestration.workpad = true;
        let person = Author::new("ann", TrustLevel::Admin);
        if shared {
            stage.board.board.share_account(person.clone());
        }
        let driven = runtime.block_on(stage.start());
        Self { driven, _runtime: runtime, person }
    }

    fn id() -> TicketId {
        TicketId::new("t-1")
    }
}

impl Scene for InMemory {
    fn says(&self, text: &str) {
        self.driven.stage.board.board.say(&Self::id(), self.person.clone(), text);
    }

    fn stranger_says(&self, text: &str) -> bool {
        self.driven.stage.board.board.say(&Self::id(), Author::new("mallory", TrustLevel::Stranger), text);
        true
    }

    fn field(&self, name: &str) -> String {
        let shown = self.driven.job("t-1").map(|job| serde_json::to_value(job).unwrap()).unwrap_or_default();
        plain(&shown[name])
    }

    fn comments_with(&self, text: &str) -> usize {
        let ticket = self.driven.stage.board.board.ticket(&Self::id()).unwrap();
        ticket.known_comments().iter().filter(|comment| comment.body.contains(text)).count()
    }

    fn landed(&self) -> usize {
        self.driven.stage.forge.forge.merges().len()
    }
}

fn plain(value: &serde_json::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

const AGENT: &str = r#"set -eu
case $DIRIGENT_ATTEMPT in
1) tk blocked 'which name?'; exit 0 ;;
2) until grep -q gap new.txt 2>/dev/null; do tk show --new > new.txt; sleep 0.05; done; rm new.txt ;;
*) for remark in $(grep -o 'remark r[0-9a-f]*' "$DIRIGENT_PROMPT_FILE" | cut -d' ' -f2); do
     tk answer "$remark" declined 'it has to be so'
   done ;;
esac
echo "$DIRIGENT_ATTEMPT" > work.txt
git add -A
git commit -qm "work $DIRIGENT_ATTEMPT"
tk done 'it is done'
"#;

/// Ticket files and the built binary.
struct InFiles {
    board: Board,
    runner: Runner,
}

impl InFiles {
    fn new() -> Self {
        let more = "rollout: {mode: merge}\npr: {forge: local}\nmerge: {mode: auto, no_checks: pass}\n";
        let board = Board::new(AGENT, more);
        board.ticket("t-1", "Work");
        let runner = board.start();
        Self { board, runner }
    }
}

impl Scene for InFiles {
    fn says(&self, text: &str) {
        self.board.ok(&["tk", "add-note", "t-1", text]);
    }

    fn stranger_says(&self, _: &str) -> bool {
        false
    }

    fn field(&self, name: &str) -> String {
        let output = self.board.run(&["status", "t-1", "--json"]);
        let shown: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        plain(&shown[name])
    }

    fn comments_with(&self, text: &str) -> usize {
        self.board.ticket_text("t-1").matches(text).count()
    }

    fn landed(&self) -> usize {
        let log = self.board.scratch.git(["log", "--format=%B", "main"]);
        log.lines().filter(|line| *line == "Ticket: t-1").count()
    }
}

const OUTCOME: [&str; 6] = [
    "a question: blocked (worker_asked), 1 runs, 0 merged",
    "a remark during a run: waiting_for_human (remarks), 2 runs, 0 merged",
    "a stranger: waiting_for_human (remarks), 2 runs, 0 merged",
    "a remark while it waits: waiting_for_human (remarks), 2 runs, 0 merged",
    "declined: waiting_for_human (remarks), 3 runs, 0 merged",
    "refused: waiting_for_human (remarks), 3 runs, 0 merged",
];
const END: &str = "overruled and approved by head: done (merged), 3 runs, 1 merged";

fn expected() -> Vec<String> {
    OUTCOME.iter().chain([&END]).map(|line| (*line).to_owned()).collect()
}

#[test]
fn people_and_their_words_on_a_board_with_an_account_of_our_own() {
    let scene = InMemory::new(false);
    assert_eq!(play(&scene), expected());
    let reactions = scene.driven.stage.board.board.reactions();
    assert_eq!(reactions.len(), 5, "one for each command: {reactions:?}");
}

#[test]
fn people_and_their_words_on_a_board_where_we_use_a_persons_account() {
    let scene = InMemory::new(true);
    assert_eq!(play(&scene), expected());
}

#[test]
fn people_and_their_words_in_ticket_files() {
    let scene = InFiles::new();
    let seen = play(&scene);
    assert_eq!(seen, expected(), "{}", scene.runner.log());
    scene.runner.end();
}
