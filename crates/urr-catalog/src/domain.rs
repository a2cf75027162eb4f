//! The rules of the catalogue: no clock, no I/O, no async.

pub mod artist;
pub mod event;
pub mod image;
pub mod search;
pub mod text;
pub mod venue;
