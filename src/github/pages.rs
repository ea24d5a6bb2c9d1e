//! A list of several pages, followed as the server links them.

use std::collections::BTreeSet;

use super::Github;
use super::answer::Fetched;
use super::error::GithubError;
use super::pace::Purpose;

/// More pages than any list of ours has: past that something is wrong.
const MOST_PAGES: usize = 500;

/// The pages of a list, one after the other.
pub struct Pages {
    github: Github,
    purpose: Purpose,
    next: Option<String>,
    seen: BTreeSet<String>,
}

impl Pages {
    pub(super) fn new(github: Github, purpose: Purpose, path: &str) -> Self {
        Self { github, purpose, next: Some(path.to_owned()), seen: BTreeSet::new() }
    }

    /// The next page, or `None` after the last one.
    pub async fn next(&mut self) -> Result<Option<Fetched>, GithubError> {
        let Some(path) = self.next.take() else { return Ok(None) };
        if !self.seen.insert(path.clone()) {
            return Err(GithubError::Pages(format!("the page after {path} is that page again")));
        }
        if self.seen.len() > MOST_PAGES {
            return Err(GithubError::Pages(format!("{path} is page {MOST_PAGES}, and there are still more")));
        }
        let page = self.github.get_cached(self.purpose, &path).await?;
        self.next = match &page.next {
            None => None,
            Some(url) => {
                let own = self.github.parts.addresses.path_of(url);
                Some(own.ok_or_else(|| GithubError::Pages(format!("the next page is said to be at {url}, elsewhere")))?)
            }
        };
        Ok(Some(page))
    }
}
