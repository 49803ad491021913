//! What is asked of the catalog's tables and written to them, on servers and beside others as they are.

pub mod explain;
pub mod foreign;
pub mod pooler;
pub mod restore;
pub mod reused;
pub mod silent;
pub mod window_rules;
