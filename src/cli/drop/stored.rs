//! Finds the stored values of the instants in a request.
//!
//! A timestamp with an offset can be stored in 28,810 ways, and writers differ, so an instant
//! stands for all of them. The values that are found are enumerated, and the drop ends the files of
//! these values alone. If another spelling of the same instant is stored later, its files are kept,
//! because nobody was shown them.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::known::Known;
use super::partitions::Written;
use crate::catalog::finder::tuples::{Search, count_files};
use crate::catalog::receipts::RequestedTuple;
use crate::catalog::session::Session;
use crate::catalog::table_files::{PIECE, Place, next_piece};
use crate::catalog::tables::TableIdentity;
use crate::catalog::tuples::TupleOfSpec;
use crate::catalog::values::has_lookup_index;
use crate::explicit::call::PartitionItem;
use crate::rules::expiry::{SpecField, StoredTuple};
use crate::rules::instant::UtcInstant;
use crate::rules::transform::{TimeTransform, TimeType};

type Values = Vec<Option<String>>;

/// How many tuples one statement looks for.
const AT_ONCE: usize = 30_000;

/// The most tuples that are looked for by index, at some microseconds each. If there are more, all files of the
/// table are read instead.
const MOST_LOOKS: usize = 1_000_000;

/// Replaces each instant by the stored values that mean it: a partition becomes every matching tuple that a
/// live file of the table has under the live spec. If no stored value matches an instant, the result has the
/// value that a client would store.
///
/// If the request was answered before, the tuples are those in its receipt, so that a retry means the same
/// although the files have been dropped.
pub async fn as_stored(
    session: &mut Session,
    known: &Known,
    written: Vec<Written>,
    receipt: Option<&[RequestedTuple]>,
) -> anyhow::Result<Vec<Written>> {
    let Some(mut meant) = Meant::of(known, &written) else { return Ok(written) };
    match receipt {
        Some(request) => {
            for tuple in request {
                if tuple.spec_id == meant.spec_id {
                    meant.take(&tuple.partition_values);
                }
            }
        }
        None if meant.most_tuples(&written) <= MOST_LOOKS && has_lookup_index(session).await? => {
            look(session, &known.identity, &mut meant, &written).await?;
        }
        None => read(session, &known.identity, &mut meant).await?,
    }
    let found = std::mem::take(&mut meant.found);
    let resolved = written.into_iter().zip(found);
    Ok(resolved.flat_map(|(written, found)| meant.resolved(written, found)).collect())
}

/// A value in the form in which values are compared: a time is compared as an instant.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Part {
    At(UtcInstant),
    Text(Option<String>),
}

/// The tuples that are looked for, and those that were found.
struct Meant {
    spec_id: i64,
    keys: Vec<i32>,
    /// For each field, the types that its values may have; empty where it is no identity field of a time.
    types: Vec<Vec<TimeType>>,
    /// The present type of each field's column.
    live: Vec<Option<TimeType>>,
    /// The numbers of the partitions, by the positions of their instants and by their values as compared.
    by_parts: BTreeMap<Vec<usize>, HashMap<Vec<Part>, Vec<usize>>>,
    /// The numbers of the partitions by their values as typed, in case exactly these values are stored.
    by_text: HashMap<Values, Vec<usize>>,
    found: Vec<BTreeSet<Values>>,
}

impl Meant {
    /// `None` where no partition of the request has an instant.
    fn of(known: &Known, written: &[Written]) -> Option<Self> {
        if written.iter().all(|written| written.instants.is_empty()) {
            return None;
        }
        let (spec_id, fields) = known.shape.live_spec.as_ref()?;
        let of_time = |transform: TimeTransform| match transform {
            TimeTransform::Identity(of) => Some(of),
            _ => None,
        };
        let types =
            |field: &SpecField| known.book.transforms_of(field).into_iter().filter_map(of_time);
        let live = |field_id| known.shape.type_of(field_id).and_then(TimeType::of_column);
        let mut meant = Meant {
            spec_id: *spec_id,
            keys: fields.iter().map(|field| field.key_index).collect(),
            types: fields.iter().map(|field| types(field).collect()).collect(),
            live: fields.iter().map(|field| live(field.source_field_id)).collect(),
            by_parts: BTreeMap::new(),
            by_text: HashMap::new(),
            found: vec![BTreeSet::new(); written.len()],
        };
        for (number, Written { item, instants, .. }) in written.iter().enumerate() {
            if instants.is_empty() {
                continue;
            }
            let values = &item.partition_values;
            let mut parts: Vec<_> = values.iter().cloned().map(Part::Text).collect();
            for (position, at) in instants {
                parts[*position] = Part::At(*at);
            }
            let positions = instants.iter().map(|(position, _)| *position).collect();
            let of_positions = meant.by_parts.entry(positions).or_default();
            of_positions.entry(parts).or_default().push(number);
            meant.by_text.entry(values.clone()).or_default().push(number);
        }
        Some(meant)
    }

    /// A tuple as it is compared: the values at these positions are instants, where they mean one.
    fn parts(&self, values: &Values, positions: &[usize]) -> Vec<Part> {
        let mut parts: Vec<_> = values.iter().cloned().map(Part::Text).collect();
        for position in positions {
            let text = values.get(*position).and_then(Option::as_deref);
            // No value is valid for two of the types.
            let ranges = self.types[*position]
                .iter()
                .filter_map(|of| TimeTransform::Identity(*of).decode(text).ok());
            let instant = ranges.into_iter().find(|range| range.start == range.end);
            if let Some((part, range)) = parts.get_mut(*position).zip(instant) {
                *part = Part::At(range.start);
            }
        }
        parts
    }

    /// Adds a stored tuple of the spec to each partition that it matches.
    fn take(&mut self, values: &Values) {
        let mut numbers = self.by_text.get(values).cloned().unwrap_or_default();
        for (positions, of_positions) in &self.by_parts {
            let same = of_positions.get(&self.parts(values, positions));
            numbers.extend(same.into_iter().flatten());
        }
        for number in numbers {
            self.found[number].insert(values.clone());
        }
    }

    /// Every tuple as which a partition may be stored.
    fn tuples(&self, written: &Written) -> BTreeSet<Values> {
        let mut tuples = BTreeSet::from([written.item.partition_values.clone()]);
        for (position, at) in &written.instants {
            let texts: Vec<_> =
                self.types[*position].iter().flat_map(|of| of.texts_of(*at)).collect();
            let with = |tuple: &Values, text: &String| {
                let mut tuple = tuple.clone();
                tuple[*position] = Some(text.clone());
                tuple
            };
            let more: Vec<_> = tuples
                .iter()
                .flat_map(|tuple| texts.iter().map(move |text| with(tuple, text)))
                .collect();
            tuples.extend(more);
        }
        tuples
    }

    /// The largest number that [`Self::tuples`] can give for all partitions together.
    fn most_tuples(&self, written: &[Written]) -> usize {
        let of_position = |(position, _): &(usize, UtcInstant)| {
            self.types[*position].iter().map(|of| of.most_texts()).sum::<usize>() + 1
        };
        let of_one = |written: &Written| {
            written.instants.iter().map(of_position).fold(1, usize::saturating_mul)
        };
        written.iter().map(of_one).fold(0, usize::saturating_add)
    }

    fn resolved(&self, mut written: Written, found: BTreeSet<Values>) -> Vec<Written> {
        let instants = std::mem::take(&mut written.instants);
        if found.is_empty() {
            for (position, at) in instants {
                // A value is always set: null would be the null partition.
                if let Some(of) = self.live[position] {
                    let text = TimeTransform::Identity(of).encode(at);
                    written.item.partition_values[position] = Some(text);
                }
            }
            return vec![written];
        }
        let with = |partition_values| Written {
            item: PartitionItem { partition_values, ..written.item.clone() },
            ..written.clone()
        };
        found.into_iter().map(with).collect()
    }
}

/// Looks for every such tuple by the index of partition values.
async fn look(
    session: &mut Session,
    table: &TableIdentity,
    meant: &mut Meant,
    written: &[Written],
) -> sqlx::Result<()> {
    let (mut tuples, mut lookup_keys) = (Vec::new(), Vec::new());
    for (number, one) in written.iter().enumerate() {
        if let Some((position, _)) = one.instants.first() {
            let wanted = meant.tuples(one).into_iter().map(|values| TupleOfSpec {
                spec_id: meant.spec_id,
                tuple: StoredTuple { keys: meant.keys.clone(), values },
            });
            tuples.extend(wanted);
            lookup_keys.resize(tuples.len(), *position);
        }
        if tuples.len() < AT_ONCE && number + 1 < written.len() {
            continue;
        }
        // If an instant was typed in two ways, its tuples are here twice, and each is found for both.
        let (catalog_id, table_id) = (table.catalog_id, table.table_id);
        let search =
            Search { catalog_id, table_id, tuples: &tuples, lookup_keys: &lookup_keys, from_id: 0 };
        for (found, _) in count_files(session, &search).await? {
            if let Some(found) = usize::try_from(found).ok().and_then(|at| tuples.get(at)) {
                meant.take(&found.tuple.values);
            }
        }
        tuples.clear();
        lookup_keys.clear();
    }
    Ok(())
}

/// Reads all files of the table.
async fn read(session: &mut Session, table: &TableIdentity, meant: &mut Meant) -> sqlx::Result<()> {
    let mut next = Some(Place::START);
    while let Some(after) = next {
        let (files, last) =
            next_piece(session, table.catalog_id, table.table_id, after, PIECE).await?;
        for file in files {
            if file.spec_id == Some(meant.spec_id) && file.tuple.keys == meant.keys {
                meant.take(&file.tuple.values);
            }
        }
        next = last;
    }
    Ok(())
}
