//! Directories that tickets keep across runs (`workspace.mode: directory`): each is removed when its ticket is closed, or kept with a
//! reason.

use std::time::Duration;

use super::effect::{Action, Said};
use super::select;
use super::step::Step;
use crate::domain::hash::stable_hash;
use crate::domain::ids::TicketId;
use crate::domain::job::{Job, LastingDirectory};

/// How often the runner reads finished tickets whose directories still exist.
const LOOK_EVERY: Duration = Duration::from_secs(10 * 60);

impl Step<'_> {
    /// Removes the directory of a ticket that is closed and has no run.
    pub fn leave_directory(&mut self, id: &TicketId) {
        let Some(job) = self.state.jobs.get(id) else { return };
        let stays = job.directory.as_ref().is_none_or(|directory| directory.kept.is_some());
        // A job that is not over keeps its directory, such as one whose rework waits for its ticket to come back.
        let at_work = !job.stage.phase().is_terminal() || self.state.runs.values().any(|run| run.ticket == *id);
        if stays || at_work || !select::is_terminal(&job.ticket.state, self.policy) {
            return;
        }
        let is_leaving = |action: &Action| matches!(action, Action::CleanUp { .. });
        if self.state.outbox.of_ticket(id).any(|pending| is_leaving(&pending.effect.action)) {
            return;
        }
        let branch = job.delivery.branch.name.clone();
        self.emit(Some(id), Action::CleanUp { branch, merged_head: None });
    }

    pub fn directory_gone(&mut self, id: &TicketId) {
        self.state.jobs.edit(id, |job| job.directory = None);
    }

    /// Notes that the directory is kept because it holds work that is nowhere else, or because it cannot be removed.
    pub fn directory_kept(&mut self, id: &TicketId, because: String) {
        let kept = self.state.jobs.edit(id, |job| {
            let had = job.directory.is_some();
            job.directory = had.then(|| LastingDirectory { kept: Some(because.clone()) });
            had
        });
        if kept != Some(true) {
            return;
        }
        self.note(Some(id), "directory_kept", format!("the ticket is closed, and its directory is kept: {because}"));
        let key = format!("directory-kept:{:x}", stable_hash(&[because.as_str()]));
        self.emit(Some(id), Action::Comment { key, said: Said::DirectoryKept { because } });
    }

    /// Marks kept directories for another try, because their work may have been pushed since the last start.
    pub fn hope_for_directories(&mut self) {
        let kept = |job: &Job| job.directory.as_ref().is_some_and(|directory| directory.kept.is_some());
        let ids: Vec<TicketId> =
            self.state.jobs.iter().filter(|(_, job)| kept(job)).map(|(id, _)| id.clone()).collect();
        for id in ids {
            self.state.jobs.edit(&id, |job| job.directory = Some(LastingDirectory::default()));
        }
    }

    /// Returns the tickets off the board's list whose directories still exist. Nothing else reads them, and they may have been closed
    /// meanwhile.
    pub fn directories_to_ask_for(&mut self) -> Vec<TicketId> {
        let last = self.state.directories_asked_at;
        if !self.policy.directories || (last <= self.now && last.0 != 0 && self.now.since(last) < LOOK_EVERY) {
            return Vec::new();
        }
        self.state.directories_asked_at = self.now;
        let open = |job: &Job| job.directory.is_some() && !select::is_terminal(&job.ticket.state, self.policy);
        let off = self.state.off_list.iter().filter(|id| self.state.jobs.get(id).is_some_and(open));
        off.cloned().collect()
    }
}
