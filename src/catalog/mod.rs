//! The only place that knows the `hog_*` tables: identities, specs, the finder of live files, the commit lock
//! and tail, and what this server has. SQL finds them through the session's search_path (see
//! [`connect`]), for they may live in any schema; our own objects are always `tailrace.*`.
//!
//! # How SQL is written here
//! Other roles may create functions and operators in the catalog's schema, and extensions bring
//! theirs there. Of all schemas on the path Postgres takes the one whose argument types are exactly
//! those of a call, before one of `pg_catalog` that takes any type or has to convert. So:
//!
//! - Every function is called with its schema (`pg_catalog.`, `tailrace.`). `extract`, `coalesce`,
//!   `least`, `greatest` and an `unnest` of several arrays are syntax and mean `pg_catalog`'s.
//! - An operator stands only between types for which `pg_catalog` has exactly that one. A bare
//!   literal counts as of the other operand's type, so it is cast where that is not meant
//!   (`jsonb ->> 'x'::text`, `name like 'x'::text`). Arrays are neither compared nor joined, and
//!   nothing but text is joined to text. IN, BETWEEN, NULLIF, IS DISTINCT FROM, LIKE and USING are
//!   operators too.
//! - No row is passed to anything, and `alias.column` is written only for columns that every server
//!   has: for a missing one it means a call of a function of that name with the row.
//! - A statement that is prepared ahead answers no plain columns, hence the `coalesce` of one: of
//!   plain ones the driver would ask the names, in SQL of its own that keeps to none of this.
//!
//! A column that older servers lack is read by its bare name within a sub-select of its table alone,
//! beside a relation `absent` that has a null of that name: where the table has no such column, the
//! name means the one outside.

pub mod busy;
pub mod changefeed;
pub mod checks;
pub mod clock;
pub mod clock_memory;
pub mod commit_guards;
pub mod commit_lock;
pub mod commit_tail;
pub mod compaction_claims;
pub mod compaction_sample;
pub mod connect;
pub mod drop_history;
pub mod drop_lifecycle;
pub mod drop_write;
pub mod endings;
pub mod errors;
pub mod evidence;
pub mod finder;
pub mod gone_tables;
pub mod inventory;
pub mod keepalive;
pub mod late;
pub mod live_file;
pub mod marks;
pub mod pooler;
pub mod prewarm;
pub mod purge;
pub mod receipts;
pub mod removal_queue;
pub mod restore;
pub mod server;
pub mod session;
pub mod specs;
pub mod table_files;
pub mod tables;
pub mod tombstones;
pub mod triage;
pub mod trust;
pub mod tuples;
pub mod values;
pub mod vectors;
pub mod wakes;
pub mod window_rules;
