//! The integration tests, in one binary, on one private Postgres server.

mod benchmark;
mod cli;
mod cursor;
mod demo;
mod drop;
mod explicit;
mod feed;
mod http;
mod installation;
mod lake;
mod pace;
mod pass;
mod plans;
mod policy;
mod python;
mod races;
mod server;
mod standins;
mod support;
