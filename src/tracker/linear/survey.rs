//! Checks for `doctor` that everything the workflow file refers to exists in Linear. If something is missing, the error lists what
//! exists.

use super::LinearTracker;
use super::cursors::Cursors;
use super::documents::people::UserFilter;
use super::documents::{Survey, survey};
use super::scope::{Assignee, project_filter, recast};
use crate::domain::ticket::{same_state, state_in};
use crate::tracker::TrackerError;

/// The states in the workflow file, by their purpose.
#[derive(Debug, Clone, Default)]
pub struct NamedStates {
    pub active: Vec<String>,
    pub terminal: Vec<String>,
    /// States that the runner moves tickets to.
    pub targets: Vec<String>,
    /// States that approve when a person moves a ticket there.
    pub approval: Vec<String>,
}

impl LinearTracker {
    pub(super) async fn survey(&self) -> Result<String, TrackerError> {
        let project = self.scope.project_slug.as_deref();
        let filter = project.map(|slug| recast(&project_filter(slug))).transpose()?;
        let (mut teams, mut pages, mut after) = (Vec::new(), Cursors::default(), None::<String>);
        let first = loop {
            let asked = survey::Variables { project: filter.clone(), after: after.clone() };
            let mut found = self.client.ask::<Survey>(asked).await?.data;
            teams.append(&mut found.teams.nodes);
            let info = &found.teams.page_info;
            after = pages.after(info.has_next_page, info.end_cursor.clone())?;
            if after.is_none() {
                break found;
            }
        };
        let mut where_ = Vec::new();
        let mut wanted: Vec<&str> = Vec::new();
        if let Some(key) = &self.scope.team_key {
            if !teams.iter().any(|team| team.key.eq_ignore_ascii_case(key)) {
                let there = teams.iter().map(|team| format!("{} ({})", team.key, team.name));
                return Err(missing("team", key, "tracker.provider.team_key", there));
            }
            wanted.push(key);
            where_.push(format!("team {key}"));
        }
        if let Some(slug) = project {
            let Some(project) = first.wanted.nodes.first() else {
                let there = first.others.nodes.iter().map(|project| format!("{} ({})", project.slug_id, project.name));
                return Err(missing("project", slug, "tracker.provider.project_slug", there));
            };
            if wanted.is_empty() {
                wanted.extend(project.teams.nodes.iter().map(|team| team.key.as_str()));
            }
            where_.push(format!("project {}", project.name));
        }
        let ours = teams.iter().filter(|team| wanted.iter().any(|key| same_state(&team.key, key)));
        let states: Vec<String> = ours.flat_map(|team| &team.states.nodes).map(|state| state.name.clone()).collect();
        let there = || {
            let mut there: Vec<String> = Vec::new();
            for state in &states {
                if !state_in(state, &there) {
                    there.push(state.clone());
                }
            }
            there.into_iter()
        };
        for (named, key) in [
            (&self.states.active, "tracker.active_states"),
            (&self.states.targets, "merge.completion_state or orchestration.states"),
            (&self.states.approval, "merge.approval_states"),
        ] {
            if let Some(state) = named.iter().find(|state| !state_in(state, &states)) {
                return Err(missing("state", state, key, there()));
            }
        }
        if let (Some(state), false) =
            (self.states.terminal.first(), self.states.terminal.iter().any(|state| state_in(state, &states)))
        {
            return Err(missing("state", state, "tracker.terminal_states", there()));
        }
        self.find_assignee().await?;
        let account = if first.viewer.app { "the app" } else { "the account" };
        let guest = if first.viewer.guest { ", a guest, who sees only what is shared with guests" } else { "" };
        Ok(format!(
            "{}, written to as {account} {}{guest}; {}",
            where_.join(" and "),
            first.viewer.display_name,
            self.client.budget()
        ))
    }
}

impl LinearTracker {
    /// Checks that the configured assignee exists. With a misspelt one the board would be empty without any error.
    async fn find_assignee(&self) -> Result<(), TrackerError> {
        let Some(assignee) = self.scope.assignee.as_ref().filter(|assignee| **assignee != Assignee::Me) else {
            return Ok(());
        };
        let found = self.people.names(&self.client, recast(&assignee.filter())?).await?;
        if !found.is_empty() {
            return Ok(());
        }
        let there = self.people.names(&self.client, UserFilter::default()).await?;
        Err(missing("user", assignee.as_written(), "tracker.provider.assignee", there.into_iter()))
    }
}

fn missing(what: &str, name: &str, key: &str, there: impl Iterator<Item = String>) -> TrackerError {
    let there: Vec<String> = there.take(25).collect();
    let there = if there.is_empty() { "none that this key can see".to_owned() } else { there.join(", ") };
    TrackerError::InvalidConfig(format!("there is no {what} `{name}` ({key}); there is {there}"))
}
