//! `graph`: shows the dependency graph as text, DOT, Mermaid or JSON, with its critical path.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;

use super::arguments::{Argument, Arguments};
use super::cycles;
use super::failure::Failure;
use super::json as typed;
use super::session::{TkCall, TkOutput};
use super::tickets::Tickets;

enum Format {
    Text,
    Dot,
    Mermaid,
    Json,
}

pub fn graph(session: &TkCall<'_>, arguments: &[String]) -> Result<TkOutput, Failure> {
    let mut walk = Arguments::new(arguments);
    let (mut root, mut format, mut all) = (None, Format::Text, false);
    while let Some(argument) = walk.next() {
        match argument {
            Argument::Word(word) => root = Some(word),
            Argument::Option(option) => match option.name {
                "--format" | "-f" => {
                    format = match walk.value(&option)? {
                        "text" => Format::Text,
                        "dot" => Format::Dot,
                        "mermaid" => Format::Mermaid,
                        other => {
                            let sentence = format!("unknown format '{other}'. Must be one of: text dot mermaid");
                            return Err(Failure::said(sentence));
                        }
                    };
                }
                "--all" => {
                    option.plain()?;
                    all = true;
                }
                "--json" => {
                    option.plain()?;
                    format = Format::Json;
                }
                _ => return Err(option.unknown()),
            },
        }
    }
    let store = session.store()?;
    let root = root.map(|typed| store.resolve(typed)).transpose()?;
    let tickets = Tickets::load(session, &store)?;
    let graph = Graph::of(&tickets, root.as_deref(), all);
    let reply = match format {
        Format::Text => TkOutput::text(graph.text(&tickets)),
        Format::Dot => TkOutput::text(graph.dot(&tickets)),
        Format::Mermaid => TkOutput::text(graph.mermaid(&tickets)),
        Format::Json => typed::reply(&json!({
            "waves": graph.waves,
            "edges": graph.edges().map(|(id, dep)| json!({ "id": id, "waits_for": dep })).collect::<Vec<_>>(),
            "critical_path": graph.critical,
            "cycles": graph.cycles,
        })),
    };
    Ok(reply.warn(tickets.warnings.iter().cloned()))
}

struct Graph<'a> {
    /// The dependencies of each ticket, restricted to tickets that are shown.
    deps: BTreeMap<&'a str, Vec<&'a str>>,
    /// Groups of tickets that could be done at the same time, in the order in which the groups have to be done.
    waves: Vec<Vec<&'a str>>,
    /// The longest chain of unfinished tickets that wait for one another, first to last.
    critical: Vec<&'a str>,
    cycles: Vec<Vec<String>>,
}

impl<'a> Graph<'a> {
    fn of(tickets: &'a Tickets, root: Option<&str>, all: bool) -> Self {
        let wanted = root.map(|root| below(tickets, root));
        let shown = |id: &str| {
            tickets.get(id).is_some_and(|record| all || !record.satisfies())
                && wanted.as_ref().is_none_or(|wanted| wanted.contains(id))
        };
        let deps: BTreeMap<&str, Vec<&str>> = tickets
            .records
            .iter()
            .filter(|record| shown(&record.id))
            .map(|record| {
                (record.id.as_str(), record.deps.iter().map(String::as_str).filter(|dep| shown(dep)).collect())
            })
            .collect();
        let waves = waves(&deps);
        let critical = critical_path(tickets, &deps, &waves);
        let cycles = cycles::all(tickets).into_iter().filter(|cycle| cycle.iter().any(|id| shown(id))).collect();
        Self { deps, waves, critical, cycles }
    }

    fn edges(&self) -> impl Iterator<Item = (&'a str, &'a str)> + '_ {
        self.deps.iter().flat_map(|(id, deps)| deps.iter().map(|dep| (*id, *dep)))
    }

    fn on_critical_path(&self, id: &str, dep: &str) -> bool {
        self.critical.windows(2).any(|pair| pair[0] == dep && pair[1] == id)
    }

    fn text(&self, tickets: &Tickets) -> String {
        let mut text = String::new();
        for (number, wave) in self.waves.iter().enumerate() {
            text.push_str(&format!("Wave {}\n", number + 1));
            for id in wave {
                let mark = if self.critical.contains(id) { '*' } else { ' ' };
                let waits = self.deps.get(id).filter(|deps| !deps.is_empty());
                let waits = waits.map(|deps| format!(" <- [{}]", deps.join(", "))).unwrap_or_default();
                text.push_str(&format!("{mark} {}{waits}\n", tickets.describe(id)));
            }
        }
        for cycle in &self.cycles {
            text.push_str(&format!("Cycle: {} -> {}\n", cycle.join(" -> "), cycle[0]));
        }
        match self.critical.len() {
            0 => text.push_str("Nothing is left to do\n"),
            length => text.push_str(&format!("Critical path ({length}): {}\n", self.critical.join(" -> "))),
        }
        text
    }

    fn dot(&self, tickets: &Tickets) -> String {
        let quoted = |text: &str| format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""));
        let mut text = "digraph tickets {\n  rankdir=LR;\n  node [shape=box];\n".to_owned();
        for id in self.deps.keys() {
            let label = quoted(&tickets.describe(id));
            let style = if self.critical.contains(id) { ", color=red, penwidth=2" } else { "" };
            text.push_str(&format!("  {} [label={label}{style}];\n", quoted(id)));
        }
        for (id, dep) in self.edges() {
            let style = if self.on_critical_path(id, dep) { " [color=red, penwidth=2]" } else { "" };
            text.push_str(&format!("  {} -> {}{style};\n", quoted(dep), quoted(id)));
        }
        text.push_str("}\n");
        text
    }

    fn mermaid(&self, tickets: &Tickets) -> String {
        let places: BTreeMap<&str, usize> = self.deps.keys().enumerate().map(|(at, id)| (*id, at)).collect();
        let name = |id: &str| format!("t{}", places.get(id).copied().unwrap_or_default());
        let escaped =
            |text: &str| text.replace('&', "#amp;").replace('"', "#quot;").replace('<', "#lt;").replace('>', "#gt;");
        let mut text = "graph LR\n".to_owned();
        for id in self.deps.keys() {
            text.push_str(&format!("  {}[\"{}\"]\n", name(id), escaped(&tickets.describe(id))));
        }
        let mut marked = Vec::new();
        for (number, (id, dep)) in self.edges().enumerate() {
            text.push_str(&format!("  {} --> {}\n", name(dep), name(id)));
            if self.on_critical_path(id, dep) {
                marked.push(number.to_string());
            }
        }
        if !self.critical.is_empty() {
            let nodes = self.critical.iter().map(|id| name(id)).collect::<Vec<_>>().join(",");
            text.push_str(&format!("  classDef critical stroke:#d33,stroke-width:3px\n  class {nodes} critical\n"));
        }
        if !marked.is_empty() {
            text.push_str(&format!("  linkStyle {} stroke:#d33,stroke-width:3px\n", marked.join(",")));
        }
        text
    }
}

/// Returns a ticket and everything that it waits for, directly or indirectly.
fn below(tickets: &Tickets, root: &str) -> BTreeSet<String> {
    let mut seen = BTreeSet::from([root.to_owned()]);
    let mut open = vec![root.to_owned()];
    while let Some(id) = open.pop() {
        for dep in tickets.get(&id).map(|record| record.deps.as_slice()).unwrap_or_default() {
            if seen.insert(dep.clone()) {
                open.push(dep.clone());
            }
        }
    }
    seen
}

/// Returns the tickets in layers: first those that wait for nothing, then those that wait only for earlier layers. Tickets in a cycle, or
/// behind one, are in no layer.
fn waves<'a>(deps: &BTreeMap<&'a str, Vec<&'a str>>) -> Vec<Vec<&'a str>> {
    let mut counts: BTreeMap<&str, usize> = deps.iter().map(|(id, deps)| (*id, deps.len())).collect();
    let mut waiters: BTreeMap<&str, Vec<&'a str>> = BTreeMap::new();
    for (id, own) in deps {
        for dep in own {
            waiters.entry(dep).or_default().push(id);
        }
    }
    let mut waves = Vec::new();
    let mut wave: Vec<&str> = deps.iter().filter(|(_, own)| own.is_empty()).map(|(id, _)| *id).collect();
    while !wave.is_empty() {
        let mut next = Vec::new();
        for id in &wave {
            for waiter in waiters.get(id).into_iter().flatten() {
                if let Some(count) = counts.get_mut(waiter) {
                    *count -= 1;
                    if *count == 0 {
                        next.push(*waiter);
                    }
                }
            }
        }
        next.sort_unstable();
        waves.push(std::mem::replace(&mut wave, next));
    }
    waves
}

fn critical_path<'a>(
    tickets: &Tickets,
    deps: &BTreeMap<&'a str, Vec<&'a str>>,
    waves: &[Vec<&'a str>],
) -> Vec<&'a str> {
    let unfinished = |id: &str| tickets.get(id).is_some_and(|record| !record.is_closed());
    let mut best: BTreeMap<&str, (usize, Option<&'a str>)> = BTreeMap::new();
    let mut end: Option<&'a str> = None;
    for id in waves.iter().flatten().copied().filter(|id| unfinished(id)) {
        let own = deps.get(id).into_iter().flatten().copied();
        let before = own
            .filter_map(|dep| best.get(dep).map(|(length, _)| (*length, std::cmp::Reverse(dep))))
            .max()
            .map(|(length, dep)| (length, dep.0));
        let length = before.map_or(0, |(length, _)| length) + 1;
        best.insert(id, (length, before.map(|(_, dep)| dep)));
        let longest = end.and_then(|end| best.get(end)).map_or(0, |(length, _)| *length);
        if length > longest {
            end = Some(id);
        }
    }
    let mut path = Vec::new();
    while let Some(id) = end {
        path.push(id);
        end = best.get(id).and_then(|(_, before)| *before);
    }
    path.reverse();
    path
}
