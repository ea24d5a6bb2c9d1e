//! The blockers of an issue: GitHub's own dependencies, or lines such as `Blocked by #12`.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use super::GithubTracker;
use super::columns::{CLOSED, Columns, OPEN};
use super::ids::{IssueRef, issue_number};
use super::ticket::Issue;
use super::wire::RestIssue;
use crate::domain::ids::TicketKey;
use crate::domain::ticket::Blocker;
use crate::github::{GithubError, Purpose, with_query};

/// The most issues that are remembered. Beyond that, all are forgotten and read again.
const MOST_KNOWN: usize = 5000;

/// The most blockers that are read from the text of one issue.
const MOST_NAMED: usize = 50;

/// Remembers how many dependencies each version of an issue has. GraphQL does not report it, and a request for each issue would be
/// expensive.
#[derive(Default)]
pub struct Dependencies {
    known: Mutex<HashMap<u64, (String, u64)>>,
    /// Whether the server has no dependencies: an older Enterprise Server.
    unheard_of: AtomicBool,
    /// Whether the server has reported the dependencies of any issue, which proves that it has them.
    told_of: AtomicBool,
}

impl Dependencies {
    /// Takes in the number of dependencies from a listing.
    pub fn told(&self, number: u64, version: &str, count: u64) {
        self.told_of.store(true, Ordering::Release);
        self.note(number, version, count);
    }

    fn note(&self, number: u64, version: &str, count: u64) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MOST_KNOWN {
            known.clear();
        }
        known.insert(number, (version.to_owned(), count));
    }

    /// Whether this version of the issue is known to have no dependencies.
    fn none_of(&self, number: u64, version: &str) -> bool {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(&number).is_some_and(|(at, count)| at == version && *count == 0)
    }
}

impl GithubTracker {
    /// Returns the blockers of each of these issues, by number.
    pub(super) async fn blockers(&self, issues: &[&Issue]) -> Result<BTreeMap<u64, Vec<Blocker>>, GithubError> {
        let mut found = BTreeMap::new();
        let mut named: BTreeMap<u64, Vec<IssueRef>> = BTreeMap::new();
        for issue in issues {
            let dependencies = self.dependencies_of(issue).await?;
            if !dependencies.is_empty() {
                found.insert(issue.number, dependencies);
                continue;
            }
            let lines: Vec<IssueRef> =
                refs_in(&issue.body).into_iter().filter(|one| *one != IssueRef::here(issue.number)).collect();
            if !lines.is_empty() {
                named.insert(issue.number, lines);
            }
        }
        let mut all: Vec<IssueRef> = named.values().flatten().cloned().collect();
        all.sort();
        all.dedup();
        let states = self.states_of(&all).await?;
        for (number, refs) in named {
            let blockers = refs.into_iter().map(|one| {
                let state = states.get(&one).cloned();
                self.blocker(number, one, state)
            });
            found.insert(number, blockers.collect());
        }
        Ok(found)
    }

    async fn dependencies_of(&self, issue: &Issue) -> Result<Vec<Blocker>, GithubError> {
        let none = self.dependencies.none_of(issue.number, &issue.updated_at);
        if none || self.dependencies.unheard_of.load(Ordering::Acquire) {
            return Ok(Vec::new());
        }
        let path = with_query(&self.issue_path(issue.number, "/dependencies/blocked_by"), &[("per_page", "100")]);
        let blocking = match self.github.list::<RestIssue>(Purpose::Watch, &path).await {
            Ok(blocking) => blocking,
            Err(GithubError::NotFound(_)) => return self.why_no_dependencies(issue.number).await.map(|()| Vec::new()),
            // The issue disappeared meanwhile; nothing is started for it.
            Err(GithubError::Gone(_) | GithubError::Moved(_)) => return Ok(Vec::new()),
            // Unknown blockers are not the same as no blockers.
            Err(error) => return Err(error),
        };
        self.dependencies.note(issue.number, &issue.updated_at, blocking.len() as u64);
        let (owner, name) = (&self.board.owner, &self.board.name);
        let place = |one: &RestIssue| {
            let url = format!("{}/issues/{}", one.repository_url.as_deref().unwrap_or_default(), one.number);
            IssueRef::of_api_url(&url, owner, name).unwrap_or_else(|| IssueRef::here(one.number))
        };
        // A project's column is not part of this response.
        let by_column: Vec<IssueRef> = match &self.board.columns {
            Columns::Project(_) => blocking.iter().map(place).collect(),
            Columns::OpenClosed | Columns::Labels(_) => Vec::new(),
        };
        let columns = self.states_of(&by_column).await?;
        let blockers = blocking.into_iter().map(|one| {
            let (which, not_planned) = (place(&one), one.state_reason.as_deref() == Some("not_planned"));
            let state = columns.get(&which).cloned().unwrap_or_else(|| {
                let labels: Vec<String> = one.labels.iter().map(|label| label.name().to_owned()).collect();
                let is_open = one.state == "open";
                let state = match which.elsewhere {
                    None => self.board.columns.state(is_open, &labels, None),
                    Some(_) => if is_open { OPEN } else { CLOSED }.to_owned(),
                };
                BlockerState { state, not_planned }
            });
            self.blocker(issue.number, which, Some(state))
        });
        Ok(blockers.collect())
    }

    /// Finds out why the dependencies of an issue do not exist. An error if they should: then it is not known what the issue waits for.
    async fn why_no_dependencies(&self, number: u64) -> Result<(), GithubError> {
        let issue: RestIssue = match self.github.get(Purpose::Watch, &self.issue_path(number, "")).await {
            Ok(issue) => issue,
            // The issue disappeared meanwhile; nothing is started for it.
            Err(GithubError::NotFound(_) | GithubError::Gone(_) | GithubError::Moved(_)) => return Ok(()),
            Err(error) => return Err(error),
        };
        match issue.issue_dependencies_summary {
            Some(summary) => self.dependencies.told(number, &issue.updated_at, summary.total_blocked_by),
            // An older Enterprise Server: its issues have no dependencies.
            None if !self.dependencies.told_of.load(Ordering::Acquire) => {
                self.dependencies.unheard_of.store(true, Ordering::Release);
                return Ok(());
            }
            None => {}
        }
        match self.dependencies.none_of(number, &issue.updated_at) {
            true => Ok(()),
            false => Err(GithubError::Unreadable(format!("it shows GH-{number}, and not what GH-{number} waits for"))),
        }
    }

    fn blocker(&self, of: u64, which: IssueRef, state: Option<BlockerState>) -> Blocker {
        let id = which.id();
        if state.as_ref().is_some_and(|state| state.not_planned) {
            self.say_left_out(of, Some(format!("the blocker {id} of GH-{of}, which was closed as not planned")));
        }
        Blocker { key: TicketKey::new(id.as_str()), id, state: state.map(|state| state.state), failed: false }
    }
}

/// The state of a blocker.
#[derive(Debug, Clone)]
pub struct BlockerState {
    pub state: String,
    /// Whether the blocker was closed as not planned. That ends the waiting too, but people should know.
    pub not_planned: bool,
}

/// Returns the issues in lines that begin with `Blocked by` or `Depends on`, outside of code and quotes.
fn refs_in(body: &str) -> Vec<IssueRef> {
    let mut found = Vec::new();
    let mut in_code = false;
    for line in body.lines() {
        let line = line.trim_start();
        if line.starts_with("```") || line.starts_with("~~~") {
            in_code = !in_code;
        }
        let line = line
            .trim_start_matches(['-', '*', '+', ' ', '_'])
            .trim_start_matches("[ ]")
            .trim_start_matches("[x]")
            .trim_start();
        let lower = line.to_lowercase();
        let begins = ["blocked by", "depends on"].iter().find(|words| lower.starts_with(**words));
        let Some(words) = begins.filter(|_| !in_code) else { continue };
        let rest = line.get(words.len()..).unwrap_or_default().trim_start_matches([':', '*', '_', ' ']);
        for word in rest.split([',', ' ', ';']).map(|word| word.trim_matches(|c: char| "().*_`".contains(c))) {
            match reference(word) {
                Some(one) if !found.contains(&one) && found.len() < MOST_NAMED => found.push(one),
                Some(_) => {}
                None if matches!(word, "" | "and" | "&" | "und") => {}
                // The list ends here. Numbers in the text after it mean other things.
                None => break,
            }
        }
    }
    found
}

/// Reads `#12`, `GH-12`, `owner/name#12`, or the address of an issue.
fn reference(word: &str) -> Option<IssueRef> {
    if let Some(number) = word.strip_prefix('#').or_else(|| word.strip_prefix("GH-")) {
        return Some(IssueRef::here(issue_number(number)?));
    }
    if let Some(rest) = word.split_once("://").map(|(_, rest)| rest) {
        let parts: Vec<&str> = rest.split('/').collect();
        let [_, owner, name, "issues", number] = parts.as_slice() else { return None };
        return IssueRef::there(&format!("{owner}/{name}"), number);
    }
    let (repository, number) = word.split_once('#')?;
    IssueRef::there(repository, number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(body: &str) -> Vec<String> {
        refs_in(body).iter().map(|one| one.id().to_string()).collect()
    }

    #[test]
    fn lines_name_what_an_issue_waits_for() {
        assert_eq!(ids("Blocked by #3"), ["GH-3"]);
        assert_eq!(ids("Text\n\n- **Depends on:** #3, #4 and acme/gears#5."), ["GH-3", "GH-4", "acme/gears#5"]);
        assert_eq!(ids("depends on https://github.com/acme/gears/issues/9"), ["acme/gears#9"]);
        assert_eq!(ids("Blocked by #3 (since #9)"), ["GH-3"], "prose is not a list");
        assert_eq!(ids("> Blocked by #3"), Vec::<String>::new(), "a quote");
        assert_eq!(ids("```\nBlocked by #3\n```"), Vec::<String>::new(), "code");
        assert_eq!(ids("It is not blocked by #3"), Vec::<String>::new());
        assert_eq!(ids("Blocked by ../../user#1"), Vec::<String>::new(), "not a name");
        assert_eq!(ids("Blocked by #99999999999"), Vec::<String>::new(), "not a number of an issue");
        let many: String = (1..100).map(|number| format!("#{number}, ")).collect();
        assert_eq!(ids(&format!("Blocked by {many}")).len(), MOST_NAMED);
    }
}
