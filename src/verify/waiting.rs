//! Partitions that have expired and wait, as passes have noted them. That is no violation: each is reported
//! with its reason, and a pass looks at it again. A note that passes have not kept up to date is ignored, so
//! that it hides no overdue file.

use super::Scene;
use super::probe::{Probe, Stop};
use super::report::Findings;
use super::report::Sample;
use crate::catalog::finder::tuples::{Search, count_files};
use crate::catalog::tuples::TupleOfSpec;
use crate::policy::governed::Governed;
use crate::rules::expiry::KeptReason;
use crate::rules::instant::UtcInstant;
use crate::sweep::waiting::{WaitReason, Waiting, store};

/// So many tuples are looked up at once.
const PIECE: usize = 100;

/// What passes have noted of late of a table, and has expired by the policy in force.
#[derive(Debug, Default)]
pub struct Noted {
    /// Those that are remembered one by one.
    pub tuples: Vec<Waiting>,
    /// How many more there were.
    pub more: usize,
    /// How many of these the evidence does not keep.
    pub more_hindered: usize,
    /// The ranges of those more ended at this time or later, where that is known.
    pub more_from: Option<UtcInstant>,
}

/// Reads it.
pub async fn noted(
    probe: &mut Probe<'_>,
    scene: &Scene<'_>,
    table: &Governed,
) -> Result<Noted, Stop> {
    let Some(policy) = table.enforced() else { return Ok(Noted::default()) };
    let mut noted = store::load(probe.turn().await?, &table.live.identity).await?;
    let (now, grace, keep) = (scene.now, scene.settings.grace, policy.keep.length());
    let pauses = scene.settings.sweep.pauses();
    let counts = |waiting: &Waiting| {
        waiting.is_current(now, grace, &pauses) && waiting.has_expired(keep, now)
    };
    noted.forget_old_more(keep, now, grace);
    // They ended no earlier than the last one, as long as the list has no room for one of them.
    let last = noted.tuples.last().filter(|last| noted.is_full() && counts(last));
    let more_from = last.map(|last| last.range_end);
    noted.tuples.retain(counts);
    let (more, more_hindered) = (noted.more_of(|_| true), noted.more_of(is_hindered));
    Ok(Noted { tuples: noted.tuples, more, more_hindered, more_from })
}

/// Whether passes would end the tuple if they could, or need time to see that they may: one that was among the newest
/// of its table is not any more once a newer one comes. What the evidence keeps is checked anew instead.
pub fn is_hindered(reason: WaitReason) -> bool {
    !matches!(reason, WaitReason::Evidence(kept) if kept != KeptReason::AmongNewest)
}

/// Tells those that still have live files.
pub async fn check(
    probe: &mut Probe<'_>,
    scene: &Scene<'_>,
    findings: &mut Findings,
) -> Result<(), Stop> {
    for table in scene.governed()? {
        let Noted { tuples: noted, more, .. } = noted(probe, scene, table).await?;
        let name = scene.name(table.live.identity.table_id);
        for waiting in noted.chunks(PIECE) {
            for (at, files) in live(probe, table, waiting).await? {
                let Some(waiting) = waiting.get(at) else { continue };
                findings.add(sample(&name, waiting, files));
            }
        }
        if more > 0 {
            findings.notes.push(format!("{name} has {more} more that are not remembered singly"));
        }
    }
    Ok(())
}

/// Those of the tuples that have live files, with how many.
async fn live(
    probe: &mut Probe<'_>,
    table: &Governed,
    waiting: &[Waiting],
) -> Result<Vec<(usize, i64)>, Stop> {
    let identity = &table.live.identity;
    let tuples: Vec<TupleOfSpec> = waiting.iter().map(Waiting::key).collect();
    // What expired has a value at the key of a time field, and that one is enough to find it.
    let first = |tuple: &TupleOfSpec| tuple.tuple.values.iter().position(Option::is_some);
    let lookup_keys: Vec<usize> =
        tuples.iter().map(|tuple| first(tuple).unwrap_or_default()).collect();
    let search = Search {
        catalog_id: identity.catalog_id,
        table_id: identity.table_id,
        tuples: &tuples,
        lookup_keys: &lookup_keys,
        from_id: 0,
    };
    let counts = count_files(probe.turn().await?, &search).await?;
    let of = |(number, counts): (i32, crate::catalog::live_file::Counts)| {
        Some((usize::try_from(number).ok()?, counts.files))
    };
    Ok(counts.into_iter().filter_map(of).collect())
}

fn sample(table: &str, waiting: &Waiting, files: i64) -> Sample {
    let Waiting { reason, since, error, next_look, display, .. } = waiting;
    let mut problem = format!("{reason} since {since}, files: {files}");
    if let Some(error) = error {
        problem.push_str(&format!("; {error}"));
    }
    if let Some(next) = next_look {
        problem.push_str(&format!("; next look {next}"));
    }
    Sample {
        table: Some(table.to_owned()),
        partition: Some(display.clone()),
        problem,
        ..Sample::default()
    }
}
