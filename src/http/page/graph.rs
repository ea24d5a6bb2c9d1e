//! Which ticket waits for which: as a drawing from left to right, and as text for screen readers.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::words::{clip, cut, segment};
use crate::domain::snapshot::{JobView, Snapshot};

/// Limit of tickets in the drawing. A larger one would not be readable.
const NODES: usize = 30;
const LINES: usize = 24;
const WIDTH: usize = 164;
const HEIGHT: usize = 38;
const GAP_X: usize = 44;
const GAP_Y: usize = 12;
const MARGIN: usize = 4;

#[derive(Debug, Clone, Serialize)]
pub struct GraphView {
    pub tickets: usize,
    pub relations: usize,
    pub picture: Option<GraphDrawing>,
    pub lines: Vec<GraphLine>,
    pub rest: usize,
}

#[derive(Debug, Clone, Serialize)]
pub struct GraphDrawing {
    pub width: usize,
    pub height: usize,
    pub nodes: Vec<GraphNode>,
    /// The arrows, each as an SVG path.
    pub arrows: Vec<GraphArrow>,
}

#[derive(Debug, Clone, Serialize)]
pub struct GraphArrow {
    pub way: String,
    pub over: bool,
}

#[derive(Debug, Clone, Serialize)]
pub struct GraphNode {
    pub key: String,
    /// The address of the ticket's page. `None` if the ticket is not on this board.
    pub path: Option<String>,
    pub label: String,
    pub title: String,
    pub phase: &'static str,
    pub words: &'static str,
    pub x: usize,
    pub y: usize,
    pub text_x: usize,
    pub key_y: usize,
    pub title_y: usize,
    pub in_cycle: bool,
}

#[derive(Debug, Clone, Serialize)]
pub struct GraphLine {
    pub key: String,
    pub path: String,
    pub words: &'static str,
    pub blockers: Vec<GraphBlocker>,
}

#[derive(Debug, Clone, Serialize)]
pub struct GraphBlocker {
    pub key: String,
    pub path: Option<String>,
    pub state: String,
}

/// A blocker, the ticket that waits for it, and whether the blocker is over.
type Edge<'a> = (&'a str, &'a str, bool);

pub fn graph(picture: &Snapshot) -> GraphView {
    let jobs: BTreeMap<&str, &JobView> = picture.jobs.iter().map(|job| (job.key.as_str(), job)).collect();
    let waiting: Vec<&JobView> =
        picture.jobs.iter().filter(|job| !job.phase.is_terminal() && !job.blocked_by.is_empty()).collect();
    let edges: Vec<Edge<'_>> = waiting
        .iter()
        .flat_map(|job| job.blocked_by.iter().map(|blocker| (blocker.key.as_str(), job.key.as_str(), blocker.is_over)))
        .collect();
    let open: Vec<Edge<'_>> = edges.iter().copied().filter(|(_, _, over)| !over).collect();
    let shown = [&edges, &open].into_iter().find(|edges| !edges.is_empty() && names(edges).len() <= NODES);
    GraphView {
        tickets: names(&edges).len(),
        relations: edges.len(),
        picture: shown.map(|edges| draw(edges, &jobs)),
        lines: waiting.iter().take(LINES).map(|job| line(job, &jobs)).collect(),
        rest: waiting.len().saturating_sub(LINES),
    }
}

fn names<'a>(edges: &[Edge<'a>]) -> BTreeSet<&'a str> {
    edges.iter().flat_map(|(blocker, waiting, _)| [*blocker, *waiting]).collect()
}

fn line(job: &JobView, jobs: &BTreeMap<&str, &JobView>) -> GraphLine {
    let blockers = job.blocked_by.iter().take(12).map(|blocker| GraphBlocker {
        key: blocker.key.clone(),
        path: jobs.contains_key(blocker.key.as_str()).then(|| segment(&blocker.key)),
        state: match (&blocker.state, blocker.is_over) {
            (_, true) => "over".to_owned(),
            (Some(state), false) => clip(state, 24),
            (None, false) => "unknown".to_owned(),
        },
    });
    GraphLine { key: job.key.clone(), path: segment(&job.key), words: job.phase.words(), blockers: blockers.collect() }
}

/// Returns each ticket's column (its number of steps from a ticket that waits for none), and the tickets in a cycle or behind one.
fn layers<'a>(edges: &[Edge<'a>]) -> (BTreeMap<&'a str, usize>, BTreeSet<&'a str>) {
    let mut layer: BTreeMap<&str, usize> = BTreeMap::new();
    let mut open = names(edges);
    loop {
        let ready: Vec<&str> = open
            .iter()
            .copied()
            .filter(|name| edges.iter().all(|(blocker, waiting, _)| waiting != name || layer.contains_key(blocker)))
            .collect();
        if ready.is_empty() {
            break;
        }
        for name in ready {
            let after = edges.iter().filter(|(_, waiting, _)| *waiting == name);
            let place = after.filter_map(|(blocker, _, _)| layer.get(blocker)).max().map_or(0, |last| last + 1);
            open.remove(name);
            layer.insert(name, place);
        }
    }
    let last = layer.values().max().map_or(0, |last| last + 1);
    layer.extend(open.iter().map(|name| (*name, last)));
    (layer, open)
}

fn draw(edges: &[Edge<'_>], jobs: &BTreeMap<&str, &JobView>) -> GraphDrawing {
    let (layer, in_cycle) = layers(edges);
    let depth = layer.values().max().map_or(0, |last| last + 1);
    let mut row: BTreeMap<&str, usize> = BTreeMap::new();
    let mut tallest = 0;
    for at in 0..depth {
        let mut names: Vec<&str> = layer.iter().filter(|(_, layer)| **layer == at).map(|(name, _)| *name).collect();
        // Put tickets beside those that they wait for, so that few arrows cross.
        let mean = |name: &str| {
            let rows: Vec<usize> = edges
                .iter()
                .filter(|(_, waiting, _)| *waiting == name)
                .filter_map(|(blocker, _, _)| row.get(blocker).copied())
                .collect();
            if rows.is_empty() { usize::MAX } else { rows.iter().sum::<usize>() * 100 / rows.len() }
        };
        names.sort_by_key(|name| (mean(name), *name));
        tallest = tallest.max(names.len());
        let placed: Vec<(&str, usize)> = names.into_iter().enumerate().map(|(index, name)| (name, index)).collect();
        row.extend(placed);
    }
    let x = |name: &str| MARGIN + layer[name] * (WIDTH + GAP_X);
    let y = |name: &str| MARGIN + row[name] * (HEIGHT + GAP_Y);
    let nodes = layer.keys().map(|name| {
        let job = jobs.get(name);
        GraphNode {
            key: (*name).to_owned(),
            path: job.map(|_| segment(name)),
            label: cut(name, 20),
            title: job.map(|job| clip(&job.title, 26)).unwrap_or_else(|| "not on this board".to_owned()),
            phase: job.map_or("released", |job| job.phase.name()),
            words: job.map_or("not on this board", |job| job.phase.words()),
            x: x(name),
            y: y(name),
            text_x: x(name) + 12,
            key_y: y(name) + 16,
            title_y: y(name) + 30,
            in_cycle: in_cycle.contains(name),
        }
    });
    let arrows = edges.iter().map(|(blocker, waiting, over)| {
        let (from, to) = (x(blocker) + WIDTH, x(waiting));
        let (start, end) = (y(blocker) + HEIGHT / 2, y(waiting) + HEIGHT / 2);
        GraphArrow {
            way: format!(
                "M{from} {start}C{} {start} {} {end} {to} {end}",
                from + GAP_X / 2,
                to.saturating_sub(GAP_X / 2)
            ),
            over: *over,
        }
    });
    GraphDrawing {
        width: 2 * MARGIN + depth * (WIDTH + GAP_X) - GAP_X.min(depth * GAP_X),
        height: 2 * MARGIN + tallest * (HEIGHT + GAP_Y) - GAP_Y.min(tallest * GAP_Y),
        arrows: arrows.collect(),
        nodes: nodes.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;
    use crate::domain::phase::Phase;
    use crate::domain::snapshot::BlockerView;

    fn board(relations: &[(&str, &[&str])]) -> Snapshot {
        let jobs = relations.iter().map(|(key, blockers)| {
            let blocked_by = blockers.iter().map(|key| BlockerView {
                key: (*key).to_owned(),
                state: Some("open".to_owned()),
                is_over: false,
            });
            JobView { blocked_by: blocked_by.collect(), ..sample::job(key, Phase::Queued, "x") }
        });
        Snapshot { jobs: jobs.collect(), ..sample::picture() }
    }

    #[test]
    fn each_stands_to_the_right_of_all_that_it_waits_for() {
        let graph = graph(&board(&[("a", &[]), ("b", &["a"]), ("c", &["a", "b"]), ("d", &["elsewhere"]), ("e", &[])]));
        assert_eq!((graph.tickets, graph.relations), (5, 4));
        let drawing = graph.picture.unwrap();
        let x: BTreeMap<_, _> = drawing.nodes.iter().map(|node| (node.key.as_str(), node.x)).collect();
        assert!(x["a"] < x["b"] && x["b"] < x["c"] && x["elsewhere"] < x["d"]);
        assert!(!x.contains_key("e"), "who waits for nobody and is waited for by nobody is not in it");
        let places: BTreeSet<_> = drawing.nodes.iter().map(|node| (node.x, node.y)).collect();
        assert_eq!(places.len(), drawing.nodes.len(), "no two at the same place");
        assert!(drawing.nodes.iter().all(|node| node.x + WIDTH <= drawing.width && node.y + HEIGHT <= drawing.height));
    }

    #[test]
    fn a_cycle_is_marked_and_ends_the_layout_all_the_same() {
        let drawing = graph(&board(&[("a", &["b"]), ("b", &["a"]), ("c", &[])])).picture.unwrap();
        assert!(drawing.nodes.iter().all(|node| node.in_cycle));
    }

    #[test]
    fn what_is_too_large_for_a_picture_is_a_list() {
        let graph = graph(&sample::many(500));
        assert!(graph.picture.is_none() && graph.lines.len() == LINES && graph.rest > 0);
    }
}
