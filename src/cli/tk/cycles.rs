//! `dep cycle`: finds dependency cycles, tickets that wait for one another.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde_json::json;

use super::arguments::{only_words, take_json};
use super::failure::Failure;
use super::json as typed;
use super::session::{TkCall, TkOutput};
use super::tickets::Tickets;

pub fn dep_cycle(session: &TkCall<'_>, arguments: &[String]) -> Result<TkOutput, Failure> {
    let (as_json, rest) = take_json(arguments);
    if let Some(word) = only_words(&rest)?.first() {
        return Err(Failure::UnknownOption((*word).to_owned()));
    }
    let tickets = Tickets::load(session, &session.store()?)?;
    let found = all(&tickets);
    let reply = if as_json {
        typed::reply(&json!({ "cycles": found }))
    } else if found.is_empty() {
        TkOutput::line("No dependency cycles found")
    } else {
        let blocks: Vec<String> = found
            .iter()
            .enumerate()
            .map(|(number, cycle)| {
                let mut text = format!("Cycle {}: {} -> {}\n", number + 1, cycle.join(" -> "), cycle[0]);
                for id in cycle {
                    let record = tickets.get(id);
                    let status = record.map(|record| record.status.as_str()).unwrap_or_default();
                    let title = record.map(|record| record.title_or_empty()).unwrap_or_default();
                    text.push_str(&format!("  {id:<8} [{status}] {title}\n"));
                }
                text
            })
            .collect();
        TkOutput::text(blocks.join("\n"))
    };
    Ok(reply.warn(tickets.warnings))
}

/// Returns one cycle for each group of tickets that wait for one another, beginning with its smallest id. Closed tickets are left out,
/// because nothing waits for them.
pub fn all(tickets: &Tickets) -> Vec<Vec<String>> {
    let edges = edges(tickets);
    let mut left: BTreeSet<&str> = edges.keys().copied().collect();
    let mut found = Vec::new();
    for id in knots(&edges) {
        if !left.contains(id) {
            continue;
        }
        if let Some(cycle) = shortest(&edges, id) {
            for member in reachable_both_ways(&edges, id) {
                left.remove(member);
            }
            found.push(cycle.into_iter().map(str::to_owned).collect());
        }
    }
    found
}

/// Returns the shortest cycle through this ticket; its first and last element are the ticket. `None` if there is none.
pub fn through(tickets: &Tickets, id: &str) -> Option<Vec<String>> {
    let edges = edges(tickets);
    let (start, _) = edges.get_key_value(id)?;
    let mut cycle: Vec<String> = shortest(&edges, start)?.into_iter().map(str::to_owned).collect();
    cycle.push(id.to_owned());
    Some(cycle)
}

type Edges<'a> = BTreeMap<&'a str, Vec<&'a str>>;

fn edges(tickets: &Tickets) -> Edges<'_> {
    let open = |id: &str| tickets.get(id).is_some_and(|record| !record.is_closed());
    let records = tickets.records.iter().filter(|record| !record.is_closed());
    records
        .map(|record| (record.id.as_str(), record.deps.iter().map(String::as_str).filter(|dep| open(dep)).collect()))
        .collect()
}

/// Returns the tickets that can be part of a cycle: repeatedly removes those that wait for no other ticket, then those that no other
/// ticket waits for. Every cycle is among the rest.
fn knots<'a>(edges: &Edges<'a>) -> Vec<&'a str> {
    let waiting = without_sources(edges);
    let both = without_sources(&reversed(&waiting));
    both.into_keys().collect()
}

/// Repeatedly removes tickets that have no outgoing edge left.
fn without_sources<'a>(edges: &Edges<'a>) -> Edges<'a> {
    let backwards = reversed(edges);
    let mut counts: BTreeMap<&str, usize> = edges.iter().map(|(id, deps)| (*id, deps.len())).collect();
    let mut free: Vec<&str> = counts.iter().filter(|(_, count)| **count == 0).map(|(id, _)| *id).collect();
    while let Some(id) = free.pop() {
        for waiter in backwards.get(id).into_iter().flatten() {
            if let Some(count) = counts.get_mut(waiter) {
                *count -= 1;
                if *count == 0 {
                    free.push(waiter);
                }
            }
        }
    }
    let stays = |id: &str| counts.get(id).is_some_and(|count| *count > 0);
    edges
        .iter()
        .filter(|(id, _)| stays(id))
        .map(|(id, deps)| (*id, deps.iter().copied().filter(|dep| stays(dep)).collect()))
        .collect()
}

fn reversed<'a>(edges: &Edges<'a>) -> Edges<'a> {
    let mut backwards: Edges<'a> = edges.keys().map(|id| (*id, Vec::new())).collect();
    for (id, deps) in edges {
        for dep in deps {
            backwards.entry(dep).or_default().push(id);
        }
    }
    backwards
}

/// Returns the shortest way from a ticket back to itself, with the ticket only at its beginning.
fn shortest<'a>(edges: &Edges<'a>, start: &'a str) -> Option<Vec<&'a str>> {
    let mut came_from: BTreeMap<&str, &str> = BTreeMap::new();
    let mut queue = VecDeque::from([start]);
    while let Some(id) = queue.pop_front() {
        for dep in edges.get(id).into_iter().flatten() {
            if *dep == start {
                let mut path = vec![id];
                let mut at = id;
                while at != start {
                    at = came_from.get(at)?;
                    path.push(at);
                }
                path.reverse();
                return Some(path);
            }
            if !came_from.contains_key(dep) {
                came_from.insert(dep, id);
                queue.push_back(dep);
            }
        }
    }
    None
}

fn reachable_both_ways<'a>(edges: &Edges<'a>, start: &'a str) -> BTreeSet<&'a str> {
    let forward = reachable(edges, start);
    reachable(&reversed(edges), start).intersection(&forward).copied().chain([start]).collect()
}

fn reachable<'a>(edges: &Edges<'a>, start: &'a str) -> BTreeSet<&'a str> {
    let mut seen = BTreeSet::new();
    let mut open = vec![start];
    while let Some(id) = open.pop() {
        for dep in edges.get(id).into_iter().flatten() {
            if seen.insert(*dep) {
                open.push(dep);
            }
        }
    }
    seen
}
