//! Signs texts with the key that the user's git signs with, and checks such signatures. Supports SSH, OpenPGP and X.509.
//!
//! The repository's configuration may choose the key. The programs that run and the keys that are trusted come only from the user's own
//! configuration, because an agent can write the repository's.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use git2::Config;
use thiserror::Error;

use super::command::{self, Finished, Input, Invocation};
use super::error::WorkspaceError;
use super::git::environment;
use super::repo::RepoPlace;

/// Time limit of one call. A signature takes a moment; a longer call means that a program waits for a person.
const LIMIT: Duration = Duration::from_secs(20);
const OUTPUT_LIMIT: usize = 256 * 1024;
/// The namespace of SSH signatures. It is git's own, so that git's allowed signers apply.
const NAMESPACE: &str = "git";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    OpenPgp,
    Ssh,
    X509,
}

impl Format {
    fn of_name(name: &str) -> Option<Self> {
        match name {
            "openpgp" => Some(Self::OpenPgp),
            "ssh" => Some(Self::Ssh),
            "x509" => Some(Self::X509),
            _ => None,
        }
    }

    fn of_signature(text: &str) -> Option<Self> {
        match text.lines().next()? {
            "-----BEGIN SSH SIGNATURE-----" => Some(Self::Ssh),
            "-----BEGIN PGP SIGNATURE-----" | "-----BEGIN PGP MESSAGE-----" => Some(Self::OpenPgp),
            "-----BEGIN SIGNED MESSAGE-----" => Some(Self::X509),
            _ => None,
        }
    }

    fn program(self) -> String {
        let (key, default) = match self {
            Self::OpenPgp => ("gpg.openpgp.program", "gpg"),
            Self::Ssh => ("gpg.ssh.program", "ssh-keygen"),
            Self::X509 => ("gpg.x509.program", "gpgsm"),
        };
        let general = || own_setting("gpg.program").filter(|_| self == Self::OpenPgp);
        own_setting(key).or_else(general).unwrap_or_else(|| default.to_owned())
    }
}

/// Reads a setting from the user's configuration, not from the repository's.
fn own_setting(key: &str) -> Option<String> {
    Config::open_default().ok()?.get_string(key).ok().filter(|value| !value.is_empty())
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SigningError {
    #[error("gpg.format `{0}` is not one that git has (openpgp, ssh, x509)")]
    UnknownFormat(String),
    #[error("the signing key {0} is gone (user.signingkey)")]
    KeyGone(PathBuf),
    #[error("`{program}` cannot sign without a person, or not at all: {said}")]
    Failed { program: String, said: String },
}

/// The key that the user's git signs with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SigningKey {
    format: Format,
    key: String,
}

impl SigningKey {
    /// Reads the key from git's configuration. `None` if `user.signingkey` is not set.
    pub fn configured(place: &RepoPlace) -> Result<Option<Self>, SigningError> {
        let Ok(config) = place.open().map_err(|_| ()).and_then(|repo| repo.config().map_err(|_| ())) else {
            return Ok(None);
        };
        let setting = |key: &str| config.get_string(key).ok().filter(|value| !value.is_empty());
        let Some(key) = setting("user.signingkey") else { return Ok(None) };
        let name = setting("gpg.format").unwrap_or_else(|| "openpgp".to_owned());
        let format = Format::of_name(&name).ok_or(SigningError::UnknownFormat(name))?;
        Ok(Some(Self { format, key }))
    }

    /// Signs the text without any prompt. The signature is text that ends with a line break.
    pub async fn sign(&self, payload: &str) -> Result<String, SigningError> {
        let program = self.format.program();
        let scratch = scratch()?;
        let mut args: Vec<OsString> = Vec::new();
        match self.format {
            Format::Ssh => {
                let (file, from_agent) = self.key_file(scratch.path())?;
                args.extend(["-Y", "sign", "-q", "-n", NAMESPACE, "-f"].map(OsString::from));
                args.push(file.into());
                args.extend(from_agent.then(|| OsString::from("-U")));
            }
            Format::OpenPgp | Format::X509 => {
                args.extend(["--status-fd=2", "-bsau"].map(OsString::from));
                args.push(self.key.clone().into());
            }
        }
        let finished = run(&program, args, payload, scratch.path()).await?;
        let signature = finished.stdout.text();
        if !finished.status.success() || Format::of_signature(&signature) != Some(self.format) {
            return Err(SigningError::Failed { program, said: command::tail(&finished.stderr.text()) });
        }
        Ok(format!("{}\n", signature.trim_end()))
    }

    /// Returns the file of an SSH key, and whether the private key is only in an SSH agent.
    fn key_file(&self, scratch: &Path) -> Result<(PathBuf, bool), SigningError> {
        let literal = self.key.strip_prefix("key::").or_else(|| self.key.starts_with("ssh-").then_some(&*self.key));
        match literal {
            Some(text) => Ok((put(scratch, "key.pub", text)?, true)),
            None => {
                let file = expanded(&self.key);
                if file.exists() { Ok((file, false)) } else { Err(SigningError::KeyGone(file)) }
            }
        }
    }

    /// Returns the fingerprint of an SSH key: `SHA256:...`.
    async fn fingerprint(&self, scratch: &Path) -> Result<String, SigningError> {
        let (file, _) = self.key_file(scratch)?;
        let args = ["-l".into(), "-f".into(), file.into()].to_vec();
        let program = Format::Ssh.program();
        let finished = run(&program, args, "", scratch).await?;
        let text = finished.stdout.text();
        match text.split_whitespace().find(|word| word.starts_with("SHA256:")) {
            Some(word) => Ok(word.to_owned()),
            None => Err(SigningError::Failed { program, said: command::tail(&finished.stderr.text()) }),
        }
    }
}

/// The result of checking a signature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SignatureVerdict {
    Good {
        by: String,
    },
    /// The signature belongs to another text.
    Bad,
    /// The signature fits the text, but its key is not trusted here.
    UnknownKey {
        key: String,
        because: String,
    },
    /// The signature could not be checked.
    Unreadable {
        because: String,
    },
}

/// Checks a signature against the text that it is said to belong to.
pub async fn check(place: &RepoPlace, payload: &str, signature: &str) -> Result<SignatureVerdict, SigningError> {
    let scratch = scratch()?;
    let file = put(scratch.path(), "signature", signature)?;
    match Format::of_signature(signature) {
        Some(Format::Ssh) => check_ssh(place, payload, &file, scratch.path()).await,
        Some(format) => check_gpg(format, payload, &file, scratch.path()).await,
        None => {
            Ok(SignatureVerdict::Unreadable { because: "it is not a signature of any kind that git has".to_owned() })
        }
    }
}

async fn check_ssh(
    place: &RepoPlace,
    payload: &str,
    file: &Path,
    scratch: &Path,
) -> Result<SignatureVerdict, SigningError> {
    let program = Format::Ssh.program();
    let call = |what: &str, more: Vec<OsString>| {
        let mut args: Vec<OsString> = vec!["-Y".into(), what.into(), "-s".into(), file.into()];
        args.extend(more);
        args
    };
    let namespace = || vec!["-n".into(), NAMESPACE.into()];
    let fits = run(&program, call("check-novalidate", namespace()), payload, scratch).await?;
    let said = fits.stdout.text();
    if !fits.status.success() {
        return Ok(SignatureVerdict::Bad);
    }
    let key = said.split_whitespace().find(|word| word.starts_with("SHA256:")).unwrap_or("a key without a name");
    let unknown = |because: String| SignatureVerdict::UnknownKey { key: key.to_owned(), because };
    let Some(allowed) = own_setting("gpg.ssh.allowedSignersFile").map(|path| expanded(&path)) else {
        // Without allowed signers, the user's own key is still trusted.
        return Ok(match SigningKey::configured(place) {
            Ok(Some(own)) if own.format == Format::Ssh => match own.fingerprint(scratch).await {
                Ok(print) if print == key => SignatureVerdict::Good { by: format!("your own key {key}") },
                Ok(_) => unknown("it is not your own, and gpg.ssh.allowedSignersFile is not set".to_owned()),
                Err(error) => unknown(error.to_string()),
            },
            _ => unknown("neither gpg.ssh.allowedSignersFile nor an SSH key of your own is set".to_owned()),
        });
    };
    if !allowed.is_file() {
        return Ok(unknown(format!("gpg.ssh.allowedSignersFile {} is not there", allowed.display())));
    }
    let list: Vec<OsString> = vec!["-f".into(), allowed.clone().into()];
    let found = run(&program, call("find-principals", list.clone()), payload, scratch).await?;
    for name in found.stdout.text().lines().map(str::trim).filter(|name| !name.is_empty()) {
        let who = list.iter().cloned().chain(namespace()).chain(["-I".into(), name.into()]).collect();
        if run(&program, call("verify", who), payload, scratch).await?.status.success() {
            return Ok(SignatureVerdict::Good { by: format!("{name} ({key})") });
        }
    }
    Ok(unknown(format!("{} does not allow it", allowed.display())))
}

async fn check_gpg(
    format: Format,
    payload: &str,
    file: &Path,
    scratch: &Path,
) -> Result<SignatureVerdict, SigningError> {
    let args = vec!["--status-fd=1".into(), "--verify".into(), file.into(), "-".into()];
    let finished = run(&format.program(), args, payload, scratch).await?;
    let status = finished.stdout.text();
    let told = |word: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(&format!("[GNUPG:] {word} ")));
        line.map(|rest| rest.trim().to_owned())
    };
    let old = |what: &str, who: String| SignatureVerdict::UnknownKey { key: who, because: what.to_owned() };
    Ok(if told("BADSIG").is_some() {
        SignatureVerdict::Bad
    } else if let Some(who) = told("REVKEYSIG") {
        old("the key was revoked", who)
    } else if let Some(who) = told("EXPKEYSIG").or_else(|| told("EXPSIG")) {
        old("the key or the signature has expired", who)
    } else if let (Some(who), true) = (told("GOODSIG"), finished.status.success()) {
        SignatureVerdict::Good { by: who }
    } else if let Some(key) = told("NO_PUBKEY").or_else(|| told("ERRSIG")) {
        let key = key.split_whitespace().next().unwrap_or_default().to_owned();
        SignatureVerdict::UnknownKey { key, because: "it is not on your keyring".to_owned() }
    } else {
        SignatureVerdict::Unreadable { because: command::tail(&finished.stderr.text()) }
    })
}

async fn run(program: &str, args: Vec<OsString>, input: &str, cwd: &Path) -> Result<Finished, SigningError> {
    let mut env = environment(std::env::vars_os());
    env.extend(["DISPLAY", "WAYLAND_DISPLAY", "GPG_TTY"].map(|name| (name.into(), OsString::new())));
    env.push(("SSH_ASKPASS_REQUIRE".into(), "never".into()));
    let invocation = Invocation {
        program: program.into(),
        args,
        leads_group: true,
        cwd: cwd.to_owned(),
        env,
        stdin: if input.is_empty() { Input::Nothing } else { Input::Bytes(input.as_bytes().to_vec()) },
        timeout: LIMIT,
        stdout_limit: OUTPUT_LIMIT,
        stderr_limit: OUTPUT_LIMIT,
    };
    command::run(invocation).await.map_err(|error| failed(program, &error))
}

fn failed(program: &str, error: &dyn std::fmt::Display) -> SigningError {
    SigningError::Failed { program: program.to_owned(), said: error.to_string() }
}

fn scratch() -> Result<tempfile::TempDir, SigningError> {
    tempfile::tempdir().map_err(|error| failed("a scratch folder", &error))
}

fn put(folder: &Path, name: &str, text: &str) -> Result<PathBuf, SigningError> {
    let path = folder.join(name);
    std::fs::write(&path, format!("{}\n", text.trim_end())).map_err(|error| failed(name, &error))?;
    Ok(path)
}

/// Expands a leading `~/`, as git does in such paths.
fn expanded(path: &str) -> PathBuf {
    let home = || std::env::var_os("HOME").map(PathBuf::from);
    match path.strip_prefix("~/").and_then(|rest| home().map(|home| home.join(rest))) {
        Some(found) => found,
        None => PathBuf::from(path),
    }
}

/// Makes a test signature with the key for receipts. `None` if no key is configured. Used at the start and by `doctor`.
pub async fn try_receipt_key(place: &RepoPlace) -> Result<Option<SigningKey>, SigningError> {
    let Some(key) = SigningKey::configured(place)? else { return Ok(None) };
    key.sign("Try to sign\n").await?;
    Ok(Some(key))
}

impl super::Workspaces {
    /// Makes a test signature with the key for receipts; see [`try_receipt_key`].
    pub async fn try_receipt_key(&self) -> Result<Option<SigningKey>, SigningError> {
        try_receipt_key(&self.shared.place).await
    }

    /// Signs a text with the user's key. `None` if no key is configured.
    pub async fn sign_receipt(&self, payload: &str) -> Result<Option<String>, SigningError> {
        match SigningKey::configured(&self.shared.place)? {
            Some(key) => key.sign(payload).await.map(Some),
            None => Ok(None),
        }
    }

    pub async fn check_receipt(&self, payload: &str, signature: &str) -> Result<SignatureVerdict, SigningError> {
        check(&self.shared.place, payload, signature).await
    }

    /// Returns the note that contains the receipt of a commit.
    pub async fn receipt_note(&self, commit: &crate::domain::ids::CommitId) -> Result<Option<String>, WorkspaceError> {
        let commit = commit.clone();
        self.blocking("reading the note", move |shared| super::notes::note_of(&shared.place, &commit)).await
    }
}
