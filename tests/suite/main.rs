//! The integration tests, in one binary, on one private Postgres server.

mod benchmark;
mod cli;
mod cursor;
mod debt;
mod demo;
mod doctor;
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
mod shield;
mod soak;
mod standins;
mod support;
mod trace;
mod verify;
mod window_sql;
