//! The rules of mails: no clock, no I/O, no async.

pub mod mail;
mod phrases;
pub mod retry;
pub mod template;
pub mod template_data;
