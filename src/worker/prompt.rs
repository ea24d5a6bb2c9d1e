//! Prompts for agents: the workflow's templates, filled in with what is known of a run.

use std::path::Path;

use super::{RunOrder, Worker};
use crate::config::worker::Runtime;
use crate::domain::ids::CommitId;
use crate::domain::job::HumanMessage;
use crate::domain::ticket::Ticket;
use crate::workflow::{AttachedFile, Previous, PromptInput, RenderError, ReviewFacts, RunFacts};

/// What a prompt is made from.
#[derive(Debug)]
pub struct PromptRequest<'a> {
    pub order: &'a RunOrder,
    /// The ticket as it was last read.
    pub ticket: &'a Ticket,
    pub worktree: &'a Path,
    /// 1 is the first prompt; later ones are guidance on the same live session.
    pub turn: u32,
    /// Trusted people's messages that this prompt must contain.
    pub words: &'a [HumanMessage],
    /// Files of the ticket, for the first prompt.
    pub attached: &'a [AttachedFile],
    pub runtime: Runtime,
    /// The repository's own template, from `agent.routing`.
    pub template: Option<&'a str>,
    /// The text of the user's own reviewer profile.
    pub profile: Option<&'a str>,
}

impl Worker {
    pub(super) fn prompt(&self, request: &PromptRequest<'_>) -> Result<String, RenderError> {
        let order = request.order;
        let previous = order.previous.as_ref();
        let failure = previous.and_then(|previous| previous.failure.as_ref()).map(ToString::to_string);
        let base = order.base.as_ref().map_or(order.base_branch.as_str(), CommitId::as_str);
        let input = PromptInput {
            ticket: request.ticket,
            attempt: order.attempt,
            work: &order.work,
            run: RunFacts {
                id: order.run.as_str(),
                phase: order.work.phase().name(),
                turn: request.turn,
                branch: &order.branch,
                base: &order.base_branch,
                worktree: request.worktree,
                // The sandbox of Codex blocks unix sockets, so it gets the desk's verbs as tools.
                ticket_tools: request.runtime == Runtime::Codex,
                desk_tools: matches!(request.runtime, Runtime::Claude | Runtime::Acp),
            },
            undelivered: request.words,
            attached: request.attached,
            previous: previous.map(|previous| Previous {
                summary: previous.summary.as_deref(),
                failure: failure.as_deref(),
                head: previous.head.as_ref().map(CommitId::as_str),
                salvage: previous.salvage.as_deref(),
            }),
            review: (order.reviewed_head().is_some() || order.reviews.passes > 0).then_some(ReviewFacts {
                base,
                reviews: &order.reviews,
                profile: request.profile,
            }),
        };
        match request.turn {
            1 => self.prompts.first(&input, &self.settings, request.template),
            _ => self.prompts.continuation(&input, &self.settings),
        }
    }
}
