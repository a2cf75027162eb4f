//! Every message beside its golden file, and every client beside the messages.

mod clients;
mod events;
mod golden;
mod internal;
