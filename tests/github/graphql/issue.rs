//! Issues, what they share with pull requests, comments, labels and the timeline.

use serde_json::{Value, json};

use crate::github::rest::render;
use crate::github::state::{Event, Happened, Issue, Permission, Reaction, Repo, Thing, World, shown};

use super::Context;
use super::node::{Arguments, Kind, Resolved, Val, connect, database_id};
use super::query::names;

pub fn author(login: Option<&str>) -> Resolved {
    Val::maybe(login.map(|login| Kind::Account(login.to_owned())))
}

pub fn reactions(reactions: &[Reaction], arguments: &Arguments) -> Resolved {
    let content = |one: &Reaction| match one.content.as_str() {
        "+1" => "THUMBS_UP".to_owned(),
        "-1" => "THUMBS_DOWN".to_owned(),
        other => other.to_uppercase(),
    };
    let all = reactions
        .iter()
        .map(|one| {
            Kind::Reaction(json!({
                "id": format!("REA_{}", one.id), "content": content(one), "createdAt": shown(one.created_at),
                "databaseId": i32::try_from(one.id).ok(),
            }))
        })
        .collect();
    connect("ReactionConnection", all, arguments)
}

pub fn issue(context: &Context, home: usize, number: u64, name: &str, arguments: &Arguments) -> Option<Resolved> {
    let world = context.world.borrow();
    let repo = world.seen(home, &Thing::Issue(number));
    let issue = repo.issue(number).or_else(|| world.repo(home).issue(number))?;
    Some(match name {
        "id" => Val::leaf(format!("I_{}", issue.id)),
        "databaseId" => database_id(issue.id),
        "fullDatabaseId" => Val::leaf(issue.id.to_string()),
        "state" => Val::leaf(if issue.open { "OPEN" } else { "CLOSED" }),
        "stateReason" => Val::leaf(issue.state_reason.as_ref().map(|reason| reason.to_uppercase())),
        "parent" => Val::maybe(repo.parent_of(number).map(|parent| Kind::Issue(home, parent.number))),
        "subIssues" => {
            let all = issue.sub_issues.iter().map(|child| Kind::Issue(home, *child)).collect();
            connect("IssueConnection", all, arguments)
        }
        "subIssuesSummary" => {
            let total = issue.sub_issues.len();
            let done = issue.sub_issues.iter().filter(|one| repo.issue(**one).is_some_and(|child| !child.open)).count();
            let percent = (done * 100).checked_div(total).unwrap_or(0);
            Val::node(Kind::SubIssuesSummary(json!({"total": total, "completed": done, "percentCompleted": percent})))
        }
        "timelineItems" => {
            let seen = world.seen(home, &Thing::Comments(number));
            let wanted = names(arguments, "itemTypes");
            let fits = |event: &&Event| {
                let kind = event_name(&event.what);
                !kind.is_empty() && wanted.as_ref().is_none_or(|wanted| wanted.iter().any(|one| one == item_type(kind)))
            };
            let events = seen.issue(number).map(|issue| issue.events.as_slice()).unwrap_or_default();
            let kind = |event: &Event| match event.what {
                Happened::Commented(id) => Kind::Comment(home, number, id),
                _ => Kind::Event(home, number, event.id),
            };
            connect("IssueTimelineItemsConnection", events.iter().filter(fits).map(kind).collect(), arguments)
        }
        _ => return conversation(context, &world, home, repo, issue, name, arguments),
    })
}

/// The fields that an issue and a pull request have in common.
pub fn conversation(
    context: &Context,
    world: &World,
    home: usize,
    repo: &Repo,
    issue: &Issue,
    name: &str,
    arguments: &Arguments,
) -> Option<Resolved> {
    let number = issue.number;
    let place = if issue.is_pull { "pull" } else { "issues" };
    let path = format!("/{}/{place}/{number}", repo.full_name());
    Some(match name {
        "number" => Val::leaf(number),
        "title" => Val::leaf(issue.title.as_str()),
        "body" | "bodyText" => Val::leaf(issue.body.as_deref().unwrap_or_default()),
        "author" => author(issue.author.as_deref()),
        "editor" => author(issue.reworded.as_ref().map(|(who, _)| who.as_str())),
        "lastEditedAt" => Val::leaf(issue.reworded.as_ref().map(|(_, at)| shown(*at))),
        "authorAssociation" => Val::leaf(render::user::association(repo, issue.author.as_deref())),
        "url" => Val::leaf(format!("{}{path}", world.base)),
        "resourcePath" => Val::leaf(path),
        "closed" => Val::leaf(!issue.open),
        "closedAt" => Val::leaf(issue.closed_at.map(shown)),
        "createdAt" | "publishedAt" => Val::leaf(shown(issue.created_at)),
        "updatedAt" => Val::leaf(shown(issue.updated_at)),
        "locked" => Val::leaf(issue.locked.is_some()),
        "repository" => Val::node(Kind::Repository(home)),
        "viewerDidAuthor" => Val::leaf(issue.author.as_ref() == Some(&context.login)),
        "viewerCanUpdate" | "viewerCanClose" | "viewerCanLabel" => {
            Val::leaf(repo.permission(&context.login) >= Permission::Triage)
        }
        "milestone" => Val::maybe(issue.milestone.map(|milestone| Kind::Milestone(home, milestone))),
        "labels" => {
            let all = issue.labels.iter().map(|label| Kind::Label(home, label.clone())).collect();
            connect("LabelConnection", all, arguments)
        }
        "assignees" => {
            let all = issue.assignees.iter().map(|login| Kind::Account(login.clone())).collect();
            connect("UserConnection", all, arguments)
        }
        "comments" => {
            let seen = world.seen(home, &Thing::Comments(number)).issue(number);
            let comments = seen.map(|issue| issue.comments.as_slice()).unwrap_or_default();
            let all = comments.iter().map(|one| Kind::Comment(home, number, one.id)).collect();
            connect("IssueCommentConnection", all, arguments)
        }
        "reactions" => reactions(&issue.reactions, arguments),
        "projectItems" => {
            let mut all = Vec::new();
            for (at, project) in world.projects.iter().enumerate() {
                let here = project.items.iter().filter(|item| item.repository == repo.id && item.number == number);
                all.extend(here.map(|item| Kind::ProjectItem(at, item.id)));
            }
            connect("ProjectV2ItemConnection", all, arguments)
        }
        _ => return None,
    })
}

pub fn comment(context: &Context, home: usize, number: u64, id: u64, name: &str) -> Option<Resolved> {
    let world = context.world.borrow();
    let repo = world.seen(home, &Thing::Comments(number));
    let comment = repo.issue(number)?.comment(id).or_else(|| world.repo(home).issue(number)?.comment(id))?;
    let path = format!("/{}/issues/{number}#issuecomment-{id}", repo.full_name());
    Some(match name {
        "id" => Val::leaf(format!("IC_{id}")),
        "databaseId" => database_id(id),
        "fullDatabaseId" => Val::leaf(id.to_string()),
        "body" | "bodyText" => Val::leaf(comment.body.as_str()),
        "author" => author(comment.author.as_deref()),
        "authorAssociation" => Val::leaf(render::user::association(repo, comment.author.as_deref())),
        "createdAt" | "publishedAt" => Val::leaf(shown(comment.created_at)),
        "updatedAt" => Val::leaf(shown(comment.updated_at)),
        "lastEditedAt" => {
            let edited = comment.updated_at != comment.created_at;
            Val::leaf(edited.then(|| shown(comment.updated_at)))
        }
        "isMinimized" => Val::leaf(comment.minimized.is_some()),
        "minimizedReason" => Val::leaf(comment.minimized.clone()),
        "url" => Val::leaf(format!("{}{path}", world.base)),
        "resourcePath" => Val::leaf(path),
        "viewerDidAuthor" => Val::leaf(comment.author.as_ref() == Some(&context.login)),
        "issue" => Val::node(Kind::Issue(home, number)),
        "pullRequest" => Val::maybe(repo.pull(number).map(|_| Kind::Pull(home, number))),
        "repository" => Val::node(Kind::Repository(home)),
        _ => return None,
    })
}

/// The type of a timeline entry; empty for what the union does not have.
fn event_name(what: &Happened) -> &'static str {
    match what {
        Happened::Labeled(_) => "LabeledEvent",
        Happened::Unlabeled(_) => "UnlabeledEvent",
        Happened::Assigned(_) => "AssignedEvent",
        Happened::Unassigned(_) => "UnassignedEvent",
        Happened::Closed { .. } => "ClosedEvent",
        Happened::Reopened => "ReopenedEvent",
        Happened::Commented(_) => "IssueComment",
        _ => "",
    }
}

fn item_type(name: &str) -> &'static str {
    match name {
        "LabeledEvent" => "LABELED_EVENT",
        "UnlabeledEvent" => "UNLABELED_EVENT",
        "AssignedEvent" => "ASSIGNED_EVENT",
        "UnassignedEvent" => "UNASSIGNED_EVENT",
        "ClosedEvent" => "CLOSED_EVENT",
        "ReopenedEvent" => "REOPENED_EVENT",
        _ => "ISSUE_COMMENT",
    }
}

fn find_event(world: &World, home: usize, number: u64, id: u64) -> Option<&Event> {
    world.repo(home).issue(number)?.events.iter().find(|event| event.id == id)
}

pub fn event_type(world: &World, home: usize, number: u64, id: u64) -> &'static str {
    find_event(world, home, number, id).map_or("", |event| event_name(&event.what))
}

pub fn event(context: &Context, home: usize, number: u64, id: u64, name: &str) -> Option<Resolved> {
    let world = context.world.borrow();
    let event = find_event(&world, home, number, id)?;
    let subject =
        if world.repo(home).pull(number).is_some() { Kind::Pull(home, number) } else { Kind::Issue(home, number) };
    Some(match (name, &event.what) {
        ("id", _) => Val::leaf(format!("EV_{id}")),
        ("actor", _) => author(event.actor.as_deref()),
        ("createdAt", _) => Val::leaf(shown(event.at)),
        ("label", Happened::Labeled(label) | Happened::Unlabeled(label)) => Val::node(Kind::Label(home, label.clone())),
        ("assignee", Happened::Assigned(login) | Happened::Unassigned(login)) => {
            Val::node(Kind::Account(login.clone()))
        }
        ("stateReason", Happened::Closed { reason }) => Val::leaf(reason.as_ref().map(|reason| reason.to_uppercase())),
        ("labelable" | "assignable" | "closable", _) => Val::node(subject),
        ("closer", _) => Val::leaf(Value::Null),
        _ => return None,
    })
}

pub fn label(context: &Context, home: usize, label: &str, name: &str) -> Option<Resolved> {
    let world = context.world.borrow();
    let repo = world.repo(home);
    let label = repo.label(label)?;
    let path = format!("/{}/labels/{}", repo.full_name(), crate::github::server::paging::encode(&label.name));
    Some(match name {
        "id" => Val::leaf(format!("LA_{}", label.id)),
        "name" => Val::leaf(label.name.as_str()),
        "color" => Val::leaf(label.color.as_str()),
        "description" => Val::leaf(label.description.clone()),
        "isDefault" => Val::leaf(false),
        "url" => Val::leaf(format!("{}{path}", world.base)),
        "resourcePath" => Val::leaf(path),
        "repository" => Val::node(Kind::Repository(home)),
        _ => return None,
    })
}

pub fn milestone(context: &Context, home: usize, number: u64, name: &str) -> Option<Resolved> {
    let world = context.world.borrow();
    let repo = world.repo(home);
    let milestone = repo.milestones.iter().find(|one| one.number == number)?;
    Some(match name {
        "id" => Val::leaf(format!("MI_{}", milestone.id)),
        "number" => Val::leaf(number),
        "title" => Val::leaf(milestone.title.as_str()),
        "state" => Val::leaf("OPEN"),
        "closed" => Val::leaf(false),
        "description" | "dueOn" | "closedAt" => Val::leaf(Value::Null),
        "createdAt" | "updatedAt" => Val::leaf(shown(milestone.created_at)),
        "url" => Val::leaf(format!("{}/{}/milestone/{number}", world.base, repo.full_name())),
        _ => return None,
    })
}
