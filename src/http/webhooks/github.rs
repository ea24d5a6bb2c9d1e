//! Reads which tickets or pull requests a delivery of GitHub concerns. Apart from the repository and ids, its content is not trusted.

use serde_json::Value;

use crate::domain::hint::{Hint, RemarkId};
use crate::domain::ids::{CommentId, PrNumber, TicketId};
use crate::domain::remark::RemarkKind;
use crate::domain::snapshot::Snapshot;
use crate::domain::time::Timestamp;
use crate::runtime::DeliverySource;

/// Returns what may have changed, and whether that is on the board or at the forge. Empty for events that are not used.
pub fn hints(
    event: &str,
    payload: &Value,
    board: Option<&str>,
    forge: Option<&str>,
    picture: &Snapshot,
) -> (DeliverySource, Vec<Hint>) {
    let repository = payload["repository"]["full_name"].as_str().unwrap_or_default();
    let is = |ours: Option<&str>| ours.is_some_and(|ours| ours.eq_ignore_ascii_case(repository));
    let (on_board, at_forge) = (is(board), is(forge));
    match event {
        "issues" | "sub_issues" | "issue_dependencies" if on_board => {
            (DeliverySource::Board, issue(payload, event == "issues"))
        }
        "issue_comment" if payload["issue"]["pull_request"].is_object() => {
            (DeliverySource::Forge, if at_forge { comment(payload) } else { Vec::new() })
        }
        "issue_comment" if on_board => (DeliverySource::Board, issue(payload, true)),
        // Project columns belong to no repository.
        "projects_v2_item" if board.is_some() => (DeliverySource::Board, vec![Hint::Board]),
        // A changed label or milestone may decide about many tickets.
        "label" | "milestone" if on_board => (DeliverySource::Board, vec![Hint::Board]),
        _ if at_forge => (DeliverySource::Forge, pull_requests(event, payload, picture)),
        _ => (DeliverySource::Forge, Vec::new()),
    }
}

fn issue(payload: &Value, has_time: bool) -> Vec<Hint> {
    let Some(number) = payload["issue"]["number"].as_u64() else { return vec![Hint::Board] };
    let is_gone = matches!(payload["action"].as_str(), Some("deleted" | "transferred"));
    let floor = payload["issue"]["updated_at"].as_str().filter(|_| has_time && !is_gone).and_then(time);
    vec![Hint::Ticket { id: TicketId::new(format!("GH-{number}")), floor }]
}

/// Returns the hint of a comment on a pull request.
fn comment(payload: &Value) -> Vec<Hint> {
    let floor = is_new(payload).then(|| remark(RemarkKind::PrComment, &payload["comment"])).flatten();
    about(&payload["issue"]["number"], floor)
}

fn pull_requests(event: &str, payload: &Value, picture: &Snapshot) -> Vec<Hint> {
    let number = &payload["pull_request"]["number"];
    match event {
        "pull_request" | "pull_request_review_comment" => about(number, None),
        "pull_request_review" => {
            let is_word = payload["action"] == "submitted" && payload["review"]["state"] == "changes_requested";
            about(number, is_word.then(|| remark(RemarkKind::Verdict, &payload["review"])).flatten())
        }
        "pull_request_review_thread" => {
            let floor = (payload["action"] == "unresolved").then(|| remark(RemarkKind::Thread, &payload["thread"]));
            about(number, floor.flatten())
        }
        "check_run" | "check_suite" | "workflow_run" => {
            let told = &payload[event];
            let listed = told["pull_requests"].as_array().map(Vec::as_slice).unwrap_or_default();
            let named: Vec<Hint> = listed.iter().flat_map(|pr| about(&pr["number"], None)).collect();
            if named.is_empty() { of_head(&told["head_sha"], picture) } else { named }
        }
        "status" => of_head(&payload["sha"], picture),
        "push" => {
            let branch = payload["ref"].as_str().and_then(|name| name.strip_prefix("refs/heads/")).unwrap_or_default();
            let of_branch = picture.jobs.iter().filter(|job| job.branch == branch).filter_map(|job| job.pr.as_ref());
            let known: Vec<Hint> =
                of_branch.map(|pr| Hint::PullRequest { number: PrNumber(pr.number), floor: None }).collect();
            // The base branch is read together with the board.
            if known.is_empty() && branch == payload["repository"]["default_branch"] {
                vec![Hint::Board]
            } else {
                known
            }
        }
        _ => Vec::new(),
    }
}

/// Finds pull requests by their head commit. GitHub does not list those of forks in the delivery.
fn of_head(sha: &Value, picture: &Snapshot) -> Vec<Hint> {
    let Some(sha) = sha.as_str().filter(|sha| !sha.is_empty()) else { return Vec::new() };
    let at_head = picture.jobs.iter().filter(|job| job.head.as_deref() == Some(sha)).filter_map(|job| job.pr.as_ref());
    at_head.map(|pr| Hint::PullRequest { number: PrNumber(pr.number), floor: None }).collect()
}

fn about(number: &Value, floor: Option<RemarkId>) -> Vec<Hint> {
    number.as_u64().map(|number| Hint::PullRequest { number: PrNumber(number), floor }).into_iter().collect()
}

fn is_new(payload: &Value) -> bool {
    payload["action"] == "created"
}

fn remark(kind: RemarkKind, said: &Value) -> Option<RemarkId> {
    Some(RemarkId { kind, id: CommentId::new(said["node_id"].as_str()?) })
}

fn time(text: &str) -> Option<Timestamp> {
    text.parse::<jiff::Timestamp>().ok().map(|at| Timestamp(at.as_millisecond()))
}
