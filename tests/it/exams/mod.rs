//! The exams: what every tracker and every forge has to be able to do, written once against the traits.
//!
//! A candidate is an adapter with the world around it: it lets people act, answers get lost, replicas lag. What its world cannot
//! do is declared by name in `CANNOT`. A check that is skipped without being declared fails, and so does one that is declared
//! and could have been taken.

#[macro_use]
mod papers;
#[macro_use]
mod forge;
#[macro_use]
mod tracker;

mod github_forge;
mod github_tracker;
mod linear;
mod local;
mod memory_forge;
mod memory_tracker;
mod tk;

use dirigent::domain::permit::Permit;
use dirigent::engine::permit::EffectKind;

/// What the candidate's world has no way to let happen.
#[derive(Debug)]
pub struct Cannot(pub &'static str);

/// A check either panics, is taken to its end, or cannot be taken.
pub type Outcome = Result<(), Cannot>;

/// Names of checks that cannot be taken, and why.
pub type Gaps = &'static [(&'static str, &'static str)];

/// Holds what became of a check against what was declared about it.
fn mark(check: &str, gaps: Gaps, outcome: Outcome) {
    match (outcome, gaps.iter().find(|(name, _)| *name == check)) {
        (Ok(()), None) => {}
        (Err(Cannot(what)), Some((_, why))) => println!("skipped: {check}: it cannot {what}, because {why}"),
        (Err(Cannot(what)), None) => panic!("`{check}` is skipped in silence: the candidate cannot {what}"),
        (Ok(()), Some(_)) => panic!("`{check}` is declared as a gap and was passed"),
    }
}

/// The adapters ask for one, and the exams are not about which.
fn permit() -> Permit {
    crate::support::allowed(EffectKind::Comment)
}

/// Proves that something is ours, as the key in the ledger does.
const SECRET: &str = "the key in the ledger";
