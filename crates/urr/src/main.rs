//! The `urr` program.
fn main() {}
