//! Notices of admissions on an SQS FIFO queue (Q6): sent by [`NoticePublisher`], read by
//! [`NoticeWorker`].
//!
//! A notice informs and gives no right: it has no token (K-11). If the queue is slow or down, notices
//! are lost and counted, and nothing else happens.
//!
//! The notices of an event keep their order, with one exception. They are sent ten at a time, and SQS
//! may accept some of a batch and refuse others: those are sent again before anything else, but behind
//! the rest of their batch. A reader that needs the exact order uses their time.

mod message;
mod metrics;
mod publisher;
mod sqs;
mod worker;

pub use message::{InvalidNotice, NoticeMessage};
pub use metrics::NoticeMetrics;
pub use publisher::NoticePublisher;
pub use sqs::{SqsOptions, SqsQueue};
pub use worker::{NoticeBatch, NoticeReadError, NoticeWorker};
