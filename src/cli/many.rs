//! One command for several tickets: which ones are meant, and what was done to each.

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
    /// By key, id or part.
    Named(&'a [String]),
    Selected(&'a Selection),
}

impl<'a> Many<'a> {
    /// `None` where nothing is said.
    pub fn of(tickets: &'a [String], selection: &'a Selection) -> Option<Self> {
        let selects = selection.all || selection.phase.is_some() || selection.cause.is_some();
        match (tickets.is_empty(), selects) {
            (true, true) => Some(Self::Selected(selection)),
            (false, _) => Some(Self::Named(tickets)),
            (true, false) => None,
        }
    }

    /// The same for commands that are never for everything.
    pub fn wanted(tickets: &'a [String], selection: &'a Selection) -> Result<Self, Failure> {
        if !tickets.is_empty() && (selection.all || selection.phase.is_some() || selection.cause.is_some()) {
            return Err(Failure::Usage("name tickets, or say --all, --phase or --cause; not both".into()));
        }
        Self::of(tickets, selection)
            .ok_or_else(|| Failure::Usage("name a ticket, or say --all, --phase PHASE or --cause REASON".into()))
    }

    /// Says it for each, and prints what was done. `fits` is whom the command is for, where `--all` is said.
    pub fn tell(
        &self,
        context: &Context,
        fits: impl Fn(&Snapshot, &JobView) -> bool,
        request: impl Fn(String) -> Request,
    ) -> Result<(), Failure> {
        let tickets: Vec<(String, String)> = match self {
            // One ticket is answered as it always was.
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

/// A phase or a cause decides alone where one is named; `--all` means every ticket that the command is for.
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
