//! How long someone will wait, with a range.
