//! `dep tree`: prints a ticket and everything that it waits for as a tree. Each ticket is shown once, at its deepest place; with `--full`
//! it is repeated.

use std::collections::{HashMap, HashSet};

use serde_json::{Value, json};

use super::arguments::{Argument, Arguments};
use super::failure::Failure;
use super::json as typed;
use super::session::{TkCall, TkOutput};
use super::tickets::{Tickets, shown_status};

/// The most lines of a tree. `--full` repeats shared parts, which can double the tree with each layer; a longer tree is truncated with a
/// warning.
const MAX_LINES: usize = 100_000;

pub fn dep_tree(session: &TkCall<'_>, arguments: &[String]) -> Result<TkOutput, Failure> {
    let mut walk = Arguments::new(arguments);
    let (mut root, mut full, mut as_json) = (None, false, false);
    while let Some(argument) = walk.next() {
        match argument {
            Argument::Word(word) => root = Some(word),
            Argument::Option(option) if option.name == "--full" => {
                option.plain()?;
                full = true;
            }
            Argument::Option(option) if option.name == "--json" => {
                option.plain()?;
                as_json = true;
            }
            Argument::Option(option) => return Err(option.unknown()),
        }
    }
    let Some(root) = root else {
        return Err(Failure::Usage("Usage: ticket dep tree [--full] <id>".into()));
    };
    let store = session.store()?;
    let root = store.resolve(root)?;
    let tickets = Tickets::load(session, &store)?;
    let tree = Tree::grow(&tickets, &root);
    let lines = tree.lines(full);
    let reply = if as_json {
        let nodes: Vec<Value> = lines
            .iter()
            .map(|line| {
                let record = tickets.get(line.id);
                json!({
                    "id": line.id,
                    "depth": line.depth,
                    "status": record.map(shown_status),
                    "title": record.and_then(|record| record.title.as_deref()),
                })
            })
            .collect();
        typed::reply(&json!({ "root": root, "nodes": nodes }))
    } else {
        TkOutput::text(
            lines.iter().map(|line| format!("{}{}\n", line.lead, describe(&tickets, line.id))).collect::<String>(),
        )
    };
    let cut = (lines.len() >= MAX_LINES).then(|| format!("Warning: the tree was cut after {MAX_LINES} lines"));
    Ok(reply.warn(tickets.warnings.iter().cloned()).warn(cut))
}

fn describe(tickets: &Tickets, id: &str) -> String {
    tickets
        .get(id)
        .map_or_else(|| id.to_owned(), |record| format!("{id} [{}] {}", record.status, record.title_or_empty()))
}

struct Tree<'a> {
    root: &'a str,
    deps: HashMap<&'a str, Vec<&'a str>>,
    /// The length of the longest path from the root to each ticket.
    depth: HashMap<&'a str, usize>,
    /// The depth of the deepest ticket below each ticket, counted from the root.
    reach: HashMap<&'a str, usize>,
}

struct Line<'a> {
    id: &'a str,
    depth: usize,
    lead: String,
}

impl<'a> Tree<'a> {
    fn grow(tickets: &'a Tickets, root: &'a str) -> Self {
        let deps_of = |id: &str| -> Vec<&'a str> {
            let record = tickets.get(id);
            let deps = record.map(|record| record.deps.as_slice()).unwrap_or_default();
            deps.iter().map(String::as_str).filter(|dep| tickets.get(dep).is_some()).collect()
        };
        // Depth-first search. An edge back to a ticket on the current path would close a cycle and is left out.
        let mut deps: HashMap<&str, Vec<&str>> = HashMap::new();
        let mut acyclic: HashMap<&str, Vec<&str>> = HashMap::new();
        let mut finished: Vec<&str> = Vec::new();
        let mut on_way: HashSet<&str> = HashSet::from([root]);
        deps.insert(root, deps_of(root));
        let mut way: Vec<(&str, usize)> = vec![(root, 0)];
        while let Some((id, at)) = way.pop() {
            let next = deps.get(id).and_then(|list| list.get(at)).copied();
            let Some(dep) = next else {
                on_way.remove(id);
                finished.push(id);
                continue;
            };
            way.push((id, at + 1));
            if on_way.contains(dep) {
                continue;
            }
            acyclic.entry(id).or_default().push(dep);
            if !deps.contains_key(dep) {
                deps.insert(dep, deps_of(dep));
                on_way.insert(dep);
                way.push((dep, 0));
            }
        }
        let mut depth: HashMap<&str, usize> = HashMap::from([(root, 0)]);
        for id in finished.iter().rev() {
            let own = depth.get(id).copied().unwrap_or(0);
            for dep in acyclic.get(id).into_iter().flatten() {
                let below = depth.entry(dep).or_insert(0);
                *below = (*below).max(own + 1);
            }
        }
        let mut reach: HashMap<&str, usize> = HashMap::new();
        for id in &finished {
            let below = acyclic.get(id).into_iter().flatten().filter_map(|dep| reach.get(dep)).copied().max();
            let own = depth.get(id).copied().unwrap_or(0);
            reach.insert(id, below.map_or(own, |below| below.max(own)));
        }
        Self { root, deps, depth, reach }
    }

    fn lines(&self, full: bool) -> Vec<Line<'a>> {
        let mut walk =
            Walk { tree: self, full, printed: HashSet::from([self.root]), way: vec![self.root], open: Vec::new() };
        let mut lines = vec![Line { id: self.root, depth: 0, lead: String::new() }];
        walk.push_children(self.root, 1, "");
        while let Some(branch) = walk.open.pop() {
            if lines.len() >= MAX_LINES {
                break;
            }
            if !full && !walk.printed.insert(branch.id) {
                continue;
            }
            walk.way.truncate(branch.depth);
            walk.way.push(branch.id);
            let connector = if branch.last { "└── " } else { "├── " };
            lines.push(Line { id: branch.id, depth: branch.depth, lead: format!("{}{connector}", branch.prefix) });
            let prefix = format!("{}{}", branch.prefix, if branch.last { "    " } else { "│   " });
            walk.push_children(branch.id, branch.depth + 1, &prefix);
        }
        lines
    }
}

/// The state of printing: what was printed, the path to the current ticket, and the branches still to come.
struct Walk<'t, 'a> {
    tree: &'t Tree<'a>,
    full: bool,
    printed: HashSet<&'a str>,
    way: Vec<&'a str>,
    open: Vec<Branch<'a>>,
}

struct Branch<'a> {
    id: &'a str,
    depth: usize,
    prefix: String,
    last: bool,
}

impl Walk<'_, '_> {
    fn push_children(&mut self, id: &str, depth: usize, prefix: &str) {
        let mut children = Vec::new();
        for dep in self.tree.deps.get(id).into_iter().flatten().copied() {
            let here = self.full || (!self.printed.contains(dep) && self.tree.depth.get(dep) == Some(&depth));
            if here && !self.way.contains(&dep) && !children.contains(&dep) {
                children.push(dep);
            }
        }
        children.sort_by_key(|child| (self.tree.reach.get(child).copied().unwrap_or(0), *child));
        let count = children.len();
        for (place, child) in children.into_iter().enumerate().rev() {
            self.open.push(Branch { id: child, depth, prefix: prefix.to_owned(), last: place + 1 == count });
        }
    }
}
