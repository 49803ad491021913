//! Tests of the drop window as data: SQL decides as the passes do, for any question.

mod ambiguous;
pub mod asked;
mod evolved;
mod far_ahead;
mod generated;
mod kept;
mod property;
mod rights;
mod unknown;
mod vectors;
mod view;
