//! No attempt without new evidence: a fingerprint of everything that the next prompt would tell the agent.
//!
//! The runner's own doings (columns that it moved, the workpad, attempt numbers) are not part of it. Neither is the tip of the base branch,
//! unless the job is about a conflict with it.

use sha2::{Digest, Sha256};

use crate::config::policy::Policy;
use crate::domain::fingerprint::Fingerprint;
use crate::domain::ids::CommitId;
use crate::domain::job::{Job, ReworkTrigger, Stage, Work};

pub fn of(job: &Job, base: Option<&CommitId>, policy: &Policy) -> Fingerprint {
    let remarks: Vec<String> = job
        .people
        .remarks
        .iter()
        // A bot's remark does not justify another attempt.
        .filter(|remark| !remark.is_over() && !remark.by_bot)
        .map(|remark| format!("{:?} {} {}", remark.key.kind, remark.key.id, remark.key.version))
        .collect();
    let checks = job.delivery.pr.as_ref().map(|pr| format!("{:?}", pr.checks)).unwrap_or_default();
    let head = job.delivery.head.as_ref().map_or("", |commit| commit.as_str());
    Fingerprint {
        ticket: format!("{:016x}", job.ticket.text_hash),
        comments: format!("{:016x}", job.ticket.trusted_comments),
        remarks: digest(remarks.iter().map(String::as_str)),
        labels: digest(job.ticket.labels.iter().map(String::as_str)),
        head: digest([head]),
        checks,
        cause: cause(job, base),
        workflow: policy.hash.clone(),
    }
}

fn cause(job: &Job, base: Option<&CommitId>) -> String {
    match work(job) {
        Some(Work::Rework { cause }) => {
            let tip = base.filter(|_| cause.trigger == ReworkTrigger::MergeConflict);
            digest([cause.trigger.name(), &cause.summary, tip.map_or("", |commit| commit.as_str())])
        }
        Some(Work::Review { head }) => digest(["review", head.as_str()]),
        Some(Work::Implement) | None => digest(["implement"]),
    }
}

fn digest<'a>(parts: impl IntoIterator<Item = &'a str>) -> String {
    let mut digest = Sha256::new();
    for part in parts {
        digest.update((part.len() as u64).to_le_bytes());
        digest.update(part.as_bytes());
    }
    digest.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

fn work(job: &Job) -> Option<&Work> {
    match &job.stage {
        Stage::Queued { work, .. } | Stage::Working { work, .. } => Some(work),
        Stage::Blocked { resume, .. } => Some(resume),
        _ => None,
    }
}
