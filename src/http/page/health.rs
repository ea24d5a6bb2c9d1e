//! The summary at the top of the page: whether all is well, and otherwise the worst problem first.

use serde::Serialize;

use super::needs;
use super::words::{AgeView, clip, count, money, sentence, tokens};
use crate::domain::job::SwitchSource;
use crate::domain::snapshot::{LaneView, Snapshot};

/// How serious something is, from least to most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum HealthLevel {
    Well,
    /// Something waits for a person.
    Waits,
    /// A person stopped it.
    Held,
    /// Something is broken, and a person has to repair it.
    Trouble,
}

/// The summary.
#[derive(Debug, Clone, Serialize)]
pub struct Glance {
    pub level: HealthLevel,
    pub sentence: String,
    /// The notice that `sentence` is about. `None` if it is about no notice.
    pub main: Option<HealthNotice>,
    /// What else is true, as a second line.
    pub also: String,
    /// Whether everything is paused by a command. Then the pause button resumes.
    pub paused: bool,
    pub notices: Vec<HealthNotice>,
    pub facts: Vec<GlanceFact>,
}

/// Something to know before looking at tickets.
#[derive(Debug, Clone, Serialize)]
pub struct HealthNotice {
    pub level: HealthLevel,
    pub text: String,
    pub detail: Option<String>,
    pub since: Option<AgeView>,
    /// The button that ends it, if there is one.
    pub lift: Option<LiftButton>,
}

#[derive(Debug, Clone, Serialize)]
pub struct LiftButton {
    pub path: String,
    pub label: String,
}

/// One figure in the line below the summary.
#[derive(Debug, Clone, Serialize)]
pub struct GlanceFact {
    pub name: &'static str,
    pub value: String,
    pub unit: String,
    pub since: Option<AgeView>,
}

pub fn verdict(picture: &Snapshot) -> Glance {
    let mut notices = notices(picture);
    let waiting = picture.jobs.iter().filter(|job| needs::needs_a_person(job)).count();
    // The notices are sorted, the worst first.
    let is_worse = notices.first().is_some_and(|worst| worst.level >= HealthLevel::Held);
    let main = is_worse.then(|| notices.remove(0));
    let waits = match waiting {
        0 => None,
        1 => Some("1 ticket waits for you".to_owned()),
        many => Some(format!("{many} tickets wait for you")),
    };
    let works = at_work(picture);
    let (level, sentence, also) = match (&main, waits) {
        (Some(worst), waits) => (worst.level, worst.text.clone(), waits.into_iter().chain([works]).collect()),
        (None, Some(waits)) => (HealthLevel::Waits, waits, vec![works]),
        (None, None) => (HealthLevel::Well, "All is well".to_owned(), vec![works]),
    };
    Glance {
        level,
        sentence,
        main,
        also: also.join(" · "),
        paused: picture.switches.iter().any(|switch| switch.source == SwitchSource::PauseAll),
        notices,
        facts: facts(picture),
    }
}

fn at_work(picture: &Snapshot) -> String {
    let counts = &picture.counts;
    let open = counts.queued + counts.retrying;
    match (counts.running, open) {
        (0, 0) => "nobody is at work".to_owned(),
        (0, open) => format!("nobody is at work, {open} in the queue"),
        (running, 0) => format!("{} at work", count(running, "agent", "agents")),
        (running, open) => format!("{} at work, {open} in the queue", count(running, "agent", "agents")),
    }
}

fn notice(level: HealthLevel, text: impl Into<String>) -> HealthNotice {
    HealthNotice { level, text: text.into(), detail: None, since: None, lift: None }
}

const DETAIL: usize = 400;

/// Returns all notices, the worst first.
fn notices(picture: &Snapshot) -> Vec<HealthNotice> {
    let now = picture.at;
    let mut all = Vec::new();
    let mut trouble = |text: &str, error: &str| {
        all.push(HealthNotice { detail: Some(sentence(error, DETAIL)), ..notice(HealthLevel::Trouble, text) });
    };
    if let Some(error) = &picture.ledger_error {
        trouble("Nothing is changed: the ledger cannot be written", error);
    }
    if let Some(error) = &picture.workflow.reload_error {
        trouble("WORKFLOW.md as it is now is not in force", error);
    }
    if let Some(error) = &picture.tracker.last_error {
        trouble("The board cannot be read", error);
    }
    for lane in picture.lanes.iter().filter(|lane| lane.locked_out || lane.last_error.is_some()) {
        // The notice about the board says the same.
        if lane.lane == "tracker" && picture.tracker.last_error.is_some() && !lane.locked_out {
            continue;
        }
        let error = lane.last_error.as_deref().unwrap_or("it said no more");
        trouble(&lane_words(lane), error);
    }
    all.extend(switches(picture));
    if !picture.tracker.left_out.is_empty() {
        let left_out = &picture.tracker.left_out;
        let first = left_out.iter().take(5).map(|line| clip(line, 160)).collect::<Vec<_>>().join(" · ");
        let text = format!("{} cannot be read", count(left_out.len(), "ticket", "tickets"));
        all.push(HealthNotice { detail: Some(first), ..notice(HealthLevel::Waits, text) });
    }
    for pool in &picture.pools {
        if let Some(until) = pool.paused_until {
            let text = format!("The usage limit of {} is reached", pool.pool);
            let detail = format!("it goes on in {}", AgeView::until(until, now).words);
            all.push(HealthNotice { detail: Some(detail), ..notice(HealthLevel::Waits, text) });
        }
    }
    if picture.rollout == "observe" {
        let detail = "rollout.mode is observe: what would be done is shown, nothing is written outside";
        all.push(HealthNotice { detail: Some(detail.to_owned()), ..notice(HealthLevel::Well, "It only watches") });
    }
    if picture.tracker.last_ok.is_none() && picture.tracker.last_error.is_none() {
        all.push(notice(HealthLevel::Well, "The board has not been read yet"));
    }
    all.sort_by_key(|notice| std::cmp::Reverse(notice.level));
    all
}

fn lane_words(lane: &LaneView) -> String {
    if lane.locked_out {
        format!("Our access to the {} is refused", lane.lane)
    } else {
        format!("Calls to the {} fail", lane.lane)
    }
}

/// Returns a notice for every switch that people pulled to stop things, with its source and age.
fn switches(picture: &Snapshot) -> impl Iterator<Item = HealthNotice> + '_ {
    let now = picture.at;
    let (global, of_tickets): (Vec<_>, Vec<_>) = picture
        .switches
        .iter()
        .partition(|switch| matches!(switch.source, SwitchSource::File | SwitchSource::PauseAll));
    let global = global.into_iter().map(move |switch| {
        let (text, lift) = match switch.source {
            SwitchSource::PauseAll => {
                ("Everything is paused", Some(LiftButton { path: "/api/v1/resume".into(), label: "Resume".into() }))
            }
            _ => ("Everything is stopped", None),
        };
        HealthNotice {
            detail: Some(switch.source.name().to_owned()),
            since: Some(AgeView::of(switch.since, now)),
            lift,
            ..notice(HealthLevel::Held, text)
        }
    });
    const SHOWN: usize = 5;
    let more = of_tickets.len().saturating_sub(SHOWN);
    let single = of_tickets.into_iter().take(SHOWN).map(move |switch| {
        let lift = (switch.source == SwitchSource::PauseTicket).then(|| LiftButton {
            path: format!("/api/v1/{}/resume", super::words::segment(&switch.subject)),
            label: format!("Resume {}", switch.subject),
        });
        HealthNotice {
            detail: Some(switch.source.name().to_owned()),
            since: Some(AgeView::of(switch.since, now)),
            lift,
            ..notice(HealthLevel::Waits, format!("{} is held", switch.subject))
        }
    });
    let rest = (more > 0).then(|| notice(HealthLevel::Waits, format!("{more} more tickets are held")));
    global.chain(single).chain(rest)
}

fn facts(picture: &Snapshot) -> Vec<GlanceFact> {
    let counts = &picture.counts;
    let plain = |name, value: String, unit: &str| GlanceFact { name, value, unit: unit.to_owned(), since: None };
    let slots = if picture.slots == 0 { String::new() } else { format!("of {} slots", picture.slots) };
    let today = &picture.totals.today;
    let mut all = vec![
        plain("Running", counts.running.to_string(), &slots),
        plain("Queued", (counts.queued + counts.retrying).to_string(), &retrying(counts.retrying)),
        plain("Waiting", counts.waiting.to_string(), ""),
        plain("Blocked", counts.blocked.to_string(), ""),
        plain("Done", counts.done.to_string(), ""),
        plain("Today", tokens(today.tokens()), &format!("tokens, {}", money(today.cost_microusd))),
        plain("Mode", picture.rollout.clone(), ""),
    ];
    all.push(match picture.tracker.last_ok {
        Some(at) => {
            GlanceFact { since: Some(AgeView::of(at, picture.at)), ..plain("Board read", String::new(), "ago") }
        }
        None => plain("Board read", "never".to_owned(), ""),
    });
    all
}

fn retrying(count: usize) -> String {
    if count == 0 { String::new() } else { format!("{count} after a failure") }
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;
    use crate::domain::phase::Phase;
    use crate::domain::snapshot::SwitchView;
    use crate::domain::time::Timestamp;

    fn of(picture: &Snapshot) -> (HealthLevel, String) {
        let verdict = verdict(picture);
        (verdict.level, verdict.sentence)
    }

    #[test]
    fn the_worst_stands_first() {
        let mut picture = sample::picture();
        picture.jobs.retain(|job| job.phase == Phase::Done);
        assert_eq!(of(&picture), (HealthLevel::Well, "All is well".to_owned()));
        picture.jobs.push(sample::job("T-9", Phase::Blocked, "Paint the door"));
        assert_eq!(of(&picture), (HealthLevel::Waits, "1 ticket waits for you".to_owned()));
        picture.switches.push(SwitchView {
            source: SwitchSource::PauseAll,
            subject: "everything".to_owned(),
            since: Timestamp(0),
        });
        assert_eq!(of(&picture), (HealthLevel::Held, "Everything is paused".to_owned()));
        assert!(verdict(&picture).paused);
        picture.workflow.reload_error = Some("line 3".to_owned());
        assert_eq!(of(&picture).0, HealthLevel::Trouble);
        picture.ledger_error = Some("disk full".to_owned());
        assert_eq!(of(&picture).1, "Nothing is changed: the ledger cannot be written");
        assert!(verdict(&picture).also.starts_with("1 ticket waits for you"));
    }
}
