//! Mutations.

use serde_json::{Value, json};

use crate::github::deeds;
use crate::github::deeds::landing::{Refused, Request};
use crate::github::rest::render;
use crate::github::state::git::Method;
use crate::github::state::pull::AutoMerge;
use crate::github::state::{Happened, Permission, World};

use super::Context;
use super::lookup;
use super::node::{Arguments, Kind, Resolved, Val};

type Fields = Vec<(&'static str, Val)>;

/// A mutation's fields, or GitHub's error.
type Done = Result<Fields, String>;

pub fn root(context: &Context, name: &str, arguments: &Arguments) -> Option<Resolved> {
    let input = arguments.get("input").cloned().unwrap_or_default();
    let mut world = context.world.borrow_mut();
    let act = Act { world: &mut world, login: &context.login, input: &input };
    let (payload, done) = match name {
        "addComment" => ("AddCommentPayload", act.add_comment()),
        "addLabelsToLabelable" => ("AddLabelsToLabelablePayload", act.change_labels(true)),
        "removeLabelsFromLabelable" => ("RemoveLabelsFromLabelablePayload", act.change_labels(false)),
        "addReaction" => ("AddReactionPayload", act.add_reaction()),
        "minimizeComment" => ("MinimizeCommentPayload", act.minimize()),
        "addPullRequestReview" => ("AddPullRequestReviewPayload", act.add_review()),
        "addPullRequestReviewThreadReply" => ("AddPullRequestReviewThreadReplyPayload", act.reply()),
        "resolveReviewThread" => ("ResolveReviewThreadPayload", act.resolve(true)),
        "unresolveReviewThread" => ("UnresolveReviewThreadPayload", act.resolve(false)),
        "requestReviews" => ("RequestReviewsPayload", act.request_reviews()),
        "markPullRequestReadyForReview" => ("MarkPullRequestReadyForReviewPayload", act.set_draft(false)),
        "convertPullRequestToDraft" => ("ConvertPullRequestToDraftPayload", act.set_draft(true)),
        "enablePullRequestAutoMerge" => ("EnablePullRequestAutoMergePayload", act.auto_merge(true)),
        "disablePullRequestAutoMerge" => ("DisablePullRequestAutoMergePayload", act.auto_merge(false)),
        "mergePullRequest" => ("MergePullRequestPayload", act.merge()),
        "updatePullRequestBranch" => ("UpdatePullRequestBranchPayload", act.update_branch()),
        "enqueuePullRequest" => ("EnqueuePullRequestPayload", act.enqueue()),
        "dequeuePullRequest" => ("DequeuePullRequestPayload", act.dequeue()),
        "addProjectV2ItemById" => ("AddProjectV2ItemByIdPayload", act.add_item()),
        "updateProjectV2ItemFieldValue" => ("UpdateProjectV2ItemFieldValuePayload", act.move_item()),
        _ => return None,
    };
    Some(done.map(|mut fields| {
        fields.push(("clientMutationId", Val::Leaf(input["clientMutationId"].clone())));
        Val::Node(Kind::Payload(payload, fields))
    }))
}

struct Act<'a> {
    world: &'a mut World,
    login: &'a str,
    input: &'a Value,
}

fn unprocessable(refused: Refused) -> String {
    format!("UNPROCESSABLE: {}", refused.words)
}

impl<'a> Act<'a> {
    fn text(&self, name: &str) -> &'a str {
        self.input[name].as_str().unwrap_or_default()
    }

    fn find(&self, name: &str) -> Result<Kind, String> {
        let id = self.text(name);
        let missing = || format!("NOT_FOUND: Could not resolve to a node with the global id of '{id}'");
        lookup::find(self.world, id).ok_or_else(missing)
    }

    fn need(&self, home: usize, permission: Permission) -> Result<(), String> {
        if self.world.repo(home).permission(self.login) >= permission {
            return Ok(());
        }
        Err(format!("FORBIDDEN: {} does not have the correct permissions to execute this mutation", self.login))
    }

    /// The pull request of an id, which the caller may change.
    fn pull(&self, name: &str) -> Result<(usize, u64), String> {
        match self.find(name)? {
            Kind::Pull(home, number) => self.need(home, Permission::Write).map(|()| (home, number)),
            _ => Err(format!(
                "NOT_FOUND: Could not resolve to PullRequest node with the global id of '{}'",
                self.text(name)
            )),
        }
    }

    /// The issue or the pull request of an id.
    fn subject(&self, name: &str) -> Result<(usize, u64), String> {
        match self.find(name)? {
            Kind::Pull(home, number) | Kind::Issue(home, number) => Ok((home, number)),
            _ => Err(format!("NOT_FOUND: '{}' is not an issue or a pull request", self.text(name))),
        }
    }

    fn add_comment(self) -> Done {
        let (home, number) = self.subject("subjectId")?;
        let id = deeds::issues::comment(self.world, home, number, self.login, self.text("body"));
        let edge =
            Kind::Edge("IssueCommentEdge".to_owned(), Box::new(Kind::Comment(home, number, id)), "cursor:0".to_owned());
        Ok(vec![("commentEdge", Val::Node(edge)), ("subject", Val::Node(self.find("subjectId")?))])
    }

    fn change_labels(self, add: bool) -> Done {
        let (home, number) = self.subject("labelableId")?;
        self.need(home, Permission::Triage)?;
        for id in self.input["labelIds"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            let Some(Kind::Label(_, name)) = lookup::find(self.world, id) else {
                return Err(format!("NOT_FOUND: Could not resolve to Label node with the global id of '{id}'."));
            };
            if add {
                deeds::issues::label(self.world, home, number, self.login, &name);
            } else {
                deeds::issues::unlabel(self.world, home, number, self.login, &name);
            }
        }
        Ok(vec![("labelable", Val::Node(self.find("labelableId")?))])
    }

    fn add_reaction(self) -> Done {
        let content = match self.text("content") {
            "THUMBS_UP" => "+1".to_owned(),
            "THUMBS_DOWN" => "-1".to_owned(),
            other => other.to_lowercase(),
        };
        let subject = self.find("subjectId")?;
        let mut list = match &subject {
            Kind::Issue(home, number) | Kind::Pull(home, number) => {
                self.world.repo(*home).issue(*number).unwrap().reactions.clone()
            }
            Kind::Comment(home, number, id) => {
                self.world.repo(*home).issue(*number).unwrap().comment(*id).unwrap().reactions.clone()
            }
            _ => return Err("UNPROCESSABLE: tests/github takes reactions to issues and comments here".to_owned()),
        };
        let (reaction, _) = deeds::issues::react(self.world, self.login, &content, &mut list);
        match &subject {
            Kind::Issue(home, number) | Kind::Pull(home, number) => {
                self.world.repo_mut(*home).issue_mut(*number).reactions = list;
            }
            Kind::Comment(home, number, id) => {
                self.world.repo_mut(*home).issue_mut(*number).comment_mut(*id).unwrap().reactions = list;
            }
            _ => {}
        }
        let shown = json!({
            "id": format!("REA_{}", reaction.id), "content": self.text("content"),
            "createdAt": render::time(reaction.created_at), "databaseId": i32::try_from(reaction.id).ok(),
        });
        Ok(vec![("reaction", Val::Node(Kind::Reaction(shown))), ("subject", Val::Node(subject))])
    }

    fn minimize(self) -> Done {
        let subject = self.find("subjectId")?;
        let Kind::Comment(home, number, id) = subject else {
            return Err("UNPROCESSABLE: tests/github hides comments on issues only".to_owned());
        };
        self.need(home, Permission::Write)?;
        let reason = self.text("classifier").to_lowercase();
        self.world.repo_mut(home).issue_mut(number).comment_mut(id).unwrap().minimized = Some(reason);
        Ok(vec![("minimizedComment", Val::Node(Kind::Comment(home, number, id)))])
    }

    fn add_review(self) -> Done {
        let Kind::Pull(home, number) = self.find("pullRequestId")? else {
            return Err("NOT_FOUND: Could not resolve to PullRequest node".to_owned());
        };
        let state = match self.text("event") {
            "APPROVE" => "APPROVED",
            "REQUEST_CHANGES" => "CHANGES_REQUESTED",
            "COMMENT" => "COMMENTED",
            _ => "PENDING",
        };
        let own = self.world.repo(home).issue(number).is_some_and(|one| one.author.as_deref() == Some(self.login));
        if own && matches!(state, "APPROVED" | "CHANGES_REQUESTED") {
            return Err("UNPROCESSABLE: Can not approve your own pull request".to_owned());
        }
        let id = deeds::reviews::submit(self.world, home, number, self.login, state, self.text("body"), &[]);
        Ok(vec![("pullRequestReview", Val::Node(Kind::Review(home, number, id)))])
    }

    fn thread(&self, name: &str) -> Result<(usize, u64, u64), String> {
        match self.find(name)? {
            Kind::Thread(home, number, id) => Ok((home, number, id)),
            _ => Err("NOT_FOUND: Could not resolve to PullRequestReviewThread node".to_owned()),
        }
    }

    fn reply(self) -> Done {
        let (home, number, thread) = self.thread("pullRequestReviewThreadId")?;
        let id = deeds::reviews::reply(self.world, home, number, thread, self.login, self.text("body"));
        Ok(vec![("comment", Val::Node(Kind::ReviewComment(home, number, id)))])
    }

    fn resolve(self, resolved: bool) -> Done {
        let (home, number, thread) = self.thread("threadId")?;
        self.need(home, Permission::Write)?;
        deeds::reviews::resolve(self.world, home, number, thread, resolved.then_some(self.login));
        Ok(vec![("thread", Val::Node(Kind::Thread(home, number, thread)))])
    }

    fn request_reviews(self) -> Done {
        let (home, number) = self.pull("pullRequestId")?;
        for id in self.input["userIds"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            let Some(Kind::Account(login)) = lookup::find(self.world, id) else {
                return Err(format!("NOT_FOUND: Could not resolve to User node with the global id of '{id}'."));
            };
            self.world.repo_mut(home).pull_mut(number).reviewers.push(login.clone());
            deeds::issues::note(self.world, home, number, self.login, Happened::ReviewRequested(login));
        }
        deeds::issues::touch(self.world, home, number);
        Ok(vec![("pullRequest", Val::Node(Kind::Pull(home, number)))])
    }

    fn set_draft(self, draft: bool) -> Done {
        let (home, number) = self.pull("pullRequestId")?;
        let pull = self.world.repo_mut(home).pull_mut(number);
        if pull.draft != draft {
            pull.draft = draft;
            let name = if draft { "convert_to_draft" } else { "ready_for_review" }.to_owned();
            deeds::issues::note(self.world, home, number, self.login, Happened::Plain { name, commit: None });
            deeds::issues::touch(self.world, home, number);
        }
        Ok(vec![("pullRequest", Val::Node(Kind::Pull(home, number)))])
    }

    fn auto_merge(self, on: bool) -> Done {
        let (home, number) = self.pull("pullRequestId")?;
        let repo = self.world.repo(home);
        if on && !repo.settings.auto_merge {
            return Err("UNPROCESSABLE: Auto merge is not allowed for this repository".to_owned());
        }
        // GitHub has nothing to wait for, so it says that one should merge.
        if on && deeds::pulls::obstacles(self.world, home, number).is_empty() {
            return Err("UNPROCESSABLE: Pull request is in clean status".to_owned());
        }
        let method = self.input["mergeMethod"].as_str().unwrap_or("MERGE").to_owned();
        let auto = AutoMerge { by: self.login.to_owned(), method, at: self.world.now() };
        self.world.repo_mut(home).pull_mut(number).auto_merge = on.then_some(auto);
        Ok(vec![
            ("actor", Val::Node(Kind::Account(self.login.to_owned()))),
            ("pullRequest", Val::Node(Kind::Pull(home, number))),
        ])
    }

    fn merge(self) -> Done {
        let (home, number) = self.pull("pullRequestId")?;
        let method = match self.text("mergeMethod") {
            "SQUASH" => Method::Squash,
            "REBASE" => Method::Rebase,
            _ => Method::Merge,
        };
        let request = Request {
            method,
            head: self.input["expectedHeadOid"].as_str(),
            title: self.input["commitHeadline"].as_str(),
            message: self.input["commitBody"].as_str(),
            by_queue: false,
        };
        deeds::landing::merge(self.world, home, number, self.login, &request).map_err(unprocessable)?;
        Ok(vec![
            ("actor", Val::Node(Kind::Account(self.login.to_owned()))),
            ("pullRequest", Val::Node(Kind::Pull(home, number))),
        ])
    }

    fn update_branch(self) -> Done {
        let (home, number) = self.pull("pullRequestId")?;
        let expected = self.input["expectedHeadOid"].as_str();
        deeds::landing::update_branch(self.world, home, number, self.login, expected).map_err(unprocessable)?;
        Ok(vec![("pullRequest", Val::Node(Kind::Pull(home, number)))])
    }

    fn enqueue(self) -> Done {
        let (home, number) = self.pull("pullRequestId")?;
        let expected = self.input["expectedHeadOid"].as_str();
        deeds::landing::enqueue(self.world, home, number, self.login, expected).map_err(unprocessable)?;
        Ok(vec![("mergeQueueEntry", Val::Node(Kind::QueueEntry(home, number)))])
    }

    fn dequeue(self) -> Done {
        // GitHub takes the id of the pull request here.
        let (home, number) = self.pull("id")?;
        if self.world.repo(home).pull(number).unwrap().queued.is_none() {
            return Err("UNPROCESSABLE: Pull request is not in the merge queue".to_owned());
        }
        deeds::landing::dequeue(self.world, home, number, self.login);
        Ok(vec![("mergeQueueEntry", Val::Leaf(Value::Null))])
    }

    fn add_item(self) -> Done {
        let Kind::Project(project) = self.find("projectId")? else {
            return Err("NOT_FOUND: Could not resolve to ProjectV2 node".to_owned());
        };
        let (home, number) = self.subject("contentId")?;
        let id = deeds::projects::add(self.world, project, home, number);
        Ok(vec![("item", Val::Node(Kind::ProjectItem(project, id)))])
    }

    fn move_item(self) -> Done {
        let (Kind::Project(project), Kind::ProjectItem(of, item), Kind::ProjectField(field)) =
            (self.find("projectId")?, self.find("itemId")?, self.find("fieldId")?)
        else {
            return Err("NOT_FOUND: Could not resolve to a node of that kind".to_owned());
        };
        if of != project || field != project {
            return Err("UNPROCESSABLE: The item does not exist in the project".to_owned());
        }
        let option = self.input["value"]["singleSelectOptionId"].as_str().unwrap_or_default();
        if self.world.projects[project].option_name(option).is_none() {
            return Err("VALIDATION: The single select option Id does not belong to the field".to_owned());
        }
        deeds::projects::move_to(self.world, project, item, Some(option), self.login);
        Ok(vec![("projectV2Item", Val::Node(Kind::ProjectItem(project, item)))])
    }
}
