//! `linear_graphql`: Linear's API for an agent, with the name and the request format that Symphony uses. Reads are restricted to a
//! list of root fields. A write is one mutation on the run's own ticket, with ids chosen by the runner and the worker's mark in
//! every comment.

use async_trait::async_trait;
use serde_json::{Value, json};

use super::LinearTracker;
use super::agent_document::{AgentDocument, AgentWrite, Deed, Sendable};
use super::client::CallKind;
use super::keys::own_id;
use super::marks::{HIDDEN, has_mark, shown};
use super::refusals::WriteFailure;
use crate::domain::ids::CommentId;
use crate::domain::permit::Permit;
use crate::domain::service::{ApiAnswer, ApiDeed, ApiScope, ApiTool};
use crate::tracker::{AgentApi, TrackerError};

const LONGEST_BODY: usize = 60 << 10;

pub fn api_tool() -> ApiTool {
    ApiTool {
        name: "linear_graphql",
        description: "Sends one GraphQL operation to Linear with the runner's access. Reads issues, comments, teams, projects, states, users and \
                      what belongs to them. Where the workflow allows writing: one mutation per request, on the run's own ticket: \
                      issueUpdate(input: {stateId}), commentCreate, commentUpdate of a worker's own comment, attachmentCreate, fileUpload. \
                      Moving the ticket out of the active states says that the work is done.",
        input_schema: json!({
            "type": "object",
            "properties": {
                "query": { "type": "string", "description": "One GraphQL operation" },
                "variables": { "type": "object", "description": "Its variables" },
            },
            "required": ["query"],
        }),
    }
}

#[async_trait]
impl AgentApi for LinearTracker {
    fn tool(&self) -> ApiTool {
        api_tool()
    }

    async fn judge(&self, scope: &ApiScope, request: &Value) -> Result<ApiDeed, String> {
        let write = match AgentDocument::read(request)?.deed {
            Deed::Read => return Ok(ApiDeed::Read),
            Deed::Write(write) => write,
        };
        let unreadable = |error: TrackerError| format!("Linear could not be asked about it: {error}");
        let key = &scope.key;
        match write {
            AgentWrite::Move { issue, state } => {
                own(scope, &issue)?;
                let (from, states) = self.states_of(&scope.ticket).await.map_err(unreadable)?;
                let Some((_, to)) = states.iter().find(|(id, _)| *id == state) else {
                    let known: Vec<String> = states.iter().map(|(id, name)| format!("{name} ({id})")).collect();
                    return Err(format!("{state} is not a state of {key}'s team; it has {}", known.join(", ")));
                };
                Ok(ApiDeed::Move { from, to: to.clone() })
            }
            AgentWrite::Comment { issue, body } => {
                own(scope, &issue)?;
                plain(&body)?;
                Ok(ApiDeed::Write { what: format!("a comment on {key}") })
            }
            AgentWrite::Reword { comment, body } => {
                plain(&body)?;
                let found = self.comment_text(&scope.ticket, &CommentId::new(&comment)).await.map_err(unreadable)?;
                let Some(text) = found else { return Err(format!("there is no comment {comment} on {key}")) };
                Ok(ApiDeed::Edit { what: format!("comment {comment} on {key} anew"), text })
            }
            AgentWrite::Attach { issue, url, .. } => {
                own(scope, &issue)?;
                match reqwest::Url::parse(&url) {
                    Ok(address) if ["http", "https"].contains(&address.scheme()) => {}
                    _ => return Err(format!("`{url}` is not an http address")),
                }
                Ok(ApiDeed::Write { what: format!("a link to {url} on {key}") })
            }
            AgentWrite::Upload { filename, .. } => {
                Ok(ApiDeed::Write { what: format!("a place for the file {filename}") })
            }
        }
    }

    async fn read_api(&self, _: &ApiScope, request: &Value) -> Result<ApiAnswer, TrackerError> {
        match AgentDocument::read(request) {
            Ok(document) if document.deed == Deed::Read => {
                // Otherwise a worker that reads in a loop would use up what the runner needs to stop it.
                if let Some(wait) = self.client.budget().near_its_end() {
                    return Ok(failed(format!(
                        "what is left of Linear's limit is kept for writing; ask again in {} s",
                        wait.as_secs() + 1
                    )));
                }
                answered(self.client.relay(&document.as_read(), CallKind::AgentRead).await)
            }
            Ok(_) => Ok(failed("this request writes")),
            Err(why) => Ok(failed(why)),
        }
    }

    async fn write_api(&self, _: &Permit, scope: &ApiScope, request: &Value) -> Result<ApiAnswer, TrackerError> {
        let document = match AgentDocument::read(request) {
            Ok(document) => document,
            Err(why) => return Ok(failed(why)),
        };
        let Deed::Write(write) = &document.deed else { return Ok(failed("this request only reads")) };
        let sendable = match self.ours(scope, &document, write).await? {
            Ok(sendable) => sendable,
            Err(why) => return Ok(failed(why)),
        };
        answered(self.client.relay(&sendable, CallKind::Write).await)
    }
}

impl LinearTracker {
    /// Builds the document to send, with the runner's own arguments. `judge` has checked the agent's arguments; here they are
    /// replaced. An inner error is a sentence for the agent.
    async fn ours(
        &self,
        scope: &ApiScope,
        document: &AgentDocument,
        write: &AgentWrite,
    ) -> Result<Result<Sendable, String>, TrackerError> {
        let ticket = scope.ticket.as_str();
        let marker = format!("{HIDDEN}{} -->", scope.mark);
        let id = || own_id(&["agent", ticket, &scope.mark]);
        Ok(Ok(match write {
            AgentWrite::Move { state, .. } => document.with_arguments(&[
                ("id", "String", json!(ticket)),
                ("input", "IssueUpdateInput", json!({ "stateId": state })),
            ]),
            AgentWrite::Comment { body, .. } => {
                let body = shown(&format!("{body}\n\n{marker}"));
                let input = json!({ "id": id(), "issueId": ticket, "body": body });
                document.with_arguments(&[("input", "CommentCreateInput", input)])
            }
            AgentWrite::Reword { comment, body } => {
                // The original mark stays: it marks the comment as a worker's.
                let text = self.comment_text(&scope.ticket, &CommentId::new(comment)).await?;
                let kept = text.as_deref().and_then(|text| text.lines().rfind(|line| line.starts_with(HIDDEN)));
                let Some(kept) = kept else { return Ok(Err(format!("comment {comment} is not a worker's"))) };
                let input = json!({ "body": shown(&format!("{body}\n\n{kept}")) });
                document.with_arguments(&[("id", "String", json!(comment)), ("input", "CommentUpdateInput", input)])
            }
            AgentWrite::Attach { url, title, subtitle, .. } => {
                let mut input = json!({ "id": id(), "issueId": ticket, "url": url, "title": title });
                if let Some(subtitle) = subtitle {
                    input["subtitle"] = json!(subtitle);
                }
                document.with_arguments(&[("input", "AttachmentCreateInput", input)])
            }
            AgentWrite::Upload { content_type, filename, size } => document.with_arguments(&[
                ("contentType", "String", json!(content_type)),
                ("filename", "String", json!(filename)),
                ("size", "Int", json!(size)),
            ]),
        }))
    }
}

/// Checks that `issue` is the run's own ticket, given by its id or by its key.
fn own(scope: &ApiScope, issue: &str) -> Result<(), String> {
    if issue == scope.ticket.as_str() || issue.eq_ignore_ascii_case(scope.key.as_str()) {
        return Ok(());
    }
    Err(format!("this run may only write to its own ticket, {} ({})", scope.key, scope.ticket))
}

/// Refuses a text that is too long or contains a mark. A mark in the agent's text would pass for another author's.
fn plain(body: &str) -> Result<(), String> {
    if has_mark(body) {
        return Err("the text contains a mark, `dirigent:...`, which only the runner writes; leave it out".to_owned());
    }
    if body.len() > LONGEST_BODY {
        return Err(format!("the text has {} KB, and {} are the most", body.len() >> 10, LONGEST_BODY >> 10));
    }
    Ok(())
}

fn failed(why: impl Into<String>) -> ApiAnswer {
    ApiAnswer { success: false, output: why.into() }
}

/// Separates errors: Linear's response to the request is for the agent, an error that concerns the runner's access is for the
/// runner.
fn answered(result: Result<Value, WriteFailure>) -> Result<ApiAnswer, TrackerError> {
    match result {
        Ok(data) => {
            let done = !data.as_object().is_some_and(|fields| fields.values().any(|field| field["success"] == false));
            Ok(ApiAnswer { success: done, output: format!("{:#}", json!({ "data": data })) })
        }
        Err(WriteFailure::Missing(why) | WriteFailure::Refused(why)) => Ok(failed(why)),
        Err(WriteFailure::Other(error)) => Err(error),
    }
}
