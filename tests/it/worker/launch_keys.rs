//! Every key of an agent's own section reaches the agent: its command line, its environment, or its first words.

use std::path::Path;

use dirigent::config::worker::Runtime;
use dirigent::domain::failure::RunFailure;
use dirigent::domain::ids::RunId;
use dirigent::domain::run::RunOutcome;
use dirigent::workflow::{self, Env};

use super::bench::Bench;

/// How the agent was started and what it was told, without what differs from run to run.
async fn recorded(section: &str, more: &str) -> String {
    let mut bench = Bench::new(&[]);
    let fake = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fakes/recorder.sh");
    let record = bench.path("record");
    let own = format!("command: '{} {}'", fake.display(), record.display());
    // What the case says about the section's own keys comes into the same map.
    let (inside, outside) = match more.strip_prefix("agent:") {
        Some(_) => (String::new(), format!("{more}\n")),
        None => (format!(", {more}"), String::new()),
    };
    let text = format!(
        "---\ntracker: {{kind: tk}}\nworker: {{runtime: {section}}}\n{section}: {{{own}{inside}}}\n{outside}---\nDo it\n"
    );
    let file = bench.repo().join("WORKFLOW.md");
    std::fs::write(&file, text).unwrap();
    std::fs::create_dir_all(bench.repo().join(".tickets")).unwrap();
    let env = Env::of([("HOME", bench.dir.path().to_str().unwrap())]);
    bench.settings = workflow::load(&file, &env).unwrap_or_else(|error| panic!("{more}: {error}")).settings;
    let running = bench.start();
    let run = running.run.clone();
    let report = running.report().await;
    let text = std::fs::read_to_string(&record).unwrap_or_else(|error| panic!("{section} {more}: {error}: {report:?}"));
    plain(&text, &bench, &run)
}

fn plain(text: &str, bench: &Bench, run: &RunId) -> String {
    let text = text.replace(&bench.dir.path().display().to_string(), "DIR").replace(run.as_str(), "RUN");
    let is_token = |word: &str| word.len() == 48 && word.chars().all(|c| c.is_ascii_hexdigit());
    text.split('"').map(|word| if is_token(word) { "TOKEN" } else { word }).collect::<Vec<_>>().join("\"")
}

async fn each_changes_something(section: &str, cases: &[&str]) {
    let base = recorded(section, "read_timeout_ms: 60000").await;
    assert!(base.contains("told "), "{section}: {base}");
    assert_eq!(recorded(section, "read_timeout_ms: 60000").await, base, "{section}: two runs are alike");
    for case in cases {
        let more =
            if case.starts_with("agent:") { (*case).to_owned() } else { format!("read_timeout_ms: 60000, {case}") };
        let with = recorded(section, &more).await;
        assert_ne!(with, base, "{section}: {case} changes nothing");
    }
}

#[tokio::test]
async fn every_key_of_codex_reaches_it() {
    let cases = [
        "model: large",
        "reasoning_effort: high",
        "service_tier: flex",
        "approval_policy: untrusted",
        "thread_sandbox: read-only",
        "turn_sandbox_policy: {type: readOnly}",
        "agent: {routing: [{match: {}, model: small}]}",
        "agent: {routing: [{match: {}, model_provider: own}]}",
        "agent: {routing: [{match: {}, thinking_level: low}]}",
    ];
    each_changes_something("codex", &cases).await;
}

/// Bench and home lie below the temporary directory, where Codex cannot have a home.
#[tokio::test]
async fn an_isolated_home_of_codex_is_refused_where_it_cannot_work() {
    let mut bench = Bench::new(&[]);
    bench.settings.worker.runtime = Runtime::Codex;
    bench.settings.codex.isolated_home = true;
    let report = bench.run().await;
    let RunOutcome::Failed { failure: RunFailure::Launch { detail, .. } } = report.outcome else {
        panic!("{report:?}")
    };
    assert!(detail.contains("codex.isolated_home does not work below the temporary directory"), "{detail}");
}

#[tokio::test]
async fn every_key_of_claude_reaches_it() {
    let cases = ["model: large", "permission_mode: plan", "allowed_tools: [Bash]", "hooks: false"];
    each_changes_something("claude", &cases).await;
}

#[tokio::test]
async fn every_key_of_pi_reaches_it() {
    let cases = [
        "model: {provider: own, model_id: large}",
        "model: {model_id: large}",
        "thinking_level: high",
        "session_dir_name: elsewhere",
        "extension_paths: [./README]",
        "disable_extensions: true",
        "disable_themes: true",
        "agent: {routing: [{match: {}, model_provider: own}]}",
    ];
    each_changes_something("pi", &cases).await;
}

#[tokio::test]
async fn every_key_of_acp_reaches_it_and_the_desk_comes_along() {
    each_changes_something("acp", &["model: large", "agent: {routing: [{match: {}, model: small}]}"]).await;
    let told = recorded("acp", "model: large, read_timeout_ms: 60000").await;
    assert!(told.contains(r#""method":"session/set_model""#) && told.contains(r#""modelId":"large""#), "{told}");
    assert!(
        told.contains(r#""args":["desk-mcp"]"#) && told.contains(r#""name":"DIRIGENT_TOKEN","value":"TOKEN""#),
        "{told}"
    );
}
