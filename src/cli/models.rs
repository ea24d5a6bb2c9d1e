//! What `doctor` reports about models: compares every model that the workflow file names with those that its agent offers.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

use crate::config::Settings;
use crate::config::worker::Runtime;
use crate::domain::ids::RunId;
use crate::domain::words::each_once;
use crate::engine::permit::by_hand;
use crate::launcher::{LaunchOrder, Launcher, LocalLauncher};
use crate::runtime::assembly;
use crate::workflow::Loaded;

use super::Failure;
use super::block_on;
use super::context::Context;
use super::doctor::Report;

/// How long to wait for an agent's answer. It is asked only once.
const PATIENCE: Duration = Duration::from_secs(30);
const LONGEST_ANSWER: u64 = 8 << 20;
/// How many models of a long list are shown.
const SHOWN: usize = 20;

/// A model that the workflow file names, with the key that names it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct NamedModel {
    key: String,
    runtime: Runtime,
    provider: Option<String>,
    model: String,
}

/// A model that an agent offers.
#[derive(Debug, Clone, PartialEq, Eq)]
struct OfferedModel {
    provider: Option<String>,
    id: String,
    /// The model that the maker recommends instead. `None` if the model is not being replaced.
    successor: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Offer {
    /// The agent offers exactly these models.
    Only(Vec<OfferedModel>),
    /// The agent offers at least these models. Other names may work, too.
    AtLeast(Vec<OfferedModel>),
}

pub fn models(context: &Context, path: &str, loaded: &Loaded, report: &mut Report) {
    let named = named(&loaded.settings);
    let runtimes: Vec<Runtime> = each_once(named.iter().map(|named| named.runtime));
    for runtime in runtimes {
        let of_runtime = named.iter().filter(|named| named.runtime == runtime);
        match block_on(async { Ok(offer(context, path, loaded, runtime).await) })
            .unwrap_or_else(|e: Failure| Err(e.text()))
        {
            Ok(Some(offer)) => of_runtime.for_each(|named| judge(named, &offer, report)),
            Ok(None) => {}
            Err(because) => report.warn(
                "models",
                format!("{} could not be asked which models it offers: {because}", runtime.name()),
                "try it by hand; a model that is not there blocks the first ticket",
            ),
        }
    }
}

/// Returns the models that the workflow file names for runtimes that a run can get, sorted by runtime.
fn named(settings: &Settings) -> Vec<NamedModel> {
    let mut found = Vec::new();
    let mut name = |key: &str, runtime: Runtime, provider: Option<&String>, model: Option<&String>| {
        if let Some(model) = model {
            found.push(NamedModel { key: key.to_owned(), runtime, provider: provider.cloned(), model: model.clone() });
        }
    };
    let review = &settings.review;
    let of_review = review.enabled.then(|| review.runtime.unwrap_or(settings.worker.runtime));
    let routed = settings.agent.routing.iter().filter_map(|route| route.runtime);
    let used: Vec<Runtime> = routed.chain([settings.worker.runtime]).chain(of_review).collect();
    let is_used = |runtime: Runtime| used.contains(&runtime);
    if is_used(Runtime::Codex) {
        name("codex.model", Runtime::Codex, None, settings.codex.model.as_ref());
    }
    if is_used(Runtime::Claude) {
        name("claude.model", Runtime::Claude, None, settings.claude.model.as_ref());
    }
    if let (true, Some(model)) = (is_used(Runtime::Pi), &settings.pi.model) {
        name("pi.model", Runtime::Pi, model.provider.as_ref(), Some(&model.model_id));
    }
    for (at, route) in settings.agent.routing.iter().enumerate() {
        let runtime = route.runtime.unwrap_or(settings.worker.runtime);
        let key = format!("agent.routing[{at}].model");
        name(&key, runtime, route.model_provider.as_ref(), route.model.as_ref());
    }
    if let Some(runtime) = of_review {
        name("review.model", runtime, review.model_provider.as_ref(), review.model.as_ref());
    }
    found.sort_by_key(|named| named.runtime.name());
    found
}

fn judge(named: &NamedModel, offer: &Offer, report: &mut Report) {
    let (offered, is_complete) = match offer {
        Offer::Only(offered) => (offered, true),
        Offer::AtLeast(offered) => (offered, false),
    };
    let shown = format!("`{}` of {} ({})", named.model, named.runtime.name(), named.key);
    let fits = |one: &&OfferedModel| {
        let whole = one.provider.as_ref().map(|provider| format!("{provider}/{}", one.id));
        let provider = named.provider.is_none() || one.provider.is_none() || one.provider == named.provider;
        (one.id == named.model && provider) || whole.as_deref() == Some(&named.model)
    };
    match offered.iter().find(fits) {
        Some(OfferedModel { successor: Some(successor), .. }) => report.problem(
            "models",
            format!("{shown} is being replaced by its maker"),
            format!("use `{successor}`, or one of: {}", list(offered)),
        ),
        Some(_) => report.ok("models", format!("{shown} is offered")),
        None if is_complete => {
            report.problem("models", format!("{shown} is not offered"), format!("one of: {}", list(offered)));
        }
        None => report.warn(
            "models",
            format!("{shown} is not among those that it names itself"),
            format!("if the first ticket says that it is unknown, one of: {}", list(offered)),
        ),
    }
}

/// Lists the offered models that are not being replaced; a long list is shortened.
fn list(offered: &[OfferedModel]) -> String {
    let good = offered.iter().filter(|one| one.successor.is_none());
    let names: Vec<String> = good
        .map(|one| match &one.provider {
            Some(provider) => format!("{provider}/{}", one.id),
            None => one.id.clone(),
        })
        .collect();
    match names.len().checked_sub(SHOWN) {
        None | Some(0) => names.join(", "),
        Some(more) => format!("{} and {more} more", names.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ")),
    }
}

/// Asks the agent's client which models it offers. `None` for a runtime that has no such request.
async fn offer(context: &Context, path: &str, loaded: &Loaded, runtime: Runtime) -> Result<Option<Offer>, String> {
    let command = loaded.settings.command(runtime);
    let (line, questions): (String, Vec<Value>) = match runtime {
        Runtime::Codex => {
            let client = json!({"name": "dirigent", "title": "Dirigent", "version": env!("CARGO_PKG_VERSION")});
            let hello =
                json!({"clientInfo": client, "capabilities": {"experimentalApi": true, "requestAttestation": false}});
            let questions = vec![
                json!({"id": 1, "method": "initialize", "params": hello}),
                json!({"method": "initialized"}),
                json!({"id": "config", "method": "config/read", "params": {}}),
                json!({"id": "models", "method": "model/list", "params": {"includeHidden": true, "limit": 500}}),
            ];
            (command.to_owned(), questions)
        }
        Runtime::Claude => {
            let line = format!("{command} -p --input-format stream-json --output-format stream-json --verbose");
            let ask = json!({"subtype": "initialize"});
            (line, vec![json!({"type": "control_request", "request_id": "models", "request": ask})])
        }
        Runtime::Pi => {
            let line = format!("{command} --mode rpc --no-session");
            (line, vec![json!({"id": "models", "type": "get_available_models"})])
        }
        Runtime::Acp | Runtime::Exec => return Ok(None),
    };
    let heard = converse(context, path, loaded, &line, &questions).await?;
    Ok(Some(read(runtime, &heard)))
}

/// Starts the client, sends the questions, and returns all lines that it prints until every question with an id is answered. The answers
/// may come in any order.
async fn converse(
    context: &Context,
    path: &str,
    loaded: &Loaded,
    line: &str,
    questions: &[Value],
) -> Result<Vec<Value>, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let launcher = LocalLauncher::start(&folder.path().join("scratch")).map_err(|error| error.to_string())?;
    let run = RunId::new(ulid::Ulid::generate().to_string());
    let order = LaunchOrder::shell(run, line, folder.path().to_owned(), environment(context, path, loaded));
    let mut child = launcher.launch(&by_hand(), order).await.map_err(|error| error.to_string())?;
    let (Some(mut stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
        return Err("it has no pipes".to_owned());
    };
    let asking = async {
        for question in questions {
            stdin.write_all(format!("{question}\n").as_bytes()).await.map_err(|error| error.to_string())?;
        }
        let mut lines = BufReader::new(tokio::io::AsyncReadExt::take(stdout, LONGEST_ANSWER)).lines();
        let names = questions.iter().flat_map(|question| [&question["id"], &question["request_id"]]);
        let mut open: Vec<&Value> = names.filter(|name| name.is_string()).collect();
        let mut heard = Vec::new();
        while let Some(line) = lines.next_line().await.map_err(|error| error.to_string())? {
            let Ok(value) = serde_json::from_str::<Value>(&line) else { continue };
            open.retain(|name| value["id"] != **name && value["response"]["request_id"] != **name);
            heard.push(value);
            if open.is_empty() {
                return Ok(heard);
            }
        }
        Err("it ended without an answer".to_owned())
    };
    let result = tokio::time::timeout(PATIENCE, asking).await;
    child.kill();
    let _ = child.wait().await;
    result.unwrap_or_else(|_| Err(format!("no answer within {} s", PATIENCE.as_secs())))
}

/// Returns the environment of the client: the user's own without Dirigent's secrets, plus the variables of `worker.env`.
fn environment(context: &Context, path: &str, loaded: &Loaded) -> BTreeMap<String, String> {
    use secrecy::ExposeSecret;
    let secrets = assembly::secrets(loaded);
    let own = context.env.vars().iter().filter(|(name, _)| !secrets.names.contains(name));
    let mut env: BTreeMap<String, String> = own.map(|(name, value)| (name.clone(), value.clone())).collect();
    env.insert("PATH".to_owned(), path.to_owned());
    let more = loaded.settings.worker.env.iter();
    env.extend(more.map(|(name, value)| (name.clone(), value.expose_secret().to_owned())));
    env
}

fn read(runtime: Runtime, heard: &[Value]) -> Offer {
    let answer = |id: &str| heard.iter().find(|value| value["id"] == id).cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().map(str::to_owned);
    match runtime {
        Runtime::Codex => {
            let offered = answer("models")["result"]["data"].as_array().cloned().unwrap_or_default();
            let offered = offered.iter().filter_map(|one| {
                Some(OfferedModel { provider: None, id: text(&one["model"])?, successor: text(&one["upgrade"]) })
            });
            let offered = offered.collect();
            // Codex lists the models of OpenAI only. With another provider other models may be valid.
            let provider = answer("config")["result"]["config"]["model_provider"].as_str().map(str::to_owned);
            match provider.as_deref() {
                None | Some("openai") => Offer::Only(offered),
                Some(_) => Offer::AtLeast(offered),
            }
        }
        Runtime::Pi => {
            let offered = answer("models")["data"]["models"].as_array().cloned().unwrap_or_default();
            let offered = offered.iter().filter_map(|one| {
                Some(OfferedModel { provider: text(&one["provider"]), id: text(&one["id"])?, successor: None })
            });
            Offer::Only(offered.collect())
        }
        Runtime::Claude | Runtime::Acp | Runtime::Exec => {
            let known = heard.iter().find_map(|value| value["response"]["response"]["models"].as_array());
            let names = known.into_iter().flatten().flat_map(|one| [text(&one["value"]), text(&one["resolvedModel"])]);
            let mut offered: Vec<OfferedModel> = Vec::new();
            for id in names.flatten().filter(|id| id != "default") {
                if !offered.iter().any(|one| one.id == id) {
                    offered.push(OfferedModel { provider: None, id, successor: None });
                }
            }
            Offer::AtLeast(offered)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_agent_answers_in_its_own_words() {
        let codex = |provider: Value| {
            let models = json!([{"model": "new", "upgrade": null}, {"model": "old", "upgrade": "new"}]);
            vec![
                json!({"id": "config", "result": {"config": {"model_provider": provider}}}),
                json!({"id": "models", "result": {"data": models}}),
            ]
        };
        let model = |provider: Option<&str>, id: &str, successor: Option<&str>| OfferedModel {
            provider: provider.map(str::to_owned),
            id: id.into(),
            successor: successor.map(str::to_owned),
        };
        let two = vec![model(None, "new", None), model(None, "old", Some("new"))];
        assert_eq!(read(Runtime::Codex, &codex(Value::Null)), Offer::Only(two.clone()));
        assert_eq!(read(Runtime::Codex, &codex(json!("mock"))), Offer::AtLeast(two));
        let pi = json!({"id": "models", "data": {"models": [{"id": "m", "provider": "p"}]}});
        assert_eq!(read(Runtime::Pi, &[pi]), Offer::Only(vec![model(Some("p"), "m", None)]));
        let models =
            json!([{"value": "default", "resolvedModel": "big-5"}, {"value": "big", "resolvedModel": "big-5"}]);
        let claude =
            json!({"type": "control_response", "response": {"request_id": "models", "response": {"models": models}}});
        let both = vec![model(None, "big-5", None), model(None, "big", None)];
        assert_eq!(read(Runtime::Claude, &[claude]), Offer::AtLeast(both));
    }

    #[test]
    fn models_of_agents_that_no_run_uses_are_not_asked_about() {
        let mut settings = Settings::default();
        settings.worker.runtime = Runtime::Claude;
        settings.codex.model = Some("x".into());
        settings.claude.model = Some("y".into());
        let keys = |settings: &Settings| named(settings).into_iter().map(|named| named.key).collect::<Vec<_>>();
        assert_eq!(keys(&settings), ["claude.model"]);
        let route = crate::config::agent::RouteSettings {
            runtime: Some(Runtime::Codex),
            model: Some("z".into()),
            ..Default::default()
        };
        settings.agent.routing = vec![route];
        assert_eq!(keys(&settings), ["claude.model", "codex.model", "agent.routing[0].model"]);
    }
}
