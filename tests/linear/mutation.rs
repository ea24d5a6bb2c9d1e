//! What mutations do to the board.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::board::{Actor, Board, Comment, Happened, Id, Issue, Label, Relation};
use super::resolve::{Arguments, Context, Kind, Resolved, Val, reaction};
use super::world::World;

type Refusal = (&'static str, String);

pub fn perform(context: &Context, name: &str, arguments: &Arguments) -> Option<Resolved> {
    let mut world = context.world.borrow_mut();
    let input = arguments.get("input").cloned().unwrap_or_default();
    let id = arguments.get("id").and_then(Value::as_str).unwrap_or_default();
    let by = Actor::User(context.viewer.clone());
    let done = match name {
        "commentCreate" => create_comment(&mut world, &by, &input),
        "commentUpdate" => update_comment(&mut world, id, &input),
        "issueUpdate" => update_issue(&mut world, &by, id, &input),
        "issueCreate" => create_issue(&mut world, by, &input),
        "issueLabelCreate" => create_label(&mut world, &input),
        "issueRelationCreate" => create_relation(&mut world, &input),
        "fileUpload" => upload(&mut world, arguments),
        "attachmentCreate" => attach(&mut world, &input),
        "reactionCreate" => react(&mut world, &context.viewer, &input),
        _ => return None,
    };
    *context.view.borrow_mut() = world.board.clone();
    Some(done.map(|(payload, field, kind)| {
        let fields = vec![
            ("success", Val::Leaf(json!(true))),
            ("lastSyncId", Val::Leaf(json!(world.journal.len()))),
            (field, Val::Node(kind)),
        ];
        Val::Node(Kind::Plain(payload, fields))
    }))
}

type Done = Result<(&'static str, &'static str, Kind), Refusal>;

fn missing(what: &str) -> Refusal {
    ("INPUT_ERROR", format!("Entity not found: {what}"))
}

fn text(input: &Value, key: &str) -> Option<String> {
    input[key].as_str().map(str::to_owned)
}

fn ids(input: &Value, key: &str) -> Vec<Id> {
    input[key].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// The client's id, or one of ours. One that was used before is refused, whatever became of it.
fn new_id(world: &mut World, input: &Value) -> Result<Id, Refusal> {
    let Some(id) = text(input, "id") else { return Ok(world.next_id()) };
    if id.len() != 36 || id.as_bytes()[14] != b'4' {
        return Err(("INPUT_ERROR", "Argument Validation Error: id must be a UUID v4".to_owned()));
    }
    match world.board.is_used(&id) {
        true => Err(("INPUT_ERROR", format!("Entity already exists: {id}"))),
        false => {
            world.change(|board| board.used.push(id.clone()));
            Ok(id)
        }
    }
}

fn live_issue(board: &Board, id: &str) -> Result<Arc<Issue>, Refusal> {
    board.issue(id).filter(|issue| !issue.trashed).cloned().ok_or_else(|| missing("Issue"))
}

fn create_comment(world: &mut World, by: &Actor, input: &Value) -> Done {
    let issue = live_issue(&world.board, &text(input, "issueId").unwrap_or_default())?;
    let id = new_id(world, input)?;
    let comment = comment(world, &issue.id, &id, by, &text(input, "body").unwrap_or_default());
    Ok(("CommentPayload", "comment", Kind::Comment(issue.id.clone(), Box::new(comment))))
}

/// What Linear keeps of a text. Its editor knows no hidden lines, and no blanks where nobody sees them.
pub fn kept(text: &str) -> String {
    let mut seen = String::new();
    let mut rest = text;
    while let Some((before, hidden)) = rest.split_once("<!--") {
        seen.push_str(before);
        rest = hidden.split_once("-->").map_or("", |(_, behind)| behind);
    }
    seen.push_str(rest);
    let mut lines: Vec<&str> = seen.lines().map(str::trim_end).collect();
    lines.dedup_by(|next, last| next.is_empty() && last.is_empty());
    lines.join("\n").trim().to_owned()
}

/// A comment is written. Whether that moves the issue's own time is not documented: here it does not.
pub fn comment(world: &mut World, issue: &str, id: &str, by: &Actor, body: &str) -> Comment {
    let now = world.now();
    let (by, body) = (by.clone(), kept(body));
    let comment = Comment { id: id.to_owned(), by, body, created_at: now, updated_at: now, reactions: Vec::new() };
    world.change(|board| board.edit(issue, |issue| issue.comments.push(comment.clone())));
    comment
}

fn update_comment(world: &mut World, id: &str, input: &Value) -> Done {
    let (issue, known) = world.board.comment(id).ok_or_else(|| missing("Comment"))?;
    let (issue, known) = (issue.id.clone(), known.clone());
    let changed = match text(input, "body") {
        Some(body) if kept(&body) != known.body => reword(world, &issue, id, &body),
        _ => known,
    };
    Ok(("CommentPayload", "comment", Kind::Comment(issue, Box::new(changed))))
}

pub fn reword(world: &mut World, issue: &str, id: &str, body: &str) -> Comment {
    let now = world.now();
    world.change(|board| {
        board.edit(issue, |issue| {
            let comment = issue.comments.iter_mut().find(|comment| comment.id == id).unwrap();
            (comment.body, comment.updated_at) = (kept(body), now);
            comment.clone()
        })
    })
}

fn update_issue(world: &mut World, by: &Actor, id: &str, input: &Value) -> Done {
    let issue = live_issue(&world.board, id)?;
    if let Some(state) = text(input, "stateId") {
        if !world.board.team(&issue.team).states.iter().any(|known| known.id == state) {
            return Err(("INPUT_ERROR", "The state does not belong to the issue's team".to_owned()));
        }
        shift(world, id, by, &state);
    }
    let (added, removed) = (ids(input, "addedLabelIds"), ids(input, "removedLabelIds"));
    for label in added.iter().chain(&removed) {
        if !world.board.labels.iter().any(|known| known.id == *label) {
            return Err(missing("IssueLabel"));
        }
    }
    if !added.is_empty() || !removed.is_empty() {
        relabel(world, id, by, &added, &removed);
    }
    Ok(("IssuePayload", "issue", Kind::Issue(id.to_owned())))
}

pub fn shift(world: &mut World, id: &str, by: &Actor, state: &str) {
    let (now, line) = (world.now(), world.next_id());
    let state = state.to_owned();
    world.change(|board| {
        board.edit(id, |issue| {
            let from = std::mem::replace(&mut issue.state, state.clone());
            issue.updated_at = now;
            let states = Some((from, state));
            issue.history.push(Happened { id: line, at: now, by: by.clone(), states, added_labels: Vec::new() });
        });
    });
}

pub fn relabel(world: &mut World, id: &str, by: &Actor, added: &[Id], removed: &[Id]) {
    let (now, line) = (world.now(), world.next_id());
    world.change(|board| {
        board.edit(id, |issue| {
            issue.labels.retain(|label| !removed.contains(label));
            let new: Vec<Id> = added.iter().filter(|label| !issue.labels.contains(label)).cloned().collect();
            issue.labels.extend(new.clone());
            issue.updated_at = now;
            issue.history.push(Happened { id: line, at: now, by: by.clone(), states: None, added_labels: new });
        });
    });
}

fn create_issue(world: &mut World, by: Actor, input: &Value) -> Done {
    let team = text(input, "teamId").unwrap_or_default();
    let Some(known) = world.board.teams.iter().find(|known| known.id == team).cloned() else {
        return Err(missing("Team"));
    };
    let title = text(input, "title").filter(|title| !title.is_empty());
    let title = title.ok_or(("INPUT_ERROR", "title should not be empty".to_owned()))?;
    for label in ids(input, "labelIds") {
        let label = world.board.labels.iter().find(|one| one.id == label).ok_or_else(|| missing("IssueLabel"))?;
        if label.team.as_ref().is_some_and(|of| *of != team) {
            return Err(("INPUT_ERROR", "A label belongs to another team".to_owned()));
        }
    }
    let id = new_id(world, input)?;
    let draft = Draft {
        id: &id,
        team: &team,
        title: &title,
        state: &text(input, "stateId").unwrap_or_else(|| known.states[0].id.clone()),
        by,
    };
    draft.make(world);
    world.change(|board| {
        board.edit(&id, |issue| {
            issue.description = text(input, "description").map(|text| kept(&text));
            issue.priority = input["priority"].as_i64().unwrap_or(0);
            issue.labels = ids(input, "labelIds");
            issue.parent = text(input, "parentId");
            issue.project = text(input, "projectId");
        });
    });
    Ok(("IssuePayload", "issue", Kind::Issue(id)))
}

/// An issue that is about to be.
pub struct Draft<'a> {
    pub id: &'a str,
    pub team: &'a str,
    pub title: &'a str,
    pub state: &'a str,
    pub by: Actor,
}

impl Draft<'_> {
    pub fn make(self, world: &mut World) {
        let now: Timestamp = world.now();
        world.change(|board| {
            let team = board.teams.iter_mut().find(|team| team.id == self.team).unwrap();
            team.issues += 1;
            let issue = Issue {
                id: self.id.to_owned(),
                number: team.issues,
                team: self.team.to_owned(),
                project: None,
                title: self.title.to_owned(),
                description: None,
                priority: 0,
                state: self.state.to_owned(),
                labels: Vec::new(),
                by: self.by,
                assignee: None,
                delegate: None,
                parent: None,
                created_at: now,
                updated_at: now,
                archived_at: None,
                trashed: false,
                hidden: false,
                comments: Vec::new(),
                history: Vec::new(),
                attachments: Vec::new(),
            };
            board.issues.insert(self.id.to_owned(), Arc::new(issue));
        });
    }
}

fn create_label(world: &mut World, input: &Value) -> Done {
    let name = text(input, "name").unwrap_or_default();
    let team = text(input, "teamId");
    let same = |label: &Label| label.name.eq_ignore_ascii_case(&name) && label.team == team;
    if world.board.labels.iter().any(same) {
        return Err(("INPUT_ERROR", format!("Duplicate label name: {name}")));
    }
    let id = new_id(world, input)?;
    world.change(|board| board.labels.push(Label { id: id.clone(), name, team }));
    Ok(("IssueLabelPayload", "issueLabel", Kind::Label(id)))
}

fn create_relation(world: &mut World, input: &Value) -> Done {
    let issue = live_issue(&world.board, &text(input, "issueId").unwrap_or_default())?.id.clone();
    let related = live_issue(&world.board, &text(input, "relatedIssueId").unwrap_or_default())?.id.clone();
    let id = new_id(world, input)?;
    let kind = text(input, "type").unwrap_or_default();
    // Whether that moves the issue's own time is not documented: here it does not.
    world.change(|board| board.relations.push(Relation { id: id.clone(), kind, issue, related }));
    Ok(("IssueRelationPayload", "issueRelation", Kind::Relation(id)))
}

/// The same address again changes the title.
fn attach(world: &mut World, input: &Value) -> Done {
    let issue = live_issue(&world.board, &text(input, "issueId").unwrap_or_default())?.id.clone();
    let (url, title) = (text(input, "url").unwrap_or_default(), text(input, "title").unwrap_or_default());
    let known = world.board.issues[&issue].attachments.iter().any(|(_, known, _)| *known == url);
    let new = if known { world.next_id() } else { new_id(world, input)? };
    let id = world.change(|board| {
        board.edit(&issue, |issue| match issue.attachments.iter_mut().find(|(_, known, _)| *known == url) {
            Some((id, _, known)) => {
                known.clone_from(&title);
                id.clone()
            }
            None => {
                issue.attachments.push((new.clone(), url.clone(), title.clone()));
                new
            }
        })
    });
    let fields = vec![("id", Val::Leaf(json!(id))), ("url", Val::Leaf(json!(url))), ("title", Val::Leaf(json!(title)))];
    Ok(("AttachmentPayload", "attachment", Kind::Plain("Attachment", fields)))
}

fn upload(world: &mut World, arguments: &Arguments) -> Done {
    let id = world.next_id();
    let leaf = |value: Value| Val::Leaf(value);
    let fields = vec![
        ("assetUrl", leaf(json!(format!("https://uploads.linear.invalid/{id}")))),
        ("uploadUrl", leaf(json!(format!("https://storage.invalid/{id}?signature=x")))),
        ("contentType", leaf(arguments["contentType"].clone())),
        ("filename", leaf(arguments["filename"].clone())),
        ("size", leaf(arguments["size"].clone())),
        ("headers", Val::List(Vec::new())),
    ];
    Ok(("UploadPayload", "uploadFile", Kind::Plain("UploadFile", fields)))
}

fn react(world: &mut World, viewer: &str, input: &Value) -> Done {
    let comment = text(input, "commentId").unwrap_or_default();
    let issue = world.board.comment(&comment).ok_or_else(|| missing("Comment"))?.0.id.clone();
    let id = new_id(world, input)?;
    let new = (id, text(input, "emoji").unwrap_or_default(), viewer.to_owned());
    world.change(|board| {
        board.edit(&issue, |issue| {
            let known = issue.comments.iter_mut().find(|known| known.id == comment).unwrap();
            known.reactions.push(new.clone());
        });
    });
    Ok(("ReactionPayload", "reaction", reaction(&new)))
}
