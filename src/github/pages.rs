//! A list of several pages, read by following the server's links.

use std::collections::BTreeSet;

use super::Github;
use super::answer::Fetched;
use super::error::GithubError;
use super::pace::Purpose;

/// The most pages of any list. A list with more is an error.
const MOST_PAGES: usize = 500;

/// The pages of a list, read one after the other.
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

    pub(super) fn after(github: Github, purpose: Purpose, page: &Fetched) -> Result<Self, GithubError> {
        let next = own_path(&github, page)?;
        Ok(Self { github, purpose, next, seen: BTreeSet::new() })
    }

    /// Returns the next page, or `None` after the last one.
    pub async fn next(&mut self) -> Result<Option<Fetched>, GithubError> {
        let Some(path) = self.next.take() else { return Ok(None) };
        if !self.seen.insert(path.clone()) {
            return Err(GithubError::Pages(format!("the page after {path} is that page again")));
        }
        if self.seen.len() > MOST_PAGES {
            return Err(GithubError::Pages(format!("{path} is page {MOST_PAGES}, and there are still more")));
        }
        let page = self.github.get_cached(self.purpose, &path).await?;
        self.next = own_path(&self.github, &page)?;
        Ok(Some(page))
    }
}

/// Returns the path of the next page. A next page on another server is an error.
fn own_path(github: &Github, page: &Fetched) -> Result<Option<String>, GithubError> {
    let Some(url) = &page.next else { return Ok(None) };
    let own = github.parts.addresses.path_of(url);
    own.map(Some).ok_or_else(|| GithubError::Pages(format!("the next page is said to be at {url}, elsewhere")))
}
