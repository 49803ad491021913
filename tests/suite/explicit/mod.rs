//! The explicit drop.

mod basics;
