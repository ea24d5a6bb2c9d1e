//! GraphQL: one address for everything, and errors that come with status 200.

use std::fmt::{self, Display};
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Github;
use super::answer::{read_json, read_written};
use super::error::{GithubError, LimitKind, Rejection};
use super::pace::Purpose;
use super::transport::Ask;

/// What a question was answered with. A part that is missing is told by a fault with its place.
#[derive(Debug, Deserialize)]
#[serde(bound = "T: DeserializeOwned")]
pub struct GraphqlAnswer<T> {
    #[serde(default = "nothing")]
    pub data: Option<T>,
    #[serde(default, rename = "errors")]
    pub faults: Vec<GraphqlFault>,
}

fn nothing<T>() -> Option<T> {
    None
}

/// Why a part of the answer is missing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct GraphqlFault {
    /// `NOT_FOUND`, `FORBIDDEN`, `RATE_LIMITED` and the like; empty where GitHub has no word for it.
    #[serde(rename = "type")]
    pub kind: String,
    pub message: String,
    #[serde(deserialize_with = "steps")]
    pub path: Vec<String>,
}

impl Display for GraphqlFault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.message)
    }
}

/// Names and numbers alike.
fn steps<'de, D: serde::Deserializer<'de>>(input: D) -> Result<Vec<String>, D::Error> {
    let steps = Option::<Vec<Value>>::deserialize(input)?.unwrap_or_default();
    let text = |step: &Value| step.as_str().map_or_else(|| step.to_string(), str::to_owned);
    Ok(steps.iter().map(text).collect())
}

#[derive(Serialize)]
struct Asked<'a> {
    query: &'a str,
    variables: &'a Value,
}

/// GraphQL's limit names no end in its body; its headers do.
const UNNAMED_WAIT: Duration = Duration::from_secs(60);

impl Github {
    /// A query. Parts of the answer may be missing; the caller looks at the faults.
    pub async fn query<T: DeserializeOwned>(
        &self,
        purpose: Purpose,
        document: &str,
        variables: &Value,
    ) -> Result<GraphqlAnswer<T>, GithubError> {
        let question = Ask::graphql(&Asked { query: document, variables }, false)?;
        let answer = self.send(purpose, &question).await?;
        let read: GraphqlAnswer<T> = read_json(&answer.body)?;
        self.limit_of(&read.faults)?;
        match read.data {
            Some(_) => Ok(read),
            None => Err(failed(&read.faults, false)),
        }
    }

    /// A mutation: done without a fault, or an error. Sent once.
    pub async fn mutate<T: DeserializeOwned>(
        &self,
        purpose: Purpose,
        document: &str,
        variables: &Value,
    ) -> Result<T, GithubError> {
        let question = Ask::graphql(&Asked { query: document, variables }, true)?;
        let answer = self.send(purpose, &question).await?;
        // First what went wrong: with a fault, the data need not have the shape that was asked for.
        let faults: GraphqlAnswer<Value> = read_written(&answer.body)?;
        self.limit_of(&faults.faults)?;
        if !faults.faults.is_empty() {
            return Err(failed(&faults.faults, true));
        }
        let read: GraphqlAnswer<T> = read_written(&answer.body)?;
        read.data.ok_or_else(|| GithubError::MaybeDone("the answer to a change is empty".to_owned()))
    }

    fn limit_of(&self, faults: &[GraphqlFault]) -> Result<(), GithubError> {
        match faults.iter().any(|fault| fault.kind == "RATE_LIMITED") {
            true => {
                let wait = self.parts.pace.graphql_wait().unwrap_or(UNNAMED_WAIT);
                Err(GithubError::RateLimited { wait, by: LimitKind::Primary })
            }
            false => Ok(()),
        }
    }
}

/// What faults without data mean.
fn failed(faults: &[GraphqlFault], mutates: bool) -> GithubError {
    let Some(first) = faults.first() else {
        return GithubError::Unreadable("an answer without data and without errors".to_owned());
    };
    let message = faults.iter().map(GraphqlFault::to_string).collect::<Vec<_>>().join("; ");
    let refusal =
        |status| GithubError::Refused(Rejection { status, message: message.clone(), fields: Vec::new(), needs: None });
    match first.kind.as_str() {
        "NOT_FOUND" => GithubError::NotFound(message),
        "FORBIDDEN" | "INSUFFICIENT_SCOPES" => refusal(403),
        "" if mutates => GithubError::MaybeDone(message),
        "" | "INTERNAL" | "SERVICE_UNAVAILABLE" | "TIMEOUT" => GithubError::Server { status: 502, detail: message },
        _ => refusal(422),
    }
}
