//! `--set key.path=value`.

use dirigent::workflow::{self, Loaded, Overrides, ValueSource, WorkflowError};

use super::Desk;

fn overrides(words: &[&str]) -> Result<Overrides, String> {
    let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    Overrides::parse(&words).map_err(|error| error.to_string())
}

fn load(desk: &Desk, yaml: &str, words: &[&str]) -> Result<Loaded, WorkflowError> {
    let path = desk.dir().join("WORKFLOW.md");
    std::fs::write(&path, format!("---\ntracker: {{kind: tk}}\n{yaml}\n---\n")).unwrap();
    workflow::load_with(&path, &desk.env, &overrides(words).unwrap())
}

#[test]
fn a_value_is_laid_over_the_file_and_named_as_its_source() {
    let desk = Desk::new();
    let words = ["agent.max_turns=3", "agent.max_turns=4", "tracker.required_labels=[a, b]", "polling.interval_ms=5s"];
    let loaded = load(&desk, "agent: {max_turns: 9, max_retries: 2}", &words).unwrap();
    assert_eq!(loaded.settings.agent.max_turns, 4, "the last one wins");
    assert_eq!(loaded.settings.agent.max_retries, 2);
    assert_eq!(loaded.settings.tracker.required_labels, ["a", "b"]);
    let source = |path: &str| loaded.values.iter().find(|value| value.path == path).unwrap().source.clone();
    assert_eq!(source("agent.max_turns"), ValueSource::Set);
    assert_eq!(source("polling.interval_ms"), ValueSource::Set);
    assert_eq!(source("agent.max_retries"), ValueSource::File { line: 3 });
    assert!(workflow::show::plain_text(&loaded.values).contains("4  (--set)"));
}

#[test]
fn it_is_part_of_the_hash_that_doctor_records() {
    let desk = Desk::new();
    let plain = load(&desk, "", &[]).unwrap().hash;
    assert_eq!(plain, load(&desk, "", &[]).unwrap().hash);
    let set = load(&desk, "", &["rollout.mode=merge"]).unwrap().hash;
    assert_ne!(plain, set);
    assert_ne!(set, load(&desk, "", &["rollout.mode=mutate"]).unwrap().hash);
}

#[test]
fn it_is_checked_like_the_file() {
    let desk = Desk::new();
    for (word, sentence) in [
        ("agent.max_turn=3", "--set: `agent.max_turn` is not a key of `agent` (did you mean `agent.max_turns`?)"),
        (
            "agent.max_turns=many",
            "--set: `agent.max_turns` is \"many\"; it must be a whole number from 1 to 4294967295",
        ),
        ("merge.mode.x=1", "`--set merge.mode.x` does not fit: `merge.mode` is not a map in the workflow file"),
        ("pr.repo_slug=x", "--set: `pr.repo_slug` `x` is not a repository (write it as `owner/name`)"),
    ] {
        let error = load(&desk, "merge: {mode: auto}", &[word]).map(|_| ()).unwrap_err();
        assert!(error.to_string().ends_with(sentence), "{word}: {error}");
        assert_eq!(error.class(), "invalid_config");
    }
    // Another spelling is understood here too, and what does nothing is said.
    let loaded = load(&desk, "", &["agent.kind=claude", "server.names=[x]"]).unwrap();
    assert_eq!(loaded.settings.worker.runtime.name(), "claude");
    assert_eq!(
        loaded.brief_warnings(),
        ["--set: `server.names` is not in force: nothing is served (there is no `server.port`)"]
    );
}

#[test]
fn secrets_and_nonsense_are_refused() {
    for word in [
        "tracker.api_key=x",
        "tracker.provider.token=$X",
        "tracker.provider.private_key=x",
        "tracker.provider={token: canary}",
        "polling.webhook.github.secret=x",
        "observability.notify=[{to: slack, url: canary}]",
        "server.token=x",
        "worker.env.KEY=x",
    ] {
        let error = overrides(&[word]).unwrap_err();
        assert!(
            error.contains("would put a secret on the command line") && !error.contains("canary"),
            "{word}: {error}"
        );
    }
    for word in ["agent.max_turns", "=3", "agent=3", "agent..x=3", "agent.routing[0].model=x"] {
        let error = overrides(&[word]).unwrap_err();
        assert!(error.contains("names no value") || error.contains("is not a key's path"), "{word}: {error}");
    }
    assert!(overrides(&["agent.max_turns=[1"]).unwrap_err().contains("cannot be read"));
}
