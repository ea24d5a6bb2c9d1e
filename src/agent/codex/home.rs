//! A home directory for Codex that keeps the user's login and settings but not their MCP servers and plugins. Prepared again for every run
//! and shared by all, so that conversations in it can be resumed. Never writes to the user's own home.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::path::{Path, PathBuf};

use thiserror::Error;

const NAME: &str = "codex-home";
/// Tables of `config.toml` that are left out.
const LEFT_OUT: [&str; 4] = ["mcp_servers", "plugins", "marketplaces", "apps"];

#[derive(Debug, Error)]
pub enum HomeError {
    #[error(
        "codex.isolated_home does not work below the temporary directory ({}): Codex refuses to sandbox there; set DIRIGENT_HOME to \
         another place", .path.display()
    )]
    Temporary { path: PathBuf },
    #[error("the isolated home of Codex cannot be made: {}: {source}", .path.display())]
    Io { path: PathBuf, source: io::Error },
}

impl HomeError {
    /// Whether trying again cannot help.
    pub fn is_permanent(&self) -> bool {
        matches!(self, Self::Temporary { .. })
    }
}

/// Prepares the home under `parent` from the Codex home of this environment, and returns its path.
pub fn prepare(parent: &Path, env: &BTreeMap<String, String>) -> Result<PathBuf, HomeError> {
    let home = parent.join(NAME);
    let temp = env.get("TMPDIR").map_or_else(|| PathBuf::from("/tmp"), PathBuf::from);
    if home.starts_with("/tmp") || home.starts_with(&temp) {
        return Err(HomeError::Temporary { path: home });
    }
    let users = match (env.get("CODEX_HOME"), env.get("HOME")) {
        (Some(own), _) => PathBuf::from(own),
        (None, Some(home)) => Path::new(home).join(".codex"),
        (None, None) => PathBuf::from("/.codex"),
    };
    fill(&home, &users)?;
    Ok(home)
}

fn fill(home: &Path, users: &Path) -> Result<(), HomeError> {
    let at = |path: &Path| {
        let path = path.to_owned();
        move |source| HomeError::Io { path, source }
    };
    fs::DirBuilder::new().recursive(true).mode(0o700).create(home).map_err(at(home))?;
    // A link, so that a renewed login stays the user's only login.
    let (link, auth) = (home.join("auth.json"), users.join("auth.json"));
    if fs::read_link(&link).ok().as_deref() != Some(&auth) {
        let new = tempfile::Builder::new().prefix("auth.").tempdir_in(home).map_err(at(home))?;
        let made = new.path().join("auth.json");
        symlink(&auth, &made).and_then(|()| fs::rename(&made, &link)).map_err(at(&link))?;
    }
    let theirs = users.join("config.toml");
    let text = match fs::read_to_string(&theirs) {
        Ok(text) => without_servers(&text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(at(&theirs)(error)),
    };
    let config = home.join("config.toml");
    let file = tempfile::NamedTempFile::new_in(home).map_err(at(home))?;
    fs::write(file.path(), text).map_err(at(&config))?;
    file.persist(&config).map_err(|error| at(&config)(error.error))?;
    Ok(())
}

/// Returns the text without the tables that are left out, and without their keys at the top level.
fn without_servers(text: &str) -> String {
    let mut kept = String::new();
    let (mut left_out, mut in_table) = (false, false);
    for line in text.lines() {
        let words = line.trim();
        let header = words.strip_prefix('[').filter(|_| words.contains(']'));
        if let Some(header) = header.map(|header| header.trim_start_matches('[')) {
            (in_table, left_out) = (true, is_left_out(header));
        } else if !in_table && words.contains('=') {
            left_out = is_left_out(words);
        }
        if !left_out {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    kept
}

fn is_left_out(name: &str) -> bool {
    let first = name.split(['.', ']', '=']).next().unwrap_or_default().trim().trim_matches(['"', '\'']);
    LEFT_OUT.contains(&first)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: &str = "model = \"m\"\nmcp_servers.x.command = \"a\"\n\n[mcp_servers.docs]\ncommand = \"b\"\n\n\
        [mcp_servers.docs.env]\nKEY = \"c\"\n\n[model_providers.own]\nbase_url = \"d\"\n\n[plugins.\"p\"]\nenabled = true\n";

    #[test]
    fn servers_and_plugins_stay_behind() {
        let kept = without_servers(CONFIG);
        assert_eq!(kept, "model = \"m\"\n[model_providers.own]\nbase_url = \"d\"\n\n");
    }

    #[test]
    fn the_login_is_linked_and_the_users_home_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let (users, home) = (dir.path().join("users"), dir.path().join("own/codex-home"));
        fs::create_dir(&users).unwrap();
        fs::write(users.join("config.toml"), CONFIG).unwrap();
        fs::write(users.join("auth.json"), "{}").unwrap();
        for _ in 0..2 {
            fill(&home, &users).unwrap();
            assert_eq!(fs::read_link(home.join("auth.json")).unwrap(), users.join("auth.json"));
            assert!(!fs::read_to_string(home.join("config.toml")).unwrap().contains("mcp_servers"));
        }
        assert_eq!(fs::read_dir(&home).unwrap().count(), 2);
        assert_eq!(fs::read_to_string(users.join("config.toml")).unwrap(), CONFIG);
    }

    #[test]
    fn a_home_below_the_temporary_directory_is_refused() {
        let env = BTreeMap::from([("HOME".to_owned(), "/home/somebody".to_owned())]);
        let error = prepare(Path::new("/tmp/state"), &env).unwrap_err();
        assert!(error.is_permanent() && error.to_string().contains("DIRIGENT_HOME"), "{error}");
    }
}
