//! The ids of issues: `GH-12` in this repository, `owner/name#12` in another.

use crate::config::tracker::split_slug;
use crate::domain::ids::TicketId;
use crate::domain::time::Timestamp;

/// An issue of this repository or of another.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct IssueRef {
    /// Owner and name of the other repository. `None` for this one.
    pub elsewhere: Option<(String, String)>,
    pub number: u64,
}

impl IssueRef {
    pub fn here(number: u64) -> Self {
        Self { elsewhere: None, number }
    }

    pub fn read(id: &TicketId) -> Option<Self> {
        let text = id.as_str();
        if let Some(number) = text.strip_prefix("GH-") {
            return Some(Self::here(issue_number(number)?));
        }
        let (repository, number) = text.rsplit_once('#')?;
        Self::there(repository, number)
    }

    /// Returns an issue of another repository. The text may come from any person; `None` if it is not a valid name or number.
    pub fn there(slug: &str, number: &str) -> Option<Self> {
        let (owner, name) = split_slug(slug)?;
        Some(Self { elsewhere: Some((owner.to_owned(), name.to_owned())), number: issue_number(number)? })
    }

    /// Reads the address of an issue in the API. `owner` and `name` are this repository.
    pub fn of_api_url(url: &str, owner: &str, name: &str) -> Option<Self> {
        let (before, number) = url.rsplit_once("/issues/")?;
        let number = number.parse().ok()?;
        let mut parts = before.rsplit('/');
        let (its_name, its_owner) = (parts.next()?, parts.next()?);
        let is_here = its_owner.eq_ignore_ascii_case(owner) && its_name.eq_ignore_ascii_case(name);
        let elsewhere = (!is_here).then(|| (its_owner.to_owned(), its_name.to_owned()));
        Some(Self { elsewhere, number })
    }

    pub fn id(&self) -> TicketId {
        match &self.elsewhere {
            None => TicketId::new(format!("GH-{}", self.number)),
            Some((owner, name)) => TicketId::new(format!("{owner}/{name}#{}", self.number)),
        }
    }
}

/// Parses an issue number. GitHub's issue numbers have 32 bits, and a query with a larger one is refused as a whole.
pub fn issue_number(text: &str) -> Option<u64> {
    text.parse::<i32>().ok().and_then(|number| u64::try_from(number).ok()).filter(|number| *number > 0)
}

/// Parses a time as GitHub writes it: RFC 3339, whole seconds.
pub fn time(text: &str) -> Option<Timestamp> {
    text.parse::<jiff::Timestamp>().ok().map(|at| Timestamp(at.as_millisecond()))
}

/// Formats a time for a query.
pub fn shown(at: Timestamp) -> String {
    let at = jiff::Timestamp::from_millisecond(at.0).unwrap_or_default();
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_issues_here_and_elsewhere() {
        for text in ["GH-12", "acme/gears#7"] {
            assert_eq!(IssueRef::read(&TicketId::new(text)).unwrap().id().as_str(), text);
        }
        for text in ["no-such-ticket-9999", "GH-x", "12", "a#1", "GH-0", "GH-99999999999", "../../user#1", "a/..#1"] {
            assert_eq!(IssueRef::read(&TicketId::new(text)), None, "{text}");
        }
        let url = "https://api.github.com/repos/Acme/Widgets/issues/3";
        assert_eq!(IssueRef::of_api_url(url, "acme", "widgets"), Some(IssueRef::here(3)));
        let other = IssueRef::of_api_url(url, "acme", "gears").unwrap();
        assert_eq!(other.id().as_str(), "Acme/Widgets#3");
    }

    #[test]
    fn times_go_there_and_back() {
        let text = "2026-11-18T05:05:23Z";
        assert_eq!(shown(time(text).unwrap()), text);
    }
}
