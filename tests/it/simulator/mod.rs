//! The real engine against a simulated world, from a seed: no real time, no IO. After every step the promises are checked
//! over world and state.
//!
//! `DIRIGENT_SIM_SEED=N` replays one seed, `DIRIGENT_SIM_SEEDS=count` runs that many.

mod agents;
mod chance;
mod people;
mod promises;
mod runner;
mod world;

use std::collections::BTreeSet;
use std::time::Instant;

use runner::Simulation;

const SMOKE_SEEDS: u64 = 60;
/// Disturbances of one story: what people, faults and crashes do.
const DISTURBANCES: usize = 120;

struct Outcome {
    steps: u64,
    broken: Option<String>,
    story: Vec<String>,
}

/// Plays one seed, leaving out the disturbances in `without`.
fn play(seed: u64, without: &BTreeSet<usize>) -> Outcome {
    let mut simulation = Simulation::new(seed);
    for number in 0..DISTURBANCES {
        if simulation.broken().is_some() {
            break;
        }
        // Each disturbance has its own source of chance, so that leaving one out does not change the others.
        simulation.disturb(seed, number, without.contains(&number));
    }
    simulation.calm_down();
    let broken = simulation.broken().cloned();
    Outcome { steps: simulation.steps, broken, story: simulation.story }
}

/// Leaves out as many disturbances as possible while the seed still fails.
fn minimise(seed: u64) -> BTreeSet<usize> {
    let mut without = BTreeSet::new();
    let mut chunk = DISTURBANCES / 2;
    while chunk > 0 {
        let mut start = 0;
        while start < DISTURBANCES {
            let mut candidate = without.clone();
            candidate.extend(start..(start + chunk).min(DISTURBANCES));
            if candidate != without && play(seed, &candidate).broken.is_some() {
                without = candidate;
            }
            start += chunk;
        }
        chunk /= 2;
    }
    without
}

fn number_from(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().and_then(|text| text.parse().ok())
}

#[test]
fn the_promises_hold_in_every_story() {
    let seeds: Vec<u64> = match (number_from("DIRIGENT_SIM_SEED"), number_from("DIRIGENT_SIM_SEEDS")) {
        (Some(seed), _) => vec![seed],
        (None, count) => (0..count.unwrap_or(SMOKE_SEEDS)).collect(),
    };
    let begun = Instant::now();
    let mut steps = 0;
    for seed in &seeds {
        let outcome = play(*seed, &BTreeSet::new());
        steps += outcome.steps;
        if let Some(broken) = outcome.broken {
            let without = minimise(*seed);
            let smallest = play(*seed, &without);
            let reason = smallest.broken.unwrap_or(broken);
            panic!(
                "seed {seed} breaks a promise: {reason}\nreplay with DIRIGENT_SIM_SEED={seed}; what is needed for it:\n  {}",
                smallest.story.join("\n  ")
            );
        }
    }
    let per_second = steps as f64 / begun.elapsed().as_secs_f64().max(0.001);
    println!("{} seeds, {steps} steps, {per_second:.0} steps a second", seeds.len());
    assert!(steps > seeds.len() as u64 * 100, "the stories are too short to show anything: {steps} steps");
}

#[test]
fn a_seed_tells_the_same_story_each_time() {
    let (one, two) = (play(3, &BTreeSet::new()), play(3, &BTreeSet::new()));
    assert_eq!(one.steps, two.steps);
    assert_eq!(one.story, two.story);
}
