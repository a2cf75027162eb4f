//! The `urr` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    urr::command::run()
}
