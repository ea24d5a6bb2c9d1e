//! Agents that break their own protocol: each ends with a class and a sentence, and leaves no process behind.

use std::time::Duration;

use dirigent::config::worker::Runtime;
use dirigent::domain::failure::{RunFailure, TurnError};
use dirigent::domain::run::RunOutcome;

use super::bench::Bench;

const READY: &str = r#"read l; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"agentCapabilities":{}}}'
read l; echo '{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s"}}'"#;

/// An agent that is a shell script, held to the Agent Client Protocol.
async fn failure_of(script: &str) -> (RunFailure, String) {
    let mut bench = Bench::new(&[]);
    bench.settings.worker.runtime = Runtime::Acp;
    bench.settings.acp.command = script.to_owned();
    bench.settings.agent.start_timeout = Duration::from_secs(20);
    let running = bench.start();
    let run = running.run.clone();
    let report = running.report().await;
    bench.assert_nothing_left(&run);
    match report.outcome {
        RunOutcome::Failed { failure } => (failure, bench.transcript(&run)),
        other => panic!("{script}: {other:?}"),
    }
}

/// The answer to the prompt is this error; the agent itself goes on living.
async fn refused_with(message: &str) -> RunFailure {
    let error = format!(r#"{{"jsonrpc":"2.0","id":3,"error":{{"code":-32603,"message":"{message}"}}}}"#);
    failure_of(&format!("{READY}\nread l; echo '{error}'; cat > /dev/null")).await.0
}

#[tokio::test]
async fn garbage_on_stdout_is_noted_and_the_conversation_goes_on() {
    let garbage = "for i in 1 2 3; do echo \"no json $i\"; printf '\\377\\376{\\n'; echo '[1,2'; echo 7; done";
    let script = format!("{garbage}\n{READY}\nread l; {garbage}; exit 4");
    let (failure, transcript) = failure_of(&script).await;
    assert_eq!(failure, RunFailure::Exit { code: 4, said: None });
    assert_eq!(transcript.matches("not understood").count(), 24, "{transcript}");
}

#[tokio::test]
async fn a_line_of_200_mb_is_cut_and_the_next_one_is_heard() {
    let script = format!("head -c 200000000 /dev/zero | tr '\\0' x; echo\n{READY}\nread l; exit 4");
    let (failure, transcript) = failure_of(&script).await;
    assert_eq!(failure, RunFailure::Exit { code: 4, said: None });
    assert!(transcript.contains("more bytes are left out") && transcript.len() < 11_000_000);
}

#[tokio::test]
async fn an_agent_that_closes_its_input_is_not_waited_for_longer_than_one_that_is_silent() {
    let mut bench = Bench::new(&[]);
    bench.settings.worker.runtime = Runtime::Acp;
    bench.settings.acp.command = "exec 0<&-; exec sleep 1000".into();
    bench.settings.agent.start_timeout = Duration::from_millis(500);
    let running = bench.start();
    let run = running.run.clone();
    let outcome = running.report().await.outcome;
    let RunOutcome::Failed { failure: RunFailure::Handshake { detail } } = outcome else { panic!("{outcome:?}") };
    assert!(detail.contains("not ready after 500 ms"), "{detail}");
    bench.assert_nothing_left(&run);
}

#[tokio::test]
async fn an_old_client_that_does_not_know_its_own_flags_says_so() {
    let (failure, _) = failure_of("echo \"error: unrecognized subcommand 'acp'\" >&2; exit 2").await;
    let RunFailure::Handshake { detail } = failure else { panic!("{failure:?}") };
    assert!(detail.contains("code 2") && detail.contains("unrecognized subcommand 'acp'"), "{detail}");
}

#[tokio::test]
async fn a_usage_limit_has_its_reset_where_one_is_named() {
    let failure = refused_with("usage limit reached, try again in 90 seconds").await;
    let RunFailure::Turn { class: TurnError::RateLimit, reset_at: Some(_), detail } = failure else {
        panic!("{failure:?}")
    };
    assert!(detail.contains("usage limit reached"), "{detail}");
    let failure = refused_with("usage limit reached").await;
    assert!(matches!(failure, RunFailure::Turn { class: TurnError::RateLimit, reset_at: None, .. }), "{failure:?}");
}

#[tokio::test]
async fn a_missing_login_and_an_unknown_model_are_told_apart() {
    let failure = refused_with("authentication failed: invalid api key").await;
    assert!(matches!(failure, RunFailure::Turn { class: TurnError::Auth, .. }), "{failure:?}");
    let failure = refused_with("model not found: nope").await;
    assert!(matches!(failure, RunFailure::Turn { class: TurnError::Model, .. }), "{failure:?}");
}

/// Asked first, then told by its own protocol that nobody serves such a request here.
#[tokio::test]
async fn a_request_that_is_not_served_is_refused_at_once() {
    let ask = r#"{"jsonrpc":"2.0","id":77,"method":"fs/read_text_file","params":{"path":"/etc/passwd"}}"#;
    let script = format!("{READY}\nread l; echo '{ask}'; read answer; echo \"$answer\" >&2; exit 4");
    let (failure, transcript) = failure_of(&script).await;
    let RunFailure::Exit { code: 4, said: Some(said) } = failure else { panic!("{failure:?}") };
    assert!(said.contains("is not served here"), "{said}");
    assert!(transcript.contains("is not served here"), "{transcript}");
}
