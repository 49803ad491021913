//! The integration tests, in one binary, on one private Postgres server.

mod demo;
mod lake;
mod pass;
mod server;
mod standins;
mod support;
