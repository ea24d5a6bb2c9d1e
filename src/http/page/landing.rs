//! The tickets on their way to the base branch, and the merge conditions that each still lacks.

use serde::Serialize;

use super::words::{AgeView, clip, segment, sentence};
use crate::domain::condition::{Condition, ConditionStatus};
use crate::domain::phase::Phase;
use crate::domain::snapshot::{JobView, Snapshot};
use crate::domain::time::Timestamp;

const SHOWN: usize = 8;

#[derive(Debug, Clone, Serialize)]
pub struct LandingView {
    pub jobs: Vec<LandingTicket>,
    pub rest: usize,
}

#[derive(Debug, Clone, Serialize)]
pub struct LandingTicket {
    pub key: String,
    pub path: String,
    pub title: String,
    pub phase: &'static str,
    pub words: &'static str,
    pub number: Option<u64>,
    pub holds: usize,
    pub all: usize,
    /// The conditions that do not hold, in the order in which they are checked.
    pub lacks: Vec<ConditionLine>,
}

#[derive(Debug, Clone, Serialize)]
pub struct ConditionLine {
    pub name: &'static str,
    pub status: &'static str,
    /// The status in words, for people who cannot see the sign.
    pub words: &'static str,
    pub sign: &'static str,
    pub detail: String,
    pub since: AgeView,
}

pub fn condition(condition: &Condition, now: Timestamp) -> ConditionLine {
    let (words, sign) = match condition.status {
        ConditionStatus::Pass => ("holds", "✓"),
        ConditionStatus::Pending => ("pending", "…"),
        ConditionStatus::Fail => ("does not hold", "✗"),
    };
    ConditionLine {
        name: condition.name.name(),
        status: condition.status.name(),
        words,
        sign,
        detail: condition.detail.as_deref().map(|detail| sentence(detail, 160)).unwrap_or_default(),
        since: AgeView::of(condition.since, now),
    }
}

/// Returns the tickets with merge conditions: those being merged first, then those that are ready, then the waiting ones.
pub fn landing(picture: &Snapshot) -> LandingView {
    let mut jobs: Vec<&JobView> = picture.jobs.iter().filter(|job| !job.conditions.is_empty()).collect();
    jobs.sort_by_key(|job| (place(job), job.since, job.key.as_str()));
    LandingView {
        rest: jobs.len().saturating_sub(SHOWN),
        jobs: jobs.into_iter().take(SHOWN).map(|job| landable(job, picture.at)).collect(),
    }
}

fn place(job: &JobView) -> (u8, usize) {
    let stage = match job.phase {
        Phase::Merging => 0,
        Phase::ReadyToMerge => 1,
        _ => 2,
    };
    (stage, job.conditions.iter().filter(|condition| !condition.passes()).count())
}

fn landable(job: &JobView, now: Timestamp) -> LandingTicket {
    let lacks: Vec<_> = job.conditions.iter().filter(|condition| !condition.passes()).collect();
    LandingTicket {
        key: job.key.clone(),
        path: segment(&job.key),
        title: clip(&job.title, 60),
        phase: job.phase.name(),
        words: job.phase.words(),
        number: job.pr.as_ref().map(|pr| pr.number),
        holds: job.conditions.len() - lacks.len(),
        all: job.conditions.len(),
        lacks: lacks.into_iter().map(|lack| condition(lack, now)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn what_is_nearest_to_its_merge_comes_first() {
        let mut picture = sample::picture();
        picture.jobs = vec![
            sample::finished("waits", Phase::WaitingForHuman),
            sample::finished("merges", Phase::Merging),
            sample::finished("ready", Phase::ReadyToMerge),
            sample::job("queued", Phase::Queued, "no request yet"),
        ];
        let landing = landing(&picture);
        assert_eq!(landing.jobs.iter().map(|job| job.key.as_str()).collect::<Vec<_>>(), ["merges", "ready", "waits"]);
        let waits = &landing.jobs[2];
        assert_eq!((waits.holds, waits.all, waits.lacks[0].name), (1, 2, "approval"));
    }
}
