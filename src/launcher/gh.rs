//! The token of GitHub's own command `gh`, used where the workflow file says `token: gh`.

use std::process::{Command, Stdio};

use secrecy::SecretString;

/// Returns the token that `gh auth token` prints. The error says why there is none.
pub fn gh_token(host: &str) -> Result<SecretString, String> {
    let asked = Command::new("gh").args(["auth", "token", "--hostname", host]).stdin(Stdio::null()).output();
    let answer = asked.map_err(|error| {
        format!(
            "`token: gh` asks `gh auth token`, which cannot be run: {error}\n  fix: install gh, or set GITHUB_TOKEN"
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
