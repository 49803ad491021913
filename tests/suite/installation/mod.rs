//! Tests of the schema `tailrace`: how it is created, who may create it, and what it leaves
//! unchanged.

mod grants;
mod migrate;
mod objects;
mod roles;
mod schemas;
mod upgraded;
mod uuids;
