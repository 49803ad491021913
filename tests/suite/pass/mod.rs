//! The pass, on real catalogs.

mod basics;
