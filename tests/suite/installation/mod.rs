//! Our own schema: how it comes to be, who may bring it, and what it leaves alone.

mod grants;
mod incarnations;
mod migrate;
mod objects;
mod roles;
mod schemas;
mod upgraded;
