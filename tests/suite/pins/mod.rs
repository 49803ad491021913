//! What programs and later versions depend on, by exact values.

mod commands;
mod golden;
mod http;
mod lake;
mod objects;
mod settings;
mod shape;
mod told;
