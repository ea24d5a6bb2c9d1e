//! The `dirigent` binary: passes the command line to the library and returns its exit code.

use std::process::ExitCode;

fn main() -> ExitCode {
    dirigent::cli::main(std::env::args_os().collect())
}
