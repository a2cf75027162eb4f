//! Every message beside its golden file.

mod events;
mod golden;
