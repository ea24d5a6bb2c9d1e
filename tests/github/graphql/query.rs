//! The roots of queries, and the repository.

use serde_json::{Value, json};

use crate::github::state::{Issue, Permission, Thing, UserKind, shown};

use super::node::{Arguments, Kind, Resolved, Val, connect, database_id};
use super::{Context, lookup, project};

pub fn text<'a>(arguments: &'a Arguments, name: &str) -> &'a str {
    arguments.get(name).and_then(Value::as_str).unwrap_or_default()
}

pub fn number(arguments: &Arguments, name: &str) -> u64 {
    arguments.get(name).and_then(Value::as_u64).unwrap_or_default()
}

/// The names in a list argument; nothing if it was not given.
pub fn names(arguments: &Arguments, name: &str) -> Option<Vec<String>> {
    let list = arguments.get(name)?.as_array()?;
    Some(list.iter().filter_map(|one| one.as_str().map(str::to_owned)).collect())
}

pub fn root(context: &Context, name: &str, arguments: &Arguments) -> Option<Resolved> {
    let world = context.world.borrow();
    Some(match name {
        "viewer" => Val::node(Kind::Viewer(context.login.clone())),
        "rateLimit" => Val::node(Kind::RateLimit),
        "repository" => {
            let (owner, name) = (text(arguments, "owner"), text(arguments, "name"));
            // Unlike REST, GraphQL follows a new name by itself.
            let home = world.home(owner, name).or_else(|| world.former_home(owner, name));
            let readable = |home: &usize| world.repo(*home).permission(&context.login) >= Permission::Read;
            match home.filter(readable) {
                Some(home) => Val::node(Kind::Repository(home)),
                None => {
                    let words = format!("Could not resolve to a Repository with the name '{owner}/{name}'.");
                    Err(format!("NOT_FOUND: {words}"))
                }
            }
        }
        "user" | "organization" | "repositoryOwner" => {
            let login = text(arguments, "login");
            let found = world.user(login).filter(|user| match name {
                "user" => user.kind == UserKind::Person,
                "organization" => user.kind == UserKind::Organization,
                _ => true,
            });
            match found {
                Some(user) => Val::node(Kind::Account(user.login.clone())),
                None => Err(format!("NOT_FOUND: Could not resolve to a {name} with the login of '{login}'.")),
            }
        }
        "node" => {
            let id = text(arguments, "id");
            match lookup::find(&world, id) {
                Some(kind) => Val::node(kind),
                None => Err(format!("NOT_FOUND: Could not resolve to a node with the global id of '{id}'.")),
            }
        }
        "nodes" => {
            let ids = names(arguments, "ids").unwrap_or_default();
            let one = |id: &String| lookup::find(&world, id).map_or(Val::Leaf(Value::Null), Val::Node);
            Ok(Val::List(ids.iter().map(one).collect()))
        }
        _ => return None,
    })
}

pub fn rate_limit(context: &Context, name: &str) -> Option<Resolved> {
    let world = context.world.borrow();
    let graphql = &world.limits.graphql;
    Some(match name {
        "cost" => Val::leaf(context.cost),
        "limit" => Val::leaf(graphql.limit),
        "remaining" => Val::leaf(graphql.limit.saturating_sub(graphql.used)),
        "used" => Val::leaf(graphql.used),
        "resetAt" => Val::leaf(shown(graphql.reset_at)),
        "nodeCount" => Val::leaf(1),
        _ => return None,
    })
}

/// An issue that is there for a reader, and is one: not a pull request.
fn readable_issue(context: &Context, home: usize, number: u64, pull: bool) -> bool {
    let world = context.world.borrow();
    let thing = if pull { Thing::Pull(number) } else { Thing::Issue(number) };
    world.seen(home, &thing).issue(number).is_some_and(|issue| issue.is_pull == pull)
}

pub fn repository(context: &Context, home: usize, name: &str, arguments: &Arguments) -> Option<Resolved> {
    let missing =
        |what: &str, number: u64| Err(format!("NOT_FOUND: Could not resolve to {what} with the number of {number}."));
    let asked = number(arguments, "number");
    match name {
        "issue" if readable_issue(context, home, asked, false) => return Some(Val::node(Kind::Issue(home, asked))),
        "issue" => return Some(missing("an Issue", asked)),
        "pullRequest" if readable_issue(context, home, asked, true) => return Some(Val::node(Kind::Pull(home, asked))),
        "pullRequest" => return Some(missing("a PullRequest", asked)),
        "issueOrPullRequest" if readable_issue(context, home, asked, true) => {
            return Some(Val::node(Kind::Pull(home, asked)));
        }
        "issueOrPullRequest" if readable_issue(context, home, asked, false) => {
            return Some(Val::node(Kind::Issue(home, asked)));
        }
        "issueOrPullRequest" => return Some(missing("an issue or pull request", asked)),
        "issues" => return Some(issues(context, home, arguments, false)),
        "pullRequests" => return Some(issues(context, home, arguments, true)),
        "projectV2" => return Some(project::of_owner(context, None, asked)),
        _ => {}
    }
    let world = context.world.borrow();
    let repo = world.repo(home);
    let settings = &repo.settings;
    Some(match name {
        "id" => Val::leaf(format!("R_{}", repo.id)),
        "databaseId" => database_id(repo.id),
        "name" => Val::leaf(repo.name.as_str()),
        "nameWithOwner" => Val::leaf(repo.full_name()),
        "owner" => Val::node(Kind::Account(repo.owner.clone())),
        "url" => Val::leaf(format!("{}/{}", world.base, repo.full_name())),
        "resourcePath" => Val::leaf(format!("/{}", repo.full_name())),
        "createdAt" => Val::leaf(shown(repo.created_at)),
        "updatedAt" => Val::leaf(shown(repo.pushed_at)),
        "isPrivate" => Val::leaf(repo.private),
        "isArchived" => Val::leaf(settings.archived),
        "isFork" => Val::leaf(false),
        "hasIssuesEnabled" => Val::leaf(settings.has_issues),
        "mergeCommitAllowed" => Val::leaf(settings.merge),
        "squashMergeAllowed" => Val::leaf(settings.squash),
        "rebaseMergeAllowed" => Val::leaf(settings.rebase),
        "autoMergeAllowed" => Val::leaf(settings.auto_merge),
        "deleteBranchOnMerge" => Val::leaf(settings.delete_branch_on_merge),
        "viewerPermission" => Val::leaf(repo.permission(&context.login).role().to_uppercase()),
        "defaultBranchRef" => Val::node(Kind::Ref(home, format!("refs/heads/{}", repo.default_branch))),
        "ref" => {
            let asked = text(arguments, "qualifiedName");
            let full = if asked.starts_with("refs/") { asked.to_owned() } else { format!("refs/heads/{asked}") };
            let known = world.seen(home, &Thing::Refs).refs.contains_key(&full);
            Val::maybe(known.then_some(Kind::Ref(home, full)))
        }
        "label" => Val::maybe(repo.label(text(arguments, "name")).map(|one| Kind::Label(home, one.name.clone()))),
        "labels" => {
            let all = repo.labels.iter().map(|one| Kind::Label(home, one.name.clone())).collect();
            connect("LabelConnection", all, arguments)
        }
        "mergeQueue" => {
            let branch = arguments.get("branch").and_then(Value::as_str).unwrap_or(&repo.default_branch);
            let has = repo.rules.demands(branch).merge_queue;
            Val::maybe(has.then(|| Kind::Queue(home, branch.to_owned())))
        }
        _ => return None,
    })
}

/// The issues or the pull requests, filtered and in order.
fn issues(context: &Context, home: usize, arguments: &Arguments, pulls: bool) -> Resolved {
    let world = context.world.borrow();
    let states = names(arguments, "states");
    let labels = names(arguments, "labels");
    let filter = arguments.get("filterBy").cloned().unwrap_or(json!({}));
    let since = filter["since"].as_str().and_then(|since| since.parse::<jiff::Timestamp>().ok());
    let head = arguments.get("headRefName").and_then(Value::as_str);
    let base = arguments.get("baseRefName").and_then(Value::as_str);
    let mut found: Vec<&Issue> = Vec::new();
    for number in world.repo(home).issues.keys() {
        let thing = if pulls { Thing::Pull(*number) } else { Thing::Issue(*number) };
        let repo = world.seen(home, &thing);
        let Some(issue) = repo.issue(*number).filter(|issue| issue.is_pull == pulls) else { continue };
        let pull = repo.pull(*number);
        let state = match pull {
            Some(pull) if pull.merged.is_some() => "MERGED",
            _ if issue.open => "OPEN",
            _ => "CLOSED",
        };
        let fits = states.as_ref().is_none_or(|states| states.iter().any(|one| one == state))
            && labels.as_ref().is_none_or(|labels| labels.iter().any(|label| issue.has_label(label)))
            && since.is_none_or(|since| shown(issue.updated_at) >= shown(since))
            && head.is_none_or(|head| pull.is_some_and(|pull| pull.head_ref == head))
            && base.is_none_or(|base| pull.is_some_and(|pull| pull.base_ref == base));
        if fits {
            found.push(issue);
        }
    }
    let order = arguments.get("orderBy").cloned().unwrap_or(json!({"field": "CREATED_AT", "direction": "ASC"}));
    found.sort_by_key(|issue| {
        let at = if order["field"] == "UPDATED_AT" { issue.updated_at } else { issue.created_at };
        (shown(at), issue.number)
    });
    if order["direction"] == "DESC" {
        found.reverse();
    }
    let kind = |issue: &&Issue| {
        if pulls { Kind::Pull(home, issue.number) } else { Kind::Issue(home, issue.number) }
    };
    let name = if pulls { "PullRequestConnection" } else { "IssueConnection" };
    connect(name, found.iter().map(kind).collect(), arguments)
}
