//! Caps on turns, tokens, money and time: per ticket and per day, with a brake inside the run.

use std::time::Duration;

use crate::config::policy::Caps;
use crate::domain::usage::Usage;

/// How close spending is to a cap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Level {
    Fine,
    /// 80 %: time to commit and hand over.
    Nearly {
        what: String,
        figure: String,
        cap: String,
    },
    Exceeded {
        what: String,
        figure: String,
        cap: String,
    },
}

pub fn level(caps: &Caps, usage: &Usage, run: Duration) -> Level {
    let figures = [
        ("turns", caps.max_turns.map(u64::from), u64::from(usage.turns)),
        ("tokens", caps.max_tokens, usage.tokens()),
        ("cost in millionths of a dollar", caps.max_cost_microusd, usage.cost_microusd),
        ("run time in ms", caps.max_run.map(|cap| cap.as_millis() as u64), run.as_millis() as u64),
    ];
    let mut nearly = Level::Fine;
    for (what, cap, figure) in figures {
        let Some(cap) = cap else { continue };
        if figure >= cap {
            return Level::Exceeded { what: what.to_owned(), figure: figure.to_string(), cap: cap.to_string() };
        }
        // Integer form of figure >= 0.8 * cap.
        if figure.saturating_mul(5) >= cap.saturating_mul(4) && nearly == Level::Fine {
            nearly = Level::Nearly { what: what.to_owned(), figure: figure.to_string(), cap: cap.to_string() };
        }
    }
    nearly
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caps(tokens: u64) -> Caps {
        Caps { max_tokens: Some(tokens), ..Caps::default() }
    }

    fn used(tokens: u64) -> Usage {
        Usage { output: tokens, ..Usage::default() }
    }

    #[test]
    fn eighty_percent_warns_and_a_hundred_stops() {
        assert_eq!(level(&caps(100), &used(79), Duration::ZERO), Level::Fine);
        assert!(matches!(level(&caps(100), &used(80), Duration::ZERO), Level::Nearly { .. }));
        assert!(matches!(level(&caps(100), &used(100), Duration::ZERO), Level::Exceeded { .. }));
    }

    #[test]
    fn no_cap_is_never_reached_and_zero_is_reached_at_once() {
        assert_eq!(level(&Caps::default(), &used(u64::MAX), Duration::MAX), Level::Fine);
        assert!(matches!(level(&caps(0), &used(0), Duration::ZERO), Level::Exceeded { .. }));
    }

    #[test]
    fn an_exceeded_cap_outranks_a_nearly_reached_one() {
        let caps = Caps { max_turns: Some(10), max_tokens: Some(100), ..Caps::default() };
        let usage = Usage { turns: 9, output: 100, ..Usage::default() };
        assert!(matches!(level(&caps, &usage, Duration::ZERO), Level::Exceeded { what, .. } if what == "tokens"));
    }
}
