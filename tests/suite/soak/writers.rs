//! Writes to the table.

use std::sync::Arc;

use anyhow::Result;
use fastrand::Rng;
use tailrace_kit::lake::{FileRow, LakeError, NewFile};

use crate::support::program::days_ago;

use super::{Left, Soak};

/// How old the days are that are written to: some are young; at a keep of 7 days 7 is in the drop
/// window and 8 expired, at 9 days 9 is in the window; the others have always expired.
const AGES: [i64; 11] = [0, 0, 1, 2, 4, 7, 8, 9, 12, 13, 14];
/// The second field of the partitions: many of them, for compaction leaves a partition alone for
/// a minute once it has rewritten it.
const KINDS: [&str; 8] = ["ask", "bid", "buy", "call", "click", "like", "sale", "view"];

/// The values of a partition that is written to.
pub fn partition(random: &mut Rng) -> [String; 2] {
    let (age, kind) = (AGES[random.usize(0..AGES.len())], KINDS[random.usize(0..KINDS.len())]);
    [days_ago(age), kind.to_owned()]
}

fn file(random: &mut Rng) -> NewFile {
    let file = NewFile::of(partition(random)).records(random.i64(1..8)).bytes(random.i64(1..150));
    if random.u8(0..4) == 0 { file.pending() } else { file }
}

/// One file that is kept and one that is not.
pub async fn first_files(soak: &Soak) -> Result<()> {
    let file = |age| NewFile::of([days_ago(age), "view".to_owned()]).records(5).bytes(50);
    soak.scene.table.append(vec![file(0), file(12)]).await?;
    Ok(())
}

/// What a commit came to. The objects of one that is refused were written before, and are named by
/// no row: nobody but a sweep of the bucket finds them.
fn counted(
    soak: &Soak,
    done: Result<(), LakeError>,
    what: &'static str,
    objects: u64,
) -> Result<()> {
    match done {
        Ok(()) => soak.count(what, 1),
        Err(
            LakeError::Conflict(_)
            | LakeError::Validation(_)
            | LakeError::Expired { .. }
            | LakeError::CommitQueueTimeout,
        ) => {
            soak.count("commits refused", 1);
            soak.count("objects without a row", objects);
        }
        Err(other) => return Err(other.into()),
    }
    Ok(())
}

/// Appends files of young and old days, in part pending ones.
pub async fn append(soak: Arc<Soak>, mut random: Rng) -> Result<Left> {
    let table = &soak.scene.table;
    while soak.goes_on(&mut random, 250).await {
        let files: Vec<_> = (0..random.usize(1..5)).map(|_| file(&mut random)).collect();
        let objects = files.len() as u64;
        let appended = if random.bool() {
            table.append(files).await
        } else {
            let read = soak.scene.catalog.head().await?;
            soak.goes_on(&mut random, 50).await;
            table.append_at(read, files).await
        };
        counted(&soak, appended.map(drop), "appends", objects)?;
    }
    Ok(Left::Nothing)
}

/// Deletes rows, of files that may end meanwhile.
pub async fn delete_rows(soak: Arc<Soak>, mut random: Rng) -> Result<Left> {
    let table = &soak.scene.table;
    while soak.goes_on(&mut random, 200).await {
        let read = soak.scene.catalog.head().await?;
        let live = match table.files_at(read).await {
            Ok(live) => live,
            // The floor has passed what was the head a moment ago.
            Err(LakeError::Expired { .. }) => continue,
            Err(other) => return Err(other.into()),
        };
        let deleted = |file: &FileRow| file.vector.as_ref().map_or(0, |v| v.delete_count);
        let open: Vec<_> = live.iter().filter(|f| deleted(f) < f.record_count).collect();
        let Some(file) = random.choice(&open) else { continue };
        let count = random.i64(deleted(file) + 1..=file.record_count);
        soak.goes_on(&mut random, 100).await;
        let done = table.register_vector(file.data_file_id, count, Some(read)).await;
        counted(&soak, done.map(drop), "deletions of rows", 1)?;
    }
    Ok(Left::Nothing)
}
