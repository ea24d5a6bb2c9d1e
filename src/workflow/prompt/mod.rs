//! Makes prompts: the workflow file's body, or the built-in template, with what the run needs to know appended.
//!
//! A template that cannot be rendered fails one attempt, never the runner.

pub mod context;
pub mod engine;
pub mod fence;

use std::path::{Path, PathBuf};

use serde_json::Value as Json;

use super::error::RenderError;
use super::templates::{TemplateName, Templates};
use crate::config::Settings;
use crate::domain::job::{HumanMessage, Reviews, Work};
use crate::domain::ticket::Ticket;
use engine::{SyntaxError, Template};

/// Everything that a prompt is made from.
#[derive(Debug, Clone)]
pub struct PromptInput<'a> {
    pub ticket: &'a Ticket,
    /// 1 for the first run of the job. Templates see null for that, and the number of the retry later.
    pub attempt: u32,
    pub work: &'a Work,
    pub run: RunFacts<'a>,
    /// Trusted people's messages that the prompt must contain.
    pub undelivered: &'a [HumanMessage],
    /// Files of the ticket that were fetched for the run.
    pub attached: &'a [AttachedFile],
    pub previous: Option<Previous<'a>>,
    pub review: Option<ReviewFacts<'a>>,
}

/// What a reviewer is told besides its ticket.
#[derive(Debug, Clone)]
pub struct ReviewFacts<'a> {
    /// The branch or commit that the head is compared with.
    pub base: &'a str,
    pub reviews: &'a Reviews,
    /// The text of the user's own reviewer profile.
    pub profile: Option<&'a str>,
}

#[derive(Debug, Clone)]
pub struct RunFacts<'a> {
    pub id: &'a str,
    pub phase: &'a str,
    /// 1 for the first turn.
    pub turn: u32,
    pub branch: &'a str,
    pub base: &'a str,
    pub worktree: &'a Path,
    /// Whether the agent reaches the desk through its own tools and not through `tk`.
    pub ticket_tools: bool,
    /// Whether the desk's verbs are also tools of an MCP server.
    pub desk_tools: bool,
}

/// A file of the ticket: its local path, or the reason why it could not be fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttachedFile {
    pub path: Option<PathBuf>,
    pub url: String,
    pub trouble: Option<String>,
}

/// What a fresh conversation is told about the previous run.
#[derive(Debug, Clone)]
pub struct Previous<'a> {
    pub summary: Option<&'a str>,
    pub failure: Option<&'a str>,
    pub head: Option<&'a str>,
    pub salvage: Option<&'a str>,
}

/// The prompts of one workflow file.
#[derive(Debug, Clone)]
pub struct Prompts {
    body: Option<Template>,
    /// Why the body cannot be parsed, if it cannot. Each attempt fails with it.
    broken: Option<SyntaxError>,
    templates: Templates,
}

impl Prompts {
    /// Makes the prompts. `body` is the trimmed body of the workflow file, `lines_before` the number of lines before it.
    pub fn new(body: &str, origin: &str, lines_before: usize, templates: Templates) -> Self {
        if is_blank(body) {
            return Self { body: None, broken: None, templates };
        }
        match Template::new(body, origin, lines_before) {
            Ok(template) => Self { body: Some(template), broken: None, templates },
            Err(error) => {
                let template = Template::broken(body, origin, lines_before, &error);
                Self { body: Some(template), broken: Some(error), templates }
            }
        }
    }

    /// Returns why the body of the workflow file cannot be parsed. `None` if it can.
    pub fn broken(&self) -> Option<&SyntaxError> {
        self.broken.as_ref()
    }

    pub fn templates(&self) -> &Templates {
        &self.templates
    }

    /// Describes where the first prompt comes from, for `doctor`.
    pub fn origin(&self) -> &'static str {
        match &self.body {
            None => "the built-in template",
            Some(body) if body.mentions("issue") => "the body of the workflow file",
            Some(_) => "the built-in template, with the body of the workflow file as the project's instructions",
        }
    }

    /// Renders the prompt that a run starts with. `template` names a file in `.dirigent/templates/`, from `agent.routing`.
    pub fn first(
        &self,
        input: &PromptInput<'_>,
        settings: &Settings,
        template: Option<&str>,
    ) -> Result<String, RenderError> {
        let data = context::context(input, settings);
        match input.work {
            Work::Review { .. } => self.render_review(data, template),
            Work::Implement | Work::Rework { .. } => self.render_first(data, template),
        }
    }

    /// Renders a reviewer's prompt. The required form of its result is always appended, because a program reads it.
    fn render_review(&self, mut data: Json, template: Option<&str>) -> Result<String, RenderError> {
        let main = match template {
            Some(name) => self.templates.own(name)?,
            None => {
                if let Some(body) = self.body.as_ref().filter(|body| !body.mentions("issue")) {
                    data["project"] = body.render(&data)?.into();
                }
                self.templates.get(TemplateName::Review)
            }
        };
        let parts = [main.render(&data)?, self.templates.get(TemplateName::ReviewFormat).render(&data)?];
        Ok(joined(&parts))
    }

    fn render_first(&self, mut data: Json, template: Option<&str>) -> Result<String, RenderError> {
        let main = match (template, &self.body) {
            (Some(name), _) => self.templates.own(name)?,
            (None, Some(body)) if body.mentions("issue") => body,
            (None, body) => {
                // A body that does not use the ticket cannot be the whole prompt.
                if let Some(body) = body {
                    data["project"] = body.render(&data)?.into();
                }
                self.templates.get(TemplateName::Prompt)
            }
        };
        let mut parts = vec![main.render(&data)?];
        for (variable, section) in [
            ("attachments", TemplateName::Attachments),
            ("previous", TemplateName::Previous),
            ("rework", TemplateName::Rework),
            ("messages", TemplateName::Messages),
        ] {
            let there = match &data[variable] {
                Json::Null => false,
                Json::Array(items) => !items.is_empty(),
                _ => true,
            };
            // Work that is only prepared for its merge is no rework.
            let section = match (section, data[variable]["trigger"].as_str()) {
                (TemplateName::Rework, Some("landing")) => TemplateName::Merge,
                (section, _) => section,
            };
            if there && !main.mentions(variable) {
                parts.push(self.templates.get(section).render(&data)?);
            }
        }
        Ok(joined(&parts))
    }

    /// Renders the prompt for a further turn of a live session: guidance and new messages, not the first prompt again.
    pub fn continuation(&self, input: &PromptInput<'_>, settings: &Settings) -> Result<String, RenderError> {
        let data = context::context(input, settings);
        let mut parts = vec![self.templates.get(TemplateName::Continuation).render(&data)?];
        if !input.undelivered.is_empty() {
            parts.push(self.templates.get(TemplateName::Messages).render(&data)?);
        }
        Ok(joined(&parts))
    }

    /// Renders the prompt for an invented ticket, as a first run and as rework. Returns the errors, which every ticket would cause.
    pub fn trial(&self) -> Vec<RenderError> {
        let rework = context::sample();
        let mut first = rework.clone();
        for variable in ["attempt", "rework", "previous"] {
            first[variable] = Json::Null;
        }
        let mut errors: Vec<RenderError> =
            [first, rework].into_iter().filter_map(|data| self.render_first(data, None).err()).collect();
        errors.dedup();
        errors
    }
}

fn joined(parts: &[String]) -> String {
    let parts: Vec<&str> = parts.iter().map(|part| part.trim()).filter(|part| !part.is_empty()).collect();
    format!("{}\n", parts.join("\n\n"))
}

/// Whether the body is nothing but white space and comments.
fn is_blank(body: &str) -> bool {
    let mut rest = body.trim();
    let kinds = [("<!--", "-->"), ("{{!--", "--}}"), ("{{!", "}}"), ("{% comment %}", "{% endcomment %}")];
    while !rest.is_empty() {
        let Some((open, close)) = kinds.iter().find(|(open, _)| rest.starts_with(open)) else { return false };
        let Some((_, after)) = rest[open.len()..].split_once(close) else { return false };
        rest = after.trim_start();
    }
    true
}

#[cfg(test)]
mod tests;
