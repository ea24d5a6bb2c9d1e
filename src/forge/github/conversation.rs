//! What the runner writes on a pull request: comments, replies, review requests. Each call first looks whether it was written already.

use http::Method;
use serde::Deserialize;
use serde_json::json;

use super::Inner;
use super::documents::{FIND_NODE, MORE_IN_THREAD, REACT, REPLY, RESOLVE, VIEWER};
use super::errors::about;
use super::wire::{GraphComment, Id, NodeId, PullComment, PullUser};
use crate::domain::comment::Acknowledgement;
use crate::domain::ids::{CommentId, PrNumber};
use crate::forge::markers::mark;
use crate::forge::{ForgeError, RemarkPresence};
use crate::github::{GithubError, Purpose};

/// GitHub's limit for a text. Longer texts are truncated, with a note about it.
const LONGEST_TEXT: usize = 65_536;

#[derive(Deserialize)]
struct Viewer {
    viewer: PullUser,
}

#[derive(Deserialize)]
struct Replied {
    #[serde(rename = "addPullRequestReviewThreadReply")]
    reply: Option<Reply>,
}

#[derive(Deserialize)]
struct Reply {
    comment: Option<Id>,
}

#[derive(Deserialize)]
struct Requested {
    #[serde(default)]
    users: Vec<PullUser>,
    #[serde(default)]
    teams: Vec<Team>,
}

#[derive(Deserialize)]
struct Team {
    slug: String,
}

#[derive(Deserialize)]
struct FoundNode {
    repository: Option<serde_json::Value>,
    nodes: Vec<Option<KnownNode>>,
}

#[derive(Deserialize)]
struct KnownNode {
    comments: Option<Count>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Count {
    total_count: u64,
}

impl Inner {
    /// Returns the login of the account that the runner writes as.
    pub(super) async fn viewer(&self) -> Result<&str, GithubError> {
        let login = self.viewer.get_or_try_init(|| async {
            let answer = self.github.query::<Viewer>(Purpose::Look, VIEWER, &json!({})).await?;
            let viewer = answer.data.map(|data| data.viewer.login);
            viewer.ok_or_else(|| GithubError::Unreadable("the answer does not say who we are".to_owned()))
        });
        login.await.map(String::as_str)
    }

    pub(super) async fn upsert_comment(
        &self,
        number: PrNumber,
        key: &str,
        body: &str,
    ) -> Result<CommentId, ForgeError> {
        let viewer = self.viewer().await?;
        let list = self.path(&format!("/issues/{}/comments?per_page=100", number.0));
        let comments: Vec<PullComment> = self.github.list(Purpose::Write, &list).await.map_err(about(number))?;
        let text = marked(body, key);
        let sign = mark(key);
        let ours = |comment: &&PullComment| {
            comment.body.as_deref().is_some_and(|body| body.contains(&sign))
                && comment.user.as_ref().is_some_and(|user| user.login == viewer)
        };
        let Some(known) = comments.iter().find(ours) else {
            let path = self.path(&format!("/issues/{}/comments", number.0));
            let made: NodeId =
                self.github.write(Purpose::Write, Method::POST, &path, Some(&json!({ "body": text }))).await?;
            return Ok(CommentId::new(made.node_id));
        };
        if known.body.as_deref() != Some(text.as_str()) {
            let path = self.path(&format!("/issues/comments/{}", known.id));
            self.github.write_blindly(Purpose::Write, Method::PATCH, &path, Some(&json!({ "body": text }))).await?;
        }
        Ok(CommentId::new(known.node_id.clone()))
    }

    pub(super) async fn reply_in_thread(
        &self,
        thread: &CommentId,
        key: &str,
        body: &str,
    ) -> Result<CommentId, ForgeError> {
        let viewer = self.viewer().await?.to_owned();
        let sign = mark(key);
        let said = self.whole_thread(thread.as_str()).await.map_err(|error| no_conversation(thread, error))?;
        let ours = |comment: &&GraphComment| {
            comment.body.contains(&sign)
                && comment.author.as_ref().is_some_and(|author| self.is_viewer(author, &viewer))
        };
        if let Some(known) = said.iter().find(ours) {
            return Ok(CommentId::new(known.id.clone()));
        }
        let variables = json!({ "thread": thread.as_str(), "body": marked(body, key) });
        let replied: Replied = self
            .github
            .mutate(Purpose::Write, REPLY, &variables)
            .await
            .map_err(|error| no_conversation(thread, error))?;
        let comment = replied.reply.and_then(|reply| reply.comment);
        comment
            .map(|comment| CommentId::new(comment.id))
            .ok_or_else(|| ForgeError::MaybeDone("the answer in the conversation has no id".to_owned()))
    }

    async fn whole_thread(&self, thread: &str) -> Result<Vec<GraphComment>, GithubError> {
        let first = self.page::<GraphComment>(Purpose::Write, MORE_IN_THREAD, thread, None).await?;
        let first = first.ok_or_else(|| GithubError::NotFound("there is no such conversation".to_owned()))?;
        self.whole(Purpose::Write, Some(first), thread, MORE_IN_THREAD).await
    }

    pub(super) async fn resolve_thread(&self, thread: &CommentId) -> Result<(), ForgeError> {
        let variables = json!({ "thread": thread.as_str() });
        let resolved = self.github.mutate::<serde_json::Value>(Purpose::Write, RESOLVE, &variables).await;
        resolved.map(|_| ()).map_err(|error| no_conversation(thread, error))
    }

    /// Adds a reaction. GitHub keeps one reaction of a kind per account, so repeating the call changes nothing.
    pub(super) async fn react(&self, comment: &CommentId, how: Acknowledgement) -> Result<(), ForgeError> {
        let content = match how {
            Acknowledgement::Seen => "EYES",
            Acknowledgement::Refused => "CONFUSED",
        };
        let variables = json!({ "subject": comment.as_str(), "content": content });
        match self.github.mutate::<serde_json::Value>(Purpose::Write, REACT, &variables).await {
            Err(GithubError::NotFound(_) | GithubError::Gone(_)) => {
                Err(ForgeError::Refused(format!("comment {comment} is not there to react to")))
            }
            answer => Ok(answer.map(|_| ())?),
        }
    }

    /// Requests reviews from those who are not requested yet: people by their login, teams as `org/team`.
    pub(super) async fn request_reviews(&self, number: PrNumber, reviewers: &[String]) -> Result<(), ForgeError> {
        let path = self.path(&format!("/pulls/{}/requested_reviewers", number.0));
        let known: Requested = self.github.get(Purpose::Write, &path).await.map_err(about(number))?;
        let asked = |reviewer: &&String| match reviewer.split_once('/') {
            Some((_, team)) => known.teams.iter().any(|known| known.slug.eq_ignore_ascii_case(team)),
            None => known.users.iter().any(|known| known.login.eq_ignore_ascii_case(reviewer)),
        };
        let wanted: Vec<&String> = reviewers.iter().filter(|reviewer| !asked(reviewer)).collect();
        if wanted.is_empty() {
            return Ok(());
        }
        let ask = async |wanted: &[&String]| {
            let teams: Vec<&str> =
                wanted.iter().filter_map(|name| name.split_once('/')).map(|(_, team)| team).collect();
            let people: Vec<&str> =
                wanted.iter().map(|name| name.as_str()).filter(|name| !name.contains('/')).collect();
            let body = json!({ "reviewers": people, "team_reviewers": teams });
            self.github.write_blindly(Purpose::Write, Method::POST, &path, Some(&body)).await
        };
        let refusal = match ask(&wanted).await {
            Err(GithubError::Refused(refusal)) if wanted.len() > 1 => refusal,
            answer => return Ok(answer?),
        };
        // One reviewer who may not review makes GitHub refuse all of them without saying who it is: request them one by one.
        let mut last = Err(GithubError::Refused(refusal));
        for one in wanted {
            match ask(&[one]).await {
                Ok(()) => last = Ok(()),
                Err(GithubError::Refused(refusal)) => {
                    tracing::warn!(%number, reviewer = one, %refusal, "GitHub does not ask them for a review");
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(last?)
    }

    pub(super) async fn find_remark(&self, number: PrNumber, id: &CommentId) -> Result<RemarkPresence, ForgeError> {
        let variables = json!({ "owner": self.owner(), "name": self.name(), "number": number.0, "ids": [id.as_str()] });
        let answer =
            self.github.query::<FoundNode>(Purpose::Look, FIND_NODE, &variables).await.map_err(about(number))?;
        let Some(found) = answer.data else { return Ok(RemarkPresence::NotVisible) };
        let visible = found.repository.as_ref().is_some_and(|repository| !repository["pull"].is_null());
        Ok(match found.nodes.into_iter().next().flatten() {
            Some(KnownNode { comments: Some(count) }) if count.total_count == 0 => RemarkPresence::Gone,
            Some(_) => RemarkPresence::There,
            // A missing remark is gone only if the pull request itself is visible to the account.
            None if visible => RemarkPresence::Gone,
            None => RemarkPresence::NotVisible,
        })
    }
}

fn no_conversation(thread: &CommentId, error: GithubError) -> ForgeError {
    match error {
        GithubError::NotFound(_) => ForgeError::Refused(format!("there is no conversation {thread} on GitHub")),
        error => error.into(),
    }
}

/// Returns `body` with its marker, truncated to the length that GitHub accepts.
fn marked(body: &str, key: &str) -> String {
    let sign = mark(key);
    format!("{}\n{sign}", cut(body, LONGEST_TEXT - sign.len() - 1))
}

/// Truncates `text` to `longest` bytes. GitHub counts characters, and there are never fewer bytes than characters.
pub fn cut(text: &str, longest: usize) -> String {
    const POINTER: &str =
        "\n\n*(The rest is too long for GitHub. `dirigent explain` and the run's own folder have it.)*";
    if text.len() <= longest {
        return text.to_owned();
    }
    let mut end = longest.saturating_sub(POINTER.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}{POINTER}", &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_and_says_so() {
        let text = marked(&"ä".repeat(60_000), "k");
        assert!(text.len() <= LONGEST_TEXT, "{}", text.len());
        assert!(text.contains("too long") && text.ends_with("<!-- dirigent:k -->"));
        assert_eq!(marked("short", "k"), "short\n<!-- dirigent:k -->");
    }
}
