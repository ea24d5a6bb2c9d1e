//! Jobs that another machine began. If the ledger knows nothing about such a job, the workpad (the runner's comment on the ticket) tells
//! how often it was reworked and reviewed. Nothing in it approves anything.

use serde::Deserialize;

use super::outbox::WORKPAD;
use super::provenance::{is_trusted, marks};
use super::step::Step;
use crate::domain::comment::Comment;
use crate::domain::job::Job;
use crate::domain::ticket::Ticket;

/// The fields that count of the block that `workpad` writes.
#[derive(Debug, PartialEq, Eq)]
struct Block {
    branch: String,
    rework_cycles: u32,
    passes: u32,
}

#[derive(Deserialize)]
struct Review {
    passes: u32,
}

impl Step<'_> {
    /// Takes over what the workpad says about the work of another ledger. Called before the first run of a ticket.
    pub fn restore(&mut self, ticket: &Ticket) {
        let Some(job) = self.state.jobs.get(&ticket.id).filter(|job| job.attempts == 0) else { return };
        let policy = self.policy;
        let written = |comment: &&Comment| {
            let by_us = comment.author.ourselves || is_trusted(&comment.author, policy);
            by_us && marks(&comment.body).any(|key| key == WORKPAD)
        };
        let Some(comment) = ticket.known_comments().iter().rfind(written) else { return };
        let branch = &job.delivery.branch.name;
        let text = match read(&comment.body) {
            None => "the workpad on the ticket cannot be read; it counts for nothing".to_owned(),
            Some(block) if block.branch != *branch => {
                format!(
                    "the workpad on the ticket is about branch {}, not {branch}; it counts for nothing",
                    block.branch
                )
            }
            Some(block) if is_known(job, &block) => return,
            Some(block) => {
                self.state.jobs.edit(&ticket.id, |job| {
                    job.rework_cycles = job.rework_cycles.max(block.rework_cycles);
                    job.delivery.reviews.passes = job.delivery.reviews.passes.max(block.passes);
                });
                format!(
                    "another machine has worked on it, says its workpad: {} rework rounds and {} reviews count",
                    block.rework_cycles, block.passes
                )
            }
        };
        self.note(Some(&ticket.id), "restored", text);
    }
}

fn is_known(job: &Job, block: &Block) -> bool {
    job.rework_cycles >= block.rework_cycles && job.delivery.reviews.passes >= block.passes
}

/// Parses the block between the fences: one field in each line, with its value as JSON.
fn read(body: &str) -> Option<Block> {
    let block: Vec<&str> = body
        .lines()
        .map(str::trim)
        .skip_while(|line| *line != "```yaml")
        .skip(1)
        .take_while(|line| *line != "```")
        .collect();
    let field = |name: &str| {
        let line = block.iter().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        serde_json::from_str::<serde_json::Value>(line?.trim()).ok()
    };
    let number = |name: &str| u32::try_from(field(name)?.as_u64()?).ok();
    if number("schema_version") != Some(1) {
        return None;
    }
    let review: Review = serde_json::from_value(field("review")?).ok()?;
    let branch = field("branch")?.as_str()?.to_owned();
    Some(Block { branch, rework_cycles: number("rework_cycles")?, passes: review.passes })
}
