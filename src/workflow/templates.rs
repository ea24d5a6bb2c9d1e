//! The texts that Dirigent writes: built in, each replaceable by a file in the repository's `.dirigent/templates/`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value as Json, json};
use thiserror::Error;

use super::error::RenderError;
use super::prompt::engine::Template;
use crate::config::Settings;

macro_rules! templates {
    ($($name:ident = $path:literal),* $(,)?) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum TemplateName {
            $($name),*
        }

        impl TemplateName {
            pub const ALL: &'static [TemplateName] = &[$(Self::$name),*];

            /// Returns the file's path below the directory of templates.
            pub fn path(self) -> &'static str {
                match self {
                    $(Self::$name => $path),*
                }
            }

            fn built_in(self) -> &'static str {
                match self {
                    $(Self::$name => include_str!(concat!("../../templates/", $path))),*
                }
            }
        }
    };
}

templates! {
    Prompt = "prompt.md",
    Rework = "rework.md",
    Merge = "merge.md",
    Review = "review.md",
    ReviewFormat = "review_format.md",
    Previous = "previous.md",
    Attachments = "attachments.md",
    Messages = "messages.md",
    Continuation = "continuation.md",
    PrBody = "pr_body.md",
    Workpad = "workpad.md",
    Started = "comments/started.md",
    Blocked = "comments/blocked.md",
    PrOpened = "comments/pr_opened.md",
    ReworkAsked = "comments/rework.md",
    Done = "comments/done.md",
    Salvaged = "comments/salvaged.md",
    ReviewMade = "comments/review.md",
    Finding = "comments/finding.md",
    BranchReady = "comments/branch_ready.md",
    HandedOver = "comments/handed_over.md",
    DirectoryKept = "comments/directory_kept.md",
    Worker = "comments/worker.md",
    Answer = "comments/answer.md",
    Waiting = "comments/waiting.md",
    Reply = "comments/reply.md",
    Asked = "comments/asked.md",
    Notification = "notification.md",
}

/// Returns the directory in which a repository keeps its own templates.
pub fn templates_directory(settings: &Settings) -> PathBuf {
    settings.workspace.home.join(".dirigent/templates")
}

/// Why a template file of the repository cannot be used.
#[derive(Debug, Error)]
pub enum TemplateFileError {
    #[error("the template {} cannot be read: {source}", .path.display())]
    Unreadable { path: PathBuf, source: std::io::Error },
    #[error("{}:{line}: {message}", .path.display())]
    Syntax { path: PathBuf, line: usize, message: String },
}

/// All templates, ready to be filled in. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Templates {
    named: Arc<BTreeMap<TemplateName, Template>>,
    /// The template from `pr.title`, if it is set.
    pr_title: Option<Template>,
    /// Further template files of the repository, by name without extension: prompts for `agent.routing`.
    own: Arc<BTreeMap<String, Template>>,
}

impl Templates {
    /// Loads the built-in templates, each replaced by its file in `directory` (`.dirigent/templates` of the repository) if there is one.
    pub fn load(directory: Option<&Path>) -> Result<Self, TemplateFileError> {
        let mut named = BTreeMap::new();
        for name in TemplateName::ALL {
            let replaced = match directory {
                Some(directory) => read(&directory.join(name.path()))?,
                None => None,
            };
            let template = match replaced {
                Some((path, text)) => parse(&path, &text)?,
                None => parse(Path::new(&format!("templates/{}", name.path())), name.built_in())?,
            };
            named.insert(*name, template);
        }
        let own = directory.map(own_templates).transpose()?.unwrap_or_default();
        Ok(Self { named: Arc::new(named), pr_title: None, own: Arc::new(own) })
    }

    /// Adds a template for titles of pull requests. It is tried on a sample at once, so that an error shows now and not when the work is
    /// done.
    pub fn with_pr_title(self, text: &str) -> Result<Self, String> {
        let template = Template::new(text, "pr.title", 0).map_err(|error| error.message)?;
        let sample = json!({ "ticket": { "key": "T-1", "title": "A title", "url": "" }, "summary": "" });
        template.render(&sample).map_err(|error| error.message)?;
        Ok(Self { pr_title: Some(template), ..self })
    }

    pub fn get(&self, name: TemplateName) -> &Template {
        // `load` inserts every name.
        &self.named[&name]
    }

    /// Returns a template of the repository's own.
    pub fn own(&self, name: &str) -> Result<&Template, RenderError> {
        self.own.get(name).ok_or_else(|| RenderError {
            origin: format!(".dirigent/templates/{name}.md"),
            line: None,
            message: "there is no such template; `agent.routing` names it as a prompt".to_owned(),
        })
    }

    /// Renders a comment for the ticket. `kind` and the fields of `data` are those of the engine's `Said`.
    pub fn comment(&self, kind: &str, data: &Json) -> Result<String, RenderError> {
        let path = format!("comments/{kind}.md");
        let name = TemplateName::ALL.iter().find(|name| name.path() == path).ok_or_else(|| RenderError {
            origin: path.clone(),
            line: None,
            message: "there is no such comment".to_owned(),
        })?;
        Ok(self.get(*name).render(data)?.trim().to_owned())
    }

    /// Renders the title of a pull request on one line. Returns the ticket's key and title if there is no template or it renders to
    /// nothing.
    pub fn pr_title(&self, data: &Json) -> Result<String, RenderError> {
        let text = self.pr_title.as_ref().map(|template| template.render(data)).transpose()?.unwrap_or_default();
        let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let text_of = |field: &str| data["ticket"][field].as_str().unwrap_or_default().to_owned();
        Ok(if line.is_empty() { format!("{}: {}", text_of("key"), text_of("title")) } else { line })
    }

    /// Renders the text of a pull request. Fields: `ticket{key,title,url}`, `summary`, `verification`, `facts[]`, `gates[{name,passed}]`.
    pub fn pr_body(&self, data: &Json) -> Result<String, RenderError> {
        Ok(self.get(TemplateName::PrBody).render(data)?.trim().to_owned())
    }
}

fn read(path: &Path) -> Result<Option<(PathBuf, String)>, TemplateFileError> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some((path.to_owned(), text))),
        Err(source) if source.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(TemplateFileError::Unreadable { path: path.to_owned(), source }),
    }
}

fn parse(path: &Path, text: &str) -> Result<Template, TemplateFileError> {
    Template::new(text, &path.display().to_string(), 0).map_err(|error| TemplateFileError::Syntax {
        path: path.to_owned(),
        line: error.line,
        message: error.message,
    })
}

fn own_templates(directory: &Path) -> Result<BTreeMap<String, Template>, TemplateFileError> {
    let mut own = BTreeMap::new();
    for (name, path) in own_files(directory)? {
        if let Some((path, text)) = read(&path)? {
            own.insert(name, parse(&path, &text)?);
        }
    }
    Ok(own)
}

/// Returns the template files in the directory itself, by name without extension.
fn own_files(directory: &Path) -> Result<BTreeMap<String, PathBuf>, TemplateFileError> {
    let unreadable = |source| TemplateFileError::Unreadable { path: directory.to_owned(), source };
    let entries = match std::fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(source) if source.kind() == std::io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
        Err(source) => return Err(unreadable(source)),
    };
    let mut files = BTreeMap::new();
    for entry in entries {
        let path = entry.map_err(unreadable)?.path();
        let name = path.file_stem().and_then(|stem| stem.to_str()).map(str::to_owned);
        if let (Some(name), true) = (name, path.extension().is_some_and(|extension| extension == "md")) {
            files.insert(name, path);
        }
    }
    Ok(files)
}

/// Returns every file that [`Templates::load`] reads in this directory, whether it is there or not.
pub fn files(directory: &Path) -> BTreeSet<PathBuf> {
    let named = TemplateName::ALL.iter().map(|name| directory.join(name.path()));
    // Where the directory cannot be read, loading says so.
    named.chain(own_files(directory).unwrap_or_default().into_values()).collect()
}
