//! No attempt without new evidence: a digest of everything that could make the next attempt end differently.

use sha2::{Digest, Sha256};

use crate::config::policy::Policy;
use crate::domain::ids::CommitId;
use crate::domain::job::{Job, Stage, Work};

/// Stands in for "the fingerprint as it is when this step ends" until the caller fills it in.
pub const MARK_CURRENT: &str = "current";

pub fn of(job: &Job, base: Option<&CommitId>, policy: &Policy) -> String {
    let mut digest = Sha256::new();
    let mut add = |part: &str| {
        digest.update((part.len() as u64).to_le_bytes());
        digest.update(part.as_bytes());
    };
    add(&job.ticket.state.trim().to_lowercase());
    for label in &job.ticket.labels {
        add(label);
    }
    add("trusted");
    add(job.ticket.newest_trusted_comment.as_ref().map_or("", |id| id.as_str()));
    add(base.map_or("", |commit| commit.as_str()));
    add(job.head.as_ref().map_or("", |commit| commit.as_str()));
    if let Some(pr) = &job.pr {
        add(&format!("{:?}", pr.checks));
        add(pr.review_cursor.as_ref().map_or("", |cursor| cursor.as_str()));
    }
    for word in &job.undelivered {
        add(&word.text);
    }
    match work(job) {
        Some(Work::Rework { cause }) => {
            add(cause.trigger.name());
            add(&cause.summary);
        }
        Some(Work::Review { head }) => add(head.as_str()),
        Some(Work::Implement) | None => add("implement"),
    }
    add(&policy.hash);
    let bytes = digest.finalize();
    bytes.iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

fn work(job: &Job) -> Option<&Work> {
    match &job.stage {
        Stage::Queued { work, .. } | Stage::Working { work, .. } => Some(work),
        Stage::Blocked { resume, .. } => Some(resume),
        _ => None,
    }
}
