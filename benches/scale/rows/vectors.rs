//! Measures the alternative to a drop on the same catalog: the rows of a day are deleted by one
//! deletion vector for each of its files.
//!
//! A query engine does this in three steps. It reads the files that the table has in the snapshot,
//! with their partition values, and selects the day's. It writes one object for each file. It
//! registers all vectors in one commit.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use tailrace_kit::lake::{Commit, Table};

/// The times of the three steps.
#[derive(Debug, Clone, Copy)]
pub struct Steps {
    /// Reading the table's files.
    pub list: Duration,
    /// Writing the objects, into a local folder.
    pub write: Duration,
    /// The commit, from the request for the commit lock to the end.
    pub register: Duration,
}

impl Steps {
    /// The sum of the steps.
    pub fn all(&self) -> Duration {
        self.list + self.write + self.register
    }
}

type Target = (i64, i64);

/// Deletes every row of the table's files with this partition value at key 0. There must be `files` of them.
pub async fn delete_rows(table: &Table, text: &str, files: i64, folder: &Path) -> Result<Steps> {
    let clock = Instant::now();
    let read_snapshot = table.catalog.head().await?;
    let targets = list(table, text, read_snapshot).await?;
    let list = clock.elapsed();
    ensure!(targets.len() as i64 == files, "{} files in place of {files}", targets.len());

    let clock = Instant::now();
    let paths = write_objects(table, &targets, folder).await?;
    let write = clock.elapsed();

    let clock = Instant::now();
    register(table, &targets, &paths, read_snapshot).await?;
    Ok(Steps { list, write, register: clock.elapsed() })
}

/// Reads the files of the snapshot; returns those of the day with their numbers of rows.
async fn list(table: &Table, text: &str, read_snapshot: i64) -> Result<Vec<Target>> {
    let all: Vec<(i64, i64, String, Option<String>)> = sqlx::query_as(
        "select f.data_file_id, f.record_count, f.path, v.value
         from hog_data_file f
         join hog_file_partition_value v using (catalog_id, data_file_id)
         where f.catalog_id = $1 and f.table_id = $2 and f.begin_snapshot <= $3
           and (f.end_snapshot is null or f.end_snapshot > $3) and v.key_index = 0",
    )
    .bind(table.catalog.catalog_id)
    .bind(table.table_id)
    .bind(read_snapshot)
    .fetch_all(table.catalog.pool())
    .await?;
    let of_the_day = all.into_iter().filter(|(_, _, _, value)| value.as_deref() == Some(text));
    Ok(of_the_day.map(|(file_id, records, ..)| (file_id, records)).collect())
}

/// Writes one small object for each file. A run of all positions takes a few bytes; the whole object has about
/// 256 bytes.
async fn write_objects(table: &Table, targets: &[Target], folder: &Path) -> Result<Vec<String>> {
    let folder = folder.join(table.table_uuid.to_string());
    let targets = targets.to_vec();
    tokio::task::spawn_blocking(move || {
        std::fs::create_dir_all(&folder)?;
        targets
            .iter()
            .map(|_| {
                let path = folder.join(format!("{}.puffin", uuid::Uuid::new_v4()));
                std::fs::write(&path, [0_u8; 256])?;
                Ok(path.to_string_lossy().into_owned())
            })
            .collect()
    })
    .await
    .context("writing")?
}

/// Commits as hoglake requires: each target file is live, belongs to the table, began at or before the snapshot
/// that was read, and has no newer vector. The old vector ends and the new one begins.
async fn register(
    table: &Table,
    targets: &[Target],
    paths: &[String],
    read_snapshot: i64,
) -> Result<()> {
    let catalog_id = table.catalog.catalog_id;
    let (ids, records): (Vec<i64>, Vec<i64>) = targets.iter().copied().unzip();
    let mut commit = Commit::begin(&table.catalog).await?;
    commit.check_readable(read_snapshot).await?;
    commit.check_no_ddl(table.table_id, read_snapshot).await?;
    commit.check_table_live(table.table_id).await?;
    let fit: i64 = sqlx::query_scalar(
        "select count(*) from unnest($3::bigint[], $4::bigint[]) as t (data_file_id, deleted)
         join hog_data_file f on f.catalog_id = $1 and f.data_file_id = t.data_file_id
         left join hog_delete_file d on d.catalog_id = f.catalog_id
          and d.data_file_id = f.data_file_id and d.end_snapshot is null
         where f.table_id = $2 and f.end_snapshot is null and f.begin_snapshot <= $5
           and t.deleted <= f.record_count and t.deleted >= coalesce(d.delete_count, 1)
           and coalesce(d.begin_snapshot, 0) <= $5",
    )
    .bind(catalog_id)
    .bind(table.table_id)
    .bind(&ids)
    .bind(&records)
    .bind(read_snapshot)
    .fetch_one(&mut *commit.tx)
    .await?;
    ensure!(fit == ids.len() as i64, "only {fit} of {} files can take a vector", ids.len());
    let first_id = commit.take_file_ids(ids.len()).await?;
    let snapshot_id = commit.snapshot("delete rows").await?;
    sqlx::query(
        "update hog_delete_file set end_snapshot = $3
         where catalog_id = $1 and data_file_id = any($2) and end_snapshot is null",
    )
    .bind(catalog_id)
    .bind(&ids)
    .bind(snapshot_id)
    .execute(&mut *commit.tx)
    .await?;
    sqlx::query(
        "insert into hog_delete_file (catalog_id, delete_file_id, table_id, data_file_id,
                                      begin_snapshot, path, delete_count, file_size_bytes)
         select $1, $2 + t.place - 1, $3, t.data_file_id, $4, t.path, t.deleted, 256
         from unnest($5::bigint[], $6::text[], $7::bigint[])
              with ordinality as t (data_file_id, path, deleted, place)",
    )
    .bind(catalog_id)
    .bind(first_id)
    .bind(table.table_id)
    .bind(snapshot_id)
    .bind(&ids)
    .bind(paths)
    .bind(&records)
    .execute(&mut *commit.tx)
    .await?;
    commit.change(snapshot_id, "table_deleted_from", table.table_id).await?;
    Ok(commit.finish().await?)
}
