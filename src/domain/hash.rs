//! A hash that has the same value in every build that reads a ledger.

/// Returns the FNV-1a hash of the parts, each preceded by its length.
pub fn stable_hash(parts: &[&str]) -> u64 {
    const START: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    let bytes = parts.iter().flat_map(|part| (part.len() as u64).to_le_bytes().into_iter().chain(part.bytes()));
    bytes.fold(START, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME))
}
