//! Keeps the user's logins from a worker as far as environment variables can: no credential helper, no SSH, an empty configuration for
//! `gh`. Variables that the workflow file passes by name stay.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The names of an empty folder and of a script. They begin with a dot because they are in a folder of the `PATH`.
const NO_GH: &str = ".gh";
const NO_SSH: &str = ".ssh-is-not-passed";

const NO_SSH_SCRIPT: &str = "#!/bin/sh
echo 'dirigent: a worker has no SSH of yours; pass it with worker.env_pass: [SSH_AUTH_SOCK] in WORKFLOW.md' >&2
exit 255
";

/// Used in place of the repository's hooks, which it calls: only a hook can add a line to the message of someone else's commit.
const HOOKS: &str = ".git-hooks";
const HOOK_SCRIPT: &str = r#"#!/bin/sh
name=${0##*/}
hooks=$(git config --local core.hooksPath || git config --global core.hooksPath || printf '%s/hooks' "$(git rev-parse --git-common-dir)")
case $hooks in
"~/"*) hooks=$HOME/${hooks#"~/"} ;;
esac
if [ -x "$hooks/$name" ]; then "$hooks/$name" "$@" || exit; fi
if [ "$name" = prepare-commit-msg ]; then
    who=$(git var GIT_COMMITTER_IDENT) || exit
    git interpret-trailers --in-place --if-exists addIfDifferent --trailer "Signed-off-by: ${who%%>*}>" "$1"
fi
"#;
const HOOK_NAMES: [&str; 13] = [
    "applypatch-msg",
    "pre-applypatch",
    "post-applypatch",
    "pre-commit",
    "pre-merge-commit",
    "prepare-commit-msg",
    "commit-msg",
    "post-commit",
    "pre-rebase",
    "post-checkout",
    "post-merge",
    "pre-push",
    "post-rewrite",
];

/// An empty helper clears all that were configured before, including those for single addresses.
const SETTINGS: [(&str, &str); 2] = [("credential.helper", ""), ("core.askPass", "")];

/// Installs the files that the variables point to.
pub fn install(tools: &Path) -> io::Result<()> {
    let empty = tools.join(NO_GH);
    // A worker may have changed its permissions.
    fs::set_permissions(&empty, fs::Permissions::from_mode(0o700)).ok();
    match fs::remove_dir_all(&empty) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => fs::create_dir(&empty)?,
    }
    fs::set_permissions(&empty, fs::Permissions::from_mode(0o500))?;
    put_script(&tools.join(NO_SSH), NO_SSH_SCRIPT)?;
    let hooks = tools.join(HOOKS);
    fs::create_dir_all(&hooks)?;
    HOOK_NAMES.iter().try_for_each(|name| put_script(&hooks.join(name), HOOK_SCRIPT))
}

/// Writes the script atomically, because another runner may be using it.
fn put_script(path: &Path, text: &str) -> io::Result<()> {
    let fresh = path.with_extension(std::process::id().to_string());
    fs::write(&fresh, text)?;
    fs::set_permissions(&fresh, fs::Permissions::from_mode(0o500))?;
    fs::rename(&fresh, path)
}

/// Has every commit of the worker's git signed off by its committer.
pub fn sign_off(env: &mut BTreeMap<String, String>, tools: &Path) {
    set(env, "core.hooksPath", &tools.join(HOOKS).display().to_string());
}

/// Adds a setting for the worker's git, which overrides all others.
pub fn set(env: &mut BTreeMap<String, String>, key: &str, value: &str) {
    let count: usize = env.get("GIT_CONFIG_COUNT").and_then(|count| count.parse().ok()).unwrap_or(0);
    env.insert(format!("GIT_CONFIG_KEY_{count}"), key.to_owned());
    env.insert(format!("GIT_CONFIG_VALUE_{count}"), value.to_owned());
    env.insert("GIT_CONFIG_COUNT".to_owned(), (count + 1).to_string());
}

/// Sets the variables that keep logins away. `ssh_passed` says that the workflow file passes the SSH agent to workers.
pub fn take_logins_away(env: &mut BTreeMap<String, String>, tools: &Path, ssh_passed: bool) {
    env.entry("GH_CONFIG_DIR".into()).or_insert_with(|| tools.join(NO_GH).display().to_string());
    add_settings(env);
    if !ssh_passed && !env.contains_key("GIT_SSH_COMMAND") {
        env.insert("GIT_SSH_COMMAND".into(), quoted(&tools.join(NO_SSH)));
        env.insert("GIT_SSH_VARIANT".into(), "ssh".into());
    }
}

/// Adds Dirigent's settings before those that the workflow file sets in the same way; the later ones win.
fn add_settings(env: &mut BTreeMap<String, String>) {
    let theirs: Vec<(String, String)> = (0..)
        .map_while(|at| Some((env.get(&format!("GIT_CONFIG_KEY_{at}"))?, env.get(&format!("GIT_CONFIG_VALUE_{at}"))?)))
        .map(|(key, value)| (key.clone(), value.clone()))
        .take(env.get("GIT_CONFIG_COUNT").and_then(|count| count.parse().ok()).unwrap_or(0))
        .collect();
    let ours = SETTINGS.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    let all: Vec<(String, String)> = ours.chain(theirs).collect();
    env.insert("GIT_CONFIG_COUNT".into(), all.len().to_string());
    for (at, (key, value)) in all.into_iter().enumerate() {
        env.insert(format!("GIT_CONFIG_KEY_{at}"), key);
        env.insert(format!("GIT_CONFIG_VALUE_{at}"), value);
    }
}

/// Quotes a path for the shell that git starts.
fn quoted(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', r"'\''"))
}

/// Files and folders of a home directory that let a reader act as the user.
const LOGINS: [&str; 13] = [
    ".ssh",
    ".config/gh",
    ".netrc",
    ".git-credentials",
    ".config/git/credentials",
    ".gnupg",
    ".aws",
    ".azure",
    ".config/gcloud",
    ".kube",
    ".docker/config.json",
    ".npmrc",
    ".pypirc",
];

/// Returns the logins in this home that a process of the same user could read.
pub fn readable_logins(home: &Path) -> Vec<PathBuf> {
    LOGINS.iter().map(|name| home.join(name)).filter(|path| holds_something(path)).collect()
}

fn holds_something(path: &Path) -> bool {
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_some()),
        Ok(found) => found.len() > 0,
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_of_the_file_come_after_ours() {
        let given = [("GIT_CONFIG_COUNT", "1"), ("GIT_CONFIG_KEY_0", "credential.helper"), ("GIT_CONFIG_VALUE_0", "x")];
        let mut env = given.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        take_logins_away(&mut env, Path::new("/t"), true);
        assert_eq!(env["GIT_CONFIG_COUNT"], "3");
        assert_eq!((env["GIT_CONFIG_KEY_0"].as_str(), env["GIT_CONFIG_VALUE_0"].as_str()), ("credential.helper", ""));
        assert_eq!((env["GIT_CONFIG_KEY_2"].as_str(), env["GIT_CONFIG_VALUE_2"].as_str()), ("credential.helper", "x"));
        assert!(!env.contains_key("GIT_SSH_COMMAND"), "SSH is passed");
    }

    #[test]
    fn what_the_file_names_stays_and_a_path_is_quoted_for_the_shell() {
        let mut env = BTreeMap::from([("GH_CONFIG_DIR".to_owned(), "/own".to_owned())]);
        take_logins_away(&mut env, Path::new("/it's"), false);
        assert_eq!(env["GH_CONFIG_DIR"], "/own");
        assert_eq!(env["GIT_SSH_COMMAND"], r"'/it'\''s/.ssh-is-not-passed'");
    }

    #[test]
    fn only_logins_that_are_there_are_named() {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir_all(home.path().join(".ssh")).unwrap();
        fs::write(home.path().join(".netrc"), "machine x").unwrap();
        assert_eq!(readable_logins(home.path()), [home.path().join(".netrc")], "an empty folder holds nothing");
    }
}
