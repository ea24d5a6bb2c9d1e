//! Compares the board as it is now with what the runner believed: closed, moved, relabelled, commented on, gone.

use std::collections::{BTreeMap, BTreeSet};

use super::columns::{Column, Mover, moved_again, see_unapproved, who_moved, whose_column};
use super::effect::Action;
use super::event::Lookup;
use super::instructions::{self, Told, seen_before};
use super::phases::Observation;
use super::phases::moves::saw_ticket_closed;
use super::provenance::{is_ours, is_trusted};
use super::remarks::{self, RemarkReading};
use super::run_store::Runs;
use super::select;
use super::state::{SETTLE, Unsettled};
use super::step::Step;
use crate::config::policy::{Order, Policy};
use crate::domain::basis::Basis;
use crate::domain::branch::{branch_name, proposed_branch};
use crate::domain::comment::Comment;
use crate::domain::hash::stable_hash;
use crate::domain::ids::{CommentId, CommitId, TicketId};
use crate::domain::job::{BranchName, Job, OurComments, Stage, TicketFacts};
use crate::domain::phase::Phase;
use crate::domain::remark::{RemarkEffect, RemarkKind};
use crate::domain::run::Life;
use crate::domain::ticket::{Blocker, Ticket, same_state, state_in};
use crate::domain::time::Timestamp;

/// How many tickets of which a list showed only half are read at once. The rest of a large board waits for the next poll.
const READ_AT_ONCE: usize = 100;

impl Step<'_> {
    /// Takes in a complete list of the tickets in the states of interest.
    pub fn polled(&mut self, tickets: Vec<Ticket>, base: Option<CommitId>, basis: Basis) {
        self.board_answered(base);
        if basis.after < self.state.listed {
            // This request was sent before one that was already answered; only people's words in it count.
            tickets.iter().for_each(|ticket| self.hear_words(ticket));
            return;
        }
        self.state.listed = basis.after;
        self.state.read.retain(|_, moment| *moment >= basis.after);
        // From here on, what happens to the jobs is news for the next reading.
        self.state.jobs.take_unread();
        // The board changed between two pages of the list if a ticket is in it twice. The newer version counts, as a whole.
        let mut seen: BTreeMap<TicketId, (Option<Timestamp>, bool)> = BTreeMap::new();
        let age = |ticket: &Ticket| (ticket.updated_at, ticket.comments.is_some());
        for ticket in &tickets {
            let newest = seen.entry(ticket.id.clone()).or_insert_with(|| age(ticket));
            *newest = age(ticket).max(*newest);
        }
        let mut taken = BTreeSet::new();
        let twice = seen.len() < tickets.len();
        let mut half_read = Vec::new();
        for ticket in tickets {
            let is_newest = || seen.get(&ticket.id) == Some(&age(&ticket));
            if !twice || is_newest() && taken.insert(ticket.id.clone()) {
                half_read.extend(self.half_news(&ticket));
                self.ticket_seen(ticket, basis);
            }
        }
        self.read_half(half_read);
        self.state.off_list = self.state.jobs.keys().filter(|id| !seen.contains_key(*id)).cloned().collect();
        self.ask_for_the_rest();
    }

    /// Takes in the tickets that have changed, in any state. Tickets that are not among them have not changed.
    pub fn polled_changes(&mut self, tickets: Vec<Ticket>, base: Option<CommitId>, basis: Basis) {
        self.board_answered(base);
        let half_read = tickets.iter().filter(|ticket| ticket.comments.is_none());
        let half_read = half_read.map(|ticket| ticket.id.clone()).collect();
        for ticket in tickets {
            self.state.off_list.remove(&ticket.id);
            self.state.jobs.was_read(&ticket.id);
            self.ticket_seen(ticket, basis);
        }
        self.read_half(half_read);
        self.ask_for_the_rest();
    }

    /// Returns the ticket's id if a complete list shows something new about it, but not its comments.
    fn half_news(&self, ticket: &Ticket) -> Option<TicketId> {
        let known = self.state.jobs.get(&ticket.id);
        let is_news = known.is_none_or(|job| {
            job.ticket.unheard || job.ticket.mover_unread || job.ticket.updated_at != ticket.updated_at
        });
        (ticket.comments.is_none() && is_news).then(|| ticket.id.clone())
    }

    /// Marks tickets of which a list showed something new, but not the comments or who did what. They are read by id.
    fn read_half(&mut self, mut ids: Vec<TicketId>) {
        ids.retain(|id| self.state.jobs.contains(id));
        if ids.is_empty() {
            return;
        }
        let moment = self.state.next_moment();
        for id in ids {
            self.state.jobs.mark_dirty(&id);
            self.state.half_read.insert(id, moment);
        }
    }

    /// Returns those of the marked tickets that are read now: tickets that may be worked on first.
    fn half_read_to_ask_for(&mut self) -> Vec<TicketId> {
        let jobs = &self.state.jobs;
        self.state.half_read.retain(|id, _| jobs.contains(id));
        let is_ours = |id: &&TicketId| {
            jobs.get(id).is_some_and(|job| select::lost_eligibility(&job.ticket, self.policy).is_none())
        };
        let (ours, others): (Vec<&TicketId>, Vec<&TicketId>) = self.state.half_read.keys().partition(is_ours);
        ours.into_iter().chain(others).take(READ_AT_ONCE).cloned().collect()
    }

    /// Clears the mark of a ticket once a reading asked for after the list has brought the rest.
    fn read_whole(&mut self, id: &TicketId, basis: Basis) {
        let is_after = self.state.half_read.get(id).is_some_and(|moment| basis.is_after(*moment));
        if is_after && !self.state.unsettled.contains_key(id) {
            self.state.half_read.remove(id);
            self.state.jobs.mark_dirty(id);
        }
    }

    /// Takes in that the board's answer is the same as before. It still means the same to each job, but the job may have moved on since.
    pub fn polled_unchanged(&mut self, base: Option<CommitId>, basis: Basis) {
        self.board_answered(base);
        if basis.after < self.state.listed {
            return;
        }
        for id in self.state.jobs.take_unread() {
            let unsettled = self.state.off_list.contains(&id) || self.state.unsettled.contains_key(&id);
            if unsettled || self.is_out_of_order(&id, basis) {
                continue;
            }
            let job = self.state.jobs.get(&id).filter(|job| !matches!(job.stage, Stage::Queued { .. }));
            let Some(facts) = job.map(|job| &job.ticket) else { continue };
            for observation in what_it_means(facts, false, self.policy) {
                self.decide(&id, observation);
            }
        }
        self.ask_for_the_rest();
    }

    fn board_answered(&mut self, base: Option<CommitId>) {
        let first = self.state.tracker.last_ok.is_none();
        self.state.tracker.last_ok = Some(self.now);
        self.state.tracker.last_error = None;
        let moved = base.is_some() && base != self.state.base;
        if moved {
            self.state.base = base;
        }
        if first || moved {
            // The position of the base may be news for a job that is about a conflict with it.
            let blocked: Vec<TicketId> = self.state.jobs.index().in_phase(Phase::Blocked).cloned().collect();
            for id in &blocked {
                self.state.jobs.mark_dirty(id);
            }
        }
    }

    /// Requests what a list does not bring: tickets that were not on it and still matter, unsettled ones, and the pull requests.
    fn ask_for_the_rest(&mut self) {
        let unseen = std::mem::replace(&mut self.state.unseen, self.state.off_list.clone());
        for id in unseen.symmetric_difference(&self.state.unseen) {
            self.state.jobs.mark_dirty(id);
        }
        let held = self.held_back();
        let missing =
            |id: &&TicketId| self.state.jobs.get(id).is_some_and(|job| cares_about_ticket(job) || held.contains(id));
        let mut ids: BTreeSet<TicketId> = self.state.unsettled.keys().cloned().collect();
        ids.extend(self.state.off_list.iter().filter(missing).cloned());
        ids.extend(self.blockers_to_ask_for());
        ids.extend(self.directories_to_ask_for());
        ids.extend(self.half_read_to_ask_for());
        // A ticket that was hidden may be visible again, which a board that repeats its answer would not report.
        ids.extend(self.state.invisible.iter().filter(|id| self.state.jobs.contains(id)).cloned());
        if !ids.is_empty() {
            self.emit(None, Action::RefreshTickets { ids: ids.into_iter().collect() });
        }
        self.look_at_prs(&held);
    }

    /// Returns the blockers to read by id. A ticket's own time of change does not move when its blocker is closed.
    fn blockers_to_ask_for(&mut self) -> BTreeSet<TicketId> {
        self.state.jobs.settle_relations(self.policy.agent.order == Order::CriticalPath);
        let relations = self.state.jobs.relations();
        let holds_up = |blocker: &&TicketId| {
            relations.waiting_for(blocker).filter_map(|id| self.state.jobs.get(id)).any(|job| {
                let is_open = |known: &Blocker| known.id == **blocker && select::is_open_blocker(known, self.policy);
                matches!(job.stage, Stage::Queued { .. }) && job.ticket.blocked_by.iter().any(is_open)
            })
        };
        relations.foreign().chain(&self.state.off_list).filter(holds_up).cloned().collect()
    }

    /// Returns the tickets with writes that a switch or the mode holds back. The writes continue when the label is removed, even on a
    /// ticket that is done; so these tickets have to be read.
    fn held_back(&self) -> BTreeSet<TicketId> {
        self.state.outbox.held().filter_map(|pending| pending.effect.ticket.clone()).collect()
    }

    fn look_at_prs(&mut self, held: &BTreeSet<TicketId>) {
        let with_pr: BTreeSet<TicketId> = self.state.jobs.index().with_pr.union(held).cloned().collect();
        for id in &with_pr {
            let pr = self.state.jobs.get(id).and_then(|job| job.delivery.pr.as_ref());
            if let Some(number) = pr.map(|pr| pr.number) {
                self.emit(Some(id), Action::InspectPr { number });
            }
        }
    }

    /// Takes in the result of reading each of these tickets by its id.
    pub fn refreshed(&mut self, found: Vec<(TicketId, Lookup)>, basis: Basis) {
        for (id, lookup) in found {
            match lookup {
                Lookup::Found { ticket } => {
                    if self.state.unseen.remove(&id) {
                        self.state.jobs.mark_dirty(&id);
                    }
                    if self.is_out_of_order(&id, basis) {
                        self.hear_words(&ticket);
                        continue;
                    }
                    self.blocker_seen(&ticket);
                    self.ticket_seen(ticket, basis);
                    self.read_whole(&id, basis);
                    self.state.read.insert(id, basis.after);
                }
                Lookup::Gone { because } => {
                    self.state.half_read.remove(&id);
                    self.drop_floor(&id);
                    self.state.unsettled.remove(&id);
                    self.decide(&id, Observation::TicketGone { because });
                }
                // The run stops and the job is kept: only `Gone` ends it.
                Lookup::NotVisible => {
                    self.state.half_read.remove(&id);
                    if !self.state.jobs.contains(&id) {
                        // The next list shows whether the ticket exists.
                        self.drop_floor(&id);
                    }
                    if self.state.jobs.contains(&id) && self.state.invisible.insert(id.clone()) {
                        self.state.jobs.mark_dirty(&id);
                        self.note(Some(&id), "not_visible", "the tracker does not show the ticket; the job is kept");
                    }
                    self.decide(&id, Observation::TicketNotVisible);
                }
                Lookup::Unreadable { because } => {
                    self.drop_floor(&id);
                    if self.state.jobs.contains(&id) {
                        // If work on the ticket is to start, the reading before it reports the problem.
                        self.read_whole(&id, basis);
                        self.note(Some(&id), "unreadable", format!("the ticket cannot be read: {because}"));
                    }
                }
            }
        }
    }

    /// Tells the tickets that wait for this blocker its state, after the blocker was read by itself.
    fn blocker_seen(&mut self, ticket: &Ticket) {
        let waiting: Vec<TicketId> = self.state.jobs.relations().waiting_for(&ticket.id).cloned().collect();
        for id in waiting {
            self.state.jobs.edit(&id, |job| {
                for blocker in job.ticket.blocked_by.iter_mut().filter(|blocker| blocker.id == ticket.id) {
                    blocker.state = Some(ticket.state.clone());
                }
            });
        }
    }

    /// Whether this request was sent before one about the ticket that was already answered.
    fn is_out_of_order(&self, id: &TicketId, basis: Basis) -> bool {
        basis.after < self.state.listed || self.state.read.get(id).is_some_and(|known| basis.after < *known)
    }

    pub(super) fn ticket_seen(&mut self, ticket: Ticket, basis: Basis) {
        if self.state.read.get(&ticket.id).is_some_and(|known| basis.after < *known) {
            self.hear_words(&ticket);
            return;
        }
        if self.is_below_floor(&ticket, basis) {
            self.hear_words(&ticket);
            return;
        }
        if self.state.invisible.remove(&ticket.id) {
            self.state.jobs.mark_dirty(&ticket.id);
        }
        let mut facts = TicketFacts::of(&ticket);
        let secret = self.state.meta.comment_key.clone();
        if ticket.comments.is_some() {
            let known = self.state.jobs.get(&ticket.id).map(|job| &job.comments);
            facts.trusted_comments = trusted_comments(&ticket, &secret, known, self.policy);
        }
        let Some(job) = self.state.jobs.get(&ticket.id) else {
            if select::is_active(&facts.state, self.policy) {
                for comment in ticket.known_comments() {
                    facts.take_in(comment);
                }
                let told = self.told_by_people(&ticket, &secret);
                self.adopt(facts, ticket.branch_name.as_deref());
                self.restore(&ticket);
                self.told_before(&ticket.id, &told);
            }
            return;
        };
        facts.known_comments.clone_from(&job.ticket.known_comments);
        facts.known_until = job.ticket.known_until;
        facts.mover_unread = job.ticket.mover_unread;
        if ticket.comments.is_none() {
            facts.trusted_comments = job.ticket.trusted_comments;
            facts.history.clone_from(&job.ticket.history);
            facts.unheard = job.ticket.unheard;
        }
        // A stranger's text that nobody who counts has seen is not new evidence to work with.
        let by_a_stranger = facts.author.as_ref().is_some_and(|author| !is_trusted(author, self.policy));
        if by_a_stranger && (ticket.comments.is_none() || select::reworded(&facts, self.policy).is_some()) {
            facts.text_hash = job.ticket.text_hash;
        }
        // The state of a blocker that was read by itself is more current than what its dependent's reading says.
        for blocker in &mut facts.blocked_by {
            let observed = self.state.read.get(&blocker.id).is_some_and(|moment| *moment >= basis.after);
            let known = job.ticket.blocked_by.iter().find(|known| known.id == blocker.id);
            if let (true, Some(known)) = (observed, known) {
                blocker.state.clone_from(&known.state);
            }
        }
        let id = ticket.id.clone();
        let has_news = ticket.known_comments().iter().any(|comment| !facts.knows(comment));
        let is_queued = matches!(job.stage, Stage::Queued { .. });
        let says_nothing_new = job.ticket == facts && !facts.mover_unread && !has_news && is_queued;
        if says_nothing_new && job.column.is_none() {
            self.state.unsettled.remove(&id);
            return;
        }
        // A reading that is older than a previous one comes from a lagging replica. It is believed only if it lasts.
        let is_old = facts.updated_at.is_some() && facts.updated_at < job.ticket.updated_at;
        if is_old && !self.has_lasted(&id, basis) {
            self.hear_words(&ticket);
            return;
        }
        let moving = self.is_moving(&id);
        let Some(job) = self.state.jobs.get(&id) else { return };
        let mut column = whose_column(job, &facts, basis, self.now);
        let is_new = matches!(column, Column::Plain | Column::Taken) && !same_state(&facts.state, &job.ticket.state);
        let is_undated = facts.state_changed.as_ref().is_some_and(|change| change.at == Timestamp::default());
        let approves = state_in(&facts.state, &self.policy.merge.approval_states);
        // The board's history may show a move a little later than the ticket does.
        if is_new && approves && is_undated && !self.has_lasted(&id, basis) {
            column = Column::Unsettled;
        }
        let Some(job) = self.state.jobs.get(&id) else { return };
        // A list may show that a ticket was moved, and not by whom.
        let names_movers = ticket.comments.is_some() || facts.state_changed.is_some();
        let mut mover = Mover::Nobody;
        match column {
            Column::Unsettled => {
                facts.state.clone_from(&job.ticket.state);
                facts.state_changed.clone_from(&job.ticket.state_changed);
                self.ask_again(&id);
            }
            // The move has not been sent yet, or it is not known whether it has arrived.
            Column::Pending => {
                facts.state.clone_from(&job.ticket.state);
                facts.state_changed.clone_from(&job.ticket.state_changed);
                self.state.unsettled.remove(&id);
            }
            // The answer to the move is still awaited.
            Column::Early => {
                facts.mover_unread = false;
                self.state.unsettled.remove(&id);
            }
            Column::Visible => {
                facts.mover_unread = false;
                self.state.jobs.edit(&id, |job| job.column = None);
                self.state.unsettled.remove(&id);
            }
            Column::Plain => {
                let moved = !same_state(&job.ticket.state, &facts.state) || moved_again(&job.ticket, &facts);
                if moved || facts.mover_unread {
                    mover = who_moved(&facts, names_movers, self.policy);
                }
                if job.column.is_some() && !moving {
                    // The move was never written and is not tried any more.
                    self.state.jobs.edit(&id, |job| job.column = None);
                }
                self.state.unsettled.remove(&id);
            }
            Column::Taken => {
                self.state.jobs.edit(&id, |job| job.column = None);
                mover = who_moved(&facts, names_movers, self.policy);
                self.state.unsettled.remove(&id);
            }
        }
        match mover {
            Mover::Nobody if says_nothing_new => return,
            Mover::Nobody => {}
            Mover::Unread => facts.mover_unread = true,
            Mover::Uncounted | Mover::Counts => facts.mover_unread = false,
        }
        if has_news {
            self.restore(&ticket);
        }
        self.take_over(&ticket, facts, mover, basis, &secret);
    }

    /// Whether a move of this ticket is written down and not confirmed.
    fn is_moving(&self, id: &TicketId) -> bool {
        self.state.outbox.of_ticket(id).any(|pending| matches!(pending.effect.action, Action::MoveTicket { .. }))
    }

    /// Believes a reading: takes over the job's facts, what they mean, and what people wrote.
    fn take_over(&mut self, ticket: &Ticket, mut facts: TicketFacts, mover: Mover, basis: Basis, secret: &str) {
        let id = ticket.id.clone();
        let Some(job) = self.state.jobs.get(&id) else { return };
        let moved = !same_state(&job.ticket.state, &facts.state);
        let was_closed = select::is_terminal(&job.ticket.state, self.policy);
        // What was on the ticket before its first complete reading is the task. Instructions in it were about work that did not exist yet.
        let earlier = (job.ticket.unheard && !facts.unheard).then(|| self.told_by_people(ticket, secret));
        let news = match &earlier {
            Some(_) => {
                ticket.known_comments().iter().for_each(|comment| facts.take_in(comment));
                Vec::new()
            }
            None => self.news_in(ticket, &mut facts, secret),
        };
        let unapproved = !state_in(&facts.state, &self.policy.merge.approval_states);
        self.state.jobs.edit(&id, |job| {
            if mover != Mover::Nobody && was_closed {
                // Reopened before a reading showed the column in which the runner had put the ticket.
                saw_ticket_closed(job);
            }
            if unapproved {
                see_unapproved(job, basis);
            }
            job.ticket = facts.clone();
        });
        if moved {
            self.follow_run(&id, &facts.state);
        }
        let ours = select::lost_eligibility(&facts, self.policy).is_none();
        let counts = mover == Mover::Counts;
        if counts && ours && state_in(&facts.state, &self.policy.merge.approval_states) {
            self.approved_by_state(&id);
        }
        if mover == Mover::Uncounted && ours {
            self.move_does_not_count(&id);
        }
        for observation in what_it_means(&facts, counts, self.policy) {
            self.decide(&id, observation);
        }
        self.take_news(&id, news);
        if let Some(earlier) = earlier {
            self.told_before(&id, &earlier);
        }
        if ticket.comments.is_some() {
            let present: Vec<CommentId> = ticket.known_comments().iter().map(|comment| comment.id.clone()).collect();
            self.check_missing(&id, RemarkKind::TicketComment, &present);
        }
    }

    /// Returns the instructions that people whose words count gave on a ticket whose comments are read for the first time.
    fn told_by_people(&self, ticket: &Ticket, secret: &str) -> Vec<Told> {
        let none = OurComments::new();
        let known = self.state.jobs.get(&ticket.id).map_or(&none, |job| &job.comments);
        let people = |comment: &&Comment| {
            !is_ours(secret, &ticket.id, comment, known) && is_trusted(&comment.author, self.policy)
        };
        let told = ticket.known_comments().iter().filter(people);
        told.filter_map(|one| instructions::told_in(one, RemarkKind::TicketComment, self.policy, self.now)).collect()
    }

    /// Returns what people wrote and was not taken in yet, in order, and marks all of it as known.
    fn news_in(&self, ticket: &Ticket, facts: &mut TicketFacts, secret: &str) -> Vec<News> {
        let Some(job) = self.state.jobs.get(&ticket.id) else { return Vec::new() };
        let starting = is_starting(job, &self.state.runs);
        let mut news = Vec::new();
        for comment in ticket.known_comments() {
            if facts.knows(comment) {
                continue;
            }
            facts.take_in(comment);
            if is_ours(secret, &ticket.id, comment, &job.comments) {
                continue;
            }
            let trusted = is_trusted(&comment.author, self.policy);
            let told = instructions::told_in(comment, RemarkKind::TicketComment, self.policy, self.now).map(|told| {
                let named = &job.people.named;
                let sees = seen_before(comment, ticket.known_comments(), RemarkKind::TicketComment, named);
                News::Told { told: Told { sees, ..told }, trusted }
            });
            let said = || remarks::said_in(RemarkKind::TicketComment, comment, self.policy, self.now);
            let mut reading = trusted.then(said).flatten();
            if let (true, Some(RemarkReading::Said(remark))) = (starting, &mut reading) {
                // The comment is part of the task, not a remark about waiting work.
                remark.effect = RemarkEffect::None;
            }
            // What a comment withdraws is handled before its instructions, and what it says besides them is handled after.
            match reading {
                Some(reading @ RemarkReading::Said(_)) => news.extend(told.into_iter().chain([News::Reading(reading)])),
                reading => news.extend(reading.map(News::Reading).into_iter().chain(told)),
            }
        }
        news
    }

    fn take_news(&mut self, id: &TicketId, news: Vec<News>) {
        let now = self.now;
        for one in news {
            match one {
                News::Told { told, trusted } => self.told(id, &told, trusted),
                News::Reading(RemarkReading::Said(remark)) => self.remark_came(id, remark),
                News::Reading(reading) => {
                    self.state.jobs.edit(id, |job| remarks::take_in(job, reading, now));
                }
            }
        }
    }

    /// Takes in people's words from an outdated reading. Words count however old the reading is, because a newer reading does not withdraw
    /// them.
    fn hear_words(&mut self, ticket: &Ticket) {
        let Some(job) = self.state.jobs.get(&ticket.id).filter(|job| !job.ticket.unheard) else { return };
        if ticket.known_comments().iter().all(|comment| job.ticket.knows(comment)) {
            return;
        }
        let mut facts = job.ticket.clone();
        let secret = self.state.meta.comment_key.clone();
        let news = self.news_in(ticket, &mut facts, &secret);
        self.state.jobs.edit(&ticket.id, |job| job.ticket.known_comments = facts.known_comments);
        self.take_news(&ticket.id, news);
    }

    /// Has the ticket read again until a reading is settled.
    pub fn ask_again(&mut self, id: &TicketId) -> Unsettled {
        if let Some(known) = self.state.unsettled.get(id) {
            return *known;
        }
        let doubt = Unsettled { since: self.now, moment: self.state.next_moment() };
        self.state.unsettled.insert(id.clone(), doubt);
        doubt
    }

    /// Whether old readings of this ticket have lasted so long that they are believed. A reading that was asked for before the doubt arose
    /// does not show how long it lasts.
    pub(super) fn has_lasted(&mut self, id: &TicketId, basis: Basis) -> bool {
        let doubt = self.ask_again(id);
        // After a clock was put back the wait starts again, but does not last for ever.
        let since = doubt.since.min(self.now);
        if self.now.since(since) < SETTLE || !basis.is_after(doubt.moment) {
            self.state.unsettled.insert(id.clone(), Unsettled { since, ..doubt });
            return false;
        }
        self.state.unsettled.remove(id);
        self.note(Some(id), "settled", "the tracker keeps showing something older than before; it is believed now");
        true
    }

    /// Notes the ticket's current state with its live run, because per-state slots are counted by it.
    pub fn follow_run(&mut self, id: &TicketId, state: &str) {
        let Some(run) = self.state.jobs.get(id).and_then(|job| job.stage.run()).cloned() else { return };
        self.state.runs.edit(&run, |live| live.ticket_state = state.to_owned());
    }

    fn adopt(&mut self, facts: TicketFacts, proposed: Option<&str>) {
        let key = facts.key.as_str();
        let proposed = proposed.filter(|_| self.policy.branch_by_tracker).and_then(|name| proposed_branch(name, key));
        let name = proposed.unwrap_or_else(|| branch_name(&self.policy.branch_prefix, key, &facts.title, 0));
        let id = facts.id.clone();
        let job = Job::new(facts, BranchName { name, generation: 0 }, self.now);
        self.note(Some(&id), "seen", format!("{} came onto the board: {}", job.ticket.key, job.ticket.title));
        self.state.jobs.insert(job);
    }
}

/// One piece of news that a comment brings.
enum News {
    Told { told: Told, trusted: bool },
    Reading(RemarkReading),
}

/// Whether the first run is not at work yet. Until then, what people write is part of the task.
pub(super) fn is_starting(job: &Job, runs: &Runs) -> bool {
    match &job.stage {
        Stage::Queued { .. } => job.attempts == 0,
        Stage::Working { run, .. } => {
            job.attempts == 1 && runs.get(run).is_some_and(|live| matches!(live.life, Life::Spawning))
        }
        _ => false,
    }
}

fn trusted_comments(ticket: &Ticket, secret: &str, known: Option<&OurComments>, policy: &Policy) -> u64 {
    let none = OurComments::new();
    let known = known.unwrap_or(&none);
    let counts = |comment: &&Comment| {
        is_trusted(&comment.author, policy)
            && !is_ours(secret, &ticket.id, comment, known)
            && instructions::is_evidence(comment, policy)
    };
    let versions: Vec<String> = ticket
        .known_comments()
        .iter()
        .filter(counts)
        .flat_map(|comment| [comment.id.to_string(), comment.version()])
        .collect();
    stable_hash(&versions.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Whether the runner still needs to know where the ticket is.
fn cares_about_ticket(job: &Job) -> bool {
    match &job.stage {
        Stage::Released { .. } => false,
        Stage::Done { ticket_closed, .. } => !ticket_closed,
        _ => true,
    }
}

/// Returns what the ticket's column and labels mean for its job. `counts`: whether somebody whose words count has just moved it there.
fn what_it_means(facts: &TicketFacts, counts: bool, policy: &Policy) -> Vec<Observation> {
    let state = facts.state.clone();
    if select::is_terminal(&state, policy) {
        return vec![Observation::TicketTerminal { state }];
    }
    let mut found = Vec::new();
    if let Some(because) = select::lost_eligibility(facts, policy) {
        return vec![Observation::TicketNotEligible { because }];
    }
    if counts && state_in(&state, &policy.orchestration.rework_states) {
        found.push(Observation::TicketMovedToRework { state: state.clone() });
    }
    if !select::is_live(&state, policy) {
        found.push(Observation::TicketNotActive { state });
    } else if select::is_active(&state, policy) {
        if counts && !state_in(&state, &policy.orchestration.rework_states) {
            found.push(Observation::TicketReactivated);
        }
        found.push(Observation::TicketActive);
    }
    found
}
