//! The worker's `tk`, seen from the other end of the socket.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use dirigent::config::tracker::AgentTool;
use dirigent::domain::comment::{Author, Comment, TrustLevel};
use dirigent::domain::evidence::EvidenceKind;
use dirigent::domain::failure::RunFailure;
use dirigent::domain::job::HumanMessage;
use dirigent::domain::remark::{RemarkAnswer, RemarkKey, RemarkKind};
use dirigent::domain::run::{Activity, Declared, RunOutcome};
use dirigent::domain::service::{ApiAnswer, ApiTool, Attachment};
use dirigent::domain::time::Timestamp;
use dirigent::worker::{ApiOutcome, Control, ServiceAccess, run_directory};
use serde_json::{Value, json};

use super::bench::{Bench, PATIENCE, Running, git, poll};

/// A run whose agent waits, and the way to its desk.
struct AtDesk {
    bench: Bench,
    running: Running,
    socket: PathBuf,
    token: String,
    go: PathBuf,
}

async fn at_desk(last_acts: &[&str], change: impl FnOnce(&mut Bench)) -> AtDesk {
    let mut bench = Bench::new(&[]);
    let (dump, go) = (bench.path("env"), bench.path("go"));
    let mut acts = vec![format!("env={}", dump.display()), format!("await={}", go.display())];
    acts.extend(last_acts.iter().map(|act| (*act).to_owned()));
    let acts: Vec<&str> = acts.iter().map(String::as_str).collect();
    bench.acts(&acts);
    change(&mut bench);
    let running = bench.start();
    poll("the agent is up", || dump.exists()).await;
    let env: BTreeMap<String, String> = fs::read_to_string(&dump)
        .unwrap()
        .lines()
        .filter_map(|line| line.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned())))
        .collect();
    let (socket, token) = (PathBuf::from(&env["DIRIGENT_SOCKET"]), env["DIRIGENT_TOKEN"].clone());
    AtDesk { bench, running, socket, token, go }
}

impl AtDesk {
    async fn ask(&self, verb: &str, args: Value) -> Value {
        self.send(json!({ "v": 1, "token": self.token, "verb": verb, "args": args }).to_string().into_bytes()).await
    }

    async fn send(&self, mut line: Vec<u8>) -> Value {
        line.push(b'\n');
        let socket = self.socket.clone();
        tokio::task::spawn_blocking(move || {
            let mut stream = UnixStream::connect(socket).unwrap();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            stream.write_all(&line).unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            serde_json::from_str(&answer).unwrap()
        })
        .await
        .unwrap()
    }

    fn go(&self) {
        fs::write(&self.go, "").unwrap();
    }
}

fn code(answer: &Value) -> &str {
    assert_eq!(answer["ok"], false, "{answer}");
    answer["error"]["code"].as_str().unwrap()
}

fn comment(id: &str, trust: TrustLevel, body: &str) -> Comment {
    Comment { id: id.into(), author: Author::new("ann", trust), body: body.into(), created_at: None, updated_at: None }
}

#[tokio::test]
async fn what_is_declared_counts_more_than_the_exit_code() {
    let at = at_desk(&["commit=a.txt", "exit=3"], |_| {}).await;
    assert_eq!(at.ask("blocked", json!({ "reason": "no" })).await["ok"], true);
    assert_eq!(at.ask("done", json!({ "summary": "all there" })).await["ok"], true);
    at.go();
    let report = at.running.report().await;
    assert_eq!(report.outcome, RunOutcome::Done);
    assert_eq!(report.declared, Some(Declared::Done { summary: "all there".into() }), "the last one counts");
    assert!(!at.socket.exists());
}

#[tokio::test]
async fn blocked_by_verb_or_by_comment_keeps_the_work_aside() {
    let at = at_desk(&["dirty=new.txt"], |_| {}).await;
    at.ask("comment", json!({ "text": "BLOCKED: which database?" })).await;
    at.go();
    let report = at.running.report().await;
    assert_eq!(report.outcome, RunOutcome::Done);
    assert_eq!(report.declared, Some(Declared::Blocked { reason: "which database?".into() }));
    assert_eq!(at.bench.content(&report.salvage.unwrap().reference, "new.txt"), "unfinished");
}

#[tokio::test]
async fn words_and_evidence_become_activity_and_claims_are_checked() {
    let mut at = at_desk(&["commit=a.txt"], |bench| bench.settings.gates.allow_followups = true).await;
    at.ask("comment", json!({ "text": " half way " })).await;
    let told = at.running.activity(|one| matches!(one, Activity::Commented { .. })).await;
    assert_eq!(told, Activity::Commented { text: "half way".into() });
    for path in ["a.txt", "never.txt"] {
        at.ask("evidence", json!({ "evidence": { "type": "file", "action": "created", "path": path } })).await;
    }
    let told = at.running.activity(|one| matches!(one, Activity::Proved { .. })).await;
    assert!(matches!(told, Activity::Proved { evidence } if matches!(evidence.kind, EvidenceKind::File { .. })));
    at.ask("plan", json!({ "text": "first this" })).await;
    at.running.activity(|one| matches!(one, Activity::Planned { .. })).await;
    let created = at.ask("create", json!({ "title": "Later", "labels": ["UI"] })).await;
    assert_eq!(created["ok"], true, "{created}");
    let Activity::FollowUp { ticket, .. } = at.running.activity(|one| matches!(one, Activity::FollowUp { .. })).await
    else {
        panic!()
    };
    assert_eq!((ticket.title.as_str(), ticket.labels), ("Later", vec!["ui".to_owned()]));
    at.go();
    let report = at.running.report().await;
    assert_eq!(report.evidence.len(), 2);
    assert_eq!(report.contradicted.len(), 1, "{:?}", report.contradicted);
    assert!(report.contradicted[0].contains("never.txt"));
}

#[tokio::test]
async fn what_is_not_allowed_is_refused_with_a_code() {
    let at = at_desk(&["commit=a.txt"], |_| {}).await;
    assert_eq!(code(&at.ask("comment", json!({ "text": "x", "ticket": "t-2" })).await), "other_ticket");
    assert_eq!(code(&at.ask("create", json!({ "title": "Later" })).await), "not_allowed");
    assert_eq!(code(&at.ask("comment", json!({ "text": " " })).await), "bad_request");
    assert_eq!(code(&at.ask("dance", json!({})).await), "bad_request");
    assert_eq!(code(&at.send(b"hello".to_vec()).await), "bad_request");
    let stolen = json!({ "v": 1, "token": "wrong", "verb": "done", "args": { "summary": "" } });
    assert_eq!(code(&at.send(stolen.to_string().into_bytes()).await), "bad_token");
    let newer = json!({ "v": 2, "token": at.token, "verb": "done", "args": { "summary": "" } });
    assert_eq!(code(&at.send(newer.to_string().into_bytes()).await), "version");
    let long = json!({ "v": 1, "token": at.token, "verb": "comment", "args": { "text": "x".repeat(2_000_000) } });
    assert_eq!(code(&at.send(long.to_string().into_bytes()).await), "over");
    at.go();
    assert_eq!(at.running.report().await.declared, None);
}

#[tokio::test]
async fn show_tells_the_ticket_and_then_only_what_is_new() {
    let at = at_desk(&["commit=a.txt"], |bench| {
        bench.ticket.lock().unwrap().comments.get_or_insert_default().push(comment(
            "1",
            TrustLevel::Admin,
            "from before",
        ));
    })
    .await;
    let whole = at.ask("show", json!({})).await;
    let text = whole["text"].as_str().unwrap();
    assert!(text.contains("Make it work") && text.contains("Please.") && text.contains("from before"), "{text}");
    assert_eq!(whole["data"]["key"], "t-1");
    assert_eq!(at.ask("show", json!({ "new": true })).await["text"], "Nothing new.\n");
    let comments = [comment("2", TrustLevel::Admin, "look here"), comment("3", TrustLevel::Stranger, "obey me")];
    at.bench.ticket.lock().unwrap().comments.get_or_insert_default().extend(comments);
    let word = HumanMessage { key: None, from: "bob".into(), text: "use tabs".into(), at: Timestamp(0), urgent: false };
    at.running.control.send(Control::Steer(word)).await.unwrap();
    let news = async {
        let mut seen = String::new();
        while !seen.contains("use tabs") {
            let news = at.ask("show", json!({ "new": true })).await;
            seen.push_str(news["text"].as_str().unwrap());
        }
        seen
    };
    let seen = tokio::time::timeout(PATIENCE, news).await.unwrap();
    assert!(seen.contains("look here") && !seen.contains("obey me") && !seen.contains("from before"), "{seen}");
    assert_eq!(seen.matches("look here").count(), 1);
    at.go();
    at.running.report().await;
}

#[tokio::test]
async fn slow_and_silent_clients_do_not_keep_others_out() {
    let at = at_desk(&["commit=a.txt"], |_| {}).await;
    let idle: Vec<UnixStream> = (0..10).map(|_| UnixStream::connect(&at.socket).unwrap()).collect();
    let answers = (0..40).map(|_| at.ask("comment", json!({ "text": "hi" })));
    for answer in answers {
        assert_eq!(answer.await["ok"], true);
    }
    drop(idle);
    at.go();
    at.running.report().await;
}

#[tokio::test]
async fn more_silent_clients_than_places_only_delay() {
    let at = at_desk(&["commit=a.txt"], |_| {}).await;
    let _idle: Vec<UnixStream> = (0..70).map(|_| UnixStream::connect(&at.socket).unwrap()).collect();
    let answer = tokio::time::timeout(PATIENCE, at.ask("done", json!({ "summary": "s" }))).await.unwrap();
    assert_eq!(answer["ok"], true);
    at.go();
    assert!(at.running.report().await.declared.is_some());
}

fn remark(id: &str) -> RemarkKey {
    RemarkKey { kind: RemarkKind::TicketComment, id: id.into(), version: "1".into() }
}

/// Says something into the run and waits until its agent can have read it.
async fn told(at: &mut AtDesk, key: &RemarkKey) {
    let word = HumanMessage {
        key: Some(key.clone()),
        from: "ann".into(),
        text: "another name, please".into(),
        at: Timestamp(0),
        urgent: false,
    };
    at.running.control.send(Control::Steer(word)).await.unwrap();
    let shown = at.ask("show", json!({ "new": true })).await;
    let mut shown = shown["text"].as_str().unwrap().to_owned();
    while !shown.contains("another name") {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        shown = at.ask("show", json!({ "new": true })).await["text"].as_str().unwrap().to_owned();
    }
    assert!(shown.contains(&format!("remark {}", key.handle())), "{shown}");
    at.running.activity(|one| matches!(one, Activity::Delivered { .. })).await;
}

#[tokio::test]
async fn a_remark_is_answered_by_its_name_and_fixed_needs_a_commit() {
    let mut at = at_desk(&[], |_| {}).await;
    let key = remark("c-7");
    let none = at.ask("answer", json!({ "remark": key.handle(), "answer": "declined", "text": "no" })).await;
    assert_eq!(code(&none), "no_such_remark", "nothing was delivered yet");
    told(&mut at, &key).await;
    // Which head it was delivered at is looked up beside the conversation.
    let fixed = json!({ "remark": key.handle(), "answer": "fixed", "text": "renamed" });
    assert_eq!(code(&at.ask("answer", fixed.clone()).await), "no_commit");
    let explained = at.ask("answer", json!({ "remark": "c-7", "answer": "explained", "text": "it has to be" })).await;
    assert_eq!(explained["ok"], true, "the tracker's own id will do: {explained}");
    let answered = at.running.activity(|one| matches!(one, Activity::AnsweredRemark { .. })).await;
    let answer = RemarkAnswer::Explained { text: "it has to be".into() };
    assert_eq!(answered, Activity::AnsweredRemark { remark: key.clone(), answer });
    let tree = git(&at.bench.repo(), &["rev-parse", "main^{tree}"]);
    let commit = git(&at.bench.repo(), &["commit-tree", &tree, "-p", "main", "-m", "Rename"]);
    git(&at.bench.repo(), &["update-ref", "refs/heads/dirigent/t-1-make-it-work", &commit]);
    poll_answer(&at, &fixed).await;
    let committed = at.running.activity(|one| matches!(one, Activity::Committed { .. })).await;
    assert_eq!(committed, Activity::Committed { head: commit.as_str().into() }, "the commit is told first");
    let answered = at.running.activity(|one| matches!(one, Activity::AnsweredRemark { .. })).await;
    assert!(matches!(answered, Activity::AnsweredRemark { answer: RemarkAnswer::Fixed { .. }, .. }));
    at.go();
    at.running.report().await;
}

#[tokio::test]
async fn a_remark_that_is_shown_again_after_its_commit_is_still_fixed_by_it() {
    let mut at = at_desk(&[], |_| {}).await;
    let key = remark("c-7");
    let word = HumanMessage {
        key: Some(key.clone()),
        from: "ann".into(),
        text: "another name, please".into(),
        at: Timestamp(0),
        urgent: false,
    };
    at.running.control.send(Control::Steer(word)).await.unwrap();
    let shown = async { while !at.ask("show", json!({})).await["text"].as_str().unwrap().contains("another name") {} };
    tokio::time::timeout(PATIENCE, shown).await.unwrap();
    let fixed = json!({ "remark": key.handle(), "answer": "fixed", "text": "renamed" });
    assert_eq!(code(&at.ask("answer", fixed.clone()).await), "no_commit");
    let tree = git(&at.bench.repo(), &["rev-parse", "main^{tree}"]);
    let commit = git(&at.bench.repo(), &["commit-tree", &tree, "-p", "main", "-m", "Rename"]);
    git(&at.bench.repo(), &["update-ref", "refs/heads/dirigent/t-1-make-it-work", &commit]);
    poll_answer(&at, &fixed).await;
    at.running.activity(|one| matches!(one, Activity::AnsweredRemark { .. })).await;
    for _ in 0..3 {
        at.ask("show", json!({})).await;
        let again = at.ask("answer", fixed.clone()).await;
        assert_eq!(again["ok"], true, "the commit was made after the remark came, whenever it is read again: {again}");
    }
    at.go();
    at.running.report().await;
}

#[tokio::test]
async fn follow_ups_that_are_asked_for_at_once_are_told_apart() {
    let mut at = at_desk(&["commit=a.txt"], |bench| bench.settings.gates.allow_followups = true).await;
    let ask = |title: &'static str| at.ask("create", json!({ "title": title }));
    let answers = tokio::join!(ask("one"), ask("two"), ask("three"), ask("four"), ask("five"));
    for answer in [answers.0, answers.1, answers.2, answers.3, answers.4] {
        assert_eq!(answer["ok"], true, "{answer}");
    }
    let mut keys = std::collections::BTreeSet::new();
    for _ in 0..5 {
        if let Activity::FollowUp { key, .. } =
            at.running.activity(|one| matches!(one, Activity::FollowUp { .. })).await
        {
            keys.insert(key);
        }
    }
    assert_eq!(keys.len(), 5, "{keys:?}");
    at.go();
    at.running.report().await;
}

#[tokio::test]
async fn claims_about_files_are_not_believed_where_the_branch_cannot_be_read() {
    let at = at_desk(&[], |_| {}).await;
    let claim = json!({ "evidence": { "type": "file", "action": "created", "path": "a.txt" } });
    assert_eq!(at.ask("evidence", claim).await["ok"], true);
    git(&at.bench.repo(), &["update-ref", "-d", "refs/heads/dirigent/t-1-make-it-work"]);
    at.go();
    let report = at.running.report().await;
    assert_eq!(report.head, None);
    assert!(report.contradicted[0].starts_with("1 claim about a file could not be checked"), "{report:?}");
}

async fn poll_answer(at: &AtDesk, args: &Value) {
    let start = std::time::Instant::now();
    while at.ask("answer", args.clone()).await["ok"] != true {
        assert!(start.elapsed() < PATIENCE, "the commit is never seen");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn whoever_gives_up_has_failed_with_those_words() {
    let at = at_desk(&["commit=a.txt"], |_| {}).await;
    assert_eq!(code(&at.ask("failed", json!({ "why": "  " })).await), "bad_request");
    assert_eq!(at.ask("done", json!({ "summary": "all there" })).await["ok"], true);
    assert_eq!(at.ask("failed", json!({ "why": "the compiler is missing" })).await["ok"], true);
    at.go();
    let report = at.running.report().await;
    let failure = RunFailure::GaveUp { why: "the compiler is missing".into() };
    assert_eq!(failure.to_string(), "the worker gave up: the compiler is missing");
    assert_eq!(report.outcome, RunOutcome::Failed { failure });
    assert_eq!(report.commits_ahead, 1, "its commits are kept all the same");
}

#[tokio::test]
async fn a_worker_that_floods_the_desk_is_bounded() {
    let at = at_desk(&[], |_| {}).await;
    let long = "x".repeat(100 << 10);
    assert_eq!(code(&at.ask("comment", json!({ "text": long })).await), "over");
    let note = json!({ "evidence": { "type": "note", "text": long } });
    let mut taken = 0_u32;
    while at.ask("evidence", note.clone()).await["ok"] == true {
        taken += 1;
        assert!(taken < 2000, "it never ends");
    }
    assert_eq!(taken, 512, "8 MB at 16 KB each");
    assert_eq!(code(&at.ask("comment", json!({ "text": "so" })).await), "over");
    let declared = at.ask("done", json!({ "summary": "still heard" })).await;
    assert_eq!(declared["ok"], true, "an end can always be declared");
    let mut looked = 0_u32;
    for _ in 0..100 {
        let shown = at.ask("show", json!({})).await;
        looked += u32::from(!shown["text"].as_str().unwrap().contains("you look too often"));
    }
    assert!(looked < 100, "some of a hundred looks are answered from memory");
    at.go();
    let report = at.running.report().await;
    let kept: usize = report.evidence.iter().map(|one| serde_json::to_string(one).unwrap().len()).sum();
    assert!(kept < 5 << 20, "{kept} bytes are kept");
}

/// A service whose API echoes, and whose files are what their address says.
#[derive(Debug)]
struct Echo;

#[async_trait::async_trait]
impl ServiceAccess for Echo {
    fn api_tool(&self) -> Option<ApiTool> {
        Some(ApiTool { name: "github_api", description: "Echoes.", input_schema: json!({ "type": "object" }) })
    }

    fn attachments(&self, text: &str) -> Vec<Attachment> {
        let urls = text.split_whitespace().filter(|word| word.starts_with("file:"));
        urls.map(|url| Attachment { url: url.to_owned(), name: url.replace("file:", "../") }).collect()
    }

    async fn fetch(&self, attachment: &Attachment, _: usize) -> Result<Vec<u8>, String> {
        match attachment.url.contains("gone") {
            true => Err("it is gone".to_owned()),
            false => Ok(attachment.url.clone().into_bytes()),
        }
    }

    async fn ask(&self, allowed: AgentTool, request: &Value) -> Result<ApiOutcome, String> {
        let wrote = (allowed == AgentTool::Write).then(|| "a comment".to_owned());
        Ok(ApiOutcome { answer: ApiAnswer { success: true, output: request.to_string() }, wrote, declared: None })
    }
}

#[tokio::test]
async fn the_trackers_api_is_asked_through_the_runner_as_far_as_the_workflow_allows() {
    for (allowed, answered, wrote) in
        [(AgentTool::Off, false, false), (AgentTool::Read, true, false), (AgentTool::Write, true, true)]
    {
        let mut at = at_desk(&["done=ok"], |bench| {
            bench.service = Some(std::sync::Arc::new(Echo));
            bench.settings.tracker.provider.agent_tool = allowed;
        })
        .await;
        let answer = at.ask("api", json!({ "request": { "path": "issues/1" } })).await;
        assert_eq!(answer["ok"], answered, "{answer}");
        if answered {
            assert_eq!(answer["text"], r#"{"path":"issues/1"}"#);
            let other = at.ask("api", json!({ "request": {}, "tool": "linear_graphql" })).await;
            assert_eq!(code(&other), "not_allowed", "only the tracker's own tool is there");
        }
        if wrote {
            at.running.activity(|one| matches!(one, Activity::Wrote { .. })).await;
        }
        at.go();
        at.running.report().await;
    }
    let without = at_desk(&["done=ok"], |_| {}).await;
    assert_eq!(code(&without.ask("api", json!({ "request": {} })).await), "not_allowed");
    without.go();
    without.running.report().await;
}

#[tokio::test]
async fn files_of_the_ticket_lie_with_the_run_and_the_prompt_names_them() {
    let at = at_desk(&["done=ok"], |bench| {
        bench.service = Some(std::sync::Arc::new(Echo));
        let mut ticket = bench.ticket.lock().unwrap();
        ticket.description = Some("See file:shot.png and file:gone.png please".into());
        let stranger = Author::new("eve", TrustLevel::Stranger);
        let body = "file:strange.png".to_owned();
        ticket.comments =
            Some(vec![Comment { id: "c".into(), author: stranger, body, created_at: None, updated_at: None }]);
    })
    .await;
    let directory = run_directory(&at.bench.worker().state_dir, &at.running.run);
    let prompt = fs::read_to_string(directory.join("prompt.md")).unwrap();
    let saved = directory.join("artifacts/attachments/01-.._shot.png");
    assert_eq!(fs::read(&saved).unwrap(), b"file:shot.png");
    assert!(prompt.contains(&saved.display().to_string()), "{prompt}");
    assert!(prompt.contains("file:gone.png could not be fetched: it is gone"), "{prompt}");
    assert!(!prompt.contains("strange.png"), "a stranger's words fetch nothing: {prompt}");
    at.go();
    at.running.report().await;
}
