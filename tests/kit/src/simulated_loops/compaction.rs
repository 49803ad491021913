//! Simulates the server's compaction: it merges many small files of one partition into one.

use std::path::PathBuf;

use sqlx::{AssertSqlSafe, FromRow};
use uuid::Uuid;

use crate::lake::{Catalog, Commit, Result, TAKE_LOCK, Table, kind, write_object};

/// The lock class of compaction planning. Planners of a catalog take turns with their
/// claims; no writer waits for it.
const PLANNING_LOCK_CLASS: i64 = 4_740_873;

/// Leaves a bucket out when any of its files is claimed.
const UNCLAIMED: &str = "
    AND NOT EXISTS (SELECT FROM hog_compaction_claim c
                     WHERE c.catalog_id = $1 AND c.table_id = $2 AND c.expires_at > now()
                       AND c.input_file_ids && array_agg(small.data_file_id))";

/// A compaction loop. A run is [`plan`](Self::plan), then [`commit`](Self::commit) for each
/// group; whatever happens between the two, the commit finds out.
#[derive(Clone, Debug)]
pub struct Compaction {
    catalog: Catalog,
    claimant: Uuid,
    /// Files below this size are merged.
    pub target_bytes: i64,
    /// Whether claims are heeded and made; a server can be run without, and one before V15 has none.
    pub claims: bool,
}

/// A planned merge, claimed if claims are on. Its object is written.
#[derive(Clone, Debug)]
pub struct Group {
    /// What the claim is stored under.
    pub group_key: String,
    /// The files to merge, by id.
    pub inputs: Vec<i64>,
    /// The live vector of each input, none if it had none.
    vectors: Vec<Option<i64>>,
    table: Table,
    path: String,
    bytes: i64,
    claimed: bool,
}

/// What became of a merge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Compacted {
    /// It was committed.
    Done {
        /// Its snapshot.
        snapshot_id: i64,
        /// The file that holds what is left of the inputs.
        output: i64,
    },
    /// An input is not as planned any more: another commit came first and stands.
    Lost,
}

/// A bucket of small files as the planner reads it.
#[derive(FromRow)]
struct Bucket {
    group_key: String,
    inputs: Vec<i64>,
    vectors: Vec<Option<i64>>,
    bytes: i64,
}

impl Compaction {
    /// A loop that merges files below `target_bytes`, and heeds claims.
    pub fn new(catalog: &Catalog, target_bytes: i64) -> Self {
        Self { catalog: catalog.clone(), claimant: Uuid::new_v4(), target_bytes, claims: true }
    }

    /// Plans the merges of a table without the commit lock, claims them for 15 minutes and
    /// writes their objects. A group is at least two live files of one spec and one tuple of
    /// values; it is left out whole when any of its files is claimed.
    pub async fn plan(&self, table: &Table) -> Result<Vec<Group>> {
        let mut tx = self.catalog.pool().begin_with("BEGIN ISOLATION LEVEL READ COMMITTED").await?;
        sqlx::query(TAKE_LOCK)
            .bind(PLANNING_LOCK_CLASS)
            .bind(self.catalog.catalog_id)
            .execute(&mut *tx)
            .await?;
        let claims: bool =
            sqlx::query_scalar("SELECT $1 AND to_regclass('hog_compaction_claim') IS NOT NULL")
                .bind(self.claims)
                .fetch_one(&mut *tx)
                .await?;
        let mut unclaimed = "";
        if claims {
            sqlx::query(
                "DELETE FROM hog_compaction_claim WHERE catalog_id = $1 AND expires_at <= now()",
            )
            .bind(self.catalog.catalog_id)
            .execute(&mut *tx)
            .await?;
            unclaimed = UNCLAIMED;
        }
        let statement = format!(
            "SELECT group_key, array_agg(data_file_id ORDER BY data_file_id) AS inputs,
                    array_agg(delete_file_id ORDER BY data_file_id) AS vectors,
                    sum(file_size_bytes)::bigint AS bytes
               FROM (SELECT f.data_file_id, f.file_size_bytes, d.delete_file_id,
                            concat(coalesce(f.spec_id::text, 'none'), ':',
                              (SELECT jsonb_object_agg(v.key_index, v.value)
                                 FROM hog_file_partition_value v
                                WHERE v.catalog_id = f.catalog_id
                                  AND v.data_file_id = f.data_file_id)) AS group_key
                       FROM hog_data_file f
                       LEFT JOIN hog_delete_file d ON d.catalog_id = f.catalog_id
                            AND d.data_file_id = f.data_file_id AND d.end_snapshot IS NULL
                      WHERE f.catalog_id = $1 AND f.table_id = $2 AND f.end_snapshot IS NULL
                        AND f.file_size_bytes < $3) small
              GROUP BY group_key
             HAVING count(*) > 1 {unclaimed}
              ORDER BY group_key"
        );
        let buckets: Vec<Bucket> = sqlx::query_as(AssertSqlSafe(statement))
            .bind(self.catalog.catalog_id)
            .bind(table.table_id)
            .bind(self.target_bytes)
            .fetch_all(&mut *tx)
            .await?;
        let mut groups = Vec::new();
        for bucket in buckets {
            if claims && !self.claim(&mut tx, table, &bucket).await? {
                continue;
            }
            groups.push(Group {
                group_key: bucket.group_key,
                inputs: bucket.inputs,
                vectors: bucket.vectors,
                table: table.clone(),
                path: table.new_path("parquet"),
                bytes: bucket.bytes,
                claimed: claims,
            });
        }
        tx.commit().await?;
        if self.catalog.objects().is_some() {
            for group in &groups {
                let (path, bytes) = (PathBuf::from(&group.path), group.bytes.unsigned_abs());
                let written = tokio::task::spawn_blocking(move || write_object(&path, bytes));
                written.await.map_err(std::io::Error::other)??;
            }
        }
        Ok(groups)
    }

    async fn claim(
        &self,
        tx: &mut sqlx::PgTransaction<'_>,
        table: &Table,
        bucket: &Bucket,
    ) -> Result<bool> {
        // The key of the bucket may be taken by a claim that names other files.
        let claimed = sqlx::query(
            "INSERT INTO hog_compaction_claim
                    (catalog_id, table_id, group_key, input_file_ids, claimant, expires_at)
             VALUES ($1, $2, $3, $4, $5, now() + interval '15 minutes')
             ON CONFLICT DO NOTHING",
        )
        .bind(self.catalog.catalog_id)
        .bind(table.table_id)
        .bind(&bucket.group_key)
        .bind(&bucket.inputs)
        .bind(self.claimant)
        .execute(&mut **tx)
        .await?;
        Ok(claimed.rows_affected() == 1)
    }

    /// Commits a merge if the table is live, and each input too, with exactly the vector that
    /// it was planned with. Takes the commit lock for some row updates per input.
    ///
    /// A merge that lost leaves its object in the queue of cleanup (`compaction_staging`).
    pub async fn commit(&self, group: Group) -> Result<Compacted> {
        let mut commit = Commit::begin(&self.catalog).await?;
        if !self.still_stands(&mut commit, &group).await? {
            drop(commit);
            self.abandon(&group).await?;
            return Ok(Compacted::Lost);
        }
        let output = commit.take_file_ids(1).await?;
        let snapshot_id = commit.snapshot("compaction").await?;
        let (row_id_start, survivors, spec_id): (i64, i64, Option<i64>) = sqlx::query_as(
            "SELECT min(f.row_id_start),
                    (sum(f.record_count) - coalesce(sum(d.delete_count), 0))::bigint,
                    min(f.spec_id)
               FROM hog_data_file f
               LEFT JOIN hog_delete_file d ON d.catalog_id = f.catalog_id
                    AND d.data_file_id = f.data_file_id AND d.end_snapshot IS NULL
              WHERE f.catalog_id = $1 AND f.data_file_id = ANY ($2)",
        )
        .bind(self.catalog.catalog_id)
        .bind(&group.inputs)
        .fetch_one(&mut *commit.tx)
        .await?;
        group.table.end_files(&mut commit, &group.inputs, snapshot_id).await?;
        sqlx::query(
            "INSERT INTO hog_data_file (catalog_id, data_file_id, table_id, begin_snapshot, path,
                    record_count, file_size_bytes, row_id_start, spec_id, explicit_row_ids)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, true)",
        )
        .bind(self.catalog.catalog_id)
        .bind(output)
        .bind(group.table.table_id)
        .bind(snapshot_id)
        .bind(&group.path)
        .bind(survivors)
        .bind(group.bytes)
        .bind(row_id_start)
        .bind(spec_id)
        .execute(&mut *commit.tx)
        .await?;
        sqlx::query(
            "INSERT INTO hog_file_partition_value (catalog_id, data_file_id, key_index, value)
             SELECT catalog_id, $3, key_index, value FROM hog_file_partition_value
              WHERE catalog_id = $1 AND data_file_id = $2",
        )
        .bind(self.catalog.catalog_id)
        .bind(group.inputs.first())
        .bind(output)
        .execute(&mut *commit.tx)
        .await?;
        self.merge_stats(&mut commit, &group.inputs, output).await?;
        commit.change(snapshot_id, kind::COMPACTED, group.table.table_id).await?;
        commit.finish().await?;
        self.end_claim(&group, "1 minute").await?;
        Ok(Compacted::Done { snapshot_id, output })
    }

    /// Gives the output the statistics of its inputs, for columns of which each input has some: the
    /// largest upper bound, as bounds of four and eight bytes count.
    async fn merge_stats(&self, commit: &mut Commit, inputs: &[i64], output: i64) -> Result<()> {
        let rows: Vec<(i64, i64, i64, Option<Vec<u8>>)> = sqlx::query_as(
            "SELECT field_id, value_count, null_count, upper_bound FROM hog_file_column_stats
              WHERE catalog_id = $1 AND data_file_id = ANY ($2) ORDER BY field_id",
        )
        .bind(self.catalog.catalog_id)
        .bind(inputs)
        .fetch_all(&mut *commit.tx)
        .await?;
        for of_field in rows.chunk_by(|a, b| a.0 == b.0) {
            if of_field.len() != inputs.len() {
                continue;
            }
            let count = |bytes: &Vec<u8>| match bytes.len() {
                4 => {
                    bytes.as_slice().try_into().ok().map(|four| i64::from(i32::from_le_bytes(four)))
                }
                _ => bytes.as_slice().try_into().ok().map(i64::from_le_bytes),
            };
            let uppers =
                of_field.iter().map(|row| row.3.as_ref().and_then(count).zip(row.3.clone()));
            let upper = uppers.collect::<Option<Vec<_>>>().and_then(|all| all.into_iter().max());
            sqlx::query(
                "INSERT INTO hog_file_column_stats (catalog_id, data_file_id, field_id,
                        value_count, null_count, upper_bound)
                 VALUES ($1, $2, $3, $4, $5, $6)",
            )
            .bind(self.catalog.catalog_id)
            .bind(output)
            .bind(of_field[0].0)
            .bind(of_field.iter().map(|row| row.1).sum::<i64>())
            .bind(of_field.iter().map(|row| row.2).sum::<i64>())
            .bind(upper.map(|(_, bytes)| bytes))
            .execute(&mut *commit.tx)
            .await?;
        }
        Ok(())
    }

    /// Plans and commits, and says how many merges were done.
    pub async fn run(&self, table: &Table) -> Result<usize> {
        let mut done = 0;
        for group in self.plan(table).await? {
            if matches!(self.commit(group).await?, Compacted::Done { .. }) {
                done += 1;
            }
        }
        Ok(done)
    }

    async fn still_stands(&self, commit: &mut Commit, group: &Group) -> Result<bool> {
        if commit.check_table_live(group.table.table_id).await.is_err() {
            return Ok(false);
        }
        let unchanged: i64 = sqlx::query_scalar(
            "SELECT count(*)
               FROM unnest($2::bigint[], $3::bigint[]) AS planned (data_file_id, delete_file_id)
               JOIN hog_data_file f ON f.catalog_id = $1
                    AND f.data_file_id = planned.data_file_id AND f.end_snapshot IS NULL
               LEFT JOIN hog_delete_file d ON d.catalog_id = f.catalog_id
                    AND d.data_file_id = f.data_file_id AND d.end_snapshot IS NULL
              WHERE d.delete_file_id IS NOT DISTINCT FROM planned.delete_file_id",
        )
        .bind(self.catalog.catalog_id)
        .bind(&group.inputs)
        .bind(&group.vectors)
        .fetch_one(&mut *commit.tx)
        .await?;
        Ok(usize::try_from(unchanged).ok() == Some(group.inputs.len()))
    }

    async fn abandon(&self, group: &Group) -> Result<()> {
        sqlx::query(
            "INSERT INTO hog_file_removal (catalog_id, path, file_kind, reason)
             VALUES ($1, $2, 'data', 'compaction_staging')",
        )
        .bind(self.catalog.catalog_id)
        .bind(&group.path)
        .execute(self.catalog.pool())
        .await?;
        self.end_claim(group, "0").await
    }

    /// Shortens our claim on a group. It may name dead files from here on.
    async fn end_claim(&self, group: &Group, after: &str) -> Result<()> {
        if !group.claimed {
            return Ok(());
        }
        sqlx::query(
            "UPDATE hog_compaction_claim
                SET expires_at = least(expires_at, clock_timestamp() + $5::text::interval)
              WHERE catalog_id = $1 AND table_id = $2 AND group_key = $3 AND claimant = $4",
        )
        .bind(self.catalog.catalog_id)
        .bind(group.table.table_id)
        .bind(&group.group_key)
        .bind(self.claimant)
        .bind(after)
        .execute(self.catalog.pool())
        .await?;
        Ok(())
    }
}
