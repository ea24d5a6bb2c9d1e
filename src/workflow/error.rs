//! Errors and warnings about a workflow file, for people: file, line, column, key, what was found, what is allowed.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use miette::{Diagnostic, LabeledSpan, NamedSource, SourceCode, SourceSpan};
use thiserror::Error;

use super::overrides::OverrideError;
use super::templates::TemplateFileError;
use super::tree::Place;

const LONGEST_SENTENCE: usize = 600;
const LONGEST_LINE: usize = 2000;

/// Why a workflow file cannot be used. Each variant belongs to one of the stable classes of [`WorkflowError::class`].
#[derive(Debug, Error)]
pub enum WorkflowError {
    #[error("there is no workflow file at {}", .path.display())]
    Missing { path: PathBuf },
    #[error("{} is a directory; a workflow file is expected", .path.display())]
    Directory { path: PathBuf },
    #[error("{} cannot be read: {source}", .path.display())]
    Unreadable { path: PathBuf, source: std::io::Error },
    #[error("{}:{line}: the file is not UTF-8 text", .path.display())]
    NotUtf8 { path: PathBuf, line: usize },
    #[error("{0}")]
    Parse(Finding),
    #[error("{0}")]
    NotAMap(Finding),
    #[error("{}", summary(.0))]
    Invalid(Vec<Finding>),
    #[error(transparent)]
    Override(#[from] OverrideError),
    #[error("{0}")]
    TemplateParse(Finding),
    #[error(transparent)]
    TemplateFile(#[from] TemplateFileError),
}

/// A prompt or comment that cannot be rendered. It fails one attempt, never the runner.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{origin}{}: {message}", .line.map(|line| format!(":{line}")).unwrap_or_default())]
pub struct RenderError {
    /// The file or the built-in template.
    pub origin: String,
    pub line: Option<usize>,
    pub message: String,
}

impl RenderError {
    pub fn class(&self) -> &'static str {
        "template_render_error"
    }
}

impl WorkflowError {
    pub fn class(&self) -> &'static str {
        match self {
            Self::Missing { .. } | Self::Directory { .. } | Self::Unreadable { .. } => "missing_workflow_file",
            Self::NotUtf8 { .. } | Self::Parse(_) => "workflow_parse_error",
            Self::NotAMap(_) => "workflow_front_matter_not_a_map",
            Self::Invalid(_) | Self::Override(_) => "invalid_config",
            Self::TemplateParse(_) | Self::TemplateFile(_) => "template_parse_error",
        }
    }

    /// Returns all findings; empty if the file could not even be read.
    pub fn findings(&self) -> &[Finding] {
        match self {
            Self::Parse(finding) | Self::NotAMap(finding) | Self::TemplateParse(finding) => {
                std::slice::from_ref(finding)
            }
            Self::Invalid(findings) => findings,
            _ => &[],
        }
    }
}

fn summary(findings: &[Finding]) -> String {
    match findings {
        [only] => only.to_string(),
        many => {
            let lines: Vec<String> = many.iter().map(|finding| format!("\n  {finding}")).collect();
            format!("{} problems in the workflow file:{}", many.len(), lines.concat())
        }
    }
}

impl Diagnostic for WorkflowError {
    fn code<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        Some(Box::new(self.class()))
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        match self {
            Self::Missing { .. } => Some(Box::new("`dirigent init` writes one; `--workflow PATH` names another")),
            Self::Directory { path } => {
                Some(Box::new(format!("give the file itself, such as {}/WORKFLOW.md", path.display())))
            }
            Self::Parse(finding) | Self::NotAMap(finding) | Self::TemplateParse(finding) => finding.help(),
            _ => None,
        }
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        match self {
            Self::Parse(finding) | Self::NotAMap(finding) | Self::TemplateParse(finding) => finding.source_code(),
            _ => None,
        }
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        match self {
            Self::Parse(finding) | Self::NotAMap(finding) | Self::TemplateParse(finding) => finding.labels(),
            _ => None,
        }
    }

    fn related<'a>(&'a self) -> Option<Box<dyn Iterator<Item = &'a dyn Diagnostic> + 'a>> {
        match self {
            Self::Invalid(findings) if findings.len() > 1 => {
                Some(Box::new(findings.iter().map(|finding| finding as &dyn Diagnostic)))
            }
            _ => None,
        }
    }
}

/// One error or warning: what is wrong, where it is, and what to do about it.
#[derive(Debug, Clone)]
pub struct Finding {
    /// The key's full path; empty if the finding is not about a key.
    pub key: String,
    pub message: String,
    pub hint: Option<String>,
    pub place: Option<Place>,
    pub source: Source,
}

/// The text that places refer to, with its secrets masked.
#[derive(Debug, Clone)]
pub struct Source(Arc<NamedSource<String>>);

impl Source {
    pub fn new(path: &Path, text: &str) -> Self {
        Self(Arc::new(NamedSource::new(path.display().to_string(), mask_secrets(text))))
    }
}

impl Finding {
    /// Makes a finding about a key. A place outside of the file means that the key was given with `--set`.
    pub fn at(key: &str, place: Place, message: String, hint: Option<String>, source: &Source) -> Self {
        let place = place.in_file();
        let message = if place.is_some() { message } else { format!("--set: {message}") };
        Self { key: key.to_owned(), message, hint, place, source: source.clone() }
    }

    pub fn line(&self) -> Option<u32> {
        self.place.map(|place| place.line)
    }

    /// Returns the line number and the message.
    pub fn brief(&self) -> String {
        match self.line() {
            Some(line) => format!("line {line}: {}", self.sentence()),
            None => self.sentence(),
        }
    }

    /// Returns the message, shortened in its middle if it is very long. A key may have a hundred thousand characters.
    fn sentence(&self) -> String {
        let length = self.message.chars().count();
        if length <= LONGEST_SENTENCE {
            return self.message.clone();
        }
        let part = LONGEST_SENTENCE / 2;
        let begin: String = self.message.chars().take(part).collect();
        let end: String = self.message.chars().skip(length - part).collect();
        format!("{begin}[{} characters are left out]{end}", length - 2 * part)
    }

    /// Whether the lines around the place are short enough to be drawn; the drawing panics on very long lines.
    fn can_be_drawn(&self) -> bool {
        let Some(place) = self.place else { return false };
        let text = self.source.0.inner();
        let at = (0..=place.offset.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        let (before, after) = text.split_at(at);
        let behind = before.rsplit('\n').take(3);
        let ahead = after.split('\n').take(3);
        behind.chain(ahead).all(|line| line.len() <= LONGEST_LINE)
    }

    pub fn without_hint(&self) -> String {
        let path = self.source.0.name();
        match self.place {
            Some(place) => format!("{path}:{}:{}: {}", place.line, place.column, self.sentence()),
            None => format!("{path}: {}", self.sentence()),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.without_hint())?;
        match &self.hint {
            Some(hint) => write!(out, " ({hint})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Finding {}

impl Diagnostic for Finding {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.hint.as_ref().map(|hint| Box::new(hint) as Box<dyn fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.can_be_drawn().then_some(&*self.source.0 as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let place = self.place.filter(|_| self.can_be_drawn())?;
        let span = SourceSpan::new(place.offset.into(), place.len);
        Some(Box::new(std::iter::once(LabeledSpan::new_with_span(Some("here".to_owned()), span))))
    }
}

/// Replaces what looks like a secret's value by asterisks. The length in bytes stays the same.
fn mask_secrets(text: &str) -> String {
    let mut masked = String::with_capacity(text.len());
    // The indentation of the key whose secret is written as a block below it.
    let mut block: Option<usize> = None;
    for line in text.split_inclusive('\n') {
        let body = line.trim_end_matches(['\r', '\n']);
        let indent = body.len() - body.trim_start().len();
        if block.is_some_and(|outer| body.trim().is_empty() || indent > outer) {
            masked.push_str(&starred(body));
        } else {
            let mut rest = body;
            block = None;
            while let Some((before, value)) = rest.split_once(':') {
                masked.push_str(before);
                masked.push(':');
                rest = value;
                if names_secret(before) && !value.trim_start().starts_with('{') {
                    let end = value.find([',', '}']).unwrap_or(value.len());
                    let (secret, after) = value.split_at(end);
                    masked.push_str(&if is_harmless(secret) { secret.to_owned() } else { starred(secret) });
                    block = secret.trim().starts_with(['|', '>']).then_some(indent);
                    rest = after;
                }
            }
            masked.push_str(rest);
        }
        masked.push_str(&line[body.len()..]);
    }
    masked
}

/// Whether the last word before a colon is a key that holds a secret.
fn names_secret(before: &str) -> bool {
    let key = before.rsplit(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '-')).next().unwrap_or_default();
    let key = key.to_lowercase();
    key == "url"
        || key != "team_key"
            && key.split(['_', '-']).any(|word| ["key", "token", "secret", "password", "passwd"].contains(&word))
}

fn is_harmless(value: &str) -> bool {
    let bare = value.trim().trim_matches(['"', '\'']);
    bare.is_empty() || bare.starts_with(['$', '|', '>'])
}

fn starred(text: &str) -> String {
    "*".repeat(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_do_not_show_in_the_shown_source() {
        let text = "tracker:\n  token: ghp_abc\n  api_key: $KEY\r\n  team_key: SYM\n  private_key: \"x:y\"\n\
                    provider: {token: canary, repo: a/b}\nbudget: {max_tokens: 77}\n\
                    private_key: |\n  BEGIN\n\n  KEYDATA\nnext: shown\nenv: {MY_TOKEN_X: hidden}\nsecret: {token: inner}\n\
                    notify: [{to: slack, url: \"https://hooks.example.com/T0\"}]\n";
        let masked = mask_secrets(text);
        assert_eq!(masked.len(), text.len());
        for secret in ["ghp_abc", "x:y", "canary", "BEGIN", "KEYDATA", "hidden", "inner", "hooks.example.com"] {
            assert!(!masked.contains(secret), "{secret}: {masked}");
        }
        for shown in ["$KEY", "SYM", "repo: a/b", "77", "next: shown"] {
            assert!(masked.contains(shown), "{shown}: {masked}");
        }
    }
}
