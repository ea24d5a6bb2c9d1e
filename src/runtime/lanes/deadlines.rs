//! How long each kind of call may take. A call without a response by then is dropped and tried again later. The limits are generous: they
//! are meant for calls that hang, not for slow ones.

use std::time::Duration;

use crate::config::gates::GatesSettings;

/// A complete list of the board, page by page.
pub const POLL: Duration = Duration::from_secs(180);
/// One look at a pull request, or at a few tickets by their ids.
pub const LOOK: Duration = Duration::from_secs(60);
/// A run's own look at its ticket.
pub const READ_TICKET: Duration = Duration::from_secs(30);
/// Writing a comment, a column, the workpad or a pull request.
pub const WRITE: Duration = Duration::from_secs(60);
/// A merge or an update of a branch. The local forge does it with git, and also updates the user's work tree.
pub const LAND: Duration = Duration::from_secs(15 * 60);
/// A push, which may be large and go over a slow line.
pub const PUSH: Duration = Duration::from_secs(15 * 60);
/// Removing the branches and folders of a job that is over.
pub const CLEAN_UP: Duration = Duration::from_secs(5 * 60);
/// Stopping the processes and saving the work of a run whose worker broke down.
pub const RECLAIM: Duration = Duration::from_secs(10 * 60);

/// The time for making and removing the worktree in which the gates of one head run.
const AROUND_GATES: Duration = Duration::from_secs(15 * 60);

/// The limit for all gates of one head, one after the other: the sum of their own limits plus the time for the worktree.
pub fn gates_deadline(settings: &GatesSettings) -> Duration {
    let commands = settings.task.iter().map(|gate| settings.timeout_of(gate));
    let script = settings.hook.iter().map(|_| settings.timeout);
    commands.chain(script).fold(AROUND_GATES, Duration::saturating_add)
}
