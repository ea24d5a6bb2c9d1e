//! Which tickets wait for which: cycles, chains, and blockers that are not on the board. Worked out again only when a relation changes.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::jobs::Jobs;
use crate::domain::ids::{TicketId, TicketKey};
use crate::domain::job::Job;

#[derive(Debug, Clone, Default)]
pub struct Relations {
    /// From each blocker to the tickets that list it.
    waiting: BTreeMap<TicketId, BTreeSet<TicketId>>,
    /// Blockers without a job.
    foreign: BTreeSet<TicketId>,
    cycles: BTreeMap<TicketId, Vec<TicketKey>>,
    /// The length of the longest chain of tickets that wait for a ticket, one after the other. Only tickets with a chain are included.
    chains: BTreeMap<TicketId, u32>,
    edges_changed: bool,
    /// Also set when a job that waits for others is over.
    chains_changed: bool,
}

impl Relations {
    pub fn insert(&mut self, job: &Job) {
        self.foreign.remove(&job.ticket.id);
        for blocker in &job.ticket.blocked_by {
            self.waiting.entry(blocker.id.clone()).or_default().insert(job.ticket.id.clone());
        }
        if !job.ticket.blocked_by.is_empty() || self.waiting.contains_key(&job.ticket.id) {
            self.edges_changed = true;
            self.chains_changed = true;
        }
    }

    pub fn remove(&mut self, job: &Job) {
        let id = &job.ticket.id;
        for blocker in &job.ticket.blocked_by {
            self.unlink(&blocker.id, id);
        }
        let is_waited_for = self.waiting.contains_key(id);
        if is_waited_for {
            self.foreign.insert(id.clone());
        }
        if is_waited_for || !job.ticket.blocked_by.is_empty() {
            self.edges_changed = true;
            self.chains_changed = true;
        }
    }

    pub fn change(&mut self, before: &Job, after: &Job) {
        let (old, new) = (&before.ticket.blocked_by, &after.ticket.blocked_by);
        if old.is_empty() && new.is_empty() {
            return;
        }
        if before.stage.phase().is_terminal() != after.stage.phase().is_terminal() {
            self.chains_changed = true;
        }
        if old.iter().map(|blocker| &blocker.id).eq(new.iter().map(|blocker| &blocker.id)) {
            return;
        }
        let id = &after.ticket.id;
        for blocker in old {
            self.unlink(&blocker.id, id);
        }
        for blocker in new {
            self.waiting.entry(blocker.id.clone()).or_default().insert(id.clone());
        }
        self.edges_changed = true;
        self.chains_changed = true;
    }

    fn unlink(&mut self, blocker: &TicketId, waiting: &TicketId) {
        let Some(ids) = self.waiting.get_mut(blocker) else { return };
        ids.remove(waiting);
        if ids.is_empty() {
            self.waiting.remove(blocker);
            self.foreign.remove(blocker);
        }
    }

    pub fn is_due(&self, count_chains: bool) -> bool {
        self.edges_changed || (count_chains && self.chains_changed)
    }

    /// Finds cycles and chains. Returns the tickets for which the result has changed.
    pub fn settle(&mut self, jobs: &Jobs, count_chains: bool) -> BTreeSet<TicketId> {
        let mut concerned = BTreeSet::new();
        if std::mem::take(&mut self.edges_changed) {
            self.foreign = self.waiting.keys().filter(|id| !jobs.contains(id)).cloned().collect();
            let cycles = self.find_cycles(jobs);
            concerned.extend(differences(&self.cycles, &cycles));
            self.cycles = cycles;
        }
        if count_chains && std::mem::take(&mut self.chains_changed) {
            let chains = self.count_chains(jobs);
            concerned.extend(differences(&self.chains, &chains));
            self.chains = chains;
        }
        concerned
    }

    /// Returns the tickets that wait for this one.
    pub fn waiting_for(&self, blocker: &TicketId) -> impl Iterator<Item = &TicketId> {
        self.waiting.get(blocker).into_iter().flatten()
    }

    /// Returns the blockers without a job.
    pub fn foreign(&self) -> impl Iterator<Item = &TicketId> {
        self.foreign.iter()
    }

    /// Returns the cycle that a ticket is part of.
    pub fn cycle_of(&self, id: &TicketId) -> Option<&[TicketKey]> {
        self.cycles.get(id).map(Vec::as_slice)
    }

    pub fn chain_of(&self, id: &TicketId) -> u32 {
        self.chains.get(id).copied().unwrap_or(0)
    }

    fn count_chains(&self, jobs: &Jobs) -> BTreeMap<TicketId, u32> {
        let mut dependents: BTreeMap<&TicketId, Vec<&TicketId>> = BTreeMap::new();
        for (blocker, waiting) in &self.waiting {
            let open = |id: &&TicketId| jobs.get(id).is_some_and(|job| !job.stage.phase().is_terminal());
            let open: Vec<&TicketId> = waiting.iter().filter(open).collect();
            if !open.is_empty() {
                dependents.insert(blocker, open);
            }
        }
        let mut lengths: BTreeMap<&TicketId, u32> = BTreeMap::new();
        for id in dependents.keys() {
            longest(id, &dependents, &mut lengths);
        }
        lengths.into_iter().filter(|(_, length)| *length > 0).map(|(id, length)| (id.clone(), length)).collect()
    }

    /// Returns the tickets of dependency cycles, each with the shortest way from it back to itself, or that of another ticket on this way.
    fn find_cycles(&self, jobs: &Jobs) -> BTreeMap<TicketId, Vec<TicketKey>> {
        let mut found = BTreeMap::new();
        for group in self.entangled(jobs) {
            for start in &group {
                if found.contains_key(*start) {
                    continue;
                }
                let members = way_back(start, &group, jobs);
                let mut keys: Vec<TicketKey> =
                    members.iter().filter_map(|id| jobs.get(id)).map(|job| job.ticket.key.clone()).collect();
                keys.extend(keys.first().cloned());
                for member in members {
                    found.entry(member.clone()).or_insert_with(|| keys.clone());
                }
            }
        }
        found
    }

    /// Returns the groups of tickets that all wait for one another, directly or not (Tarjan's strongly connected components), without
    /// recursion. All jobs are searched at once.
    fn entangled<'a>(&self, jobs: &'a Jobs) -> Vec<BTreeSet<&'a TicketId>> {
        let mut groups = Vec::new();
        // When each ticket was reached, and the earliest ticket of `open` that it is known to wait for.
        let mut reached: BTreeMap<&TicketId, (usize, usize)> = BTreeMap::new();
        let mut open: Vec<&TicketId> = Vec::new();
        let mut is_open: BTreeSet<&TicketId> = BTreeSet::new();
        // Every ticket of a cycle is a blocker of another one.
        for start in self.waiting.keys().filter_map(|id| jobs.get(id)).map(|job| &job.ticket.id) {
            let mut path: Vec<(&TicketId, usize)> = Vec::new();
            let mut enter = Some(start).filter(|start| !reached.contains_key(start));
            loop {
                if let Some(id) = enter.take() {
                    let at = reached.len();
                    reached.insert(id, (at, at));
                    open.push(id);
                    is_open.insert(id);
                    path.push((id, 0));
                }
                let Some((id, next)) = path.last_mut() else { break };
                let id = *id;
                let listed = jobs.get(id).map(|job| job.ticket.blocked_by.as_slice()).unwrap_or_default();
                if let Some(blocker) = listed.get(*next) {
                    *next += 1;
                    let Some(blocker) = jobs.get(&blocker.id).map(|job| &job.ticket.id) else { continue };
                    match reached.get(blocker).copied() {
                        None => enter = Some(blocker),
                        Some((at, _)) if is_open.contains(blocker) => lower(&mut reached, id, at),
                        Some(_) => {}
                    }
                    continue;
                }
                path.pop();
                let (at, low) = reached.get(id).copied().unwrap_or_default();
                if let Some((parent, _)) = path.last() {
                    lower(&mut reached, parent, low);
                }
                if at == low {
                    let first = open.iter().rposition(|other| *other == id).unwrap_or(0);
                    let group: BTreeSet<&TicketId> = open.drain(first..).collect();
                    for member in &group {
                        is_open.remove(*member);
                    }
                    if group.len() > 1 || blockers(id, jobs).any(|blocker| blocker == id) {
                        groups.push(group);
                    }
                }
            }
        }
        groups
    }
}

/// Returns the blockers of a ticket that have a job.
fn blockers<'a>(id: &TicketId, jobs: &'a Jobs) -> impl Iterator<Item = &'a TicketId> {
    let listed = jobs.get(id).map(|job| job.ticket.blocked_by.as_slice()).unwrap_or_default();
    listed.iter().filter_map(|blocker| jobs.get(&blocker.id)).map(|job| &job.ticket.id)
}

/// Notes that a ticket waits for one that was reached at `at`.
fn lower(reached: &mut BTreeMap<&TicketId, (usize, usize)>, id: &TicketId, at: usize) {
    if let Some((_, low)) = reached.get_mut(id) {
        *low = at.min(*low);
    }
}

/// Returns the tickets on the shortest way from `start` over blockers of its group back to itself.
fn way_back<'a>(start: &'a TicketId, group: &BTreeSet<&'a TicketId>, jobs: &'a Jobs) -> Vec<&'a TicketId> {
    let mut come_from: BTreeMap<&TicketId, &'a TicketId> = BTreeMap::new();
    let mut line = VecDeque::from([start]);
    while let Some(id) = line.pop_front() {
        for blocker in blockers(id, jobs).filter(|blocker| group.contains(blocker)) {
            if blocker == start {
                let mut way = vec![id];
                while let Some(before) = way.last().and_then(|last| come_from.get(last)) {
                    way.push(before);
                }
                way.reverse();
                return way;
            }
            if let Entry::Vacant(unknown) = come_from.entry(blocker) {
                unknown.insert(id);
                line.push_back(blocker);
            }
        }
    }
    Vec::new()
}

/// Returns the keys whose values differ.
fn differences<V: PartialEq>(old: &BTreeMap<TicketId, V>, new: &BTreeMap<TicketId, V>) -> Vec<TicketId> {
    let changed = new.iter().filter(|(id, value)| old.get(*id) != Some(value)).map(|(id, _)| id);
    let gone = old.keys().filter(|id| !new.contains_key(*id));
    changed.chain(gone).cloned().collect()
}

/// Fills in the length for `start` and for everything that waits for it. Uses a stack of its own instead of recursion, because chains can
/// be long.
fn longest<'a>(
    start: &'a TicketId,
    dependents: &BTreeMap<&'a TicketId, Vec<&'a TicketId>>,
    lengths: &mut BTreeMap<&'a TicketId, u32>,
) {
    if lengths.contains_key(start) {
        return;
    }
    let waiting = |id: &TicketId| dependents.get(id).map(Vec::as_slice).unwrap_or_default();
    let mut open: BTreeSet<&TicketId> = BTreeSet::from([start]);
    let mut path: Vec<(&'a TicketId, usize)> = vec![(start, 0)];
    while let Some((id, next)) = path.last_mut() {
        if let Some(dependent) = waiting(id).get(*next) {
            *next += 1;
            // A cycle adds nothing: its tickets never become ready.
            if !lengths.contains_key(dependent) && open.insert(dependent) {
                path.push((dependent, 0));
            }
            continue;
        }
        let id = *id;
        let length =
            waiting(id).iter().filter_map(|dependent| lengths.get(dependent)).map(|n| n.saturating_add(1)).max();
        lengths.insert(id, length.unwrap_or(0));
        open.remove(id);
        path.pop();
    }
}
