//! The command line of the simulator. What `cargo test` hands to every test binary is understood and ignored.

pub const HELP: &str = "\
usage: cargo test --release --test sim -- [OPTIONS]
  --seed N        play this seed alone; a failure is shown with as little of its story as is needed
  --trace         with --seed: print every event and every effect
  --seeds N       play so many seeds (60 if nothing else bounds the run)
  --steps N       stop after so many steps
  --seconds N     stop after so many seconds
  --from N        the first seed (0)
  --random        begin at a seed that nobody has tried; it is printed
  --failures N    go on until so many seeds have failed (1)";

/// A share that takes seconds, even without optimisation.
const SMOKE_SEEDS: u64 = 60;

#[derive(Debug, Default)]
pub struct Arguments {
    pub seed: Option<u64>,
    pub trace: bool,
    pub seeds: Option<u64>,
    pub steps: Option<u64>,
    pub seconds: Option<u64>,
    pub from: u64,
    pub random: bool,
    pub failures: u64,
}

pub enum Order {
    Play(Arguments),
    Help,
    /// `cargo test some_name`: the name is not ours.
    Nothing,
}

pub fn read(mut words: impl Iterator<Item = String>) -> Result<Order, String> {
    let mut arguments = Arguments { failures: 1, ..Arguments::default() };
    let mut named = Vec::new();
    while let Some(word) = words.next() {
        let mut number = || {
            let value = words.next().ok_or_else(|| format!("{word} wants a number"))?;
            value.parse().map_err(|_| format!("{word} wants a number, and `{value}` is none"))
        };
        match word.as_str() {
            "--seed" => arguments.seed = Some(number()?),
            "--seeds" => arguments.seeds = Some(number()?),
            "--steps" => arguments.steps = Some(number()?),
            "--seconds" => arguments.seconds = Some(number()?),
            "--from" => arguments.from = number()?,
            "--failures" => arguments.failures = number()?,
            "--trace" => arguments.trace = true,
            "--random" => arguments.random = true,
            "--help" | "-h" => return Ok(Order::Help),
            "--list" | "--ignored" => return Ok(Order::Nothing),
            "--skip" | "--test-threads" | "--format" | "--color" => drop(words.next()),
            "--exact" | "--nocapture" | "--no-capture" | "--show-output" | "--quiet" | "-q" | "--include-ignored" => {}
            word if word.starts_with("--test-threads=") || word.starts_with("--format=") => {}
            word if word.starts_with('-') => return Err(format!("{word} is not known")),
            word => named.push(word.to_owned()),
        }
    }
    if !named.is_empty() && !named.iter().any(|name| "simulator".starts_with(name.as_str())) {
        return Ok(Order::Nothing);
    }
    if arguments.seeds.is_none() && arguments.steps.is_none() && arguments.seconds.is_none() {
        arguments.seeds = Some(SMOKE_SEEDS);
    }
    Ok(Order::Play(arguments))
}

/// From the clock: new each time, and small enough to be typed.
pub fn random_seed() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    1_000_000 + (now.as_secs() % 1_000_000) * 1000 + u64::from(now.subsec_millis())
}
