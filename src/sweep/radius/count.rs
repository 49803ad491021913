//! Counts what has expired, and asks whether that is too much. Each statement is one page.

use std::collections::{BTreeSet, HashMap};

use crate::catalog::checks::there::{WasThere, was_there};
use crate::catalog::checks::{begins, catalog_state};
use crate::catalog::finder::Finder;
use crate::catalog::live_file::LiveFile;
use crate::catalog::session::Session;
use crate::catalog::table_files::count_live;
use crate::catalog::tables::TableIdentity;
use crate::rules::blast_radius::{Excess, RadiusLimits, RuleChange};
use crate::rules::expiry::{Judge, Retention, Verdict};
use crate::rules::hold::HeldPartition;
use crate::rules::instant::UtcInstant;

/// So many files are asked for their beginning at once.
const PIECE: usize = 5_000;

/// Files, and the partitions that they are of.
#[derive(Debug, Default)]
pub struct Counted {
    pub files: i64,
    pub partitions: BTreeSet<HeldPartition>,
}

impl Counted {
    fn add(&mut self, file: LiveFile) {
        self.files += 1;
        if let Some(spec_id) = file.spec_id {
            self.partitions.insert(HeldPartition { spec_id, values: file.tuple.values });
        }
    }
}

fn range_end(judge: &Judge, file: &LiveFile) -> Option<UtcInstant> {
    match judge.judge(file.spec_id, &file.tuple) {
        Verdict::Expired { range_end, .. } => Some(range_end),
        Verdict::Kept { .. } => None,
    }
}

/// The live files that have expired by their values, whatever else keeps them.
pub async fn count_expired(connection: &mut Session, finder: Finder<'_>) -> sqlx::Result<Counted> {
    let (mut pages, mut counted) = (finder.expired(None), Counted::default());
    while let Some(files) = pages.next(connection).await? {
        let expired = files.into_iter().filter(|file| range_end(finder.judge, file).is_some());
        expired.for_each(|file| counted.add(file));
    }
    Ok(counted)
}

/// The live files that have expired and came late.
pub async fn count_late(
    connection: &mut Session,
    finder: Finder<'_>,
    change: &RuleChange,
) -> sqlx::Result<Counted> {
    let (mut pages, mut counted) = (finder.expired(None), Counted::default());
    while let Some(files) = pages.next(connection).await? {
        let may_be = files.iter().filter(|file| change.may_be_late(file.data_file_id));
        let ends =
            may_be.filter_map(|file| Some((file.data_file_id, range_end(finder.judge, file)?)));
        let ends: HashMap<i64, UtcInstant> = ends.collect();
        let late = late_of(connection, finder.table, &ends, finder.judge.retention()).await?;
        let late = files.into_iter().filter(|file| late.contains(&file.data_file_id));
        late.for_each(|file| counted.add(file));
    }
    Ok(counted)
}

/// Those of the files, given with the ends of their values' ranges, that had expired when they came, or may have:
/// of one whose snapshot was deleted it is only known that it is older than the floor.
pub async fn late_of(
    connection: &mut Session,
    table: &TableIdentity,
    ends: &HashMap<i64, UtcInstant>,
    retention: Retention,
) -> sqlx::Result<BTreeSet<i64>> {
    let ids: Vec<i64> = ends.keys().copied().collect();
    let mut late = BTreeSet::new();
    if ids.is_empty() {
        return Ok(late);
    }
    let Some(state) = catalog_state(connection, table.catalog_id).await? else {
        return Ok(ids.into_iter().collect());
    };
    for piece in ids.chunks(PIECE) {
        for begin in begins(connection, table.catalog_id, piece).await? {
            let Some(range_end) = ends.get(&begin.data_file_id) else { continue };
            if was_there(&begin, range_end.plus(retention.keep), &state) != WasThere::Yes {
                late.insert(begin.data_file_id);
            }
        }
    }
    Ok(late)
}

/// Why so many files may not go, of the live ones without those that are not counted; `None` if they may.
pub async fn excess(
    connection: &mut Session,
    table: &TableIdentity,
    files: i64,
    not_counted: i64,
    limits: RadiusLimits,
    now: UtcInstant,
) -> sqlx::Result<Option<Excess>> {
    if limits.allow(files, 0) {
        return Ok(None);
    }
    let enough = limits.enough_live(files).saturating_add(not_counted);
    let live = count_live(connection, table.catalog_id, table.table_id, enough).await?;
    let live_files = live.saturating_sub(not_counted);
    let is_allowed = limits.allow(files, live_files);
    Ok((!is_allowed).then_some(Excess { files, live_files, at: now }))
}
