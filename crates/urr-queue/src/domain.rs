//! The rules of the queue, without storage and network.

pub mod beacon;
pub mod draw;
pub mod estimate;
pub mod event;
pub mod marks;
pub mod poll;
pub mod reminder;
