//! The token of GitHub's own command `gh`, used where the workflow file says `token: gh`.

use std::io;
use std::process::{Command, Output, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use secrecy::SecretString;

/// `gh` reads a file or asks the system's key store, which may wait for a person who is not there.
const LIMIT: Duration = Duration::from_secs(15);

/// Returns the token that `gh auth token` prints. The error says why there is none. It may block for a while, so it is not called on a
/// thread that others wait for.
pub fn gh_token(host: &str) -> Result<SecretString, String> {
    let asked = output_within(Command::new("gh").args(["auth", "token", "--hostname", host]), LIMIT);
    let answer = asked.map_err(|error| {
        format!(
            "`token: gh` asks `gh auth token`, which cannot be run: {error}\n  fix: install gh, or set GITHUB_TOKEN"
        )
    })?;
    let answer = answer.ok_or_else(|| {
        format!(
            "`gh auth token` did not answer within {} s\n  fix: unlock the key store that gh uses, or set GITHUB_TOKEN",
            LIMIT.as_secs()
        )
    })?;
    let token = String::from_utf8_lossy(&answer.stdout).trim().to_owned();
    if !answer.status.success() || token.is_empty() {
        let words = String::from_utf8_lossy(&answer.stderr).trim().to_owned();
        return Err(format!(
            "`gh auth token` has no token for {host}: {words}\n  fix: gh auth login --hostname {host}"
        ));
    }
    Ok(token.into())
}

/// Runs a command and returns its output. Kills it and returns `None` if it takes longer than `limit`.
fn output_within(command: &mut Command, limit: Duration) -> io::Result<Option<Output>> {
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let pid = i32::try_from(child.id()).map_err(io::Error::other)?;
    let (done, answer) = mpsc::channel();
    std::thread::Builder::new().name("gh".to_owned()).spawn(move || {
        // Nobody listens any more if it took too long.
        let _ = done.send(child.wait_with_output());
    })?;
    match answer.recv_timeout(limit) {
        Ok(output) => output.map(Some),
        Err(_) => {
            // It is still there, or not yet waited for by its thread, so its number is its own.
            kill(Pid::from_raw(pid), Signal::SIGKILL).ok();
            Ok(None)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_does_not_end_is_not_waited_for() {
        let hangs = output_within(Command::new("sleep").arg("3600"), Duration::from_millis(50));
        assert!(hangs.unwrap().is_none());
        let answer = output_within(Command::new("echo").arg("token"), Duration::from_secs(600)).unwrap().unwrap();
        assert_eq!(answer.stdout, b"token\n");
    }
}
