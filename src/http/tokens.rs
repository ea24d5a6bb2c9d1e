//! The API's tokens, by name, compared in constant time. If the workflow file has none, a token is generated. It is kept in the runner's
//! folder, readable only by its owner, and stays the same across restarts.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};

use crate::config::server::ServerSettings;
use crate::launcher::shield::COVERED;
use crate::worker::desk::random_token;

/// The file of the generated token in the runner's folder. Runs cannot read it.
const FILE: &str = COVERED;
/// The name of a token that has none: the one of `server.token`, or the generated one.
const UNNAMED: &str = "api";
const LONGEST: u64 = 4096;

/// The tokens, each with its name and its hash. Comparing hashes takes the same time for every wrong token.
#[derive(Debug, Clone)]
pub struct Tokens(Vec<(String, [u8; 32])>);

impl Tokens {
    /// Loads the tokens of the settings. If there are none, loads or creates the one in the runner's folder.
    pub fn of(settings: &ServerSettings, state_dir: &Path) -> io::Result<Self> {
        let mut tokens: Vec<(String, SecretString)> =
            settings.token.iter().map(|token| (UNNAMED.to_owned(), token.clone())).collect();
        tokens.extend(settings.tokens.iter().map(|(name, token)| (name.clone(), token.clone())));
        if tokens.is_empty() {
            tokens.push((UNNAMED.to_owned(), generated(state_dir)?));
        }
        Ok(Self(tokens.into_iter().map(|(name, token)| (name, hash(token.expose_secret()))).collect()))
    }

    /// Returns the name of a token. `None` if the token is unknown.
    pub fn name_of(&self, presented: &str) -> Option<&str> {
        let presented = hash(presented);
        // The loop never stops early, so that the time does not tell which token matched.
        self.0
            .iter()
            .fold(None, |found, (name, known)| if is_same(known, &presented) { Some(name) } else { found })
            .map(String::as_str)
    }
}

fn hash(text: &str) -> [u8; 32] {
    Sha256::digest(text.as_bytes()).into()
}

fn is_same(one: &[u8; 32], other: &[u8; 32]) -> bool {
    one.iter().zip(other).fold(0, |difference, (a, b)| difference | (a ^ b)) == 0
}

/// Returns the path of a runner's generated token.
pub fn token_file(state_dir: &Path) -> PathBuf {
    state_dir.join(FILE)
}

/// Reads the generated token.
pub fn read_generated(state_dir: &Path) -> io::Result<SecretString> {
    let mut text = String::new();
    File::open(token_file(state_dir))?.take(LONGEST).read_to_string(&mut text)?;
    Ok(SecretString::from(text.trim()))
}

fn generated(state_dir: &Path) -> io::Result<SecretString> {
    let path = token_file(state_dir);
    match fs::symlink_metadata(&path) {
        Ok(found) if found.is_file() => {
            // Whatever its mode was, from now on only the owner may read it.
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?;
            let token = read_generated(state_dir)?;
            if !token.expose_secret().is_empty() {
                return Ok(token);
            }
            fs::remove_file(&path)?;
        }
        Ok(_) => return Err(io::Error::new(io::ErrorKind::InvalidData, "it is not a file")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let token = random_token()?;
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
    writeln!(file, "{token}")?;
    file.sync_all()?;
    Ok(SecretString::from(token))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_token_has_its_name_and_a_wrong_one_has_none() {
        let settings = ServerSettings {
            token: Some(SecretString::from("0123456789abcdef")),
            tokens: [("ada".to_owned(), SecretString::from("fedcba9876543210"))].into(),
            ..ServerSettings::default()
        };
        let dir = tempfile::tempdir().unwrap();
        let tokens = Tokens::of(&settings, dir.path()).unwrap();
        assert_eq!(tokens.name_of("0123456789abcdef"), Some("api"));
        assert_eq!(tokens.name_of("fedcba9876543210"), Some("ada"));
        for wrong in ["", "0123456789abcdee", "0123456789abcdef ", "0123456789abcdef0123456789abcdef"] {
            assert_eq!(tokens.name_of(wrong), None, "{wrong}");
        }
        assert!(!token_file(dir.path()).exists(), "none is made where there is one");
    }

    #[test]
    fn one_that_is_made_is_kept_and_is_for_its_owner_alone() {
        let dir = tempfile::tempdir().unwrap();
        Tokens::of(&ServerSettings::default(), dir.path()).unwrap();
        let first = read_generated(dir.path()).unwrap();
        assert_eq!(first.expose_secret().len(), 48);
        let path = token_file(dir.path());
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        let again = Tokens::of(&ServerSettings::default(), dir.path()).unwrap();
        assert_eq!(again.name_of(first.expose_secret()), Some("api"));
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("/etc/hostname", &path).unwrap();
        assert!(Tokens::of(&ServerSettings::default(), dir.path()).is_err(), "a link leads elsewhere");
    }
}
