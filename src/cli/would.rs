//! What Dirigent would do next for a ticket if it were allowed to; shown by `explain` and `status` while `rollout.mode` is `observe`.

use crate::config::policy::RolloutMode;
use crate::domain::ids::TicketId;
use crate::engine::effect::{Action, Said};
use crate::engine::preview;
use crate::runtime::{self, RunnerFolder, assembly};
use crate::workflow::Loaded;

use super::Failure;

/// Returns one line for each action; empty unless the mode is `observe`.
pub fn lines(loaded: &Loaded, place: &RunnerFolder, ticket: &TicketId) -> Result<Vec<String>, Failure> {
    if loaded.settings.rollout.mode != RolloutMode::Observe {
        return Ok(Vec::new());
    }
    let ledger = place.read_ledger()?;
    let policy = assembly::policy(loaded, ledger.as_ref())?;
    let preview = preview(&ledger.load()?, &policy, runtime::now());
    let actions: Vec<String> = preview.of(ticket).map(words).collect();
    if !actions.is_empty() {
        return Ok(actions);
    }
    let waits = preview.reason(ticket).map(|reason| format!("nothing yet: {}", reason.sentence));
    Ok(vec![waits.unwrap_or_else(|| "nothing: it is not looked after any more".to_owned())])
}

fn words(action: &Action) -> String {
    match action {
        Action::StartRun { work, route, branch, .. } => {
            let model = route.model.as_ref().map(|model| format!(" ({model})")).unwrap_or_default();
            format!("start a run ({}) with {}{model} on branch {branch}", work.kind().name(), route.runtime)
        }
        Action::StopRun { run, .. } => format!("stop run {run}"),
        Action::Steer { run, .. } => format!("speak to run {run}"),
        Action::RefreshTickets { .. } => "read the ticket again".to_owned(),
        Action::WriteWorkpad { .. } => "write the workpad comment".to_owned(),
        Action::Comment { said, .. } => format!("comment on the ticket: {}", about(said)),
        Action::MoveTicket { state, .. } => format!("move the ticket to `{state}`"),
        Action::AddLabels { labels, .. } => format!("add the label {}", labels.join(", ")),
        Action::Acknowledge { .. } => "answer what somebody told us in a comment".to_owned(),
        Action::CreateTicket { new, .. } => format!("create a ticket: {}", new.title),
        Action::AttachLink { url, .. } => format!("link {url} to the ticket"),
        Action::PushBranch { branch, head } => format!("push {branch} at {}", head.short()),
        Action::OpenPr { branch, .. } => format!("open a pull request for {branch}"),
        Action::ReopenPr { number } => format!("reopen pull request {number}"),
        Action::InspectPr { number } => format!("look at pull request {number}"),
        Action::CheckRemark { .. } => "look for a remark".to_owned(),
        Action::MergePr { number, head, .. } => format!("merge pull request {number} at {}", head.short()),
        Action::UpdateBranch { number, .. } => format!("bring pull request {number} up to date with its base"),
        Action::Dequeue { number } => format!("take pull request {number} out of the forge's merge queue"),
        Action::UpdatePr { number, .. } => format!("update the text of pull request {number}"),
        Action::PublishGates { head } => format!("publish the gates' result on {}", head.short()),
        Action::RerunChecks { checks, .. } => format!("run again: {}", checks.join(", ")),
        Action::AnswerThread { number, .. } => format!("answer in a conversation on pull request {number}"),
        Action::ReviewComment { number, .. } => format!("comment what the review found on pull request {number}"),
        Action::RequestReview { reviewer, .. } => format!("ask {reviewer} for a review"),
        Action::RunGate { head, .. } => format!("run the gates on {}", head.short()),
        Action::WriteReceipt { commit } => format!("write the receipt of {}", commit.short()),
        Action::CleanUp { branch, .. } => format!("clean up after {branch}"),
    }
}

fn about(said: &Said) -> &'static str {
    match said {
        Said::Started { .. } => "started",
        Said::Blocked { .. } => "blocked, and what it needs",
        Said::PrOpened { .. } => "the pull request is open",
        Said::Rework { .. } => "rework, and why",
        Said::Done { .. } => "done",
        Said::Salvaged { .. } => "where unsaved work was put",
        Said::BranchReady { .. } => "the branch is ready",
        Said::HandedOver { .. } => "the worker says done",
        Said::DirectoryKept { .. } => "why its directory is kept",
        Said::Worker { .. } => "the worker's own words",
        Said::Asked { .. } => "the agent's question",
        Said::Waiting { .. } => "what waits for somebody",
        Said::Reply { .. } => "a reply",
        Said::Answer { .. } => "the answer to a remark",
    }
}
