//! A draw that anyone can check.
