//! Tests of how the server executes the statements that it receives: by which index, and how many
//! rows each reads. No time is measured.
//!
//! The statements are those that the program really sends, with their real parameters. The sessions
//! of the tested code load `auto_explain`, which comes with every Postgres. The server sends the
//! plan of each statement, with the number of rows of each node, as a notice to the session of the
//! statement ([`watch`]). So no SQL is copied here, statements of other tests are not among them,
//! and no log has to be read. The tables ([`crowd`]) are such that a wrong index shows. Each test
//! runs before and after an analysis of the tables, with plans for the given parameters and with
//! plans for all parameters.
//!
//! The statements of the feed are tested by what they read in `feed::large`.

mod asked;
mod calendar;
mod crowd;
mod neighbours;
mod passes;
mod pins;
mod queue;
mod renewal;
mod triage;
mod watch;

use crowd::Statistics;
use watch::Planned;

/// Before and after an analysis, with plans for the parameters at hand and for all parameters.
const ALL: [(Statistics, Planned); 4] = [
    (Statistics::None, Planned::EachTime),
    (Statistics::None, Planned::Once),
    (Statistics::Gathered, Planned::EachTime),
    (Statistics::Gathered, Planned::Once),
];

/// The live files of a table by snapshot.
const LIVE: &str = "hog_data_file_live";
/// All files of a table by snapshot.
const FEED: &str = "hog_data_file_changefeed";
/// Where nothing or little began since a snapshot, one is as good as the other.
const LIVE_OR_FEED: &str = "hog_data_file_live|hog_data_file_changefeed";
/// All files of a table by row id.
const MAINTENANCE_SCAN: &str = "hog_data_file_maintenance_scan";
/// Files by id.
const FILE_KEY: &str = "hog_data_file_pkey";
/// The column statistics of a file.
const STATS_KEY: &str = "hog_file_column_stats_pkey";
/// The values of a file.
const VALUE_KEY: &str = "hog_file_partition_value_pkey";
/// Files by a value.
const LOOKUP: &str = "hog_file_partition_value_lookup";
/// The vectors of a file.
const DATA_LOOKUP: &str = "hog_delete_file_data_lookup";
/// Snapshots by id.
const SNAPSHOT_KEY: &str = "hog_snapshot_pkey";
/// What snapshots changed, by table and kind, or, where they are few, by snapshot.
const CHANGES: &str = "hog_snapshot_change_conflict|hog_snapshot_change_by_snapshot";
