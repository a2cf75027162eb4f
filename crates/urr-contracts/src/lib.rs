//! What services say to each other, declared once: domain events and internal calls.
//!
//! A message has one type that both its sender and its reader use, and a golden file per version
//! in `golden/` that shows it as JSON. A change that breaks a golden file breaks a deployment in
//! which old and new processes run side by side: add an optional field or a new version instead.
//!
//! Rules of the wire: camelCase; an absent value is `null` and an empty list is `[]`; readers accept
//! a missing optional field and ignore fields that they do not know. The envelope of a domain event is
//! that of CloudEvents, which leaves out attributes that are not set.
//!
//! Deliberately absent: rules. A service checks what it reads before it acts on it.

#[macro_use]
mod wire_enum;

pub mod clients;
pub mod events;
pub mod internal;
