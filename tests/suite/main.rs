//! The integration tests, in one binary, on one private Postgres server.

mod lake;
mod pass;
mod races;
mod server;
mod standins;
mod support;
