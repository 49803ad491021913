//! What of a dropped partition is still live: no file that is older than the drop may be.
//!
//! Files that were added after the drop are left to the next pass. There is one exception: a tuple too large
//! for one commit is dropped in several commits, oldest files first, and only the last of these drops leaves
//! nothing. Such a drop has a policy and one tuple. The rest of the tuple may be live for one grace period
//! after the newest of these drops, and as long as the tuple waits, which another check reports.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::Scene;
use super::history::NewestFirst;
use super::probe::{Probe, Stop};
use super::report::Findings;
use super::report::Sample;
use super::waiting::{self, Noted};
use crate::catalog::checks::drops::{RecordedDrop, live_before};
use crate::catalog::checks::{Begin, begins};
use crate::catalog::finder::tuples::{Search, TuplePages};
use crate::catalog::specs::spec_book;
use crate::catalog::tuples::TupleOfSpec;
use crate::rules::expiry::{SpecBook, SpecField, StoredTuple, shortened};
use crate::rules::instant::UtcInstant;
use crate::sweep::waiting::Waiting;

/// The last drop of a tuple.
#[derive(Debug, Clone, Copy)]
struct LastDrop {
    snapshot_id: i64,
    /// Whether the drop may have been a piece of its tuple.
    may_be_piece: bool,
    /// Whether another piece may still come.
    may_go_on: bool,
    /// Whether its tuple may be one that waits and is not remembered by itself.
    may_wait: bool,
}

type Tuples = HashMap<TupleOfSpec, LastDrop>;

/// Looks for live files of every tuple that was dropped above the floor.
pub async fn check(
    probe: &mut Probe<'_>,
    scene: &Scene<'_>,
    findings: &mut Findings,
) -> Result<(), Stop> {
    let then = scene.now.minus(scene.settings.grace);
    let mut tables: BTreeMap<i64, Tuples> = BTreeMap::new();
    let mut emptied: BTreeMap<i64, i64> = BTreeMap::new();
    let mut drops = NewestFirst::new();
    while let Some(drops) = drops.next(probe, scene).await? {
        for drop in drops {
            note(drop, then, &mut tables, &mut emptied);
        }
    }
    for (table_id, snapshot_id) in emptied {
        let (turn, most) = (probe.turn().await?, super::report::SAMPLES as i64);
        let catalog_id = scene.catalog.catalog_id;
        let (files, ids) = live_before(turn, catalog_id, table_id, snapshot_id, most).await?;
        findings.count_more(files);
        for data_file_id in ids {
            findings.show(left(scene, table_id, data_file_id, None, snapshot_id));
        }
    }
    for (table_id, mut tuples) in tables {
        let noted = noted(probe, scene, table_id).await?;
        let wait: HashSet<_> = noted.tuples.iter().map(Waiting::key).collect();
        tuples.retain(|tuple, drop| !drop.may_be_piece || !wait.contains(tuple));
        tuples.values_mut().for_each(|drop| drop.may_wait = drop.may_be_piece && noted.more > 0);
        of_table(probe, scene, table_id, &tuples, findings).await?;
    }
    Ok(())
}

/// What passes have noted of late of a table.
async fn noted(probe: &mut Probe<'_>, scene: &Scene<'_>, table_id: i64) -> Result<Noted, Stop> {
    let mut governed = scene.governed()?;
    match governed.find(|table| table.live.identity.table_id == table_id) {
        Some(table) => waiting::noted(probe, scene, table).await,
        None => Ok(Noted::default()),
    }
}

/// Notes the tuples of a drop; drops come newest first, and the newest counts.
fn note(
    drop: RecordedDrop,
    then: UtcInstant,
    tables: &mut BTreeMap<i64, Tuples>,
    emptied: &mut BTreeMap<i64, i64>,
) {
    let RecordedDrop { snapshot_id, table_id, policy_revision, dropped_at, tuples, .. } = drop;
    let Some(tuples) = tuples else {
        emptied.entry(table_id).or_insert(snapshot_id);
        return;
    };
    let is_recent = UtcInstant::from(dropped_at) > then;
    let may_be_piece = policy_revision.is_some() && tuples.len() == 1;
    let may_go_on = may_be_piece && is_recent;
    let of_table = tables.entry(table_id).or_default();
    for tuple in tuples {
        of_table.entry(tuple).or_insert(LastDrop {
            snapshot_id,
            may_be_piece,
            may_go_on,
            may_wait: false,
        });
    }
}

fn is_left(begin: &Begin, drop: &LastDrop) -> bool {
    begin.begin_snapshot < drop.snapshot_id && !drop.may_go_on
}

async fn of_table(
    probe: &mut Probe<'_>,
    scene: &Scene<'_>,
    table_id: i64,
    tuples: &Tuples,
    findings: &mut Findings,
) -> Result<(), Stop> {
    let catalog_id = scene.catalog.catalog_id;
    let book = spec_book(probe.turn().await?, catalog_id, table_id).await?;
    let (wanted, drops): (Vec<TupleOfSpec>, Vec<LastDrop>) =
        tuples.iter().map(|(tuple, drop)| (tuple.clone(), *drop)).unzip();
    let lookup_keys: Vec<usize> = wanted.iter().map(|tuple| lookup_key(tuple, &book)).collect();
    let mut pages = TuplePages::new(Search {
        catalog_id,
        table_id,
        tuples: &wanted,
        lookup_keys: &lookup_keys,
        from_id: 0,
    });
    while let Some(files) = pages.next(probe.turn().await?).await? {
        let at = |number: i32| {
            let at = usize::try_from(number).ok()?;
            Some((wanted.get(at)?, drops.get(at)?))
        };
        let dropped =
            files.iter().filter_map(|(number, file)| Some((file.data_file_id, at(*number)?)));
        check_files(probe, scene, table_id, dropped.collect(), findings).await?;
    }
    Ok(())
}

/// The position of the value by which a tuple's files are looked up: that of its first field of time, for other
/// texts are those of every day; else its last one that is no null, where it has one.
fn lookup_key(tuple: &TupleOfSpec, book: &SpecBook) -> usize {
    const OF_TIME: [&str; 4] = ["year", "month", "day", "hour"];
    let fields = book.specs.get(&tuple.spec_id);
    let is_time = |key: i32| {
        let of_key = |field: &&SpecField| field.key_index == key;
        let field = fields.and_then(|fields| fields.iter().find(of_key));
        field.is_some_and(|field| OF_TIME.contains(&field.transform.as_str()))
    };
    let TupleOfSpec { tuple: StoredTuple { keys, values }, .. } = tuple;
    let is_text = |at: &usize| values.get(*at).is_some_and(Option::is_some);
    let of_time = keys.iter().enumerate().filter(|(_, key)| is_time(**key)).map(|(at, _)| at);
    let of_time = { of_time }.find(is_text);
    of_time.or_else(|| (0..values.len()).rfind(is_text)).unwrap_or_default()
}

async fn check_files(
    probe: &mut Probe<'_>,
    scene: &Scene<'_>,
    table_id: i64,
    dropped: HashMap<i64, (&TupleOfSpec, &LastDrop)>,
    findings: &mut Findings,
) -> Result<(), Stop> {
    if dropped.is_empty() {
        return Ok(());
    }
    let mut ids: Vec<i64> = dropped.keys().copied().collect();
    ids.sort_unstable();
    for begin in begins(probe.turn().await?, scene.catalog.catalog_id, &ids).await? {
        let Some((tuple, drop)) = dropped.get(&begin.data_file_id) else { continue };
        if !is_left(&begin, drop) {
            continue;
        }
        if drop.may_wait {
            let gap = format!(
                "of {} it is not known whether what is left of dropped partitions waits: more wait than \
                 are remembered one by one",
                scene.name(table_id)
            );
            if !findings.gaps.contains(&gap) {
                findings.gaps.push(gap);
            }
        } else {
            let file = begin.data_file_id;
            findings.add(left(scene, table_id, file, Some(tuple), drop.snapshot_id));
        }
    }
    Ok(())
}

fn left(
    scene: &Scene<'_>,
    table_id: i64,
    data_file_id: i64,
    tuple: Option<&TupleOfSpec>,
    snapshot_id: i64,
) -> Sample {
    let values = tuple.map(|tuple| serde_json::to_string(&tuple.tuple.values).unwrap_or_default());
    Sample {
        table: Some(scene.name(table_id)),
        partition: values.map(|values| shortened(&values)),
        data_file_id: Some(data_file_id),
        snapshot_id: Some(snapshot_id),
        problem: "it is live, and older than the drop of its partition".to_owned(),
        ..Sample::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::live_file::Counts;

    fn tuple(text: &str) -> TupleOfSpec {
        let tuple = StoredTuple { keys: vec![0], values: vec![Some(text.to_owned())] };
        TupleOfSpec { spec_id: 1, tuple }
    }

    /// A drop of these tuples on the tenth day.
    fn drop_of(snapshot_id: i64, policy: bool, texts: &[&str]) -> RecordedDrop {
        RecordedDrop {
            drop_id: uuid::Uuid::nil(),
            snapshot_id,
            table_id: 7,
            policy_revision: policy.then_some(1),
            dropped_at: UtcInstant::from_days(10).to_chrono().expect("a time"),
            counts: Counts::default(),
            tuples: Some(texts.iter().map(|text| tuple(text)).collect()),
        }
    }

    /// Whether a live file of tuple "a" is left over, by the snapshot that it began in.
    fn is_found(drops: Vec<RecordedDrop>, then: i128, begin_snapshot: i64) -> bool {
        let (mut tables, mut emptied) = (BTreeMap::new(), BTreeMap::new());
        for drop in drops {
            note(drop, UtcInstant::from_days(then), &mut tables, &mut emptied);
        }
        let begin = Begin { data_file_id: 1, begin_snapshot, at: None };
        is_left(&begin, &tables[&7][&tuple("a")])
    }

    #[test]
    fn only_what_is_older_than_the_last_drop_is_left_over() {
        let whole = || vec![drop_of(9, true, &["a", "b"]), drop_of(5, true, &["a", "c"])];
        assert!(is_found(whole(), 0, 8));
        assert!(!is_found(whole(), 0, 9), "in the drop's own snapshot nothing begins");
        assert!(!is_found(whole(), 0, 10));
    }

    #[test]
    fn the_rest_of_a_drop_in_pieces_has_a_grace() {
        let piece = |policy| vec![drop_of(9, policy, &["a"]), drop_of(5, policy, &["a"])];
        assert!(!is_found(piece(true), 9, 4), "the next piece may come");
        assert!(is_found(piece(true), 10, 4), "none has come");
        assert!(is_found(piece(false), 9, 4), "an explicit drop has no pieces");
    }

    #[test]
    fn a_tuple_is_found_by_its_time_or_else_by_its_last_text() {
        let tuple = |values: [Option<&str>; 2]| TupleOfSpec {
            spec_id: 1,
            tuple: StoredTuple {
                keys: vec![0, 1],
                values: values.map(|value| value.map(str::to_owned)).into(),
            },
        };
        let book = |transforms: [&str; 2]| {
            let field = |(key_index, transform): (i32, &str)| SpecField {
                key_index,
                source_field_id: 1,
                transform: transform.to_owned(),
                transform_param: None,
            };
            SpecBook::of_definitions([(1, (0..).zip(transforms).map(field).collect())])
        };
        let (day, plain) = (book(["day", "identity"]), book(["identity", "identity"]));
        for (values, book, expected) in [
            ([Some("a"), Some("b")], &day, 0),
            ([None, Some("b")], &day, 1),
            ([Some("a"), Some("b")], &plain, 1),
            ([Some("a"), None], &plain, 0),
            ([None, None], &day, 0),
        ] {
            assert_eq!(lookup_key(&tuple(values), book), expected, "{values:?}");
        }
    }
}
