//! What a push means for the pull requests.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::github::state::pull::Mergeable;
use crate::github::state::{Happened, World, git};

use super::issues;

/// Reads the refs of the git repository, and lets the pull requests follow them.
pub fn sync(world: &mut World, home: usize, who: &str) {
    let folder = world.homes[home].git.clone();
    let found = git::refs(&folder);
    let old = world.repo(home).refs.clone();
    if *old == found {
        return;
    }
    let now = world.now();
    let repo = world.repo_mut(home);
    repo.refs = Arc::new(found.clone());
    repo.pushed_at = now;
    let open: Vec<u64> =
        repo.pulls.keys().copied().filter(|number| repo.issue(*number).is_some_and(|i| i.open)).collect();
    for number in open {
        follow(world, home, number, who, &old, &found);
    }
}

fn follow(
    world: &mut World,
    home: usize,
    number: u64,
    who: &str,
    old: &BTreeMap<String, String>,
    found: &BTreeMap<String, String>,
) {
    let folder = world.homes[home].git.clone();
    let owner = world.repo(home).owner.clone();
    let pull = world.repo(home).pull(number).unwrap().clone();
    let branch = |name: &str| format!("refs/heads/{name}");
    if found.get(&branch(&pull.base_ref)) != old.get(&branch(&pull.base_ref)) {
        world.repo_mut(home).pull_mut(number).mergeable = Mergeable::Unasked;
    }
    match found.get(&branch(&pull.local_head(&owner))) {
        None => {
            issues::note(
                world,
                home,
                number,
                who,
                Happened::Plain { name: "head_ref_deleted".to_owned(), commit: None },
            );
            issues::close(world, home, number, who, None);
        }
        Some(head) if *head == pull.head_sha => {}
        Some(head) => {
            if git::contains(&folder, head, &pull.head_sha) {
                for sha in git::between(&folder, &pull.head_sha, head) {
                    issues::note(world, home, number, who, Happened::Committed(sha));
                }
            } else {
                let what = Happened::Plain { name: "head_ref_force_pushed".to_owned(), commit: Some(head.clone()) };
                issues::note(world, home, number, who, what);
            }
            let demands = world.repo(home).rules.demands(&pull.base_ref);
            let changed: Vec<String> =
                git::changes(&folder, &pull.head_sha, head).into_iter().map(|change| change.path).collect();
            let pull = world.repo_mut(home).pull_mut(number);
            pull.head_sha = head.clone();
            pull.mergeable = Mergeable::Unasked;
            pull.queued = None;
            for thread in pull.threads.iter_mut().filter(|thread| changed.contains(&thread.path)) {
                thread.outdated = true;
            }
            for review in pull.reviews.iter_mut().filter(|review| demands.dismiss_stale && review.state == "APPROVED") {
                review.state = "DISMISSED".to_owned();
            }
            issues::touch(world, home, number);
        }
    }
}
