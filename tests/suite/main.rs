//! The integration tests, in one binary, on one private Postgres server.

mod architecture;
mod benchmark;
mod catalog;
mod claims;
mod cli;
mod demo;
mod doctor;
mod drop;
mod explicit;
mod feed;
mod http;
mod installation;
mod kit;
mod pins;
mod policy;
mod python;
mod rules;
mod semantics;
mod server;
mod soak;
mod support;
mod sweep;
mod telemetry;
mod trace;
mod verify;
mod versions;
