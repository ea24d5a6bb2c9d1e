//! The REST operations. One function per operation, named in the table below as the description names it.

mod actions;
mod apps;
mod branches;
mod call;
mod checks;
mod comments;
mod commits;
mod issues;
mod labels;
mod people;
mod pulls;
mod reactions;
mod refs;
mod relations;
pub mod render;
mod repos;
mod review_comments;
mod reviews;
mod timeline;

use std::collections::BTreeMap;

use serde_json::Value;

use crate::github::server::caller::Caller;
use crate::github::server::exchange::{Answer, Answered};
use crate::github::state::{Permission, World};

use call::Call;

type Handler = fn(&mut Call) -> Answered;

fn handler(operation: &str) -> Option<Handler> {
    Some(match operation {
        "meta/root" => repos::root,
        "rate-limit/get" => repos::rate_limit,
        "users/get-authenticated" => people::authenticated,
        "users/get-by-username" => people::by_username,
        "repos/get" => repos::get,
        "repos/get-content" => repos::content,
        "repos/check-collaborator" => people::check_collaborator,
        "repos/list-collaborators" => people::collaborators,
        "repos/get-collaborator-permission-level" => people::permission,
        "repos/get-branch" => branches::get,
        "repos/get-branch-protection" => branches::protection,
        "repos/get-branch-rules" => branches::rules,
        "repos/get-repo-rulesets" => branches::rulesets,
        "repos/get-repo-ruleset" => branches::ruleset,
        "repos/get-commit" => commits::get,
        "repos/compare-commits-with-basehead" => commits::compare,
        "repos/list-pull-requests-associated-with-commit" => commits::pulls,
        "git/get-commit" => commits::git_commit,
        "repos/create-commit-status" => checks::create_status,
        "repos/get-combined-status-for-ref" => checks::combined_status,
        "repos/list-commit-statuses-for-ref" => checks::statuses,
        "issues/list-for-repo" => issues::list,
        "issues/get" => issues::get,
        "issues/create" => issues::create,
        "issues/update" => issues::update,
        "issues/lock" => issues::lock,
        "issues/unlock" => issues::unlock,
        "issues/add-assignees" => issues::add_assignees,
        "issues/remove-assignees" => issues::remove_assignees,
        "issues/list-assignees" => people::assignees,
        "issues/check-user-can-be-assigned" => people::check_assignee,
        "issues/list-milestones" => issues::milestones,
        "issues/list-comments" => comments::list,
        "issues/list-comments-for-repo" => comments::list_all,
        "issues/create-comment" => comments::create,
        "issues/get-comment" => comments::get,
        "issues/update-comment" => comments::update,
        "issues/delete-comment" => comments::delete,
        "issues/list-labels-on-issue" => labels::list,
        "issues/add-labels" => labels::add,
        "issues/set-labels" => labels::set,
        "issues/remove-label" => labels::remove,
        "issues/remove-all-labels" => labels::remove_all,
        "issues/list-labels-for-repo" => labels::of_repo,
        "issues/get-label" => labels::get,
        "issues/create-label" => labels::create,
        "issues/list-events-for-timeline" => timeline::timeline,
        "issues/list-events" => timeline::events,
        "issues/list-events-for-repo" => timeline::events_of_repo,
        "issues/list-dependencies-blocked-by" => relations::blocked_by,
        "issues/list-dependencies-blocking" => relations::blocking,
        "issues/add-blocked-by-dependency" => relations::add_blocker,
        "issues/remove-dependency-blocked-by" => relations::remove_blocker,
        "issues/list-sub-issues" => relations::sub_issues,
        "issues/add-sub-issue" => relations::add_sub_issue,
        "issues/remove-sub-issue" => relations::remove_sub_issue,
        "issues/get-parent" => relations::parent,
        "reactions/list-for-issue" => reactions::of_issue,
        "reactions/create-for-issue" => reactions::to_issue,
        "reactions/delete-for-issue" => reactions::delete_of_issue,
        "reactions/list-for-issue-comment" => reactions::of_comment,
        "reactions/create-for-issue-comment" => reactions::to_comment,
        "reactions/delete-for-issue-comment" => reactions::delete_of_comment,
        "reactions/list-for-pull-request-review-comment" => reactions::of_review_comment,
        "reactions/create-for-pull-request-review-comment" => reactions::to_review_comment,
        "pulls/list" => pulls::list,
        "pulls/create" => pulls::create,
        "pulls/get" => pulls::get,
        "pulls/update" => pulls::update,
        "pulls/merge" => pulls::merge,
        "pulls/check-if-merged" => pulls::check_if_merged,
        "pulls/update-branch" => pulls::update_branch,
        "pulls/list-commits" => commits::of_pull,
        "pulls/list-files" => commits::files_of_pull,
        "pulls/list-requested-reviewers" => reviews::requested,
        "pulls/request-reviewers" => reviews::request,
        "pulls/remove-requested-reviewers" => reviews::remove_request,
        "pulls/list-reviews" => reviews::list,
        "pulls/get-review" => reviews::get,
        "pulls/create-review" => reviews::create,
        "pulls/submit-review" => reviews::submit,
        "pulls/dismiss-review" => reviews::dismiss,
        "pulls/list-comments-for-review" => review_comments::of_review,
        "pulls/list-review-comments" => review_comments::list,
        "pulls/create-review-comment" => review_comments::create,
        "pulls/create-reply-for-review-comment" => review_comments::reply,
        "pulls/get-review-comment" => review_comments::get,
        "pulls/update-review-comment" => review_comments::update,
        "pulls/delete-review-comment" => review_comments::delete,
        "checks/create" => checks::create,
        "checks/update" => checks::update,
        "checks/get" => checks::get,
        "checks/list-for-ref" => checks::list,
        "checks/list-suites-for-ref" => checks::suites,
        "checks/list-annotations" => checks::annotations,
        "checks/rerequest-run" => actions::rerequest,
        "actions/list-workflow-runs-for-repo" => actions::runs,
        "actions/get-workflow-run" => actions::run,
        "actions/list-jobs-for-workflow-run" => actions::jobs,
        "actions/get-job-for-workflow-run" => actions::job,
        "actions/download-job-logs-for-workflow-run" => actions::logs,
        "actions/re-run-workflow" => actions::rerun,
        "actions/re-run-workflow-failed-jobs" => actions::rerun_failed,
        "actions/re-run-job-for-workflow-run" => actions::rerun_job,
        "actions/approve-workflow-run" => actions::approve,
        "git/get-ref" => refs::get,
        "git/list-matching-refs" => refs::matching,
        "git/create-ref" => refs::create,
        "git/update-ref" => refs::update,
        "git/delete-ref" => refs::delete,
        "apps/get-authenticated" => apps::authenticated,
        "apps/get-installation" => apps::installation,
        "apps/get-repo-installation" => apps::repo_installation,
        "apps/create-installation-access-token" => apps::create_token,
        "apps/list-repos-accessible-to-installation" => apps::repositories,
        _ => return None,
    })
}

/// Whether there is a handler: everything that the contract file knows should have one.
pub fn handles(operation: &str) -> bool {
    handler(operation).is_some()
}

/// The path with the repository by name. GitHub's links name it by id.
pub fn named_path(world: &World, path: &str) -> String {
    let by_id = || {
        let rest = path.strip_prefix("/repositories/")?;
        let (id, rest) = rest.split_once('/').unwrap_or((rest, ""));
        let id: u64 = id.parse().ok()?;
        let home = world.homes.iter().find(|home| home.repo.id == id)?;
        Some(format!("/repos/{}/{rest}", home.repo.full_name()))
    };
    by_id().unwrap_or_else(|| path.to_owned())
}

pub fn answer(
    world: &mut World,
    operation: &str,
    caller: Caller,
    parameters: BTreeMap<String, String>,
    query: Vec<(String, String)>,
    body: Value,
) -> Answer {
    let Some(handler) = handler(operation) else {
        world.violate(format!("{operation}: tests/contracts has it, and tests/github/rest does not"));
        return Answer::general(501, "Not implemented");
    };
    let login = caller.login();
    let mut home = 0;
    let mut place = String::new();
    if let (Some(owner), Some(name)) = (parameters.get("owner"), parameters.get("repo")) {
        match world.home(owner, name) {
            Some(found) => home = found,
            None => return moved(world, owner, name),
        }
        if world.repo(home).permission(&login) < Permission::Read {
            return Answer { general: true, ..Answer::not_found() };
        }
        place = format!("{}/repositories/{}", api_base(world), world.repo(home).id);
    } else if matches!(caller, Caller::Nobody) && !["meta/root", "rate-limit/get"].contains(&operation) {
        return Answer::general(401, "Requires authentication");
    }
    let place = format!("{place}{}", rest_of_place(world));
    let mut call = Call { world, caller, login, home, parameters, query, body, place };
    handler(&mut call).unwrap_or_else(|refusal| refusal)
}

/// The address of the API by which it was asked.
fn api_base(world: &World) -> String {
    format!("{}{}", world.base, if world.is_enterprise { "/api/v3" } else { "" })
}

/// What follows the repository in the path that is being answered.
fn rest_of_place(world: &World) -> String {
    let path = world.journal.entries.last().map(|entry| entry.path.clone()).unwrap_or_default();
    let path = path.strip_prefix("/api/v3").unwrap_or(&path).to_owned();
    let skipped = if path.starts_with("/repositories/") { 2 } else { 3 };
    path.trim_start_matches('/').split('/').skip(skipped).fold(String::new(), |sum, part| format!("{sum}/{part}"))
}

/// A name that is not a repository's: it may have been one.
fn moved(world: &World, owner: &str, name: &str) -> Answer {
    let Some(home) = world.former_home(owner, name) else { return Answer { general: true, ..Answer::not_found() } };
    let rest = rest_of_place(world);
    let query = world.journal.entries.last().map(|entry| entry.query.clone()).unwrap_or_default();
    let query = if query.is_empty() { query } else { format!("?{query}") };
    let url = format!("{}/repositories/{}{rest}{query}", api_base(world), world.repo(home).id);
    let body = serde_json::json!({
        "message": "Moved Permanently", "url": url, "documentation_url": "https://docs.github.com/rest"
    });
    Answer { general: true, ..Answer::json(301, body) }.with("location", url)
}
