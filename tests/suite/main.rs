//! The integration tests, in one binary, on one private Postgres server.

mod cli;
mod demo;
mod explicit;
mod feed;
mod http;
mod installation;
mod lake;
mod pass;
mod plans;
mod policy;
mod python;
mod races;
mod server;
mod standins;
mod support;
