//! What workers, gates and hooks get of the user's environment. A worker or a gate executes what an agent wrote, so it gets an allow-list,
//! its own variables, and no logins. A hook is the workflow's own command, so it gets everything. Neither gets a secret of the tracker, the
//! forge or the server, under whatever name and in whatever encoding.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use super::worker_git;
use crate::domain::ids::{RunId, TicketId, TicketKey};
use crate::domain::phase::Phase;

pub use super::secrets::Secrets;

/// The variables that every program needs.
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

/// What a worker's environment is made from.
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

/// Variables that would make git, or one of Dirigent's tools, work elsewhere than in the hook's directory.
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

/// Returns the complete environment of a worker, or of a gate (`worker` is `None`).
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

/// Returns the complete environment of a hook: the user's own, including the SSH agent, without Dirigent's secrets.
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

/// Puts `tk` first in `PATH`, and keeps git from prompting and from opening an editor.
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

/// Whether a name matches a pattern, which is a name or `PREFIX_*`.
fn fits(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(prefix) => !prefix.is_empty() && name.starts_with(prefix),
        None => pattern == name,
    }
}

/// Makes `directory/tk` point at `binary`, and installs the files that keep workers from the user's logins.
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

#[cfg(test)]
mod tests {
    use secrecy::SecretString;

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
