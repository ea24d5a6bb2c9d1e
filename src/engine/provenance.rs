//! Whose words a text is: the runner's, a trusted person's, or those of a person who does not count.
//!
//! The account alone does not decide this, because most people run Dirigent with their own token. A comment is the runner's if the tracker
//! says so, or if it carries the runner's marker with a code that only this ledger's secret can make.

use sha2::{Digest, Sha256};

use crate::config::policy::Policy;
use crate::domain::comment::{Author, Comment, TrustLevel};
use crate::domain::ids::{RunId, TicketId};
use crate::domain::instruction;
use crate::domain::job::OurComments;

const MARKER: &str = "<!-- dirigent:";
const MARKER_END: &str = " -->";
const WORKER_API: &str = "worker-api:";

/// Returns the key for a comment of the runner: what the comment is, and the proof that the runner wrote it.
pub fn marked_key(secret: &str, ticket: &TicketId, key: &str) -> String {
    format!("{key}#{}", code(secret, ticket, key))
}

/// Returns the marker for a comment's text.
pub fn marker(marked_key: &str) -> String {
    format!("{MARKER}{marked_key}{MARKER_END}")
}

fn code(secret: &str, ticket: &TicketId, key: &str) -> String {
    // Nested, so that nobody can compute a longer text's code from one that they have seen.
    let inner = Sha256::new().chain_update(secret).chain_update(ticket.as_str()).chain_update([0]).chain_update(key);
    let outer = Sha256::new().chain_update(secret).chain_update(inner.finalize()).finalize();
    outer.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// Whether the text carries a marker by anybody, with or without a code.
pub fn is_marked(body: &str) -> bool {
    body.contains(MARKER)
}

/// Returns the keys of all markers, without checking who made them.
pub fn marks(body: &str) -> impl Iterator<Item = &str> {
    let marked = body.split(MARKER).skip(1).filter_map(|rest| rest.split_once(MARKER_END));
    marked.map(|(marked, _)| marked.rsplit_once('#').map_or(marked, |(key, _)| key))
}

/// Returns the keys of the markers that only the runner can have made for this ticket.
fn proven_keys<'a>(secret: &'a str, ticket: &'a TicketId, body: &'a str) -> impl Iterator<Item = &'a str> {
    let marked = body.split(MARKER).skip(1).filter_map(|rest| rest.split_once(MARKER_END));
    let keys = marked.filter_map(|(marked, _)| marked.rsplit_once('#'));
    keys.filter(move |(key, proof)| *proof == code(secret, ticket, key)).map(|(key, _)| key)
}

/// Returns the first key in the text that only the runner can have made for this ticket.
pub fn proven_key<'a>(secret: &'a str, ticket: &'a TicketId, body: &'a str) -> Option<&'a str> {
    proven_keys(secret, ticket, body).next()
}

/// Whether all markers in the text are those of a worker of this ticket, and there is at least one.
pub fn is_workers(secret: &str, ticket: &TicketId, body: &str) -> bool {
    let marks: Vec<&str> =
        body.split(MARKER).skip(1).filter_map(|rest| rest.split_once(MARKER_END)).map(|(marked, _)| marked).collect();
    let by_worker = |marked: &&str| {
        let proven = marked.rsplit_once('#').filter(|(key, proof)| *proof == code(secret, ticket, key));
        proven.is_some_and(|(key, _)| key.starts_with(WORKER_API))
    };
    !marks.is_empty() && marks.iter().all(by_worker)
}

/// Returns the key of something that a run wrote through the tracker's API.
pub fn worker_key(run: &RunId, number: u64) -> String {
    format!("{WORKER_API}{run}:{number}")
}

/// Whether the runner wrote the comment. A person who quotes the runner may copy its marker. So if `known` has a comment for the marker's
/// key, only that comment is the runner's.
pub fn is_ours(secret: &str, ticket: &TicketId, comment: &Comment, known: &OurComments) -> bool {
    let mut keys = proven_keys(secret, ticket, &comment.body);
    comment.author.ourselves || keys.any(|key| known.get(key).is_none_or(|id| *id == comment.id))
}

/// Whether this person's words trigger, steer, approve and un-block.
pub fn is_trusted(author: &Author, policy: &Policy) -> bool {
    let named = policy.tracker.trusted_accounts.iter().any(|name| name.eq_ignore_ascii_case(&author.name));
    let is_bot = author.trust == TrustLevel::Bot || is_listed_bot(author, policy);
    !author.ourselves && !is_bot && (named || policy.tracker.trusted.contains(&author.trust))
}

/// Whether the author is one of `review.bots`. A listed account is a bot even if the forge takes it for a person.
pub fn is_listed_bot(author: &Author, policy: &Policy) -> bool {
    let plain = |name: &str| name.strip_suffix("[bot]").unwrap_or(name).to_lowercase();
    !author.ourselves && policy.review.bots.iter().any(|bot| plain(bot) == plain(&author.name))
}

/// Whether the author's own words begin with `@` and the runner's name, as in `@dirigent`. Quotations and code are not the author's words.
pub fn is_addressed(text: &str, policy: &Policy) -> bool {
    let Some(first) = instruction::first_said(text) else { return false };
    let Some(rest) =
        first.to_lowercase().strip_prefix(&format!("@{}", policy.tracker.mention.to_lowercase())).map(str::to_owned)
    else {
        return false;
    };
    rest.chars().next().is_none_or(|c| !(c.is_alphanumeric() || c == '-' || c == '_'))
}

/// Whether the text is only an acknowledgement, as listed in `tracker.acknowledgements`.
pub fn is_acknowledgement(text: &str, policy: &Policy) -> bool {
    let plain = text.trim().trim_end_matches(['.', '!', ' ']).to_lowercase();
    policy.tracker.acknowledgements.contains(&plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::ids::CommentId;

    #[test]
    fn a_marker_counts_only_with_our_key_and_on_its_own_ticket() {
        let ticket = TicketId::new("t1");
        let body = format!("Started.\n{}", marker(&marked_key("secret", &ticket, "started:1")));
        assert_eq!(proven_key("secret", &ticket, &body), Some("started:1"));
        assert_eq!(proven_key("secret", &TicketId::new("t2"), &body), None, "pasted into another ticket");
        assert_eq!(proven_key("other", &ticket, &body), None, "another ledger's");
        assert_eq!(proven_key("secret", &ticket, "<!-- dirigent:started:1#0000000000000000 -->"), None, "forged");
    }

    #[test]
    fn a_copy_of_our_marker_is_not_ours_once_we_know_where_the_original_is() {
        let ticket = TicketId::new("t1");
        let body = format!("Started.\n{}", marker(&marked_key("secret", &ticket, "started:1")));
        let said = |id: &str, author: Author| Comment {
            id: CommentId::new(id),
            author,
            body: body.clone(),
            created_at: None,
            updated_at: None,
        };
        let person = || Author::new("ann", TrustLevel::Admin);
        let nobody = OurComments::default();
        let known = OurComments::from([("started:1".to_owned(), CommentId::new("c1"))]);
        assert!(is_ours("secret", &ticket, &said("c1", person()), &nobody), "its answer was lost");
        assert!(is_ours("secret", &ticket, &said("c1", person()), &known));
        assert!(!is_ours("secret", &ticket, &said("c2", person()), &known), "somebody quotes us");
        assert!(is_ours("secret", &ticket, &said("c2", Author::ourselves()), &known), "nobody else uses the account");
    }

    #[test]
    fn a_workers_own_text_is_told_from_the_runners() {
        let ticket = TicketId::new("t1");
        let by_worker = marker(&marked_key("secret", &ticket, &worker_key(&RunId::new("r1"), 0)));
        let by_runner = marker(&marked_key("secret", &ticket, "workpad"));
        assert!(is_workers("secret", &ticket, &format!("notes\n\n{by_worker}")));
        assert!(!is_workers("secret", &ticket, &format!("workpad\n\n{by_runner}")));
        assert!(!is_workers("secret", &ticket, &format!("{by_worker}\n{by_runner}")), "both");
        assert!(!is_workers("secret", &TicketId::new("t2"), &by_worker) && !is_workers("secret", &ticket, "words"));
    }
}
