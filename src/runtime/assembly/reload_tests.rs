//! Whatever the adapters are built from needs a restart when it changes.

use serde_json::{Value, json};

use super::super::adapters::{github_settings, workspace_config};
use super::super::github::board_settings;
use super::super::linear::linear_config;
use super::*;
use crate::config::tracker::{Provider, TrackerKind};
use crate::domain::phase::Phase;
use crate::workflow::schema::json_schema;
use crate::workflow::watch::needs_restart;
use crate::workspace::WorkspaceConfig;

/// What the adapters get, as far as it depends on the settings.
fn built_from(settings: &Settings) -> String {
    let shown = |secret: &Option<SecretString>| secret.as_ref().map(|secret| secret.expose_secret().to_owned());
    let Settings { tracker, pr, .. } = settings;
    // The base is named with each call.
    let workspace = WorkspaceConfig { base: String::new(), ..workspace_config(settings) };
    let forge = (forge_kind(settings) == ForgeKind::Github).then(|| {
        let secrets = [&pr.provider.token, &pr.provider.private_key].map(shown);
        format!("{:?} {:?} {secrets:?} {}", github_settings(settings), pr.provider, pr.git_address())
    });
    let provider = &tracker.provider;
    let board = match tracker.kind {
        TrackerKind::Github => {
            let Provider { api_url, app_id, installation_id, .. } = provider;
            let secrets = [&provider.token, &provider.private_key].map(shown);
            format!("{:?} {api_url:?} {app_id:?} {installation_id:?} {secrets:?}", board_settings(settings))
        }
        TrackerKind::Linear => format!("{:?} {:?}", linear_config(settings), shown(&provider.api_key)),
        TrackerKind::Tk | TrackerKind::Memory => format!("{:?}", provider.dir),
    };
    format!("{workspace:?} {forge:?} {board}")
}

/// Every value that is no map, or an empty one, by its JSON pointer.
fn leaves(at: &str, value: &Value, out: &mut Vec<String>) {
    match value {
        Value::Object(entries) if !entries.is_empty() => {
            for (key, value) in entries {
                leaves(&format!("{at}/{key}"), value, out);
            }
        }
        _ => out.push(at.to_owned()),
    }
}

/// Every word that the schema allows somewhere.
fn words(schema: &Value, out: &mut Vec<Value>) {
    match schema {
        Value::Object(entries) => {
            for (key, value) in entries {
                match (key.as_str(), value) {
                    ("const", Value::String(_)) => out.push(value.clone()),
                    ("enum", Value::Array(listed)) => out.extend(listed.iter().filter(|one| one.is_string()).cloned()),
                    _ => words(value, out),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| words(item, out)),
        _ => {}
    }
}

/// Settings of every kind of board and forge, in which every part of an adapter is there.
fn samples(home: &std::path::Path) -> Vec<Settings> {
    let mut plain = Settings::default();
    plain.workspace.repo = home.to_owned();
    plain.workspace.root = home.join("root");
    plain.orchestration.states.insert(Phase::Implementing, "Doing".to_owned());
    plain.pr.forge = Some(ForgeKind::Local);
    let mut github = plain.clone();
    github.tracker.kind = TrackerKind::Github;
    github.pr.forge = Some(ForgeKind::Github);
    github.pr.repo_slug = Some("ada/code".to_owned());
    github.pr.provider.token = Some(SecretString::from("pr"));
    github.tracker.provider.repo = Some("ada/code".to_owned());
    github.tracker.provider.token = Some(SecretString::from("board"));
    github.tracker.provider.state_labels.insert("open".to_owned(), "todo".to_owned());
    let mut project = github.clone();
    project.tracker.provider.state_labels.clear();
    project.tracker.provider.project = Some(crate::config::tracker::ProjectBoard { number: 1, ..Default::default() });
    let mut linear = plain.clone();
    linear.tracker.kind = TrackerKind::Linear;
    linear.tracker.provider.api_key = Some(SecretString::from("board"));
    linear.tracker.provider.team_key = Some("ENG".to_owned());
    vec![plain, github, project, linear]
}

#[test]
fn whatever_the_adapters_are_built_from_needs_a_restart() {
    let mut candidates = vec![
        json!("x"),
        json!(7),
        json!(true),
        json!(false),
        json!(["x"]),
        json!({ "number": 7 }),
        json!({ "x": "y" }),
    ];
    words(&json_schema(), &mut candidates);
    let home = tempfile::tempdir().unwrap();
    let mut ignored = Vec::new();
    let mut noticed = 0;
    for sample in samples(home.path()) {
        let plain = serde_json::to_value(&sample).unwrap();
        // Read back, because secrets are masked where they are written.
        let before: Settings = serde_json::from_value(plain.clone()).unwrap();
        let (built, adapters) = (built_from(&before), adapters_of(&before));
        let mut keys = Vec::new();
        leaves("", &plain, &mut keys);
        for key in keys {
            let changed = candidates.iter().find_map(|candidate| {
                let mut changed = plain.clone();
                let place = changed.pointer_mut(&key).filter(|value| *value != candidate)?;
                *place = candidate.clone();
                serde_json::from_value::<Settings>(changed).ok()
            });
            let Some(changed) = changed.filter(|changed| built_from(changed) != built) else { continue };
            match adapters_of(&changed) != adapters || !needs_restart(&before, &changed).is_empty() {
                true => noticed += 1,
                false => ignored.push(format!("{key} on {}", sample.tracker.kind.name())),
            }
        }
    }
    assert!(ignored.is_empty(), "accepted and then ignored: {ignored:#?}");
    assert!(noticed > 40, "only {noticed} keys change an adapter");
}
