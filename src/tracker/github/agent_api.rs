//! `github_api`: GitHub's REST API for an agent, within this repository. Reads are restricted to a list of paths, writes to
//! comments on the run's own issue and pull request. Everything else is refused.

use async_trait::async_trait;
use http::Method;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{GithubTracker, marks};
use crate::domain::permit::Permit;
use crate::domain::service::{ApiAnswer, ApiDeed, ApiScope, ApiTool};
use crate::github::{GithubError, Purpose, segment, with_query};
use crate::tracker::{AgentApi, TrackerError};

/// The paths below the repository that may be read: `N` is a number, `*` is any one segment, `**` is any rest.
const READABLE: &[&str] = &[
    "issues",
    "issues/N",
    "issues/N/comments",
    "issues/N/events",
    "issues/N/timeline",
    "issues/N/labels",
    "issues/N/sub_issues",
    "issues/N/dependencies/blocked_by",
    "issues/N/dependencies/blocking",
    "issues/comments/N",
    "pulls",
    "pulls/N",
    "pulls/N/comments",
    "pulls/N/commits",
    "pulls/N/files",
    "pulls/N/reviews",
    "pulls/N/reviews/N/comments",
    "pulls/N/requested_reviewers",
    "pulls/comments/N",
    "contents",
    "contents/**",
    "commits",
    "commits/*",
    "commits/*/check-runs",
    "commits/*/check-suites",
    "commits/*/status",
    "commits/*/statuses",
    "commits/*/pulls",
    "compare/*",
    "check-runs/N",
    "check-runs/N/annotations",
    "check-suites/N",
    "check-suites/N/check-runs",
    "actions/runs",
    "actions/runs/N",
    "actions/runs/N/jobs",
    "actions/jobs/N",
];

const NOT_READABLE: &str = "may be read: issues, pulls, contents, commits, compare, check-runs, check-suites and actions/runs of this repository";
const NOT_WRITABLE: &str = "may be written: POST issues/{number}/comments on the run's own issue or pull request, and POST \
                            pulls/{number}/comments/{id}/replies on its own pull request, each with {\"body\": text}";

/// A request in Symphony's format: a relative path, query parameters, a body.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    #[serde(default)]
    method: Option<String>,
    path: String,
    #[serde(default)]
    params: Map<String, Value>,
    #[serde(default)]
    body: Option<Value>,
}

/// A request that may be sent.
#[derive(Debug, PartialEq)]
enum Allowed {
    Read { path: String },
    Comment { number: u64, text: String },
    Reply { pull: u64, to: u64, text: String },
}

pub fn api_tool() -> ApiTool {
    ApiTool {
        name: "github_api",
        description: "Asks GitHub's REST API about this repository, with the runner's access. `path` is relative to the repository, such as \
                      `issues/12/comments`. Reads issues, pulls, contents, commits, checks and Actions runs; where the workflow allows writing, \
                      comments on the run's own issue and pull request.",
        input_schema: json!({
            "type": "object",
            "properties": {
                "method": { "type": "string", "enum": ["GET", "POST"], "description": "GET where it is left out" },
                "path": { "type": "string", "description": "Relative to the repository" },
                "params": { "type": "object", "description": "The query, such as {\"per_page\": 50, \"page\": 2}" },
                "body": { "type": "object", "description": "For POST" },
            },
            "required": ["path"],
        }),
    }
}

#[async_trait]
impl AgentApi for GithubTracker {
    fn tool(&self) -> ApiTool {
        api_tool()
    }

    async fn judge(&self, scope: &ApiScope, request: &Value) -> Result<ApiDeed, String> {
        Ok(match self.allowed(scope, request)? {
            Allowed::Read { .. } => ApiDeed::Read,
            Allowed::Comment { number, .. } => ApiDeed::Write { what: format!("a comment on #{number}") },
            Allowed::Reply { pull, to, .. } => {
                ApiDeed::Write { what: format!("an answer to review comment {to} of #{pull}") }
            }
        })
    }

    async fn read_api(&self, scope: &ApiScope, request: &Value) -> Result<ApiAnswer, TrackerError> {
        match self.allowed(scope, request) {
            Ok(Allowed::Read { path }) => answered(self.github.get::<Value>(Purpose::Worker, &path).await),
            Ok(_) => Ok(failed("this request writes")),
            Err(why) => Ok(failed(why)),
        }
    }

    async fn write_api(&self, _: &Permit, scope: &ApiScope, request: &Value) -> Result<ApiAnswer, TrackerError> {
        let (path, text) = match self.allowed(scope, request) {
            Ok(Allowed::Comment { number, text }) => (self.issue_path(number, "/comments"), text),
            Ok(Allowed::Reply { pull, to, text }) => (self.path(&format!("/pulls/{pull}/comments/{to}/replies")), text),
            Ok(Allowed::Read { .. }) => return Ok(failed("this request only reads")),
            Err(why) => return Ok(failed(why)),
        };
        let body = json!({ "body": marks::marked(&text, &marks::marker(&scope.mark)) });
        let _writing = self.writing.lock().await;
        answered(self.github.write::<Value>(Purpose::Worker, Method::POST, &path, Some(&body)).await)
    }
}

impl GithubTracker {
    fn allowed(&self, scope: &ApiScope, request: &Value) -> Result<Allowed, String> {
        let request: Request = serde_json::from_value(request.clone())
            .map_err(|error| format!("not a request: {error}; it has path, and may have method, params and body"))?;
        let segments = self.segments(&request.path)?;
        let parts: Vec<&str> = segments.iter().map(String::as_str).collect();
        match request.method.as_deref().unwrap_or("GET").to_ascii_uppercase().as_str() {
            "GET" if request.body.is_some() => Err("a GET has no body; use params".to_owned()),
            "GET" if READABLE.iter().any(|pattern| fits(pattern, &parts)) => {
                let path: Vec<String> = parts.iter().map(|part| segment(part)).collect();
                let query = query(&request.params)?;
                let query: Vec<(&str, &str)> =
                    query.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
                Ok(Allowed::Read { path: with_query(&self.path(&format!("/{}", path.join("/"))), &query) })
            }
            "GET" => Err(format!("{} may not be read; {NOT_READABLE}", request.path)),
            "POST" => self.writing(scope, &request, &parts),
            method => Err(format!("{method} {} is not allowed; {NOT_WRITABLE}", request.path)),
        }
    }

    fn writing(&self, scope: &ApiScope, request: &Request, parts: &[&str]) -> Result<Allowed, String> {
        let refused = || format!("POST {} is not allowed; {NOT_WRITABLE}", request.path);
        if !request.params.is_empty() {
            return Err("a POST has no params".to_owned());
        }
        let text = match request.body.as_ref().and_then(Value::as_object) {
            Some(body) if body.len() == 1 => body.get("body").and_then(Value::as_str).unwrap_or_default().trim(),
            _ => return Err("the body has to be {\"body\": text}".to_owned()),
        };
        if text.is_empty() {
            return Err("the text is empty".to_owned());
        }
        let issue = Self::number(&scope.ticket).ok();
        let pull = scope.pull_request.as_deref().and_then(|url| self.own_pull(url));
        let number = |text: &str| text.parse::<u64>().ok();
        match parts {
            ["issues", at, "comments"] => {
                let number = number(at).filter(|at| Some(*at) == issue || Some(*at) == pull).ok_or_else(refused)?;
                Ok(Allowed::Comment { number, text: text.to_owned() })
            }
            ["pulls", at, "comments", to, "replies"] => {
                let at = number(at).filter(|at| Some(*at) == pull).ok_or_else(refused)?;
                Ok(Allowed::Reply { pull: at, to: number(to).ok_or_else(refused)?, text: text.to_owned() })
            }
            _ => Err(refused()),
        }
    }

    /// Returns the number of a pull request. `None` if it is in another repository.
    fn own_pull(&self, url: &str) -> Option<u64> {
        let (repository, number) = url.rsplit_once("/pull/")?;
        let slug = format!("/{}/{}", self.board.owner, self.board.name).to_ascii_lowercase();
        repository.to_ascii_lowercase().ends_with(&slug).then(|| number.parse().ok()).flatten()
    }

    /// Returns the segments of a path below the repository. A full path is accepted if it is one of this repository.
    fn segments(&self, path: &str) -> Result<Vec<String>, String> {
        let plain = path.trim().trim_start_matches('/');
        let mut parts: Vec<&str> = plain.split('/').collect();
        if let ["repos", owner, name, ..] = parts.as_slice() {
            let here = owner.eq_ignore_ascii_case(&self.board.owner) && name.eq_ignore_ascii_case(&self.board.name);
            if !here {
                return Err(format!("only {}/{} can be asked about", self.board.owner, self.board.name));
            }
            parts.drain(..3);
        }
        // Each segment is encoded, so no character of it has a special meaning in the address.
        if parts.iter().any(|part| part.is_empty() || *part == "." || *part == ".." || part.contains(char::is_control))
        {
            return Err(format!("`{path}` is not a path; write it as `issues/12`, and the query as params"));
        }
        Ok(parts.into_iter().map(str::to_owned).collect())
    }
}

fn fits(pattern: &str, parts: &[&str]) -> bool {
    let wanted: Vec<&str> = pattern.split('/').collect();
    let open = wanted.last() == Some(&"**");
    let fixed = if open { wanted.len() - 1 } else { wanted.len() };
    let long_enough = if open { parts.len() > fixed } else { parts.len() == fixed };
    long_enough
        && wanted.iter().zip(parts).take(fixed).all(|(wanted, part)| match *wanted {
            "N" => !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()),
            "*" => true,
            word => word == *part,
        })
}

fn query(params: &Map<String, Value>) -> Result<Vec<(String, String)>, String> {
    let pair = |(key, value): (&String, &Value)| {
        if !key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            return Err(format!("`{key}` is not a parameter"));
        }
        match value {
            Value::String(text) => Ok((key.clone(), text.clone())),
            Value::Number(_) | Value::Bool(_) => Ok((key.clone(), value.to_string())),
            _ => Err(format!("parameter `{key}` has to be a text, a number or a boolean")),
        }
    };
    params.iter().map(pair).collect()
}

fn failed(why: impl Into<String>) -> ApiAnswer {
    ApiAnswer { success: false, output: why.into() }
}

/// Separates errors: GitHub's response to the request is for the agent, an error that concerns the runner's access is for the
/// runner.
fn answered(result: Result<Value, GithubError>) -> Result<ApiAnswer, TrackerError> {
    match result {
        Ok(value) => Ok(ApiAnswer { success: true, output: format!("{value:#}") }),
        Err(
            error @ (GithubError::RateLimited { .. }
            | GithubError::Auth(_)
            | GithubError::Withdrawn
            | GithubError::Unreachable(_)
            | GithubError::MaybeDone(_)),
        ) => Err(error.into()),
        Err(error) => Ok(failed(error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_on_the_list_does_not_fit() {
        let readable = |path: &str| {
            let parts: Vec<&str> = path.split('/').collect();
            READABLE.iter().any(|pattern| fits(pattern, &parts))
        };
        for path in
            ["issues", "issues/3/timeline", "contents/src/main.rs", "commits/main/status", "actions/runs/4/jobs"]
        {
            assert!(readable(path), "{path}");
        }
        for path in [
            "secret-scanning/alerts",
            "keys",
            "actions/secrets",
            "actions/variables",
            "actions/runs/4/logs",
            "hooks",
            "collaborators",
            "branches/main/protection",
            "issues/x",
            "issues/3/lock",
            "dependabot/secrets",
            "",
        ] {
            assert!(!readable(path), "{path}");
        }
    }
}
