//! What a test asks about the world afterwards.

use std::collections::BTreeMap;

use super::deeds;
use super::hub::Hub;
use super::server::journal::Entry;

const HOME: usize = 0;

/// A comment, as much of it as tests ask about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    pub id: u64,
    pub author: String,
    pub body: String,
}

impl Hub {
    /// The comments on an issue or in the conversation of a pull request.
    pub fn comments(&self, number: u64) -> Vec<Said> {
        let world = self.world();
        let issue = world.repo(HOME).issue(number).unwrap();
        let said = |comment: &super::state::Comment| Said {
            id: comment.id,
            author: comment.author.clone().unwrap_or_default(),
            body: comment.body.clone(),
        };
        issue.comments.iter().map(said).collect()
    }

    /// What was said in the review threads, thread by thread.
    pub fn thread_comments(&self, number: u64) -> Vec<Vec<Said>> {
        let world = self.world();
        let pull = world.repo(HOME).pull(number).unwrap();
        let said = |comment: &super::state::ReviewComment| Said {
            id: comment.id,
            author: comment.author.clone().unwrap_or_default(),
            body: comment.body.clone(),
        };
        pull.threads.iter().map(|thread| thread.comments.iter().map(said).collect()).collect()
    }

    pub fn is_resolved(&self, number: u64, thread: u64) -> bool {
        let world = self.world();
        let threads = &world.repo(HOME).pull(number).unwrap().threads;
        threads.iter().any(|one| one.id == thread && one.resolved_by.is_some())
    }

    pub fn labels(&self, number: u64) -> Vec<String> {
        self.world().repo(HOME).issue(number).unwrap().labels.clone()
    }

    pub fn title(&self, number: u64) -> String {
        self.world().repo(HOME).issue(number).unwrap().title.clone()
    }

    pub fn is_draft(&self, number: u64) -> bool {
        self.world().repo(HOME).pull(number).unwrap().draft
    }

    /// The statuses of a commit, each context with its newest state.
    pub fn statuses(&self, sha: &str) -> Vec<(String, String)> {
        let world = self.world();
        let all = world.repo(HOME).statuses.iter().filter(|one| one.sha == sha);
        all.map(|one| (one.context.clone(), one.state.clone())).collect()
    }

    pub fn is_open(&self, number: u64) -> bool {
        self.world().repo(HOME).issue(number).unwrap().open
    }

    /// Reactions to a comment on an issue: who, what.
    pub fn reactions(&self, comment: u64) -> Vec<(String, String)> {
        let world = self.world();
        let comment = world.repo(HOME).issue_of_comment(comment).unwrap().comment(comment).unwrap();
        comment.reactions.iter().map(|one| (one.user.clone(), one.content.clone())).collect()
    }

    /// The numbers of all pull requests.
    pub fn pulls(&self) -> Vec<u64> {
        self.world().repo(HOME).pulls.keys().copied().collect()
    }

    /// The pull requests that were merged, with the commits that came of it.
    pub fn merges(&self) -> Vec<(u64, String)> {
        let world = self.world();
        let merged = |pull: &super::state::Pull| Some((pull.number, pull.merged.as_ref()?.sha.clone()));
        world.repo(HOME).pulls.values().filter_map(|pull| merged(pull)).collect()
    }

    /// The commit of a branch, by git. Its pull request is at it, too, before anybody hears of it: a review must not be of the head before.
    pub fn head(&self, branch: &str) -> Option<String> {
        let mut world = self.world();
        deeds::refs::sync(&mut world, HOME, "somebody");
        world.repo(HOME).refs.get(&format!("refs/heads/{branch}")).cloned()
    }

    /// The column that an issue stands in.
    pub fn column(&self, project: usize, number: u64) -> Option<String> {
        let world = self.world();
        let project = &world.projects[project];
        let item = project.items.iter().find(|item| item.number == number)?;
        project.option_name(item.option.as_deref()?).map(str::to_owned)
    }

    /// What was used of an hour's limit so far, of `core` or `graphql`. An answer of 304 uses nothing.
    pub fn used(&self, resource: &str) -> u64 {
        self.world().limits.of(resource).used
    }

    /// Every request so far.
    pub fn requests(&self) -> Vec<Entry> {
        self.world().journal.entries.clone()
    }

    /// How often a route was asked: a name, or its beginning and a star.
    pub fn count(&self, route: &str) -> usize {
        self.world().journal.of(route).count()
    }

    pub fn counts(&self) -> BTreeMap<String, usize> {
        self.world().journal.counts()
    }

    /// The requests that changed something.
    pub fn writes(&self) -> Vec<Entry> {
        let world = self.world();
        world.journal.entries.iter().filter(|entry| entry.took_effect).cloned().collect()
    }

    /// One line per request, for a person who reads a failed test.
    pub fn print(&self) -> String {
        self.world().journal.printed()
    }

    pub fn forget_requests(&self) {
        self.world().journal.entries.clear();
    }
}
