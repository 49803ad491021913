//! The drop window as data: that SQL decides as the passes do, whatever it is asked.

pub mod asked;
mod doubt;
mod evolved;
mod far_ahead;
mod generated;
mod kept;
mod property;
mod rights;
mod unknown;
mod vectors;
mod view;
