//! Reads issues by number, many per GraphQL request: each issue's fate, with its comments and who did what.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde::Deserialize;
use serde_json::{Value, json};

use super::GithubTracker;
use super::blockers::BlockerState;
use super::columns::{CLOSED, Columns, OPEN};
use super::comments::comment_of_graphql;
use super::ids::{IssueRef, time};
use super::ticket::Issue;
use super::wire::{Actor, ColumnValue, GraphqlIssue, RestIssue, RestUser, TimelineItem};
use crate::domain::comment::{Author, TrustLevel, has_command_line};
use crate::domain::ids::TicketId;
use crate::domain::ticket::{Blocker, Doing, History, Labelled, StateChange, Ticket, same_state, state_in};
use crate::domain::time::Timestamp;
use crate::github::{GithubError, GraphqlAnswer, GraphqlFault, Purpose};
use crate::tracker::{Found, TrackerError};

/// The most issues in one request: the response contains up to a hundred comments of each.
const AT_ONCE: usize = 25;
/// The most issues in a request for their states only.
const STATES_AT_ONCE: usize = 100;

const WHOLE: &str = "fragment Parts on Issue {
  number title body state stateReason url createdAt updatedAt lastEditedAt
  author { __typename login }
  editor { __typename login }
  labels(first: 100) { nodes { name } }
  assignees(first: 20) { nodes { __typename login } }
  milestone { title }
  parent { number repository { nameWithOwner } }
  comments(first: 100) {
    pageInfo { hasNextPage endCursor }
    nodes { fullDatabaseId body createdAt updatedAt author { __typename login } }
  }
  timelineItems(last: 100, itemTypes: [LABELED_EVENT, ASSIGNED_EVENT, CLOSED_EVENT, REOPENED_EVENT]) {
    nodes {
      __typename
      ... on LabeledEvent { createdAt actor { __typename login } label { name } }
      ... on AssignedEvent { createdAt actor { __typename login } assignee { ...Who } }
      ... on ClosedEvent { createdAt actor { __typename login } }
      ... on ReopenedEvent { createdAt actor { __typename login } }
    }
  }
  PROJECT
}
fragment Who on Assignee {
  __typename
  ... on Bot { login }
  ... on User { login }
}";

const STATE: &str = "fragment Parts on Issue {
  number title state stateReason updatedAt
  labels(first: 100) { nodes { name } }
  PROJECT
}";

const ITEMS: &str = "projectItems(first: 100) {
    nodes {
      id isArchived project { id number owner { ... on Organization { login } ... on User { login } } }
      fieldValueByName(name: $field) {
        ... on ProjectV2ItemFieldSingleSelectValue { name updatedAt creator { __typename login } }
      }
    }
  }";

/// The response data: by alias of the repository, then by alias of the issue.
type Answers = BTreeMap<String, Option<BTreeMap<String, Value>>>;

/// The response for one issue.
enum Told {
    Issue(Box<GraphqlIssue>, Option<ColumnValue>),
    /// No issue, with the fault that says why, if there is one.
    Nothing(Option<GraphqlFault>),
    Unreadable(String),
}

#[derive(Deserialize)]
struct ItemWithProject {
    project: Option<NumberedProject>,
    #[serde(rename = "fieldValueByName")]
    value: Option<ColumnValue>,
    #[serde(rename = "isArchived", default)]
    is_archived: bool,
}

#[derive(Deserialize)]
struct NumberedProject {
    number: u64,
    owner: Option<LoginAlone>,
}

#[derive(Deserialize)]
struct LoginAlone {
    login: Option<String>,
}

impl GithubTracker {
    pub(super) async fn find(&self, ids: &[TicketId]) -> Result<Vec<(TicketId, Found)>, TrackerError> {
        let mut found = Vec::with_capacity(ids.len());
        let mut asked = Vec::new();
        for id in ids {
            match IssueRef::read(id) {
                Some(which) => asked.push(which),
                None => found.push((id.clone(), Found::NotVisible)),
            }
        }
        for some in asked.chunks(AT_ONCE) {
            let told = self.ask_for(some, WHOLE).await?;
            self.meet_all(&told).await?;
            let mut blockers = self.blockers_of(&told).await?;
            for (which, told) in told {
                let blocked_by = blockers.remove(&which).unwrap_or_default();
                let answer = self.found(&which, told, blocked_by).await?;
                found.push((which.id(), answer));
            }
        }
        Ok(found)
    }

    /// Returns the states of these issues, as far as they are visible.
    pub(super) async fn states_of(&self, refs: &[IssueRef]) -> Result<BTreeMap<IssueRef, BlockerState>, GithubError> {
        let mut states = BTreeMap::new();
        for some in refs.chunks(STATES_AT_ONCE) {
            for (which, told) in self.ask_for(some, STATE).await? {
                let Told::Issue(issue, column) = told else { continue };
                let not_planned = issue.state_reason.as_deref() == Some("NOT_PLANNED");
                let column = column.and_then(|column| column.name);
                let state = match self.issue_of_graphql(&issue, column) {
                    Ok(issue) if which.elsewhere.is_none() => self.state_of(&issue),
                    Ok(issue) => if issue.is_open { OPEN } else { CLOSED }.to_owned(),
                    Err(_) => continue,
                };
                states.insert(which, BlockerState { state, not_planned });
            }
        }
        Ok(states)
    }

    async fn ask_for(&self, refs: &[IssueRef], parts: &str) -> Result<Vec<(IssueRef, Told)>, GithubError> {
        if refs.is_empty() {
            return Ok(Vec::new());
        }
        let question = Many::of(refs, &self.board.owner, &self.board.name);
        let (document, variables) = question.document(parts, &self.board.columns);
        let answer = self.github.query::<Answers>(Purpose::Watch, &document, &variables).await;
        let answer = match answer {
            // An older Enterprise Server has no parents of issues.
            Err(GithubError::Refused(refusal)) if refusal.message.contains("'parent'") => {
                let parts = parts.replace("parent { number repository { nameWithOwner } }", "");
                let (document, variables) = question.document(&parts, &self.board.columns);
                self.github.query::<Answers>(Purpose::Watch, &document, &variables).await?
            }
            answer => answer?,
        };
        self.read_many(refs, &question, answer)
    }

    fn read_many(
        &self,
        refs: &[IssueRef],
        question: &Many,
        answer: GraphqlAnswer<Answers>,
    ) -> Result<Vec<(IssueRef, Told)>, GithubError> {
        let GraphqlAnswer { data, faults } = answer;
        let mut data = data.unwrap_or_default();
        let mut told = Vec::with_capacity(refs.len());
        for which in refs {
            let (repository, alias) = (question.alias(which), format!("i{}", which.number));
            let fault = |path: &[&str]| {
                faults.iter().find(|fault| fault.path.iter().map(String::as_str).eq(path.iter().copied()))
            };
            let Some(issues) = data.get_mut(&repository).and_then(Option::as_mut) else {
                if which.elsewhere.is_none() {
                    let words = fault(&[&repository]).map_or_else(|| "no reason".to_owned(), GraphqlFault::to_string);
                    let place = format!("{}/{}", self.board.owner, self.board.name);
                    return Err(GithubError::NotFound(format!("{place} is not visible to this token: {words}")));
                }
                told.push((which.clone(), Told::Nothing(None)));
                continue;
            };
            let one = match issues.remove(&alias) {
                None | Some(Value::Null) => Told::Nothing(fault(&[&repository, &alias]).cloned()),
                Some(value) => {
                    let column = self.column_in(&value);
                    match serde_json::from_value::<GraphqlIssue>(value) {
                        Ok(issue) => Told::Issue(Box::new(issue), column),
                        Err(error) => Told::Unreadable(format!("GitHub's description of it cannot be read: {error}")),
                    }
                }
            };
            told.push((which.clone(), one));
        }
        Ok(told)
    }

    /// Returns the column of an issue in the board's project.
    fn column_in(&self, issue: &Value) -> Option<ColumnValue> {
        let Columns::Project(project) = &self.board.columns else { return None };
        let items = issue["projectItems"]["nodes"].as_array()?;
        let items = items.iter().filter_map(|item| ItemWithProject::deserialize(item).ok());
        let is_ours = |item: &ItemWithProject| {
            let known = item.project.as_ref().filter(|known| known.number == project.number);
            let login = known.and_then(|known| known.owner.as_ref()).and_then(|owner| owner.login.as_ref());
            !item.is_archived && login.is_some_and(|login| login.eq_ignore_ascii_case(&project.owner))
        };
        items.filter(is_ours).find_map(|item| item.value)
    }

    async fn meet_all(&self, told: &[(IssueRef, Told)]) -> Result<(), TrackerError> {
        let (mut users, mut approvers): (Vec<RestUser>, Vec<RestUser>) = (Vec::new(), Vec::new());
        for (which, told) in told {
            let Told::Issue(issue, column) = told else { continue };
            let comments = issue.comments.iter().flat_map(|all| all.each()).filter_map(|one| one.author.as_ref());
            let actors = issue.timeline_items.iter().flat_map(|all| all.each()).filter_map(|one| one.actor.as_ref());
            let mover = column.iter().filter_map(|column| column.creator.as_ref());
            let all = issue.author.iter().chain(&issue.editor).chain(comments).chain(actors).chain(mover);
            users.extend(all.map(|actor| actor.as_user()));
            if which.elsewhere.is_none() {
                approvers.extend(self.approvers(issue, column.as_ref()));
            }
        }
        self.meet(&users.iter().collect::<Vec<_>>()).await?;
        self.meet_anew(&approvers).await
    }

    /// Returns the accounts that may approve: authors of comments with a command, and the account that moved the ticket into an
    /// approving state.
    fn approvers(&self, issue: &GraphqlIssue, column: Option<&ColumnValue>) -> Vec<RestUser> {
        let all = issue.comments.iter().flat_map(|all| all.each());
        let telling = all.filter(|one| has_command_line(&one.body)).filter_map(|one| one.author.as_ref());
        let mut found: Vec<RestUser> = telling.map(|actor| actor.as_user()).collect();
        let name = column.and_then(|column| column.name.clone());
        if let Ok(read) = self.issue_of_graphql(issue, name)
            && state_in(&self.state_of(&read), &self.board.approval_states)
        {
            let events: Vec<&TimelineItem> = issue.timeline_items.iter().flat_map(|all| all.each()).collect();
            let moved = self.last_move(&read, &self.state_of(&read), &events, column);
            found.extend(moved.and_then(|(_, by)| by).map(|actor| actor.as_user()));
        }
        found
    }

    /// Reads the blockers of these issues of this repository, together.
    async fn blockers_of(&self, told: &[(IssueRef, Told)]) -> Result<BTreeMap<IssueRef, Vec<Blocker>>, TrackerError> {
        let here = told.iter().filter(|(which, _)| which.elsewhere.is_none());
        let issues = here.filter_map(|(_, told)| match told {
            Told::Issue(issue, column) if issue.kind == "Issue" => {
                self.issue_of_graphql(issue, column.as_ref().and_then(|column| column.name.clone())).ok()
            }
            _ => None,
        });
        let issues: Vec<Issue> = issues.collect();
        let found = self.blockers(&issues.iter().collect::<Vec<_>>()).await?;
        Ok(found.into_iter().map(|(number, blockers)| (IssueRef::here(number), blockers)).collect())
    }

    async fn found(&self, which: &IssueRef, told: Told, blocked_by: Vec<Blocker>) -> Result<Found, TrackerError> {
        match told {
            Told::Unreadable(why) => Ok(Found::Unreadable(why)),
            Told::Nothing(Some(fault)) if fault.kind != "NOT_FOUND" => Ok(Found::Unreadable(fault.message)),
            Told::Nothing(_) => Ok(self.why_missing(which).await?),
            Told::Issue(issue, _) if issue.kind != "Issue" => Ok(Found::Gone("it is a pull request".to_owned())),
            Told::Issue(issue, column) => match self.whole_ticket(which, &issue, column, blocked_by).await {
                Ok(Ok(ticket)) => Ok(Found::Ticket(ticket)),
                Ok(Err(why)) => Ok(Found::Unreadable(why)),
                Err(error) => Err(error),
            },
        }
    }

    /// Finds out why an issue is missing. GraphQL always says "not found"; REST distinguishes the cases.
    async fn why_missing(&self, which: &IssueRef) -> Result<Found, GithubError> {
        let path = match &which.elsewhere {
            None => self.issue_path(which.number, ""),
            Some((owner, name)) => format!("/repos/{owner}/{name}/issues/{}", which.number),
        };
        match self.github.get::<RestIssue>(Purpose::Look, &path).await {
            // If REST returns it, another replica has it.
            Ok(_) | Err(GithubError::NotFound(_)) => Ok(Found::NotVisible),
            Err(GithubError::Gone(words)) => Ok(Found::Gone(words)),
            Err(GithubError::Moved(to)) => Ok(Found::Gone(format!("it was transferred to {to}"))),
            Err(error) => Err(error),
        }
    }

    async fn whole_ticket(
        &self,
        which: &IssueRef,
        told: &GraphqlIssue,
        column: Option<ColumnValue>,
        blocked_by: Vec<Blocker>,
    ) -> Result<Result<Ticket, String>, TrackerError> {
        let issue = match self.issue_of_graphql(told, column.as_ref().and_then(|column| column.name.clone())) {
            Ok(issue) => issue,
            Err(why) => return Ok(Err(why)),
        };
        if which.elsewhere.is_some() {
            // It is only a blocker: just its state counts, and this board's labels mean nothing in another repository.
            let mut ticket = self.ticket(&issue, Vec::new());
            ticket.id = which.id();
            ticket.key = which.id().as_str().into();
            ticket.state = if issue.is_open { OPEN } else { CLOSED }.to_owned();
            return Ok(Ok(ticket));
        }
        let Some(comments) = &told.comments else { return Ok(Err("GitHub's answer has no comments".to_owned())) };
        let has_more = comments.page_info.as_ref().is_some_and(|page| page.has_next_page);
        let comments = match has_more {
            true => self.all_comments(&which.id(), issue.number, None).await?,
            false => comments.each().map(|one| comment_of_graphql(self, one)).collect(),
        };
        let mut ticket = self.ticket(&issue, blocked_by);
        let events: Vec<&TimelineItem> = told.timeline_items.iter().flat_map(|all| all.each()).collect();
        ticket.history = self.history(&issue, told, &events);
        ticket.state_changed = self.state_changed(&issue, &ticket.state, &events, column.as_ref());
        ticket.comments = Some(comments);
        self.forget_unreadable(issue.number);
        Ok(Ok(ticket))
    }

    fn forget_unreadable(&self, number: u64) {
        let left_out = self.left_out.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let unreadable = left_out.get(&number).is_some_and(|why| why.contains("cannot be read"));
        drop(left_out);
        if unreadable {
            self.say_left_out(number, None);
        }
    }

    /// Returns who labelled and assigned the issue, and who changed its text last.
    fn history(&self, issue: &Issue, told: &GraphqlIssue, events: &[&TimelineItem]) -> History {
        let deed = |event: &TimelineItem| Doing {
            by: self.author(event.actor.as_ref().map(|actor| actor.as_user()).as_ref()),
            at: event.created_at.as_deref().and_then(time).unwrap_or_default(),
        };
        // For events that are too old to be in the response or that have no actor: an author whose actions do not count.
        let nobody = || Author::new("somebody whom GitHub does not name", TrustLevel::Stranger);
        let of_label = |label: &String| {
            let put = events.iter().rev().find(|event| labels(event, label)).map(|event| deed(event));
            let (label, at) = (label.trim().to_lowercase(), put.as_ref().map(|put| put.at));
            Labelled { label, by: put.map_or_else(nobody, |put| put.by), at }
        };
        let wanted = self.assignee_wanted();
        let assigns = |event: &&&TimelineItem| {
            event.kind == "AssignedEvent"
                && event
                    .assignee
                    .as_ref()
                    .and_then(|who| who.login())
                    .zip(wanted.as_ref())
                    .is_some_and(|(who, wanted)| same_state(&who, wanted))
        };
        let given = || events.iter().rev().find(assigns).map(|event| deed(event));
        let unknown = || Doing { by: nobody(), at: Timestamp::default() };
        let is_given = wanted.as_ref().is_some_and(|wanted| state_in(wanted, &issue.assignees));
        let editor = self.author(told.editor.as_ref().map(|actor| actor.as_user()).as_ref());
        let edited_at = told.last_edited_at.as_deref().and_then(time);
        History {
            labelled: issue.labels.iter().map(of_label).collect(),
            assigned: is_given.then(|| given().unwrap_or_else(unknown)),
            reworded: edited_at.map(|at| Doing { by: editor, at }),
        }
    }

    /// Returns when the issue entered its state, and who moved it. `None` if unknown.
    fn state_changed(
        &self,
        issue: &Issue,
        state: &str,
        events: &[&TimelineItem],
        column: Option<&ColumnValue>,
    ) -> Option<StateChange> {
        let (at, by) = self.last_move(issue, state, events, column)?;
        let by = by.map(|actor| self.author(Some(&actor.as_user())));
        Some(StateChange { at: time(at?)?, by })
    }

    fn last_move<'a>(
        &self,
        issue: &Issue,
        state: &str,
        events: &[&'a TimelineItem],
        column: Option<&'a ColumnValue>,
    ) -> Option<(Option<&'a str>, Option<&'a Actor>)> {
        let by_name = match &self.board.columns {
            Columns::OpenClosed => None,
            Columns::Labels(known) => {
                let label = known.iter().find(|one| same_state(&one.state, state)).map(|one| one.label.clone());
                label
                    .and_then(|label| events.iter().rev().find(|event| labels(event, &label)))
                    .map(|event| (event.created_at.as_deref(), event.actor.as_ref()))
            }
            Columns::Project(_) => column
                .filter(|column| column.name.as_deref().is_some_and(|name| same_state(name, state)))
                .map(|column| (column.updated_at.as_deref(), column.creator.as_ref())),
        };
        let kind = if issue.is_open { "ReopenedEvent" } else { "ClosedEvent" };
        let by_event = || {
            let event = events.iter().rev().find(|event| event.kind == kind)?;
            Some((event.created_at.as_deref(), event.actor.as_ref()))
        };
        by_name.or_else(by_event)
    }
}

fn labels(event: &TimelineItem, label: &str) -> bool {
    event.kind == "LabeledEvent" && event.label.as_ref().is_some_and(|named| same_state(&named.name, label))
}

/// Issues of several repositories that are read in one request.
struct Many {
    repositories: Vec<(String, String, Vec<u64>)>,
}

impl Many {
    fn of(refs: &[IssueRef], owner: &str, name: &str) -> Self {
        let mut repositories: Vec<(String, String, Vec<u64>)> = vec![(owner.to_owned(), name.to_owned(), Vec::new())];
        for which in refs {
            let place = which.elsewhere.as_ref().map_or(0, |(owner, name)| {
                let known = repositories.iter().position(|(o, n, _)| (o, n) == (owner, name));
                known.unwrap_or_else(|| {
                    repositories.push((owner.clone(), name.clone(), Vec::new()));
                    repositories.len() - 1
                })
            });
            if !repositories[place].2.contains(&which.number) {
                repositories[place].2.push(which.number);
            }
        }
        Self { repositories }
    }

    fn alias(&self, which: &IssueRef) -> String {
        let place = which
            .elsewhere
            .as_ref()
            .and_then(|(owner, name)| self.repositories.iter().position(|(o, n, _)| (o, n) == (owner, name)));
        format!("r{}", place.unwrap_or(0))
    }

    fn document(&self, parts: &str, columns: &Columns) -> (String, Value) {
        let mut variables = serde_json::Map::new();
        let (mut head, mut body) = (String::new(), String::new());
        let asked = self.repositories.iter().enumerate().filter(|(_, (_, _, numbers))| !numbers.is_empty());
        for (at, (owner, name, numbers)) in asked {
            let _ = write!(head, "$o{at}: String!, $n{at}: String!, ");
            let _ = writeln!(body, "  r{at}: repository(owner: $o{at}, name: $n{at}) {{");
            for number in numbers {
                let _ = writeln!(body, "    i{number}: issueOrPullRequest(number: {number}) {{ __typename ...Parts }}");
            }
            body.push_str("  }\n");
            variables.insert(format!("o{at}"), json!(owner));
            variables.insert(format!("n{at}"), json!(name));
        }
        let items = match columns {
            Columns::Project(project) => {
                head.push_str("$field: String!");
                variables.insert("field".to_owned(), json!(project.field));
                ITEMS
            }
            Columns::OpenClosed | Columns::Labels(_) => "",
        };
        let head = head.trim_end_matches(", ");
        (format!("query Issues({head}) {{\n{body}}}\n{}", parts.replace("PROJECT", items)), Value::Object(variables))
    }
}
