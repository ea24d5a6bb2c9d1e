//! Whose words something is: ours, a trusted person's, or nobody's that counts.
//!
//! Provenance, not account: most people run it with their own token. A comment is ours if the tracker knows it as ours, or if
//! it carries our marker with a code that only our ledger can make.

use sha2::{Digest, Sha256};

use crate::config::policy::Policy;
use crate::domain::comment::{Author, Comment, TrustLevel};
use crate::domain::ids::TicketId;

const MARKER: &str = "<!-- dirigent:";
const MARKER_END: &str = " -->";

/// The key that a comment of ours carries: what it is, and the proof that it is ours.
pub fn marked_key(secret: &str, ticket: &TicketId, key: &str) -> String {
    format!("{key}#{}", code(secret, ticket, key))
}

/// The marker as it stands in a comment.
pub fn marker(marked_key: &str) -> String {
    format!("{MARKER}{marked_key}{MARKER_END}")
}

fn code(secret: &str, ticket: &TicketId, key: &str) -> String {
    // Nested, so that nobody can go on from a code that they have seen.
    let inner = Sha256::new().chain_update(secret).chain_update(ticket.as_str()).chain_update([0]).chain_update(key);
    let outer = Sha256::new().chain_update(secret).chain_update(inner.finalize()).finalize();
    outer.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// Whether the text carries a marker that only we can have made for this ticket.
pub fn carries_our_mark(secret: &str, ticket: &TicketId, body: &str) -> bool {
    body.split(MARKER)
        .skip(1)
        .filter_map(|rest| rest.split_once(MARKER_END))
        .any(|(marked, _)| marked.rsplit_once('#').is_some_and(|(key, proof)| proof == code(secret, ticket, key)))
}

pub fn is_ours(secret: &str, ticket: &TicketId, comment: &Comment) -> bool {
    comment.author.ourselves || carries_our_mark(secret, ticket, &comment.body)
}

/// Whether this person's words trigger, steer, approve and un-block.
pub fn is_trusted(author: &Author, policy: &Policy) -> bool {
    let named = policy.tracker.trusted_accounts.iter().any(|name| name.eq_ignore_ascii_case(&author.name));
    !author.ourselves && author.trust != TrustLevel::Bot && (named || policy.tracker.trusted.contains(&author.trust))
}

/// Whether it begins with our name: `@dirigent ...`.
pub fn is_addressed(text: &str, policy: &Policy) -> bool {
    let wanted = format!("@{}", policy.tracker.mention.to_lowercase());
    let lower = text.to_lowercase();
    lower.match_indices(&wanted).any(|(at, _)| {
        let before = lower[..at].chars().next_back();
        let after = lower[at + wanted.len()..].chars().next();
        before.is_none_or(|c| !c.is_alphanumeric())
            && after.is_none_or(|c| !(c.is_alphanumeric() || c == '-' || c == '_'))
    })
}

/// Whether it only says that somebody has seen something.
pub fn is_acknowledgement(text: &str, policy: &Policy) -> bool {
    let plain = text.trim().trim_end_matches(['.', '!', ' ']).to_lowercase();
    policy.tracker.acknowledgements.contains(&plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marker_counts_only_with_our_key_and_on_its_own_ticket() {
        let ticket = TicketId::new("t1");
        let body = format!("Started.\n{}", marker(&marked_key("secret", &ticket, "started:1")));
        assert!(carries_our_mark("secret", &ticket, &body));
        assert!(!carries_our_mark("secret", &TicketId::new("t2"), &body), "pasted into another ticket");
        assert!(!carries_our_mark("other", &ticket, &body), "another ledger's");
        assert!(!carries_our_mark("secret", &ticket, "<!-- dirigent:started:1#0000000000000000 -->"), "forged");
    }
}
