//! GraphQL: one address for all requests, and errors that come with status 200.

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

/// The response to a GraphQL request. For each part that is missing there is a fault with the path of that part.
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

/// Why a part of the response is missing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct GraphqlFault {
    /// `NOT_FOUND`, `FORBIDDEN`, `RATE_LIMITED` and the like; empty if GitHub sends no type.
    #[serde(rename = "type")]
    pub kind: String,
    pub message: String,
    #[serde(deserialize_with = "steps")]
    pub path: Vec<String>,
}

impl GraphqlFault {
    /// Whether GitHub does not show that part to this credential, or has nothing there. Other faults may pass.
    pub fn is_about_something_hidden(&self) -> bool {
        matches!(self.kind.as_str(), "NOT_FOUND" | "FORBIDDEN")
    }
}

impl Display for GraphqlFault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.message)
    }
}

/// Reads a path of names and numbers as strings.
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

/// The wait after a GraphQL limit if no response header said when the limit ends.
const UNNAMED_WAIT: Duration = Duration::from_secs(60);

impl Github {
    /// Sends a query. Parts of the response may be missing; the caller checks the faults.
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

    /// Sends a mutation once. Any fault in the response is an error.
    pub async fn mutate<T: DeserializeOwned>(
        &self,
        purpose: Purpose,
        document: &str,
        variables: &Value,
    ) -> Result<T, GithubError> {
        let question = Ask::graphql(&Asked { query: document, variables }, true)?;
        let answer = self.send(purpose, &question).await?;
        // The faults first: with a fault, the data need not have the requested shape.
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

/// Turns the faults of a response without data into an error.
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
        "" | "INTERNAL" | "SERVICE_UNAVAILABLE" | "TIMEOUT" if mutates => GithubError::MaybeDone(message),
        "" | "INTERNAL" | "SERVICE_UNAVAILABLE" | "TIMEOUT" => GithubError::Server { status: 502, detail: message },
        _ => refusal(422),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_that_failed_inside_the_server_may_have_been_made() {
        for kind in ["", "INTERNAL", "SERVICE_UNAVAILABLE", "TIMEOUT"] {
            let fault = || GraphqlFault { kind: kind.to_owned(), ..GraphqlFault::default() };
            assert!(matches!(failed(&[fault()], true), GithubError::MaybeDone(_)), "{kind}");
            assert!(matches!(failed(&[fault()], false), GithubError::Server { .. }), "{kind}");
        }
        let fault = GraphqlFault { kind: "UNPROCESSABLE".to_owned(), ..GraphqlFault::default() };
        assert!(matches!(failed(&[fault], true), GithubError::Refused(_)));
    }
}
