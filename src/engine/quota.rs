//! Usage limits. They belong to a credential pool, not to a worker.

use std::time::Duration;

use super::state::Pool;
use crate::domain::time::Timestamp;

const FIRST_GUESS: Duration = Duration::from_secs(5 * 60);
const LONGEST_GUESS: Duration = Duration::from_secs(60 * 60);
/// The longest windows that are sold last a week. A longer one was misread, or the clock has jumped.
const LONGEST_LIMIT: Duration = Duration::from_secs(8 * 24 * 60 * 60);

/// Pauses the pool until the reset that the agent reported, otherwise for a guess that grows each time. The later of two resets wins.
pub fn pause(pool: &mut Pool, reset_at: Option<Timestamp>, now: Timestamp) {
    pool.limited = true;
    let until = match reset_at {
        Some(reset) if is_ahead(reset, now) => reset,
        // One pause is one guess, however many workers ran into the limit.
        _ if paused_until(Some(pool), now).is_some() => return,
        _ => {
            pool.guesses = pool.guesses.saturating_add(1);
            let doublings = pool.guesses.saturating_sub(1).min(10);
            now + FIRST_GUESS.saturating_mul(1 << doublings).min(LONGEST_GUESS)
        }
    };
    let old = pool.paused_until.filter(|old| is_ahead(*old, now));
    pool.paused_until = Some(old.map_or(until, |old| old.max(until)));
}

fn is_ahead(until: Timestamp, now: Timestamp) -> bool {
    until > now && until.since(now) <= LONGEST_LIMIT
}

/// Returns until when no run of the pool may start, or `None` if it is not paused.
pub fn paused_until(pool: Option<&Pool>, now: Timestamp) -> Option<Timestamp> {
    pool.and_then(|pool| pool.paused_until).filter(|until| is_ahead(*until, now))
}

/// Notes that a run of the pool works again. Returns whether that is new.
pub fn got_through(pool: &mut Pool, now: Timestamp) -> bool {
    if !pool.limited || paused_until(Some(pool), now).is_some() {
        return false;
    }
    pool.limited = false;
    pool.guesses = 0;
    true
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
        for round in 1..100 {
            pause(&mut guessed, None, Timestamp(round * 10_000_000));
        }
        assert_eq!(guessed.paused_until, Some(Timestamp(99 * 10_000_000 + 3_600_000)));
    }

    #[test]
    fn workers_that_meet_one_limit_together_are_one_guess() {
        let mut pool = Pool::default();
        for _ in 0..5 {
            pause(&mut pool, None, Timestamp(0));
        }
        assert_eq!((pool.paused_until, pool.guesses), (Some(Timestamp(300_000)), 1));
    }

    #[test]
    fn a_reset_that_nobody_sells_is_no_reset() {
        let year = Timestamp(365 * 86_400_000);
        let mut pool = Pool::default();
        pause(&mut pool, Some(year), Timestamp(0));
        assert_eq!(pool.paused_until, Some(Timestamp(300_000)), "a guess instead");
        let put_back = Pool { paused_until: Some(year), ..Pool::default() };
        assert_eq!(paused_until(Some(&put_back), Timestamp(0)), None, "set before the clock was put back");
    }

    #[test]
    fn a_reset_in_the_past_is_no_reset() {
        let mut pool = Pool::default();
        pause(&mut pool, Some(Timestamp(5)), Timestamp(10));
        assert!(paused_until(Some(&pool), Timestamp(10)).is_some());
    }
}
