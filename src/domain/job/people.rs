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
    /// Oldest first, one entry per remark.
    pub remarks: Vec<Remark>,
    /// Hashes of the instructions that comments have given, one per instruction and comment, so that none is carried out twice.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub heard: Vec<u64>,
    /// The runner's last comment that names a head, one for the ticket and one for the pull request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub named: Vec<NamedHead>,
    /// Rounds of rework that the bots of `review.bots` have had. They get one.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub bot_rounds: u32,
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}

unwritten!(People);

/// A comment of the runner that says which head it is about. A person who answers below it has seen that head.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedHead {
    /// Whether the comment is on the ticket or on the pull request.
    pub place: RemarkKind,
    pub comment: CommentId,
    pub head: CommitId,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pause {
    pub since: Timestamp,
    pub by: String,
}

/// A person's consent that a head may be merged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Approval {
    pub head: CommitId,
    pub by: String,
    pub at: Timestamp,
    /// Whether the approval is a review on the forge, which can be withdrawn there.
    #[serde(default)]
    pub by_review: bool,
}

/// A trusted person's words on their way to the agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HumanMessage {
    /// The remark that this message carries; `None` for the runner's own words to the agent.
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

    /// Notes that this comment of the runner names this head. It replaces the earlier one at the same place.
    pub fn head_was_named(&mut self, place: RemarkKind, comment: CommentId, head: CommitId) {
        self.named.retain(|known| known.place != place);
        self.named.push(NamedHead { place, comment, head });
    }

    /// Counts the bots' round. From now on their remarks hold no merge, and new ones are not taken in.
    pub fn bots_are_heard(&mut self) {
        self.bot_rounds += 1;
        for remark in self.remarks.iter_mut().filter(|remark| remark.by_bot) {
            remark.effect = RemarkEffect::None;
        }
    }

    /// Returns the open remarks, which no run has taken up yet, as messages for the next run.
    pub fn undelivered(&self) -> Vec<HumanMessage> {
        self.remarks.iter().filter(|remark| remark.is_open()).map(HumanMessage::of).collect()
    }

    /// Starts over after the ticket was reopened: open comments and messages become part of the new task, every other remark is dropped.
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

    /// Returns the remarks that a run has dealt with and that no person has accepted yet.
    pub fn dealt_with(&self) -> impl Iterator<Item = &Remark> {
        self.holding().filter(|remark| remark.is_accepted_by_approval())
    }

    /// Returns the remarks that stand against a merge.
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
