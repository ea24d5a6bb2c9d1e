//! `agents`: lists the known agents, which of them are installed and what each can do. `agents test` tries one out.

mod answers;
mod catalogue;
mod home;
mod installed;
mod model;
mod self_test;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;

use super::Failure;
use super::args::{AgentsArgs, AgentsCommand};
use super::block_on;
use super::context::Context;
use super::output;
use catalogue::Preset;
use installed::Installed;

pub fn agents(context: &Context, args: &AgentsArgs) -> Result<(), Failure> {
    match &args.command {
        None => list(context, args.json),
        Some(AgentsCommand::Test { name, json }) => test(context, name, *json),
    }
}

fn list(context: &Context, json: bool) -> Result<(), Failure> {
    let presets = catalogue::all();
    let here = block_on(async { Ok(look(context, &presets).await) })?;
    if json {
        let all: Vec<_> = presets.iter().map(|preset| as_json(preset, here.get(preset.program()))).collect();
        return output::print_json(&all);
    }
    let rows = presets.iter().map(|preset| row(preset, here.get(preset.program())));
    let headings = ["AGENT", "VERSION", "RUNTIME", "COMMAND", "RESUME", "STEER", "APPROVALS", "USAGE", "SANDBOX"];
    output::print(&output::table(&headings, rows).to_string())?;
    output::print(
        "\nin WORKFLOW.md: `worker.runtime` is the RUNTIME, `<runtime>.command` the COMMAND; any other command works with\n\
         `worker.runtime: exec`. Try one with `dirigent agents test NAME`.",
    )
}

/// Looks for every program once, all at the same time. Returns the installed ones by program name.
async fn look(context: &Context, presets: &[Preset]) -> BTreeMap<&'static str, Installed> {
    let programs: BTreeSet<&'static str> = presets.iter().map(Preset::program).collect();
    let mut asked = tokio::task::JoinSet::new();
    for program in programs {
        let env = context.env.vars().clone();
        asked.spawn(async move { Some((program, installed::find(program, &env).await?)) });
    }
    asked.join_all().await.into_iter().flatten().collect()
}

fn row(preset: &Preset, here: Option<&Installed>) -> Vec<String> {
    let version = match here {
        None => "not installed".to_owned(),
        Some(installed) => installed.version.clone().unwrap_or_else(|| "unknown".to_owned()),
    };
    let can = preset.can;
    let mut cells = vec![preset.name.to_owned(), version, preset.runtime.name().to_owned(), preset.command.to_owned()];
    cells.extend([can.resume, can.steer, can.approvals, can.usage, can.sandbox].map(str::to_owned));
    cells
}

fn as_json(preset: &Preset, here: Option<&Installed>) -> serde_json::Value {
    json!({ "name": preset.name, "runtime": preset.runtime, "command": preset.command, "can": preset.can,
            "testable": preset.family.is_some(), "installed": here })
}

fn test(context: &Context, name: &str, json: bool) -> Result<(), Failure> {
    let Some(preset) = Preset::named(name) else {
        let known: Vec<&str> = catalogue::all().iter().map(|preset| preset.name).collect();
        return Err(Failure::NotFound(format!("there is no agent `{name}`\n  fix: name one of {}", known.join(", "))));
    };
    let Some(family) = preset.family else {
        return Err(Failure::plain(format!(
            "`{name}` has no self-test: there is no way to point it at a scripted model\n  fix: try it on a ticket with `dirigent run --once`"
        )));
    };
    let program = preset.program();
    let found = block_on(async { Ok(installed::find(program, context.env.vars()).await) })?;
    let Some(found) = found else {
        return Err(Failure::plain(format!("`{program}` was not found in PATH\n  fix: install it, then try again")));
    };
    if !json {
        let version = found.version.as_deref().unwrap_or("version unknown");
        output::print(&format!("{name}: {} ({version}), against a scripted model on loopback", found.path.display()))?;
    }
    let verdict = block_on(self_test::run(context, &preset, family))?;
    if json {
        output::print_json(&verdict)?;
    } else {
        let mark = |passed| if passed { "ok " } else { "NOT" };
        let line =
            |check: &self_test::SelfTestCheck| format!("{}  {:<9}{}", mark(check.passed), check.what, check.detail);
        output::print(&verdict.checks.iter().map(line).collect::<Vec<_>>().join("\n"))?;
    }
    match verdict.checks.iter().find(|check| !check.passed) {
        None => Ok(()),
        Some(first) => Err(Failure::plain(format!(
            "{name} did not pass its self-test ({}: {})\n  fix: see what it said in {}",
            first.what,
            first.detail,
            verdict.transcript.unwrap_or_default().display()
        ))),
    }
}
