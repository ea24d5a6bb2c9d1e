//! Merging, bringing a branch up to date, and the merge queue: with real git.

use crate::github::state::git::{self, Method};
use crate::github::state::pull::{Merged, Queued};
use crate::github::state::{Happened, World};

use super::{issues, pulls, refs};

/// Why a merge did not happen, with the status that GitHub gives for it.
pub struct Refused {
    pub status: u16,
    pub words: String,
}

fn refused(status: u16, words: impl Into<String>) -> Refused {
    Refused { status, words: words.into() }
}

pub struct Request<'a> {
    pub method: Method,
    /// The head that the caller has seen.
    pub head: Option<&'a str>,
    pub title: Option<&'a str>,
    pub message: Option<&'a str>,
    /// The queue itself merges past its own rule.
    pub by_queue: bool,
}

/// Merges a pull request; the commit that was made.
pub fn merge(world: &mut World, home: usize, number: u64, who: &str, request: &Request) -> Result<String, Refused> {
    let folder = world.homes[home].git.clone();
    let repo = world.repo(home);
    let pull = repo.pull(number).unwrap().clone();
    let open = repo.issue(number).unwrap().open;
    let settings = &repo.settings;
    if !open || pull.merged.is_some() {
        return Err(refused(405, "Pull Request is not mergeable"));
    }
    if pull.draft {
        return Err(refused(405, "Pull Request is still a draft"));
    }
    let (allowed, name) = match request.method {
        Method::Merge => (settings.merge, "Merge commits"),
        Method::Squash => (settings.squash, "Squash merges"),
        Method::Rebase => (settings.rebase, "Rebase merges"),
    };
    if !allowed {
        return Err(refused(405, format!("{name} are not allowed on this repository.")));
    }
    if request.head.is_some_and(|head| head != pull.head_sha) {
        return Err(refused(409, "Head branch was modified. Review and try the merge again."));
    }
    if repo.rules.demands(&pull.base_ref).merge_queue && !request.by_queue {
        let words = "Repository rule violations found\n\nChanges must be made through the merge queue\n\n";
        return Err(refused(405, words));
    }
    let obstacles = pulls::obstacles(world, home, number);
    if !obstacles.is_empty() {
        return Err(refused(405, obstacles.join(" ")));
    }
    let issue = world.repo(home).issue(number).unwrap();
    let title = match (request.title, request.method) {
        (Some(title), _) => title.to_owned(),
        (None, Method::Merge) => {
            format!("Merge pull request #{number} from {}/{}\n\n{}", pull.head_owner, pull.head_ref, issue.title)
        }
        (None, _) => format!("{} (#{number})", issue.title),
    };
    let message = match request.message {
        Some(message) if !message.is_empty() => format!("{title}\n\n{message}"),
        _ => title,
    };
    let Some(sha) = git::join(&folder, request.method, &pull.base_ref, &pull.head_sha, who, &message) else {
        return Err(refused(405, "Pull Request has merge conflicts"));
    };
    finish(world, home, number, who, &sha);
    Ok(sha)
}

fn finish(world: &mut World, home: usize, number: u64, who: &str, sha: &str) {
    let now = world.now();
    let pull = world.repo_mut(home).pull_mut(number);
    pull.merged = Some(Merged { at: now, by: who.to_owned(), sha: sha.to_owned() });
    pull.queued = None;
    pull.auto_merge = None;
    let (branch, base, owner) = (pull.head_ref.clone(), pull.base_ref.clone(), pull.head_owner.clone());
    let what = Happened::Plain { name: "merged".to_owned(), commit: Some(sha.to_owned()) };
    issues::note(world, home, number, who, what);
    issues::close(world, home, number, who, None);
    let repo = world.repo(home);
    let body = repo.issue(number).unwrap().body.clone().unwrap_or_default();
    if base == repo.default_branch {
        for closed in closing(&body) {
            if world.repo(home).issue(closed).is_some_and(|issue| issue.open) {
                issues::close(world, home, closed, who, None);
            }
        }
    }
    let repo = world.repo(home);
    if repo.settings.delete_branch_on_merge && owner == repo.owner && repo.head(&branch).is_some() {
        git::set(&world.homes[home].git, &format!("refs/heads/{branch}"), None);
    }
    refs::sync(world, home, who);
}

/// The issues that a text closes: `Closes #3`, `fixes #4`.
pub fn closing(text: &str) -> Vec<u64> {
    const WORDS: [&str; 9] = ["close", "closes", "closed", "fix", "fixes", "fixed", "resolve", "resolves", "resolved"];
    let words: Vec<&str> = text.split_whitespace().collect();
    let number = |word: &str| word.strip_prefix('#')?.trim_end_matches(|c: char| !c.is_ascii_digit()).parse().ok();
    words
        .windows(2)
        .filter(|pair| WORDS.contains(&pair[0].trim_end_matches(':').to_lowercase().as_str()))
        .filter_map(|pair| number(pair[1]))
        .collect()
}

/// Merges the base into the head branch, as the button does.
pub fn update_branch(
    world: &mut World,
    home: usize,
    number: u64,
    who: &str,
    expected: Option<&str>,
) -> Result<(), Refused> {
    let folder = world.homes[home].git.clone();
    let repo = world.repo(home);
    let pull = repo.pull(number).unwrap().clone();
    if expected.is_some_and(|expected| expected != pull.head_sha) {
        return Err(refused(422, "expected head sha didn’t match current head ref."));
    }
    let base = repo.head(&pull.base_ref).unwrap().to_owned();
    if git::contains(&folder, &pull.head_sha, &base) {
        return Err(refused(422, "There are no new commits on the base branch."));
    }
    let words = format!("Merge branch '{}' into {}", pull.base_ref, pull.head_ref);
    let branch = pull.local_head(&world.repo(home).owner);
    git::join(&folder, Method::Merge, &branch, &base, who, &words)
        .ok_or_else(|| refused(422, "merge conflict between base and head"))?;
    refs::sync(world, home, who);
    Ok(())
}

pub fn enqueue(world: &mut World, home: usize, number: u64, who: &str, expected: Option<&str>) -> Result<(), Refused> {
    let repo = world.repo(home);
    let pull = repo.pull(number).unwrap();
    if !repo.rules.demands(&pull.base_ref).merge_queue {
        return Err(refused(422, "Merge queue is not enabled on this branch"));
    }
    if expected.is_some_and(|expected| expected != pull.head_sha) {
        return Err(refused(422, "Head branch was modified. Review and try the merge again."));
    }
    if pull.queued.is_some() {
        return Err(refused(422, "Pull request is already in the merge queue"));
    }
    let obstacles = pulls::obstacles(world, home, number);
    if !obstacles.is_empty() || pull.draft {
        return Err(refused(422, format!("Pull request is not in a mergeable state. {}", obstacles.join(" "))));
    }
    let head = pull.head_sha.clone();
    let queued =
        Queued { id: world.next_id(), by: who.to_owned(), at: world.now(), head, state: "AWAITING_CHECKS".to_owned() };
    world.repo_mut(home).pull_mut(number).queued = Some(queued);
    let what = Happened::Plain { name: "added_to_merge_queue".to_owned(), commit: None };
    issues::note(world, home, number, who, what);
    issues::touch(world, home, number);
    Ok(())
}

pub fn dequeue(world: &mut World, home: usize, number: u64, who: &str) {
    world.repo_mut(home).pull_mut(number).queued = None;
    let what = Happened::Plain { name: "removed_from_merge_queue".to_owned(), commit: None };
    issues::note(world, home, number, who, what);
    issues::touch(world, home, number);
}
