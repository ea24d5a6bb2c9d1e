//! Whole runs of the worker with the real clients: a ticket's text in, a commit out, and the ways in which people interfere.

use std::time::Duration;

use dirigent::config::agent::{AskDefault, OnRequest, RequestRule};
use dirigent::config::pi::PiModel;
use dirigent::config::worker::Runtime;
use dirigent::domain::evidence::EvidenceKind;
use dirigent::domain::failure::RunFailure;
use dirigent::domain::ids::SessionId;
use dirigent::domain::job::HumanMessage;
use dirigent::domain::run::{Activity, Declared, RunOutcome, RunReport, StopReason};
use dirigent::domain::time::Timestamp;
use dirigent::engine::permit::EffectKind;
use dirigent::worker::{Control, Inbox, WorkerEvent};
use secrecy::SecretString;
use serde_json::json;
use tokio::sync::mpsc;

use super::clients::{Client, Place};
use super::live::{installed, sleepers};
use super::model_server::ModelServer;
use super::scenarios::STEERING;
use crate::worker::bench::{Bench, Running, allowed, git, poll};

const BRANCH: &str = "dirigent/t-1-make-it-work";

struct Scene {
    bench: Bench,
    prompt: &'static str,
    model: ModelServer,
    place: Place,
    _logs: tempfile::TempDir,
}

impl Scene {
    /// `None`, with a word about it, where the client is not installed.
    fn set(client: Client, prompt: &'static str, asks: bool) -> Option<Scene> {
        let prefix = installed(client)?;
        let logs = tempfile::tempdir().unwrap();
        let model = ModelServer::start(&logs.path().join("requests.jsonl"));
        let place = Place::new(&prefix, model.port);
        let mut bench = Bench::new(&[]);
        let settings = &mut bench.settings;
        settings.agent.max_turns = 1;
        settings.agent.stop_grace = Duration::from_secs(5);
        settings.codex.timeouts.read = Duration::from_secs(60);
        let program = prefix.join("bin").join(client.program()).display().to_string();
        match client {
            Client::Codex => {
                settings.worker.runtime = Runtime::Codex;
                settings.codex.command = format!("{program} app-server");
                settings.codex.approval_policy = asks.then(|| json!("untrusted"));
            }
            Client::Claude => {
                settings.worker.runtime = Runtime::Claude;
                settings.claude.command = program;
                settings.claude.timeouts = settings.codex.timeouts;
            }
            Client::Pi => {
                settings.worker.runtime = Runtime::Pi;
                settings.pi.command = program;
                settings.pi.timeouts = settings.codex.timeouts;
                settings.pi.model = Some(PiModel { provider: Some("mock".into()), model_id: "mock-model".into() });
            }
            Client::Opencode => {
                settings.worker.runtime = Runtime::Acp;
                settings.acp.command = format!("{program} acp");
                settings.acp.timeouts = settings.codex.timeouts;
            }
        }
        let env = place.env(client, asks);
        if client == Client::Pi && asks {
            settings.pi.extension_paths = vec![place.path("ask.ts")];
        }
        let env = env.into_iter().filter(|(name, _)| name != "PATH");
        settings.worker.env.extend(env.map(|(name, value)| (name, SecretString::from(value))));
        Some(Scene { bench, prompt, model, place, _logs: logs })
    }

    fn start(&self) -> Running {
        let mut worker = self.bench.worker();
        worker.prompts = self.bench.prompts(self.prompt, "");
        self.bench.start_with(worker)
    }

    async fn run(&self) -> RunReport {
        self.start().report().await
    }
}

async fn tool_open(running: &mut Running) {
    running.activity(|activity| matches!(activity, Activity::Agent { tool_open_since: Some(_), .. })).await;
}

async fn commits(client: Client) {
    let Some(scene) = Scene::set(client, "Do it.", false) else { return };
    let running = scene.start();
    let run = running.run.clone();
    let report = running.report().await;
    assert_eq!(report.outcome, RunOutcome::Done, "{client:?}: {}", scene.bench.transcript(&run));
    assert_eq!(git(&scene.bench.repo(), &["log", "-1", "--format=%s", BRANCH]), "Add hello.txt");
    assert_eq!(report.commits_ahead, 1);
    assert!(report.session.is_some());
    scene.bench.assert_nothing_left(&run);
}

async fn stops(client: Client) {
    let prompt = "MODEL:shell for i in 1 2 3; do sleep 600; echo $i; done";
    let Some(scene) = Scene::set(client, prompt, false) else { return };
    let mut running = scene.start();
    let run = running.run.clone();
    tool_open(&mut running).await;
    running.control.send(Control::Stop(StopReason::Operator)).await.unwrap();
    let report = running.report().await;
    assert_eq!(report.outcome, RunOutcome::Killed { reason: StopReason::Operator }, "{client:?}");
    scene.bench.assert_nothing_left(&run);
}

/// An urgent word ends the running command while the conversation goes on with the word.
async fn is_interrupted(client: Client) {
    let prompt = "MODEL:shell for i in 1 2 3; do sleep 600; echo $i; done";
    let Some(mut scene) = Scene::set(client, prompt, false) else { return };
    scene.bench.settings.agent.max_turns = 2;
    let mut running = scene.start();
    let run = running.run.clone();
    let WorkerEvent::Started { worktree, .. } = running.started().await else { unreachable!("a start was wanted") };
    tool_open(&mut running).await;
    let go = scene.place.path("go");
    let text = format!("{STEERING}\nMODEL:shell until [ -e {} ]; do sleep 0.2; done\nMODEL:text Back.", go.display());
    let word = HumanMessage { key: None, from: "ann".into(), text, at: Timestamp(0), urgent: true };
    running.control.send(Control::Steer(word)).await.unwrap();
    poll("the model is told", || scene.model.heard().contains(STEERING)).await;
    poll("the interrupted command ends", || sleepers(&worktree) == 0).await;
    std::fs::write(&go, "").unwrap();
    let report = running.report().await;
    assert_eq!(report.turns, 2, "{client:?}: {:?} {}", report.outcome, scene.bench.transcript(&run));
    scene.bench.assert_nothing_left(&run);
}

async fn denies(client: Client) {
    let prompt = "MODEL:shell touch written.txt && git add written.txt && git commit -qm Written\nMODEL:text Tried it.";
    let Some(mut scene) = Scene::set(client, prompt, true) else { return };
    scene.bench.settings.agent.deny = vec![RequestRule { tool: "*".into(), pattern: Some("*written.txt*".into()) }];
    let report = scene.run().await;
    assert_eq!((report.turns, report.commits_ahead), (1, 0), "{client:?}");
    assert!(report.salvage.is_none(), "{client:?}: the denied command wrote something");
    assert!(scene.model.heard().contains("written.txt"));
}

const WRITES_WHEN_ALLOWED: &str = "MODEL:shell touch asked.txt && git add asked.txt && git -c user.name=m -c user.email=m@example.invalid commit -qm Asked\nMODEL:text Tried it.";

/// Asked on the ticket and answered by a person, the very turn goes on.
async fn asks_a_person(client: Client, reply: &str, allowed: bool) {
    let Some(mut scene) = Scene::set(client, WRITES_WHEN_ALLOWED, true) else { return };
    scene.bench.settings.agent.on_request = OnRequest::Ask;
    scene.bench.settings.agent.ask_timeout = Duration::from_secs(600);
    let mut running = scene.start();
    let run = running.run.clone();
    running
        .activity(|activity| matches!(activity, Activity::Asked { question } if question.contains("asked.txt")))
        .await;
    let word = HumanMessage { key: None, from: "ann".into(), text: reply.into(), at: Timestamp(0), urgent: false };
    running.control.send(Control::Steer(word)).await.unwrap();
    let report = running.report().await;
    let transcript = scene.bench.transcript(&run);
    assert_eq!((report.turns, report.commits_ahead), (1, u32::from(allowed)), "{client:?}: {transcript}");
    scene.bench.assert_nothing_left(&run);
}

/// Nobody answers: `agent.ask_default` does, in the same turn.
async fn asks_nobody(client: Client, default: AskDefault) {
    let Some(mut scene) = Scene::set(client, WRITES_WHEN_ALLOWED, true) else { return };
    scene.bench.settings.agent.on_request = OnRequest::Ask;
    scene.bench.settings.agent.ask_timeout = Duration::from_millis(300);
    scene.bench.settings.agent.ask_default = default;
    let report = scene.run().await;
    let allowed = u32::from(default == AskDefault::Approve);
    assert_eq!((report.turns, report.commits_ahead), (1, allowed), "{client:?}: {:?}", report.outcome);
}

/// Where nobody may be asked, the run ends with the question.
async fn may_not_ask(client: Client) {
    let Some(mut scene) = Scene::set(client, WRITES_WHEN_ALLOWED, true) else { return };
    scene.bench.settings.agent.on_request = OnRequest::Fail;
    let report = scene.run().await;
    let RunOutcome::Failed { failure: RunFailure::InputRequired { question } } = &report.outcome else {
        panic!("{client:?}: {:?}", report.outcome)
    };
    assert!(question.contains("asked.txt"), "{client:?}: {question}");
    assert_eq!(report.commits_ahead, 0, "{client:?}");
}

async fn is_steered(client: Client) {
    let prompt = "MODEL:shell for i in 1 2 3 4 5 6; do sleep 0.5; echo $i; done\nMODEL:text Slowly done.";
    let Some(scene) = Scene::set(client, prompt, false) else { return };
    let mut running = scene.start();
    tool_open(&mut running).await;
    let word = HumanMessage { key: None, from: "ann".into(), text: STEERING.into(), at: Timestamp(0), urgent: false };
    running.control.send(Control::Steer(word)).await.unwrap();
    let _ = running.report().await;
    assert!(scene.model.heard().contains(STEERING), "{client:?}: the model was never told");
}

/// A quiet agent is spoken to in its running turn.
#[tokio::test]
async fn a_nudge_reaches_a_quiet_codex() {
    let prompt = "MODEL:shell for i in 1 2 3 4 5 6; do sleep 0.5; echo $i; done\nMODEL:text Slowly done.";
    let Some(scene) = Scene::set(Client::Codex, prompt, false) else { return };
    let mut running = scene.start();
    tool_open(&mut running).await;
    running.control.send(Control::Nudge).await.unwrap();
    let _ = running.report().await;
    assert!(scene.model.heard().contains("Nothing has been heard from you for a while"), "the model was never told");
}

/// The worker's `tk` is found and heard from inside the agent's own shell. The sandbox of Codex lets no socket through: there the
/// same words are tools.
async fn declares(client: Client) {
    let prompt = match client {
        Client::Codex => {
            "MODEL:shell command -v tk\nMODEL:call ticket_done {\"summary\":\"It is done\"}\nMODEL:text Said so."
        }
        _ => "MODEL:shell tk done 'It is done'\nMODEL:text Said so.",
    };
    let Some(scene) = Scene::set(client, prompt, false) else { return };
    let running = scene.start();
    let run = running.run.clone();
    let report = running.report().await;
    let transcript = scene.bench.transcript(&run);
    assert!(matches!(report.declared, Some(Declared::Done { .. })), "{client:?}: {transcript}");
    assert!(!transcript.contains("\"exitCode\":1"), "{client:?}: no tk in {transcript}");
}

async fn begins_anew(client: Client) {
    let Some(scene) = Scene::set(client, "Do it.", false) else { return };
    let mut order = scene.bench.order();
    order.resume = Some(SessionId::new("01999999-0000-4000-8000-000000000000"));
    let run = order.run.clone();
    let (_control, heard) = mpsc::channel(64);
    let (teller, mut events) = mpsc::channel(64);
    tokio::spawn(async move { while events.recv().await.is_some() {} });
    let worker = scene.bench.worker();
    let report = worker.run(allowed(EffectKind::StartRun), order, Inbox::new(heard), teller).await;
    assert_eq!(report.outcome, RunOutcome::Done, "{client:?}: {}", scene.bench.transcript(&run));
    assert_eq!(report.commits_ahead, 1, "{client:?}");
}

macro_rules! end_to_end {
    ($($client:ident $module:ident)*) => {$(
        mod $module {
            use super::*;

            #[tokio::test]
            async fn a_ticket_becomes_a_commit() {
                commits(Client::$client).await;
            }

            #[tokio::test]
            async fn the_worker_declares_its_result() {
                declares(Client::$client).await;
            }

            #[tokio::test]
            async fn a_stop_ends_the_running_command() {
                stops(Client::$client).await;
            }

            #[tokio::test]
            async fn an_urgent_word_ends_the_running_command() {
                is_interrupted(Client::$client).await;
            }

            #[tokio::test]
            async fn a_denied_command_does_not_run() {
                denies(Client::$client).await;
            }

            #[tokio::test]
            async fn a_persons_yes_resumes_the_very_turn() {
                asks_a_person(Client::$client, "Approve.", true).await;
            }

            #[tokio::test]
            async fn a_persons_no_resumes_the_very_turn() {
                asks_a_person(Client::$client, "deny: not in this release", false).await;
            }

            #[tokio::test]
            async fn a_question_that_nobody_answers_has_a_default() {
                asks_nobody(Client::$client, AskDefault::Approve).await;
                asks_nobody(Client::$client, AskDefault::Deny).await;
            }

            #[tokio::test]
            async fn a_question_that_may_not_be_asked_ends_the_run() {
                may_not_ask(Client::$client).await;
            }

            #[tokio::test]
            async fn a_lost_conversation_begins_anew() {
                begins_anew(Client::$client).await;
            }
        }
    )*};
}

end_to_end! { Codex codex Claude claude Pi pi Opencode opencode }

#[tokio::test]
async fn codex_is_steered() {
    is_steered(Client::Codex).await;
}

#[tokio::test]
async fn claude_is_steered() {
    is_steered(Client::Claude).await;
}

#[tokio::test]
async fn pi_is_steered() {
    is_steered(Client::Pi).await;
}

/// An opinion is asked for in the middle of a turn, and the person's words are what the model is told.
async fn asks_for_an_opinion(client: Client, prompt: &'static str) {
    let Some(mut scene) = Scene::set(client, prompt, true) else { return };
    scene.bench.settings.agent.on_request = OnRequest::Ask;
    scene.bench.settings.agent.ask_timeout = Duration::from_secs(600);
    if client == Client::Codex {
        scene.bench.settings.codex.command.push_str(" --enable default_mode_request_user_input");
        scene.bench.settings.codex.approval_policy = None;
    }
    let mut running = scene.start();
    let run = running.run.clone();
    running.activity(|activity| matches!(activity, Activity::Asked { question } if question.contains("colour"))).await;
    let text = "Ultramarine".to_owned();
    let word = HumanMessage { key: None, from: "ann".into(), text, at: Timestamp(0), urgent: false };
    running.control.send(Control::Steer(word)).await.unwrap();
    let report = running.report().await;
    assert_eq!(report.turns, 1, "{client:?}: {}", scene.bench.transcript(&run));
    assert!(scene.model.heard().contains("Ultramarine"), "{client:?}: {}", scene.bench.transcript(&run));
}

#[tokio::test]
async fn claude_asks_for_an_opinion() {
    let prompt = "MODEL:call AskUserQuestion {\"questions\":[{\"question\":\"Which colour?\",\"header\":\"Colour\",\"multiSelect\":false,\"options\":[{\"label\":\"Red\",\"description\":\"warm\"},{\"label\":\"Blue\",\"description\":\"cold\"}]}]}\nMODEL:text Thanks.";
    asks_for_an_opinion(Client::Claude, prompt).await;
}

#[tokio::test]
async fn codex_asks_for_an_opinion() {
    let prompt = "MODEL:call request_user_input {\"questions\":[{\"id\":\"c\",\"header\":\"Colour\",\"question\":\"Which colour?\",\"options\":[{\"label\":\"Red\",\"description\":\"warm\"},{\"label\":\"Blue\",\"description\":\"cold\"}]}]}\nMODEL:text Thanks.";
    asks_for_an_opinion(Client::Codex, prompt).await;
}

/// Hooks come with the command line alone; the settings of the user are not even there.
#[tokio::test]
async fn claude_calls_the_hooks_of_the_run() {
    let prompt = "MODEL:call Agent {\"description\":\"Look\",\"prompt\":\"MODEL:text Looked.\",\"subagent_type\":\"general-purpose\"}\nMODEL:text Done.";
    let Some(mut scene) = Scene::set(Client::Claude, prompt, false) else { return };
    scene.bench.settings.claude.allowed_tools = vec!["Agent".into(), "Task".into()];
    let running = scene.start();
    let run = running.run.clone();
    let report = running.report().await;
    assert_eq!(report.turns, 1, "{}", scene.bench.transcript(&run));
    let record = scene.bench.path("state/runs").join(run.as_str()).join("artifacts/teammates.jsonl");
    let lines =
        std::fs::read_to_string(&record).unwrap_or_else(|error| panic!("{error}: {}", scene.bench.transcript(&run)));
    let records: Vec<serde_json::Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    // The agent may say that it stops while its subagent still works.
    let of = |event: &str| records.iter().find(|record| record["event"] == event).unwrap_or_else(|| panic!("{lines}"));
    let (began, ended) = (of("started"), of("stopped"));
    assert_eq!(began["role"], "general-purpose");
    assert!(!began["session"].as_str().unwrap().is_empty());
    assert_eq!((&ended["name"], &ended["well"]), (&began["name"], &serde_json::json!(true)));
    of("session_ended");
}

/// The one-shot Codex commits in a linked worktree and declares through `tk`, both from inside its sandbox.
#[tokio::test]
async fn a_sandboxed_one_shot_codex_commits_and_declares() {
    let prompt = "MODEL:shell echo hello > hello.txt && git add hello.txt && git -c user.name=m -c user.email=m@example.invalid commit -q -m 'Add hello.txt' && tk done 'It is done'; touch /usr/not-ours\nMODEL:text Said so.";
    let Some(mut scene) = Scene::set(Client::Codex, prompt, false) else { return };
    let program = scene.place.prefix.join("bin/codex").display().to_string();
    let settings = &mut scene.bench.settings;
    settings.worker.runtime = Runtime::Exec;
    settings.exec.command =
        format!("{program} exec --json --sandbox workspace-write -c sandbox_workspace_write.network_access=true");
    let running = scene.start();
    let run = running.run.clone();
    let report = running.report().await;
    let transcript = scene.bench.transcript(&run);
    assert!(matches!(report.declared, Some(Declared::Done { .. })), "{transcript}");
    assert_eq!(report.commits_ahead, 1, "{transcript}");
    assert!(!std::path::Path::new("/usr/not-ours").exists(), "the sandbox holds");
}

const COMMIT: &str = "echo hello > hello.txt && git add hello.txt && git -c user.name=m -c user.email=m@example.invalid commit -q -m 'Add hello.txt'";

/// Evidence and the end, declared by tools; `tk` itself must not get through where the sandbox says so.
async fn declares_by_tools(client: Client, prefix: &str, shell: &str) {
    let prompt = format!(
        "MODEL:shell {shell}\nMODEL:call {prefix}ticket_evidence {{\"type\":\"command\",\"command\":\"cat hello.txt\",\"exit_code\":0,\"output\":\"hello\"}}\n\
         MODEL:call {prefix}ticket_done {{\"summary\":\"hello.txt says hello\"}}\nMODEL:text Said so."
    );
    let Some(scene) = Scene::set(client, Box::leak(prompt.into_boxed_str()), false) else { return };
    let running = scene.start();
    let run = running.run.clone();
    let report = running.report().await;
    let transcript = scene.bench.transcript(&run);
    assert_eq!(report.outcome, RunOutcome::Done, "{client:?}: {transcript}");
    let summary = "hello.txt says hello".to_owned();
    assert_eq!(report.declared, Some(Declared::Done { summary }), "{client:?}: {transcript}");
    let [evidence] = report.evidence.as_slice() else { panic!("{client:?}: {transcript}") };
    assert!(matches!(&evidence.kind, EvidenceKind::Command { output, .. } if output == "hello"));
    assert_eq!(report.commits_ahead, 1, "{client:?}: {transcript}");
    assert_eq!(report.contradicted, Vec::<String>::new());
    scene.bench.assert_nothing_left(&run);
}

/// Inside its own sandbox, which lets no socket through: only the tools can declare.
#[tokio::test]
async fn a_sandboxed_codex_declares_evidence_and_done_by_its_tools() {
    let shell = format!("tk comment reached && exit 1; touch /usr/not-ours; {COMMIT}");
    declares_by_tools(Client::Codex, "", &shell).await;
    assert!(!std::path::Path::new("/usr/not-ours").exists(), "the sandbox holds");
}

#[tokio::test]
async fn claude_declares_evidence_and_done_by_its_mcp_server() {
    declares_by_tools(Client::Claude, "mcp__desk__", COMMIT).await;
}

#[tokio::test]
async fn opencode_declares_evidence_and_done_by_its_mcp_server() {
    declares_by_tools(Client::Opencode, "desk_", COMMIT).await;
}
