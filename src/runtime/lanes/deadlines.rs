//! How long each kind of call may take. A call that has not answered by then is dropped and tried again later, so these are
//! generous: they are for what hangs, not for what is slow.

use std::time::Duration;

use crate::config::gates::GatesSettings;

/// A complete list of the board, page by page.
pub const POLL: Duration = Duration::from_secs(180);
/// One look at a pull request, or at a few tickets by their ids.
pub const LOOK: Duration = Duration::from_secs(60);
/// A run's own look at its ticket.
pub const READ_TICKET: Duration = Duration::from_secs(30);
/// A comment, a column, the workpad, a pull request.
pub const WRITE: Duration = Duration::from_secs(60);
/// A merge or an update of a branch: the local forge does it with git, and moves the user's tree.
pub const LAND: Duration = Duration::from_secs(15 * 60);
/// A push: as much as a branch can hold, over a slow line.
pub const PUSH: Duration = Duration::from_secs(15 * 60);
/// Branches and folders of a job that is over.
pub const CLEAN_UP: Duration = Duration::from_secs(5 * 60);
/// Ending and saving what a run left that broke down.
pub const RECLAIM: Duration = Duration::from_secs(10 * 60);

/// For the tree that the gates of one head run in to be made and removed.
const AROUND_GATES: Duration = Duration::from_secs(15 * 60);

/// All gates of one head, one after the other, each with its own limit.
pub fn gates_deadline(settings: &GatesSettings) -> Duration {
    let commands = settings.task.iter().map(|gate| settings.timeout_of(gate));
    let script = settings.hook.iter().map(|_| settings.timeout);
    commands.chain(script).fold(AROUND_GATES, Duration::saturating_add)
}
