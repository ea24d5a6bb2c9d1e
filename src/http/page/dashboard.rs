//! The first page: what a person has to do, the summary, the board and everything else.

use serde::Serialize;

use super::board::{self, BoardView, PhaseColumn};
use super::frame::PageFrame;
use super::graph::{self, GraphView};
use super::health::{self, Glance};
use super::landing::{self, LandingView};
use super::needs::{self, NeedsView};
use super::running::{self, RunningView};
use super::templates::{PageDraft, PageError};
use super::words::{AgeView, clip, money, sentence, tokens};
use crate::domain::phase::Phase;
use crate::domain::snapshot::{CapView, PolicyView, Snapshot};

#[derive(Debug, Serialize)]
struct Dashboard<'a> {
    frame: PageFrame,
    verdict: Glance,
    needs: NeedsView,
    running: RunningView,
    board: BoardView,
    landing: LandingView,
    graph: GraphView,
    caps: Vec<CapBar>,
    spent: Spent,
    pools: Vec<Pool>,
    lanes: Vec<Lane>,
    policies: &'a [PolicyView],
    warnings: Vec<String>,
    more_warnings: usize,
    workflow: String,
    board_usage: Option<&'a str>,
    pending_effects: usize,
    released: usize,
}

/// How much of a cap is spent.
#[derive(Debug, Clone, Serialize)]
pub struct CapBar {
    pub what: String,
    pub spent: String,
    pub cap: String,
    /// Percentage spent. 0 if one of the two is not a number.
    pub percent: u32,
    pub nearly: bool,
}

#[derive(Debug, Serialize)]
struct Spent {
    tokens: String,
    cost: String,
    today_tokens: String,
    today_cost: String,
    hours: String,
}

#[derive(Debug, Serialize)]
struct Pool {
    pool: String,
    until: Option<AgeView>,
    limit: Option<String>,
}

#[derive(Debug, Serialize)]
struct Lane {
    lane: String,
    level: &'static str,
    words: String,
    since: Option<AgeView>,
    until: Option<AgeView>,
    under_way: String,
}

pub fn caps(caps: &[CapView]) -> Vec<CapBar> {
    let percent = |cap: &CapView| {
        let (spent, whole) = (cap.spent.parse::<f64>().ok()?, cap.cap.parse::<f64>().ok()?);
        (whole > 0.0).then(|| (spent / whole * 100.0).clamp(0.0, 100.0) as u32)
    };
    let view = |cap: &CapView| {
        let percent = percent(cap).unwrap_or(0);
        CapBar {
            what: cap.what.clone(),
            spent: cap.spent.clone(),
            cap: cap.cap.clone(),
            percent,
            nearly: percent >= 80,
        }
    };
    caps.iter().map(view).collect()
}

pub fn dashboard(picture: &Snapshot, repository: &str) -> Result<PageDraft, PageError> {
    const WARNINGS: usize = 12;
    let verdict = health::verdict(picture);
    let warnings = &picture.workflow.warnings;
    let data = Dashboard {
        frame: PageFrame::new(picture, &verdict, "board", repository, &verdict.sentence),
        needs: needs::needs(picture),
        running: running::running(picture),
        board: board::board(picture),
        landing: landing::landing(picture),
        graph: graph::graph(picture),
        caps: caps(&picture.totals.daily_budget),
        spent: spent(picture),
        pools: pools(picture),
        lanes: lanes(picture),
        policies: &picture.workflow.policies,
        warnings: warnings.iter().take(WARNINGS).map(|warning| sentence(warning, 240)).collect(),
        more_warnings: warnings.len().saturating_sub(WARNINGS),
        workflow: picture.workflow.hash.chars().take(12).collect(),
        board_usage: picture.tracker.usage.as_deref(),
        pending_effects: picture.pending_effects,
        released: picture.counts.released,
        verdict,
    };
    PageDraft::new("dashboard", &data)
}

fn spent(picture: &Snapshot) -> Spent {
    let (all, today) = (&picture.totals.usage, &picture.totals.today);
    Spent {
        tokens: tokens(all.tokens()),
        cost: money(all.cost_microusd),
        today_tokens: tokens(today.tokens()),
        today_cost: money(today.cost_microusd),
        hours: crate::domain::time::span(picture.totals.seconds_running),
    }
}

fn pools(picture: &Snapshot) -> Vec<Pool> {
    let view = |pool: &crate::domain::snapshot::PoolView| Pool {
        pool: pool.pool.clone(),
        until: pool.paused_until.map(|until| AgeView::until(until, picture.at)),
        limit: pool.rate_limit.as_deref().map(|limit| clip(limit, 120)),
    };
    picture.pools.iter().map(view).collect()
}

fn lanes(picture: &Snapshot) -> Vec<Lane> {
    let now = picture.at;
    let view = |lane: &crate::domain::snapshot::LaneView| {
        let until = lane.paused_until.filter(|until| *until > now && !lane.locked_out);
        let (level, words) = match (&lane.last_error, until) {
            _ if lane.locked_out => ("trouble", "our access is refused".to_owned()),
            (_, Some(_)) => ("waits", "told to wait, for another".to_owned()),
            (Some(error), None) => ("trouble", clip(error, 120)),
            (None, None) if lane.last_ok.is_none() => ("well", "not asked yet".to_owned()),
            (None, None) => ("well", "answered".to_owned()),
        };
        let until = until.map(|until| AgeView::until(until, now));
        let since = lane.last_ok.filter(|_| words == "answered").map(|at| AgeView::of(at, now));
        let under_way = match (lane.busy, lane.waiting) {
            (0, 0) => String::new(),
            (busy, 0) => format!("{busy} under way"),
            (busy, waiting) => format!("{busy} under way, {waiting} waiting"),
        };
        Lane { lane: lane.lane.clone(), level, words, since, until, under_way }
    };
    picture.lanes.iter().map(view).collect()
}

#[derive(Debug, Serialize)]
struct PhasePage {
    frame: PageFrame,
    verdict: Glance,
    column: PhaseColumn,
}

/// Returns the page with all tickets of one phase.
pub fn phase(picture: &Snapshot, repository: &str, phase: Phase) -> Result<PageDraft, PageError> {
    let verdict = health::verdict(picture);
    let column = board::column(picture, phase);
    let title = format!("{} {}", column.count, column.words);
    let data = PhasePage { frame: PageFrame::new(picture, &verdict, "phase", repository, &title), verdict, column };
    PageDraft::new("phase", &data)
}

#[derive(Debug, Serialize)]
struct BarePage<'a> {
    frame: PageFrame,
    why: &'a str,
}

/// Returns the page that asks for a token.
pub fn login(repository: &str) -> Result<PageDraft, PageError> {
    PageDraft::new("login", &BarePage { frame: PageFrame::bare("login", repository, "A token, please"), why: "" })
}

/// Returns the page for an address at which there is nothing to show.
pub fn missing(repository: &str, why: &str) -> Result<PageDraft, PageError> {
    PageDraft::new("missing", &BarePage { frame: PageFrame::bare("missing", repository, "Not here"), why })
}

#[cfg(test)]
mod tests {
    use super::super::{assets, sample};
    use super::*;
    use crate::domain::phase::Phase;

    fn html(page: Result<PageDraft, PageError>) -> String {
        page.unwrap().html(str::to_owned).unwrap()
    }

    const LARGEST: usize = 100_000;

    #[test]
    fn the_first_page_of_the_largest_board_is_small() {
        let mut picture = sample::many(500);
        picture.workflow.warnings =
            vec!["line 3: a key does nothing, and that for a reason that is told here".to_owned(); 40];
        let page = html(dashboard(&picture, "a-repository"));
        let assets = assets::style().len() + assets::script().len();
        println!("500 tickets: {} bytes of page, {assets} of style and script", page.len());
        assert!(page.len() + assets < LARGEST, "{} + {assets}", page.len());
        let more = html(dashboard(&sample::many(5_000), "a-repository"));
        assert!(more.len() < page.len() + 2_000, "it does not grow with the board: {}", more.len());
        let small = html(dashboard(&sample::picture(), "a-repository"));
        assert!(small.len() * 3 < page.len(), "the large board is really larger: {}", small.len());
    }

    #[test]
    fn other_peoples_text_stays_text() {
        let evil = "<script>alert(1)</script><img src=x onerror=alert(2)>\" onmouseover=\"alert(3)";
        let mut picture = sample::picture();
        for job in &mut picture.jobs {
            (job.title, job.sentence, job.next) = (evil.to_owned(), evil.to_owned(), evil.to_owned());
            (job.detail, job.url) = (Some(evil.to_owned()), Some("javascript:alert(4)".to_owned()));
            job.labels = vec![evil.to_owned()];
            job.key = format!("{}{evil}", job.key);
            if let Some(run) = &mut job.run {
                (run.said, run.tool, run.model) = (Some(evil.to_owned()), Some(evil.to_owned()), Some(evil.to_owned()));
            }
        }
        picture.tracker.last_error = Some(evil.to_owned());
        picture.workflow.warnings = vec![evil.to_owned()];
        let mut pages = vec![html(dashboard(&picture, evil))];
        pages.extend([Phase::Queued, Phase::Done].map(|one| html(phase(&picture, evil, one))));
        pages.extend([html(login(evil)), html(missing(evil, evil))]);
        for page in pages {
            let shown = page.replace("<script src=\"/assets/", "").replace("<img src=\"/assets/", "");
            for bad in ["<script", "<img", "onmouseover=\"", "javascript:"] {
                assert!(!shown.contains(bad), "{bad} in {shown}");
            }
            assert!(page.contains("&lt;script&gt;"), "it is there as text");
        }
    }

    #[test]
    fn everything_that_the_page_promises_is_on_it() {
        let page = html(dashboard(&sample::picture(), "a-repository"));
        let promised = [
            "2 tickets wait for you",
            "Approve or reject",
            "I look at the tests first.",
            "shell: cargo test",
            "nobody has approved this head",
            "cost in USD",
            "hooks",
            "does nothing",
            "of 3 slots",
            "T-2",
        ];
        for what in promised {
            assert!(page.contains(what), "{what} is not on the page:\n{page}");
        }
    }
}
