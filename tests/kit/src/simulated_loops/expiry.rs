//! Simulates the server's expiry: it raises the floor, deletes the rows that no snapshot above the
//! floor can see, and queues the paths of their objects for cleanup. It deletes no object.

use chrono::{DateTime, Utc};

use crate::lake::{Catalog, Commit, Result};

/// How many rows a page of the purge takes.
pub const PAGE: i64 = 1000;

/// An expiry loop, in the two parts that it has: [`advance_floor`](Self::advance_floor) is a
/// short commit, [`purge`](Self::purge) comes when it comes, and between the two the ended
/// rows are still there, below the floor.
#[derive(Clone, Debug)]
pub struct Expiry {
    catalog: Catalog,
    /// How far the floor moves at most in one go.
    pub batch: i64,
}

/// A step of the floor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FloorMove {
    /// Where it was.
    pub from: i64,
    /// Where it is; the same if nothing happened.
    pub to: i64,
}

/// What a purge deleted. Each row's path is in the queue of cleanup.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Purged {
    /// Rows of data files.
    pub files: u64,
    /// Rows of vectors.
    pub vectors: u64,
}

impl Expiry {
    /// A loop that moves the floor by up to 10,000 snapshots at a time.
    pub fn new(catalog: &Catalog) -> Self {
        Self { catalog: catalog.clone(), batch: 10_000 }
    }

    /// Both parts, as of the database's time.
    pub async fn run(&self) -> Result<(FloorMove, Purged)> {
        Ok((self.advance_floor(None).await?, self.purge().await?))
    }

    /// Moves the floor up to the least of: the oldest snapshot younger than the retention,
    /// the head, the offset of the slowest consumer where consumers are heeded, and the old
    /// floor plus the batch. Ended versions of tables, columns and specs at or below it go,
    /// and snapshots below it.
    ///
    /// Takes the commit lock. `now` is the database's clock unless it is given.
    pub async fn advance_floor(&self, now: Option<DateTime<Utc>>) -> Result<FloorMove> {
        let catalog_id = self.catalog.catalog_id;
        let mut commit = Commit::begin(&self.catalog).await?;
        let (_, from) = commit.head_and_floor().await?;
        // `least` passes over nulls: no young snapshot, or no consumer, is no bound. A
        // catalog without retention gives no row.
        let to: Option<i64> = sqlx::query_scalar(
            "SELECT least(
                      (SELECT min(s.snapshot_id) FROM hog_snapshot s
                        WHERE s.catalog_id = c.catalog_id
                          AND s.snapshot_time >= coalesce($2, clock_timestamp())
                                - make_interval(secs => c.snapshot_retention_seconds)),
                      c.last_snapshot_id,
                      (SELECT min(o.committed_snapshot) FROM hog_consumer_offset o
                         JOIN hog_table t USING (catalog_id, table_uuid)
                        WHERE o.catalog_id = c.catalog_id AND c.consumer_floor),
                      c.earliest_snapshot_id + $3)
               FROM hog_catalog c
              WHERE c.catalog_id = $1 AND c.snapshot_retention_seconds IS NOT NULL",
        )
        .bind(catalog_id)
        .bind(now)
        .bind(self.batch)
        .fetch_optional(&mut *commit.tx)
        .await?;
        let Some(to) = to.filter(|to| *to > from) else {
            return Ok(FloorMove { from, to: from });
        };
        for statement in [
            "DELETE FROM hog_snapshot WHERE catalog_id = $1 AND snapshot_id < $2",
            "DELETE FROM hog_table_version WHERE catalog_id = $1 AND end_snapshot <= $2",
            "DELETE FROM hog_column WHERE catalog_id = $1 AND end_snapshot <= $2",
            "DELETE FROM hog_partition_spec WHERE catalog_id = $1 AND end_snapshot <= $2",
            "UPDATE hog_catalog
                SET earliest_snapshot_id = $2,
                    earliest_snapshot_time = (SELECT snapshot_time FROM hog_snapshot
                                               WHERE catalog_id = $1 AND snapshot_id = $2)
              WHERE catalog_id = $1",
        ] {
            sqlx::query(statement).bind(catalog_id).bind(to).execute(&mut *commit.tx).await?;
        }
        commit.finish().await?;
        Ok(FloorMove { from, to })
    }

    /// Deletes the rows of vectors and files that ended at or below the floor, a page in a
    /// transaction, without the commit lock.
    pub async fn purge(&self) -> Result<Purged> {
        let mut all = Purged::default();
        loop {
            let page = self.purge_page().await?;
            all.files += page.files;
            all.vectors += page.vectors;
            if page == Purged::default() {
                return Ok(all);
            }
        }
    }

    /// One page: up to 1,000 ended vectors, or, when there are none, up to 1,000 ended files
    /// with the vectors that name them.
    pub async fn purge_page(&self) -> Result<Purged> {
        let catalog_id = self.catalog.catalog_id;
        let mut tx = self.catalog.pool().begin().await?;
        let floor: i64 = sqlx::query_scalar(
            "SELECT earliest_snapshot_id FROM hog_catalog WHERE catalog_id = $1",
        )
        .bind(catalog_id)
        .fetch_one(&mut *tx)
        .await?;
        let ended: Vec<i64> = sqlx::query_scalar(
            "SELECT delete_file_id FROM hog_delete_file
              WHERE catalog_id = $1 AND end_snapshot <= $2 LIMIT $3",
        )
        .bind(catalog_id)
        .bind(floor)
        .bind(PAGE)
        .fetch_all(&mut *tx)
        .await?;
        let mut purged = Purged::default();
        if ended.is_empty() {
            let going: Vec<i64> = sqlx::query_scalar(
                "SELECT data_file_id FROM hog_data_file
                  WHERE catalog_id = $1 AND end_snapshot <= $2 LIMIT $3",
            )
            .bind(catalog_id)
            .bind(floor)
            .bind(PAGE)
            .fetch_all(&mut *tx)
            .await?;
            // The vectors first: with the file's row they would cascade, unqueued.
            purged.vectors = queue(&mut tx, catalog_id, VECTORS_OF_FILES, &going).await?;
            purged.files = queue(&mut tx, catalog_id, FILES, &going).await?;
        } else {
            purged.vectors = queue(&mut tx, catalog_id, VECTORS, &ended).await?;
        }
        tx.commit().await?;
        Ok(purged)
    }
}

const VECTORS: &str = "
    WITH gone AS (DELETE FROM hog_delete_file
                   WHERE catalog_id = $1 AND delete_file_id = ANY ($2) RETURNING path)
    INSERT INTO hog_file_removal (catalog_id, path, file_kind, reason)
    SELECT $1, path, 'delete', 'snapshot_expiry' FROM gone";

const VECTORS_OF_FILES: &str = "
    WITH gone AS (DELETE FROM hog_delete_file
                   WHERE catalog_id = $1 AND data_file_id = ANY ($2) RETURNING path)
    INSERT INTO hog_file_removal (catalog_id, path, file_kind, reason)
    SELECT $1, path, 'delete', 'snapshot_expiry' FROM gone";

const FILES: &str = "
    WITH gone AS (DELETE FROM hog_data_file
                   WHERE catalog_id = $1 AND data_file_id = ANY ($2) RETURNING path)
    INSERT INTO hog_file_removal (catalog_id, path, file_kind, reason)
    SELECT $1, path, 'data', 'snapshot_expiry' FROM gone";

async fn queue(
    tx: &mut sqlx::PgTransaction<'_>,
    catalog_id: i64,
    statement: &'static str,
    ids: &[i64],
) -> Result<u64> {
    let queued = sqlx::query(statement).bind(catalog_id).bind(ids).execute(&mut **tx).await?;
    Ok(queued.rows_affected())
}
