//! When a failed attempt is tried again: exponential back-off with a cap, and jitter from a seed instead of randomness.

use std::time::Duration;

const FIRST: Duration = Duration::from_secs(10);

/// Returns `min(10 s · 2^(n-1), cap)`, changed by up to a tenth and never more than the cap. `failures` counts from 1.
pub fn backoff(failures: u32, cap: Duration, seed: u64) -> Duration {
    let doublings = failures.saturating_sub(1).min(31);
    let plain = FIRST.saturating_mul(1u32 << doublings).min(cap);
    // -100..=100 thousandths.
    let thousandths = (seed % 201) as i64 - 100;
    let millis = plain.as_millis() as i64;
    Duration::from_millis((millis + millis * thousandths / 1000).max(0) as u64).min(cap)
}

/// Returns a number that differs between tickets and attempts and is the same in every replay.
pub fn seed_for(ticket: &str, attempt: u32) -> u64 {
    ticket
        .bytes()
        .chain(attempt.to_le_bytes())
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NO_JITTER: u64 = 100;
    const CAP: Duration = Duration::from_secs(300);

    #[test]
    fn spec_8_backoff_doubles_from_ten_seconds() {
        let seconds: Vec<u64> = (1..=5).map(|n| backoff(n, CAP, NO_JITTER).as_secs()).collect();
        assert_eq!(seconds, [10, 20, 40, 80, 160]);
    }

    #[test]
    fn spec_17_4_backoff_cap() {
        assert_eq!(backoff(6, CAP, NO_JITTER), CAP);
        assert_eq!(backoff(u32::MAX, CAP, NO_JITTER), CAP);
        assert_eq!(backoff(1, Duration::from_secs(3), NO_JITTER), Duration::from_secs(3));
    }

    #[test]
    fn spec_8_jitter_stays_inside_the_cap() {
        assert!((0..1000).all(|seed| backoff(20, CAP, seed) <= CAP));
    }

    #[test]
    fn jitter_stays_within_a_tenth() {
        for seed in 0..1000 {
            let due = backoff(1, CAP, seed).as_millis();
            assert!((9_000..=11_000).contains(&due), "{due}");
        }
    }
}
