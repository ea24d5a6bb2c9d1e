//! Reads issues by number, many per GraphQL request: each issue's fate, with its comments and who did what.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde::Deserialize;
use serde_json::{Value, json};

use super::GithubTracker;
use super::blockers::BlockerState;
use super::columns::{CLOSED, Columns, OPEN};
use super::comments::comment_of_graphql;
use super::ids::IssueRef;
use super::ticket::Issue;
use super::wire::{ColumnValue, GraphqlIssue, Nodes, RestIssue, RestUser, TimelineItem};
use crate::domain::comment::has_command_line;
use crate::domain::ids::TicketId;
use crate::domain::ticket::{Blocker, Ticket, state_in};
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
        ... on ProjectV2ItemFieldSingleSelectValue { name updatedAt }
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
                    let items = [repository.clone(), alias.clone(), "projectItems".to_owned()];
                    let about_items = faults.iter().filter(|fault| fault.path.starts_with(&items));
                    let (hidden, broken): (Vec<&GraphqlFault>, Vec<&GraphqlFault>) =
                        about_items.partition(|fault| fault.is_about_something_hidden());
                    let column = match broken.first() {
                        // Another repository's issues are open or closed here.
                        _ if which.elsewhere.is_some() => Ok(None),
                        Some(fault) => Err(fault.to_string()),
                        None => self.column_in(&value, !hidden.is_empty()),
                    };
                    match (column, serde_json::from_value::<GraphqlIssue>(value)) {
                        (Ok(column), Ok(issue)) => Told::Issue(Box::new(issue), column),
                        (Err(why), Ok(_)) => {
                            Told::Unreadable(format!("its column in the project cannot be read: {why}"))
                        }
                        (_, Err(error)) => {
                            Told::Unreadable(format!("GitHub's description of it cannot be read: {error}"))
                        }
                    }
                }
            };
            told.push((which.clone(), one));
        }
        Ok(told)
    }

    /// Returns the column of an issue in the board's project. `None` if it is in none. An issue whose column cannot be read is an
    /// error: without it, the issue would count as one outside of the project. Other projects of the issue may be hidden.
    fn column_in(&self, issue: &Value, some_are_hidden: bool) -> Result<Option<ColumnValue>, String> {
        let Columns::Project(project) = &self.board.columns else { return Ok(None) };
        if issue["__typename"] != "Issue" {
            return Ok(None);
        }
        let items = Nodes::<ItemWithProject>::deserialize(&issue["projectItems"]).map_err(|error| error.to_string())?;
        let is_ours = |item: &&ItemWithProject| {
            let known = item.project.as_ref().filter(|known| known.number == project.number);
            let login = known.and_then(|known| known.owner.as_ref()).and_then(|owner| owner.login.as_ref());
            !item.is_archived && login.is_some_and(|login| login.eq_ignore_ascii_case(&project.owner))
        };
        let all = items.shown("projects of the issue", some_are_hidden).map_err(|error| error.to_string())?;
        Ok(all.into_iter().filter(is_ours).find_map(|item| item.value.clone()))
    }

    async fn meet_all(&self, told: &[(IssueRef, Told)]) -> Result<(), TrackerError> {
        let (mut users, mut approvers): (Vec<RestUser>, Vec<RestUser>) = (Vec::new(), Vec::new());
        for (which, told) in told {
            let Told::Issue(issue, column) = told else { continue };
            let comments = issue.comments.iter().flat_map(|all| all.each()).filter_map(|one| one.author.as_ref());
            let actors = issue.timeline_items.iter().flat_map(|all| all.each()).filter_map(|one| one.actor.as_ref());
            let all = issue.author.iter().chain(&issue.editor).chain(comments).chain(actors);
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
            found.extend(moved.and_then(|moved| moved.by).map(|actor| actor.as_user()));
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
