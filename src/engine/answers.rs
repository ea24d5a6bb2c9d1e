//! Reports a run's answers to remarks where the remarks were made: in the conversation, and to the reviewer, who is asked to look again.

use super::decided::Decided;
use super::effect::{Action, Said};
use crate::config::policy::ForgeKind;
use crate::domain::ids::RunId;
use crate::domain::job::Job;
use crate::domain::pr::PrState;
use crate::domain::remark::{Remark, RemarkKind, RemarkStatus};

/// Reports each answer once. Called when the work that belongs to the answers is on the forge.
pub fn tell(job: &mut Job, out: &mut Decided<'_>) {
    let open = job.delivery.pr.as_ref().filter(|pr| pr.state == PrState::Open);
    let (Some(number), true) = (open.map(|pr| pr.number), out.policy.pr.forge == ForgeKind::Github) else { return };
    let mut actions = Vec::new();
    for remark in job.people.remarks.iter_mut().filter(|remark| !remark.told) {
        let (Some(said), Some(run)) = (answer_of(remark), remark.dealt_with_by()) else { continue };
        actions.push(match remark.key.kind {
            RemarkKind::Thread => Action::AnswerThread {
                number,
                thread: remark.key.id.clone(),
                key: answer_key(run),
                resolve: out.policy.pr.resolve_answered && matches!(remark.status, RemarkStatus::Answered { .. }),
                said,
            },
            // A review cannot be requested from a bot.
            RemarkKind::Verdict if !remark.by_bot => Action::RequestReview { number, reviewer: remark.author.clone() },
            _ => continue,
        });
        remark.told = true;
    }
    for action in actions {
        out.act(action);
    }
}

/// Returns the key of a run's answer in a conversation.
pub fn answer_key(run: &RunId) -> String {
    format!("answer:{run}")
}

pub fn answer_of(remark: &Remark) -> Option<Said> {
    let (how, commit, words) = match &remark.status {
        RemarkStatus::Answered { commit, .. } => ("fixed", Some(commit.clone()), None),
        RemarkStatus::Explained { words, .. } => ("explained", None, Some(words.clone())),
        RemarkStatus::Declined { why, .. } => ("declined", None, Some(why.clone())),
        RemarkStatus::Addressed { .. } => ("addressed", None, None),
        RemarkStatus::Open
        | RemarkStatus::Delivered { .. }
        | RemarkStatus::Withdrawn { .. }
        | RemarkStatus::Overruled { .. } => return None,
    };
    Some(Said::Answer { how: how.to_owned(), commit, words })
}
