//! Notices that someone was let in, on a FIFO queue of SQS (Q6): sent by [`Post`], read by [`Worker`].
//!
//! A notice tells and gives no right: it has no token (K-11). The queue being slow or dead costs
//! notices, which are counted, and nothing else.
//!
//! Those of an event keep their order, with one exception. They are sent ten at a time, and SQS may
//! take some of a batch and refuse others for a moment: those come again before anything else is
//! sent, but behind the rest of their batch. Whoever needs the very order has the time in them.

mod client;
mod figures;
mod message;
mod post;
mod worker;

pub use client::{SqsOptions, SqsQueue};
pub use figures::Figures;
pub use message::{Message, UnreadableMessage};
pub use post::Post;
pub use worker::{Read, ReadError, Worker};
