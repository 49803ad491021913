//! All known partition specs of a table. Pure.

use std::collections::{BTreeMap, BTreeSet};

use super::evidence::Mark;
use crate::rules::instant::UtcInstant;
use crate::rules::transform::TimeTransform;

/// One field of a partition spec, as `hog_partition_field` has it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SpecField {
    /// The position of its value in the tuple, through this spec only.
    pub key_index: i32,
    /// The column, by an id that survives renames.
    pub source_field_id: i64,
    /// `identity`, `bucket`, `year`, `month`, `day` or `hour`.
    pub transform: String,
    /// The bucket count.
    pub transform_param: Option<i32>,
}

impl SpecField {
    /// Whether both store the same values for the same rows.
    pub fn stores_as(&self, other: &SpecField) -> bool {
        (self.source_field_id, &self.transform, self.transform_param)
            == (other.source_field_id, &other.transform, other.transform_param)
    }
}

/// What is known of a spec beside its fields.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SpecPast {
    /// It began in the snapshot that created its table, so nothing was before it.
    pub began_with_table: bool,
    /// What was noted once every writer that knew only earlier specs should have stopped.
    pub mark: Option<Mark>,
    /// When an operator vouched for the values of its files (`tailrace spec trust`).
    pub trusted_at: Option<UtcInstant>,
}

/// All that is known of a table's specs, live, ended or remembered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SpecBook {
    /// The fields of each spec, ordered by key index.
    pub specs: BTreeMap<i64, Vec<SpecField>>,
    /// The definitions of spec ids that were seen with more than one: which of them a file of that
    /// id was written under is unknown, so the id itself is not in `specs`.
    pub disputed: BTreeMap<i64, Vec<Vec<SpecField>>>,
    /// Every type that each column was seen to have.
    pub column_types: BTreeMap<i64, BTreeSet<String>>,
    /// The names of live columns, for people.
    pub column_names: BTreeMap<i64, String>,
    /// What is known of each spec beside its fields.
    pub past: BTreeMap<i64, SpecPast>,
}

impl SpecBook {
    /// Notes that an id was given to two specs, one after the other: which of them a file of that id was
    /// written under is unknown, even where both have the same fields.
    pub fn dispute(&mut self, spec_id: i64) {
        if let Some(fields) = self.specs.remove(&spec_id) {
            self.disputed.entry(spec_id).or_default().push(fields);
        }
    }

    /// A book of all definitions that were seen, by spec id.
    pub fn of_definitions(definitions: impl IntoIterator<Item = (i64, Vec<SpecField>)>) -> Self {
        let mut by_id: BTreeMap<i64, BTreeSet<Vec<SpecField>>> = BTreeMap::new();
        for (spec_id, fields) in definitions {
            by_id.entry(spec_id).or_default().insert(fields);
        }
        let mut book = SpecBook::default();
        for (spec_id, mut seen) in by_id {
            match (seen.len(), seen.pop_first()) {
                (1, Some(only)) => {
                    book.specs.insert(spec_id, only);
                }
                (_, first) => {
                    book.disputed.insert(spec_id, first.into_iter().chain(seen).collect());
                }
            }
        }
        book
    }

    /// The time transforms that a field may be: none if it is no time field, several only for
    /// identity on a column that was seen with several time types.
    pub fn transforms_of(&self, field: &SpecField) -> Vec<TimeTransform> {
        if field.transform != "identity" {
            return TimeTransform::of_field(&field.transform, None).into_iter().collect();
        }
        let types = self.column_types.get(&field.source_field_id).into_iter().flatten();
        let transforms: BTreeSet<_> = types
            .filter_map(|col_type| TimeTransform::of_field("identity", Some(col_type)))
            .collect();
        transforms.into_iter().collect()
    }

    /// Every definition that a field was seen with in a place (number of fields, key index), with
    /// the spec ids that have it there; `None` stands for ids that were seen with several meanings.
    pub(super) fn in_place(
        &self,
        arity: usize,
        key_index: i32,
    ) -> impl Iterator<Item = (Option<i64>, &SpecField)> {
        let known = self.specs.iter().map(|(spec_id, fields)| (Some(*spec_id), fields));
        let disputed = self.disputed.values().flatten().map(|fields| (None, fields));
        known
            .chain(disputed)
            .filter(move |(_, fields)| fields.len() == arity)
            .flat_map(|(spec_id, fields)| fields.iter().map(move |field| (spec_id, field)))
            .filter(move |(_, field)| field.key_index == key_index)
    }

    /// The spec with the lowest id above `last` that does not store values as `field` does in its
    /// place: since it began, no writer that knows the live spec does.
    pub(super) fn first_without(&self, field: &SpecField, arity: usize, last: i64) -> Option<i64> {
        let has_it = |fields: &Vec<SpecField>| {
            fields.len() == arity
                && fields
                    .iter()
                    .any(|other| other.key_index == field.key_index && other.stores_as(field))
        };
        let later = self.specs.range(last + 1..);
        later.filter(|(_, fields)| !has_it(fields)).map(|(spec_id, _)| *spec_id).next()
    }

    /// The specs up to this one whose predecessor is unknown: what their writers knew before may
    /// have been anything. A spec that began with its table has no predecessor.
    pub(crate) fn without_predecessor(&self, spec_id: i64) -> impl Iterator<Item = i64> {
        let is_known = |id: i64| self.specs.contains_key(&id) || self.disputed.contains_key(&id);
        let began_with_table =
            |id: &i64| self.past.get(id).is_some_and(|past| past.began_with_table);
        // Below 0 are specs that a restore took back: no file is of one, and none came after one.
        let specs = self.specs.range(..=spec_id).map(|(id, _)| *id);
        let disputed = self.disputed.range(..=spec_id).map(|(id, _)| *id);
        specs
            .chain(disputed)
            .filter(move |id| *id >= 0 && !began_with_table(id) && !is_known(id - 1))
    }

    /// The mark of a spec, where it was noted.
    pub(super) fn mark(&self, spec_id: i64) -> Option<Mark> {
        self.past.get(&spec_id).and_then(|past| past.mark)
    }

    /// The book without the marks and the trust that came after a time.
    pub fn as_of(mut self, then: UtcInstant) -> Self {
        let is_later = |at: Option<UtcInstant>| at.is_some_and(|at| at > then);
        for past in self.past.values_mut() {
            past.mark = past.mark.filter(|mark| !is_later(mark.noted_at));
            past.trusted_at = past.trusted_at.filter(|at| *at <= then);
        }
        self
    }

    /// A field as a person writes it: `day(ts)`, `bucket(16, id)`.
    pub fn describe(&self, field: &SpecField) -> String {
        let id = field.source_field_id;
        let column = match self.column_names.get(&id) {
            Some(name) => name.clone(),
            None => format!("field {id}"),
        };
        match field.transform_param {
            Some(param) => format!("{}({param}, {column})", field.transform),
            None => format!("{}({column})", field.transform),
        }
    }
}
