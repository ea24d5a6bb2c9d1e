//! Ticket ids: the check for valid ones, and the generation of new ones.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::path::Path;

use super::error::StoreError;

/// Checks that an id is a plain file name without its `.md`. Refuses ids that could leave the store or match more than one file.
pub fn check_id(id: &str) -> Result<(), StoreError> {
    let why = if id.is_empty() {
        "it is empty"
    } else if id.contains('/') || id.contains('\\') || id.contains("..") {
        "it must not hold a path"
    } else if id.contains(['*', '?', '[', ']']) {
        "it must not hold glob characters"
    } else if id.starts_with('.') {
        "it must not start with a dot"
    } else if id.chars().any(char::is_control) {
        "it must not hold control characters"
    } else if id.len() > 200 {
        "it is too long"
    } else {
        return Ok(());
    };
    Err(StoreError::InvalidId { id: id.to_owned(), why })
}

/// Returns the prefix of new ids: the first character of each part of the directory's name, or its first three characters if the
/// name has only one part.
pub fn prefix_for(directory: &Path) -> String {
    let name = directory.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let usable = |c: &char| c.is_alphanumeric();
    let initials: String = name.split(['-', '_', ' ']).filter_map(|part| part.chars().find(usable)).collect();
    if initials.chars().count() >= 2 {
        return initials;
    }
    let start: String = name.chars().filter(usable).take(3).collect();
    if start.is_empty() { "tk".to_owned() } else { start }
}

/// Returns a random id `prefix-xxxx`. The caller that creates the file makes sure that the id is unused.
pub fn fresh_id(prefix: &str) -> String {
    const ALPHABET: &[u8; 36] = b"abcdefghijklmnopqrstuvwxyz0123456789";
    let mut hasher = RandomState::new().build_hasher();
    hasher.write_u32(std::process::id());
    let mut bits = hasher.finish();
    let mut suffix = String::with_capacity(4);
    for _ in 0..4 {
        let place = usize::try_from(bits % 36).unwrap_or(0);
        suffix.push(char::from(ALPHABET[place]));
        bits /= 36;
    }
    format!("{prefix}-{suffix}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_follow_the_directory_name() {
        let cases = [
            ("plan", "pla"),
            ("a", "a"),
            ("my-app", "ma"),
            ("My_App", "MA"),
            ("foo-bar-baz_qux", "fbbq"),
            ("two words", "tw"),
            ("x--y", "xy"),
            (".hid", "hid"),
            ("[x] *y", "xy"),
            ("---", "tk"),
        ];
        for (name, prefix) in cases {
            assert_eq!(prefix_for(&Path::new("/p").join(name)), prefix, "{name}");
        }
        assert_eq!(prefix_for(Path::new("/")), "tk");
    }

    #[test]
    fn ids_that_could_leave_the_store_are_refused() {
        for id in ["", "../x", "a/b", "a\\b", "x*", "x?", "[a]", ".lock", "a\0b", "a\nb", ".."] {
            assert!(matches!(check_id(id), Err(StoreError::InvalidId { .. })), "{id:?}");
        }
        check_id("my-app-x3f9.v2").unwrap();
    }

    #[test]
    fn fresh_ids_differ_and_fit() {
        let ids: std::collections::BTreeSet<_> = (0..200).map(|_| fresh_id("ab")).collect();
        assert!(ids.len() > 190);
        assert!(ids.iter().all(|id| id.len() == 7 && check_id(id).is_ok()));
    }
}
