//! Reads `/proc` for information about processes.

use std::fs;
use std::io::{self, Read};

use crate::domain::run::ProcessMark;

/// The most bytes of an environment that are searched.
const ENVIRON_LIMIT: u64 = 4 << 20;

/// Returns the mark of a process that exists now, zombies included.
pub fn mark(pid: i32) -> Option<ProcessMark> {
    stat(pid).map(|stat| ProcessMark { pid, started_ticks: stat.started_ticks })
}

/// Whether the marked process is alive; a later process with the same id does not count.
pub fn alive(mark: ProcessMark) -> bool {
    stat(mark.pid).is_some_and(|stat| stat.started_ticks == mark.started_ticks && !stat.dead)
}

/// The fields of `/proc/PID/stat` that are needed here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    pub parent: i32,
    pub started_ticks: u64,
    /// Whether the process is a zombie or nearly gone.
    pub dead: bool,
}

/// Returns the fields of a process. `None` if it does not exist or must not be seen.
pub fn stat(pid: i32) -> Option<Stat> {
    parse_stat(&fs::read(format!("/proc/{pid}/stat")).ok()?)
}

/// Parses the fields. The command name may contain spaces and parentheses, so they are counted from the last `)`.
fn parse_stat(stat: &[u8]) -> Option<Stat> {
    let text = String::from_utf8_lossy(stat);
    let (_, fields) = text.rsplit_once(')')?;
    let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
    Some(Stat {
        dead: matches!(*fields.first()?, "Z" | "X" | "x"),
        parent: fields.get(1)?.parse().ok()?,
        started_ticks: fields.get(19)?.parse().ok()?,
    })
}

/// Returns the ids of all processes.
pub fn pids() -> Vec<i32> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect()
}

/// Returns the children of a process, zombies included.
pub fn children(pid: i32) -> Vec<ProcessMark> {
    let listed = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok();
    match listed {
        Some(children) => children.split_ascii_whitespace().filter_map(|child| mark(child.parse().ok()?)).collect(),
        None => {
            let theirs = |other: &i32| stat(*other).is_some_and(|stat| stat.parent == pid);
            pids().into_iter().filter(theirs).filter_map(mark).collect()
        }
    }
}

/// Returns the first child of a process.
pub fn only_child(pid: i32) -> Option<ProcessMark> {
    children(pid).into_iter().next()
}

/// Returns the time since boot in the unit of start times.
pub fn ticks_now() -> Option<u64> {
    let uptime: f64 = fs::read_to_string("/proc/uptime").ok()?.split_ascii_whitespace().next()?.parse().ok()?;
    let per_second = nix::unistd::sysconf(nix::unistd::SysconfVar::CLK_TCK).ok()??;
    Some((uptime * per_second as f64) as u64)
}

/// Returns everything below a process, without the process itself.
pub fn descendants(root: i32) -> Vec<i32> {
    let family: Vec<(i32, i32)> = pids().into_iter().filter_map(|pid| Some((pid, stat(pid)?.parent))).collect();
    let mut found = vec![root];
    let mut next = 0;
    while let Some(parent) = found.get(next).copied() {
        next += 1;
        let children: Vec<i32> = family.iter().filter(|(_, its)| *its == parent).map(|(pid, _)| *pid).collect();
        for child in children {
            if !found.contains(&child) {
                found.push(child);
            }
        }
    }
    found.split_off(1)
}

/// Returns the zombies that are children of this process.
pub fn dead_children() -> Vec<i32> {
    let ourselves = i32::try_from(std::process::id()).unwrap_or(0);
    let ours = |pid: &i32| stat(*pid).is_some_and(|stat| stat.parent == ourselves && stat.dead);
    pids().into_iter().filter(ours).collect()
}

/// Whether `/proc` is that of this process's PID namespace. Only then do its numbers mean the same processes.
pub fn is_ours() -> bool {
    fs::read_link("/proc/self").is_ok_and(|link| link.to_str() == Some(std::process::id().to_string().as_str()))
}

/// Returns how many PID namespaces the process is in, counted from this process's: 1 means the same one.
pub fn namespace_depth(pid: i32) -> Option<usize> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
    Some(line.split_ascii_whitespace().count())
}

/// Returns the value of one variable in the environment that a process was started with. The error means that it must not be read.
pub fn variable(pid: i32, name: &str) -> io::Result<Option<String>> {
    let environ = environ(pid)?;
    let value =
        environ.split(|byte| *byte == 0).find_map(|entry| entry.strip_prefix(name.as_bytes())?.strip_prefix(b"="));
    Ok(value.map(|value| String::from_utf8_lossy(value).into_owned()))
}

fn environ(pid: i32) -> io::Result<Vec<u8>> {
    let mut environ = Vec::new();
    fs::File::open(format!("/proc/{pid}/environ"))?.take(ENVIRON_LIMIT).read_to_end(&mut environ)?;
    Ok(environ)
}

/// Returns the living processes whose environment contains one of `entries` (`NAME=value`), without this process.
pub fn with_environ(entries: &[String]) -> Vec<i32> {
    let ourselves = i32::try_from(std::process::id()).unwrap_or(0);
    pids()
        .into_iter()
        .filter(|pid| *pid != ourselves && *pid > 1)
        .filter(|pid| {
            environ(*pid).is_ok_and(|environ| {
                environ.split(|byte| *byte == 0).any(|one| entries.iter().any(|entry| entry.as_bytes() == one))
            })
        })
        .filter(|pid| stat(*pid).is_some_and(|stat| !stat.dead))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_and_spaces_does_not_shift_the_fields() {
        let line = b"42 (a) b (c) S 7 42 42 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 987654 1 2 3";
        let stat = parse_stat(line).unwrap();
        assert_eq!((stat.parent, stat.started_ticks, stat.dead), (7, 987_654, false));
    }

    #[test]
    fn a_mark_is_alive_only_with_its_own_start_time() {
        let ours = mark(i32::try_from(std::process::id()).unwrap()).unwrap();
        assert!(alive(ours));
        assert!(!alive(ProcessMark { started_ticks: ours.started_ticks + 1, ..ours }));
    }
}
