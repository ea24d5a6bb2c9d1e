//! Objects by their ids.

use crate::github::state::World;

use super::node::Kind;

/// The object of a node id, whatever it is.
pub fn find(world: &World, id: &str) -> Option<Kind> {
    let (prefix, rest) = id.split_once('_')?;
    let number: u64 = rest.parse().ok()?;
    if prefix == "U" {
        return world.users.iter().find(|user| user.id == number).map(|user| Kind::Account(user.login.clone()));
    }
    for (at, project) in world.projects.iter().enumerate() {
        match prefix {
            "PVT" if project.id == number => return Some(Kind::Project(at)),
            "PVTSSF" if project.field_id == number => return Some(Kind::ProjectField(at)),
            "PVTI" if project.items.iter().any(|item| item.id == number) => return Some(Kind::ProjectItem(at, number)),
            _ => {}
        }
    }
    world.homes.iter().enumerate().find_map(|(home, place)| {
        let repo = &place.repo;
        match prefix {
            "R" => (repo.id == number).then_some(Kind::Repository(home)),
            "I" => repo.issue_by_id(number).map(|issue| Kind::Issue(home, issue.number)),
            "PR" => repo.pull_by_id(number).map(|pull| Kind::Pull(home, pull.number)),
            "IC" => repo.issue_of_comment(number).map(|issue| Kind::Comment(home, issue.number, number)),
            "LA" => repo.labels.iter().find(|one| one.id == number).map(|one| Kind::Label(home, one.name.clone())),
            "PRRT" => repo.pull_of_thread(number).map(|pull| Kind::Thread(home, pull.number, number)),
            "PRRC" => repo.pull_of_review_comment(number).map(|pull| Kind::ReviewComment(home, pull.number, number)),
            "PRR" => {
                let pull = repo.pulls.values().find(|pull| pull.review(number).is_some())?;
                Some(Kind::Review(home, pull.number, number))
            }
            "CR" => repo.checks.iter().find(|one| one.id == number).map(|one| Kind::Check(home, one.id)),
            "MQE" => {
                let has = |id: Option<u64>| id == Some(number);
                let pull = repo.pulls.values().find(|pull| has(pull.queued.as_ref().map(|one| one.id)))?;
                Some(Kind::QueueEntry(home, pull.number))
            }
            _ => None,
        }
    })
}
