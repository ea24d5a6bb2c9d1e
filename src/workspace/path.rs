//! Names and paths under the workspace root: safe names for keys, and checks that a path is inside the root.

use std::io;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::error::WorkspaceError;

/// Longest name in bytes before the hash suffix. Longer keys are truncated; the suffix keeps them apart.
const LONGEST: usize = 80;

/// Returns a name that is safe as one path component: `[A-Za-z0-9._-]`, never `.`, `..` or empty.
///
/// If anything had to be changed, the name ends with 64 bits of a hash of the key, so that two keys never share a name.
pub fn sanitise(key: &str) -> String {
    let mut name: String =
        key.chars().map(|c| if c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-') { c } else { '_' }).collect();
    let mut changed = name != key;
    if name.len() > LONGEST {
        name.truncate(LONGEST);
        changed = true;
    }
    // A leading dot hides the directory, a leading dash reads as an option, `.lock` is not allowed in a ref.
    if name.is_empty()
        || name.starts_with(['.', '-'])
        || name.ends_with('.')
        || name.contains("..")
        || name.ends_with(".lock")
    {
        name = format!("_{}", name.trim_matches(['.', '-']).replace("..", "__").replace(".lock", "_lock"));
        changed = true;
    }
    // A key that already looks like a changed one must not collide with the key that it looks like.
    if changed || looks_suffixed(key) {
        name.push('-');
        name.push_str(&hash(key));
    }
    name
}

fn hash(key: &str) -> String {
    Sha256::digest(key.as_bytes()).iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

fn looks_suffixed(key: &str) -> bool {
    key.rsplit_once('-').is_some_and(|(_, end)| {
        end.len() == 16 && end.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
    })
}

/// Creates the root if it does not exist, and returns its canonical path.
pub fn open_root(root: &Path) -> Result<PathBuf, WorkspaceError> {
    std::fs::create_dir_all(root).map_err(|source| WorkspaceError::io("make the workspace root", root, source))?;
    root.canonicalize().map_err(|source| WorkspaceError::io("resolve the workspace root", root, source))
}

/// Returns the canonical path that `root` will have, resolved as far as it exists. Nothing is created.
pub fn planned(root: &Path) -> PathBuf {
    let mut missing = Vec::new();
    for ancestor in root.ancestors() {
        if let Ok(mut found) = ancestor.canonicalize() {
            found.extend(missing.iter().rev());
            return found;
        }
        missing.extend(ancestor.file_name());
    }
    root.to_owned()
}

/// What exists at a path under the root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Occupant {
    Nothing,
    Directory,
}

/// Checks that `path` is a direct child of the canonical `root`, and a real directory or nothing.
///
/// A symlink or anything else is an error: it is never followed and never removed.
pub fn contained(root: &Path, path: &Path) -> Result<Occupant, WorkspaceError> {
    let escape = |because: &str| WorkspaceError::Outside {
        path: path.to_owned(),
        root: root.to_owned(),
        because: because.to_owned(),
    };
    let parent = path.parent().ok_or_else(|| escape("it has no parent directory"))?;
    if path.file_name().is_none() {
        return Err(escape("it has no name"));
    }
    let parent = match parent.canonicalize() {
        Ok(parent) => parent,
        Err(source) => return Err(WorkspaceError::io("resolve", parent, source)),
    };
    let real_root = root.canonicalize().map_err(|source| WorkspaceError::io("resolve", root, source))?;
    if parent != real_root || real_root != root {
        return Err(escape("it is not directly below the root"));
    }
    match path.symlink_metadata() {
        Ok(found) if found.file_type().is_symlink() => Err(escape("it is a symbolic link")),
        Ok(found) if found.is_dir() => Ok(Occupant::Directory),
        Ok(_) => Err(escape("it is not a directory")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Occupant::Nothing),
        Err(source) => Err(WorkspaceError::io("look at", path, source)),
    }
}

/// Whether `inner` is `outer` or below it. Both must be canonical.
pub fn is_within(inner: &Path, outer: &Path) -> bool {
    inner.starts_with(outer)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn spec_4_a_plain_key_stays_as_it_is() {
        assert_eq!(sanitise("ENG-12"), "ENG-12");
        assert_eq!(sanitise("app_x3.f9"), "app_x3.f9");
    }

    #[test]
    fn spec_4_a_changed_key_gets_a_hash_suffix_of_64_bits() {
        let name = sanitise("#7");
        assert!(name.starts_with("_7-"), "{name}");
        assert_eq!(name.len(), "_7-".len() + 16);
    }

    #[test]
    fn keys_that_sanitise_to_the_same_name_do_not_meet() {
        let copy_of_a_name = sanitise("a/b");
        let keys = [
            "a/b",
            "a b",
            "a_b",
            "a\\b",
            "a:b",
            "ä_b",
            "",
            ".",
            "..",
            "...",
            copy_of_a_name.as_str(),
            "a..b",
            "a__b",
            "-a",
            "x.lock",
        ];
        let names: BTreeSet<_> = keys.iter().map(|key| sanitise(key)).collect();
        assert_eq!(names.len(), keys.len(), "{names:?}");
    }

    #[test]
    fn a_symlink_in_the_root_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let root = open_root(&dir.path().join("root")).unwrap();
        std::fs::create_dir(dir.path().join("outside")).unwrap();
        std::os::unix::fs::symlink(dir.path().join("outside"), root.join("link")).unwrap();
        std::fs::create_dir(root.join("real")).unwrap();
        std::fs::write(root.join("file"), "x").unwrap();
        assert!(contained(&root, &root.join("link")).unwrap_err().to_string().contains("symbolic link"));
        assert!(contained(&root, &root.join("file")).is_err());
        assert!(contained(&root, &root.join("link/inner")).is_err());
        assert!(contained(&root, &root.join("real/../../outside")).is_err());
        assert!(contained(&root, &root.join("..")).is_err());
        assert_eq!(contained(&root, &root.join("real")).unwrap(), Occupant::Directory);
        assert_eq!(contained(&root, &root.join("new")).unwrap(), Occupant::Nothing);
    }

    proptest! {
        #[test]
        fn any_key_is_one_safe_component(key in ".*") {
            let name = sanitise(&key);
            prop_assert!(!name.is_empty() && name.len() <= LONGEST + 18);
            prop_assert!(name.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b)));
            prop_assert!(!name.starts_with('.') && !name.contains(".."));
            let reference = format!("refs/dirigent/salvage/{name}");
            prop_assert!(git2::Reference::is_valid_name(&reference));
        }
    }
}
