//! `doctor` and the models that the real clients offer.

use super::clients::{Client, Place};
use super::live::installed;
use crate::support::board::{Board, text};

/// What `doctor` says of models, and whether it refuses.
fn doctor(client: Client, agent: &str, change: impl Fn(&Place)) -> Option<(String, bool)> {
    let prefix = installed(client)?;
    let place = Place::new(&prefix, 9);
    let env = place.env(client, false);
    change(&place);
    let board = Board::new("true", "");
    let program = prefix.join("bin").join(client.program()).display().to_string();
    let front = format!("tracker: {{kind: tk}}\npr: {{forge: local}}\n{}", agent.replace("PROGRAM", &program));
    board.scratch.write("WORKFLOW.md", &format!("---\n{front}---\n"));
    let told = board.command(&["doctor"]).envs(env).output().unwrap();
    let words = text(&told.stdout);
    let lines = words.lines().skip_while(|line| !line.contains(" models "));
    Some((lines.take(6).collect::<Vec<_>>().join("\n"), told.status.code() == Some(7)))
}

#[test]
fn pi_refuses_a_model_that_it_does_not_offer_and_lists_the_others() {
    let with = |model: &str| {
        format!("worker: {{runtime: pi}}\npi: {{command: PROGRAM, model: {{provider: mock, model_id: {model}}}}}\n")
    };
    let Some((told, refused)) = doctor(Client::Pi, &with("nope"), |_| {}) else { return };
    assert!(refused && told.contains("`nope` of pi (pi.model) is not offered"), "{told}");
    assert!(told.contains("mock/mock-model"), "{told}");
    let (told, _) = doctor(Client::Pi, &with("mock-model"), |_| {}).unwrap();
    assert!(told.contains("`mock-model` of pi (pi.model) is offered"), "{told}");
}

#[test]
fn codex_refuses_unknown_models_unless_another_provider_may_have_them() {
    let agent = "worker: {runtime: codex}\ncodex: {command: PROGRAM app-server}\nagent: {routing: [{match: {labels: [x]}, model: no-such-model}]}\n";
    let plain = |place: &Place| {
        let config = "check_for_update_on_startup = false\n[analytics]\nenabled = false\n[features]\nplugins = false\napps = false\n";
        std::fs::write(place.path("home/codex/config.toml"), config).unwrap();
    };
    let Some((told, refused)) = doctor(Client::Codex, agent, plain) else { return };
    assert!(refused && told.contains("`no-such-model` of codex (agent.routing[0].model) is not offered"), "{told}");
    assert!(told.contains("one of: "), "{told}");
    // The scripted model is another provider's.
    let (told, _) = doctor(Client::Codex, agent, |_| {}).unwrap();
    assert!(told.contains("warning") && told.contains("is not among those that it names itself"), "{told}");
}

#[test]
fn claude_names_its_models() {
    let agent = "worker: {runtime: claude}\nclaude: {command: PROGRAM, model: sonnet}\n";
    let Some((told, _)) = doctor(Client::Claude, agent, |_| {}) else { return };
    assert!(told.contains("`sonnet` of claude (claude.model) is offered"), "{told}");
}
