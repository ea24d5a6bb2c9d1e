//! `GET /metrics`: metrics in Prometheus' text format. A test checks that docs/metrics.md documents each name, and no other.

use std::collections::BTreeMap;
use std::fmt::{Display, Write as _};
use std::sync::{Arc, Mutex, PoisonError};

use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::response::Response;

use super::Site;
use crate::domain::phase::Phase;
use crate::domain::snapshot::{JobView, Snapshot};
use crate::domain::time::Timestamp;
use crate::runtime::{BOUNDS, Distribution, Handle, Histogram, Meters, now};

/// Measures how long tickets stay in a phase, from published pictures.
#[derive(Debug, Default)]
pub struct PhaseClock {
    spent: Mutex<BTreeMap<&'static str, Arc<Histogram>>>,
}

impl PhaseClock {
    /// Starts a task that follows the pictures until the driver is gone.
    pub fn start(handle: &Handle) -> Arc<Self> {
        let clock = Arc::new(Self::default());
        let (following, mut snapshots) = (clock.clone(), handle.snapshots.clone());
        tokio::spawn(async move {
            let mut known: BTreeMap<String, (Phase, Timestamp)> = BTreeMap::new();
            loop {
                let picture = snapshots.newest();
                known = following.see(known, picture.views());
                if snapshots.changed().await.is_err() {
                    return;
                }
            }
        });
        clock
    }

    fn see(
        &self,
        mut before: BTreeMap<String, (Phase, Timestamp)>,
        jobs: impl Iterator<Item = JobView>,
    ) -> BTreeMap<String, (Phase, Timestamp)> {
        let mut known = BTreeMap::new();
        for job in jobs {
            if let Some((phase, since)) = before.remove(&job.id).filter(|(phase, _)| *phase != job.phase) {
                let mut spent = self.spent.lock().unwrap_or_else(PoisonError::into_inner);
                spent.entry(phase.name()).or_default().observe(job.since.since(since));
            }
            known.insert(job.id, (job.phase, job.since));
        }
        known
    }
}

pub async fn metrics(State(site): State<Arc<Site>>) -> Response {
    let text = page(&site.handle.snapshot(), &site.handle.meters, &site.phases, now());
    let mut response = Response::new(Body::from(text));
    let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

fn page(picture: &Snapshot, meters: &Meters, phases: &PhaseClock, now: Timestamp) -> String {
    let mut page = Page::default();
    page.family("dirigent_up", "gauge", "1 while the runner is up");
    page.value(&[("version", env!("CARGO_PKG_VERSION")), ("rollout", &picture.rollout)], 1);

    page.family("dirigent_tickets", "gauge", "Tickets by phase");
    for phase in Phase::ALL {
        let count = picture.jobs.iter().filter(|job| job.phase == phase).count();
        page.value(&[("phase", phase.name())], count);
    }
    page.family("dirigent_runs_live", "gauge", "Runs that are alive");
    page.value(&[], picture.counts.running);
    page.family("dirigent_runs_total", "counter", "Runs that ended, by outcome");
    for (labels, count) in meters.runs.read() {
        if let [outcome, kind, runtime] = labels.as_slice() {
            page.value(&[("outcome", outcome), ("kind", kind), ("runtime", runtime)], count);
        }
    }
    page.family("dirigent_run_seconds", "histogram", "How long runs took");
    for ([kind, runtime], took) in meters.run_seconds.lock().unwrap_or_else(PoisonError::into_inner).iter() {
        page.histogram(&[("kind", kind), ("runtime", runtime)], &took.read());
    }
    page.family("dirigent_phase_seconds", "histogram", "How long tickets stayed in a phase that they have left");
    for (phase, spent) in phases.spent.lock().unwrap_or_else(PoisonError::into_inner).iter() {
        page.histogram(&[("phase", phase)], &spent.read());
    }

    let waiting = picture.jobs.iter().filter(|job| job.phase == Phase::Queued).map(|job| now.since(job.since));
    let ages: Vec<f64> = waiting.map(|age| age.as_secs_f64()).collect();
    page.family("dirigent_queue_age_seconds", "gauge", "Age of the oldest ticket that waits for a run");
    page.value(&[], ages.iter().copied().fold(0.0, f64::max));
    page.family("dirigent_queue_age_seconds_sum", "gauge", "Ages of all tickets that wait for a run, together");
    page.value(&[], ages.iter().sum::<f64>());

    page.family(
        "dirigent_calls_total",
        "counter",
        "Calls to an adapter (tracker, forge, gates, workspace), by how they went",
    );
    for lane in &picture.lanes {
        page.value(&[("lane", &lane.lane), ("result", "ok")], lane.calls - lane.errors.min(lane.calls));
        page.value(&[("lane", &lane.lane), ("result", "error")], lane.errors);
    }
    page.family("dirigent_calls_waiting", "gauge", "Calls that wait for their place in the lane of an adapter");
    for lane in &picture.lanes {
        page.value(&[("lane", &lane.lane)], lane.waiting);
    }
    page.family("dirigent_lane_locked_out", "gauge", "1 where our access is refused");
    for lane in &picture.lanes {
        page.value(&[("lane", &lane.lane)], u8::from(lane.locked_out));
    }
    page.family("dirigent_board_read_age_seconds", "gauge", "How long ago the board could be read");
    if let Some(last) = picture.tracker.last_ok {
        page.value(&[], now.since(last).as_secs_f64());
    }

    let usage = &picture.totals.usage;
    page.family("dirigent_tokens_total", "counter", "Tokens of all runs that the ledger knows");
    for (kind, count) in [("input", usage.fresh_input), ("cached_input", usage.cached_input), ("output", usage.output)]
    {
        page.value(&[("kind", kind)], count);
    }
    page.family("dirigent_cost_usd_total", "counter", "What they cost, where the agent or `budget.prices` says it");
    page.value(&[], usage.cost_usd());
    page.family("dirigent_running_seconds_total", "counter", "Time of all runs together");
    page.value(&[], picture.totals.seconds_running);

    page.family("dirigent_pass_seconds", "histogram", "One pass of the scheduler: decisions, ledger, effects, picture");
    page.histogram(&[], &meters.pass.read());
    page.family("dirigent_publish_seconds", "histogram", "Building and publishing one picture of the state");
    page.histogram(&[], &meters.publish.read());
    page.family("dirigent_permit_refusals_total", "counter", "Changes that the gate refused, by effect and reason");
    for (labels, count) in meters.refusals.read() {
        if let [effect, reason] = labels.as_slice() {
            page.value(&[("effect", effect), ("reason", reason)], count);
        }
    }
    page.family("dirigent_effects_pending", "gauge", "Effects that are written down and not yet confirmed");
    page.value(&[], picture.pending_effects);
    page.family("dirigent_switches", "gauge", "Switches that stop something");
    page.value(&[], picture.switches.len());
    page.family("dirigent_ledger_failing", "gauge", "1 while the ledger cannot be written");
    page.value(&[], u8::from(picture.ledger_error.is_some()));
    page.text
}

#[derive(Debug, Default)]
struct Page {
    text: String,
    name: &'static str,
}

impl Page {
    fn family(&mut self, name: &'static str, kind: &str, help: &str) {
        self.name = name;
        let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn value(&mut self, labels: &[(&str, &str)], value: impl Display) {
        self.line("", labels, value);
    }

    fn line(&mut self, suffix: &str, labels: &[(&str, &str)], value: impl Display) {
        let shown: Vec<String> = labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
        let shown = if shown.is_empty() { String::new() } else { format!("{{{}}}", shown.join(",")) };
        let _ = writeln!(self.text, "{}{suffix}{shown} {value}", self.name);
    }

    fn histogram(&mut self, labels: &[(&str, &str)], read: &Distribution) {
        for (bound, count) in BOUNDS.iter().zip(&read.up_to) {
            let bound = bound.to_string();
            let with_bound: Vec<(&str, &str)> = labels.iter().copied().chain([("le", bound.as_str())]).collect();
            self.line("_bucket", &with_bound, count);
        }
        let rest: Vec<(&str, &str)> = labels.iter().copied().chain([("le", "+Inf")]).collect();
        self.line("_bucket", &rest, read.count);
        self.line("_sum", labels, read.sum);
        self.line("_count", labels, read.count);
    }
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::time::Duration;

    use super::*;

    fn names(text: &str) -> BTreeSet<String> {
        let word =
            |rest: &str| rest.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).next().unwrap_or("").to_owned();
        text.match_indices("dirigent_").map(|(at, _)| word(&text[at..])).collect()
    }

    #[test]
    fn every_metric_is_documented_and_every_documented_one_is_there() {
        let page = page(&Snapshot::default(), &Meters::default(), &PhaseClock::default(), Timestamp(0));
        let told: BTreeSet<String> = page
            .lines()
            .filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next())
            .map(str::to_owned)
            .collect();
        let documented = names(include_str!("../../docs/metrics.md"));
        assert_eq!(told, documented);
        let board = include_str!("../../docs/grafana.json");
        let shown = names(board);
        let known = |name: &String| {
            let bare =
                ["_bucket", "_sum", "_count"].iter().find_map(|suffix| name.strip_suffix(suffix)).unwrap_or(name);
            told.contains(name.as_str()) || told.contains(bare)
        };
        assert!(shown.len() > 8 && shown.iter().all(known), "{shown:?}");
        assert!(serde_json::from_str::<serde_json::Value>(board).is_ok());
    }

    #[test]
    fn what_is_counted_is_told_as_prometheus_reads_it() {
        let meters = Meters::default();
        meters.run_over("done", "implement", "co\"dex", Duration::from_secs(5));
        meters.refusals.add(&["merge_pr", "observe"]);
        let page = page(&Snapshot::default(), &meters, &PhaseClock::default(), Timestamp(0));
        for line in [
            "dirigent_runs_total{outcome=\"done\",kind=\"implement\",runtime=\"co\\\"dex\"} 1",
            "dirigent_run_seconds_bucket{kind=\"implement\",runtime=\"co\\\"dex\",le=\"1\"} 0",
            "dirigent_run_seconds_bucket{kind=\"implement\",runtime=\"co\\\"dex\",le=\"10\"} 1",
            "dirigent_run_seconds_bucket{kind=\"implement\",runtime=\"co\\\"dex\",le=\"+Inf\"} 1",
            "dirigent_run_seconds_sum{kind=\"implement\",runtime=\"co\\\"dex\"} 5",
            "dirigent_permit_refusals_total{effect=\"merge_pr\",reason=\"observe\"} 1",
            "dirigent_tickets{phase=\"queued\"} 0",
        ] {
            assert!(page.lines().any(|told| told == line), "{line}\n{page}");
        }
    }
}
