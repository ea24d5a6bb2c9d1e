//! Projects.

use serde_json::Value;

use crate::github::server::caller::Caller;
use crate::github::state::{TokenKind, shown};

use super::Context;
use super::issue::author;
use super::node::{Arguments, Kind, Resolved, Val, connect, database_id};
use super::query::{names, text};

/// The project of an account by its number; of anybody's, if no account is given.
pub fn of_owner(context: &Context, owner: Option<&str>, number: u64) -> Resolved {
    if let Caller::Token(token) = &context.caller
        && let TokenKind::Classic { scopes } = &token.kind
        && !scopes.iter().any(|scope| scope == "project" || scope == "read:project")
    {
        let words = "Your token has not been granted the required scopes to execute this query. The 'projectV2' field requires one of the following scopes: ['read:project'].";
        return Err(format!("INSUFFICIENT_SCOPES: {words}"));
    }
    let world = context.world.borrow();
    let fits = |one: &crate::github::state::project::Project| {
        one.number == number && owner.is_none_or(|owner| one.owner.eq_ignore_ascii_case(owner))
    };
    match world.projects.iter().position(fits) {
        Some(at) => Val::node(Kind::Project(at)),
        None => Err(format!("NOT_FOUND: Could not resolve to a ProjectV2 with the number {number}.")),
    }
}

pub fn project(context: &Context, at: usize, name: &str, arguments: &Arguments) -> Option<Resolved> {
    let world = context.world.borrow();
    let project = world.projects.get(at)?;
    let path = format!("/orgs/{}/projects/{}", project.owner, project.number);
    Some(match name {
        "id" => Val::leaf(format!("PVT_{}", project.id)),
        "databaseId" => database_id(project.id),
        "fullDatabaseId" => Val::leaf(project.id.to_string()),
        "number" => Val::leaf(project.number),
        "title" => Val::leaf(project.title.as_str()),
        "closed" | "public" | "template" => Val::leaf(false),
        "createdAt" | "updatedAt" => Val::leaf(shown(project.created_at)),
        "owner" => Val::node(Kind::Account(project.owner.clone())),
        "url" => Val::leaf(format!("{}{path}", world.base)),
        "resourcePath" => Val::leaf(path),
        "viewerCanUpdate" => Val::leaf(true),
        "field" => Val::maybe((text(arguments, "name") == project.field).then_some(Kind::ProjectField(at))),
        "fields" => connect("ProjectV2FieldConfigurationConnection", vec![Kind::ProjectField(at)], arguments),
        "items" => {
            let all = project.items.iter().map(|item| Kind::ProjectItem(at, item.id)).collect();
            connect("ProjectV2ItemConnection", all, arguments)
        }
        _ => return None,
    })
}

pub fn field(context: &Context, at: usize, name: &str, arguments: &Arguments) -> Option<Resolved> {
    let world = context.world.borrow();
    let project = world.projects.get(at)?;
    Some(match name {
        "id" => Val::leaf(format!("PVTSSF_{}", project.field_id)),
        "databaseId" => database_id(project.field_id),
        "name" => Val::leaf(project.field.as_str()),
        "dataType" => Val::leaf("SINGLE_SELECT"),
        "createdAt" | "updatedAt" => Val::leaf(shown(project.created_at)),
        "project" => Val::node(Kind::Project(at)),
        "options" => {
            let wanted = names(arguments, "names");
            let fits = |one: &&(String, String)| wanted.as_ref().is_none_or(|wanted| wanted.contains(&one.1));
            let option = |one: &(String, String)| Val::Node(Kind::ProjectOption(at, one.0.clone()));
            Ok(Val::List(project.options.iter().filter(fits).map(option).collect()))
        }
        _ => return None,
    })
}

pub fn option(context: &Context, at: usize, id: &str, name: &str) -> Option<Resolved> {
    let world = context.world.borrow();
    let option = world.projects.get(at)?.option_name(id)?;
    Some(match name {
        "id" => Val::leaf(id),
        "name" | "nameHTML" => Val::leaf(option),
        "color" => Val::leaf("GRAY"),
        "description" | "descriptionHTML" => Val::leaf(""),
        _ => return None,
    })
}

pub fn item(context: &Context, at: usize, id: u64, name: &str, arguments: &Arguments) -> Option<Resolved> {
    let world = context.world.borrow();
    let project = world.projects.get(at)?;
    let item = project.items.iter().find(|item| item.id == id)?;
    let home = world.homes.iter().position(|home| home.repo.id == item.repository)?;
    let repo = world.repo(home);
    Some(match name {
        "id" => Val::leaf(format!("PVTI_{id}")),
        "databaseId" => database_id(id),
        "fullDatabaseId" => Val::leaf(id.to_string()),
        "isArchived" => Val::leaf(false),
        "createdAt" => Val::leaf(shown(item.created_at)),
        "updatedAt" => Val::leaf(shown(item.moved_at)),
        "creator" => author(Some(&repo.owner)),
        "project" => Val::node(Kind::Project(at)),
        "type" => Val::leaf(if repo.pull(item.number).is_some() { "PULL_REQUEST" } else { "ISSUE" }),
        // An item whose issue is gone, or not to be seen, has no content.
        "content" if repo.issue(item.number).is_none() => Val::leaf(Value::Null),
        "content" if repo.pull(item.number).is_some() => Val::node(Kind::Pull(home, item.number)),
        "content" => Val::node(Kind::Issue(home, item.number)),
        "fieldValueByName" => {
            let has = text(arguments, "name") == project.field && item.option.is_some();
            Val::maybe(has.then_some(Kind::ProjectValue(at, id)))
        }
        _ => return None,
    })
}

pub fn value(context: &Context, at: usize, id: u64, name: &str) -> Option<Resolved> {
    let world = context.world.borrow();
    let project = world.projects.get(at)?;
    let item = project.items.iter().find(|item| item.id == id)?;
    let option = item.option.as_deref()?;
    Some(match name {
        "id" => Val::leaf(format!("PVTFSV_{id}")),
        "name" | "nameHTML" => Val::leaf(project.option_name(option)),
        "optionId" => Val::leaf(option),
        "color" => Val::leaf("GRAY"),
        "createdAt" => Val::leaf(shown(item.created_at)),
        "updatedAt" => Val::leaf(shown(item.moved_at)),
        // Who moved it last; GitHub calls it the creator of the value.
        "creator" => author(item.moved_by.as_deref()),
        "field" => Val::node(Kind::ProjectField(at)),
        "item" => Val::node(Kind::ProjectItem(at, id)),
        _ => return None,
    })
}
