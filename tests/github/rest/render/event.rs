//! The timeline.

use serde_json::{Value, json};

use crate::github::state::{Event, Happened, Issue, Repo, World, git};

use super::{commit, issue, joined, repo as repository, review, time, user};

/// An entry of the timeline; nothing for what is no longer there.
pub fn timeline(world: &World, home: usize, repo: &Repo, of: &Issue, event: &Event) -> Option<Value> {
    let actor = user::or_ghost(world, event.actor.as_deref());
    match &event.what {
        Happened::Commented(id) => {
            let comment = of.comment(*id)?;
            let mut out = joined(
                issue::comment(world, repo, of.number, comment),
                json!({"event": "commented", "actor": user::or_ghost(world, comment.author.as_deref())}),
            );
            out["user"] = out["actor"].clone();
            Some(out)
        }
        Happened::Committed(sha) => {
            let folder = &world.homes[home].git;
            let shown = git::has(folder, sha).then(|| git::show(folder, sha))?;
            Some(joined(commit::git_commit(world, repo, &shown), json!({"event": "committed"})))
        }
        Happened::Reviewed(id) => {
            let pull = repo.pull(of.number)?;
            let one = pull.review(*id)?;
            let mut out = joined(review::review(world, repo, of.number, one), json!({"event": "reviewed"}));
            out["user"] = user::or_ghost(world, one.author.as_deref());
            out["state"] = json!(one.state.to_lowercase());
            Some(out)
        }
        _ => {
            let mut out = joined(plain(world, repo, event), json!({"actor": actor}));
            // Only the list of events has it.
            out.as_object_mut().unwrap().remove("assigner");
            Some(out)
        }
    }
}

/// An event as the list of events gives it: what happened, without comments, commits and reviews.
pub fn event(world: &World, repo: &Repo, event: &Event) -> Option<Value> {
    match &event.what {
        Happened::Commented(_) | Happened::Committed(_) | Happened::Reviewed(_) => None,
        _ => {
            let mut out = plain(world, repo, event);
            // The description of this list does not know it.
            out.as_object_mut().unwrap().remove("state_reason");
            out["actor"] = user::or_ghost(world, event.actor.as_deref());
            Some(out)
        }
    }
}

fn plain(world: &World, repo: &Repo, event: &Event) -> Value {
    let label = |name: &str| {
        let color = repo.label(name).map_or("ededed", |label| label.color.as_str());
        json!({"name": name, "color": color})
    };
    let reference = |number: u64| {
        let issue = repo.issue(number);
        json!({
            "number": number,
            "title": issue.map_or("", |issue| issue.title.as_str()),
            "state": if issue.is_some_and(|issue| issue.open) { "open" } else { "closed" },
            "repository": simple_repository(world, repo),
            "issue_type": null,
        })
    };
    let mut commit = None;
    let (name, more) = match &event.what {
        Happened::Labeled(name) => ("labeled", json!({"label": label(name)})),
        Happened::Unlabeled(name) => ("unlabeled", json!({"label": label(name)})),
        Happened::Assigned(login) => {
            ("assigned", json!({"assignee": user::simple(world, login), "assigner": actor(world, event)}))
        }
        Happened::Unassigned(login) => {
            ("unassigned", json!({"assignee": user::simple(world, login), "assigner": actor(world, event)}))
        }
        Happened::Milestoned(title) => ("milestoned", json!({"milestone": {"title": title}})),
        Happened::Demilestoned(title) => ("demilestoned", json!({"milestone": {"title": title}})),
        Happened::Renamed { from, to } => ("renamed", json!({"rename": {"from": from, "to": to}})),
        Happened::Closed { reason } => ("closed", json!({"state_reason": reason})),
        Happened::Reopened => ("reopened", json!({"state_reason": null})),
        Happened::Locked => ("locked", json!({"lock_reason": null})),
        Happened::Unlocked => ("unlocked", json!({})),
        Happened::BlockedByAdded(number) => ("blocked_by_added", json!({"blocked_by": reference(*number)})),
        Happened::BlockedByRemoved(number) => ("blocked_by_removed", json!({"blocked_by": reference(*number)})),
        Happened::SubIssueAdded(number) => ("sub_issue_added", json!({"sub_issue": reference(*number)})),
        Happened::SubIssueRemoved(number) => ("sub_issue_removed", json!({"sub_issue": reference(*number)})),
        Happened::ReviewRequested(login) => ("review_requested", requested(world, event, login)),
        Happened::ReviewRequestRemoved(login) => ("review_request_removed", requested(world, event, login)),
        Happened::ReviewDismissed { review, message } => (
            "review_dismissed",
            json!({"dismissed_review": {"state": "dismissed", "review_id": review, "dismissal_message": message}}),
        ),
        Happened::Plain { name, commit: sha } => {
            commit.clone_from(sha);
            (name.as_str(), json!({}))
        }
        Happened::Commented(_) | Happened::Committed(_) | Happened::Reviewed(_) => ("mentioned", json!({})),
    };
    let api = repository::api(world, repo);
    let base = json!({
        "id": event.id,
        "node_id": format!("EV_{}", event.id),
        "url": format!("{api}/issues/events/{}", event.id),
        "event": name,
        "commit_id": commit,
        "commit_url": commit.as_ref().map(|sha| format!("{api}/commits/{sha}")),
        "created_at": time(event.at),
        "performed_via_github_app": null,
    });
    joined(base, more)
}

fn actor(world: &World, event: &Event) -> Value {
    user::or_ghost(world, event.actor.as_deref())
}

fn requested(world: &World, event: &Event, login: &str) -> Value {
    json!({"review_requester": actor(world, event), "requested_reviewer": user::simple(world, login)})
}

/// The short form without the counts, as it is in references to issues.
fn simple_repository(world: &World, repo: &Repo) -> Value {
    repository::minimal(world, repo)
}
