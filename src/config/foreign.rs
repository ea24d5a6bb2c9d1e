//! Keys that related tools (Symphony, pi-symphony) define and that Dirigent does not have. They are known by name, so that files written
//! for these tools load. None is ignored silently: a key is read as one of Dirigent's keys, or a warning says that it has no effect, and
//! why.

/// A key that another tool defines.
#[derive(Debug, PartialEq, Eq)]
pub struct ForeignKey {
    /// The full path of the key. A `*` at the end stands for any rest of the name.
    pub key: &'static str,
    /// The tool that defines it.
    pub tool: &'static str,
    pub becomes: Becomes,
}

/// What a foreign key does here.
#[derive(Debug, PartialEq, Eq)]
pub enum Becomes {
    /// The key is read as this key of Dirigent, unless the file has that one too.
    Ours(&'static str),
    /// The key does nothing, for this reason.
    Nothing(&'static str),
}

const SYMPHONY: &str = "Symphony";
const PI_SYMPHONY: &str = "pi-symphony";

const fn nothing(key: &'static str, tool: &'static str, why: &'static str) -> ForeignKey {
    ForeignKey { key, tool, becomes: Becomes::Nothing(why) }
}

const fn ours(key: &'static str, tool: &'static str, our: &'static str) -> ForeignKey {
    ForeignKey { key, tool, becomes: Becomes::Ours(our) }
}

/// Every foreign key that is known. The flat keys of a tracker (such as `tracker.api_key`) are not listed: these are Dirigent's keys
/// under `tracker.provider`, written one level higher.
pub const FOREIGN: &[ForeignKey] = &[
    ours("agent.kind", SYMPHONY, "worker.runtime"),
    ours("pi.model_routing", PI_SYMPHONY, "agent.routing"),
    ours("pi.response_timeout_ms", PI_SYMPHONY, "pi.read_timeout_ms"),
    nothing(
        "workspace.cleanup_*",
        PI_SYMPHONY,
        "a finished run's workspace always goes; `workspace.keep` says when one stays",
    ),
    nothing("workspace.retention_hours", PI_SYMPHONY, "`dirigent gc --max-age` says how long leftovers stay"),
    nothing("agent.min_retry_interval_ms", PI_SYMPHONY, "the first retry waits 10 s and each one after it longer"),
    nothing(
        "agent.short_run_threshold_ms",
        PI_SYMPHONY,
        "a run that ends without progress is found by what it did, not by how short it was",
    ),
    nothing("recovery", PI_SYMPHONY, "every start settles what the last one left"),
];

/// Finds the foreign key with this full path; `None` for an unknown one.
pub fn find(path: &str) -> Option<&'static ForeignKey> {
    FOREIGN.iter().find(|foreign| match foreign.key.strip_suffix('*') {
        Some(stem) => path.starts_with(stem),
        None => path == foreign.key,
    })
}
