//! The board by phase. Of each phase, some tickets are shown as cards, more as lines, and all on a page of its own. So the first page stays
//! small for any size of board.

use serde::Serialize;

use super::words::{AgeView, clip, segment, sentence};
use crate::domain::phase::Phase;
use crate::domain::snapshot::{JobView, Snapshot};
use crate::domain::time::Timestamp;

/// How many cards the first page shows, over all phases.
const CARDS: usize = 26;
/// How many lines the first page shows, over all phases.
const LINES: usize = 90;
/// How many finished tickets are shown as cards, the newest first.
const DONE: usize = 6;

#[derive(Debug, Clone, Serialize)]
pub struct BoardView {
    pub columns: Vec<PhaseColumn>,
    /// The phases without tickets.
    pub empty: String,
    pub tickets: usize,
}

#[derive(Debug, Clone, Serialize)]
pub struct PhaseColumn {
    pub phase: &'static str,
    pub words: &'static str,
    pub count: usize,
    pub cards: Vec<TicketCard>,
    pub lines: Vec<TicketLine>,
    /// How many tickets are not shown.
    pub rest: usize,
}

#[derive(Debug, Clone, Serialize)]
pub struct TicketCard {
    pub key: String,
    pub path: String,
    pub title: String,
    pub age: AgeView,
    pub why: String,
    /// What would move the ticket on. `None` if nobody has to do anything.
    pub next: Option<String>,
    pub labels: Vec<String>,
}

/// A ticket shown as one line.
#[derive(Debug, Clone, Serialize)]
pub struct TicketLine {
    pub key: String,
    pub path: String,
    pub title: String,
}

impl TicketLine {
    pub fn of(job: &JobView) -> Self {
        Self { key: job.key.clone(), path: segment(&job.key), title: clip(&job.title, 48) }
    }
}

/// The order of the columns: the way of a ticket.
const ORDER: [Phase; 10] = [
    Phase::Queued,
    Phase::Implementing,
    Phase::Rework,
    Phase::Reviewing,
    Phase::WaitingForChecks,
    Phase::WaitingForHuman,
    Phase::ReadyToMerge,
    Phase::Merging,
    Phase::Blocked,
    Phase::Done,
];

pub fn board(picture: &Snapshot) -> BoardView {
    let by_phase: Vec<(Phase, Vec<&JobView>)> =
        ORDER.into_iter().map(|phase| (phase, of_phase(picture, phase))).collect();
    let filled = by_phase.iter().filter(|(_, jobs)| !jobs.is_empty()).count().max(1);
    let empty: Vec<&str> =
        by_phase.iter().filter(|(_, jobs)| jobs.is_empty()).map(|(phase, _)| phase.words()).collect();
    let (cards, lines) = (CARDS / filled, LINES / filled);
    let columns = by_phase.iter().filter(|(_, jobs)| !jobs.is_empty()).map(|(phase, jobs)| {
        let cards = if *phase == Phase::Done { cards.min(DONE) } else { cards };
        PhaseColumn {
            phase: phase.name(),
            words: phase.words(),
            count: jobs.len(),
            cards: jobs.iter().take(cards).map(|job| card(job, picture.at)).collect(),
            lines: jobs.iter().skip(cards).take(lines).map(|job| TicketLine::of(job)).collect(),
            rest: jobs.len().saturating_sub(cards + lines),
        }
    });
    BoardView {
        columns: columns.collect(),
        empty: empty.join(", "),
        tickets: picture.jobs.iter().filter(|job| job.phase != Phase::Released).count(),
    }
}

/// Returns all tickets of one phase as cards, for the phase's own page.
pub fn column(picture: &Snapshot, phase: Phase) -> PhaseColumn {
    let jobs = of_phase(picture, phase);
    PhaseColumn {
        phase: phase.name(),
        words: phase.words(),
        count: jobs.len(),
        cards: jobs.iter().map(|job| card(job, picture.at)).collect(),
        lines: Vec::new(),
        rest: 0,
    }
}

/// Returns the tickets of a phase, the urgent ones first, then the oldest. Finished ones: the newest first.
fn of_phase(picture: &Snapshot, phase: Phase) -> Vec<&JobView> {
    let mut jobs: Vec<&JobView> = picture.jobs.iter().filter(|job| job.phase == phase).collect();
    let urgency = |job: &JobView| job.priority.filter(|priority| (1..=4).contains(priority)).unwrap_or(5);
    if phase.is_terminal() {
        jobs.sort_by_key(|job| (std::cmp::Reverse(job.since), job.key.as_str()));
    } else {
        jobs.sort_by_key(|job| (urgency(job), job.since, job.key.as_str()));
    }
    jobs
}

fn card(job: &JobView, now: Timestamp) -> TicketCard {
    TicketCard {
        key: job.key.clone(),
        path: segment(&job.key),
        title: clip(&job.title, 80),
        age: AgeView::of(job.since, now),
        why: sentence(&job.sentence, 130),
        next: Some(sentence(&job.next, 110)).filter(|next| !next.starts_with("nothing") && !job.phase.is_terminal()),
        labels: job.labels.iter().take(3).map(|label| clip(label, 24)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn every_ticket_is_counted_once_however_many_there_are() {
        let picture = sample::many(500);
        let board = board(&picture);
        let shown: usize =
            board.columns.iter().map(|column| column.cards.len() + column.lines.len() + column.rest).sum();
        assert_eq!((shown, board.tickets), (500, 500));
        let cards = board.columns.iter().flat_map(|column| &column.cards).map(|card| &card.key);
        let lines = board.columns.iter().flat_map(|column| &column.lines).map(|line| &line.key);
        let keys: Vec<&String> = cards.chain(lines).collect();
        assert_eq!(keys.iter().collect::<std::collections::BTreeSet<_>>().len(), keys.len(), "no ticket twice");
        assert!(board.columns.iter().all(|column| column.count >= column.cards.len()));
        let cards: usize = board.columns.iter().map(|column| column.cards.len()).sum();
        assert!(cards <= CARDS, "{cards}");
    }

    #[test]
    fn urgent_tickets_come_first_and_of_what_is_over_the_newest() {
        let mut picture = sample::picture();
        let at = |key: &str, phase, since, priority| JobView {
            since: Timestamp(since),
            priority,
            ..sample::job(key, phase, "x")
        };
        picture.jobs = vec![
            at("a", Phase::Queued, 2, None),
            at("b", Phase::Queued, 1, None),
            at("c", Phase::Queued, 3, Some(1)),
            at("d", Phase::Done, 1, None),
            at("e", Phase::Done, 2, None),
        ];
        let keys = |phase| column(&picture, phase).cards.into_iter().map(|card| card.key).collect::<Vec<_>>();
        assert_eq!(keys(Phase::Queued), ["c", "b", "a"]);
        assert_eq!(keys(Phase::Done), ["e", "d"]);
    }
}
