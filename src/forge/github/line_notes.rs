//! Notes on lines of a pull request, each the start of a conversation. All new notes are sent as one review: people get one message.

use std::collections::{BTreeMap, BTreeSet};

use git2::{DiffOptions, Oid, Repository};
use http::Method;
use serde_json::json;

use super::conversation::cut;
use super::errors::{about, libgit};
use super::landing::oid;
use super::wire::{NodeId, PullComment};
use super::{Inner, blocking};
use crate::domain::ids::{CommitId, PrNumber};
use crate::forge::markers::mark;
use crate::forge::{ForgeError, LineNote};
use crate::github::{GithubError, Purpose};

/// How many lines GitHub shows around a change. It rejects notes on lines further away.
const AROUND: u32 = 3;
const LONGEST: usize = 60_000;

impl Inner {
    pub(super) async fn begin_threads(
        &self,
        number: PrNumber,
        head: &CommitId,
        notes: &[LineNote],
    ) -> Result<usize, ForgeError> {
        let (branch, base, now) = self.ends(number).await?;
        if now.as_ref() != Some(head) {
            return Ok(0);
        }
        let viewer = self.viewer().await?;
        let list = self.path(&format!("/pulls/{}/comments?per_page=100", number.0));
        let said: Vec<PullComment> = self.github.list(Purpose::Write, &list).await.map_err(about(number))?;
        let is_there = |note: &&LineNote| {
            let sign = mark(&note.key);
            said.iter().any(|one| {
                one.body.as_deref().is_some_and(|body| body.contains(&sign))
                    && one.user.as_ref().is_some_and(|user| user.login == viewer)
            })
        };
        let new: Vec<&LineNote> = notes.iter().filter(|note| !is_there(note)).collect();
        if new.is_empty() {
            return Ok(0);
        }
        let shown = self.shown_lines(&base, head).await?;
        let on_lines: Vec<_> = new
            .into_iter()
            .filter(|note| shown.get(&note.path).is_some_and(|lines| lines.contains(&note.line)))
            .map(|note| {
                let body = format!("{}\n{}", cut(&note.body, LONGEST), mark(&note.key));
                json!({ "path": note.path, "line": note.line, "side": "RIGHT", "body": body })
            })
            .collect();
        if on_lines.is_empty() {
            return Ok(0);
        }
        let count = on_lines.len();
        let words = format!("Notes on lines of {}.\n{}", head.short(), mark(&format!("notes:{head}")));
        let body = json!({ "commit_id": head.as_str(), "event": "COMMENT", "body": words, "comments": on_lines });
        let path = self.path(&format!("/pulls/{}/reviews", number.0));
        match self.github.write::<NodeId>(Purpose::Write, Method::POST, &path, Some(&body)).await {
            Ok(_) => Ok(count),
            // GitHub shows other lines than git computed. The comment about the review contains these notes all the same.
            Err(GithubError::Refused(refusal)) if refusal.status == 422 => {
                tracing::warn!(%branch, words = refusal.message, "GitHub takes no notes on these lines");
                Ok(0)
            }
            Err(error) => Err(about(number)(error)),
        }
    }

    /// Returns the line numbers of the head that GitHub shows as part of the change, by file.
    async fn shown_lines(&self, base: &str, head: &CommitId) -> Result<BTreeMap<String, BTreeSet<u32>>, ForgeError> {
        let base = self.base_here(base, head).await?;
        let (place, head) = (self.remote.place().clone(), head.clone());
        blocking(move || {
            let repo = place.open()?;
            lines_of(&repo, oid(&base)?, oid(&head)?).map_err(|error| libgit(&error))
        })
        .await
    }
}

fn lines_of(repo: &Repository, base: Oid, head: Oid) -> Result<BTreeMap<String, BTreeSet<u32>>, git2::Error> {
    let left_at = repo.find_commit(repo.merge_base(base, head)?)?.tree()?;
    let mut options = DiffOptions::new();
    options.context_lines(AROUND);
    let diff = repo.diff_tree_to_tree(Some(&left_at), Some(&repo.find_commit(head)?.tree()?), Some(&mut options))?;
    let mut found: BTreeMap<String, BTreeSet<u32>> = BTreeMap::new();
    diff.foreach(
        &mut |_, _| true,
        None,
        None,
        Some(&mut |delta, _, line| {
            if let (Some(path), Some(number)) =
                (delta.new_file().path().and_then(|path| path.to_str()), line.new_lineno())
            {
                found.entry(path.to_owned()).or_default().insert(number);
            }
            true
        }),
    )?;
    Ok(found)
}
