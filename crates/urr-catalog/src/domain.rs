//! The rules of the catalogue: no clock, no I/O, no async.

pub mod artist;
