//! Comments: reading, writing one per key, editing, looking up, reacting.

use std::time::Duration;

use super::LinearTracker;
use super::cursors::Cursors;
use super::documents::comments::{
    CommentFilter, CommentsCommentsNodes as Node, DateComparator, IDComparator, IssueFilter, IssueIDComparator,
    NullableIssueFilter, Variables,
};
use super::documents::{Comments, EditComment, React, WriteComment, edit_comment, react, write_comment};
use super::keys::own_id;
use super::marks::{self, hidden, shown};
use super::people::Mentioned;
use super::refusals::WriteFailure;
use super::scope::{is_uuid, time_of, time_text};
use super::ticket::oldest_first;
use crate::domain::comment::{Comment, has_command_line};
use crate::domain::ids::{CommentId, TicketId};
use crate::domain::time::Timestamp;
use crate::tracker::below::{is_end, renewed};
use crate::tracker::{Acknowledgement, CommentFound, Edited, TrackerError, Written};

/// How far Linear's clock may be behind the local one.
const SKEW: Duration = Duration::from_secs(300);
/// How often a comment is written again after the one with the same key was deleted.
const MOST_REPLACEMENTS: usize = 8;

impl LinearTracker {
    async fn comment_nodes(&self, id: &TicketId, filter: CommentFilter) -> Result<Vec<Node>, TrackerError> {
        self.look_at_comments(id, filter).await?.ok_or_else(|| TrackerError::NotFound(id.clone()))
    }

    /// Reads comments of one issue. `None` if the issue itself is not shown, which may be temporary. Deleted comments are not
    /// included.
    async fn look_at_comments(&self, id: &TicketId, filter: CommentFilter) -> Result<Option<Vec<Node>>, TrackerError> {
        if !is_uuid(id.as_str()) {
            return Err(TrackerError::NotFound(id.clone()));
        }
        let by_id = || IssueIDComparator { eq: Some(id.as_str().to_owned()), ..Default::default() };
        let issue = IssueFilter { id: Some(by_id()), ..Default::default() };
        let of_issue = NullableIssueFilter { id: Some(by_id()), ..Default::default() };
        let filter = CommentFilter { issue: Some(of_issue), ..filter };
        let (mut nodes, mut pages, mut after) = (Vec::new(), Cursors::default(), None::<String>);
        loop {
            let asked = Variables { issue: Some(issue.clone()), filter: Some(filter.clone()), after: after.clone() };
            let answer = self.client.ask::<Comments>(asked).await?.data;
            match answer.issues.nodes.first() {
                None => return Ok(None),
                Some(issue) if issue.trashed == Some(true) => return Err(TrackerError::NotFound(id.clone())),
                Some(_) => {}
            }
            nodes.extend(answer.comments.nodes.into_iter().map(|node| Node { body: hidden(&node.body), ..node }));
            let info = answer.comments.page_info;
            after = pages.after(info.has_next_page, info.end_cursor)?;
            if after.is_none() {
                return Ok(Some(nodes));
            }
        }
    }

    async fn comment_node(&self, id: &TicketId, comment: &CommentId) -> Result<Option<Node>, TrackerError> {
        if !is_uuid(comment.as_str()) {
            return Ok(None);
        }
        let by_id = IDComparator { eq: Some(comment.as_str().to_owned()), ..Default::default() };
        let nodes = self.look_at_comments(id, CommentFilter { id: Some(by_id), ..Default::default() }).await?;
        Ok(nodes.into_iter().flatten().next())
    }

    /// Returns the text of a comment of this issue. `None` if there is no comment with this id.
    pub(super) async fn comment_text(
        &self,
        id: &TicketId,
        comment: &CommentId,
    ) -> Result<Option<String>, TrackerError> {
        Ok(self.comment_node(id, comment).await?.map(|node| node.body))
    }

    pub(super) async fn read_comments(
        &self,
        id: &TicketId,
        since: Option<Timestamp>,
    ) -> Result<Vec<Comment>, TrackerError> {
        let since = since.map(|since| DateComparator { gte: Some(time_text(since)), ..Default::default() });
        let nodes = self.comment_nodes(id, CommentFilter { updated_at: since, ..Default::default() }).await?;
        let mut people = Mentioned::default();
        for (user, body) in nodes.iter().filter_map(|node| Some((node.user.as_ref()?, &node.body))) {
            let group = if has_command_line(body) { &mut people.approving } else { &mut people.named };
            group.insert(user.id.clone());
        }
        self.people.meet(&self.client, people).await?;
        let mut comments: Vec<Comment> = nodes.into_iter().map(|node| self.comment_of(node)).collect();
        oldest_first(&mut comments);
        Ok(comments)
    }

    fn comment_of(&self, node: Node) -> Comment {
        let bot = node.bot_actor.as_ref().map(|bot| bot.name.as_deref().unwrap_or("an integration"));
        let outsider = node.external_user.as_ref().map(|user| user.name.as_str());
        Comment {
            id: CommentId::new(node.id),
            author: self.people.author(node.user.as_ref().map(|user| user.id.as_str()), bot, outsider),
            created_at: time_of(&node.created_at),
            updated_at: time_of(&node.updated_at),
            body: node.body,
        }
    }

    pub(super) async fn look_for_comment(
        &self,
        id: &TicketId,
        comment: &CommentId,
    ) -> Result<CommentFound, TrackerError> {
        if !is_uuid(comment.as_str()) {
            return Ok(CommentFound::Gone);
        }
        let by_id = IDComparator { eq: Some(comment.as_str().to_owned()), ..Default::default() };
        let nodes = self.look_at_comments(id, CommentFilter { id: Some(by_id), ..Default::default() }).await?;
        Ok(match nodes.as_deref() {
            // While an issue is not shown, its comments are not shown either.
            None => CommentFound::NotVisible,
            Some([]) => CommentFound::Gone,
            Some(_) => CommentFound::There,
        })
    }

    /// Whether a comment with this id exists. Tested with an empty edit. `None` if Linear refuses the edit, which it does for reasons
    /// that say nothing about the comment, such as a key that may only read.
    async fn exists(&self, comment: &str) -> Result<Option<bool>, TrackerError> {
        let nothing =
            edit_comment::Variables { id: comment.to_owned(), input: edit_comment::CommentUpdateInput::default() };
        match self.client.tell::<EditComment>(nothing).await {
            Ok(_) => Ok(Some(true)),
            Err(WriteFailure::Refused(_)) => Ok(None),
            Err(WriteFailure::Missing(_)) => Ok(Some(false)),
            Err(WriteFailure::Other(error)) => Err(error),
        }
    }

    pub(super) async fn write_comment(
        &self,
        id: &TicketId,
        key: &str,
        body: &str,
        decided_at: Timestamp,
    ) -> Result<Written, TrackerError> {
        let marker = format!("{}{key} -->", marks::HIDDEN);
        let skew = i64::try_from(SKEW.as_millis()).unwrap_or(0);
        let made_since =
            DateComparator { gte: Some(time_text(Timestamp(decided_at.0.saturating_sub(skew)))), ..Default::default() };
        let recent =
            self.look_at_comments(id, CommentFilter { created_at: Some(made_since), ..Default::default() }).await?;
        if let Some(known) = recent.into_iter().flatten().find(|node| node.body.contains(&marker)) {
            return Ok(Written { id: CommentId::new(known.id), existed: true });
        }
        let text = shown(&format!("{}\n\n{marker}", body.replace('\0', "")));
        // Linear keeps the id of a deleted comment, so the next one needs another id.
        for replaced in 0..MOST_REPLACEMENTS {
            let own = own_id(&["comment", id.as_str(), key, &replaced.to_string()]);
            let input = write_comment::CommentCreateInput {
                id: Some(own.clone()),
                issue_id: Some(id.as_str().to_owned()),
                body: Some(text.clone()),
            };
            let refused = match self.client.tell::<WriteComment>(write_comment::Variables { input }).await {
                Ok(done) => return Ok(Written { id: CommentId::new(done.comment_create.comment.id), existed: false }),
                Err(WriteFailure::Missing(_)) => return Err(TrackerError::NotFound(id.clone())),
                Err(WriteFailure::Refused(why)) => why,
                Err(WriteFailure::Other(error)) => return Err(error),
            };
            let own = CommentId::new(own);
            let exists = match self.comment_node(id, &own).await? {
                Some(_) => true,
                None => self.exists(own.as_str()).await?.unwrap_or_else(|| is_conflict(&refused)),
            };
            if exists {
                return Ok(Written { id: own, existed: true });
            }
            if replaced + 1 == MOST_REPLACEMENTS || !is_conflict(&refused) {
                return Err(TrackerError::Refused(refused));
            }
        }
        Err(TrackerError::Refused("somebody deletes this comment again and again".to_owned()))
    }

    pub(super) async fn reword_comment(
        &self,
        id: &TicketId,
        comment: &CommentId,
        body: &str,
    ) -> Result<Edited, TrackerError> {
        self.people.us(&self.client).await?;
        let Some(node) = self.comment_node(id, comment).await? else {
            return match self.exists(comment.as_str()).await? {
                Some(false) => Ok(Edited::Gone),
                Some(true) | None => Err(TrackerError::Request(format!("comment {comment} is not visible yet"))),
            };
        };
        // With a shared account Linear would allow the runner to change a person's comment, so the mark in it is checked too.
        let ours = node.user.as_ref().is_some_and(|user| self.people.is_our_account(&user.id));
        let marker = node.body.lines().rfind(|line| line.starts_with(marks::HIDDEN) && !is_end(line));
        let Some(marker) = marker.filter(|_| ours) else {
            return Err(TrackerError::Refused(format!("comment {comment} is not ours to edit")));
        };
        let text = format!("{}\n\n{marker}", renewed(&node.body, &body.replace('\0', "")));
        let input = edit_comment::CommentUpdateInput { body: Some(shown(&text)) };
        match self.client.tell::<EditComment>(edit_comment::Variables { id: node.id, input }).await {
            Ok(_) => Ok(Edited::Done),
            Err(WriteFailure::Missing(_)) => Ok(Edited::Gone),
            Err(failure) => Err(failure.into()),
        }
    }

    pub(super) async fn acknowledge(
        &self,
        id: &TicketId,
        comment: &CommentId,
        reaction: Acknowledgement,
    ) -> Result<(), TrackerError> {
        let emoji = match reaction {
            Acknowledgement::Seen => "eyes",
            Acknowledgement::Refused => "confused",
        };
        let Some(node) = self.comment_node(id, comment).await? else {
            return Err(TrackerError::Refused(format!("comment {comment} is not there to react to")));
        };
        let mine = |user: &Option<super::documents::comments::CommentsCommentsNodesReactionsUser>| {
            user.as_ref().is_some_and(|user| user.is_me)
        };
        if node.reactions.iter().any(|known| known.emoji == emoji && mine(&known.user)) {
            return Ok(());
        }
        let input = react::ReactionCreateInput {
            id: Some(own_id(&["reaction", comment.as_str(), emoji])),
            comment_id: Some(node.id),
            emoji: emoji.to_owned(),
        };
        match self.client.tell::<React>(react::Variables { input }).await {
            Ok(_) => Ok(()),
            Err(WriteFailure::Refused(why)) if is_conflict(&why) => Ok(()),
            Err(failure) => Err(failure.into()),
        }
    }
}

/// Whether a refusal means that the object exists already. Linear does not document the wording.
pub fn is_conflict(words: &str) -> bool {
    let words = words.to_lowercase();
    ["already exist", "duplicate", "unique", "conflict", "already been"].iter().any(|sign| words.contains(sign))
}
