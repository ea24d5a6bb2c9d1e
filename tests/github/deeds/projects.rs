//! Projects: items and the column that they stand in.

use crate::github::state::World;
use crate::github::state::project::{Item, Project};

use super::issues;
use crate::github::state::Happened;

/// A project with a column field; its place in the list.
pub fn create(world: &mut World, owner: &str, number: u64, field: &str, options: &[&str]) -> usize {
    let (id, field_id, now) = (world.next_id(), world.next_id(), world.now());
    let named = |(index, name): (usize, &&str)| (format!("{:08x}", index + 0xf75a), (*name).to_owned());
    world.projects.push(Project {
        id,
        owner: owner.to_owned(),
        number,
        title: "Board".to_owned(),
        field_id,
        field: field.to_owned(),
        options: options.iter().enumerate().map(named).collect(),
        items: Vec::new(),
        created_at: now,
    });
    world.projects.len() - 1
}

/// Puts an issue into a project; the item's id, also if it was there already.
pub fn add(world: &mut World, project: usize, home: usize, number: u64) -> u64 {
    let repository = world.repo(home).id;
    let known =
        world.projects[project].items.iter().find(|item| item.repository == repository && item.number == number);
    if let Some(item) = known {
        return item.id;
    }
    let (id, now) = (world.next_id(), world.now());
    let item = Item { id, repository, number, option: None, moved_by: None, moved_at: now, created_at: now };
    world.projects[project].items.push(item);
    id
}

/// Moves an item to another column. The issue itself does not count as updated by it.
pub fn move_to(world: &mut World, project: usize, item: u64, option: Option<&str>, who: &str) {
    let now = world.now();
    let found = world.projects[project].items.iter_mut().find(|one| one.id == item).unwrap();
    found.option = option.map(str::to_owned);
    found.moved_by = Some(who.to_owned());
    found.moved_at = now;
    let (repository, number) = (found.repository, found.number);
    if let Some(home) = world.homes.iter().position(|home| home.repo.id == repository) {
        let what = Happened::Plain { name: "project_v2_item_status_changed".to_owned(), commit: None };
        issues::note(world, home, number, who, what);
    }
}
