//! The variables of a prompt template. Decides which text of other people gets in, and how.

use serde_json::{Value as Json, json};

use super::PromptInput;
use super::fence::{fence, one_line};
use crate::config::Settings;
use crate::config::tracker::UntrustedText;
use crate::domain::comment::{Author, Comment, TrustLevel};
use crate::domain::evidence::Evidence;
use crate::domain::finding::ReviewFinding;
use crate::domain::job::Work;
use crate::domain::remark::RemarkKey;
use crate::domain::ticket::{Dispatchable, Ticket};
use crate::domain::time::Timestamp;

/// Variables that are null as a whole when they do not apply.
pub const MAY_BE_NULL: [&str; 3] = ["rework", "review", "previous"];

/// The limits in characters. Longer texts are truncated with a note, because a prompt has to fit into a model.
const MAX_DESCRIPTION: usize = 64_000;
const MAX_COMMENT: usize = 16_000;
/// How many comments are shown; the newest are preferred.
const MAX_COMMENTS: usize = 50;

pub fn context(input: &PromptInput<'_>, settings: &Settings) -> Json {
    let rework = match input.work {
        Work::Rework { cause } => json!({
            "reason": cause.summary,
            "trigger": cause.trigger,
            "evidence": cause.evidence.iter().map(evidence).collect::<Vec<_>>(),
        }),
        _ => Json::Null,
    };
    let review = input.review.as_ref().map_or(Json::Null, |facts| review(facts, input.work));
    let previous = match &input.previous {
        Some(previous) => json!({
            "summary": previous.summary,
            "failure": previous.failure,
            "head": previous.head,
            "salvage": previous.salvage,
        }),
        None => Json::Null,
    };
    let words = input.undelivered.iter().map(|word| {
        let remark = word.key.as_ref().map(RemarkKey::handle);
        json!({ "from": one_line(&word.from), "text": word.text.trim(), "remark": remark })
    });
    let attachments = input.attached.iter().map(|file| {
        json!({ "path": file.path, "url": one_line(&file.url), "trouble": file.trouble.as_deref().map(one_line) })
    });
    let mut issue = issue(input.ticket, settings);
    issue["symphony"] = symphony(input);
    json!({
        "issue": issue,
        "attempt": (input.attempt > 1).then(|| input.attempt - 1),
        "run": {
            "id": input.run.id,
            "kind": input.work.kind().name(),
            "phase": input.run.phase,
            "turn": input.run.turn,
            "max_turns": settings.agent.max_turns,
            "branch": input.run.branch,
            "base": input.run.base,
            "worktree": input.run.worktree,
            "ticket_tools": input.run.ticket_tools,
            "desk_tools": input.run.desk_tools,
        },
        "rework": rework,
        "review": review,
        "previous": previous,
        "attachments": attachments.collect::<Vec<_>>(),
        "messages": words.collect::<Vec<_>>(),
        "role": input.work.kind().name(),
        "policy": {
            "orchestration": settings.orchestration,
            "rollout": settings.rollout,
            "pr": settings.pr,
            "review": settings.review,
            "merge": settings.merge,
        },
        "project": Json::Null,
    })
}

fn review(facts: &super::ReviewFacts<'_>, work: &Work) -> Json {
    let reviews = facts.reviews;
    let head = match work {
        Work::Review { head } => Some(head),
        Work::Implement | Work::Rework { .. } => reviews.head.as_ref(),
    };
    let last = |finding: &ReviewFinding| json!({ "id": finding.id, "severity": finding.severity, "title": one_line(&finding.title), "answer": "the last review's" });
    let before = reviews.settled.iter().map(|finding| {
        let (title, answer) = (one_line(&finding.title), one_line(&finding.answer));
        json!({ "id": finding.id, "severity": finding.severity, "title": title, "answer": answer })
    });
    json!({
        "head": head,
        "base": facts.base,
        "passes": reviews.passes,
        "findings": reviews.findings,
        "settled": before.chain(reviews.findings.iter().map(last)).collect::<Vec<_>>(),
        "unreadable": reviews.unreadable.as_ref().map(|last| one_line(&last.because)),
        "profile": facts.profile,
    })
}

fn issue(ticket: &Ticket, settings: &Settings) -> Json {
    let blockers = ticket.blocked_by.iter().map(|blocker| {
        json!({ "id": blocker.id, "identifier": blocker.key, "key": blocker.key, "state": blocker.state, "failed": blocker.failed })
    });
    json!({
        "id": ticket.id,
        "identifier": ticket.key,
        "key": ticket.key,
        "title": one_line(&ticket.title),
        "description": description(ticket, settings),
        "priority": ticket.priority,
        "state": ticket.state,
        "branch_name": ticket.branch_name,
        "url": ticket.url,
        "assignee": ticket.assignee,
        "assignee_id": ticket.assignee,
        "author": ticket.author.as_ref().map(|author| one_line(&author.name)),
        "labels": ticket.labels,
        "blocked_by": blockers.collect::<Vec<_>>(),
        "parent": ticket.parent,
        "dispatchable": matches!(ticket.dispatchable, Dispatchable::Yes),
        "created_at": ticket.created_at.map(rfc3339),
        "updated_at": ticket.updated_at.map(rfc3339),
        "native_ref": ticket.native_ref,
        "comments": comments(ticket, settings),
    })
}

/// Returns the variables that prompts written for pi-symphony use. They say that the run may act, because a run starts only then.
fn symphony(input: &PromptInput<'_>) -> Json {
    json!({
        "phase": input.run.phase,
        "passive_phase": false,
        "next_intended_action": input.work.kind().name(),
        "ownership": { "allowed": true },
        "kill_switch": { "active": false },
    })
}

fn comments(ticket: &Ticket, settings: &Settings) -> Vec<Json> {
    let mut newest: Vec<Json> = ticket
        .known_comments()
        .iter()
        .rev()
        .filter_map(|comment| shown_comment(comment, settings))
        .take(MAX_COMMENTS)
        .collect();
    newest.reverse();
    newest
}

fn cut(text: &str, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        Some((end, _)) => format!("{}\n(cut after {limit} characters; `tk show` has the rest)", &text[..end]),
        None => text.to_owned(),
    }
}

fn description(ticket: &Ticket, settings: &Settings) -> Option<String> {
    let text = ticket.description.as_deref().map(str::trim).filter(|text| !text.is_empty())?;
    let text = &cut(text, MAX_DESCRIPTION);
    match ticket.author.as_ref().filter(|author| !author.ourselves && !is_trusted(author, settings)) {
        None => Some(text.clone()),
        Some(author) => match (let_in_by(ticket, settings), settings.tracker.untrusted_text) {
            (Some(who), _) => Some(fence(&format!("text by {}, let in by {}", author.name, who.name), text)),
            (None, UntrustedText::Fence) => Some(fence(&format!("text by {}, not trusted", author.name), text)),
            (None, UntrustedText::Omit) => {
                let name = one_line(&author.name);
                Some(format!("(The description is left out: {name} is not trusted in this repository.)"))
            }
        },
    }
}

/// Returns the trusted person who let a stranger's ticket be worked on. `None` if there is none, or if an untrusted person has changed the
/// text since.
fn let_in_by<'a>(ticket: &'a Ticket, settings: &'a Settings) -> Option<&'a Author> {
    let counts = |who: &Author| who.ourselves || is_trusted(who, settings);
    let labels = &settings.tracker.required_labels;
    if ticket.history.reworded_since(labels, counts).is_some() {
        return None;
    }
    ticket.history.let_in(labels).map(|(who, ..)| who).find(|who| counts(who))
}

/// Returns a comment for the prompt. `None` for Dirigent's own comments; comments of strangers are left out or fenced.
fn shown_comment(comment: &Comment, settings: &Settings) -> Option<Json> {
    if comment.author.ourselves {
        return None;
    }
    let trusted = is_trusted(&comment.author, settings);
    let body = match (trusted, settings.tracker.untrusted_text) {
        (true, _) => cut(comment.body.trim(), MAX_COMMENT),
        (false, UntrustedText::Omit) => return None,
        (false, UntrustedText::Fence) => {
            let name = format!("comment by {}, not trusted", comment.author.name);
            fence(&name, &cut(comment.body.trim(), MAX_COMMENT))
        }
    };
    Some(json!({
        "id": comment.id,
        "author": one_line(&comment.author.name),
        "trust": comment.author.trust,
        "trusted": trusted,
        "body": body,
        "created_at": comment.created_at.map(rfc3339),
    }))
}

fn is_trusted(author: &Author, settings: &Settings) -> bool {
    let tracker = &settings.tracker;
    let named = || tracker.trusted_accounts.iter().any(|name| name.eq_ignore_ascii_case(&author.name));
    author.trust != TrustLevel::Bot && (tracker.trusted.contains(&author.trust) || named())
}

fn evidence(evidence: &Evidence) -> Json {
    let mut record = serde_json::to_value(evidence).unwrap_or_default();
    let text = evidence_text(&record);
    if let Some(record) = record.as_object_mut() {
        record.insert("text".to_owned(), text.into());
    }
    record
}

/// Converts a record of evidence to text for people.
pub fn evidence_text(record: &Json) -> String {
    let field = |name: &str| match record.get(name) {
        Some(Json::String(text)) => text.clone(),
        Some(Json::Null) | None => String::new(),
        Some(other) => other.to_string(),
    };
    match field("type").as_str() {
        "command" => {
            let (command, output, code) = (field("command"), field("output"), field("exit_code"));
            // A command that was stopped has no exit code of its own.
            let end =
                if code.starts_with('-') { "no exit code: it was stopped".into() } else { format!("exit code {code}") };
            format!("$ {command}\n{}\n{end}", output.trim_end())
        }
        "file" => format!("{} {}", field("action"), field("path")),
        "test" => format!("{} passed, {} failed", field("passed"), field("failed")),
        _ => field("text"),
    }
}

fn rfc3339(at: Timestamp) -> String {
    jiff::Timestamp::from_millisecond(at.0).map(|at| at.to_string()).unwrap_or_default()
}

/// Returns a context in which every variable is set, to try templates on.
pub fn sample() -> Json {
    use crate::domain::job::{HumanMessage, ReworkCause, ReworkTrigger};
    use crate::domain::ticket::Blocker;

    let ticket = Ticket {
        id: "1".into(),
        key: "EX-1".into(),
        title: "An example".to_owned(),
        description: Some("What is wanted.".to_owned()),
        priority: Some(2),
        state: "open".to_owned(),
        branch_name: Some("ex-1".to_owned()),
        url: Some("https://example.org/EX-1".to_owned()),
        assignee: Some("somebody".to_owned()),
        author: Some(Author::new("somebody", TrustLevel::Admin)),
        labels: vec!["example".to_owned()],
        blocked_by: vec![Blocker { id: "2".into(), key: "EX-2".into(), state: Some("open".to_owned()), failed: false }],
        parent: Some("3".into()),
        dispatchable: Dispatchable::Yes,
        created_at: Some(Timestamp(0)),
        updated_at: Some(Timestamp(0)),
        native_ref: None,
        state_changed: None,
        history: Default::default(),
        comments: Some(vec![Comment {
            id: "4".into(),
            author: Author::new("somebody", TrustLevel::Admin),
            body: "A word.".to_owned(),
            created_at: Some(Timestamp(0)),
            updated_at: None,
        }]),
    };
    let note = crate::domain::evidence::EvidenceKind::Note { text: "a fact".to_owned() };
    let work = Work::Rework {
        cause: ReworkCause {
            trigger: ReworkTrigger::GateFailed,
            summary: "a gate failed".to_owned(),
            evidence: vec![Evidence { kind: note, timestamp: Timestamp(0) }],
        },
    };
    let (from, text) = ("somebody".to_owned(), "Go on.".to_owned());
    let word = HumanMessage { key: None, from, text, at: Timestamp(0), urgent: false };
    let input = PromptInput {
        ticket: &ticket,
        attempt: 2,
        work: &work,
        run: super::RunFacts {
            id: "run",
            phase: "rework",
            turn: 1,
            branch: "dirigent/EX-1",
            base: "main",
            worktree: std::path::Path::new("/worktree"),
            ticket_tools: false,
            desk_tools: true,
        },
        undelivered: std::slice::from_ref(&word),
        attached: &[],
        previous: Some(super::Previous {
            summary: Some("a summary"),
            failure: Some("a failure"),
            head: Some("0123456789abcdef"),
            salvage: Some("refs/dirigent/salvage/run"),
        }),
        review: None,
    };
    context(&input, &Settings::default())
}
