//! Caps on turns, tokens, money and time, per ticket and per day. They are checked while a run is live, not only at its end.

use std::time::Duration;

use crate::config::policy::Caps;
use crate::domain::snapshot::CapView;
use crate::domain::usage::Usage;

/// How close spending is to a cap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Level {
    Fine,
    /// 80 % of a cap is reached: the run is told to commit and hand over.
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

/// One cap, with what counts against it.
struct Figure {
    what: &'static str,
    spent: u64,
    cap: u64,
    shown: fn(u64) -> String,
}

fn plain(figure: u64) -> String {
    figure.to_string()
}

fn dollars(millionths: u64) -> String {
    format!("{}.{:04}", millionths / 1_000_000, millionths % 1_000_000 / 100)
}

fn seconds(millis: u64) -> String {
    format!("{}.{}", millis / 1000, millis % 1000 / 100)
}

fn figures(caps: &Caps, usage: &Usage, run: Duration) -> impl Iterator<Item = Figure> {
    let millis = |span: Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
    let figure = |what, cap: Option<u64>, spent, shown| cap.map(|cap| Figure { what, spent, cap, shown });
    [
        figure("turns", caps.max_turns.map(u64::from), u64::from(usage.turns), plain),
        figure("tokens", caps.max_tokens, usage.tokens(), plain),
        figure("cost in USD", caps.max_cost_microusd, usage.cost_microusd, dollars),
        figure("run time in s", caps.max_run.map(millis), millis(run), seconds),
    ]
    .into_iter()
    .flatten()
}

pub fn level(caps: &Caps, usage: &Usage, run: Duration) -> Level {
    let mut nearly = Level::Fine;
    for Figure { what, spent, cap, shown } in figures(caps, usage, run) {
        let words = || (what.to_owned(), shown(spent), shown(cap));
        if spent >= cap {
            let (what, figure, cap) = words();
            return Level::Exceeded { what, figure, cap };
        }
        // The integer form of `spent >= 0.8 * cap`.
        if spent.saturating_mul(5) >= cap.saturating_mul(4) && nearly == Level::Fine {
            let (what, figure, cap) = words();
            nearly = Level::Nearly { what, figure, cap };
        }
    }
    nearly
}

/// Returns every cap that is set, for people.
pub fn shown(caps: &Caps, usage: &Usage, run: Duration) -> Vec<CapView> {
    let view = |figure: Figure| CapView {
        what: figure.what.to_owned(),
        spent: (figure.shown)(figure.spent),
        cap: (figure.shown)(figure.cap),
    };
    figures(caps, usage, run).map(view).collect()
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
    fn money_and_time_are_shown_as_people_count_them() {
        let caps = Caps {
            max_cost_microusd: Some(1_500_000),
            max_run: Some(Duration::from_millis(90_500)),
            ..Caps::default()
        };
        let usage = Usage { cost_microusd: 12_345, ..Usage::default() };
        let all = shown(&caps, &usage, Duration::from_secs(1));
        let words: Vec<_> = all.iter().map(|one| format!("{}: {} of {}", one.what, one.spent, one.cap)).collect();
        assert_eq!(words, ["cost in USD: 0.0123 of 1.5000", "run time in s: 1.0 of 90.5"]);
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
