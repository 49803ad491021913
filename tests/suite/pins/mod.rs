//! What programs and later versions of this one depend on, by exact values. Most are files in `golden/`, which
//! `TAILRACE_BLESS=1` writes anew: what changes in them is a change of an interface. Prose in messages, help and
//! text output is no part of them.
//!
//! | what | where |
//! |---|---|
//! | routes, statuses, fields and codes of answers; the OpenAPI document without its prose | [`http`] |
//! | bytes of every problem; that document, routes and types agree | `src/http/tests.rs`, `src/http/tests/document.rs` |
//! | commands with their exit codes, fields and codes of their JSON | [`commands`] |
//! | further exit codes; values of `plan` and `sweep` | `cli/exit_codes.rs`, `cli/json.rs` |
//! | events, their levels and their fields, of every place that tells one | `src/events/tests.rs` |
//! | types of the fields of log lines, in real runs | [`commands`], [`http`] |
//! | the form of a log line | `src/telemetry.rs` |
//! | metrics: names, units, types, labels, buckets; values of `result` | [`http`]; `src/metrics.rs` |
//! | keys and variables of the configuration | [`settings`] |
//! | defaults and ranges | `config/default.toml`, by `src/config/tests.rs` |
//! | tables, columns, constraints, indexes, functions, grants in the schema `tailrace` | [`objects`] |
//! | what is no part of it; which rights a role needs | `installation/objects.rs`, `installation/readme.rs` |
//! | what is stored in these tables, and that it is gone on with | [`rows`] |
//! | what of an explicit drop is hashed into its receipt | [`fingerprint`] |
//! | the digest that resets cursors | `src/sweep/cursor/rules/tests.rs` |

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
