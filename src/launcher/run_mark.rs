//! Tells a process of a run, a gate or a hook from a person's, by three signs: its process tree, its PID namespace, and the variables it
//! was started with. A process can change its name, session, parent and environment. It can leave neither the tree of a runner that adopts
//! orphans (see `adopted`) nor its namespace.

use std::path::PathBuf;

use super::{RUN_ID_VARIABLE, procfs};

/// The variable in every process of a run that holds the state folder of its runner.
pub const OWNER_VARIABLE: &str = "DIRIGENT_OWNER";

/// The most ancestors that are followed, which is more than any process has.
const GENERATIONS: usize = 4096;
/// How often the search is repeated when processes come or go meanwhile.
const TRIES: usize = 5;

/// Where a process comes from, as seen from this process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// Nothing connects it to a run.
    Outside,
    Run(Sign),
    /// It cannot be determined. The text says what is missing.
    Unclear(&'static str),
}

/// The sign by which a process of a run was recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sign {
    /// It descends from this process.
    Tree,
    Namespace,
    /// It, or one of its ancestors, has the id of a run in its environment, other than the run that this process is part of.
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

/// A run that this process is part of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Surrounding {
    pub run: String,
    /// The state folder of the runner that owns the run, if the environment contains it.
    pub owner: Option<PathBuf>,
}

/// Returns where the process `pid` comes from. `us` is the run that this process is part of, if any; its mark is ignored.
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

/// Looks once. `None` if the process tree changed meanwhile.
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
        // A common ancestor proves nothing.
        if parent == 0 || above_us.contains(&parent) {
            return unchanged(pid, first).then_some(Origin::Outside);
        }
        if procfs::variable(parent, RUN_ID_VARIABLE).is_ok_and(|mark| is_foreign(mark.as_deref(), us)) {
            return Some(Origin::Run(Sign::Mark));
        }
        match procfs::stat(parent) {
            Some(old) if old.started_ticks <= young.started_ticks => young = old,
            // Where processes of other users are hidden, the way up ends at the first of them.
            None if procfs::stat(1).is_none() => return unchanged(pid, first).then_some(Origin::Outside),
            _ => return None,
        }
    }
    Some(Origin::Unclear("its process tree has no end"))
}

fn unchanged(pid: i32, before: procfs::Stat) -> bool {
    procfs::stat(pid) == Some(before)
}

/// Whether it is the mark of another run than the one that this process is part of.
fn is_foreign(mark: Option<&str>, us: Option<&str>) -> bool {
    mark.is_some_and(|mark| !mark.is_empty() && Some(mark) != us)
}

/// Returns the ancestors from the parent upwards, as far as they can be seen.
fn ancestors(pid: i32) -> Option<Vec<i32>> {
    let mut found = Vec::new();
    let mut next = procfs::stat(pid)?.parent;
    while next > 0 && !found.contains(&next) && found.len() < GENERATIONS {
        found.push(next);
        next = procfs::stat(next).map_or(0, |stat| stat.parent);
    }
    Some(found)
}

/// Returns when the process began, in ticks since boot.
pub fn began(pid: i32) -> Option<u64> {
    procfs::stat(pid).map(|stat| stat.started_ticks)
}

/// Returns the present time in the same ticks.
pub fn ticks_now() -> Option<u64> {
    procfs::ticks_now()
}

/// Returns every run that this process is part of, by its own environment and by those of its ancestors.
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
