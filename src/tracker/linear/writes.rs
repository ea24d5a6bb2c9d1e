//! Writes other than comments: moves, labels, links, new tickets. Each can be repeated safely.

use super::LinearTracker;
use super::comments::is_conflict;
use super::documents::place::{
    IssueFilter, IssueIDComparator, IssueLabelFilter, NullableTeamFilter, PlaceIssueLabelsNodes as LabelNode,
    PlaceIssuesNodes as Node, StringComparator, Variables,
};
use super::documents::{
    Attach, ChangeIssue, Home, MakeIssue, MakeLabel, Place, Relate, attach, change_issue, home, make_issue, make_label,
    place, relate,
};
use super::keys::own_id;
use super::refusals::WriteFailure;
use super::scope::{is_uuid, project_filter, recast, time_of};
use crate::domain::ids::TicketId;
use crate::domain::ticket::{NewTicket, normalise_labels, same_state, state_in};
use crate::tracker::{Move, TrackerError};

/// The team in which a ticket is created.
struct Team {
    id: String,
    key: String,
    states: Vec<(String, String)>,
    project: Option<String>,
}

impl LinearTracker {
    /// Reads an issue that is about to be changed, and the labels with these names.
    async fn place(&self, id: &TicketId, labels: &[String]) -> Result<(Node, Vec<LabelNode>), TrackerError> {
        let missing = || TrackerError::NotFound(id.clone());
        if !is_uuid(id.as_str()) {
            return Err(missing());
        }
        let by_id = IssueIDComparator { eq: Some(id.as_str().to_owned()), ..Default::default() };
        let filter = IssueFilter { id: Some(by_id), ..Default::default() };
        let asked = Variables { filter: Some(filter), labels: Some(named(labels)) };
        let found = self.client.ask::<Place>(asked).await?.data;
        let node = found.issues.nodes.into_iter().next().filter(|node| node.trashed != Some(true));
        Ok((node.ok_or_else(missing)?, found.issue_labels.nodes))
    }

    async fn change(
        &self,
        id: &TicketId,
        input: change_issue::IssueUpdateInput,
    ) -> Result<change_issue::ChangeIssueIssueUpdate, TrackerError> {
        let change = change_issue::Variables { id: id.as_str().to_owned(), input };
        match self.client.tell::<ChangeIssue>(change).await {
            Ok(done) => Ok(done.issue_update),
            Err(WriteFailure::Missing(_)) => Err(TrackerError::NotFound(id.clone())),
            Err(failure) => Err(failure.into()),
        }
    }

    /// Returns the name of the issue's state, and id and name of each state of its team.
    pub(super) async fn states_of(&self, id: &TicketId) -> Result<(String, Vec<(String, String)>), TrackerError> {
        let (node, _) = self.place(id, &[]).await?;
        let states = node.team.states.nodes.into_iter().map(|state| (state.id, state.name));
        Ok((node.state.name, states.collect()))
    }

    /// Moves an issue. Each team has its own states; `state` is the name of a state of the issue's team.
    pub(super) async fn shift(
        &self,
        id: &TicketId,
        state: &str,
        expected_from: &[String],
    ) -> Result<Move, TrackerError> {
        let (node, _) = self.place(id, &[]).await?;
        let actual = node.state.name;
        if same_state(&actual, state) {
            return Ok(Move::Already);
        }
        if !expected_from.is_empty() && !state_in(&actual, expected_from) {
            return Ok(Move::Elsewhere(actual));
        }
        let states = node.team.states.nodes;
        let Some(target) = states.iter().find(|known| same_state(&known.name, state)) else {
            let names: Vec<&str> = states.iter().map(|known| known.name.as_str()).collect();
            let (team, names) = (&node.team.key, names.join(", "));
            return Err(TrackerError::Refused(format!("team {team} has no state `{}`; it has {names}", state.trim())));
        };
        let input = change_issue::IssueUpdateInput { state_id: Some(target.id.clone()), ..Default::default() };
        let done = self.change(id, input).await?.issue;
        match done {
            Some(issue) if issue.state.id != target.id => Ok(Move::Elsewhere(issue.state.name)),
            Some(issue) => Ok(Move::Moved(time_of(&issue.updated_at))),
            None => Ok(Move::Moved(None)),
        }
    }

    pub(super) async fn relabel(&self, id: &TicketId, add: &[String], remove: &[String]) -> Result<(), TrackerError> {
        let (add, remove) = (normalise_labels(add), normalise_labels(remove));
        let names: Vec<String> = add.iter().chain(&remove).cloned().collect();
        if names.is_empty() {
            return Ok(());
        }
        let (node, known) = self.place(id, &names).await?;
        let has = |label: &&LabelNode| node.label_ids.contains(&label.id);
        let there: Vec<&LabelNode> = known.iter().filter(has).collect();
        let removed: Vec<String> =
            there.iter().filter(|label| state_in(&label.name, &remove)).map(|label| label.id.clone()).collect();
        let new: Vec<String> =
            add.into_iter().filter(|name| !there.iter().any(|label| same_state(&label.name, name))).collect();
        let added = self.label_ids(&node.team.id, &node.team.key, &new, &known).await?;
        if added.is_empty() && removed.is_empty() {
            return Ok(());
        }
        let input = change_issue::IssueUpdateInput {
            added_label_ids: (!added.is_empty()).then_some(added),
            removed_label_ids: (!removed.is_empty()).then_some(removed),
            state_id: None,
        };
        match self.change(id, input).await {
            Err(TrackerError::NotFound(_)) if self.place(id, &[]).await.is_ok() => Err(TrackerError::Request(
                "the ticket is there, and Linear does not know a label for it yet".to_owned(),
            )),
            result => result.map(drop),
        }
    }

    /// Returns the ids of the labels with these names that an issue of the team can have. A missing label is created only if that
    /// is allowed.
    async fn label_ids(
        &self,
        team: &str,
        key: &str,
        names: &[String],
        known: &[LabelNode],
    ) -> Result<Vec<String>, TrackerError> {
        let mut ids = Vec::new();
        for name in names {
            match fitting(known, team, name) {
                Some(label) => ids.push(label.id.clone()),
                None if self.create_labels => ids.push(self.make_label(team, key, name).await?),
                None => {
                    return Err(TrackerError::Refused(format!(
                        "team {key} has no label `{name}`; make it in Linear, or set tracker.provider.create_labels: true"
                    )));
                }
            }
        }
        Ok(ids)
    }

    async fn make_label(&self, team: &str, key: &str, name: &str) -> Result<String, TrackerError> {
        let own = own_id(&["label", team, name]);
        let input = make_label::IssueLabelCreateInput {
            id: Some(own.clone()),
            name: name.to_owned(),
            team_id: Some(team.to_owned()),
        };
        match self.client.tell::<MakeLabel>(make_label::Variables { input }).await {
            Ok(made) => Ok(made.issue_label_create.issue_label.id),
            Err(WriteFailure::Refused(why)) if is_conflict(&why) => {
                self.label_in_the_way(team, key, name, own, &why).await
            }
            Err(failure) => Err(failure.into()),
        }
    }

    /// Returns the id of the label because of which Linear refuses to make one of this name: the runner's own from an earlier
    /// attempt, or another of the same name.
    async fn label_in_the_way(
        &self,
        team: &str,
        key: &str,
        name: &str,
        own: String,
        why: &str,
    ) -> Result<String, TrackerError> {
        let labels = Some(recast(&named(&[name.to_owned()]))?);
        let asked = home::Variables { teams: None, project: None, labels };
        let known: Vec<LabelNode> =
            self.client.ask::<Home>(asked).await?.data.issue_labels.nodes.into_iter().map(same_label).collect();
        let is_group = known.iter().any(|label| label.is_group);
        match fitting(&known, team, name) {
            Some(label) => Ok(label.id.clone()),
            None if is_group => Err(TrackerError::Refused(format!(
                "`{name}` is a group of labels in Linear, and an issue of team {key} cannot have it ({why})\n  fix: rename the group, or name another label"
            ))),
            // The runner's own, which is not shown yet.
            None => Ok(own),
        }
    }

    /// Links an address. Linear identifies an attachment by its address: the same address again changes the title.
    pub(super) async fn attach(&self, id: &TicketId, url: &str, title: &str) -> Result<(), TrackerError> {
        let input = attach::AttachmentCreateInput {
            id: None,
            issue_id: id.as_str().to_owned(),
            url: url.to_owned(),
            title: title.to_owned(),
            subtitle: None,
        };
        match self.client.tell::<Attach>(attach::Variables { input }).await {
            Ok(_) => Ok(()),
            Err(WriteFailure::Missing(_)) => Err(TrackerError::NotFound(id.clone())),
            Err(failure) => Err(failure.into()),
        }
    }

    pub(super) async fn create(&self, new: &NewTicket, key: &str) -> Result<TicketId, TrackerError> {
        let labels = normalise_labels(&new.labels);
        let (team, known) = self.home_of(new.parent.as_ref(), &labels).await?;
        let state =
            self.states.active.iter().find_map(|wanted| {
                team.states.iter().find(|(_, name)| same_state(name, wanted)).map(|(id, _)| id.clone())
            });
        let own = own_id(&["issue", &team.id, key]);
        let label_ids = self.label_ids(&team.id, &team.key, &labels, &known).await?;
        let input = make_issue::IssueCreateInput {
            id: Some(own.clone()),
            team_id: team.id,
            title: Some(new.title.clone()),
            description: Some(new.description.replace('\0', "")),
            priority: new.priority,
            state_id: state,
            label_ids: (!label_ids.is_empty()).then_some(label_ids),
            parent_id: new.parent.as_ref().map(|parent| parent.as_str().to_owned()),
            project_id: team.project,
        };
        let id = TicketId::new(own);
        let existed = match self.client.tell::<MakeIssue>(make_issue::Variables { input }).await {
            Ok(_) => false,
            Err(WriteFailure::Other(error)) => return Err(error),
            Err(WriteFailure::Missing(why) | WriteFailure::Refused(why)) => {
                // An empty change succeeds only if the issue exists.
                match self.change(&id, change_issue::IssueUpdateInput::default()).await {
                    Ok(_) => true,
                    Err(TrackerError::NotFound(_)) => return Err(TrackerError::Refused(why)),
                    Err(error) => return Err(error),
                }
            }
        };
        for blocker in &new.blocked_by {
            let input = relate::IssueRelationCreateInput {
                id: Some(own_id(&["blocks", blocker.as_str(), id.as_str()])),
                issue_id: blocker.as_str().to_owned(),
                related_issue_id: id.as_str().to_owned(),
                type_: relate::IssueRelationType::blocks,
            };
            match self.client.tell::<Relate>(relate::Variables { input }).await {
                Ok(_) => {}
                // The runner chose the id, so an object with this id is this relation, made by an earlier attempt.
                Err(WriteFailure::Refused(why)) if existed || is_conflict(&why) => {}
                Err(WriteFailure::Missing(_)) => return Err(TrackerError::NotFound(blocker.clone())),
                Err(failure) => return Err(failure.into()),
            }
        }
        Ok(id)
    }

    /// Returns the team of the parent, otherwise the one in the workflow file, with the labels of these names.
    async fn home_of(
        &self,
        parent: Option<&TicketId>,
        labels: &[String],
    ) -> Result<(Team, Vec<LabelNode>), TrackerError> {
        if let Some(parent) = parent {
            let (node, known) = self.place(parent, labels).await?;
            let states = node.team.states.nodes.into_iter().map(|state| (state.id, state.name)).collect();
            let project = node.project.map(|project| project.id);
            return Ok((Team { id: node.team.id, key: node.team.key, states, project }, known));
        }
        let by_key = |key: &String| home::TeamFilter {
            key: Some(home::StringComparator { eq_ignore_case: Some(key.clone()), ..Default::default() }),
            ..Default::default()
        };
        let project = self.scope.project_slug.as_deref().map(|slug| recast(&project_filter(slug))).transpose()?;
        let has_project = project.is_some();
        let asked = home::Variables {
            teams: self.scope.team_key.as_ref().map(by_key),
            project,
            labels: Some(recast(&named(labels))?),
        };
        let found = self.client.ask::<Home>(asked).await?.data;
        let project = found.projects.nodes.into_iter().next().filter(|_| has_project);
        if let (Some(slug), None) = (&self.scope.project_slug, &project) {
            return Err(TrackerError::Refused(format!(
                "the key does not show the project `{slug}` in which the ticket belongs\n  fix: correct tracker.provider.project_slug, or give the key access to the project"
            )));
        }
        let project_id = project.as_ref().map(|project| project.id.clone());
        let team = match (&self.scope.team_key, project) {
            (None, Some(project)) => project.teams.nodes.into_iter().next().map(|team| Team {
                states: team.states.nodes.into_iter().map(|state| (state.id, state.name)).collect(),
                id: team.id,
                key: team.key,
                project: project_id,
            }),
            (None, None) => None,
            (Some(_), _) => found.teams.nodes.into_iter().next().map(|team| Team {
                states: team.states.nodes.into_iter().map(|state| (state.id, state.name)).collect(),
                id: team.id,
                key: team.key,
                project: project_id,
            }),
        };
        let team = team.ok_or_else(|| TrackerError::Refused("there is no team to make a ticket in".to_owned()))?;
        Ok((team, found.issue_labels.nodes.into_iter().map(same_label).collect()))
    }
}

/// Converts a label to the type of another operation.
fn same_label(label: home::HomeIssueLabelsNodes) -> LabelNode {
    let team = label.team.map(|team| place::PlaceIssueLabelsNodesTeam { id: team.id });
    LabelNode { id: label.id, name: label.name, is_group: label.is_group, team }
}

/// Returns the label of this name that an issue of the team can have. The team's own labels come before those of the workspace.
fn fitting<'a>(known: &'a [LabelNode], team: &str, name: &str) -> Option<&'a LabelNode> {
    let is_of_team = |label: &LabelNode| label.team.as_ref().is_none_or(|of| of.id == team);
    let fits = |label: &&LabelNode| same_state(&label.name, name) && !label.is_group && is_of_team(label);
    known.iter().filter(fits).min_by_key(|label| label.team.is_none())
}

/// Returns a filter for labels of these names, in any team. Without names the filter matches no labels.
fn named(names: &[String]) -> IssueLabelFilter {
    let named = |name: &String| IssueLabelFilter {
        name: Some(StringComparator { eq_ignore_case: Some(name.clone()), ..Default::default() }),
        ..Default::default()
    };
    match names {
        [] => IssueLabelFilter {
            name: Some(StringComparator { in_: Some(Vec::new()), ..Default::default() }),
            team: Some(NullableTeamFilter { null: Some(true), ..Default::default() }),
            ..Default::default()
        },
        names => IssueLabelFilter { or: Some(names.iter().map(named).collect()), ..Default::default() },
    }
}
