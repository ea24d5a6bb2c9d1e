//! The only place that reads the environment: `$NAME`, `~`, relative paths, and the defaults that depend on the workflow file's directory
//! or on other keys.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

use serde_json::{Map, Value as Json, json};
use sha2::{Digest, Sha256};

use super::repo_identity::repo_mark;
use super::tree::Node;
use crate::config::tracker::TrackerKind;
use crate::config::workspace::{ModeReason, is_url};

/// The variables that a workflow file may refer to. Tests make their own.
#[derive(Debug, Clone, Default)]
pub struct Env {
    vars: BTreeMap<String, String>,
}

impl Env {
    /// Takes the environment of this process, without variables that are not UTF-8.
    pub fn of_process() -> Self {
        let vars =
            std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
        Self { vars: vars.collect() }
    }

    pub fn of<const N: usize>(vars: [(&str, &str); N]) -> Self {
        Self { vars: vars.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect() }
    }

    /// Returns a variable's value. An empty value counts as none.
    fn get(&self, name: &str) -> Option<&str> {
        self.vars.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    pub fn home(&self) -> Option<PathBuf> {
        self.get("HOME").map(PathBuf::from)
    }

    /// Returns all variables, for the allow-list of a worker's environment.
    pub fn vars(&self) -> &BTreeMap<String, String> {
        &self.vars
    }
}

/// The result of expanding a value that may refer to a variable.
#[derive(Debug, PartialEq, Eq)]
pub enum Expanded {
    Plain(String),
    FromEnv {
        name: String,
        value: String,
    },
    /// The variable is not set, or empty.
    Missing {
        name: String,
    },
    Empty,
    /// `~` without a home directory.
    NoHome,
}

/// Expands values against the environment and the directory of the workflow file.
#[derive(Debug)]
pub struct Expander<'a> {
    env: &'a Env,
    dir: &'a Path,
}

impl<'a> Expander<'a> {
    /// Makes an expander. `dir` must be absolute.
    pub fn new(env: &'a Env, dir: &'a Path) -> Self {
        Self { env, dir }
    }

    /// Expands a secret: `$NAME` as the whole value, else the text itself.
    pub fn secret(&self, text: &str) -> Expanded {
        match variable(text) {
            Some(name) => match self.env.get(name) {
                Some(value) => Expanded::FromEnv { name: name.to_owned(), value: value.to_owned() },
                None => Expanded::Missing { name: name.to_owned() },
            },
            None if text.trim().is_empty() => Expanded::Empty,
            None => Expanded::Plain(text.to_owned()),
        }
    }

    /// Expands a path: `$NAME`, `$NAME/rest`, `~`, `~/rest`, absolute, or relative to the workflow file.
    pub fn path(&self, text: &str) -> Expanded {
        if is_url(text) {
            return Expanded::Plain(text.to_owned());
        }
        let (first, rest) = text.split_once('/').map_or((text, None), |(first, rest)| (first, Some(rest)));
        if let Some(name) = variable(first) {
            return match self.env.get(name) {
                Some(value) => {
                    let whole = rest.map_or(value.to_owned(), |rest| format!("{value}/{rest}"));
                    match self.plain_path(&whole) {
                        Some(value) => Expanded::FromEnv { name: name.to_owned(), value },
                        None => Expanded::NoHome,
                    }
                }
                None => Expanded::Missing { name: name.to_owned() },
            };
        }
        self.plain_path(text).map_or(Expanded::NoHome, Expanded::Plain)
    }

    fn plain_path(&self, text: &str) -> Option<String> {
        let path = match text.strip_prefix('~') {
            Some("") => self.env.home()?,
            Some(rest) if rest.starts_with('/') => self.env.home()?.join(rest.trim_start_matches('/')),
            _ => PathBuf::from(text),
        };
        Some(tidy(&self.dir.join(path)).to_string_lossy().into_owned())
    }
}

/// Returns the name if the whole text is `$NAME` or `${NAME}`.
fn variable(text: &str) -> Option<&str> {
    let name = text.trim().strip_prefix('$')?;
    let name = name.strip_prefix('{').and_then(|name| name.strip_suffix('}')).unwrap_or(name);
    let valid = !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    valid.then_some(name)
}

/// Removes `.` and `..` from a path, without looking at the disk.
fn tidy(path: &Path) -> PathBuf {
    let mut tidy = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                tidy.pop();
            }
            part => tidy.push(part),
        }
    }
    tidy
}

/// Returns the real path of the part that exists, with the rest appended, so that symbolic links do not hide where a path leads.
pub fn canonical(path: &Path) -> PathBuf {
    let mut missing = Vec::new();
    let mut existing = path;
    loop {
        if let Ok(real) = existing.canonicalize() {
            return missing.iter().rev().fold(real, |path, name: &&OsStr| path.join(name));
        }
        match (existing.parent(), existing.file_name()) {
            (Some(parent), Some(name)) => {
                missing.push(name);
                existing = parent;
            }
            _ => return path.to_owned(),
        }
    }
}

/// Fills in the defaults that depend on the workflow file's directory, the environment or other keys.
pub fn fill_defaults(data: Json, root: &Node, dir: &Path, env: &Env) -> (Json, Derived) {
    let mut data = Sections::of(data);
    let mut derived = Derived::default();
    let kind: TrackerKind =
        data.get("tracker", "kind").and_then(|kind| serde_json::from_value(kind.clone()).ok()).unwrap_or_default();
    data.fill("tracker", "active_states", || json!(kind.active_states()));
    data.fill("tracker", "terminal_states", || json!(kind.terminal_states()));

    let base = data.text("pr", "base_branch").unwrap_or_else(|| "main".to_owned());
    data.fill("workspace", "base", || json!(base));
    let written = data.text("workspace", "repo");
    derived.clone_of = written.clone().filter(|text| is_url(text));
    let repo = match &derived.clone_of {
        Some(url) => clone_place(env, url),
        None => canonical(&written.map_or_else(|| work_tree(dir), PathBuf::from)),
    };
    // People's own files are beside the workflow file, not in a clone that nobody opens.
    let home = if derived.clone_of.is_some() { dir.to_owned() } else { repo.clone() };
    derived.home.clone_from(&home);
    data.set("workspace", "repo", json!(repo));
    let root_dir = data.text("workspace", "root").map_or_else(|| default_root(env, &repo), PathBuf::from);
    data.set("workspace", "root", json!(canonical(&root_dir)));
    derived.mode_reason = workspace_mode(&mut data, root);

    if kind == TrackerKind::Tk {
        let mut provider = data.get("tracker", "provider").cloned().unwrap_or_else(|| json!({}));
        if let Some(provider) = provider.as_object_mut() {
            provider.entry("dir").or_insert_with(|| json!(home.join(".tickets")));
        }
        data.set("tracker", "provider", provider);
    }
    if kind == TrackerKind::Github {
        github_token(&mut data, root, env, &mut derived);
    }
    if kind == TrackerKind::Linear {
        linear_access(&mut data, root, env, &mut derived);
        derived.agent_writes = agent_tool_by_dialect(&mut data, root);
    }
    data.set("pr", "provider", forge_access(&data, root, kind, env));
    data.fill("rollout", "kill_switch_file", || json!(home.join(".dirigent/pause")));
    data.fill("observability", "agent_state_file", || json!(home.join(".bkit/agent-state.json")));

    for key in ["turn_timeout_ms", "read_timeout_ms", "stall_timeout_ms"] {
        let Some(inherited) = data.get("codex", key).cloned() else { continue };
        for runtime in ["claude", "pi", "acp", "exec"] {
            if data.fill(runtime, key, || inherited.clone()) {
                derived.taken_from.insert(format!("{runtime}.{key}"), format!("codex.{key}"));
            }
        }
    }
    (data.into_json(), derived)
}

/// Whether the workflow file names a value for this key. A variable that is not set counts: whoever names an account does not want another
/// one in its place.
fn is_named(root: &Node, path: &str) -> bool {
    root.at(path).is_some_and(|node| node.text().is_none_or(|text| !text.trim().is_empty()))
}

fn names_access(root: &Node, provider: &str) -> bool {
    ["token", "app_id"].iter().any(|key| is_named(root, &format!("{provider}.{key}")))
}

/// Sets the board's token from the variables that GitHub's own tools read, if the workflow file names no access.
fn github_token(data: &mut Sections, root: &Node, env: &Env, derived: &mut Derived) {
    let mut provider = data.get("tracker", "provider").cloned().unwrap_or_else(|| json!({}));
    let Some(known) = provider.as_object_mut() else { return };
    if names_access(root, "tracker.provider") {
        return;
    }
    let found = ["GITHUB_TOKEN", "GH_TOKEN"].into_iter().find_map(|name| Some((name, env.get(name)?)));
    if let Some((name, token)) = found {
        known.insert("token".to_owned(), json!(token));
        derived.taken_from.insert("tracker.provider.token".to_owned(), format!("${name}"));
        data.set("tracker", "provider", provider);
    }
}

/// Sets Linear's access from the variables that Symphony reads, where the workflow file does not name it, and expands `$NAME` in scope keys.
/// A variable that is not set stays as it is written, so that a check finds it: a scope that silently vanished would widen what runs.
fn linear_access(data: &mut Sections, root: &Node, env: &Env, derived: &mut Derived) {
    let mut provider = data.get("tracker", "provider").cloned().unwrap_or_else(|| json!({}));
    let Some(known) = provider.as_object_mut() else { return };
    for (key, name) in [("api_key", "LINEAR_API_KEY"), ("assignee", "LINEAR_ASSIGNEE")] {
        let path = format!("tracker.provider.{key}");
        if let (false, Some(value)) = (known.contains_key(key) || is_named(root, &path), env.get(name)) {
            known.insert(key.to_owned(), json!(value));
            derived.taken_from.insert(path, format!("${name}"));
        }
    }
    for key in ["team_key", "project_slug", "assignee", "endpoint"] {
        let named = known.get(key).and_then(Json::as_str).and_then(variable).map(str::to_owned);
        if let Some((name, value)) = named.and_then(|name| Some((name.clone(), env.get(&name)?))) {
            known.insert(key.to_owned(), json!(value));
            derived.taken_from.insert(format!("tracker.provider.{key}"), format!("${name}"));
        }
    }
    data.set("tracker", "provider", provider);
}

/// Returns the access to the forge: as written, else that of a board on GitHub, else from the environment if the file names neither.
fn forge_access(data: &Sections, root: &Node, kind: TrackerKind, env: &Env) -> Json {
    let mut access = data.get("pr", "provider").cloned().unwrap_or_else(|| json!({}));
    let Some(written) = access.as_object_mut() else { return access };
    let has = |written: &Map<String, Json>, key: &str| written.get(key).is_some_and(|value| !value.is_null());
    let is_told = names_access(root, "pr.provider");
    let board = data.get("tracker", "provider").and_then(Json::as_object).filter(|_| kind == TrackerKind::Github);
    for key in ["token", "app_id", "private_key", "installation_id", "api_url"] {
        if (!is_told || key == "api_url")
            && !has(written, key)
            && let Some(value) = board.and_then(|board| board.get(key)).filter(|value| !value.is_null())
        {
            written.insert(key.to_owned(), value.clone());
        }
    }
    let board_is_told = kind == TrackerKind::Github && names_access(root, "tracker.provider");
    if !is_told
        && !board_is_told
        && !has(written, "token")
        && !has(written, "app_id")
        && let Some(token) = env.get("GITHUB_TOKEN").or_else(|| env.get("GH_TOKEN"))
    {
        written.insert("token".to_owned(), json!(token));
    }
    access
}

/// What was derived from other values, instead of written or built in.
#[derive(Debug, Default)]
pub struct Derived {
    pub mode_reason: ModeReason,
    /// The address in `workspace.repo`. `None` if that is a path.
    pub clone_of: Option<String>,
    /// The folder that holds `.dirigent/` and `.tickets/`.
    pub home: PathBuf,
    /// Whether `tracker.provider.agent_tool` is `write` because the file is written for Symphony.
    pub agent_writes: bool,
    /// The source of a value, by key: another key, or a variable as `$NAME`.
    pub taken_from: BTreeMap<String, String>,
}

/// Sets `agent_tool` to `write` in a file written for Symphony, whose prompt has the agent move its ticket and comment on it. Returns
/// whether the file is one.
fn agent_tool_by_dialect(data: &mut Sections, root: &Node) -> bool {
    let written = |path: &str| root.at(path).is_some_and(|node| !node.is_null());
    if written("tracker.provider.agent_tool") || written("orchestration.states") || written("pr") {
        return false;
    }
    let mut provider = data.get("tracker", "provider").cloned().unwrap_or_else(|| json!({}));
    if let Some(provider) = provider.as_object_mut() {
        provider.insert("agent_tool".to_owned(), json!("write"));
    }
    data.set("tracker", "provider", provider);
    true
}

/// Chooses `workspace.mode` where it is not written: `directory` if the `after_create` hook clones a repository itself.
fn workspace_mode(data: &mut Sections, root: &Node) -> ModeReason {
    if data.text("workspace", "mode").is_some() {
        return ModeReason::Written;
    }
    let clones = data.text("hooks", "after_create").is_some_and(|script| {
        ["git clone", "repo clone", "worktree add", "jj git clone", "hg clone"].iter().any(|call| script.contains(call))
    });
    if clones && root.at("workspace.repo").is_none() {
        data.set("workspace", "mode", json!("directory"));
        return ModeReason::HookClones;
    }
    ModeReason::Default
}

/// Returns the repository of a workflow file in `dir` that does not set one.
pub fn usual_repo(dir: &Path) -> PathBuf {
    canonical(&work_tree(dir))
}

/// Returns the nearest directory upwards that is a git work tree, else `dir` itself.
fn work_tree(dir: &Path) -> PathBuf {
    let is_kept = |candidate: &&Path| {
        let git = candidate.join(".git");
        git.is_file() || git.join("HEAD").exists()
    };
    dir.ancestors().find(is_kept).unwrap_or(dir).to_owned()
}

/// Returns the folder for everything that the program keeps: `$DIRIGENT_HOME`, else `~/.dirigent`.
pub fn dirigent_home(env: &Env) -> PathBuf {
    let home = || env.home().unwrap_or_else(|| PathBuf::from("/")).join(".dirigent");
    env.get("DIRIGENT_HOME").map_or_else(home, PathBuf::from)
}

/// Whether `$DIRIGENT_HOME` is set.
pub fn has_own_home(env: &Env) -> bool {
    env.get("DIRIGENT_HOME").is_some()
}

/// Returns the default name for a repository's folders: its directory's name and a hash of its path.
pub fn path_mark(repo: &Path) -> String {
    let name = repo.file_name().map_or_else(|| "repo".into(), |name| name.to_string_lossy());
    let digest = Sha256::digest(repo.as_os_str().as_encoded_bytes());
    let mark: String = digest.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    format!("{name}-{mark}")
}

/// Returns where a repository given by its address is cloned to. Runs commit into the clone, so it is outside of the folders that runs
/// cannot write to.
fn clone_place(env: &Env, url: &str) -> PathBuf {
    let name = url.trim_end_matches('/').rsplit(['/', ':']).next().unwrap_or_default();
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
    let name: String = name.strip_suffix(".git").unwrap_or(name).chars().map(plain).collect();
    let digest: String = Sha256::digest(url).iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    dirigent_home(env).join("clones").join(digest).join(name.trim_start_matches('.'))
}

fn default_root(env: &Env, repo: &Path) -> PathBuf {
    dirigent_home(env).join("workspaces").join(repo_mark(repo, env))
}

/// The checked front matter, by section.
#[derive(Debug, Default)]
struct Sections(BTreeMap<String, Map<String, Json>>);

impl Sections {
    fn of(data: Json) -> Self {
        let Json::Object(sections) = data else { return Self::default() };
        let sections = sections.into_iter().filter_map(|(name, section)| match section {
            Json::Object(section) => Some((name, section)),
            _ => None,
        });
        Self(sections.collect())
    }

    fn get(&self, section: &str, key: &str) -> Option<&Json> {
        self.0.get(section)?.get(key)
    }

    fn text(&self, section: &str, key: &str) -> Option<String> {
        self.get(section, key)?.as_str().map(str::to_owned)
    }

    fn set(&mut self, section: &str, key: &str, value: Json) {
        self.0.entry(section.to_owned()).or_default().insert(key.to_owned(), value);
    }

    /// Sets a value that is missing. Returns whether it was missing.
    fn fill(&mut self, section: &str, key: &str, value: impl FnOnce() -> Json) -> bool {
        let missing = self.get(section, key).is_none();
        if missing {
            self.set(section, key, value());
        }
        missing
    }

    fn into_json(self) -> Json {
        Json::Object(self.0.into_iter().map(|(name, section)| (name, Json::Object(section))).collect())
    }
}
