//! The wire types between the worker's `tk` and the runner's desk: one JSON object per line, one request per connection. This module opens
//! no socket and decides nothing.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::domain::evidence::EvidenceKind;
use crate::domain::remark::RemarkAnswer;

/// The version that this build speaks. A desk refuses every other version.
pub const DESK_VERSION: u32 = 1;

/// The most bytes that a desk reads of one request line.
pub const MAX_REQUEST_BYTES: u64 = 16 * 1024 * 1024;

/// A request: `{"v":1,"token":"...","verb":"comment","args":{"text":"..."}}`
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeskRequest {
    pub v: u32,
    /// The run's own token, from `DIRIGENT_TOKEN`.
    pub token: String,
    #[serde(flatten)]
    pub verb: DeskVerb,
}

impl std::fmt::Debug for DeskRequest {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("DeskRequest").field("v", &self.v).field("verb", &self.verb).finish_non_exhaustive()
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "verb", content = "args")]
pub enum DeskVerb {
    /// Shows the ticket; with `new` only what was said since the last `show`.
    Show {
        #[serde(default)]
        new: bool,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ticket: Option<String>,
    },
    Comment {
        text: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ticket: Option<String>,
    },
    Evidence {
        evidence: EvidenceKind,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ticket: Option<String>,
    },
    /// Answers a remark that was delivered to this run.
    Answer {
        /// The remark's handle, as the prompt shows it.
        remark: String,
        answer: AnswerKind,
        text: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ticket: Option<String>,
    },
    Done {
        summary: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ticket: Option<String>,
    },
    /// Gives up: the run has failed.
    Failed {
        why: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ticket: Option<String>,
    },
    Blocked {
        reason: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ticket: Option<String>,
    },
    Plan {
        text: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ticket: Option<String>,
    },
    /// Sends a request to the tracker's own API, through the runner.
    Api {
        /// The request, in the shape of that API.
        request: Value,
        /// The name of the tool, if it was called as a tool.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tool: Option<String>,
    },
    /// Creates a follow-up ticket, where the workflow allows it.
    Create {
        title: String,
        #[serde(default)]
        description: String,
        #[serde(default)]
        labels: Vec<String>,
        #[serde(default)]
        priority: Option<i64>,
    },
}

/// What the worker did about a remark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerKind {
    /// The remark is fixed. Accepted only with a commit made since the remark was delivered.
    Fixed,
    Explained,
    Declined,
}

impl AnswerKind {
    pub const ALL: [Self; 3] = [Self::Fixed, Self::Explained, Self::Declined];

    pub fn name(self) -> &'static str {
        match self {
            Self::Fixed => "fixed",
            Self::Explained => "explained",
            Self::Declined => "declined",
        }
    }

    pub fn with(self, text: String) -> RemarkAnswer {
        match self {
            Self::Fixed => RemarkAnswer::Fixed { text },
            Self::Explained => RemarkAnswer::Explained { text },
            Self::Declined => RemarkAnswer::Declined { text },
        }
    }
}

impl DeskVerb {
    pub fn name(&self) -> &'static str {
        match self {
            Self::Show { .. } => "show",
            Self::Comment { .. } => "comment",
            Self::Evidence { .. } => "evidence",
            Self::Answer { .. } => "answer",
            Self::Done { .. } => "done",
            Self::Failed { .. } => "failed",
            Self::Blocked { .. } => "blocked",
            Self::Plan { .. } => "plan",
            Self::Api { .. } => "api",
            Self::Create { .. } => "create",
        }
    }

    /// Whether it declares how the work ended.
    pub fn is_declaration(&self) -> bool {
        matches!(self, Self::Done { .. } | Self::Failed { .. } | Self::Blocked { .. })
    }

    /// Returns how many bytes of text it carries.
    pub fn size(&self) -> usize {
        match self {
            Self::Show { .. } => 0,
            Self::Api { request, .. } => request.to_string().len(),
            Self::Comment { text, .. } | Self::Plan { text, .. } => text.len(),
            Self::Answer { remark, text, .. } => remark.len() + text.len(),
            Self::Done { summary: text, .. } | Self::Failed { why: text, .. } | Self::Blocked { reason: text, .. } => {
                text.len()
            }
            Self::Create { title, description, labels, .. } => {
                title.len() + description.len() + labels.iter().map(String::len).sum::<usize>()
            }
            Self::Evidence { evidence, .. } => match evidence {
                EvidenceKind::Command { command, output, .. } => command.len() + output.len(),
                EvidenceKind::File { path: text, .. } | EvidenceKind::Note { text } => text.len(),
                EvidenceKind::Test { .. } => 0,
            },
        }
    }

    /// Returns the ticket that the caller named, if it named one. The desk refuses any but the run's own.
    pub fn ticket(&self) -> Option<&str> {
        match self {
            Self::Show { ticket, .. }
            | Self::Comment { ticket, .. }
            | Self::Evidence { ticket, .. }
            | Self::Answer { ticket, .. }
            | Self::Done { ticket, .. }
            | Self::Failed { ticket, .. }
            | Self::Blocked { ticket, .. }
            | Self::Plan { ticket, .. } => ticket.as_deref(),
            Self::Api { .. } | Self::Create { .. } => None,
        }
    }
}

/// A response: `{"ok":true,"text":"...","data":...}` or `{"ok":false,"error":{"code":"...","message":"..."}}`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeskResponse {
    pub ok: bool,
    /// What `tk` prints.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The same for machines (`tk show --json`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<DeskError>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeskError {
    /// A stable code for scripts: `bad_token`, `bad_request`, `version`, `other_ticket`, `not_allowed`, `no_such_remark`, `no_commit`,
    /// `over`, `api`.
    pub code: String,
    /// One sentence for the person or agent at the other end.
    pub message: String,
}

impl DeskResponse {
    pub fn done(text: impl Into<String>) -> Self {
        Self { ok: true, text: Some(text.into()), data: None, error: None }
    }

    pub fn with_data(text: impl Into<String>, data: Value) -> Self {
        Self { ok: true, text: Some(text.into()), data: Some(data), error: None }
    }

    pub fn refused(code: impl Into<String>, message: impl Into<String>) -> Self {
        let error = DeskError { code: code.into(), message: message.into() };
        Self { ok: false, text: None, data: None, error: Some(error) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn request(verb: DeskVerb) -> DeskRequest {
        DeskRequest { v: DESK_VERSION, token: "t".into(), verb }
    }

    #[test]
    fn requests_have_the_agreed_shape() {
        let cases = [
            (DeskVerb::Show { new: true, ticket: None }, json!({"new": true}), "show"),
            (
                DeskVerb::Comment { text: "hi".into(), ticket: Some("a-1".into()) },
                json!({"text": "hi", "ticket": "a-1"}),
                "comment",
            ),
            (
                DeskVerb::Evidence { evidence: EvidenceKind::Test { passed: 3, failed: 0 }, ticket: None },
                json!({"evidence": {"type": "test", "passed": 3, "failed": 0}}),
                "evidence",
            ),
            (
                DeskVerb::Answer { remark: "r1".into(), answer: AnswerKind::Declined, text: "no".into(), ticket: None },
                json!({"remark": "r1", "answer": "declined", "text": "no"}),
                "answer",
            ),
            (DeskVerb::Done { summary: "s".into(), ticket: None }, json!({"summary": "s"}), "done"),
            (DeskVerb::Failed { why: "w".into(), ticket: None }, json!({"why": "w"}), "failed"),
            (DeskVerb::Blocked { reason: "r".into(), ticket: None }, json!({"reason": "r"}), "blocked"),
            (DeskVerb::Plan { text: "p".into(), ticket: None }, json!({"text": "p"}), "plan"),
            (
                DeskVerb::Api { request: json!({"path": "issues/1"}), tool: None },
                json!({"request": {"path": "issues/1"}}),
                "api",
            ),
            (
                DeskVerb::Create {
                    title: "t".into(),
                    description: "d".into(),
                    labels: vec!["x".into()],
                    priority: None,
                },
                json!({"title": "t", "description": "d", "labels": ["x"], "priority": null}),
                "create",
            ),
        ];
        for (verb, args, name) in cases {
            assert_eq!(verb.name(), name);
            let wire = serde_json::to_value(request(verb.clone())).unwrap();
            assert_eq!(wire, json!({"v": 1, "token": "t", "verb": name, "args": args}));
            assert_eq!(serde_json::from_value::<DeskRequest>(wire).unwrap(), request(verb));
        }
    }

    #[test]
    fn the_token_does_not_show_in_debug_output() {
        let request = DeskRequest { token: "s3cret".into(), ..request(DeskVerb::Show { new: false, ticket: None }) };
        assert!(!format!("{request:?}").contains("s3cret"));
    }

    #[test]
    fn answers_have_the_agreed_shape() {
        assert_eq!(serde_json::to_value(DeskResponse::done("Noted")).unwrap(), json!({"ok": true, "text": "Noted"}));
        assert_eq!(
            serde_json::to_value(DeskResponse::refused("bad_token", "no")).unwrap(),
            json!({"ok": false, "error": {"code": "bad_token", "message": "no"}})
        );
    }
}
