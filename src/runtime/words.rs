//! What effects say, as data for the templates. The wording itself is in `templates/`.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::domain::job::Job;
use crate::engine::effect::Said;

type RenderFn = dyn Fn(&str, &Value) -> Result<String, String> + Send + Sync;

/// Turns what the engine wants said into text.
#[derive(Clone)]
pub struct Words {
    render: Arc<RenderFn>,
    /// The first line of the workpad, by which it is found again.
    workpad_marker: String,
}

impl Words {
    /// `render` takes a template's name and its data.
    pub fn new(render: Arc<RenderFn>, workpad_marker: impl Into<String>) -> Self {
        Self { render, workpad_marker: workpad_marker.into() }
    }

    pub fn comment(&self, job: &Job, said: &Said) -> Result<String, String> {
        let mut data = serde_json::to_value(said).map_err(|error| error.to_string())?;
        if let Value::Object(fields) = &mut data {
            fields.insert("key".into(), json!(job.ticket.key));
            fields.insert("title".into(), json!(job.ticket.title));
            fields.insert("summary".into(), json!(job.evidence.summary));
        }
        (self.render)(template(said), &data)
    }

    /// Title and body of the pull request.
    pub fn pull_request(&self, job: &Job) -> Result<(String, String), String> {
        let title = format!("{}: {}", job.ticket.key, job.ticket.title);
        let receipt = job.evidence.receipt.as_ref();
        let data = json!({
            "ticket": { "key": job.ticket.key, "title": job.ticket.title, "url": job.ticket.url },
            "summary": job.evidence.summary,
            "verification": receipt.map(|receipt| receipt.verification),
            "facts": receipt.map(|receipt| receipt.facts.clone()).unwrap_or_default(),
            "gates": receipt.map(|receipt| receipt.gates.clone()).unwrap_or_default(),
        });
        Ok((title, (self.render)("pr_body", &data)?))
    }

    /// Marker line, one fenced block that machines can read, a summary for people.
    pub fn workpad(&self, job: &Job, shows: &str) -> Result<String, String> {
        let block: Value = serde_json::from_str(shows).map_err(|error| error.to_string())?;
        let reason = job.reason(super::now());
        let data = json!({
            "marker": self.workpad_marker,
            // JSON is YAML; one line a field keeps it readable.
            "block": lines(&block),
            "phase": job.stage.phase().name(),
            "sentence": reason.sentence,
            "next": reason.next,
        });
        (self.render)("workpad", &data)
    }
}

fn lines(block: &Value) -> String {
    let Value::Object(fields) = block else { return block.to_string() };
    fields.iter().map(|(name, value)| format!("{name}: {value}")).collect::<Vec<_>>().join("\n")
}

fn template(said: &Said) -> &'static str {
    match said {
        Said::Started { .. } => "started",
        Said::Blocked { .. } => "blocked",
        Said::PrOpened { .. } => "pr_opened",
        Said::Rework { .. } => "rework",
        Said::Done { .. } => "done",
        Said::GaveUp { .. } => "gave_up",
        Said::Salvaged { .. } => "salvaged",
        Said::BranchReady { .. } => "branch_ready",
        Said::Worker { .. } => "worker",
        Said::Asked { .. } => "asked",
    }
}
