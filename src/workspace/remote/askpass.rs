//! Hands a credential to git for one call. Git calls this very program (`GIT_ASKPASS`), which asks the runner over a private socket. The
//! secret is in no address, file, argument or environment variable.
//!
//! Only processes of the group that the runner's own git leads get the secret, and only for the host that it belongs to.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::unistd::{Pid, getpgid};
use secrecy::{ExposeSecret, SecretString};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixListener;
use tokio::sync::watch;

use super::RemoteError;

/// The variable with the socket's path. If it is set, the program acts as git's askpass.
pub const VARIABLE: &str = "DIRIGENT_ASKPASS";

/// The user name that goes with a token; GitHub ignores it.
pub const USER: &str = "x-access-token";

/// Limit of a question in bytes. Git's questions are one line.
const LONGEST_QUESTION: u64 = 4096;
const PATIENCE: Duration = Duration::from_secs(20);

/// The socket of one call, in a folder that only this user can enter.
pub struct PasswordDesk {
    listener: UnixListener,
    folder: tempfile::TempDir,
}

impl PasswordDesk {
    pub fn open() -> Result<Self, RemoteError> {
        let failed = |source: io::Error| RemoteError::Local(format!("no socket for git's questions: {source}"));
        let folder = tempfile::Builder::new().prefix("dirigent-ask-").tempdir().map_err(failed)?;
        let listener = UnixListener::bind(folder.path().join("s")).map_err(failed)?;
        Ok(Self { listener, folder })
    }

    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("s")
    }

    /// Answers questions of processes in the process group of `leader`, until the future is dropped.
    pub async fn answer(&self, leader: watch::Receiver<Option<i32>>, origin: &str, secret: &SecretString) {
        loop {
            let Ok((mut stream, _)) = self.listener.accept().await else { return };
            let asker = stream.peer_cred().ok().filter(|peer| peer.uid() == nix::unistd::getuid().as_raw());
            let Some(asker) = asker.and_then(|peer| peer.pid()) else { continue };
            let mut leader = leader.clone();
            let known = tokio::time::timeout(PATIENCE, leader.wait_for(Option::is_some)).await;
            let Some(leader) = known.ok().and_then(Result::ok).and_then(|leader| *leader) else { continue };
            if getpgid(Some(Pid::from_raw(asker))).ok() != Some(Pid::from_raw(leader)) {
                tracing::warn!(asker, "somebody else asked for a credential of git; it was not given");
                continue;
            }
            let mut question = Vec::new();
            let mut line = (&mut stream).take(LONGEST_QUESTION);
            if !matches!(tokio::time::timeout(PATIENCE, line.read_to_end(&mut question)).await, Ok(Ok(_))) {
                continue;
            }
            let answer = answer_to(&String::from_utf8_lossy(&question), origin, secret);
            let _ = tokio::time::timeout(PATIENCE, stream.write_all(answer.as_bytes())).await;
        }
    }
}

/// Returns the answer to a question of git. Empty for any other host.
fn answer_to<'a>(question: &str, origin: &str, secret: &'a SecretString) -> &'a str {
    let (scheme, host) = origin.split_once("://").unwrap_or(("https", origin));
    if question.trim_end() == format!("Username for '{origin}':") {
        USER
    } else if question.trim_end() == format!("Password for '{scheme}://{USER}@{host}':") {
        secret.expose_secret()
    } else {
        ""
    }
}

/// The client side: fetches what this program prints when git calls it as its askpass.
pub fn ask(socket: &Path, question: &str) -> io::Result<String> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(PATIENCE * 2))?;
    stream.write_all(question.as_bytes())?;
    stream.shutdown(Shutdown::Write)?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    if answer.is_empty() {
        return Err(io::Error::other("the runner gives no credential for this"));
    }
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_own_host_gets_the_secret() {
        let secret = SecretString::from("s3cret");
        let says = |question: &str| answer_to(question, "https://github.com", &secret).to_owned();
        assert_eq!(says("Username for 'https://github.com': "), USER);
        assert_eq!(says("Password for 'https://x-access-token@github.com': "), "s3cret");
        for question in [
            "Password for 'https://x-access-token@github.com.evil.example': ",
            "Password for 'https://x-access-token@evil.example': ",
            "Password for 'http://x-access-token@github.com': ",
            "Password for 'https://github.com': ",
            "Enter passphrase for key 'id_ed25519': ",
            "",
        ] {
            assert_eq!(says(question), "", "{question}");
        }
    }
}
