//! Pins, by exact values, what other programs and later versions of tailrace depend on. Most of it
//! is in files in `golden/`, which `TAILRACE_BLESS=1` writes again: a change in them is a change of
//! an interface. Prose in messages, help and text output is not pinned.
//!
//! | what | where |
//! |---|---|
//! | routes, statuses, fields and codes of answers; the OpenAPI document without its prose | [`http`] |
//! | bytes of every problem; that document, routes and types agree | `src/http/tests.rs`, `src/http/tests/document.rs` |
//! | commands with their exit codes, fields and codes of their JSON | [`commands`] |
//! | further exit codes; values of `plan` and `sweep` | `cli/exit_codes.rs`, `cli/json.rs` |
//! | events, their levels and their fields, at every place that logs one | `src/events/tests.rs` |
//! | types of the fields of log lines, in real runs | [`commands`], [`http`] |
//! | the form of a log line | `src/telemetry.rs` |
//! | metrics: names, units, types, labels, buckets; values of `result` | [`http`]; `src/metrics.rs` |
//! | keys and variables of the configuration | [`settings`] |
//! | defaults and ranges | `config/default.toml`, by `src/config/tests.rs` |
//! | tables, columns, constraints, indexes, functions, grants in the schema `tailrace` | [`objects`] |
//! | that nothing outside of that schema is created; which rights a role needs | `installation/objects.rs`, `installation/roles.rs` |
//! | the rows in these tables, and that this version continues with them | [`rows`] |
//! | the parts of an explicit drop that are hashed into its receipt | [`fingerprint`] |
//! | the digest of what a calendar was judged by | `src/sweep/memory/book/tests.rs` |

mod commands;
mod fingerprint;
mod golden;
mod http;
mod lake;
mod objects;
mod rows;
mod settings;
mod shape;
mod told;
