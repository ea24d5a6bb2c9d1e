//! Comments: reading them with their authors, writing one per key, editing, reacting.

use http::Method;
use serde_json::json;

use super::GithubTracker;
use super::error::about;
use super::ids::{IssueRef, shown, time};
use super::marks::{carries, mark_within, marked, marker};
use super::wire::{GraphqlComment, RestComment, RestUser};
use crate::domain::comment::{Comment, has_command_line};
use crate::domain::ids::{CommentId, TicketId};
use crate::domain::time::Timestamp;
use crate::github::{GithubError, Purpose, segment, with_query};
use crate::tracker::below::renewed;
use crate::tracker::{Acknowledgement, CommentFound, Edited, TrackerError, Written};

/// The most that the local clock and GitHub's may differ.
const CLOCKS_DIFFER_MS: i64 = 5 * 60_000;

pub fn comment_of_graphql(tracker: &GithubTracker, comment: &GraphqlComment) -> Comment {
    let author = comment.author.as_ref().map(|actor| actor.as_user());
    Comment {
        id: CommentId::new(comment.full_database_id.clone().unwrap_or_default()),
        author: tracker.author(author.as_ref()),
        body: comment.body.clone(),
        created_at: comment.created_at.as_deref().and_then(time),
        updated_at: comment.updated_at.as_deref().and_then(time),
    }
}

impl GithubTracker {
    /// Returns the issue number of a ticket. A ticket of another repository is an error, because the runner does not write there.
    pub(super) fn number(id: &TicketId) -> Result<u64, TrackerError> {
        let here = IssueRef::read(id).filter(|which| which.elsewhere.is_none());
        here.map(|which| which.number).ok_or_else(|| TrackerError::NotFound(id.clone()))
    }

    async fn list_comments(
        &self,
        id: &TicketId,
        number: u64,
        since: Option<Timestamp>,
    ) -> Result<Vec<RestComment>, TrackerError> {
        let since = since.map(shown);
        let mut query = vec![("per_page", "100")];
        query.extend(since.as_deref().map(|since| ("since", since)));
        let path = with_query(&self.issue_path(number, "/comments"), &query);
        self.github.list(Purpose::Look, &path).await.map_err(about(id))
    }

    pub(super) async fn all_comments(
        &self,
        id: &TicketId,
        number: u64,
        since: Option<Timestamp>,
    ) -> Result<Vec<Comment>, TrackerError> {
        let mut comments = self.list_comments(id, number, since).await?;
        comments.sort_by_key(|comment| comment.id);
        let authors: Vec<_> = comments.iter().filter_map(|comment| comment.user.as_ref()).collect();
        self.meet(&authors).await?;
        let may_tell_us = |one: &&RestComment| one.body.as_deref().is_some_and(has_command_line);
        let approvers: Vec<RestUser> =
            comments.iter().filter(may_tell_us).filter_map(|comment| comment.user.clone()).collect();
        self.meet_anew(&approvers).await?;
        let comment = |one: &RestComment| Comment {
            id: CommentId::new(one.id.to_string()),
            author: self.author(one.user.as_ref()),
            body: one.body.clone().unwrap_or_default(),
            created_at: one.created_at.as_deref().and_then(time),
            updated_at: one.updated_at.as_deref().and_then(time),
        };
        Ok(comments.iter().map(comment).collect())
    }

    fn comment_path(&self, comment: &CommentId) -> String {
        self.path(&format!("/issues/comments/{}", segment(comment.as_str())))
    }

    /// Returns a comment by its id. `None` if it does not exist or belongs to another issue.
    async fn comment_by_id(&self, number: u64, comment: &CommentId) -> Result<Option<RestComment>, GithubError> {
        match self.github.get::<RestComment>(Purpose::Look, &self.comment_path(comment)).await {
            Ok(found) => {
                let of = found.issue_url.as_deref().and_then(|url| url.rsplit('/').next()?.parse::<u64>().ok());
                Ok(Some(found).filter(|_| of == Some(number)))
            }
            Err(GithubError::NotFound(_) | GithubError::Gone(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(super) async fn look_for_comment(
        &self,
        id: &TicketId,
        comment: &CommentId,
    ) -> Result<CommentFound, TrackerError> {
        let number = Self::number(id)?;
        if self.comment_by_id(number, comment).await?.is_some() {
            return Ok(CommentFound::There);
        }
        // An invisible repository does not show its comments either. So a comment is gone only if its issue is visible.
        match self.github.get::<serde::de::IgnoredAny>(Purpose::Look, &self.issue_path(number, "")).await {
            Ok(_) => Ok(CommentFound::Gone),
            Err(GithubError::NotFound(_)) => Ok(CommentFound::NotVisible),
            Err(error) => Err(about(id)(error)),
        }
    }

    pub(super) async fn write_comment(
        &self,
        id: &TicketId,
        key: &str,
        body: &str,
        decided_at: Timestamp,
    ) -> Result<Written, TrackerError> {
        let number = Self::number(id)?;
        let _writing = self.writing.lock().await;
        self.our_login().await?;
        let since = Timestamp(decided_at.0.saturating_sub(CLOCKS_DIFFER_MS).max(0));
        let comments = self.list_comments(id, number, Some(since)).await?;
        let is_it = |one: &&RestComment| {
            self.is_our_account(one.user.as_ref()) && one.body.as_deref().is_some_and(|body| carries(body, key))
        };
        if let Some(known) = comments.iter().find(is_it) {
            return Ok(Written { id: CommentId::new(known.id.to_string()), existed: true });
        }
        let path = self.issue_path(number, "/comments");
        let body = json!({"body": marked(body, &marker(key))});
        let made = self.github.write::<RestComment>(Purpose::Write, Method::POST, &path, Some(&body)).await;
        let made = made.map_err(about(id))?;
        Ok(Written { id: CommentId::new(made.id.to_string()), existed: false })
    }

    pub(super) async fn change_comment(
        &self,
        id: &TicketId,
        comment: &CommentId,
        body: &str,
    ) -> Result<Edited, TrackerError> {
        let number = Self::number(id)?;
        let _writing = self.writing.lock().await;
        self.our_login().await?;
        let Some(known) = self.comment_by_id(number, comment).await? else { return Ok(Edited::Gone) };
        // With a shared account GitHub would allow the runner to change a person's comment, so the mark in it is checked too.
        let words = known.body.unwrap_or_default();
        let Some(mark) = mark_within(&words).filter(|_| self.is_our_account(known.user.as_ref())) else {
            return Err(TrackerError::Refused(format!("comment {comment} is not ours to edit")));
        };
        let text = marked(&renewed(&words, body), mark);
        if text == words {
            return Ok(Edited::Done);
        }
        let path = self.comment_path(comment);
        let body = json!({"body": text});
        match self.github.write_blindly(Purpose::Write, Method::PATCH, &path, Some(&body)).await {
            Ok(()) => Ok(Edited::Done),
            Err(GithubError::NotFound(_) | GithubError::Gone(_)) => Ok(Edited::Gone),
            Err(error) => Err(error.into()),
        }
    }

    /// Adds a reaction. GitHub counts the same reaction of the same account once.
    pub(super) async fn acknowledge(&self, comment: &CommentId, how: Acknowledgement) -> Result<(), TrackerError> {
        let content = match how {
            Acknowledgement::Seen => "eyes",
            Acknowledgement::Refused => "confused",
        };
        let path = format!("{}/reactions", self.comment_path(comment));
        let body = json!({"content": content});
        match self.github.write_blindly(Purpose::Write, Method::POST, &path, Some(&body)).await {
            Err(GithubError::NotFound(_) | GithubError::Gone(_)) => {
                Err(TrackerError::Refused(format!("comment {comment} is not there to react to")))
            }
            answer => Ok(answer?),
        }
    }
}
