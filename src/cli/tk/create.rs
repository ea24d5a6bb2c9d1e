//! `create`, and `add` of the second dialect: make a new ticket in one atomic step.

use super::arguments::{Argument, Arguments, tags};
use super::failure::Failure;
use super::session::{TkCall, TkOutput};
use crate::tracker::tk::{Draft, NAMELESS, prefix_for, timestamp_now};

/// Which dialect of the command is used; decides what `-t` means.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// `create`: `-t` sets the type.
    Public,
    /// `add`: `-t` sets tags. (In both dialects a tag `worker:NAME` also sets the assignee, if none is given.)
    Design,
}

pub fn create(session: &TkCall<'_>, arguments: &[String], dialect: Dialect) -> Result<TkOutput, Failure> {
    let parsed = NewTicketArguments::parse(arguments, dialect)?;
    parsed.check()?;
    let store = session.store_or_new()?;
    let mut draft = Draft::new(parsed.title_or_default(), timestamp_now());
    draft.assignee = match (&parsed.assignee, parsed.worker_tag()) {
        (Some(named), _) => named.clone(),
        (None, Some(worker)) => worker,
        (None, None) => session.git_name().unwrap_or_default(),
    };
    if let Some(parent) = parsed.parent.as_deref().filter(|parent| !parent.is_empty()) {
        draft.parent = store.resolve(parent)?;
    }
    if parsed.start {
        draft.status = "in_progress".into();
    }
    draft.kind = parsed.kind.clone().unwrap_or(draft.kind);
    draft.priority = parsed.priority.clone().unwrap_or(draft.priority);
    draft.external_ref = parsed.external_ref;
    draft.tags = parsed.tags.replace(',', ", ");
    draft.description = parsed.description;
    draft.design = parsed.design;
    draft.acceptance = parsed.acceptance;
    let id = store.lock()?.create(&prefix_for(&session.cwd), &draft)?;
    let nameless = parsed
        .title
        .is_empty()
        .then(|| format!("warning: {id} has no title; a runner leaves it alone until it has a title or a description"));
    Ok(TkOutput::line(id).warn(nameless))
}

/// The arguments of `create` and `add`; a worker's follow-up ticket uses them, too.
#[derive(Debug, Default)]
pub struct NewTicketArguments {
    pub title: String,
    pub description: String,
    pub design: String,
    pub acceptance: String,
    pub priority: Option<String>,
    pub kind: Option<String>,
    pub assignee: Option<String>,
    pub external_ref: String,
    pub parent: Option<String>,
    pub tags: String,
    pub start: bool,
}

impl NewTicketArguments {
    pub fn parse(arguments: &[String], dialect: Dialect) -> Result<Self, Failure> {
        let mut parsed = Self::default();
        let mut walk = Arguments::new(arguments);
        while let Some(argument) = walk.next() {
            let option = match argument {
                Argument::Option(option) => option,
                Argument::Word(word) => {
                    parsed.title = word.to_owned();
                    continue;
                }
            };
            match option.name {
                "-d" | "--description" => parsed.description = walk.value(&option)?.to_owned(),
                "--design" => parsed.design = walk.value(&option)?.to_owned(),
                "--acceptance" => parsed.acceptance = walk.value(&option)?.to_owned(),
                "-p" | "--priority" => parsed.priority = Some(walk.value(&option)?.to_owned()),
                "-t" if dialect == Dialect::Design => parsed.tags = walk.value(&option)?.to_owned(),
                "-t" | "--type" => parsed.kind = Some(walk.value(&option)?.to_owned()),
                "-a" | "--assignee" => parsed.assignee = Some(walk.value(&option)?.to_owned()),
                "--external-ref" => parsed.external_ref = walk.value(&option)?.to_owned(),
                "--parent" => parsed.parent = Some(walk.value(&option)?.to_owned()),
                "--tags" | "-T" => parsed.tags = walk.value(&option)?.to_owned(),
                "--start" if dialect == Dialect::Design => {
                    option.plain()?;
                    parsed.start = true;
                }
                _ => return Err(option.unknown()),
            }
        }
        Ok(parsed)
    }

    /// Returns an error for values that do not fit on one line of the ticket file, and for a priority other than 0 to 4.
    pub fn check(&self) -> Result<(), Failure> {
        let single_lines = [
            ("title", self.title.as_str()),
            ("priority", self.priority.as_deref().unwrap_or_default()),
            ("type", self.kind.as_deref().unwrap_or_default()),
            ("assignee", self.assignee.as_deref().unwrap_or_default()),
            ("external reference", self.external_ref.as_str()),
            ("tags", self.tags.as_str()),
        ];
        for (what, text) in single_lines {
            if text.chars().any(char::is_control) {
                let sentence = format!("the {what} must be one line without control characters; nothing was created");
                return Err(Failure::said(sentence));
            }
        }
        match self.priority.as_deref() {
            Some(priority) if !matches!(priority, "0" | "1" | "2" | "3" | "4") => {
                Err(Failure::said(format!("the priority is 0 to 4, not '{priority}'; nothing was created")))
            }
            _ => Ok(()),
        }
    }

    pub fn title_or_default(&self) -> &str {
        if self.title.is_empty() { NAMELESS } else { &self.title }
    }

    pub fn tag_list(&self) -> Vec<String> {
        tags(&self.tags).map(str::to_owned).collect()
    }

    fn worker_tag(&self) -> Option<String> {
        self.tag_list().iter().find_map(|tag| tag.strip_prefix("worker:").map(str::to_owned))
    }
}
