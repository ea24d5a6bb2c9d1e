//! Pull requests: opened, and what stands in the way of merging them.

use std::sync::Arc;

use crate::github::state::pull::{Mergeable, Pull, local_branch};
use crate::github::state::{Happened, World, git};

use super::{checks, issues};

pub struct NewPull<'a> {
    pub title: &'a str,
    pub body: Option<&'a str>,
    /// Where the head branch is, if not in this repository.
    pub head_owner: Option<&'a str>,
    pub head: &'a str,
    pub base: &'a str,
    pub draft: bool,
}

/// A new pull request; its branches must be there.
pub fn open(world: &mut World, home: usize, who: &str, new: &NewPull) -> u64 {
    let folder = world.homes[home].git.clone();
    let number = issues::open(world, home, who, new.title, new.body);
    let id = world.next_id();
    let repo = world.repo_mut(home);
    let head_owner = new.head_owner.unwrap_or(&repo.owner).to_owned();
    let local = local_branch(&repo.owner, &head_owner, new.head);
    let head_sha = repo.head(&local).unwrap_or_else(|| panic!("there is no branch {local}")).to_owned();
    let base_sha = repo.head(new.base).unwrap_or_else(|| panic!("there is no branch {}", new.base)).to_owned();
    let pull = Pull {
        id,
        number,
        head_owner,
        head_ref: new.head.to_owned(),
        head_sha: head_sha.clone(),
        base_ref: new.base.to_owned(),
        base_sha: base_sha.clone(),
        draft: new.draft,
        merged: None,
        mergeable: Mergeable::Unasked,
        auto_merge: None,
        reviewers: Vec::new(),
        teams: Vec::new(),
        reviews: Vec::new(),
        threads: Vec::new(),
        queued: None,
    };
    repo.pulls.insert(number, Arc::new(pull));
    repo.issue_mut(number).is_pull = true;
    for sha in git::between(&folder, &base_sha, &head_sha) {
        issues::note(world, home, number, who, Happened::Committed(sha));
    }
    git::set(&folder, &format!("refs/pull/{number}/head"), Some(&head_sha));
    number
}

/// What `mergeable` says to somebody who asks now; asking starts the computation.
pub fn mergeable(world: &mut World, home: usize, number: u64) -> Option<bool> {
    let folder = world.homes[home].git.clone();
    let repo = world.repo_mut(home);
    let after = repo.settings.mergeable_after;
    if !repo.issue(number)?.open {
        return None;
    }
    let base = repo.head(&repo.pull(number)?.base_ref).map(str::to_owned)?;
    let pull = repo.pull_mut(number);
    pull.base_sha.clone_from(&base);
    let left = match pull.mergeable {
        Mergeable::Known(known) => return Some(known),
        Mergeable::Unasked => after,
        Mergeable::Computing(left) => left,
    };
    if left > 0 {
        pull.mergeable = Mergeable::Computing(left - 1);
        return None;
    }
    let can = git::can_merge(&folder, &base, &pull.head_sha);
    pull.mergeable = Mergeable::Known(can);
    Some(can)
}

/// Why the branch does not let this be merged, in GitHub's words; empty if it does.
pub fn obstacles(world: &World, home: usize, number: u64) -> Vec<String> {
    let repo = world.repo(home);
    let pull = repo.pull(number).unwrap();
    let demands = repo.rules.demands(&pull.base_ref);
    let mut found = Vec::new();
    let (mut waiting, mut failing) = (Vec::new(), Vec::new());
    for name in &demands.checks {
        match checks::verdict(repo, &pull.head_sha, name) {
            Some(true) => {}
            Some(false) => failing.push(name.as_str()),
            None => waiting.push(name.as_str()),
        }
    }
    if !waiting.is_empty() {
        found.push(format!("{} of {} required status checks are expected.", waiting.len(), demands.checks.len()));
    }
    if !failing.is_empty() {
        found.push(format!("Required status check \"{}\" is failing.", failing.join("\", \"")));
    }
    let verdicts = pull.verdicts();
    let trusted = |login: &Option<String>| {
        login.as_ref().is_some_and(|login| repo.permission(login) >= crate::github::state::Permission::Write)
    };
    let approvals = verdicts.iter().filter(|one| one.state == "APPROVED" && trusted(&one.author)).count() as u64;
    if demands.reviews > 0 {
        if verdicts.iter().any(|one| one.state == "CHANGES_REQUESTED" && trusted(&one.author)) {
            found.push("Changes have been requested.".to_owned());
        }
        if approvals < demands.reviews {
            let words =
                format!("At least {} approving review is required by reviewers with write access.", demands.reviews);
            found.push(words);
        }
    }
    if demands.conversations_resolved && pull.threads.iter().any(|thread| thread.resolved_by.is_none()) {
        found.push("A conversation must be resolved before this pull request can be merged.".to_owned());
    }
    if demands.code_owners && approvals == 0 {
        found.push("Waiting on code owner review.".to_owned());
    }
    if demands.signatures {
        found.push("Commits must have verified signatures.".to_owned());
    }
    let folder = &world.homes[home].git;
    if demands.up_to_date && repo.head(&pull.base_ref).is_some_and(|base| !git::contains(folder, &pull.head_sha, base))
    {
        found.push("This branch is out of date with the base branch.".to_owned());
    }
    found
}

/// GitHub's one word for how a pull request stands.
pub fn merge_state(world: &World, home: usize, number: u64, mergeable: Option<bool>) -> &'static str {
    let repo = world.repo(home);
    let pull = repo.pull(number).unwrap();
    let folder = &world.homes[home].git;
    let demands = repo.rules.demands(&pull.base_ref);
    let behind = repo.head(&pull.base_ref).is_some_and(|base| !git::contains(folder, &pull.head_sha, base));
    match mergeable {
        None => "unknown",
        Some(false) => "dirty",
        Some(true) if pull.draft => "draft",
        Some(true) if demands.up_to_date && behind => "behind",
        Some(true) if !obstacles(world, home, number).is_empty() => "blocked",
        Some(true) if checks::rollup(repo, &pull.head_sha).is_some_and(|state| state != "SUCCESS") => "unstable",
        Some(true) => "clean",
    }
}
