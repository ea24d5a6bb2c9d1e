//! The objects of the graph, and how the executor walks over them.

use apollo_compiler::resolvers::{FieldError, ObjectValue, ResolveInfo, ResolvedValue};
use apollo_compiler::response::JsonValue;
use serde_json::{Map, Value, json};

use crate::github::state::{UserKind, World};

use super::{Context, account, checks, issue, mutation, project, pull, query, review};

/// An object, by where it is. Numbers are those of the repository, the first `usize` is its place in the world.
#[derive(Clone, Debug)]
pub enum Kind {
    Query,
    Mutation,
    RateLimit,
    Account(String),
    /// Whoever asks. An App is shown as a user, with the ending of its login.
    Viewer(String),
    App(String),
    Repository(usize),
    Ref(usize, String),
    Commit(usize, String),
    PullCommit(usize, u64, String),
    Issue(usize, u64),
    Comment(usize, u64, u64),
    Event(usize, u64, u64),
    Label(usize, String),
    Milestone(usize, u64),
    Reaction(Value),
    SubIssuesSummary(Value),
    Pull(usize, u64),
    AutoMerge(usize, u64),
    Review(usize, u64, u64),
    ReviewRequest(usize, u64, String),
    Thread(usize, u64, u64),
    ReviewComment(usize, u64, u64),
    Queue(usize, String),
    QueueEntry(usize, u64),
    Rollup(usize, String),
    Check(usize, u64),
    Suite(usize, u64),
    Run(usize, u64),
    Status(usize, u64),
    Project(usize),
    ProjectField(usize),
    ProjectOption(usize, String),
    ProjectItem(usize, u64),
    ProjectValue(usize, u64),
    /// What a mutation gives back.
    Payload(&'static str, Vec<(&'static str, Val)>),
    Connection(Box<Connection>),
    Edge(String, Box<Kind>, String),
    PageInfo(Value),
}

#[derive(Clone, Debug)]
pub enum Val {
    Leaf(Value),
    Node(Kind),
    List(Vec<Val>),
}

/// A page of a list.
#[derive(Clone, Debug)]
pub struct Connection {
    type_name: String,
    total: usize,
    first: usize,
    nodes: Vec<Kind>,
}

/// An error that GitHub would give, beginning with its type: `NOT_FOUND: ...`.
pub type Resolved = Result<Val, String>;

impl Val {
    pub fn leaf(value: impl Into<Value>) -> Resolved {
        Ok(Self::Leaf(value.into()))
    }

    pub fn node(kind: Kind) -> Resolved {
        Ok(Self::Node(kind))
    }

    pub fn maybe(kind: Option<Kind>) -> Resolved {
        Ok(kind.map_or(Self::Leaf(Value::Null), Self::Node))
    }
}

pub struct Node<'w> {
    pub context: &'w Context<'w>,
    pub kind: Kind,
}

pub type Arguments = Map<String, Value>;

impl Node<'_> {
    fn resolve(&self, name: &str, arguments: &Arguments) -> Option<Resolved> {
        let (context, kind) = (self.context, &self.kind);
        match kind {
            Kind::Query => query::root(context, name, arguments),
            Kind::Mutation => mutation::root(context, name, arguments),
            Kind::RateLimit => query::rate_limit(context, name),
            Kind::Repository(home) => query::repository(context, *home, name, arguments),
            Kind::Viewer(login) if name == "login" => Some(Val::leaf(login.as_str())),
            Kind::Account(login) | Kind::Viewer(login) => account::account(context, login, name, arguments),
            Kind::App(slug) => account::app(context, slug, name),
            Kind::Ref(home, branch) => checks::reference(context, *home, branch, name),
            Kind::Commit(home, sha) => checks::commit(context, *home, sha, name),
            Kind::PullCommit(home, number, sha) => checks::pull_commit(*home, *number, sha, name),
            Kind::Issue(home, number) => issue::issue(context, *home, *number, name, arguments),
            Kind::Comment(home, number, id) => issue::comment(context, *home, *number, *id, name),
            Kind::Event(home, number, id) => issue::event(context, *home, *number, *id, name),
            Kind::Label(home, label) => issue::label(context, *home, label, name),
            Kind::Milestone(home, number) => issue::milestone(context, *home, *number, name),
            Kind::Pull(home, number) => pull::pull(context, *home, *number, name, arguments),
            Kind::AutoMerge(home, number) => pull::auto_merge(context, *home, *number, name),
            Kind::Queue(home, branch) => pull::queue(context, *home, branch, name, arguments),
            Kind::QueueEntry(home, number) => pull::queue_entry(context, *home, *number, name),
            Kind::Review(home, number, id) => review::review(context, *home, *number, *id, name, arguments),
            Kind::ReviewRequest(home, number, login) => review::request(*home, *number, login, name),
            Kind::Thread(home, number, id) => review::thread(context, *home, *number, *id, name, arguments),
            Kind::ReviewComment(home, number, id) => review::comment(context, *home, *number, *id, name),
            Kind::Rollup(home, sha) => checks::rollup(context, *home, sha, name, arguments),
            Kind::Check(home, id) => checks::check(context, *home, *id, name, arguments),
            Kind::Suite(home, id) => checks::suite(context, *home, *id, name),
            Kind::Run(home, id) => checks::run(context, *home, *id, name),
            Kind::Status(home, id) => checks::status(context, *home, *id, name, arguments),
            Kind::Project(at) => project::project(context, *at, name, arguments),
            Kind::ProjectField(at) => project::field(context, *at, name, arguments),
            Kind::ProjectOption(at, id) => project::option(context, *at, id, name),
            Kind::ProjectItem(at, id) => project::item(context, *at, *id, name, arguments),
            Kind::ProjectValue(at, id) => project::value(context, *at, *id, name),
            Kind::Reaction(fields) | Kind::SubIssuesSummary(fields) | Kind::PageInfo(fields) => {
                fields.get(name).cloned().map(|value| Ok(Val::Leaf(value)))
            }
            Kind::Payload(_, fields) => match fields.iter().find(|(key, _)| *key == name) {
                Some((_, value)) => Some(Ok(value.clone())),
                None if name == "clientMutationId" => Some(Val::leaf(Value::Null)),
                None => None,
            },
            Kind::Connection(connection) => connection.resolve(name),
            Kind::Edge(_, kind, cursor) => match name {
                "node" => Some(Val::node((**kind).clone())),
                "cursor" => Some(Val::leaf(cursor.as_str())),
                _ => None,
            },
        }
    }
}

/// The name of an object's type.
fn type_name(world: &World, kind: &Kind) -> String {
    match kind {
        Kind::Viewer(_) => "User",
        Kind::Account(login) => match world.user(login).map(|user| user.kind) {
            Some(UserKind::Bot) => "Bot",
            Some(UserKind::Organization) => "Organization",
            _ => "User",
        },
        Kind::Event(home, number, id) => issue::event_type(world, *home, *number, *id),
        Kind::Payload(name, _) => name,
        Kind::Connection(connection) => return connection.type_name.clone(),
        Kind::Edge(name, _, _) => return name.clone(),
        Kind::Query => "Query",
        Kind::Mutation => "Mutation",
        Kind::RateLimit => "RateLimit",
        Kind::App(_) => "App",
        Kind::Repository(_) => "Repository",
        Kind::Ref(..) => "Ref",
        Kind::Commit(..) => "Commit",
        Kind::PullCommit(..) => "PullRequestCommit",
        Kind::Issue(..) => "Issue",
        Kind::Comment(..) => "IssueComment",
        Kind::Label(..) => "Label",
        Kind::Milestone(..) => "Milestone",
        Kind::Reaction(_) => "Reaction",
        Kind::SubIssuesSummary(_) => "SubIssuesSummary",
        Kind::Pull(..) => "PullRequest",
        Kind::AutoMerge(..) => "AutoMergeRequest",
        Kind::Review(..) => "PullRequestReview",
        Kind::ReviewRequest(..) => "ReviewRequest",
        Kind::Thread(..) => "PullRequestReviewThread",
        Kind::ReviewComment(..) => "PullRequestReviewComment",
        Kind::Queue(..) => "MergeQueue",
        Kind::QueueEntry(..) => "MergeQueueEntry",
        Kind::Rollup(..) => "StatusCheckRollup",
        Kind::Check(..) => "CheckRun",
        Kind::Suite(..) => "CheckSuite",
        Kind::Run(..) => "WorkflowRun",
        Kind::Status(..) => "StatusContext",
        Kind::Project(_) => "ProjectV2",
        Kind::ProjectField(_) => "ProjectV2SingleSelectField",
        Kind::ProjectOption(..) => "ProjectV2SingleSelectFieldOption",
        Kind::ProjectItem(..) => "ProjectV2Item",
        Kind::ProjectValue(..) => "ProjectV2ItemFieldSingleSelectValue",
        Kind::PageInfo(_) => "PageInfo",
    }
    .to_owned()
}

impl ObjectValue for Node<'_> {
    fn type_name(&self) -> &str {
        // The trait wants a borrowed name, and only that of an account depends on the world; leaking one is not worth a cache.
        schema_name(&type_name(&self.context.world.borrow(), &self.kind))
    }

    fn resolve_field<'a>(&'a self, info: &'a ResolveInfo<'a>) -> Result<ResolvedValue<'a>, FieldError> {
        let arguments = serde_json::to_value(info.arguments()).ok().and_then(|value| value.as_object().cloned());
        let resolved = self.resolve(info.field_name(), &arguments.unwrap_or_default());
        match resolved {
            Some(Ok(value)) => Ok(self.completed(value)),
            Some(Err(message)) => Err(FieldError { message }),
            None => {
                let message = format!("tests/github/graphql does not know {}.{}", self.type_name(), info.field_name());
                self.context.unknown.borrow_mut().push(message.clone());
                Err(FieldError { message })
            }
        }
    }
}

/// The schema's own copy of a type's name.
fn schema_name(name: &str) -> &'static str {
    crate::github::contract::graphql::schema().types.get_key_value(name).map_or("", |(name, _)| name.as_str())
}

impl<'w> Node<'w> {
    fn completed<'a>(&'a self, value: Val) -> ResolvedValue<'a>
    where
        'w: 'a,
    {
        match value {
            Val::Leaf(value) => ResolvedValue::Leaf(JsonValue::from(value)),
            Val::Node(kind) => ResolvedValue::object(Node { context: self.context, kind }),
            Val::List(list) => {
                let items: Vec<ResolvedValue<'a>> = list.into_iter().map(|one| self.completed(one)).collect();
                ResolvedValue::list(items)
            }
        }
    }
}

/// A page of `all`, as `first`/`after` or `last`/`before` ask for it. GitHub wants one of the two, from 1 to 100.
pub fn connect(type_name: &str, all: Vec<Kind>, arguments: &Arguments) -> Resolved {
    let number = |name: &str| arguments.get(name).and_then(Value::as_u64);
    let place = |name: &str| arguments.get(name)?.as_str()?.strip_prefix("cursor:")?.parse::<usize>().ok();
    let total = all.len();
    let size = number("first").or(number("last"));
    let Some(size @ 1..=100) = size else {
        let words =
            format!("You must provide a `first` or `last` value from 1 to 100 to properly paginate the `{type_name}`.");
        return Err(format!("MISSING_PAGINATION_BOUNDARIES: {words}"));
    };
    let size = usize::try_from(size).unwrap();
    let first = match number("first") {
        Some(_) => place("after").map_or(0, |after| after + 1).min(total),
        None => place("before").unwrap_or(total).saturating_sub(size),
    };
    let end = match number("first") {
        Some(_) => (first + size).min(total),
        None => place("before").unwrap_or(total).min(total),
    };
    let nodes = all[first..end.max(first)].to_vec();
    let type_name = type_name.to_owned();
    Val::node(Kind::Connection(Box::new(Connection { type_name, total, first, nodes })))
}

impl Connection {
    fn resolve(&self, name: &str) -> Option<Resolved> {
        let end = self.first + self.nodes.len();
        let cursor = |at: usize| json!(format!("cursor:{at}"));
        let edge_type = self.type_name.replace("Connection", "Edge");
        Some(match name {
            "totalCount" | "filteredCount" => Val::leaf(self.total),
            "pageCount" => Val::leaf(self.nodes.len()),
            "nodes" => Ok(Val::List(self.nodes.iter().cloned().map(Val::Node).collect())),
            "edges" => {
                let edge = |(index, kind): (usize, &Kind)| {
                    let cursor = format!("cursor:{}", self.first + index);
                    Val::Node(Kind::Edge(edge_type.clone(), Box::new(kind.clone()), cursor))
                };
                Ok(Val::List(self.nodes.iter().enumerate().map(edge).collect()))
            }
            "pageInfo" => Val::node(Kind::PageInfo(json!({
                "hasNextPage": end < self.total,
                "hasPreviousPage": self.first > 0,
                "startCursor": if self.nodes.is_empty() { Value::Null } else { cursor(self.first) },
                "endCursor": if self.nodes.is_empty() { Value::Null } else { cursor(end - 1) },
            }))),
            "checkRunCount" => Val::leaf(self.nodes.iter().filter(|kind| matches!(kind, Kind::Check(..))).count()),
            "statusContextCount" => {
                Val::leaf(self.nodes.iter().filter(|kind| matches!(kind, Kind::Status(..))).count())
            }
            _ => return None,
        })
    }
}

/// `databaseId` is a 32-bit number, and GitHub's ids have outgrown it: null where it does not fit.
pub fn database_id(id: u64) -> Resolved {
    Val::leaf(i32::try_from(id).map_or(Value::Null, Value::from))
}
