//! What there is to tell people, read from one snapshot. The id of a notice holds the occasion, the ticket and since when it is true, so
//! the same fact in a later snapshot is the same notice.

use crate::config::notify::Occasion;
use crate::domain::ids::TicketId;
use crate::domain::phase::Phase;
use crate::domain::snapshot::{JobView, Snapshot};
use crate::domain::time::Timestamp;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    pub id: String,
    pub occasion: Occasion,
    pub ticket: Option<TicketId>,
    pub key: Option<String>,
    pub title: String,
    pub sentence: String,
    pub next: Option<String>,
    pub url: Option<String>,
    pub at: Timestamp,
}

pub fn notices(picture: &Snapshot) -> Vec<Notice> {
    let mut all: Vec<Notice> = picture.jobs.iter().flat_map(of_job).collect();
    all.extend(spent_day(picture));
    all
}

fn of_job(job: &JobView) -> Vec<Notice> {
    let since = job.since.0;
    let mut found = Vec::new();
    match job.phase {
        Phase::Blocked if job.reason == "budget_exceeded" => found.push(notice(job, Occasion::Budget, since)),
        Phase::Blocked => found.push(notice(job, Occasion::Blocked, since)),
        Phase::Done => found.push(notice(job, Occasion::Done, since)),
        Phase::WaitingForHuman => found.push(notice(job, Occasion::Waiting, since)),
        Phase::Queued if job.reason == "retry" => found.push(notice(job, Occasion::Failed, i64::from(job.attempts))),
        _ => {}
    }
    if let Some(run) = &job.run
        && let Some(quiet) = run.quiet_since
    {
        let sentence = format!("its run has been silent since {}", crate::publish::time_text(quiet));
        found.push(Notice { sentence, next: None, ..notice(job, Occasion::Stuck, quiet.0) });
    }
    found
}

fn notice(job: &JobView, occasion: Occasion, mark: i64) -> Notice {
    Notice {
        id: format!("{}:{}:{mark}", occasion.name(), job.id),
        occasion,
        ticket: Some(TicketId::new(job.id.clone())),
        key: Some(job.key.clone()),
        title: job.title.clone(),
        sentence: job.sentence.clone(),
        next: Some(job.next.clone()).filter(|next| !next.is_empty() && !next.starts_with("nothing")),
        url: job.pr.as_ref().and_then(|pr| pr.url.clone()).or_else(|| job.url.clone()),
        at: job.since,
    }
}

/// Returns the notice that the day's budget is spent. It belongs to no ticket and is sent once for each day of the
/// budget.
fn spent_day(picture: &Snapshot) -> Option<Notice> {
    let waits = picture.jobs.iter().find(|job| job.reason == "daily_budget")?;
    Some(Notice {
        id: format!("budget:day:{}", picture.totals.day_ends_at.0),
        occasion: Occasion::Budget,
        ticket: None,
        key: None,
        title: "The day's budget".into(),
        sentence: waits.sentence.clone(),
        next: Some(waits.next.clone()),
        url: None,
        at: picture.at,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Settings;
    use crate::domain::job::{BranchName, Job, TicketFacts};
    use crate::domain::time::LocalDays;
    use crate::engine::state::State;

    #[test]
    fn a_spent_day_is_told_once_and_it_is_the_day_of_the_budget() {
        const HOUR: i64 = 3_600_000;
        let mut policy = Settings::default().policy("", false);
        policy.budget.days = LocalDays::new(vec![(Timestamp(0), 9 * HOUR)]);
        let mut state = State::default();
        let branch = BranchName { name: "b".into(), generation: 0 };
        let facts: TicketFacts = serde_json::from_value(serde_json::json!({
            "id": "t1", "key": "T-1", "title": "One", "state": "open", "labels": [], "blocked_by": [], "dispatchable": {"is": "yes"}
        }))
        .unwrap();
        state.jobs.insert(Job::new(facts, branch, Timestamp(1)));
        let told_at = |hour: i64| {
            let mut picture = crate::engine::snapshot(&state, &policy, Timestamp(hour * HOUR));
            picture.jobs[0].reason = "daily_budget".into();
            spent_day(&picture).expect("the day is spent").id
        };
        // Local midnight is at 15:00 UTC.
        assert_eq!(told_at(16), told_at(30), "midnight in UTC lies between");
        assert_ne!(told_at(14), told_at(16), "local midnight lies between");
    }
}
