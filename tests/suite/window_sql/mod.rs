//! The drop window as data: that SQL decides as the passes do, whatever it is asked.

mod asked;
mod evolved;
mod rights;
mod vectors;
mod view;
