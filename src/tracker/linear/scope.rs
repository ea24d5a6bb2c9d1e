//! The issues that belong to the board: those of a team, a project or an assignee.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::documents::issues::{
    BooleanComparator, DateComparator, IDComparator, IssueFilter, IssueIDComparator, IssuesIssuesNodes as Node,
    NullableProjectFilter, NullableUserFilter, StringComparator, TeamFilter, WorkflowStateFilter,
};
use crate::domain::time::Timestamp;
use crate::tracker::TrackerError;

#[derive(Debug, Clone, Default)]
pub struct Scope {
    pub team_key: Option<String>,
    pub project_slug: Option<String>,
    pub assignee: Option<Assignee>,
}

/// The account whose issues are worked on, by assignment or by delegation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Assignee {
    Me,
    Id(String),
    Email(String),
    Name(String),
}

impl Assignee {
    pub fn named(text: &str) -> Self {
        let text = text.trim().to_owned();
        if text.eq_ignore_ascii_case("me") {
            Self::Me
        } else if is_uuid(&text) {
            Self::Id(text)
        } else if text.contains('@') {
            Self::Email(text)
        } else {
            Self::Name(text)
        }
    }

    pub fn as_written(&self) -> &str {
        match self {
            Self::Me => "me",
            Self::Id(text) | Self::Email(text) | Self::Name(text) => text,
        }
    }

    pub fn filter(&self) -> NullableUserFilter {
        let nobody = NullableUserFilter::default();
        match self {
            Self::Me => NullableUserFilter { is_me: Some(BooleanComparator { eq: Some(true) }), ..nobody },
            Self::Id(id) => {
                NullableUserFilter { id: Some(IDComparator { eq: Some(id.clone()), ..Default::default() }), ..nobody }
            }
            Self::Email(email) => NullableUserFilter { email: Some(is(email)), ..nobody },
            Self::Name(name) => NullableUserFilter { display_name: Some(is(name)), ..nobody },
        }
    }

    fn is(&self, id: &str, email: &str, name: &str, is_me: bool) -> bool {
        match self {
            Self::Me => is_me,
            Self::Id(wanted) => wanted.eq_ignore_ascii_case(id),
            Self::Email(wanted) => wanted.eq_ignore_ascii_case(email),
            Self::Name(wanted) => wanted.eq_ignore_ascii_case(name),
        }
    }
}

impl Scope {
    /// Returns the filter for everything in scope, in any state.
    pub fn filter(&self) -> IssueFilter {
        let mut parts = Vec::new();
        if let Some(key) = &self.team_key {
            let team = TeamFilter { key: Some(is(key)), ..Default::default() };
            parts.push(IssueFilter { team: Some(team), ..Default::default() });
        }
        if let Some(slug) = &self.project_slug {
            parts.push(IssueFilter { project: Some(project_filter(slug)), ..Default::default() });
        }
        if let Some(assignee) = &self.assignee {
            let assigned = IssueFilter { assignee: Some(assignee.filter()), ..Default::default() };
            let delegated = IssueFilter { delegate: Some(assignee.filter()), ..Default::default() };
            parts.push(IssueFilter { or: Some(vec![assigned, delegated]), ..Default::default() });
        }
        all_of(parts)
    }

    /// Returns the filter for the issues in scope and in one of these states. State names compare without case.
    pub fn in_states(&self, states: &[String]) -> IssueFilter {
        let in_one = states.iter().map(|state| {
            let state = WorkflowStateFilter { name: Some(is(state.trim())) };
            IssueFilter { state: Some(state), ..Default::default() }
        });
        all_of(vec![self.filter(), IssueFilter { or: Some(in_one.collect()), ..Default::default() }])
    }

    pub fn changed_since(&self, since: &str) -> IssueFilter {
        let since = DateComparator { gte: Some(since.to_owned()), ..Default::default() };
        all_of(vec![self.filter(), IssueFilter { updated_at: Some(since), ..Default::default() }])
    }

    /// Returns why an issue that was read by its id is not on the board. `None` if it is.
    pub fn excludes(&self, node: &Node) -> Option<String> {
        if let Some(key) = self.team_key.as_ref().filter(|key| !key.eq_ignore_ascii_case(&node.team.key)) {
            return Some(format!("it was moved from team {key} to team {}", node.team.key));
        }
        let slug = node.project.as_ref().map(|project| project.slug_id.as_str());
        match &self.project_slug {
            Some(wanted) if !slug.is_some_and(|slug| slugs(wanted).contains(&slug)) => {
                Some(format!("it is not in project {wanted} any more"))
            }
            _ => None,
        }
    }

    /// Whether the issue is assigned or delegated to the configured account. Always true if none is configured.
    pub fn is_for_us(&self, node: &Node) -> bool {
        let Some(wanted) = &self.assignee else { return true };
        let assigned = node.assignee.as_ref();
        let delegated = node.delegate.as_ref();
        assigned.is_some_and(|user| wanted.is(&user.id, &user.email, &user.display_name, user.is_me))
            || delegated.is_some_and(|user| wanted.is(&user.id, &user.email, &user.display_name, user.is_me))
    }
}

pub fn by_ids(ids: Vec<String>) -> IssueFilter {
    let id = IssueIDComparator { in_: Some(ids), ..Default::default() };
    IssueFilter { id: Some(id), ..Default::default() }
}

/// Returns a filter for a project's slug, the last part of its address: `name-of-it-0123456789ab`, or only the part after the last
/// hyphen.
pub fn project_filter(slug: &str) -> NullableProjectFilter {
    let one = |slug: &str| NullableProjectFilter {
        slug_id: Some(StringComparator { eq: Some(slug.to_owned()), ..Default::default() }),
        ..Default::default()
    };
    NullableProjectFilter { or: Some(slugs(slug).into_iter().map(one).collect()), ..Default::default() }
}

fn slugs(slug: &str) -> Vec<&str> {
    let slug = slug.trim();
    let last = slug.rsplit('-').next().unwrap_or(slug);
    if last == slug { vec![slug] } else { vec![slug, last] }
}

fn is(text: &str) -> StringComparator {
    StringComparator { eq_ignore_case: Some(text.to_owned()), ..Default::default() }
}

fn all_of(mut parts: Vec<IssueFilter>) -> IssueFilter {
    match parts.len() {
        1 => parts.remove(0),
        _ => IssueFilter { and: Some(parts), ..Default::default() },
    }
}

/// Converts a filter to the type of another operation. Each operation has its own types for the same input.
pub fn recast<A: Serialize, B: DeserializeOwned>(filter: &A) -> Result<B, TrackerError> {
    let same = serde_json::to_value(filter).and_then(serde_json::from_value);
    same.map_err(|error| TrackerError::InvalidConfig(format!("the filter cannot be written: {error}")))
}

/// Whether a text has the format of Linear's ids. Linear refuses a filter with any other id.
pub fn is_uuid(text: &str) -> bool {
    text.len() == 36
        && text.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

/// Formats a time as Linear writes it.
pub fn time_text(at: Timestamp) -> String {
    jiff::Timestamp::from_millisecond(at.0).map(|at| format!("{at:.3}")).unwrap_or_default()
}

pub fn time_of(text: &str) -> Option<Timestamp> {
    let parsed: jiff::Timestamp = text.parse().ok()?;
    Some(Timestamp(parsed.as_millisecond()))
}
