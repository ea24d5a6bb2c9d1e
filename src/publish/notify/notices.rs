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

/// Returns the notice that the day's budget is spent. It belongs to no ticket and is sent once per UTC day.
fn spent_day(picture: &Snapshot) -> Option<Notice> {
    let waits = picture.jobs.iter().find(|job| job.reason == "daily_budget")?;
    let day = picture.at.0.div_euclid(86_400_000);
    Some(Notice {
        id: format!("budget:day:{day}"),
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
