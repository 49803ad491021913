//! Tests of what tailrace reads from the catalog's tables and writes to them, on servers of
//! different versions and beside other sessions.

pub mod explain;
pub mod foreign;
pub mod pooler;
pub mod restore;
pub mod reused;
pub mod silent;
pub mod window_rules;
