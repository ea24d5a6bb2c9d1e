//! Pushes branches and receipts to GitHub, and deletes branches after their merge.

use super::{Inner, blocking};
use crate::domain::ids::CommitId;
use crate::forge::{ForgeError, Pushed};
use crate::github::{GithubError, permit_holds};
use crate::workspace::notes::{self, NOTES_REF};
use crate::workspace::remote::{Deletion, Lease, RemoteError, local_head};
use crate::workspace::{self, Joined};

/// How often a push is tried if the remote ref keeps moving. After that it waits for its next turn.
const PATIENCE: u32 = 4;

/// Fails if a switch was pulled since the permit for this write was given: reading and joining what is on GitHub may have taken a while.
fn obey_switches() -> Result<(), ForgeError> {
    if permit_holds() { Ok(()) } else { Err(GithubError::Withdrawn.into()) }
}

impl Inner {
    pub(super) async fn push(
        &self,
        branch: &str,
        head: &CommitId,
        pushed: Option<&CommitId>,
    ) -> Result<Pushed, ForgeError> {
        for _ in 0..PATIENCE {
            let there = self.remote.head(branch).await?;
            let (commit, lease) = match there {
                Some(there) if there == *head => return Ok(Pushed::AsAsked),
                None => (head.clone(), Lease::Nothing),
                // Only the runner pushed: a run may have rewritten its own commits.
                Some(there) if pushed == Some(&there) => (head.clone(), Lease::At(there)),
                Some(theirs) => match self.join(branch, head, &theirs).await? {
                    Joined::Ours => (head.clone(), Lease::At(theirs)),
                    Joined::Theirs => return Ok(Pushed::Joined { head: theirs }),
                    Joined::Both(both) => (both, Lease::At(theirs)),
                    Joined::Conflict { files, kept } => return Err(ForgeError::Apart { files, kept }),
                },
            };
            obey_switches()?;
            match self.remote.push(branch, &commit, &lease).await {
                Ok(()) if commit == *head => return Ok(Pushed::AsAsked),
                Ok(()) => return Ok(Pushed::Joined { head: commit }),
                Err(RemoteError::Moved) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(ForgeError::NotNow(format!("`{branch}` keeps moving on GitHub; it is tried again")))
    }

    async fn join(&self, branch: &str, ours: &CommitId, theirs: &CommitId) -> Result<Joined, ForgeError> {
        self.remote.fetch_commit(theirs).await?;
        let (place, branch) = (self.remote.place().clone(), branch.to_owned());
        let (ours, theirs) = (ours.clone(), theirs.clone());
        let commits = self.settings.commits.clone();
        blocking(move || Ok(workspace::join(&place, &commits, &branch, &ours, &theirs)?)).await
    }

    /// Writes the receipt as a local git note, joined with the notes on GitHub, and pushes the notes.
    pub(super) async fn keep_receipt(
        &self,
        commit: &CommitId,
        payload: &str,
        signature: Option<&str>,
    ) -> Result<(), ForgeError> {
        self.remote.fetch_commit(commit).await?;
        for _ in 0..PATIENCE {
            let theirs = self.remote.ref_at(NOTES_REF).await?;
            if let Some(theirs) = &theirs {
                self.remote.fetch_commit(theirs).await?;
            }
            let (place, commits, there) = (self.remote.place().clone(), self.settings.commits.clone(), theirs.clone());
            let (commit, payload, signature) = (commit.clone(), payload.to_owned(), signature.map(str::to_owned));
            let tip = blocking(move || {
                if let Some(there) = &there {
                    notes::take_in(&place, &commits, there)?;
                }
                notes::add_receipt(&place, &commits, &commit, &payload, signature.as_deref())?;
                Ok(notes::notes_tip(&place)?)
            })
            .await?;
            let Some(tip) = tip.filter(|tip| theirs.as_ref() != Some(tip)) else { return Ok(()) };
            obey_switches()?;
            match self.remote.push_ref(NOTES_REF, &tip, &theirs.map_or(Lease::Nothing, Lease::At)).await {
                Err(RemoteError::Moved) => {}
                result => return Ok(result?),
            }
        }
        Err(ForgeError::NotNow(format!("`{NOTES_REF}` keeps moving on GitHub; it is tried again")))
    }

    /// Deletes the branch only if it is at the merged head. Commits that came after it are another person's work.
    pub(super) async fn delete_branch(&self, branch: &str, head: &CommitId) -> Result<(), ForgeError> {
        obey_switches()?;
        if let Deletion::Elsewhere(actual) = self.remote.delete(branch, head).await? {
            return Err(ForgeError::HeadMoved { expected: head.clone(), actual });
        }
        let (place, branch, head) = (self.remote.place().clone(), branch.to_owned(), head.clone());
        blocking(move || {
            let Some(local) = local_head(&place, &branch)? else { return Ok(()) };
            let repo = place.open()?;
            let merged = super::landing::is_in(&repo, &local, &head).unwrap_or(false);
            if !merged {
                tracing::warn!(branch, at = local.short(), "the local branch has more than was merged; it is kept");
                return Ok(());
            }
            Ok(workspace::delete_branch(&place, &branch, &local)?)
        })
        .await
    }
}
