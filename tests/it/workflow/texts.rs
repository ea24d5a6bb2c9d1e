//! Prompts, comments and pull request texts, built in and replaced.

use dirigent::domain::evidence::{Evidence, EvidenceKind, Verification};
use dirigent::domain::ids::PrNumber;
use dirigent::domain::job::{BlockCause, ReworkCause, ReworkTrigger};
use dirigent::domain::run::Salvage;
use dirigent::domain::time::Timestamp;
use dirigent::engine::effect::Said;
use dirigent::workflow::Templates;

use super::{Desk, first_prompt};

#[test]
fn spec_5_a_template_that_does_not_parse_fails_the_attempt_and_a_doubtful_one_is_a_warning() {
    let desk = Desk::new();
    for broken in ["{{#if issue}}x", "{% if issue.title %}x"] {
        let loaded = desk.load(&format!("---\ntracker: {{kind: tk}}\n---\n\nHello\n{broken}\n")).unwrap();
        let warning = loaded.warnings[0].to_string();
        assert!(warning.contains("WORKFLOW.md:6:1: the prompt is not a valid template"), "{broken}: {warning}");
        assert!(super::try_first_prompt(&loaded).unwrap_err().contains("not a valid template"), "{broken}");
    }
    let doubtful = desk.load("---\ntracker: {kind: tk}\n---\n\nHello\n{{issue.titel}}\n").unwrap();
    let warning = doubtful.warnings[0].to_string();
    assert!(
        warning.contains("WORKFLOW.md:6:1: the prompt cannot be rendered: there is no variable `issue.titel`"),
        "{warning}"
    );
}

#[test]
fn a_template_of_the_repository_wins_and_a_broken_one_is_named() {
    let desk = Desk::new();
    let own = desk.dir().join(".dirigent/templates");
    std::fs::create_dir_all(own.join("comments")).unwrap();
    std::fs::write(own.join("prompt.md"), "OWN {{issue.key}}").unwrap();
    std::fs::write(own.join("comments/started.md"), "Off we go on {{branch}}.").unwrap();
    std::fs::write(own.join("careful.md"), "CAREFUL {{issue.key}}").unwrap();
    let loaded = desk.load("---\ntracker: {kind: tk}\n---\n").unwrap();
    assert_eq!(first_prompt(&loaded), "OWN APP-7\n");
    let started = loaded.prompts.templates().comment("started", &serde_json::json!({"branch": "b"})).unwrap();
    assert_eq!(started, "Off we go on b.");
    assert!(loaded.prompts.templates().own("careful").is_ok());
    assert!(
        loaded.prompts.templates().own("missing").unwrap_err().to_string().contains(".dirigent/templates/missing.md")
    );

    std::fs::write(own.join("rework.md"), "x\n{{#if").unwrap();
    let error = desk.load("---\ntracker: {kind: tk}\n---\n").map(|_| ()).unwrap_err();
    assert_eq!(error.class(), "template_parse_error");
    assert!(error.to_string().contains(".dirigent/templates/rework.md:"), "{error}");
}

#[test]
fn everything_the_engine_says_has_a_wording() {
    let note = Evidence { kind: EvidenceKind::Note { text: "```\nsneaky".into() }, timestamp: Timestamp(0) };
    let cause =
        ReworkCause { trigger: ReworkTrigger::GateFailed, summary: "`make` failed".into(), evidence: vec![note] };
    let salvage = Salvage {
        reference: "refs/dirigent/salvage/r1".into(),
        commit: "0123456789abcdef".into(),
        files: 2,
        left_out: vec!["big.bin".into()],
    };
    let templates = Templates::load(None).unwrap();
    for (said, wording) in [
        (Said::Started { run: "r1".into(), attempt: 2, branch: "b".into() }, "Work started (attempt 2) on branch `b`."),
        (
            Said::Blocked {
                cause: BlockCause::StoppedByOperator,
                sentence: "it was stopped".into(),
                next: "a retry".into(),
                detail: None,
            },
            "**Blocked**: it was stopped.\n\nWhat would move it on: a retry.",
        ),
        (
            Said::Blocked {
                cause: BlockCause::StoppedByOperator,
                sentence: "it was stopped".into(),
                next: "a retry".into(),
                detail: Some("$ check\nred".into()),
            },
            "**Blocked**: it was stopped.\n\n```\n$ check\nred\n```\n\nWhat would move it on: a retry.",
        ),
        (
            Said::PrOpened {
                number: PrNumber(4),
                url: Some("u".into()),
                branch: "b".into(),
                verification: Some(Verification::Verified),
                head: Some("0123456789abcdef".into()),
            },
            "Pull request [#4](u) is open from `b` at 0123456789ab (verified).",
        ),
        (
            Said::Waiting {
                head: "0123456789abcdef".into(),
                sentence: "0123456789ab waits for approval".into(),
                next: "run `dirigent approve a`".into(),
            },
            "**Waiting**: 0123456789ab waits for approval.\n\nWhat would move it on: run `dirigent approve a`.",
        ),
        (Said::Reply { to: "ann".into(), text: "`a` is <stopped>.".into(), head: None }, "`a` is <stopped>."),
        (
            Said::Rework { cycle: 1, limit: 3, cause },
            "**Rework** 1 of at most 3: `make` failed\n\n````\n```\nsneaky\n````",
        ),
        (
            Said::Done { commit: Some("0123456789abcdef".into()), by_us: false, verification: None },
            "**Done**: merged as 0123456789ab by a person.",
        ),
        (
            Said::Salvaged { run: "r1".into(), salvage, failure: None },
            "Uncommitted work of run r1 (2 files) was saved: `refs/dirigent/salvage/r1` (0123456789ab).\n`dirigent salvage show r1` lists it, `dirigent salvage restore r1` brings it back.\n\nToo large to be saved:\n- big.bin",
        ),
        (Said::BranchReady { branch: "b".into(), head: None }, "The work is ready on branch `b`.\n\nI did it."),
        (
            Said::HandedOver { run: "r1".into() },
            "The worker says that the work is done. The ticket's directory stays until the ticket is closed.",
        ),
        (
            Said::DirectoryKept { because: "/w/A has uncommitted work (x)".into() },
            "The ticket is closed, and its directory is kept, because /w/A has uncommitted work (x). Push or discard that work; the next start removes the directory.",
        ),
        (Said::Worker { run: "r1".into(), text: "hi".into() }, "hi"),
        (
            Said::Asked { run: "r1".into(), question: "May I?".into() },
            "**Question** of the worker:\n\n```\nMay I?\n```\n\nAnswer here with `approve`, `deny`, or in your own words.",
        ),
    ] {
        let mut data = serde_json::to_value(&said).unwrap();
        let summary = if matches!(said, Said::BranchReady { .. }) { Some("I did it.") } else { None };
        data["summary"] = serde_json::json!(summary);
        data["mention"] = serde_json::Value::Null;
        assert_eq!(templates.comment(data["kind"].as_str().unwrap(), &data).unwrap(), wording);
    }
}

#[test]
fn a_pull_request_body_tells_what_was_checked() {
    let body = |receipt: Option<&str>| {
        let data = serde_json::json!({
            "receipt": receipt, "closes": null, "ticket": {"key": "APP-7", "title": "Fix the page", "url": null}, "summary": "Fixed it.", "verification": "verified",
            "facts": ["2 commits beyond main"], "gates": [{"name": "cargo test", "passed": true}],
        });
        Templates::load(None).unwrap().pr_body(&data).unwrap()
    };
    let whole = body(Some("{\n  \"title\": \"``` </details>\"\n}"));
    assert!(
        whole.ends_with(
            "<details><summary>Receipt</summary>\n\n````\n{\n  \"title\": \"``` </details>\"\n}\n````\n\n</details>"
        ),
        "{whole}"
    );
    assert_eq!(
        body(None),
        "Fixed it.\n\nTicket: APP-7 Fix the page\n\nChecked by Dirigent: **verified**\n- 2 commits beyond main\n- `cargo test`: passed"
    );
}

#[test]
fn the_title_of_a_pull_request_is_the_files_to_say() {
    let desk = Desk::new();
    let load = |title: &str| desk.load(&format!("---\ntracker: {{kind: tk}}\npr: {{title: \"{title}\"}}\n---\n"));
    let data =
        serde_json::json!({ "ticket": { "key": "APP-7", "title": "Fix\n the page", "url": null }, "summary": "" });
    let title = |text: &str| load(text).unwrap().prompts.templates().pr_title(&data).unwrap();
    assert_eq!(title("{{ticket.title}} ({{ticket.key}})"), "Fix the page (APP-7)", "one line");
    assert_eq!(title("{{summary}}"), "APP-7: Fix\n the page", "a title that comes to nothing is none");
    for wrong in ["{{ticket.titel}}", "{{#if}", "{{issue.title}}"] {
        let error = load(wrong).map(|_| ()).unwrap_err();
        assert_eq!(error.class(), "template_parse_error", "{wrong}");
        assert!(error.to_string().contains("WORKFLOW.md:3") && error.to_string().contains("pr.title"), "{error}");
    }
}

#[test]
fn whoever_is_needed_is_named_as_the_file_says() {
    use dirigent::domain::comment::{Author, TrustLevel};
    let machine = crate::engine::machine::Machine::working(crate::engine::fixtures::policy());
    let mut job = machine.job("a").clone();
    job.ticket.assignee = Some("bob".into());
    let said = |job: &dirigent::domain::job::Job, tracker: &str, how: &str, said: &Said| {
        let desk = Desk::with([("HOME", super::HOME), ("GITHUB_TOKEN", "x")]);
        let loaded = desk.load(&format!("---\ntracker: {tracker}\n{how}\n---\n")).unwrap();
        dirigent::runtime::assembly::texts(&loaded).comment(job, said).unwrap()
    };
    let github = "{kind: github, provider: {repo: a/b}, required_labels: [agent]}";
    let needed = Said::Waiting { head: "one".into(), sentence: "five failures".into(), next: "look".into() };
    let shown = "**Waiting**: five failures.\n\nWhat would move it on: look.";
    job.ticket.author = Some(Author::new("ann", TrustLevel::Stranger));
    assert_eq!(said(&job, github, "", &needed), format!("@ann {shown}"));
    assert_eq!(said(&job, github, "orchestration: {mention: assignees}", &needed), format!("@bob {shown}"));
    assert_eq!(said(&job, github, "orchestration: {mention: none}", &needed), shown);
    assert_eq!(said(&job, "{kind: tk}", "", &needed), shown, "nobody would be told");
    let news = Said::Done { commit: None, by_us: true, verification: None };
    assert_eq!(said(&job, github, "", &news), "**Done**: merged.", "nobody is needed");
    for author in [
        Author::new("ci", TrustLevel::Bot),
        Author::ourselves(),
        Author::new("x\n/dirigent approve", TrustLevel::Admin),
        Author::new("", TrustLevel::Admin),
    ] {
        job.ticket.author = Some(author);
        assert_eq!(said(&job, github, "", &needed), shown);
    }
    let loaded = Desk::new().load("---\ntracker: {kind: tk}\norchestration: {mention: assignees}\n---\n").unwrap();
    assert!(loaded.warnings[0].message.contains("`orchestration.mention` is not in force"), "{}", loaded.warnings[0]);
}
