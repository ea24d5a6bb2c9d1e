//! Usage limits belong to a credential pool, not to a worker.

use std::time::Duration;

use super::state::Pool;
use crate::domain::time::Timestamp;

const FIRST_GUESS: Duration = Duration::from_secs(5 * 60);
const LONGEST_GUESS: Duration = Duration::from_secs(60 * 60);

/// Pauses the pool until the reset the agent reported, else for a growing guess. A later reset wins.
pub fn pause(pool: &mut Pool, reset_at: Option<Timestamp>, now: Timestamp) {
    let until = match reset_at {
        Some(reset) if reset > now => reset,
        _ => {
            pool.guesses = pool.guesses.saturating_add(1);
            let doublings = pool.guesses.saturating_sub(1).min(10);
            now + FIRST_GUESS.saturating_mul(1 << doublings).min(LONGEST_GUESS)
        }
    };
    pool.paused_until = Some(pool.paused_until.map_or(until, |old| old.max(until)));
}

/// Until when nobody in the pool may start, if it is paused.
pub fn paused_until(pool: Option<&Pool>, now: Timestamp) -> Option<Timestamp> {
    pool.and_then(|pool| pool.paused_until).filter(|until| *until > now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reported_reset_is_taken_and_a_missing_one_is_guessed_longer_each_time() {
        let mut pool = Pool::default();
        pause(&mut pool, Some(Timestamp(10_000)), Timestamp(0));
        assert_eq!(pool.paused_until, Some(Timestamp(10_000)));
        let mut guessed = Pool::default();
        pause(&mut guessed, None, Timestamp(0));
        assert_eq!(guessed.paused_until, Some(Timestamp(300_000)));
        pause(&mut guessed, None, Timestamp(300_000));
        assert_eq!(guessed.paused_until, Some(Timestamp(900_000)));
        for _ in 0..100 {
            pause(&mut guessed, None, Timestamp(1_000_000));
        }
        assert_eq!(guessed.paused_until, Some(Timestamp(1_000_000 + 3_600_000)));
    }

    #[test]
    fn a_reset_in_the_past_is_no_reset() {
        let mut pool = Pool::default();
        pause(&mut pool, Some(Timestamp(5)), Timestamp(10));
        assert!(paused_until(Some(&pool), Timestamp(10)).is_some());
    }
}
