//! Ids chosen by the runner: a repeated write has the same id, so Linear cannot store the object twice.

use sha2::{Digest, Sha256};

/// Returns an id derived from these names, in the format of Linear's own ids (UUID version 4).
pub fn own_id(names: &[&str]) -> String {
    let mut hasher = Sha256::new();
    for name in names {
        hasher.update(name.len().to_be_bytes());
        hasher.update(name);
    }
    let mut bytes: Vec<u8> = hasher.finalize().iter().copied().take(16).collect();
    bytes[6] = (bytes[6] & 0x0f) | 0x40;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_own_id_looks_like_one_of_linears_and_depends_on_every_name() {
        let id = own_id(&["comment", "a", "b"]);
        assert_eq!((id.len(), &id[14..15]), (36, "4"));
        assert_eq!(id, own_id(&["comment", "a", "b"]));
        assert_ne!(id, own_id(&["comment", "ab", ""]));
    }
}
