//! The requests and the answers of the explicit drop.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

/// A table by its names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TableRef {
    /// The catalog's name.
    pub catalog: String,
    /// The namespace's name.
    pub namespace: String,
    /// The table's name.
    pub table: String,
}

/// One partition of a drop.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PartitionItem {
    /// The partition values by key index, every key of the spec; null is the null partition.
    pub partition_values: Vec<Option<String>>,
    /// The spec of the files; the live one if not given.
    #[serde(default)]
    pub spec_id: Option<i64>,
    /// These very texts are meant, even though no writer should have stored them: this is how
    /// malformed partitions are got rid of.
    #[serde(default)]
    pub literal: bool,
}

/// The body of a drop.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DropBody {
    /// What to drop: 1 to 10,000 tuples, each once.
    #[serde(deserialize_with = "crate::rules::object::each")]
    pub partitions: Vec<PartitionItem>,
    /// Names this request: a retry with the same key gets the first answer again.
    pub idempotency_key: Uuid,
    /// The UUID of the table that is meant.
    #[serde(default)]
    pub expected_table_uuid: Option<Uuid>,
    /// What the caller has seen of the table: anything that came to the tuples since is a
    /// conflict.
    #[serde(default)]
    pub read_snapshot: Option<i64>,
    /// The snapshot's author, at most 1,024 bytes of UTF-8.
    #[serde(default)]
    pub author: Option<String>,
    /// The snapshot's message, at most 8,192 bytes of UTF-8.
    #[serde(default)]
    pub message: Option<String>,
    /// Only count; nothing is written and no key is used up.
    #[serde(default)]
    pub dry_run: bool,
    /// Tell consumers of the server's own feed to reconcile, as the server's truncate does, at the
    /// price that every append prepared before conflicts once.
    #[serde(default)]
    pub fence: bool,
}

/// The body of a truncate; all of it is optional.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TruncateBody {
    /// Names this request, if it shall be safe to retry.
    #[serde(default)]
    pub idempotency_key: Option<Uuid>,
    /// As for a drop, for all files of the table.
    #[serde(default)]
    pub read_snapshot: Option<i64>,
    /// The snapshot's author, at most 1,024 bytes of UTF-8.
    #[serde(default)]
    pub author: Option<String>,
    /// The snapshot's message, at most 8,192 bytes of UTF-8.
    #[serde(default)]
    pub message: Option<String>,
}

/// What one partition of a drop gave.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PartitionAnswer {
    /// The spec of its files.
    pub spec_id: i64,
    /// The partition values by key index.
    pub partition_values: Vec<Option<String>>,
    /// Data files ended (in a dry run: that would be).
    pub files_ended: i64,
    /// Deletion vectors ended.
    pub delete_files_ended: i64,
    /// Rows of the files, as written.
    pub records: i64,
    /// Bytes of the files.
    pub bytes: i64,
}

/// The answer of a drop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DropAnswer {
    /// The snapshot that the drop made; where nothing matched, the head at which that was
    /// established.
    pub snapshot_id: i64,
    /// The catalog's schema version at that snapshot.
    pub schema_version: i64,
    /// Whether a snapshot was made.
    pub committed: bool,
    /// Whether this is the answer of an earlier request with the same key.
    pub replayed: bool,
    /// The catalog was restored to a time before the earlier request's drop: it is no more, and its
    /// data may be live again. `committed` is false then, and the rest says what it was. The key stays
    /// used: to drop again, send the request with a fresh one. Left out where it is false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub undone: bool,
    /// Data files ended.
    pub files_ended: i64,
    /// Deletion vectors ended.
    pub delete_files_ended: i64,
    /// Rows of the files, as written.
    pub records: i64,
    /// Bytes of the files.
    pub bytes: i64,
    /// Every requested tuple, in the request's order.
    pub partitions: Vec<PartitionAnswer>,
}

/// The answer of a truncate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TruncateAnswer {
    /// The snapshot that the truncate made; the head, where the table was empty.
    pub snapshot_id: i64,
    /// The catalog's schema version at that snapshot.
    pub schema_version: i64,
    /// This is the answer of an earlier request with the same key, and the catalog was restored to a
    /// time before its truncate: the data may be live again. To truncate again, send the request with a
    /// fresh key. Left out where it is false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub undone: bool,
}
