//! The outside as it really is: the board and what stands on it. Writes happen here; the runner only hears of them.

use std::collections::{BTreeMap, BTreeSet};

use dirigent::domain::comment::{Author, TrustLevel};
use dirigent::domain::evidence::GateResult;
use dirigent::domain::ids::{CommentId, CommitId, EffectId, RunId, TicketId};
use dirigent::domain::pr::{CheckStatus, PullRequest};
use dirigent::domain::remark::{RemarkKey, RemarkKind};
use dirigent::domain::ticket::{NewTicket, StateChange, Ticket, state_in};
use dirigent::domain::time::Timestamp;
use dirigent::engine::effect::Said;
use dirigent::engine::event::{EffectError, EffectResult};

use super::engine::fixtures::{blocker, comment, commit, ticket};
use super::wishes::Wishes;

/// How far a replica may lag behind what was confirmed.
pub const LAG: i64 = 50_000;

/// A comment as it stands on a ticket. The tracker finds an earlier one by its key alone, as the adapters do by their marker.
#[derive(Debug, Clone)]
pub struct Posted {
    pub effect: EffectId,
    pub key: String,
    /// What it tells; the same must not be told twice.
    pub tells: Option<String>,
}

/// What does not work for one ticket while the others go on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Stuck {
    /// The forge says "not now" to its merge.
    Merge,
    /// Its merge fails for a passing reason.
    MergeFails,
    /// Its pull request cannot be looked at.
    Look,
    /// Nothing that is written for it gets through.
    Writes,
}

#[derive(Debug, Clone, Default)]
pub struct World {
    pub tickets: BTreeMap<TicketId, Ticket>,
    pub prs: BTreeMap<u64, PullRequest>,
    /// What a replica that lags shows of them, and since when it does.
    pub old_tickets: BTreeMap<TicketId, (Timestamp, Ticket)>,
    pub old_prs: BTreeMap<u64, (Timestamp, PullRequest)>,
    /// Whose pull request it is.
    pub pr_owner: BTreeMap<u64, TicketId>,
    /// The branches here, and what the git remote has of them.
    pub branches: BTreeMap<String, CommitId>,
    pub remote: BTreeMap<String, CommitId>,
    pub parents: BTreeMap<CommitId, Vec<CommitId>>,
    pub posted: BTreeMap<TicketId, Vec<Posted>>,
    /// Comments that tell us to do something, and whether by somebody whose words count.
    pub told: BTreeMap<CommentId, bool>,
    /// Answers to them, by their key, with the decision that made each.
    pub acknowledged: BTreeMap<String, EffectId>,
    pub created: BTreeMap<String, u32>,
    /// Effects that were really done.
    pub performed: BTreeSet<EffectId>,
    pub merges: BTreeMap<u64, u32>,
    pub wishes: Wishes,
    pub resolved: BTreeMap<CommentId, Timestamp>,
    /// Heads that were green and clean, red, or in conflict at some time since they were pushed.
    pub was_good: BTreeSet<(u64, CommitId)>,
    /// Heads that were shown with every check passed, whatever their base had become.
    pub was_green: BTreeSet<(u64, CommitId)>,
    pub was_red: BTreeSet<(u64, CommitId)>,
    pub was_in_conflict: BTreeSet<(u64, CommitId)>,
    /// Heads that came from a worker, those that passed the gates, and those that did not.
    pub by_worker: BTreeSet<CommitId>,
    pub gated: BTreeSet<CommitId>,
    pub not_gated: BTreeSet<CommitId>,
    pub reviewed: BTreeSet<CommitId>,
    /// Heads of which a review said that something has to be mended.
    pub found_wanting: BTreeSet<CommitId>,
    /// Runs that are over, with the head that each left.
    pub ended: BTreeMap<RunId, Option<CommitId>>,
    /// Which head of which ticket a person has approved.
    pub approved: BTreeSet<(TicketId, CommitId)>,
    /// Tickets whose worker claimed what is not so.
    pub lied_about: BTreeSet<TicketId>,
    /// When the ticket was last in a state in which it is worked on, and when in one that asks for rework.
    pub left_live: BTreeMap<TicketId, Timestamp>,
    pub left_rework: BTreeMap<TicketId, Timestamp>,
    /// Work that was saved from a run that did not end well.
    pub salvaged: BTreeMap<RunId, TicketId>,
    /// Words of workers on their way to a ticket.
    pub worker_words: BTreeMap<TicketId, usize>,
    /// Tickets that somebody took from us: what is left to say on them may be dropped.
    pub given_back: BTreeSet<TicketId>,
    pub kill_file: bool,
    pub tracker_down: bool,
    pub forge_down: bool,
    /// Every call is answered 401.
    pub tracker_locked: bool,
    pub forge_locked: bool,
    pub stuck: Option<(TicketId, Stuck)>,
    pub flapping: bool,
    pub comments_made: u32,
    pub commits_made: u32,
    /// Checks of new heads end like this.
    pub next_checks: Option<CheckStatus>,
    pub gates_fail: bool,
    /// The tracker dates moves and names who made them.
    pub dates_moves: bool,
}

impl World {
    pub fn new(count: usize, chained: bool) -> Self {
        let mut world = Self::default();
        for n in 0..count {
            let mut shown = ticket(&format!("t{n}"));
            shown.updated_at = Some(Timestamp(1_000));
            if chained && n > 0 {
                shown.blocked_by = vec![blocker(&format!("t{}", n - 1), Some("Todo"))];
            }
            world.tickets.insert(shown.id.clone(), shown);
        }
        world
    }

    pub fn new_commit(&mut self, parents: Vec<CommitId>) -> CommitId {
        self.commits_made += 1;
        let made = commit(&format!("c{}f", self.commits_made));
        self.parents.insert(made.clone(), parents);
        made
    }

    /// A ticket that is about to change. Replicas show it as it was for a while.
    pub fn ticket_mut(&mut self, id: &TicketId, now: Timestamp) -> Option<&mut Ticket> {
        let truth = self.tickets.get_mut(id)?;
        let old = self.old_tickets.get(id);
        if old.is_none_or(|(since, _)| since.0 + LAG <= now.0) {
            self.old_tickets.insert(id.clone(), (now, truth.clone()));
        }
        Some(truth)
    }

    pub fn pr_mut(&mut self, number: u64, now: Timestamp) -> Option<&mut PullRequest> {
        let truth = self.prs.get_mut(&number)?;
        let old = self.old_prs.get(&number);
        if old.is_none_or(|(since, _)| since.0 + LAG <= now.0) {
            self.old_prs.insert(number, (now, truth.clone()));
        }
        Some(truth)
    }

    /// The ticket as the tracker shows it.
    pub fn shown(&self, id: &TicketId, lags: bool, now: Timestamp) -> Option<&Ticket> {
        let old = self.old_tickets.get(id).filter(|(since, _)| lags && since.0 + LAG > now.0);
        old.map(|(_, ticket)| ticket).or_else(|| self.tickets.get(id))
    }

    /// Moves the ticket, by a person or by us.
    pub fn move_ticket(&mut self, id: &TicketId, state: &str, by: Author, now: Timestamp) {
        let dated = self.dates_moves;
        let Some(ticket) = self.ticket_mut(id, now) else { return };
        let from = std::mem::replace(&mut ticket.state, state.to_owned());
        ticket.updated_at = Some(now);
        ticket.state_changed = dated.then_some(StateChange { at: now, by: Some(by) });
        self.left_live.insert(id.clone(), now);
        if from == "Rework" || state == "Rework" {
            self.left_rework.insert(id.clone(), now);
        }
    }

    pub fn comment_id(&mut self) -> u32 {
        self.comments_made += 1;
        self.comments_made
    }

    /// Somebody writes on the ticket.
    pub fn says(&mut self, id: &TicketId, trust: TrustLevel, text: &str, now: Timestamp) {
        let number = self.comment_id();
        let mut said = comment(number, trust, &format!("{text}, {number}"));
        if text == "lgtm" {
            said.body = text.to_owned();
        }
        said.created_at = Some(now);
        let Some(ticket) = self.ticket_mut(id, now) else { return };
        ticket.comments.get_or_insert_default().push(said.clone());
        ticket.updated_at = Some(now);
        if trust == TrustLevel::Member && text != "lgtm" {
            let key = RemarkKey { kind: RemarkKind::TicketComment, version: said.version(), id: said.id };
            self.wishes.say(id, key, &said.author.name, text.starts_with('@'));
        }
    }

    /// Somebody tells us on the ticket to do something.
    pub fn tells(&mut self, id: &TicketId, trust: TrustLevel, what: &str, now: Timestamp) {
        let number = self.comment_id();
        let words = if what == "reject" { format!("reject otherwise, {number}") } else { what.to_owned() };
        let mut said = comment(number, trust, &format!("/dirigent {words}"));
        said.created_at = Some(now);
        let Some(ticket) = self.ticket_mut(id, now) else { return };
        ticket.comments.get_or_insert_default().push(said.clone());
        ticket.updated_at = Some(now);
        self.told.insert(said.id.clone(), trust == TrustLevel::Member);
        if trust == TrustLevel::Member && what == "reject" {
            let key = RemarkKey { kind: RemarkKind::TicketComment, version: said.version(), id: said.id };
            self.wishes.say(id, key, &said.author.name, true);
        }
    }

    /// Somebody rewrites or deletes the last comment of a member.
    pub fn takes_back(&mut self, id: &TicketId, delete: bool, now: Timestamp) -> bool {
        let number = self.comment_id();
        let Some(ticket) = self.ticket_mut(id, now) else { return false };
        let comments = ticket.comments.get_or_insert_default();
        let Some(at) = comments.iter().rposition(|said| said.author.trust == TrustLevel::Member) else { return false };
        let last: CommentId = comments[at].id.clone();
        if delete {
            comments.remove(at);
            self.wishes.vanish(now, RemarkKind::TicketComment, &last);
            return true;
        }
        comments[at].body = format!("@dirigent otherwise, {number}");
        comments[at].updated_at = Some(now);
        let (version, author) = (comments[at].version(), comments[at].author.name.clone());
        ticket.updated_at = Some(now);
        self.wishes.end_one(now, RemarkKind::TicketComment, &last);
        self.wishes.say(id, RemarkKey { kind: RemarkKind::TicketComment, id: last, version }, &author, true);
        true
    }

    /// With the blockers' states as they are.
    pub fn with_blockers(&self, ticket: &Ticket, lags: bool, now: Timestamp) -> Ticket {
        let mut shown = ticket.clone();
        for blocker in &mut shown.blocked_by {
            blocker.state = self.shown(&blocker.id, lags, now).map(|ticket| ticket.state.clone());
        }
        shown
    }

    /// Whether the ticket is in one of these states, or was a moment ago.
    pub fn was_lately_in(&self, id: &TicketId, states: &[String], lately: Timestamp) -> bool {
        let now = self.tickets.get(id).is_some_and(|ticket| state_in(&ticket.state, states));
        now || self.left_live.get(id).is_some_and(|at| *at >= lately)
    }

    pub fn post(&mut self, effect: EffectId, ticket: &TicketId, key: &str, tells: Option<String>) {
        let posted = self.posted.entry(ticket.clone()).or_default();
        if !posted.iter().any(|comment| comment.key == key) {
            posted.push(Posted { effect, key: key.to_owned(), tells });
        }
    }

    pub fn create(&mut self, key: &str, new: &NewTicket) {
        if self.created.contains_key(key) {
            return;
        }
        self.created.insert(key.to_owned(), 1);
        // Follow-ups come onto the board where nobody works on them by themselves.
        let mut shown = ticket(&format!("f{}", self.created.len()));
        shown.title = new.title.clone();
        shown.updated_at = Some(Timestamp(1_000));
        shown.state = "Backlog".into();
        self.tickets.insert(shown.id.clone(), shown);
    }

    pub fn gate(&mut self, head: &CommitId) -> Result<EffectResult, EffectError> {
        let passed = !self.gates_fail;
        let verdicts = if passed { &mut self.gated } else { &mut self.not_gated };
        verdicts.insert(head.clone());
        let result = GateResult {
            name: "make check".into(),
            command: "true".into(),
            passed,
            exit_code: Some(i32::from(!passed)),
            timed_out: false,
            output_tail: String::new(),
            duration_ms: 5,
        };
        Ok(EffectResult::Gated { results: vec![result] })
    }
}

/// The fact behind a comment, without its key: telling it a second time is a fault.
pub fn tells(said: &Said) -> Option<String> {
    match said {
        Said::Started { run, .. } => Some(format!("started {run}")),
        Said::PrOpened { number, .. } => Some(format!("opened {number}")),
        Said::Salvaged { run, .. } => Some(format!("salvaged {run}")),
        Said::BranchReady { branch, head } => Some(format!("ready {branch} {head:?}")),
        Said::HandedOver { run } => Some(format!("handed over {run}")),
        Said::DirectoryKept { because } => Some(format!("kept {because}")),
        Said::Done { commit, .. } => commit.as_ref().map(|commit| format!("done {commit}")),
        // These may come again with the same words; each decision may tell them once.
        Said::Blocked { .. }
        | Said::Rework { .. }
        | Said::Worker { .. }
        | Said::Asked { .. }
        | Said::Reply { .. }
        | Said::Waiting { .. }
        | Said::Answer { .. } => None,
    }
}
