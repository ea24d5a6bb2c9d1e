//! The real engine against a simulated world, from a seed: no real time, no IO. After every step the promises are checked
//! over world and state.
//!
//! Without arguments a few fixed seeds are played, so that `cargo test` shows that it works. `--help` lists the rest.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod agents;
mod arguments;
mod chance;
mod driver;
mod engine;
mod forge;
mod ledger;
mod peace;
mod people;
mod performer;
mod policies;
mod promises;
mod reader;
mod reviewers;
mod simulation;
mod wishes;
mod witness;
mod world;

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::time::Instant;

use arguments::{Arguments, Order};
use simulation::Simulation;

/// Disturbances of one story: what people, faults and crashes do.
const DISTURBANCES: usize = 120;

struct Outcome {
    steps: u64,
    broken: Option<String>,
    story: Vec<String>,
}

/// Plays one seed, leaving out the disturbances in `without`.
fn play(seed: u64, without: &BTreeSet<usize>, trace: bool) -> Outcome {
    let mut simulation = Simulation::new(seed, trace);
    for number in 0..DISTURBANCES {
        if simulation.broken().is_some() {
            break;
        }
        // Each disturbance has its own source of chance, so that leaving one out does not change the others.
        simulation.disturb(seed, number, without.contains(&number));
    }
    simulation.calm_down(seed);
    let broken = simulation.broken().cloned();
    Outcome { steps: simulation.steps, broken, story: simulation.story }
}

/// Leaves out as many disturbances as possible while the seed still fails.
fn minimise(seed: u64) -> BTreeSet<usize> {
    let mut without = BTreeSet::new();
    let mut chunk = DISTURBANCES / 2;
    while chunk > 0 {
        for start in (0..DISTURBANCES).step_by(chunk) {
            let mut candidate = without.clone();
            candidate.extend(start..(start + chunk).min(DISTURBANCES));
            if candidate != without && play(seed, &candidate, false).broken.is_some() {
                without = candidate;
            }
        }
        chunk /= 2;
    }
    without
}

/// Says what is wrong with a seed, with as little of its story as is needed for it.
fn report(seed: u64, broken: String, trace: bool) {
    let without = minimise(seed);
    let smallest = play(seed, &without, trace);
    let reason = smallest.broken.unwrap_or(broken);
    println!("seed {seed} breaks a promise: {reason}");
    println!("what is needed for it:\n  {}", smallest.story.join("\n  "));
    println!("every event of it: cargo test --test sim -- --seed {seed} --trace");
}

fn one(seed: u64, trace: bool) -> ExitCode {
    let outcome = play(seed, &BTreeSet::new(), false);
    let Some(broken) = outcome.broken else {
        if trace {
            play(seed, &BTreeSet::new(), true);
        }
        println!("seed {seed}: {} steps, every promise holds", outcome.steps);
        return ExitCode::SUCCESS;
    };
    report(seed, broken, trace);
    ExitCode::FAILURE
}

/// Plays seeds until the number of seeds, of steps or of seconds is reached.
fn many(wanted: &Arguments, from: u64) -> ExitCode {
    let begun = Instant::now();
    let (mut steps, mut seeds, mut failures) = (0, 0, 0);
    for seed in from.. {
        let enough = wanted.steps.is_some_and(|most| steps >= most)
            || wanted.seconds.is_some_and(|most| begun.elapsed().as_secs() >= most)
            || wanted.seeds.is_some_and(|most| seeds >= most);
        if enough {
            break;
        }
        let outcome = play(seed, &BTreeSet::new(), false);
        steps += outcome.steps;
        seeds += 1;
        if let Some(broken) = outcome.broken {
            report(seed, broken, false);
            failures += 1;
            if failures >= wanted.failures {
                break;
            }
        }
    }
    let seconds = begun.elapsed().as_secs_f64();
    println!("{seeds} seeds from {from}: {steps} steps in {seconds:.1} s, {:.0} steps a second", per(steps, seconds));
    if let Some(busy) = busy_seconds() {
        println!("{busy:.1} s of them on the processor: {:.0} steps a second of one core", per(steps, busy));
    }
    if failures > 0 {
        return ExitCode::FAILURE;
    }
    if steps < seeds * 100 {
        println!("the stories are too short to show anything");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

fn per(steps: u64, seconds: f64) -> f64 {
    steps as f64 / seconds.max(0.001)
}

/// Processor time of this process, which says more than the clock on a busy machine. Linux counts it in hundredths.
fn busy_seconds() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = |at: usize| fields.get(at)?.parse::<u64>().ok();
    Some((ticks(11)? + ticks(12)?) as f64 / 100.0)
}

/// The same seed must tell the same story, or a failure could not be looked at again.
fn repeats() -> bool {
    let (one, two) = (play(3, &BTreeSet::new(), false), play(3, &BTreeSet::new(), false));
    one.steps == two.steps && one.story == two.story
}

fn main() -> ExitCode {
    let arguments = match arguments::read(std::env::args().skip(1)) {
        Ok(Order::Play(arguments)) => arguments,
        Ok(Order::Nothing) => return ExitCode::SUCCESS,
        Ok(Order::Help) => {
            println!("{}", arguments::HELP);
            return ExitCode::SUCCESS;
        }
        Err(what) => {
            eprintln!("{what}\n\n{}", arguments::HELP);
            return ExitCode::from(2);
        }
    };
    if let Some(seed) = arguments.seed {
        return one(seed, arguments.trace);
    }
    if !repeats() {
        println!("seed 3 tells another story each time");
        return ExitCode::FAILURE;
    }
    let from = if arguments.random { arguments::random_seed() } else { arguments.from };
    many(&arguments, from)
}
