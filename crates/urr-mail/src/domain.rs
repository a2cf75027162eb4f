//! The rules of mails: no clock, no I/O, no async.

pub mod facts;
pub mod mail;
pub mod retry;
pub mod template;
mod words;
