//! The status column of a GitHub project as the board's states, read and written through GraphQL.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde::Deserialize;
use serde_json::{Value, json};

use super::GithubTracker;
use super::columns::Columns;
use super::wire::{ColumnValue, Nodes, ProjectItem};
use crate::domain::hash::stable_hash;
use crate::domain::ticket::same_state;
use crate::github::{GithubError, GraphqlAnswer, GraphqlFault, Purpose, Rejection};

/// The project and the field that are the board.
#[derive(Debug, Clone)]
pub struct ProjectColumn {
    /// The organisation or the person that owns the project.
    pub owner: String,
    pub number: u64,
    pub field: String,
    /// The columns in which work is finished.
    pub terminal: Vec<String>,
    /// The column in which new tickets begin.
    pub first: Option<String>,
}

/// The columns as they were read last.
#[derive(Default)]
pub struct ProjectMemory {
    last: Mutex<Option<ColumnsNow>>,
}

impl ProjectMemory {
    pub fn last(&self) -> Option<ColumnsNow> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The column of each issue of this repository in the project.
#[derive(Clone)]
pub struct ColumnsNow {
    columns: Arc<BTreeMap<u64, String>>,
    hash: u64,
}

impl ColumnsNow {
    fn new(columns: BTreeMap<u64, String>) -> Self {
        let mut words = Vec::with_capacity(columns.len());
        words.extend(columns.iter().map(|(number, column)| format!("{number} {column}")));
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        Self { hash: stable_hash(&words), columns: Arc::new(columns) }
    }

    pub fn of(&self, number: u64) -> Option<String> {
        self.columns.get(&number).cloned()
    }

    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// Returns the issues that entered or left the project or changed their column.
    pub fn moved_since(&self, before: &Self) -> Vec<u64> {
        if self.hash == before.hash {
            return Vec::new();
        }
        let numbers = self.columns.keys().chain(before.columns.keys());
        let mut moved: Vec<u64> = numbers.copied().filter(|number| self.of(*number) != before.of(*number)).collect();
        moved.sort_unstable();
        moved.dedup();
        moved
    }
}

const COLUMNS: &str = "query Columns($owner: String!, $number: Int!, $field: String!, $after: String) {
  repositoryOwner(login: $owner) {
    ... on Organization { projectV2(number: $number) { ...Items } }
    ... on User { projectV2(number: $number) { ...Items } }
  }
}
fragment Items on ProjectV2 {
  id
  items(first: 100, after: $after) {
    pageInfo { hasNextPage endCursor }
    nodes {
      id isArchived
      content { ... on Issue { number repository { nameWithOwner } } }
      fieldValueByName(name: $field) { ... on ProjectV2ItemFieldSingleSelectValue { name } }
    }
  }
}";

const PLACE: &str =
    "query Place($owner: String!, $number: Int!, $field: String!, $repoOwner: String!, $repo: String!, $issue: Int!) {
  repositoryOwner(login: $owner) {
    ... on Organization { projectV2(number: $number) { ...Field } }
    ... on User { projectV2(number: $number) { ...Field } }
  }
  repository(owner: $repoOwner, name: $repo) {
    issue(number: $issue) {
      id
      projectItems(first: 100) {
        nodes {
          id isArchived project { id }
          fieldValueByName(name: $field) { ... on ProjectV2ItemFieldSingleSelectValue { name } }
        }
      }
    }
  }
}
fragment Field on ProjectV2 {
  id
  field(name: $field) { ... on ProjectV2SingleSelectField { id options { id name } } }
}";

const ADD: &str = "mutation Add($project: ID!, $issue: ID!) {
  addProjectV2ItemById(input: {projectId: $project, contentId: $issue}) { item { id } }
}";

const MOVE: &str = "mutation Move($project: ID!, $item: ID!, $field: ID!, $option: String!) {
  updateProjectV2ItemFieldValue(
    input: {projectId: $project, itemId: $item, fieldId: $field, value: {singleSelectOptionId: $option}}
  ) {
    projectV2Item { id }
  }
}";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Owned<P> {
    repository_owner: Option<OwnersProject<P>>,
    repository: Option<Holder>,
}

#[derive(Deserialize)]
struct OwnersProject<P> {
    #[serde(rename = "projectV2")]
    project: Option<P>,
}

#[derive(Deserialize)]
struct Items {
    items: Nodes<ProjectItem>,
}

#[derive(Deserialize)]
struct Fields {
    id: String,
    field: Option<StatusField>,
}

#[derive(Deserialize)]
struct StatusField {
    /// Missing if the field is not a single-select field.
    id: Option<String>,
    options: Option<Vec<StatusOption>>,
}

#[derive(Deserialize)]
struct StatusOption {
    id: String,
    name: String,
}

#[derive(Deserialize)]
struct Holder {
    issue: Option<Held>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Held {
    id: String,
    project_items: Nodes<ProjectItem>,
}

#[derive(Deserialize)]
struct Added {
    #[serde(rename = "addProjectV2ItemById")]
    added: Option<AddedItem>,
}

#[derive(Deserialize)]
struct AddedItem {
    item: Option<ItemId>,
}

#[derive(Deserialize)]
struct ItemId {
    id: String,
}

/// The position of an issue in the project, and the ids that are needed to move it.
pub struct CardPlace {
    pub column: Option<String>,
    project: String,
    issue: String,
    item: Option<String>,
    /// Whether the issue's card is archived: the board does not show it.
    is_archived: bool,
    field: String,
    options: Vec<StatusOption>,
}

impl CardPlace {
    /// Returns the option of a column, with its own spelling.
    fn option(&self, column: &str) -> Option<&StatusOption> {
        self.options.iter().find(|option| same_state(&option.name, column))
    }

    pub fn has_column(&self, column: &str) -> bool {
        self.option(column).is_some()
    }

    pub fn columns(&self) -> String {
        self.options.iter().map(|option| option.name.as_str()).collect::<Vec<_>>().join(", ")
    }
}

impl GithubTracker {
    /// Reads the columns if a project is the board. Reads all of them each time, because moving a card does not change its issue.
    pub(super) async fn columns_now(&self) -> Result<Option<ColumnsNow>, GithubError> {
        let Columns::Project(project) = &self.board.columns else { return Ok(None) };
        let ours = format!("{}/{}", self.board.owner, self.board.name);
        let mut columns = BTreeMap::new();
        let mut after: Option<String> = None;
        loop {
            let variables =
                json!({"owner": project.owner, "number": project.number, "field": project.field, "after": after});
            let answer = self.github.query::<Owned<Items>>(Purpose::Watch, COLUMNS, &variables).await?;
            if let Some(fault) = answer.faults.iter().find(|fault| !is_about_foreign_content(fault)) {
                let words = format!("a part of project {} of {} is missing: {fault}", project.number, project.owner);
                return Err(GithubError::Unreadable(words));
            }
            let items = project_of(project, answer)?.0.items;
            for item in items.whole("cards of the project")?.into_iter().filter(|item| !item.is_archived) {
                let content = item.content.as_ref();
                let here = content.and_then(|content| content.repository.as_ref());
                let here = here.is_some_and(|repository| repository.name_with_owner.eq_ignore_ascii_case(&ours));
                let number = content.and_then(|content| content.number).filter(|_| here);
                if let Some((number, column)) = number.zip(column_name(item.field_value_by_name.as_ref())) {
                    columns.insert(number, column);
                }
            }
            let next = items.next("cards of the project")?.map(str::to_owned);
            if next.is_some() && next == after {
                return Err(GithubError::Pages("the project's next page is the same page again".to_owned()));
            }
            match next {
                Some(next) => after = Some(next),
                None => break,
            }
        }
        let now = ColumnsNow::new(columns);
        *self.project.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(now.clone());
        Ok(Some(now))
    }

    /// Reads the position of an issue in the project, and the project's columns.
    pub(super) async fn place(&self, project: &ProjectColumn, number: u64) -> Result<CardPlace, GithubError> {
        let variables = json!({
            "owner": project.owner, "number": project.number, "field": project.field,
            "repoOwner": self.board.owner, "repo": self.board.name, "issue": number,
        });
        let answer = self.github.query::<Owned<Fields>>(Purpose::Write, PLACE, &variables).await?;
        let items = ["repository", "issue", "projectItems"].map(str::to_owned);
        let hidden = |fault: &GraphqlFault| fault.is_about_something_hidden() && fault.path.starts_with(&items);
        let some_are_hidden = answer.faults.iter().any(hidden);
        let (Fields { id, field }, repository) = project_of(project, answer)?;
        let held = repository.and_then(|holder| holder.issue);
        let held = held.ok_or_else(|| GithubError::NotFound(format!("issue {number}")))?;
        let (field, options) = field.and_then(|field| field.id.zip(field.options)).ok_or_else(|| {
            let words =
                format!("project {} of {} has no column field `{}`", project.number, project.owner, project.field);
            GithubError::Refused(Rejection { status: 404, message: words, fields: Vec::new(), needs: None })
        })?;
        let mut items = held.project_items.shown("projects of the issue", some_are_hidden)?.into_iter();
        let item = items.find(|item| item.project.as_ref().is_some_and(|known| known.id == id));
        let shown = item.filter(|item| !item.is_archived);
        Ok(CardPlace {
            column: shown.and_then(|item| column_name(item.field_value_by_name.as_ref())),
            item: item.map(|item| item.id.clone()),
            is_archived: item.is_some_and(|item| item.is_archived),
            issue: held.id,
            project: id,
            field,
            options,
        })
    }

    /// Moves an issue into a column. Adds it to the project first if necessary.
    pub(super) async fn move_in_project(&self, place: &CardPlace, column: &str) -> Result<(), GithubError> {
        let Some(option) = place.option(column) else {
            return Err(GithubError::NotFound(format!("column {column}")));
        };
        let item = match &place.item {
            Some(_) if place.is_archived => {
                let message = "its card in the project is archived, and the board does not show it\n  fix: restore it in the project's archive".to_owned();
                return Err(GithubError::Refused(Rejection { status: 409, message, fields: Vec::new(), needs: None }));
            }
            Some(item) => item.clone(),
            None => {
                let variables = json!({"project": place.project, "issue": place.issue});
                let added: Added = self.github.mutate(Purpose::Write, ADD, &variables).await?;
                let item = added.added.and_then(|added| added.item);
                item.ok_or_else(|| GithubError::MaybeDone("the new item was not named".to_owned()))?.id
            }
        };
        let variables = json!({"project": place.project, "item": item, "field": place.field, "option": option.id});
        self.github.mutate::<Value>(Purpose::Write, MOVE, &variables).await?;
        Ok(())
    }
}

/// Whether the fault says that the content of a card is not shown to this credential. Such a card is of another repository: the
/// issues of the board's own repository are shown.
fn is_about_foreign_content(fault: &GraphqlFault) -> bool {
    fault.is_about_something_hidden() && fault.path.last().is_some_and(|step| step == "content")
}

fn column_name(value: Option<&ColumnValue>) -> Option<String> {
    value.and_then(|value| value.name.clone())
}

fn project_of<P>(project: &ProjectColumn, answer: GraphqlAnswer<Owned<P>>) -> Result<(P, Option<Holder>), GithubError> {
    let told = answer.faults.first().map(|fault| format!(" ({fault})")).unwrap_or_default();
    let data = answer.data.ok_or_else(|| GithubError::Unreadable("an answer without data".to_owned()))?;
    let found = data.repository_owner.and_then(|owner| owner.project);
    found.map(|found| (found, data.repository)).ok_or_else(|| {
        let message = format!("project {} of {} is not visible to this token{told}", project.number, project.owner);
        let needs = Some("the `project` scope, or `Projects: read and write`".to_owned());
        GithubError::Refused(Rejection { status: 404, message, fields: Vec::new(), needs })
    })
}
