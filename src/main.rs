//! Parse, run, exit code.

use std::process::ExitCode;

fn main() -> ExitCode {
    dirigent::cli::main(std::env::args_os().collect())
}
