//! Diffs and worktrees over HTTP: what a head has beyond its base, the list of worktrees, and the removal of old ones.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::http::header::{ACCEPT, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::Response;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error::ApiError;
use super::guard::Bearer;
use super::routes::json;
use super::shapes::time;
use super::{Site, body};
use crate::domain::ids::RunId;
use crate::domain::job::SwitchSource;
use crate::domain::snapshot::JobView;
use crate::workspace::{GcAction, Patch, Workspaces};

/// Limit of a diff in bytes.
const LARGEST_PATCH: usize = 1 << 20;
/// Minimum age of a worktree that is removed, whatever the request says: a run may just have made it.
const YOUNGEST: Duration = Duration::from_secs(60);
const USUAL_AGE: Duration = Duration::from_secs(24 * 60 * 60);

/// The response of `GET /api/v1/{key}/diff`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DiffAnswer {
    pub key: String,
    pub base: String,
    /// The commit of the diff, which an approval has to contain.
    pub head: String,
    pub files: Vec<DiffFile>,
    /// The diff in the format of `git diff`.
    pub patch: String,
    /// Whether the diff is truncated. `dirigent diff` shows all of it.
    pub cut: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DiffFile {
    pub path: String,
    pub added: usize,
    pub removed: usize,
}

pub async fn diff(
    State(site): State<Arc<Site>>,
    Path(key): Path<String>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let job = site.records.ticket(site.handle.snapshot(), &key).await?.job;
    let answer = site.diff(&job).await?;
    let wanted = headers.get(ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    if wanted.starts_with("text/x-diff") || wanted.starts_with("text/plain") {
        let mut response = Response::new(Body::from(answer.patch));
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/x-diff; charset=utf-8"));
        return Ok(response);
    }
    json(StatusCode::OK, &answer)
}

impl Site {
    /// Returns what the ticket's head has beyond its base, without secrets.
    pub async fn diff(&self, job: &JobView) -> Result<DiffAnswer, ApiError> {
        let workspaces = trees(self)?;
        let Some(head) = &job.head else {
            return Err(ApiError::conflict(format!("{} has no commit to look at yet", job.key)));
        };
        let base = match job.merged_onto() {
            // The base contains a merged head already, so the head is compared with what it was merged onto.
            Some(base) => base,
            None => {
                let base = workspaces.base_commit(&self.records.base_branch).await;
                base.map_err(|error| failed("the base branch cannot be read", &error))?.to_string()
            }
        };
        let patch = workspaces.patch(&base, head, LARGEST_PATCH).await;
        let Patch { base, head, files, text, cut } =
            patch.map_err(|error| failed("the commits cannot be compared", &error))?;
        let shown = |path: String| self.clean.without_secrets(&path);
        Ok(DiffAnswer {
            key: job.key.clone(),
            base,
            head,
            files: files
                .into_iter()
                .map(|file| DiffFile { path: shown(file.path), added: file.added, removed: file.removed })
                .collect(),
            patch: shown(text),
            cut,
        })
    }
}

fn trees(site: &Site) -> Result<&Workspaces, ApiError> {
    let message = "there are no worktrees here (`workspace.mode` is `directory`)";
    site.records.workspaces.as_ref().ok_or_else(|| ApiError::conflict(message))
}

fn failed(what: &str, error: &dyn std::fmt::Display) -> ApiError {
    tracing::warn!(%error, what, "the API could not look something up");
    ApiError::internal(what)
}

/// The response of `GET /api/v1/workspaces`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct WorkspacesAnswer {
    pub workspaces: Vec<WorkspaceLine>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct WorkspaceLine {
    /// The directory's name below the root of all worktrees.
    pub name: String,
    pub key: String,
    pub run: String,
    pub branch: String,
    pub made_at: String,
    /// Whether its run is live.
    pub live: bool,
    pub exists: bool,
}

pub async fn list(State(site): State<Arc<Site>>) -> Result<Response, ApiError> {
    let listed = trees(&site)?.list().await.map_err(|error| failed("the worktrees cannot be listed", &error))?;
    let live = live_runs(&site);
    let workspaces = listed
        .into_iter()
        .map(|listed| WorkspaceLine {
            name: name(&listed.worktree.path),
            key: listed.worktree.key.to_string(),
            live: live.contains(&listed.worktree.run),
            run: listed.worktree.run.to_string(),
            branch: listed.worktree.branch,
            made_at: time(listed.made_at),
            exists: listed.exists,
        })
        .collect();
    json(StatusCode::OK, &WorkspacesAnswer { workspaces })
}

fn name(path: &std::path::Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

fn live_runs(site: &Site) -> BTreeSet<RunId> {
    let picture = site.handle.snapshot();
    picture.jobs.iter().filter_map(|job| job.run.as_ref()).map(|run| RunId::new(run.id.clone())).collect()
}

/// The body of `POST /api/v1/workspaces/cleanup`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CleanupWords {
    /// Whether to only report what would be removed.
    #[serde(default)]
    pub dry_run: bool,
    /// Minimum age of what is removed, in milliseconds. Default: one day. It is never less than a minute.
    #[serde(default)]
    pub max_age_ms: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CleanupAnswer {
    pub workspaces: Vec<CleanupLine>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CleanupLine {
    pub name: String,
    pub run: Option<String>,
    /// `removed`, `would_remove` or `kept`.
    pub action: String,
    pub because: Option<String>,
    /// The ref with the saved uncommitted work.
    pub salvage: Option<String>,
}

pub async fn cleanup(State(site): State<Arc<Site>>, request: Request) -> Result<Response, ApiError> {
    let (parts, sent) = request.into_parts();
    let CleanupWords { dry_run, max_age_ms } = body::object(&parts.headers, sent).await?;
    let workspaces = trees(&site)?;
    let picture = site.handle.snapshot();
    let stops = |source: SwitchSource| matches!(source, SwitchSource::File | SwitchSource::PauseAll);
    let is_stopped = picture.switches.iter().any(|switch| stops(switch.source)) || picture.rollout == "observe";
    if is_stopped && !dry_run {
        return Err(ApiError::conflict("nothing is removed while everything is stopped, or in observe mode"));
    }
    let age = max_age_ms.map_or(USUAL_AGE, Duration::from_millis).max(YOUNGEST);
    let by = parts.extensions.get::<Bearer>().map_or("", |bearer| bearer.0.as_str());
    tracing::info!(by, dry_run, "old worktrees are collected");
    let items = workspaces.gc(age, dry_run, &live_runs(&site)).await;
    let items = items.map_err(|error| failed("the worktrees cannot be collected", &error))?;
    let line = |item: crate::workspace::GcItem| {
        let (action, because, salvage) = match item.action {
            GcAction::Removed { salvage } => ("removed", None, salvage.map(|salvage| salvage.reference)),
            GcAction::WouldRemove => ("would_remove", None, None),
            GcAction::Kept { because } => ("kept", Some(site.clean.text(&because)), None),
        };
        let run = item.run.map(|run| run.to_string());
        CleanupLine { name: name(&item.path), run, action: action.to_owned(), because, salvage }
    };
    json(StatusCode::OK, &CleanupAnswer { workspaces: items.into_iter().map(line).collect() })
}
