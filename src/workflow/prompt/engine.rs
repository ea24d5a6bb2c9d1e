//! The two template languages, with the same behaviour: nothing is escaped, and unknown names are errors.

use std::sync::Arc;

use handlebars::{
    Context, Handlebars, Helper, HelperDef, HelperResult, Output, RenderContext, RenderErrorReason, Renderable,
    handlebars_helper, no_escape,
};
use serde_json::Value as Json;

use super::fence::{code_block, fence};
use crate::workflow::error::RenderError;

/// A parsed template.
#[derive(Clone)]
pub struct Template {
    text: String,
    origin: String,
    /// Added to the template's own line numbers in errors.
    lines_before: usize,
    language: Language,
}

#[derive(Clone)]
enum Language {
    Handlebars(Arc<Handlebars<'static>>),
    Liquid(Arc<liquid::Template>),
    /// A template that always fails when it is rendered, for example because it uses an unknown filter or variable.
    Broken(RenderError),
}

/// Why a template could not be parsed.
#[derive(Debug, Clone)]
pub struct SyntaxError {
    /// The line in the file that the template came from.
    pub line: usize,
    pub message: String,
}

const NAME: &str = "template";

impl Template {
    pub fn new(text: &str, origin: &str, lines_before: usize) -> Result<Self, SyntaxError> {
        let language = if is_liquid(text) { liquid(text, origin, lines_before)? } else { bars(text, lines_before)? };
        Ok(Self { text: text.to_owned(), origin: origin.to_owned(), lines_before, language })
    }

    /// Makes a template from a text that could not be parsed: rendering it fails with the reason.
    pub fn broken(text: &str, origin: &str, lines_before: usize, error: &SyntaxError) -> Self {
        let message = format!("the prompt is not a valid template: {}", error.message);
        let language = Language::Broken(RenderError { origin: origin.to_owned(), line: Some(error.line), message });
        Self { text: text.to_owned(), origin: origin.to_owned(), lines_before, language }
    }

    pub fn render(&self, data: &Json) -> Result<String, RenderError> {
        match &self.language {
            Language::Handlebars(registry) => registry.render(NAME, data).map_err(|error| self.bars_error(&error)),
            Language::Liquid(template) => {
                let globals = liquid::to_object(data).map_err(|error| self.error(None, error.to_string()))?;
                template.render(&globals).map_err(|error| self.error(None, liquid_message(&error)))
            }
            Language::Broken(error) => Err(error.clone()),
        }
    }

    /// Whether any tag of the template uses this variable.
    pub fn mentions(&self, variable: &str) -> bool {
        tags(&self.text).any(|tag| words(tag).any(|word| word.split('.').next() == Some(variable)))
    }

    fn bars_error(&self, error: &handlebars::RenderError) -> RenderError {
        let message = match error.reason() {
            RenderErrorReason::MissingVariable(Some(name)) => format!("there is no variable `{name}`"),
            RenderErrorReason::MissingVariable(None) => "a variable does not exist".to_owned(),
            RenderErrorReason::HelperNotFound(name) => format!("there is no helper `{name}`"),
            other => other.to_string(),
        };
        self.error(error.line_no, message)
    }

    fn error(&self, line: Option<usize>, message: String) -> RenderError {
        RenderError { origin: self.origin.clone(), line: line.map(|line| line + self.lines_before), message }
    }
}

impl std::fmt::Debug for Template {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Template").field("origin", &self.origin).finish_non_exhaustive()
    }
}

/// Whether the text is Liquid, which has tags in `{%` and filters behind `|`. Handlebars has neither, except in block parameters.
fn is_liquid(text: &str) -> bool {
    text.contains("{%")
        || tags(text).any(|tag| {
            let tag = tag.trim();
            !tag.starts_with(['#', '/', '!', '>']) && tag.contains(" | ")
        })
}

/// Returns the insides of all tags.
fn tags(text: &str) -> impl Iterator<Item = &str> {
    let inside = |(open, close): (&'static str, &'static str)| {
        text.split(open).skip(1).filter_map(move |rest| rest.split_once(close).map(|(tag, _)| tag))
    };
    [("{{", "}}"), ("{%", "%}")].into_iter().flat_map(inside)
}

/// Returns the names and paths in a tag, without quoted texts.
fn words(tag: &str) -> impl Iterator<Item = &str> {
    tag.split(['"', '\''])
        .step_by(2)
        .flat_map(|part| part.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '.')))
        .filter(|word| !word.is_empty())
}

fn bars(text: &str, lines_before: usize) -> Result<Language, SyntaxError> {
    let mut registry = Handlebars::new();
    registry.set_strict_mode(true);
    registry.register_escape_fn(no_escape);
    registry.register_helper("if", Box::new(StrictIf { positive: true }));
    registry.register_helper("unless", Box::new(StrictIf { positive: false }));
    handlebars_helper!(fence_helper: |name: String, text: Json| fence(&name, &plain(text)));
    handlebars_helper!(code_helper: |text: Json| code_block(&plain(text)));
    handlebars_helper!(join_helper: |items: Json, between: String| join(items, &between));
    handlebars_helper!(concat_helper: |a: Json, b: Json| format!("{}{}", plain(a), plain(b)));
    handlebars_helper!(short_helper: |commit: Json| plain(commit).chars().take(12).collect::<String>());
    handlebars_helper!(evidence_helper: |evidence: Json| code_block(&super::context::evidence_text(evidence)));
    registry.register_helper("fence", Box::new(fence_helper));
    registry.register_helper("code", Box::new(code_helper));
    registry.register_helper("join", Box::new(join_helper));
    registry.register_helper("concat", Box::new(concat_helper));
    registry.register_helper("short", Box::new(short_helper));
    registry.register_helper("evidence", Box::new(evidence_helper));
    registry.register_template_string(NAME, text).map_err(|error| SyntaxError {
        line: error.pos().map_or(1, |(line, _)| line) + lines_before,
        message: error.reason().to_string(),
    })?;
    Ok(Language::Handlebars(Arc::new(registry)))
}

/// `if` and `unless` that fail on an unknown variable instead of taking it for false, except below a variable that may be null as a whole.
struct StrictIf {
    positive: bool,
}

impl HelperDef for StrictIf {
    fn call<'reg: 'rc, 'rc>(
        &self,
        helper: &Helper<'rc>,
        registry: &'reg Handlebars<'reg>,
        context: &'rc Context,
        render: &mut RenderContext<'reg, 'rc>,
        out: &mut dyn Output,
    ) -> HelperResult {
        let value = helper.param(0).ok_or(RenderErrorReason::ParamNotFoundForIndex("if", 0))?;
        if value.is_value_missing() {
            let path = value.relative_path().map(String::as_str).unwrap_or_default();
            let root = path.split('.').next().unwrap_or_default();
            if !super::context::MAY_BE_NULL.contains(&root) || root == path {
                return Err(RenderErrorReason::MissingVariable(Some(path.to_owned())).into());
            }
        }
        let branch = if truthy(value.value()) == self.positive { helper.template() } else { helper.inverse() };
        branch.map_or(Ok(()), |branch| branch.render(registry, context, render, out))
    }
}

fn truthy(value: &Json) -> bool {
    match value {
        Json::Null => false,
        Json::Bool(flag) => *flag,
        Json::Number(number) => number.as_f64() != Some(0.0),
        Json::String(text) => !text.is_empty(),
        Json::Array(items) => !items.is_empty(),
        Json::Object(entries) => !entries.is_empty(),
    }
}

fn plain(value: &Json) -> String {
    match value {
        Json::Null => String::new(),
        Json::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn join(items: &Json, between: &str) -> String {
    let items: Vec<String> = items.as_array().into_iter().flatten().map(plain).collect();
    items.join(between)
}

fn liquid(text: &str, origin: &str, lines_before: usize) -> Result<Language, SyntaxError> {
    let broken = |line: Option<usize>, message: String| {
        Language::Broken(RenderError { origin: origin.to_owned(), line: line.map(|line| line + lines_before), message })
    };
    let parser = liquid::ParserBuilder::with_stdlib()
        .build()
        .map_err(|error| SyntaxError { line: lines_before + 1, message: error.to_string() })?;
    match parser.parse(&readable_lists(text)) {
        Ok(template) => Ok(match unknown_field(text) {
            Some(path) => broken(None, format!("there is no variable `{path}`")),
            None => Language::Liquid(Arc::new(template)),
        }),
        Err(error) => {
            let message = error.to_string();
            let line = liquid_line(&message);
            if message.contains("Unknown filter") {
                let name = message.lines().find_map(|line| line.trim().strip_prefix("requested filter="));
                return Ok(broken(line, format!("there is no filter `{}`", name.unwrap_or("?"))));
            }
            Err(SyntaxError { line: line.unwrap_or(1) + lines_before, message: liquid_message(&error) })
        }
    }
}

/// Inserts a filter into tags that print only the labels: Liquid prints the items of a list without anything between them.
fn readable_lists(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("{{") {
        out.push_str(before);
        out.push_str("{{");
        let Some((tag, tail)) = after.split_once("}}") else {
            rest = after;
            continue;
        };
        let bare = tag.trim_matches(|c: char| c == '-' || c.is_whitespace());
        match bare {
            "issue.labels" => out.push_str(&tag.replace(bare, "issue.labels | join: \", \"")),
            _ => out.push_str(tag),
        }
        out.push_str("}}");
        rest = tail;
    }
    out.push_str(rest);
    out
}

/// Returns the first unknown field in the tags, if there is one. Liquid would take it for false in a condition.
fn unknown_field(text: &str) -> Option<String> {
    let sample = super::context::sample();
    tags(text).flat_map(words).find_map(|word| {
        let mut steps = word.split('.');
        let (root, field) = (steps.next()?, steps.next()?);
        let fields = sample.get(root).filter(|_| ["issue", "run", "policy"].contains(&root))?.as_object()?;
        (!fields.contains_key(field) && !["size", "first", "last"].contains(&field)).then(|| format!("{root}.{field}"))
    })
}

/// Returns the line from the ` --> 3:5` in a Liquid error.
fn liquid_line(message: &str) -> Option<usize> {
    let (_, after) = message.split_once("--> ")?;
    after.split(':').next()?.trim().parse().ok()
}

/// Returns the message of a Liquid error on one line, without the drawing below it.
fn liquid_message(error: &liquid::Error) -> String {
    let text = error.to_string();
    let text = text.strip_prefix("liquid: ").unwrap_or(&text);
    let drawn = text.lines().find_map(|line| line.trim().strip_prefix("= "));
    match drawn {
        Some(reason) => reason.to_owned(),
        None => {
            let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
            lines.join(", ")
        }
    }
}
