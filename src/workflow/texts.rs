//! The texts of Dirigent on tickets and pull requests: converts the engine's decisions into data for the templates. The wording itself is
//! in `templates/`.

use serde_json::{Value as Json, json};

use super::error::RenderError;
use super::templates::{TemplateName, Templates};
use crate::config::orchestration::MentionWhom;
use crate::domain::comment::TrustLevel;
use crate::domain::finding::ReviewFinding;
use crate::domain::ids::CommitId;
use crate::domain::job::{Hindrance, Job};
use crate::domain::pr::PrState;
use crate::domain::statement::Statement;
use crate::domain::time::Timestamp;
use crate::engine::effect::Said;

/// Converts what the engine wants to say into text. One per workflow in force.
#[derive(Debug, Clone)]
pub struct Texts {
    templates: Templates,
    /// The first line of the workpad (Dirigent's one comment on a ticket), by which it is found again.
    workpad_marker: String,
    /// The first line of the comment about a review.
    review_marker: String,
    /// `owner/name` of the repository that pull requests are in. Merging one closes a ticket in the same repository.
    repository: Option<String>,
    mention: MentionWhom,
}

impl Texts {
    pub fn new(templates: Templates, workpad_marker: impl Into<String>) -> Self {
        Self {
            templates,
            workpad_marker: workpad_marker.into(),
            review_marker: String::new(),
            repository: None,
            mention: MentionWhom::None,
        }
    }

    /// Sets the first line of comments about reviews.
    pub fn with_review_marker(self, marker: impl Into<String>) -> Self {
        Self { review_marker: marker.into(), ..self }
    }

    /// Sets the repository that pull requests are in.
    pub fn in_repository(self, slug: Option<String>) -> Self {
        Self { repository: slug, ..self }
    }

    /// Sets which people are mentioned in comments that need a person.
    pub fn naming(self, mention: MentionWhom) -> Self {
        Self { mention, ..self }
    }

    /// Returns the mention that notifies a person of a comment. `None` if the comment needs nobody, or nobody is to be mentioned.
    fn mentioned(&self, job: &Job, said: &Said) -> Option<String> {
        let name = match self.mention {
            MentionWhom::None => None,
            MentionWhom::Author => {
                let author = job.ticket.author.as_ref()?;
                let is_person = !author.ourselves && author.trust != TrustLevel::Bot;
                is_person.then_some(author.name.as_str())
            }
            MentionWhom::Assignees => job.ticket.assignee.as_deref(),
        };
        let name = name.filter(|_| needs_somebody(said))?;
        // A text with other characters would be more than a mention.
        let is_name = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || "-_.".contains(c));
        is_name.then(|| format!("@{name}"))
    }

    /// Returns the number of the ticket, if it is an issue of the repository that the pull request is in.
    fn closes(&self, job: &Job) -> Option<u64> {
        let (url, slug) = (job.ticket.url.as_deref()?, self.repository.as_deref()?);
        let (before, number) = url.split_once(&format!("/{slug}/issues/"))?;
        // Only the host may precede the repository.
        let host = before.split_once("://")?.1;
        if host.contains('/') { None } else { number.parse().ok() }
    }

    pub fn comment(&self, job: &Job, said: &Said) -> Result<String, RenderError> {
        let kind = template(said);
        let mut data = serde_json::to_value(said).map_err(|error| not_data(kind, &error))?;
        if let Json::Object(fields) = &mut data {
            fields.insert("key".into(), json!(job.ticket.key));
            fields.insert("title".into(), json!(job.ticket.title));
            fields.insert("summary".into(), json!(job.evidence.summary));
            fields.insert("mention".into(), json!(self.mentioned(job, said)));
        }
        self.templates.comment(kind, &data)
    }

    /// Renders what the last review found, and what was done about it.
    pub fn review(&self, job: &Job) -> Result<String, RenderError> {
        let reviews = &job.delivery.reviews;
        let findings = reviews.findings.iter().map(|finding| {
            let mut data = serde_json::to_value(finding).unwrap_or_default();
            data["answer"] = job.answer_to(finding).into();
            data
        });
        let data = json!({
            "marker": self.review_marker,
            "passes": reviews.passes,
            "head": reviews.head,
            "count": reviews.findings.len(),
            "findings": findings.collect::<Vec<_>>(),
            "settled": reviews.settled,
        });
        self.templates.comment("review", &data)
    }

    /// Renders one finding for a comment on its line.
    pub fn finding(&self, finding: &ReviewFinding) -> Result<String, RenderError> {
        let data = serde_json::to_value(finding).map_err(|error| not_data("finding", &error))?;
        self.templates.comment("finding", &data)
    }

    /// Renders the title and the body of the pull request.
    pub fn pull_request(&self, job: &Job) -> Result<(String, String), RenderError> {
        let receipt = job.evidence.receipt.as_ref();
        let merged = match job.delivery.pr.as_ref().map(|pr| &pr.state) {
            Some(PrState::Merged { commit }) => commit.as_ref(),
            _ => None,
        };
        let about = merged.or(job.delivery.head.as_ref());
        let statement = about.map(|commit| self.receipt(job, commit)).transpose()?.flatten();
        let data = json!({
            "ticket": { "key": job.ticket.key, "title": job.ticket.title, "url": job.ticket.url },
            "closes": self.closes(job),
            "summary": job.evidence.summary,
            "verification": receipt.map(|receipt| receipt.verification),
            "facts": receipt.map(|receipt| receipt.facts.clone()).unwrap_or_default(),
            "gates": receipt.map(|receipt| receipt.gates.clone()).unwrap_or_default(),
            "receipt": statement.as_deref().map(str::trim_end),
        });
        Ok((self.templates.pr_title(&data)?, self.templates.pr_body(&data)?))
    }

    /// Returns the statement of what was checked on this commit: the bytes that are signed. `None` if there is no receipt for it.
    pub fn receipt(&self, job: &Job, commit: &CommitId) -> Result<Option<String>, RenderError> {
        let at = jiff::Timestamp::from_millisecond(job.stage.since().0).map(|at| at.to_string()).unwrap_or_default();
        let statement = Statement::about(job, commit, at);
        let payload = statement.map(|statement| statement.payload()).transpose();
        payload.map_err(|error| not_data("receipt", &error))
    }

    /// Renders a notification, which reaches people elsewhere than on the ticket.
    pub fn notification(&self, data: &Json) -> Result<String, RenderError> {
        self.templates.get(TemplateName::Notification).render(data)
    }

    /// Renders the workpad: the marker line, one fenced block for machines, a summary for people. `name` is the name by which comments
    /// address Dirigent.
    pub fn workpad(
        &self,
        job: &Job,
        shows: &str,
        hindrance: Option<&Hindrance>,
        name: &str,
        now: Timestamp,
    ) -> Result<String, RenderError> {
        let block: Json = serde_json::from_str(shows).map_err(|error| not_data("workpad", &error))?;
        let reason = match hindrance {
            Some(hindrance) => job.hindered_reason(hindrance, now),
            None => job.own_reason(now),
        };
        let reason = job.in_comments_too(reason, name);
        let data = json!({
            "marker": self.workpad_marker,
            // JSON is YAML; one line per field keeps it readable.
            "block": lines(&block),
            "phase": job.stage.phase().name(),
            "sentence": reason.sentence,
            "next": reason.next,
        });
        self.templates.get(TemplateName::Workpad).render(&data)
    }
}

fn not_data(origin: &str, error: &serde_json::Error) -> RenderError {
    RenderError { origin: origin.to_owned(), line: None, message: error.to_string() }
}

fn lines(block: &Json) -> String {
    let Json::Object(fields) = block else { return block.to_string() };
    fields.iter().map(|(name, value)| format!("{name}: {value}")).collect::<Vec<_>>().join("\n")
}

/// Whether the work stops until a person has done something.
fn needs_somebody(said: &Said) -> bool {
    match said {
        Said::Blocked { .. }
        | Said::Waiting { .. }
        | Said::Asked { .. }
        | Said::BranchReady { .. }
        | Said::HandedOver { .. } => true,
        Said::Started { .. }
        | Said::PrOpened { .. }
        | Said::Rework { .. }
        | Said::Done { .. }
        | Said::Salvaged { .. }
        | Said::DirectoryKept { .. }
        | Said::Worker { .. }
        | Said::Answer { .. }
        | Said::Reply { .. } => false,
    }
}

fn template(said: &Said) -> &'static str {
    match said {
        Said::Started { .. } => "started",
        Said::Blocked { .. } => "blocked",
        Said::PrOpened { .. } => "pr_opened",
        Said::Rework { .. } => "rework",
        Said::Done { .. } => "done",
        Said::Salvaged { .. } => "salvaged",
        Said::BranchReady { .. } => "branch_ready",
        Said::HandedOver { .. } => "handed_over",
        Said::DirectoryKept { .. } => "directory_kept",
        Said::Worker { .. } => "worker",
        Said::Asked { .. } => "asked",
        Said::Answer { .. } => "answer",
        Said::Waiting { .. } => "waiting",
        Said::Reply { .. } => "reply",
    }
}
