//! One pace for all clients of this process that GitHub counts together: those with the same server and the same credential.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use secrecy::ExposeSecret;
use sha2::{Digest, Sha256};

use super::access::{Access, Credential};
use super::pace::Pace;

type Known = Vec<([u8; 32], Weak<Pace>)>;

static KNOWN: Mutex<Known> = Mutex::new(Vec::new());

/// Returns the pace for this access. Clients that exist already share theirs.
pub fn pace_of(access: &Access) -> Arc<Pace> {
    let whose = whose(access);
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    known.retain(|(_, pace)| pace.strong_count() > 0);
    if let Some(pace) = known.iter().find(|(other, _)| *other == whose).and_then(|(_, pace)| pace.upgrade()) {
        return pace;
    }
    let pace = Arc::new(Pace::default());
    known.push((whose, Arc::downgrade(&pace)));
    pace
}

/// Returns a hash of the server and the account that GitHub counts requests for. The secret itself is not kept.
fn whose(access: &Access) -> [u8; 32] {
    let server = access.api_url.as_deref().unwrap_or_default().trim_end_matches('/');
    let digest = Sha256::new().chain_update(server).chain_update([0]);
    let digest = match &access.credential {
        Credential::Token(token) => digest.chain_update("token").chain_update(token.expose_secret().trim()),
        Credential::App { app_id, installation_id, .. } => {
            digest.chain_update("app").chain_update(app_id.to_be_bytes()).chain_update(installation_id.to_be_bytes())
        }
    };
    digest.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_access_has_one_pace_and_another_has_its_own() {
        let access = |url: &str, token: &str| Access::new(Some(url.to_owned()), Credential::Token(token.into()));
        let board = pace_of(&access("https://git.example.com/api/v3", "shared-pace-a"));
        let forge = pace_of(&access("https://git.example.com/api/v3/", "shared-pace-a"));
        assert!(Arc::ptr_eq(&board, &forge));
        assert!(!Arc::ptr_eq(&board, &pace_of(&access("https://git.example.com/api/v3", "shared-pace-b"))));
        assert!(!Arc::ptr_eq(&board, &pace_of(&access("https://other.example.com/api/v3", "shared-pace-a"))));
    }
}
