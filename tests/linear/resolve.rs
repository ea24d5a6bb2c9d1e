//! Documents are executed field by field, as the specification says, so that any valid document gets an answer.

use std::cell::RefCell;
use std::sync::Arc;

use apollo_compiler::resolvers::{Execution, FieldError, ObjectValue, ResolveInfo, ResolvedValue};
use apollo_compiler::response::JsonValue;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::board::{Actor, Board, Comment, Happened, Id, Issue, Role};
use super::contract::{Question, schema};
use super::faults::complaint;
use super::filter::{Eyes, email, is_in_a_team};
use super::mutation;
use super::world::World;

/// What the resolvers share while one document is executed.
pub struct Context<'w> {
    pub world: RefCell<&'w mut World>,
    /// The board as this request sees it; a mutation shows what it has done.
    pub view: RefCell<Arc<Board>>,
    pub viewer: Id,
    pub oldest_history_first: bool,
    unknown: RefCell<Vec<String>>,
}

/// An object of the graph, by where it is.
#[derive(Clone, Debug)]
pub enum Kind {
    Query,
    Mutation,
    Issue(Id),
    Comment(Id, Box<Comment>),
    Happened(Box<Happened>),
    User(Id),
    Team(Id),
    State(Id),
    Project(Id),
    Label(Id),
    Relation(Id),
    /// Anything that is only its fields.
    Plain(&'static str, Vec<(&'static str, Val)>),
    Connection(&'static str, Vec<Kind>, Value),
}

#[derive(Clone, Debug)]
pub enum Val {
    Leaf(Value),
    Node(Kind),
    List(Vec<Val>),
}

/// An error that Linear would give: its code, and its words.
pub type Resolved = Result<Val, (&'static str, String)>;
pub type Arguments = Map<String, Value>;

pub fn leaf(value: impl Into<Value>) -> Resolved {
    Ok(Val::Leaf(value.into()))
}

fn maybe(kind: Option<Kind>) -> Resolved {
    Ok(kind.map_or(Val::Leaf(Value::Null), Val::Node))
}

/// Executes a document. The body of the answer.
pub fn execute(world: &mut World, question: &Question, viewer: &str) -> Value {
    let (view, oldest_history_first) = (world.shown(), world.oldest_history_first);
    let context = Context {
        world: RefCell::new(world),
        view: RefCell::new(view),
        viewer: viewer.to_owned(),
        oldest_history_first,
        unknown: RefCell::default(),
    };
    let root = Node { context: &context, kind: if question.is_mutation() { Kind::Mutation } else { Kind::Query } };
    let execution = Execution::new(schema(), &question.document)
        .operation(question.operation())
        .coerced_variable_values(&question.variables);
    let executed = execution.execute_sync(&root);
    for words in context.unknown.take() {
        context.world.borrow_mut().violate(format!("{}: {words}", question.name));
    }
    let response = executed.unwrap_or_else(|wrong| panic!("{}", wrong.message()));
    let mut body = json!({"data": serde_json::to_value(&response.data).unwrap()});
    let errors: Vec<Value> = response.errors.iter().map(|error| coded(&error.message)).collect();
    if !errors.is_empty() {
        body["errors"] = json!(errors);
    }
    body
}

/// The resolvers put the code before the words.
fn coded(words: &str) -> Value {
    let words = words.strip_prefix("resolver error: ").unwrap_or(words);
    match words.split_once(": ") {
        Some((code, words)) if code.chars().all(|c| c.is_ascii_uppercase() || c == '_') => complaint(code, words),
        _ => complaint("INTERNAL_SERVER_ERROR", words),
    }
}

pub struct Node<'w> {
    context: &'w Context<'w>,
    kind: Kind,
}

impl ObjectValue for Node<'_> {
    fn type_name(&self) -> &str {
        match &self.kind {
            Kind::Query => "Query",
            Kind::Mutation => "Mutation",
            Kind::Issue(_) => "Issue",
            Kind::Comment(..) => "Comment",
            Kind::Happened(_) => "IssueHistory",
            Kind::User(_) => "User",
            Kind::Team(_) => "Team",
            Kind::State(_) => "WorkflowState",
            Kind::Project(_) => "Project",
            Kind::Label(_) => "IssueLabel",
            Kind::Relation(_) => "IssueRelation",
            Kind::Plain(name, _) | Kind::Connection(name, ..) => name,
        }
    }

    fn resolve_field<'a>(&'a self, info: &'a ResolveInfo<'a>) -> Result<ResolvedValue<'a>, FieldError> {
        let arguments = serde_json::to_value(info.arguments()).ok().and_then(|value| value.as_object().cloned());
        match self.resolve(info.field_name(), &arguments.unwrap_or_default()) {
            Some(Ok(value)) => Ok(self.completed(value)),
            Some(Err((code, words))) => Err(FieldError { message: format!("{code}: {words}") }),
            None => {
                let message = format!("tests/linear does not know {}.{}", self.type_name(), info.field_name());
                self.context.unknown.borrow_mut().push(message.clone());
                Err(FieldError { message })
            }
        }
    }
}

impl<'w> Node<'w> {
    fn completed<'a>(&'a self, value: Val) -> ResolvedValue<'a>
    where
        'w: 'a,
    {
        match value {
            Val::Leaf(Value::Array(all)) => {
                let items: Vec<ResolvedValue<'a>> = all.into_iter().map(|one| self.completed(Val::Leaf(one))).collect();
                ResolvedValue::list(items)
            }
            Val::Leaf(value) => ResolvedValue::Leaf(JsonValue::from(value)),
            Val::Node(kind) => ResolvedValue::object(Node { context: self.context, kind }),
            Val::List(list) => {
                let items: Vec<ResolvedValue<'a>> = list.into_iter().map(|one| self.completed(one)).collect();
                ResolvedValue::list(items)
            }
        }
    }

    fn resolve(&self, name: &str, arguments: &Arguments) -> Option<Resolved> {
        let board = self.context.view.borrow().clone();
        let eyes = Eyes { board: &board, viewer: &self.context.viewer };
        match &self.kind {
            Kind::Query => query(&eyes, name, arguments),
            Kind::Mutation => mutation::perform(self.context, name, arguments),
            Kind::Issue(id) => self.issue(&eyes, board.issues.get(id)?, name, arguments),
            Kind::Comment(issue, comment) => comment_field(&eyes, issue, comment, name),
            Kind::Happened(entry) => happened_field(entry, name),
            Kind::User(id) => user_field(&eyes, id, name, arguments),
            Kind::Team(id) => {
                let team = board.team(id);
                Some(match name {
                    "id" => leaf(team.id.as_str()),
                    "key" => leaf(team.key.as_str()),
                    "name" => leaf(format!("Team {}", team.key)),
                    "states" => {
                        let states = team.states.iter().map(|state| Kind::State(state.id.clone())).collect();
                        connect("WorkflowStateConnection", states, arguments)
                    }
                    _ => return None,
                })
            }
            Kind::State(id) => {
                let state = board.state(id);
                Some(match name {
                    "id" => leaf(state.id.as_str()),
                    "name" => leaf(state.name.as_str()),
                    "type" => leaf(state.kind),
                    "team" => Ok(Val::Node(Kind::Team(board.team_of_state(id).id.clone()))),
                    _ => return None,
                })
            }
            Kind::Project(id) => {
                let project = board.project(id);
                Some(match name {
                    "id" => leaf(project.id.as_str()),
                    "name" => leaf(project.name.as_str()),
                    "slugId" => leaf(project.slug.as_str()),
                    "teams" => connect("TeamConnection", vec![Kind::Team(project.team.clone())], arguments),
                    _ => return None,
                })
            }
            Kind::Label(id) => {
                let label = board.label(id);
                Some(match name {
                    "id" => leaf(label.id.as_str()),
                    "name" => leaf(label.name.as_str()),
                    "isGroup" => leaf(false),
                    "team" => maybe(label.team.clone().map(Kind::Team)),
                    _ => return None,
                })
            }
            Kind::Relation(id) => {
                let relation = board.relations.iter().find(|relation| relation.id == *id)?;
                Some(match name {
                    "id" => leaf(relation.id.as_str()),
                    "type" => leaf(relation.kind.as_str()),
                    "issue" => Ok(Val::Node(Kind::Issue(relation.issue.clone()))),
                    "relatedIssue" => Ok(Val::Node(Kind::Issue(relation.related.clone()))),
                    _ => return None,
                })
            }
            Kind::Plain(_, fields) => fields.iter().find(|(key, _)| *key == name).map(|(_, value)| Ok(value.clone())),
            Kind::Connection(_, nodes, info) => Some(match name {
                "nodes" => Ok(Val::List(nodes.iter().cloned().map(Val::Node).collect())),
                "pageInfo" => {
                    let keys = ["hasNextPage", "hasPreviousPage", "startCursor", "endCursor"];
                    let fields = keys.map(|key| (key, Val::Leaf(info[key].clone()))).to_vec();
                    Ok(Val::Node(Kind::Plain("PageInfo", fields)))
                }
                _ => return None,
            }),
        }
    }

    fn issue(&self, eyes: &Eyes, issue: &Arc<Issue>, name: &str, arguments: &Arguments) -> Option<Resolved> {
        let board = eyes.board;
        let team = board.team(&issue.team);
        let (user, bot, outsider) = actor(&issue.by);
        Some(match name {
            "id" => leaf(issue.id.as_str()),
            "identifier" => leaf(format!("{}-{}", team.key, issue.number)),
            "title" => leaf(issue.title.as_str()),
            "description" => leaf(issue.description.clone()),
            "priority" => leaf(issue.priority as f64),
            "branchName" => leaf(format!("ada/{}-{}", team.key.to_lowercase(), issue.number)),
            "url" => leaf(format!("https://linear.invalid/acme/issue/{}-{}", team.key, issue.number)),
            "createdAt" => leaf(shown(issue.created_at)),
            "updatedAt" => leaf(shown(issue.updated_at)),
            "archivedAt" => leaf(issue.archived_at.map(shown)),
            "trashed" => leaf(issue.trashed.then_some(true)),
            "labelIds" => leaf(issue.labels.clone()),
            "state" => Ok(Val::Node(Kind::State(issue.state.clone()))),
            "team" => Ok(Val::Node(Kind::Team(issue.team.clone()))),
            "project" => maybe(issue.project.clone().map(Kind::Project)),
            "assignee" => maybe(issue.assignee.clone().map(Kind::User)),
            "delegate" => maybe(issue.delegate.clone().map(Kind::User)),
            "parent" => maybe(issue.parent.clone().map(Kind::Issue)),
            "creator" => maybe(user),
            "botActor" => maybe(bot),
            "externalUserCreator" => maybe(outsider),
            "labels" => {
                connect("IssueLabelConnection", issue.labels.iter().cloned().map(Kind::Label).collect(), arguments)
            }
            "inverseRelations" => {
                let to_it = board.relations.iter().filter(|relation| relation.related == issue.id);
                let visible = to_it.filter(|relation| board.issue(&relation.issue).is_some());
                let all = visible.map(|relation| Kind::Relation(relation.id.clone())).collect();
                connect("IssueRelationConnection", all, arguments)
            }
            "comments" => connect("CommentConnection", comments_of(eyes, issue, arguments), arguments),
            "history" => {
                let mut all: Vec<Kind> =
                    issue.history.iter().map(|entry| Kind::Happened(Box::new(entry.clone()))).collect();
                if !self.context.oldest_history_first {
                    all.reverse();
                }
                connect("IssueHistoryConnection", all, arguments)
            }
            _ => return None,
        })
    }
}

fn query(eyes: &Eyes, name: &str, arguments: &Arguments) -> Option<Resolved> {
    let board = eyes.board;
    let nothing = Value::Null;
    let filter = arguments.get("filter").unwrap_or(&nothing);
    Some(match name {
        "issue" => {
            let id = arguments.get("id").and_then(Value::as_str).unwrap_or_default();
            let is_it = |issue: &&Arc<Issue>| {
                let team = board.team(&issue.team);
                issue.id == id || format!("{}-{}", team.key, issue.number).eq_ignore_ascii_case(id)
            };
            match board.issues.values().filter(|issue| !issue.hidden).find(is_it) {
                Some(issue) => Ok(Val::Node(Kind::Issue(issue.id.clone()))),
                None => Err(("INPUT_ERROR", "Entity not found: Issue".to_owned())),
            }
        }
        "viewer" => Ok(Val::Node(Kind::User(eyes.viewer.to_owned()))),
        "issues" => {
            let archived = arguments.get("includeArchived") == Some(&Value::Bool(true));
            let visible = board.issues.values().filter(|issue| !issue.hidden);
            let kept = visible.filter(|issue| archived || issue.archived_at.is_none());
            let mut found: Vec<&Arc<Issue>> = kept.filter(|issue| eyes.issue(issue, filter)).collect();
            let by_change = arguments.get("orderBy").and_then(Value::as_str) == Some("updatedAt");
            // Newest first.
            found.sort_by_key(|issue| std::cmp::Reverse(if by_change { issue.updated_at } else { issue.created_at }));
            connect(
                "IssueConnection",
                found.into_iter().map(|issue| Kind::Issue(issue.id.clone())).collect(),
                arguments,
            )
        }
        "comments" => {
            let visible = board.issues.values().filter(|issue| !issue.hidden && issue.archived_at.is_none());
            let mut all: Vec<Kind> = visible.flat_map(|issue| comments_of(eyes, issue, arguments)).collect();
            all.reverse();
            connect("CommentConnection", all, arguments)
        }
        "users" => {
            let disabled = arguments.get("includeDisabled") == Some(&Value::Bool(true));
            let there = board.users.iter().filter(|user| disabled || user.role != Role::Left);
            let all = there.filter(|user| eyes.user(Some(user), filter)).map(|user| Kind::User(user.id.clone()));
            connect("UserConnection", all.collect(), arguments)
        }
        "teams" => {
            let all = board.teams.iter().filter(|team| eyes.team(team, filter)).map(|team| Kind::Team(team.id.clone()));
            connect("TeamConnection", all.collect(), arguments)
        }
        "projects" => {
            let all = board.projects.iter().filter(|project| eyes.project(Some(project), filter));
            connect("ProjectConnection", all.map(|project| Kind::Project(project.id.clone())).collect(), arguments)
        }
        "issueLabels" => {
            let all = board.labels.iter().filter(|label| eyes.label(label, filter));
            connect("IssueLabelConnection", all.map(|label| Kind::Label(label.id.clone())).collect(), arguments)
        }
        _ => return None,
    })
}

/// Newest first.
fn comments_of(eyes: &Eyes, issue: &Issue, arguments: &Arguments) -> Vec<Kind> {
    let nothing = Value::Null;
    let filter = arguments.get("filter").unwrap_or(&nothing);
    let kept = issue.comments.iter().rev().filter(|comment| eyes.comment(issue, comment, filter));
    kept.map(|comment| Kind::Comment(issue.id.clone(), Box::new(comment.clone()))).collect()
}

fn comment_field(eyes: &Eyes, issue: &Id, comment: &Comment, name: &str) -> Option<Resolved> {
    let (user, bot, outsider) = actor(&comment.by);
    Some(match name {
        "id" => leaf(comment.id.as_str()),
        "body" => leaf(comment.body.as_str()),
        "createdAt" => leaf(shown(comment.created_at)),
        "updatedAt" => leaf(shown(comment.updated_at)),
        "issueId" => leaf(issue.as_str()),
        "issue" => maybe(eyes.board.issue(issue).map(|issue| Kind::Issue(issue.id.clone()))),
        "user" => maybe(user),
        "botActor" => maybe(bot),
        "externalUser" => maybe(outsider),
        "reactions" => Ok(Val::List(comment.reactions.iter().map(reaction).map(Val::Node).collect())),
        _ => return None,
    })
}

pub fn reaction((id, emoji, user): &(Id, String, Id)) -> Kind {
    let fields = vec![
        ("id", Val::Leaf(json!(id))),
        ("emoji", Val::Leaf(json!(emoji))),
        ("user", Val::Node(Kind::User(user.clone()))),
    ];
    Kind::Plain("Reaction", fields)
}

fn happened_field(entry: &Happened, name: &str) -> Option<Resolved> {
    let (user, bot, _) = actor(&entry.by);
    let actor_id = match &entry.by {
        Actor::User(id) => Some(id.clone()),
        _ => None,
    };
    Some(match name {
        "id" => leaf(entry.id.as_str()),
        "createdAt" => leaf(shown(entry.at)),
        "actorId" => leaf(actor_id),
        "actor" => maybe(user),
        "botActor" => maybe(bot),
        "fromStateId" => leaf(entry.states.as_ref().map(|(from, _)| from.clone())),
        "toStateId" => leaf(entry.states.as_ref().map(|(_, to)| to.clone())),
        "addedLabelIds" => leaf((!entry.added_labels.is_empty()).then(|| entry.added_labels.clone())),
        _ => return None,
    })
}

fn user_field(eyes: &Eyes, id: &Id, name: &str, arguments: &Arguments) -> Option<Resolved> {
    let user = eyes.board.user(id)?;
    Some(match name {
        "id" => leaf(user.id.as_str()),
        "name" | "displayName" => leaf(user.name.as_str()),
        "email" => leaf(email(user)),
        "active" => leaf(user.role != Role::Left),
        "admin" => leaf(user.role == Role::Admin),
        "app" => leaf(user.role == Role::App),
        "guest" => leaf(user.role == Role::Guest),
        "isMe" => leaf(user.id == eyes.viewer),
        "teams" => {
            let nothing = Value::Null;
            let filter = arguments.get("filter").unwrap_or(&nothing);
            let teams = eyes.board.teams.iter().filter(|team| is_in_a_team(user) && eyes.team(team, filter));
            connect("TeamConnection", teams.map(|team| Kind::Team(team.id.clone())).collect(), arguments)
        }
        _ => return None,
    })
}

/// The user, the integration or the outsider: one of them, or none for a rule of Linear's own.
fn actor(by: &Actor) -> (Option<Kind>, Option<Kind>, Option<Kind>) {
    match by {
        Actor::User(id) => (Some(Kind::User(id.clone())), None, None),
        Actor::Bot(name) => {
            let fields = vec![("name", Val::Leaf(json!(name))), ("type", Val::Leaf(json!("integration")))];
            (None, Some(Kind::Plain("ActorBot", fields)), None)
        }
        Actor::Outsider(name) => {
            let fields = vec![("name", Val::Leaf(json!(name))), ("displayName", Val::Leaf(json!(name)))];
            (None, None, Some(Kind::Plain("ExternalUser", fields)))
        }
        Actor::Rule => (None, None, None),
    }
}

/// A page. Linear takes at most 250 at once.
fn connect(type_name: &'static str, all: Vec<Kind>, arguments: &Arguments) -> Resolved {
    let size = arguments.get("first").and_then(Value::as_u64).unwrap_or(50);
    if !(1..=250).contains(&size) {
        return Err(("INPUT_ERROR", "first must be between 1 and 250".to_owned()));
    }
    let place = |text: &str| text.strip_prefix("cursor:").and_then(|place| place.parse::<usize>().ok());
    let first = match arguments.get("after").and_then(Value::as_str).map(place) {
        Some(Some(after)) => (after + 1).min(all.len()),
        Some(None) => return Err(("INPUT_ERROR", "after is not a cursor".to_owned())),
        None => 0,
    };
    let end = (first + usize::try_from(size).unwrap()).min(all.len());
    let cursor = |at: usize| json!(format!("cursor:{at}"));
    let info = json!({
        "hasNextPage": end < all.len(),
        "hasPreviousPage": first > 0,
        "startCursor": if first == end { Value::Null } else { cursor(first) },
        "endCursor": if first == end { Value::Null } else { cursor(end - 1) },
    });
    Ok(Val::Node(Kind::Connection(type_name, all[first..end].to_vec(), info)))
}

pub fn shown(at: Timestamp) -> String {
    format!("{at:.3}")
}
