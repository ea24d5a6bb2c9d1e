//! Tells a process of a run, a gate or a hook from a person's, by three signs: the tree it hangs in, the namespace it lives in,
//! and the variables it was started with. A process can give up its name, its session, its parent and its environment; it
//! cannot leave the tree of a runner that adopts orphans (see `adopted`), nor its namespace.

use std::path::PathBuf;

use super::{RUN_ID_VARIABLE, procfs};

/// The variable that tells every process of a run whose it is: the state folder of its runner.
pub const OWNER_VARIABLE: &str = "DIRIGENT_OWNER";

/// More generations than anybody has.
const GENERATIONS: usize = 4096;
/// Processes come and go while their family is asked for.
const TRIES: usize = 5;

/// Where a process comes from, seen from this one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// Nothing leads from it to a run.
    Outside,
    Run(Sign),
    /// What could not be found out.
    Unclear(&'static str),
}

/// What gave it away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sign {
    /// We started it, or one that it descends from.
    Tree,
    Namespace,
    /// It, or one that it descends from, carries the id of a run that we are not part of ourselves.
    Mark,
}

impl Sign {
    pub fn words(self) -> &'static str {
        match self {
            Self::Tree => "its process tree",
            Self::Namespace => "its PID namespace",
            Self::Mark => "the mark of a run in its environment",
        }
    }
}

/// A run that we are inside of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Surrounding {
    pub run: String,
    /// The state folder of the runner that owns it, where it says so.
    pub owner: Option<PathBuf>,
}

/// Where the process `pid` comes from. `us` is the run that this process is itself a part of, if any: its mark tells nothing.
pub fn origin_of(pid: i32, us: Option<&str>) -> Origin {
    if pid <= 0 || !procfs::is_ours() {
        return Origin::Unclear("its process cannot be seen from here");
    }
    let mut seen = Origin::Unclear("its process is gone");
    for _ in 0..TRIES {
        let Some(found) = look(pid, us) else { continue };
        seen = found;
        break;
    }
    seen
}

/// One look; `None` when the family changed under it.
fn look(pid: i32, us: Option<&str>) -> Option<Origin> {
    let first = procfs::stat(pid).filter(|stat| !stat.dead)?;
    if procfs::namespace_depth(pid).is_some_and(|depth| depth > 1) {
        return Some(Origin::Run(Sign::Namespace));
    }
    match procfs::variable(pid, RUN_ID_VARIABLE) {
        Ok(mark) if is_foreign(mark.as_deref(), us) => return Some(Origin::Run(Sign::Mark)),
        Ok(_) => {}
        Err(_) => return procfs::stat(pid).map(|_| Origin::Unclear("its environment may not be read")),
    }
    let ourselves = i32::try_from(std::process::id()).unwrap_or(0);
    let above_us: Vec<i32> = ancestors(ourselves)?;
    let mut young = first;
    for _ in 0..GENERATIONS {
        let parent = young.parent;
        if parent == ourselves {
            return Some(Origin::Run(Sign::Tree));
        }
        // Whoever is above us too says nothing about the two of us.
        if parent == 0 || above_us.contains(&parent) {
            return unchanged(pid, first).then_some(Origin::Outside);
        }
        if procfs::variable(parent, RUN_ID_VARIABLE).is_ok_and(|mark| is_foreign(mark.as_deref(), us)) {
            return Some(Origin::Run(Sign::Mark));
        }
        match procfs::stat(parent) {
            Some(old) if old.started_ticks <= young.started_ticks => young = old,
            // Where the processes of other users are hidden, the way up ends at the first of them.
            None if procfs::stat(1).is_none() => return unchanged(pid, first).then_some(Origin::Outside),
            _ => return None,
        }
    }
    Some(Origin::Unclear("its process tree has no end"))
}

fn unchanged(pid: i32, before: procfs::Stat) -> bool {
    procfs::stat(pid) == Some(before)
}

/// The mark of a run that is not the one we are in.
fn is_foreign(mark: Option<&str>, us: Option<&str>) -> bool {
    mark.is_some_and(|mark| !mark.is_empty() && Some(mark) != us)
}

/// From the parent upwards, as far as it can be seen.
fn ancestors(pid: i32) -> Option<Vec<i32>> {
    let mut found = Vec::new();
    let mut next = procfs::stat(pid)?.parent;
    while next > 0 && !found.contains(&next) && found.len() < GENERATIONS {
        found.push(next);
        next = procfs::stat(next).map_or(0, |stat| stat.parent);
    }
    Some(found)
}

/// When the process began, in ticks since boot.
pub fn began(pid: i32) -> Option<u64> {
    procfs::stat(pid).map(|stat| stat.started_ticks)
}

/// The present moment in the same ticks.
pub fn ticks_now() -> Option<u64> {
    procfs::ticks_now()
}

/// Every run that this process is inside of, by its own environment and by those of the processes that it descends from.
pub fn surroundings() -> Vec<Surrounding> {
    let ours = |name: &str| std::env::var(name).ok();
    let ourselves = i32::try_from(std::process::id()).unwrap_or(0);
    let theirs = ancestors(ourselves).unwrap_or_default().into_iter().map(|pid| {
        let theirs = |name: &str| procfs::variable(pid, name).ok().flatten();
        (theirs(RUN_ID_VARIABLE), theirs(OWNER_VARIABLE))
    });
    let mut found: Vec<Surrounding> = Vec::new();
    for (run, owner) in std::iter::once((ours(RUN_ID_VARIABLE), ours(OWNER_VARIABLE))).chain(theirs) {
        let Some(run) = run.filter(|run| !run.is_empty()) else { continue };
        let one = Surrounding { run, owner: owner.filter(|owner| !owner.is_empty()).map(PathBuf::from) };
        if !found.contains(&one) {
            found.push(one);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_foreign_unless_it_is_our_own() {
        assert!(is_foreign(Some("a"), None));
        assert!(is_foreign(Some("a"), Some("b")));
        assert!(!is_foreign(Some("a"), Some("a")));
        assert!(!is_foreign(None, Some("a")));
        assert!(!is_foreign(Some(""), None));
    }

    #[test]
    fn a_child_of_ours_is_known_by_its_tree_and_our_parent_is_not() {
        let us = std::env::var(RUN_ID_VARIABLE).ok();
        let mut child = std::process::Command::new("sleep").arg("60").env_clear().spawn().unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        let origin = origin_of(pid, us.as_deref());
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(origin, Origin::Run(Sign::Tree));
        assert!(matches!(origin_of(pid, us.as_deref()), Origin::Unclear(_)), "it is gone");
        assert_eq!(origin_of(std::os::unix::process::parent_id() as i32, us.as_deref()), Origin::Outside);
    }
}
