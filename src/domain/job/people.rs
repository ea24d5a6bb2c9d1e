//! What people said and did about a job: pauses, approvals, remarks.

use serde::{Deserialize, Serialize};

use crate::domain::ids::{CommentId, CommitId};
use crate::domain::remark::{Remark, RemarkEffect, RemarkKey, RemarkKind};
use crate::domain::seldom::unwritten;
use crate::domain::time::Timestamp;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct People {
    pub pause: Option<Pause>,
    pub approval: Option<Approval>,
    /// Oldest first; one per remark.
    pub remarks: Vec<Remark>,
    /// What was told us in comments, each instruction of each comment once: it is not carried out a second time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub heard: Vec<u64>,
    /// Our last comment that names a head, on the ticket and on the pull request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub named: Vec<NamedHead>,
    /// Rounds of work that the bots of `review.bots` have had. They get one.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub bot_rounds: u32,
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}

unwritten!(People);

/// A comment of ours that says which head is meant. Whoever answers it has seen that head.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedHead {
    /// On a ticket or on a pull request.
    pub place: RemarkKind,
    pub comment: CommentId,
    pub head: CommitId,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pause {
    pub since: Timestamp,
    pub by: String,
}

/// A person's word that a head may be merged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Approval {
    pub head: CommitId,
    pub by: String,
    pub at: Timestamp,
    /// By a review on the forge, which can be taken back there.
    #[serde(default)]
    pub by_review: bool,
}

/// Something that a trusted person wrote, on its way to the agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HumanMessage {
    /// The remark that it is; `None` for our own words to the agent.
    pub key: Option<RemarkKey>,
    pub from: String,
    pub text: String,
    pub at: Timestamp,
    pub urgent: bool,
}

impl People {
    pub fn remark(&self, key: &RemarkKey) -> Option<&Remark> {
        self.remarks.iter().find(|remark| remark.key.is_same_remark(key))
    }

    pub fn remark_mut(&mut self, key: &RemarkKey) -> Option<&mut Remark> {
        self.remarks.iter_mut().find(|remark| remark.key.is_same_remark(key))
    }

    /// A comment of ours names this head.
    pub fn head_was_named(&mut self, place: RemarkKind, comment: CommentId, head: CommitId) {
        self.named.retain(|known| known.place != place);
        self.named.push(NamedHead { place, comment, head });
    }

    /// The bots have their round. From now on what they say stands against nothing, and nothing more of them is taken in.
    pub fn bots_are_heard(&mut self) {
        self.bot_rounds += 1;
        for remark in self.remarks.iter_mut().filter(|remark| remark.by_bot) {
            remark.effect = RemarkEffect::None;
        }
    }

    /// What no run has taken up yet, as messages for the next one.
    pub fn undelivered(&self) -> Vec<HumanMessage> {
        self.remarks.iter().filter(|remark| remark.is_open()).map(HumanMessage::of).collect()
    }

    /// The ticket was opened again: what is still unanswered on it is part of the new task, the rest is settled.
    pub fn begin_anew(&mut self) {
        self.approval = None;
        self.bot_rounds = 0;
        self.remarks.retain(|remark| {
            remark.is_open() && matches!(remark.key.kind, RemarkKind::TicketComment | RemarkKind::Message)
        });
        for remark in &mut self.remarks {
            remark.effect = RemarkEffect::None;
        }
    }

    pub fn is_approved(&self, head: &CommitId) -> bool {
        self.approval.as_ref().is_some_and(|approval| approval.head == *head)
    }

    pub fn approved_head(&self) -> Option<&CommitId> {
        self.approval.as_ref().map(|approval| &approval.head)
    }

    /// What a run has dealt with, and nobody has accepted yet.
    pub fn dealt_with(&self) -> impl Iterator<Item = &Remark> {
        self.holding().filter(|remark| remark.is_accepted_by_approval())
    }

    /// What stands against a merge.
    pub fn holding(&self) -> impl Iterator<Item = &Remark> {
        self.remarks.iter().filter(|remark| remark.holds_merge())
    }
}

impl HumanMessage {
    pub fn of(remark: &Remark) -> Self {
        Self {
            key: Some(remark.key.clone()),
            from: remark.author.clone(),
            text: match &remark.place {
                Some(place) => format!("{place}: {}", remark.text),
                None => remark.text.clone(),
            },
            at: remark.at,
            urgent: remark.urgent,
        }
    }
}
