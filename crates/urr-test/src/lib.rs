//! placeholder

pub mod servers;
