//! What trusted people want, in the world's own books: who said it, who took it up, what came of it, and who took it back.
//!
//! Kept from what people and workers do, not from what the engine makes of it.

use std::collections::BTreeSet;

use dirigent::domain::ids::{CommentId, RunId, TicketId};
use dirigent::domain::remark::{RemarkAnswer, RemarkKey, RemarkKind};
use dirigent::domain::time::Timestamp;

/// What workers made of a wish.
#[derive(Debug, Clone, PartialEq)]
pub enum Dealt {
    Open,
    Delivered(RunId),
    /// Committed and said nothing, explained or declined: a person has to accept it.
    Held(RunId),
    Fixed(RunId),
}

/// What the runner had in its hands of a wish. A crash takes back what was not written down.
#[derive(Debug, Clone, PartialEq)]
pub struct Book {
    /// A reading that was taken in had it.
    pub shown: bool,
    pub dealt: Dealt,
    /// Not merely part of the task, or the answer to a question.
    pub matters: bool,
}

#[derive(Debug, Clone)]
pub struct Wish {
    pub key: RemarkKey,
    pub ticket: TicketId,
    pub author: String,
    pub wants_rework: bool,
    pub ended: Option<Timestamp>,
    /// Deleted: whoever knows of it has to ask for it by its id to learn that, and may not get an answer.
    pub vanished: bool,
    pub book: Book,
}

#[derive(Debug, Clone, Default)]
pub struct Wishes {
    all: Vec<Wish>,
    /// Conversations that the runner has seen resolved.
    pub seen_resolved: BTreeSet<CommentId>,
    unwritten: Vec<(usize, Book)>,
}

impl Wish {
    fn is_of(&self, ticket: &TicketId) -> bool {
        self.ended.is_none() && self.ticket == *ticket
    }

    /// Whether nothing may be merged while it is as it is.
    pub fn stands(&self, accepted: bool) -> bool {
        let dealt_with = match (&self.book.dealt, self.key.kind) {
            (_, RemarkKind::Verdict) => false,
            (Dealt::Open | Dealt::Delivered(_), _) => false,
            (Dealt::Held(_), _) => accepted,
            (Dealt::Fixed(_), _) => true,
        };
        self.ended.is_none() && self.book.shown && self.book.matters && !dealt_with
    }
}

impl Wishes {
    pub fn say(&mut self, ticket: &TicketId, key: RemarkKey, author: &str, wants_rework: bool) {
        let book = Book { shown: false, dealt: Dealt::Open, matters: true };
        let (ticket, author) = (ticket.clone(), author.to_owned());
        self.all.push(Wish { key, ticket, author, wants_rework, ended: None, vanished: false, book });
    }

    /// Somebody took these back, or put something else in their place.
    pub fn end(&mut self, now: Timestamp, which: impl Fn(&Wish) -> bool) {
        for wish in self.all.iter_mut().filter(|wish| wish.ended.is_none() && which(wish)) {
            wish.ended = Some(now);
        }
    }

    pub fn vanish(&mut self, now: Timestamp, kind: RemarkKind, id: &CommentId) {
        for wish in self.all.iter_mut().filter(|wish| wish.key.kind == kind && wish.key.id == *id) {
            wish.ended.get_or_insert(now);
            wish.vanished = true;
        }
    }

    pub fn end_one(&mut self, now: Timestamp, kind: RemarkKind, id: &CommentId) {
        self.end(now, |wish| wish.key.kind == kind && wish.key.id == *id);
    }

    /// A conversation is open again. To whoever never saw it resolved, nothing has happened.
    pub fn reopen(&mut self, ticket: &TicketId, key: RemarkKey, author: &str, resolved_at: Option<Timestamp>) {
        if self.seen_resolved.remove(&key.id) {
            self.say(ticket, key, author, true);
            return;
        }
        for wish in self.all.iter_mut().filter(|wish| wish.key == key && wish.ended == resolved_at) {
            wish.ended = None;
        }
    }

    pub fn of<'a>(&'a self, ticket: &'a TicketId) -> impl Iterator<Item = &'a Wish> {
        self.all.iter().filter(move |wish| wish.ticket == *ticket)
    }

    pub fn standing(&self, ticket: &TicketId, accepted: bool) -> Option<&Wish> {
        self.all.iter().find(|wish| wish.ticket == *ticket && wish.stands(accepted))
    }

    /// Whether a reading could still be the first to show something of this ticket.
    pub fn has_unshown(&self, ticket: &TicketId) -> bool {
        self.all.iter().any(|wish| wish.is_of(ticket) && !wish.book.shown)
    }

    fn note(&mut self, which: impl Fn(&Wish) -> bool, change: impl Fn(&mut Book)) {
        for (at, wish) in self.all.iter_mut().enumerate().filter(|(_, wish)| wish.ended.is_none()) {
            if which(wish) {
                let before = wish.book.clone();
                change(&mut wish.book);
                if wish.book != before {
                    self.unwritten.push((at, before));
                }
            }
        }
    }

    /// `part_of_the_task`: it came before the first run was at work, or it answers a question.
    pub fn shown(&mut self, ticket: &TicketId, key: &RemarkKey, part_of_the_task: bool) {
        self.note(
            |wish| wish.ticket == *ticket && wish.key == *key && !wish.book.shown,
            |book| {
                book.shown = true;
                book.matters &= !part_of_the_task;
            },
        );
    }

    /// Words by command have an id that the runner gives them; their text is their own.
    pub fn name(&mut self, key: &RemarkKey) {
        if key.kind == RemarkKind::Message {
            for wish in &mut self.all {
                if wish.key.kind == key.kind && wish.key.version == key.version {
                    wish.key.id = key.id.clone();
                }
            }
        }
    }

    pub fn delivered(&mut self, run: &RunId, keys: &[RemarkKey]) {
        self.note(
            |wish| keys.contains(&wish.key) && wish.book.dealt == Dealt::Open,
            |book| book.dealt = Dealt::Delivered(run.clone()),
        );
    }

    pub fn returned(&mut self, run: &RunId, keys: &[RemarkKey]) {
        self.note(
            |wish| keys.contains(&wish.key) && wish.book.dealt == Dealt::Delivered(run.clone()),
            |book| book.dealt = Dealt::Open,
        );
    }

    pub fn answered(&mut self, run: &RunId, key: &RemarkKey, answer: &RemarkAnswer, committed: bool) {
        let by_run = |dealt: &Dealt| match dealt {
            Dealt::Delivered(to) | Dealt::Held(to) | Dealt::Fixed(to) => to == run,
            Dealt::Open => false,
        };
        self.note(
            |wish| wish.key == *key && by_run(&wish.book.dealt),
            |book| match answer {
                RemarkAnswer::Fixed { .. } if committed => book.dealt = Dealt::Fixed(run.clone()),
                RemarkAnswer::Fixed { .. } => {}
                RemarkAnswer::Explained { .. } | RemarkAnswer::Declined { .. } => book.dealt = Dealt::Held(run.clone()),
            },
        );
    }

    /// A run is over: what it was given and did not answer is addressed by its commits, or open again.
    pub fn run_ended(&mut self, run: &RunId, committed: bool) {
        self.note(
            |wish| wish.book.dealt == Dealt::Delivered(run.clone()),
            |book| book.dealt = if committed { Dealt::Held(run.clone()) } else { Dealt::Open },
        );
    }

    /// A person who approves accepts what they have seen come of these, and overrules what they name.
    pub fn accepted(&mut self, ticket: &TicketId, seen: &BTreeSet<RunId>, overruled: &[RemarkKey], now: Timestamp) {
        self.end(now, |wish| {
            let dealt_with = wish.key.kind != RemarkKind::Verdict
                && matches!(&wish.book.dealt, Dealt::Held(run) if seen.contains(run));
            wish.ticket == *ticket && (dealt_with || overruled.contains(&wish.key))
        });
    }

    /// Whether somebody's words are a reason to work: now, or a moment ago as far as the runner can know.
    pub fn ask_for_work(&self, ticket: &TicketId, lately: Timestamp) -> bool {
        let open = |wish: &Wish| matches!(wish.book.dealt, Dealt::Open | Dealt::Delivered(_));
        let recent = |wish: &Wish| wish.vanished || wish.ended.is_none_or(|at| at >= lately);
        self.of(ticket).any(|wish| wish.wants_rework && open(wish) && recent(wish))
    }

    /// The ticket begins anew: nothing of what was said about the old work stands against the new one.
    pub fn begin_anew(&mut self, ticket: &TicketId) {
        self.note(|wish| wish.ticket == *ticket, |book| book.matters = false);
    }

    /// What the runner knows is in its ledger.
    pub fn written(&mut self) {
        self.unwritten.clear();
    }

    /// The runner died and forgot what it had not written down.
    pub fn forgotten(&mut self, dead: impl Fn(&RunId) -> bool) {
        for (at, before) in std::mem::take(&mut self.unwritten).into_iter().rev() {
            self.all[at].book = before;
        }
        for wish in &mut self.all {
            if matches!(&wish.book.dealt, Dealt::Delivered(run) if dead(run)) {
                wish.book.dealt = Dealt::Open;
            }
        }
    }
}
