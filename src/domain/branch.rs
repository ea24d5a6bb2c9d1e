//! Branch names of jobs, built from untrusted text.

use sha2::{Digest, Sha256};

/// Longest parts of a name, in bytes. They keep the name of a ref file far below the limits of file systems.
const LONGEST_KEY: usize = 60;
const LONGEST_SLUG: usize = 40;
const LONGEST_PROPOSED: usize = 200;

/// Returns `prefix + key + "-" + slug of the title`, with `-<generation + 1>` appended when an earlier branch was given up.
///
/// The name is valid for git whatever the input, and the same input always gives the same name.
pub fn branch_name(prefix: &str, key: &str, title: &str, generation: u32) -> String {
    let prefix = clean_prefix(prefix);
    let mut name = key_component(key);
    let slug = component(title, LONGEST_SLUG, true);
    if !slug.is_empty() {
        name.push('-');
        name.push_str(&slug);
    }
    if generation > 0 {
        name.push_str(&format!("-{}", generation.saturating_add(1)));
    }
    format!("{prefix}{name}")
}

/// Returns the branch name that the board proposes, if git accepts it unchanged and it contains the ticket's key. Requiring the key keeps
/// tickets from sharing a branch, and keeps the runner off a branch that a person works on.
pub fn proposed_branch(proposed: &str, key: &str) -> Option<String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    let part = |part: &str| !part.is_empty() && !part.starts_with(['.', '-']) && !part.ends_with(".lock");
    let valid = proposed.len() <= LONGEST_PROPOSED
        && proposed.chars().all(plain)
        && proposed.split('/').all(part)
        && !proposed.contains("..")
        && !proposed.ends_with('.');
    let (lower, key) = (proposed.to_ascii_lowercase(), key.to_ascii_lowercase());
    let names_it = lower.match_indices(&key).any(|(at, _)| {
        let before = lower[..at].chars().next_back();
        let after = lower[at + key.len()..].chars().next();
        !before.is_some_and(|c| c.is_ascii_alphanumeric()) && !after.is_some_and(|c| c.is_ascii_alphanumeric())
    });
    (valid && !key.is_empty() && names_it).then(|| proposed.to_owned())
}

/// Makes a key usable in a branch name. A key that has to be changed gets a hash appended, so that two keys never share a branch; only `#7`
/// simply becomes `7`.
fn key_component(key: &str) -> String {
    if let Some(number) = key.strip_prefix('#')
        && !number.is_empty()
        && number.len() <= 20
        && number.bytes().all(|byte| byte.is_ascii_digit())
    {
        return number.to_owned();
    }
    let mut name = component(key, LONGEST_KEY, false);
    if name != key || name.is_empty() {
        let digest = Sha256::digest(key.as_bytes());
        let hash: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        name = if name.is_empty() { format!("ticket-{hash}") } else { format!("{name}-{hash}") };
    }
    name
}

/// Keeps ASCII letters and digits and turns every run of other characters into one dash. Underscores stay unless `lower` is set.
fn component(text: &str, longest: usize, lower: bool) -> String {
    let mut out = String::new();
    for c in text.chars() {
        if out.len() >= longest {
            break;
        }
        if c.is_ascii_alphanumeric() || (c == '_' && !lower) {
            out.push(if lower { c.to_ascii_lowercase() } else { c });
        } else if !out.is_empty() && !out.ends_with('-') {
            out.push('-');
        }
    }
    out.trim_end_matches('-').to_owned()
}

/// Keeps a prefix such as `dirigent/` or `bots/ai-`. Characters that git would refuse are replaced by a dash or dropped.
fn clean_prefix(prefix: &str) -> String {
    let parts: Vec<&str> = prefix.split('/').collect();
    let last = parts.len().saturating_sub(1);
    let mut out = String::new();
    for (at, part) in parts.iter().enumerate() {
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        let mut part: String = part.chars().take(LONGEST_KEY).map(|c| if allowed(c) { c } else { '-' }).collect();
        while part.contains("..") {
            part = part.replace("..", ".");
        }
        let part = part.trim_start_matches(['.', '-']);
        if at == last {
            out.push_str(part);
        } else {
            let part = part.trim_end_matches('.');
            let part = part.strip_suffix(".lock").unwrap_or(part).trim_end_matches('.');
            if !part.is_empty() {
                out.push_str(part);
                out.push('/');
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_proposed_name_is_taken_only_if_it_is_the_tickets_and_git_takes_it() {
        for name in ["ada/eng-12-fix-the-login", "ENG-12", "x/y/eng-12"] {
            assert_eq!(proposed_branch(name, "ENG-12").as_deref(), Some(name));
        }
        for name in [
            "main",
            "",
            "ada/eng-123-x",
            "ada/seng-12",
            "eng-12..x",
            "/eng-12",
            "eng-12.lock",
            "a b/eng-12",
            "-eng-12",
            "eng-12/",
        ] {
            assert_eq!(proposed_branch(name, "ENG-12"), None, "{name}");
        }
    }

    #[test]
    fn a_plain_ticket() {
        assert_eq!(
            branch_name("dirigent/", "ENG-12", "Fix the  login, please!", 0),
            "dirigent/ENG-12-fix-the-login-please"
        );
    }

    #[test]
    fn a_given_up_branch_gets_a_new_name() {
        assert_eq!(branch_name("dirigent/", "ENG-12", "Fix", 1), "dirigent/ENG-12-fix-2");
    }

    #[test]
    fn keys_that_look_alike_do_not_share_a_branch() {
        let names: std::collections::BTreeSet<_> =
            ["a b", "a/b", "a-b", "a--b", "", ".", "é"].iter().map(|key| branch_name("p/", key, "t", 0)).collect();
        assert_eq!(names.len(), 7, "{names:?}");
    }

    #[test]
    fn odd_keys_and_titles() {
        assert_eq!(branch_name("dirigent/", "#7", "", 0), "dirigent/7");
        assert!(branch_name("", "", "", 0).starts_with("ticket-"));
        assert!(branch_name("", "..", "日本語", 0).starts_with("ticket-"));
        assert_eq!(branch_name("a//.b/x.lock/", "k", "t", 0), "a/b/x/k-t");
    }

    proptest! {
        #[test]
        fn every_name_is_valid_for_git_and_bounded(prefix in ".{0,300}", key in ".*", title in ".*", generation: u32) {
            let name = branch_name(&prefix, &key, &title, generation);
            let full = format!("refs/heads/{name}");
            prop_assert!(git2::Reference::is_valid_name(&full), "{full}");
            prop_assert!(git2::Branch::name_is_valid(&name).unwrap());
            prop_assert!(name.rsplit('/').next().unwrap().len() <= 200);
        }
    }
}
