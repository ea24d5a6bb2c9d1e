//! What the runner reads: the board, tickets by id, pull requests, single remarks. Late, out of order, partial, from replicas.

use std::collections::BTreeMap;

use dirigent::domain::basis::Basis;
use dirigent::domain::hint::{Hint, RemarkId};
use dirigent::domain::ids::{CommentId, PrNumber, TicketId};
use dirigent::domain::lane::Lane;
use dirigent::domain::pr::PullRequest;
use dirigent::domain::remark::RemarkKind;
use dirigent::domain::ticket::{Ticket, state_in};
use dirigent::engine::event::{Event, Lookup, RemarkFound};
use dirigent::engine::select;

use super::engine::fixtures::commit;
use super::simulation::{Scheduled, Simulation};
use super::world::Stuck;

impl Simulation {
    /// Most answers are quick; some are overtaken by later ones.
    pub fn latency(&mut self, usual: u64) -> i64 {
        let slow = !self.peaceful && self.chance.one_in(25);
        5 + self.chance.below(if slow { 30_000 } else { usual }) as i64
    }

    /// Whether this object is read from a replica that lags.
    fn lags(&mut self) -> bool {
        self.faults.lag && self.chance.one_in(2)
    }

    /// What a question that leaves now rests on.
    fn basis(&self) -> Basis {
        let asked_at = if self.server_tells_time { self.outside_now() } else { self.now };
        Basis { asked_at, after: self.state.moment() }
    }

    /// Some answers come twice, the second time late.
    pub fn deliver(&mut self, latency: i64, event: Event) {
        let asked = Some(self.steps);
        if !self.peaceful && self.chance.one_in(20) {
            let late = latency + 1 + self.chance.below(30_000) as i64;
            self.schedule(self.now.0 + late, Scheduled::Deliver(event.clone(), asked));
        }
        self.schedule(self.now.0 + latency, Scheduled::Deliver(event, asked));
    }

    /// The lane tells once that nobody gets in.
    pub fn locked_out(&mut self, lane: Lane) {
        let event = Event::LanePaused { lane, until: None, why: "401".into(), locked_out: true };
        if !self.state.lanes.get(&lane).is_some_and(|health| health.locked_out) {
            self.later(1, event);
        }
    }

    /// Why the tracker does not answer, if it does not.
    fn tracker_fails(&mut self) -> bool {
        if self.world.tracker_locked {
            self.locked_out(Lane::Tracker);
        }
        self.world.tracker_locked || self.world.tracker_down
    }

    fn ticket_shown(&mut self, id: &TicketId) -> Option<Ticket> {
        let (lags, now) = (self.lags(), self.outside_now());
        let shown = self.world.shown(id, lags, now)?;
        Some(self.world.with_blockers(shown, lags, now))
    }

    pub fn poll(&mut self) {
        self.next_poll = self.now.0 + self.policy.polling_interval.as_millis() as i64;
        let latency = self.latency(3000);
        if self.tracker_fails() {
            self.later(latency, Event::PollFailed { error: "500".into() });
            return;
        }
        let ids: Vec<TicketId> = self.world.tickets.keys().cloned().collect();
        let mut board: Vec<Ticket> = ids.iter().filter_map(|id| self.ticket_shown(id)).collect();
        if self.faults.partial && self.chance.one_in(3) {
            // A listing need not bring the comments.
            board.iter_mut().for_each(|ticket| ticket.comments = None);
        }
        let basis = self.basis();
        if !self.peaceful && self.chance.one_in(20) {
            let at = self.now.0 + latency + 1 + self.chance.below(30_000) as i64;
            let event = Event::Polled { tickets: self.listed(&board), base: Some(commit("base")), basis };
            self.schedule(at, Scheduled::Deliver(event, Some(self.steps)));
        }
        self.schedule(self.now.0 + latency, Scheduled::Board { board, basis });
        if !self.peaceful && self.hints.one_in(4) {
            self.hint();
        }
        // The watcher of the kill-switch file tells what it sees from time to time, also when nothing changed.
        let file = self.world.kill_file;
        self.later(5, Event::SwitchesChanged { file });
    }

    /// A webhook tells of something before any replica shows it, or of nothing at all.
    fn hint(&mut self) {
        let ids: Vec<TicketId> = self.world.tickets.keys().cloned().collect();
        let ticket = self.hints.pick(&ids).clone();
        let changed_at = self.world.tickets.get(&ticket).and_then(|ticket| ticket.updated_at);
        let floor = changed_at.filter(|_| self.hints.one_in(2));
        let remark = RemarkId { kind: RemarkKind::Verdict, id: CommentId::new("deleted") };
        let number = PrNumber(1 + self.hints.below(4));
        let about_pr = Hint::PullRequest { number, floor: self.hints.one_in(4).then_some(remark) };
        let at = 1 + self.hints.below(20_000) as i64;
        self.later(at, Event::Hinted { hints: vec![Hint::Ticket { id: ticket, floor }, about_pr] });
    }

    fn listed(&self, board: &[Ticket]) -> Vec<Ticket> {
        let states = select::states_of_interest(&self.policy);
        board.iter().filter(|ticket| state_in(&ticket.state, &states)).cloned().collect()
    }

    /// A tracker that can tell says only what changed, or that nothing did.
    pub fn hear_of_the_board(&mut self, board: Vec<Ticket>, basis: Basis) {
        let base = Some(commit("base"));
        let told = self.told.take().filter(|_| self.chance.one_in(2));
        let Some(mut told) = told else {
            let mut tickets = self.listed(&board);
            // A tracker that pages can miss one, or show it twice, while somebody reorders the board.
            if self.faults.pages && !tickets.is_empty() {
                let at = self.chance.below(tickets.len() as u64) as usize;
                if self.chance.one_in(2) {
                    tickets.remove(at);
                } else {
                    let again = self.ticket_shown(&tickets[at].id.clone()).unwrap_or_else(|| tickets[at].clone());
                    tickets.push(again);
                }
            } else {
                self.told = Some(board.into_iter().map(|ticket| (ticket.id.clone(), ticket)).collect());
            }
            (self.list_basis, self.mark_is_kept) = (basis, false);
            self.tell(Event::Polled { tickets, base, basis });
            return;
        };
        let changed: Vec<Ticket> = board.into_iter().filter(|ticket| told.get(&ticket.id) != Some(ticket)).collect();
        told.extend(changed.iter().map(|ticket| (ticket.id.clone(), ticket.clone())));
        self.told = Some(told);
        if changed.is_empty() {
            let basis = self.list_basis;
            self.tell(Event::PolledUnchanged { base, basis });
        } else {
            (self.list_basis, self.mark_is_kept) = (basis, false);
            self.tell(Event::PolledChanges { tickets: changed, base, basis });
        }
    }

    pub fn refresh(&mut self, asked: &[TicketId]) {
        let latency = self.latency(2000);
        if self.tracker_fails() {
            self.later(latency, Event::PollFailed { error: "500".into() });
            return;
        }
        let found = asked.iter().map(|id| (id.clone(), self.look_up(id))).collect();
        let basis = self.basis();
        self.deliver(latency, Event::TicketsRefreshed { found, basis });
    }

    fn look_up(&mut self, id: &TicketId) -> Lookup {
        if self.faults.hides && self.chance.one_in(4) {
            return if self.chance.one_in(2) {
                Lookup::NotVisible
            } else {
                Lookup::Unreadable { because: "no state".into() }
            };
        }
        match self.ticket_shown(id) {
            Some(ticket) => Lookup::Found { ticket },
            None => Lookup::Gone { because: "nobody has it".into() },
        }
    }

    /// The ticket is read once more right before a start, from the tracker itself.
    pub fn read_before_start(&mut self, id: &TicketId) -> Option<Ticket> {
        let now = self.outside_now();
        let reading = self.world.tickets.get(id).map(|ticket| self.world.with_blockers(ticket, false, now));
        let lookup = match reading.clone() {
            Some(ticket) => Lookup::Found { ticket },
            None => Lookup::Gone { because: "nobody has it".into() },
        };
        let basis = self.basis();
        self.tell(Event::TicketsRefreshed { found: vec![(id.clone(), lookup)], basis });
        reading
    }

    /// A board that is known to have gone on since lists anew.
    pub fn doubt_the_list(&mut self, found: &[(TicketId, Lookup)]) {
        let known = |told: &BTreeMap<TicketId, Ticket>, lookup: &Lookup| match lookup {
            Lookup::Found { ticket } => told.get(&ticket.id) == Some(ticket),
            _ => true,
        };
        self.told.take_if(|told| found.iter().any(|(_, lookup)| !known(told, lookup)));
    }

    pub fn inspect(&mut self, ticket: TicketId, number: PrNumber) {
        let latency = self.latency(2000);
        if self.world.forge_locked {
            self.locked_out(Lane::Forge);
        }
        let stuck = self.world.stuck.as_ref().is_some_and(|(stuck, how)| *stuck == ticket && *how == Stuck::Look);
        if self.world.forge_locked || self.world.forge_down || stuck {
            self.later(latency, Event::PrLookFailed { ticket, number, error: "500".into() });
            return;
        }
        let (lags, now) = (self.lags(), self.outside_now());
        let Some(mut pr) = self.world.look(number.0, lags, now, &mut self.chance) else { return };
        self.spoil(&mut pr);
        let basis = self.basis();
        self.deliver(latency, Event::PrObserved { ticket, pr, basis });
    }

    fn spoil(&mut self, pr: &mut PullRequest) {
        if self.faults.partial && self.chance.one_in(2) {
            match self.chance.below(6) {
                0 => pr.checks = None,
                1 => pr.reviews = None,
                2 => pr.threads = None,
                3 => pr.comments = None,
                4 => pr.required_checks = None,
                _ => pr.ref_head = None,
            }
        }
        if self.faults.nobodys_head && self.chance.one_in(3) {
            pr.head = commit("nobodys");
        }
    }

    pub fn check_remark(&mut self, ticket: TicketId, kind: RemarkKind, id: CommentId) {
        let latency = self.latency(2000);
        let on_board = kind == RemarkKind::TicketComment;
        let locked = if on_board { self.world.tracker_locked } else { self.world.forge_locked };
        let down = if on_board { self.world.tracker_down } else { self.world.forge_down };
        if locked || down {
            return;
        }
        let hidden = self.faults.hides && self.chance.one_in(2);
        let found = match self.world.has_remark(&ticket, kind, &id) {
            _ if hidden => RemarkFound::NotVisible,
            true => RemarkFound::There,
            false => RemarkFound::Gone,
        };
        self.deliver(latency, Event::RemarkChecked { ticket, kind, id, found });
    }
}
