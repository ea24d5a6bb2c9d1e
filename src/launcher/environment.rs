//! What workers, gates and hooks may know of the user's environment. A worker or a gate executes what an agent wrote: it gets an
//! allow-list, its own variables, and nothing to log in with. A hook is the workflow's own command: it gets everything. Neither gets
//! a secret of the tracker, the forge or the server, whatever it is called or wrapped in.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use secrecy::{ExposeSecret, SecretString};

use super::worker_git;
use crate::config::wire::MASK;
use crate::domain::ids::{RunId, TicketId, TicketKey};
use crate::domain::phase::Phase;

/// What every program needs to feel at home.
const BASE: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LANG",
    "LC_*",
    "TERM",
    "TMPDIR",
    "SHELL",
    "TZ",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "all_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "ALL_PROXY",
    "GIT_AUTHOR_NAME",
    "GIT_AUTHOR_EMAIL",
    "GIT_COMMITTER_NAME",
    "GIT_COMMITTER_EMAIL",
];

/// Shorter values are too likely to be part of something else.
const SHORTEST_PART: usize = 8;

/// What must never reach a worker.
#[derive(Debug, Clone, Default)]
pub struct Secrets {
    pub names: Vec<String>,
    pub values: Vec<SecretString>,
}

impl Secrets {
    /// Whether this variable has to stay behind.
    pub fn hide(&self, name: &str, value: &str) -> bool {
        self.names.iter().any(|secret| secret == name) || self.found_in(value)
    }

    /// Whether the text holds a secret: plain, in base64 (alone, or as a part of something longer) or with percent signs.
    pub fn found_in(&self, text: &str) -> bool {
        if self.values.is_empty() {
            return false;
        }
        let whole = |text: &str| decode_base64(text).is_some_and(|decoded| self.within(&decoded));
        if self.within(text.as_bytes()) || self.within(&decode_percent(text)) || whole(text.trim_end_matches('=')) {
            return true;
        }
        // What stands before it decides where its first byte begins: `name=`, a path, `user:` inside of it.
        text.split(|c: char| !(c.is_ascii_alphanumeric() || "+/-_".contains(c)))
            .filter(|run| run.len() >= SHORTEST_PART)
            .any(|run| (0..4).filter_map(|skip| run.get(skip..)).any(whole))
    }

    /// The text without any secret: plain, as JSON writes it, and every word that holds one in base64 or with percent signs.
    pub fn cut_from(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for secret in &self.values {
            let plain = secret.expose_secret().trim();
            let in_json = serde_json::to_string(plain).unwrap_or_default();
            for form in [plain, in_json.trim_matches('"')] {
                if form.len() >= SHORTEST_PART && text.contains(form) {
                    text = text.replace(form, MASK);
                }
            }
        }
        let is_edge = |c: char| !(c.is_ascii_alphanumeric() || "+/=_-%.~".contains(c));
        let words: Vec<&str> =
            text.split(is_edge).filter(|word| word.len() >= SHORTEST_PART && self.found_in(word)).collect();
        words.iter().fold(text.clone(), |text, word| text.replace(word, MASK))
    }

    fn within(&self, text: &[u8]) -> bool {
        self.values
            .iter()
            .map(|secret| secret.expose_secret().trim().as_bytes())
            .filter(|secret| !secret.is_empty())
            .any(|secret| {
                let part = secret.len() >= SHORTEST_PART && text.windows(secret.len()).any(|window| window == secret);
                part || text == secret
            })
    }
}

/// The variables that only a worker has.
#[derive(Debug, Clone)]
pub struct WorkerVariables {
    pub ticket: TicketId,
    pub key: TicketKey,
    pub run: RunId,
    pub attempt: u32,
    pub phase: Phase,
    pub branch: String,
    pub base: String,
    pub socket: PathBuf,
    pub token: String,
    pub prompt_file: PathBuf,
    pub artifacts: PathBuf,
}

/// Where a worker's environment comes from.
#[derive(Debug, Clone, Copy)]
pub struct Sources<'a> {
    /// The user's environment, as a login shell has it.
    pub parent: &'a BTreeMap<String, String>,
    /// Names, or `PREFIX_*`, that are let through besides the base: the runtime's own and `worker.env_pass`.
    pub pass: &'a [String],
    /// `worker.env`, expanded.
    pub set: &'a BTreeMap<String, String>,
    pub secrets: &'a Secrets,
    /// A directory that [`install_tools`] made, put in front of `PATH`.
    pub tools: &'a Path,
}

/// What would lead git, or a tool of ours, somewhere else than where the hook stands.
const LEADS_ASTRAY: [&str; 10] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_COMMON_DIR",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_NAMESPACE",
    "GIT_PREFIX",
    "PWD",
    "OLDPWD",
];

/// The complete environment of a worker, or of a gate (`worker` is `None`).
pub fn build(sources: Sources<'_>, worker: Option<&WorkerVariables>) -> BTreeMap<String, String> {
    let mut env: BTreeMap<String, String> = sources
        .parent
        .iter()
        .filter(|(name, _)| allowed(name, sources.pass))
        .chain(sources.set)
        .filter(|(name, value)| !sources.secrets.hide(name, value))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    prepare_tools(&mut env, sources.tools);
    let ssh_passed = sources.pass.iter().any(|pattern| fits(pattern, "SSH_AUTH_SOCK"));
    worker_git::take_logins_away(&mut env, sources.tools, ssh_passed);
    if let Some(worker) = worker {
        let socket = worker.socket.display().to_string();
        let own = [
            ("DIRIGENT_TICKET_ID", worker.ticket.to_string()),
            ("DIRIGENT_TICKET_KEY", worker.key.to_string()),
            ("DIRIGENT_RUN_ID", worker.run.to_string()),
            ("DIRIGENT_ATTEMPT", worker.attempt.to_string()),
            ("DIRIGENT_PHASE", worker.phase.name().to_owned()),
            ("DIRIGENT_BRANCH", worker.branch.clone()),
            ("DIRIGENT_BASE", worker.base.clone()),
            ("DIRIGENT_SOCKET", socket.clone()),
            ("DIRIGENT_TOKEN", worker.token.clone()),
            ("DIRIGENT_PROMPT_FILE", worker.prompt_file.display().to_string()),
            ("DIRIGENT_ARTIFACTS", worker.artifacts.display().to_string()),
            ("PI_TEAMS_WORKER", "1".to_owned()),
            ("PI_TEAMS_TICKET_ID", worker.ticket.to_string()),
            ("PI_TEAMS_LEADER_SESSION", socket),
        ];
        env.extend(own.into_iter().map(|(name, value)| (name.to_owned(), value)));
    }
    drop_what_cannot_be_passed(&mut env);
    env
}

/// The complete environment of a hook: the user's own, SSH agent and all, without our secrets.
pub fn build_for_hook(sources: Sources<'_>) -> BTreeMap<String, String> {
    let ours = |name: &str| name.starts_with("DIRIGENT_") || name.starts_with("PI_TEAMS_");
    let mut env: BTreeMap<String, String> = sources
        .parent
        .iter()
        .filter(|(name, _)| !ours(name) && !LEADS_ASTRAY.contains(&name.as_str()))
        .chain(sources.set)
        .filter(|(name, value)| !sources.secrets.hide(name, value))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    prepare_tools(&mut env, sources.tools);
    drop_what_cannot_be_passed(&mut env);
    env
}

/// `tk` comes first, and nothing waits for an answer that nobody gives.
fn prepare_tools(env: &mut BTreeMap<String, String>, tools: &Path) {
    let path = env.remove("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
    env.insert("PATH".into(), format!("{}:{path}", tools.display()));
    env.insert("GIT_TERMINAL_PROMPT".into(), "0".into());
    env.insert("GIT_EDITOR".into(), "true".into());
}

fn drop_what_cannot_be_passed(env: &mut BTreeMap<String, String>) {
    env.retain(|name, value| !name.is_empty() && !name.contains(['=', '\0']) && !value.contains('\0'));
}

fn allowed(name: &str, pass: &[String]) -> bool {
    BASE.iter().copied().chain(pass.iter().map(String::as_str)).any(|pattern| fits(pattern, name))
}

/// A name, or `PREFIX_*`.
fn fits(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(prefix) => !prefix.is_empty() && name.starts_with(prefix),
        None => pattern == name,
    }
}

/// Makes `directory/tk` point at `binary`, and what keeps workers from the user's logins.
pub fn install_tools(directory: &Path, binary: &Path) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    worker_git::install(directory)?;
    let link = directory.join("tk");
    if fs::read_link(&link).is_ok_and(|target| target == binary) {
        return Ok(());
    }
    let fresh = directory.join(format!(".tk-{}", std::process::id()));
    fs::remove_file(&fresh).ok();
    symlink(binary, &fresh)?;
    fs::rename(&fresh, &link)
}

fn decode_percent(text: &str) -> Vec<u8> {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let escaped = (*byte == b'%')
            .then(|| text.get(at + 1..at + 3))
            .flatten()
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        out.push(escaped.unwrap_or(*byte));
        at += if escaped.is_some() { 3 } else { 1 };
    }
    out
}

/// Both alphabets, without padding.
fn decode_base64(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    let (mut bits, mut filled) = (0_u32, 0_u32);
    for byte in text.trim().bytes() {
        let digit = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => return None,
        };
        bits = (bits << 6 | u32::from(digit)) & 0x00ff_ffff;
        filled += 6;
        if filled >= 8 {
            filled -= 8;
            out.push(u8::try_from(bits >> filled & 0xff).unwrap_or_default());
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(entries: &[(&str, &str)]) -> BTreeMap<String, String> {
        entries.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn secrets() -> Secrets {
        Secrets { names: vec!["LINEAR_API_KEY".into()], values: vec![SecretString::from("lin/api+s3cret")] }
    }

    fn worker() -> WorkerVariables {
        WorkerVariables {
            ticket: "id-1".into(),
            key: "ENG-1".into(),
            run: "01RUN".into(),
            attempt: 2,
            phase: Phase::Rework,
            branch: "dirigent/ENG-1-x".into(),
            base: "main".into(),
            socket: "/run/d/1.sock".into(),
            token: "t".into(),
            prompt_file: "/s/prompt.md".into(),
            artifacts: "/s/artifacts".into(),
        }
    }

    fn built(parent: &[(&str, &str)], pass: &[&str], set: &[(&str, &str)]) -> BTreeMap<String, String> {
        let (parent, set) = (map(parent), map(set));
        let pass: Vec<String> = pass.iter().map(|name| (*name).to_owned()).collect();
        let secrets = secrets();
        let sources =
            Sources { parent: &parent, pass: &pass, set: &set, secrets: &secrets, tools: Path::new("/state/bin") };
        build(sources, Some(&worker()))
    }

    #[test]
    fn only_listed_names_are_inherited() {
        let parent = [("HOME", "/h"), ("LC_ALL", "C"), ("AWS_SECRET_ACCESS_KEY", "k"), ("FOO_A", "1"), ("BAR", "2")];
        let env = built(&parent, &["FOO_*"], &[("SET", "3")]);
        assert_eq!(env.get("HOME").map(String::as_str), Some("/h"));
        assert_eq!(env.get("LC_ALL").map(String::as_str), Some("C"));
        assert_eq!(env.get("FOO_A").map(String::as_str), Some("1"));
        assert_eq!(env.get("SET").map(String::as_str), Some("3"));
        assert!(!env.contains_key("AWS_SECRET_ACCESS_KEY") && !env.contains_key("BAR"));
    }

    #[test]
    fn a_lone_star_lets_nothing_through() {
        assert!(!built(&[("BAR", "2")], &["*"], &[]).contains_key("BAR"));
    }

    #[test]
    fn a_secret_goes_by_name_and_by_value_in_every_wrapping() {
        // base64 of `lin/api+s3cret`, and of `user:lin/api+s3cret`.
        let parent = [
            ("LINEAR_API_KEY", "harmless"),
            ("COPY", "lin/api+s3cret"),
            ("URL", "https://u:lin%2Fapi%2Bs3cret@host/x"),
            ("BASE64", "bGluL2FwaStzM2NyZXQ="),
            ("BASIC", "dXNlcjpsaW4vYXBpK3MzY3JldA"),
            ("HEADER", "Authorization: Basic dXNlcjpsaW4vYXBpK3MzY3JldA=="),
            ("PATH_OF_IT", "https://host/xx/bGluL2FwaStzM2NyZXQ=/y"),
            ("NAMED", "token=bGluL2FwaStzM2NyZXQ="),
            ("FINE", "lin/api"),
        ];
        let names: Vec<&str> = parent.iter().map(|(name, _)| *name).collect();
        let env = built(&parent, &names, &[("SET", "lin/api+s3cret"), ("SET_URL", "lin%2fapi%2bs3cret")]);
        let left: Vec<&str> =
            names.iter().chain(&["SET", "SET_URL"]).copied().filter(|name| env.contains_key(*name)).collect();
        assert_eq!(left, ["FINE"]);
    }

    #[test]
    fn a_hook_keeps_the_users_environment_without_our_secrets_and_without_what_leads_astray() {
        let parent = map(&[
            ("PATH", "/usr/bin"),
            ("SSH_AUTH_SOCK", "/agent"),
            ("AWS_PROFILE", "work"),
            ("LINEAR_API_KEY", "harmless"),
            ("COPY", "lin/api+s3cret"),
            ("GIT_DIR", "/elsewhere"),
            ("DIRIGENT_SOCKET", "/outer.sock"),
        ]);
        let (set, secrets) = (map(&[("SET", "3")]), secrets());
        let sources =
            Sources { parent: &parent, pass: &[], set: &set, secrets: &secrets, tools: Path::new("/state/bin") };
        let env = build_for_hook(sources);
        let names: Vec<&str> = env.keys().map(String::as_str).collect();
        assert_eq!(names, ["AWS_PROFILE", "GIT_EDITOR", "GIT_TERMINAL_PROMPT", "PATH", "SET", "SSH_AUTH_SOCK"]);
    }

    #[test]
    fn the_workers_own_variables_win_over_inherited_ones() {
        let env = built(&[("PATH", "/usr/bin"), ("DIRIGENT_RUN_ID", "outer")], &["DIRIGENT_*"], &[]);
        assert_eq!(env["PATH"], "/state/bin:/usr/bin");
        assert_eq!(env["DIRIGENT_RUN_ID"], "01RUN");
        assert_eq!(env["DIRIGENT_PHASE"], "rework");
        assert_eq!(env["PI_TEAMS_LEADER_SESSION"], "/run/d/1.sock");
        assert_eq!((env["GIT_TERMINAL_PROMPT"].as_str(), env["GIT_EDITOR"].as_str()), ("0", "true"));
    }
}
