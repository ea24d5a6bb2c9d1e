use std::collections::BTreeMap;
use std::ffi::OsString;
use std::time::Duration;

use dirigent::workspace::hooks::{Hook, run_hook};

fn environment() -> BTreeMap<OsString, OsString> {
    let path = std::env::var_os("PATH").unwrap();
    BTreeMap::from([("PATH".into(), path), ("GREETING".into(), "hello".into())])
}

#[tokio::test]
async fn spec_9_a_hook_runs_in_the_workspace_with_the_given_environment_only() {
    let dir = tempfile::tempdir().unwrap();
    let script = "pwd -P; echo $GREETING; echo ${HOME:-no home} >&2";
    let output =
        run_hook(Hook::BeforeRun, script, dir.path(), &environment(), Duration::from_secs(60), &[]).await.unwrap();
    assert_eq!(output.stdout, format!("{}\nhello\n", dir.path().canonicalize().unwrap().display()));
    assert_eq!(output.stderr, "no home\n");
}

#[tokio::test]
async fn spec_9_a_failing_hook_says_why() {
    let dir = tempfile::tempdir().unwrap();
    let script = "echo it broke >&2; exit 3";
    let error = run_hook(Hook::AfterCreate, script, dir.path(), &environment(), Duration::from_secs(60), &[]).await;
    let error = error.unwrap_err().to_string();
    assert!(error.starts_with("hook `after_create` failed in ") && error.ends_with("it broke"), "{error}");
    assert!(Hook::AfterCreate.is_fatal() && Hook::BeforeRun.is_fatal());
    assert!(!Hook::AfterRun.is_fatal() && !Hook::BeforeRemove.is_fatal());
}

#[tokio::test]
async fn spec_9_a_hanging_hook_is_stopped() {
    let dir = tempfile::tempdir().unwrap();
    let script = "echo waiting >&2; sleep 600 | cat";
    let error = run_hook(Hook::BeforeRun, script, dir.path(), &environment(), Duration::from_millis(1500), &[]).await;
    let error = error.unwrap_err().to_string();
    assert!(error.contains("ran longer than hooks.timeout_ms (1500)") && error.ends_with("waiting"), "{error}");
}
