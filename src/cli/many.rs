//! Runs one command for several tickets: finds the tickets that are meant, and prints the result for each.

use crate::domain::snapshot::{JobView, Snapshot};
use crate::runtime::Request;

use super::Failure;
use super::args::Selection;
use super::context::Context;
use super::operate;
use super::output;
use super::snapshot_source;

/// The tickets that a command is for.
pub enum Many<'a> {
    /// Tickets by their key, id or a part of these.
    Named(&'a [String]),
    Selected(&'a Selection),
}

impl<'a> Many<'a> {
    /// Returns which tickets are meant: the named ones or the selection. `None` if neither is given; both together are an error.
    pub fn of(tickets: &'a [String], selection: &'a Selection) -> Result<Option<Self>, Failure> {
        let selects = selection.all || selection.phase.is_some() || selection.cause.is_some();
        match (tickets.is_empty(), selects) {
            (true, true) => Ok(Some(Self::Selected(selection))),
            (false, false) => Ok(Some(Self::Named(tickets))),
            (true, false) => Ok(None),
            (false, true) => Err(Failure::Usage("name tickets, or say --all, --phase or --cause; not both".into())),
        }
    }

    /// Like [`Many::of`], for commands that need tickets: nothing at all is an error.
    pub fn wanted(tickets: &'a [String], selection: &'a Selection) -> Result<Self, Failure> {
        Self::of(tickets, selection)?
            .ok_or_else(|| Failure::Usage("name a ticket, or say --all, --phase PHASE or --cause REASON".into()))
    }

    /// Sends the request for each ticket and prints the results. `fits` decides which tickets `--all` means.
    pub fn tell(
        &self,
        context: &Context,
        fits: impl Fn(&Snapshot, &JobView) -> bool,
        request: impl Fn(String) -> Request,
    ) -> Result<(), Failure> {
        let tickets: Vec<(String, String)> = match self {
            // For a single ticket the answer is printed without its key in front.
            Self::Named([one]) => return operate::tell(context, &request(one.clone())),
            Self::Named(tickets) => tickets.iter().map(|name| (name.clone(), name.clone())).collect(),
            Self::Selected(selection) => {
                let picture = snapshot_source::now(context)?.snapshot;
                let meant = |job: &&JobView| is_meant(selection, &picture, job, &fits);
                picture.jobs.iter().filter(meant).map(|job| (job.key.clone(), job.id.clone())).collect()
            }
        };
        if tickets.is_empty() {
            return output::print("no ticket is like that; `dirigent status` lists them");
        }
        let mut refused = 0;
        for (shown, ticket) in &tickets {
            match operate::told(context, &request(ticket.clone())) {
                Ok(answer) if answer.starts_with(shown.as_str()) => output::print(&answer)?,
                Ok(answer) => output::print(&format!("{shown}: {answer}"))?,
                Err(failure) => {
                    refused += 1;
                    output::complain(&format!("{shown}: {}", failure.text()));
                }
            }
        }
        if refused == 0 {
            return Ok(());
        }
        let all = output::count(tickets.len(), "ticket", "tickets");
        Err(Failure::plain(format!("it was not done for {refused} of {all}")))
    }
}

/// Whether the selection includes the ticket. `--phase` and `--cause` include every ticket that has them; `--all` alone includes the
/// tickets that `fits` accepts.
fn is_meant(
    selection: &Selection,
    picture: &Snapshot,
    job: &JobView,
    fits: impl Fn(&Snapshot, &JobView) -> bool,
) -> bool {
    let phase = selection.phase.is_none_or(|phase| phase == job.phase);
    let cause = selection.cause.as_ref().is_none_or(|cause| *cause == job.reason);
    let narrowed = selection.phase.is_some() || selection.cause.is_some();
    phase && cause && (narrowed || fits(picture, job))
}
