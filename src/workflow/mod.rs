//! WORKFLOW.md: reads it, checks it, resolves it, renders its prompt and watches it for changes.
//!
//! The keys and their defaults are in `config`. Nothing here decides what happens to a ticket.

pub mod check;
pub mod dialects;
pub mod duration;
pub mod error;
pub mod front_matter;
mod hook_scripts;
pub mod in_force;
pub mod not_in_force;
pub mod overrides;
mod places;
pub mod prompt;
pub mod repo_identity;
pub mod resolve;
pub mod schema;
mod shape;
pub mod show;
pub mod templates;
pub mod texts;
pub mod tree;
pub mod unavailable;
pub mod watch;

use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

pub use error::{Finding, RenderError, WorkflowError};
pub use overrides::{OverrideError, Overrides};
pub use prompt::{AttachedFile, Previous, PromptInput, Prompts, ReviewFacts, RunFacts};
pub use resolve::Env;
pub use show::{EffectiveValue, ValueSource};
pub use templates::Templates;
pub use texts::Texts;
pub use unavailable::Unavailable;
pub use watch::{Reload, Watch};

use crate::config::Settings;
use crate::config::problem::Problem;
use error::Source;
use front_matter::WorkflowDocument;
use resolve::Expander;
use tree::Node;

/// A workflow file that was read and checked.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// The absolute path of the workflow file.
    pub path: PathBuf,
    pub settings: Settings,
    pub prompts: Prompts,
    /// The error in the prompt, if it is not a valid template; every attempt would fail with it. The runner starts with such a file, as
    /// Symphony does, but a reload rejects it.
    pub broken_prompt: Option<Finding>,
    /// Problems that do not keep anything from running.
    pub warnings: Vec<Finding>,
    /// Features that the workflow file uses and this version does not have. `run` refuses to start with any.
    pub unavailable: Vec<Unavailable>,
    /// SHA-256 of the file's bytes and of what `--set` says, in hexadecimal.
    pub hash: String,
    /// The settings from `--set`; a reload keeps them.
    pub overrides: Overrides,
    /// Every effective value and where it came from.
    pub values: Vec<EffectiveValue>,
}

impl Loaded {
    /// Returns the warnings without the name of the file, one line each, for small screens.
    pub fn brief_warnings(&self) -> Vec<String> {
        self.warnings.iter().map(Finding::brief).collect()
    }
}

/// Reads, checks and resolves a workflow file. All errors in its settings are reported at once.
pub fn load(path: &Path, env: &Env) -> Result<Loaded, WorkflowError> {
    load_with(path, env, &Overrides::default())
}

/// Does the same, with the settings from `--set` laid over the file.
pub fn load_with(path: &Path, env: &Env, overrides: &Overrides) -> Result<Loaded, WorkflowError> {
    let bytes = front_matter::read(path)?;
    load_bytes(path, &bytes, env, overrides)
}

fn load_bytes(path: &Path, bytes: &[u8], env: &Env, overrides: &Overrides) -> Result<Loaded, WorkflowError> {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let document = front_matter::parse(&path, bytes)?;
    let dir = resolve::canonical(path.parent().unwrap_or(Path::new("/")));
    let mut root = document.front_matter.clone();
    overrides.lay_over(&mut root)?;
    dialects::normalise(&mut root);

    let checked = check::check(&root, &schema::json_schema(), &document.source, &Expander::new(env, &dir));
    let mut errors = checked.errors;
    let (data, derived) = resolve::fill_defaults(checked.data, &root, &dir, env);
    let mut settings: Settings = serde_json::from_value(data).map_err(|error| {
        errors.push(Finding {
            key: String::new(),
            message: format!("the settings do not fit together: {error}"),
            hint: None,
            place: None,
            source: document.source.clone(),
        });
        WorkflowError::Invalid(std::mem::take(&mut errors))
    })?;
    settings.workspace.mode_reason = derived.mode_reason;
    settings.workspace.clone_of.clone_from(&derived.clone_of);
    settings.workspace.home.clone_from(&derived.home);
    hook_scripts::take_in(&mut settings);

    errors.extend(semantic_findings(&settings, &root, &document.source, &errors));
    if !errors.is_empty() {
        errors.sort_by_key(|finding| finding.place.map(|place| (place.line, place.column)));
        return Err(WorkflowError::Invalid(errors));
    }
    let prompts = prompts(&document, &path, &settings, &root)?;
    let broken_prompt = prompts.broken().map(|error| Finding {
        key: String::new(),
        message: format!("the prompt is not a valid template: {}", error.message),
        hint: Some("every attempt fails with this until it is mended".to_owned()),
        place: Some(document.line(error.line)),
        source: document.source.clone(),
    });
    let mut warnings = checked.warnings;
    warnings.extend(places::doubts(&settings).into_iter().map(|doubt| finding_of(doubt, &root, &document.source)));
    warnings.extend(broken_prompt.clone());
    let trial = if broken_prompt.is_some() { Vec::new() } else { prompts.trial() };
    warnings.extend(trial.into_iter().map(|error| Finding {
        key: String::new(),
        message: format!("the prompt cannot be rendered: {}", error.message),
        hint: Some("every run would fail with this".to_owned()),
        place: error.line.map(|line| document.line(line)),
        source: document.source.clone(),
    }));
    if derived.agent_writes {
        let message = "workers may move and comment on their own ticket in Linear (`linear_graphql`), because the file has neither \
                       `orchestration.states` nor `pr`";
        let hint = "set `tracker.provider.agent_tool: read` if its prompt does not need that";
        warnings.push(finding_of(Problem::new("tracker.kind", message).with_help(hint), &root, &document.source));
    }
    let idle = not_in_force::not_in_force(&settings, &root);
    warnings.extend(idle.iter().map(|key| key.finding(&root, &document.source)));
    warnings.sort_by_key(|warning| warning.line());
    let mut values = show::effective(&settings, &root, &checked.from_env, &derived);
    for value in &mut values {
        value.not_in_force = idle.iter().find(|key| key.concerns(&value.path)).map(|key| key.why);
    }
    let unavailable = unavailable::unavailable(&settings, &root);
    let (hash, overrides) = (identity(bytes, overrides), overrides.clone());
    Ok(Loaded { path, settings, prompts, broken_prompt, warnings, unavailable, hash, overrides, values })
}

fn prompts(
    document: &WorkflowDocument,
    path: &Path,
    settings: &Settings,
    root: &Node,
) -> Result<Prompts, WorkflowError> {
    let directory = templates::templates_directory(settings);
    let mut templates = Templates::load(Some(&directory))?;
    if let Some(title) = &settings.pr.title {
        templates = templates.with_pr_title(title).map_err(|why| {
            let problem = Problem::new("pr.title", format!("`pr.title` is not a title: {why}"))
                .with_help("it has `ticket.key`, `ticket.title`, `ticket.url` and `summary`, as in `{{ticket.title}} ({{ticket.key}})`");
            WorkflowError::TemplateParse(finding_of(problem, root, &document.source))
        })?;
    }
    let origin = path.display().to_string();
    Ok(Prompts::new(&document.body, &origin, document.body_line - 1, templates))
}

/// Returns the hash of a workflow file's content, as `doctor` records it.
pub fn content_hash(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the hash of a workflow: of its file's content and of what `--set` lays over it.
pub fn identity(bytes: &[u8], overrides: &Overrides) -> String {
    content_hash(&[bytes, overrides.mark().as_slice()].concat())
}

/// Returns the problems of settings whose single values are all valid. Problems that only follow from an earlier finding are left out.
fn semantic_findings(settings: &Settings, root: &Node, source: &Source, earlier: &[Finding]) -> Vec<Finding> {
    let mut problems = Vec::new();
    if root.at("tracker.kind").is_none() {
        problems.push(
            Problem::new("tracker.kind", "`tracker.kind` is required")
                .with_help("say where the tickets are: one of tk, github, linear"),
        );
    }
    problems.extend(settings.check());
    problems.extend(places::problems(settings));
    problems
        .into_iter()
        .filter(|problem| {
            let follows = |finding: &Finding| finding.key == problem.path || problem.depends_on.contains(&finding.key);
            !earlier.iter().any(follows)
        })
        .map(|problem| finding_of(problem, root, source))
        .collect()
}

/// Converts a problem into a finding at the place of its key in the file.
fn finding_of(problem: Problem, root: &Node, source: &Source) -> Finding {
    let exact = root.at(&problem.path).map(|node| node.place);
    let place = exact.or_else(|| root.nearest_entry(&problem.path).map(|entry| entry.key_place));
    match place {
        Some(place) => Finding::at(&problem.path, place, problem.message, problem.help, source),
        None => {
            Finding { key: problem.path, message: problem.message, hint: problem.help, place, source: source.clone() }
        }
    }
}
