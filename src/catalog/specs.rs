//! What a table looks like: its live columns and spec, and the book of every spec it ever had.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::restore::restored;
use super::session::Session;
use crate::rules::expiry::evidence::Mark;
use crate::rules::expiry::{SpecBook, SpecField, SpecPast};
use crate::rules::instant::UtcInstant;

/// A live column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Stable across renames.
    pub field_id: i64,
    /// Its name within its parent.
    pub name: String,
    /// `hog_column.col_type`.
    pub col_type: String,
    /// The enclosing struct, list or map.
    pub parent_field_id: Option<i64>,
}

/// The live columns and the live partition spec of a table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TableShape {
    /// Every live column, nested ones included.
    pub columns: Vec<Column>,
    /// The live spec and its fields by key index, if the table has one.
    pub live_spec: Option<(i64, Vec<SpecField>)>,
}

impl TableShape {
    /// The leaf column at a dotted path, through structs only: a list or map has many values a
    /// row and cannot be the source of a partition field.
    pub fn leaf_by_path(&self, path: &str) -> Option<&Column> {
        let is_leaf =
            |column: &&Column| !matches!(column.col_type.as_str(), "struct" | "list" | "map");
        self.column_by_path(path).filter(is_leaf)
    }

    /// The column at a dotted path, leaf or not, through structs only.
    pub fn column_by_path(&self, path: &str) -> Option<&Column> {
        let mut found: Option<&Column> = None;
        for name in path.split('.') {
            if found.is_some_and(|outer| outer.col_type != "struct") {
                return None;
            }
            let parent = found.map(|outer| outer.field_id);
            let is_it = |column: &&Column| column.parent_field_id == parent && column.name == name;
            found = Some(self.columns.iter().find(is_it)?);
        }
        found
    }

    /// The type of a live column.
    pub fn type_of(&self, field_id: i64) -> Option<&str> {
        let column = self.columns.iter().find(|column| column.field_id == field_id);
        column.map(|column| column.col_type.as_str())
    }

    /// The live spec's fields; empty for an unpartitioned table.
    pub fn live_spec_fields(&self) -> &[SpecField] {
        self.live_spec.as_ref().map_or(&[], |(_, fields)| fields)
    }

    /// A partition field as a person writes it: `day(timestamp)`, `bucket(16, id)`.
    pub fn describe_field(&self, field: &SpecField) -> String {
        let column = self.path_of(field.source_field_id);
        match field.transform_param {
            Some(param) => format!("{}({param}, {column})", field.transform),
            None => format!("{}({column})", field.transform),
        }
    }

    /// The dotted path of a live column, or its id where it is no longer live.
    pub fn path_of(&self, field_id: i64) -> String {
        self.live_path(field_id).unwrap_or_else(|| format!("field {field_id}"))
    }

    /// The dotted path of a column; `None` where it is no longer live.
    pub fn live_path(&self, field_id: i64) -> Option<String> {
        let mut names = Vec::new();
        let mut next = Some(field_id);
        while let Some(id) = next {
            let column = self.columns.iter().find(|column| column.field_id == id)?;
            // A column nested deeper than there are columns would be a cycle in damaged rows.
            if names.len() > self.columns.len() {
                return None;
            }
            names.push(column.name.as_str());
            next = column.parent_field_id;
        }
        names.reverse();
        Some(names.join("."))
    }
}

/// A field as our copies have it in JSON.
#[derive(Debug, Deserialize)]
pub(super) struct FieldRow {
    key_index: i32,
    source_field_id: i64,
    transform: String,
    transform_param: Option<i32>,
}

impl From<FieldRow> for SpecField {
    fn from(row: FieldRow) -> Self {
        SpecField {
            key_index: row.key_index,
            source_field_id: row.source_field_id,
            transform: row.transform,
            transform_param: row.transform_param,
        }
    }
}

/// Reads the live columns alone: a shape without a spec.
pub async fn live_columns(
    connection: &mut Session,
    catalog_id: i64,
    table_id: i64,
) -> sqlx::Result<TableShape> {
    let columns = sqlx::query_as!(
        Column,
        r#"select field_id, name, col_type, parent_field_id from hog_column
           where catalog_id = $1 and table_id = $2 and end_snapshot is null
           order by field_id"#,
        catalog_id,
        table_id
    )
    .fetch_all(connection)
    .await?;
    Ok(TableShape { columns, live_spec: None })
}

/// Reads the live columns and the live spec.
pub async fn table_shape(
    connection: &mut Session,
    catalog_id: i64,
    table_id: i64,
) -> sqlx::Result<TableShape> {
    let shape = live_columns(connection, catalog_id, table_id).await?;
    let live_spec = sqlx::query_scalar!(
        r#"select spec_id from hog_partition_spec
           where catalog_id = $1 and table_id = $2 and end_snapshot is null
           order by begin_snapshot desc limit 1"#,
        catalog_id,
        table_id
    )
    .fetch_optional(&mut *connection)
    .await?;
    let live_spec = match live_spec {
        None => None,
        Some(spec_id) => {
            let fields = sqlx::query_as!(
                SpecField,
                r#"select key_index, source_field_id, transform, transform_param
                   from hog_partition_field
                   where catalog_id = $1 and table_id = $2 and spec_id = $3
                   order by key_index"#,
                catalog_id,
                table_id,
                spec_id
            )
            .fetch_all(&mut *connection)
            .await?;
            Some((spec_id, fields))
        }
    };
    Ok(TableShape { live_spec, ..shape })
}

/// Everything known of the table's specs: what the catalog has, and our copies of what it
/// deleted. Copies of another table, which had the same id, are none of them.
pub async fn spec_book(
    connection: &mut Session,
    catalog_id: i64,
    table_id: i64,
) -> sqlx::Result<SpecBook> {
    let specs = sqlx::query!(
        r#"select s.spec_id as "spec_id!",
                  coalesce(pg_catalog.jsonb_agg(pg_catalog.jsonb_build_object(
                      'key_index', f.key_index, 'source_field_id', f.source_field_id,
                      'transform', f.transform, 'transform_param', f.transform_param)
                    order by f.key_index) filter (where f.key_index is not null), '[]')
                    as "fields!: sqlx::types::Json<Vec<FieldRow>>",
                  s.begin_snapshot = (select t.created_snapshot from hog_table t
                                      where t.catalog_id = $1 and t.table_id = $2)
                    as began_with_table,
                  null::bigint as mark_row_id, null::bigint as watched_from,
                  null::bigint as mark_snapshot, null::timestamptz as marked_at,
                  null::timestamptz as trusted_at, s.begin_snapshot, false as "is_reused!"
           from hog_partition_spec s
           left join hog_partition_field f
             on f.catalog_id = s.catalog_id and f.table_id = s.table_id and f.spec_id = s.spec_id
           where s.catalog_id = $1 and s.table_id = $2
           group by s.spec_id, s.begin_snapshot
           union all
           select c.spec_id, c.fields,
                  c.begin_snapshot = (select t.created_snapshot from hog_table t
                                      where t.catalog_id = $1 and t.table_id = $2),
                  c.mark_row_id, c.watched_from, c.mark_snapshot, c.marked_at, c.trusted_at,
                  c.begin_snapshot, c.is_reused
           from tailrace.spec_copy c
           where c.catalog_id = $1 and c.table_id = $2
             and c.table_uuid = (select t.table_uuid from hog_table t
                                 where t.catalog_id = $1 and t.table_id = $2)"#,
        catalog_id,
        table_id
    )
    .fetch_all(&mut *connection)
    .await?;
    let mut past: BTreeMap<i64, SpecPast> = BTreeMap::new();
    let mut begun: BTreeMap<i64, i64> = BTreeMap::new();
    let mut reused = Vec::new();
    let mut definitions = Vec::with_capacity(specs.len());
    for row in specs {
        let began_twice = row
            .begin_snapshot
            .is_some_and(|begin| *begun.entry(row.spec_id).or_insert(begin) != begin);
        if began_twice || row.is_reused {
            reused.push(row.spec_id);
        }
        let known = past.entry(row.spec_id).or_default();
        known.began_with_table |= row.began_with_table.unwrap_or(false);
        known.trusted_at = known.trusted_at.or(row.trusted_at.map(UtcInstant::from));
        if row.mark_row_id.is_some() || row.watched_from.is_some() {
            known.mark = Some(Mark {
                row_id: row.mark_row_id,
                watched_from: row.watched_from,
                snapshot: row.mark_snapshot,
                noted_at: row.marked_at.map(UtcInstant::from),
            });
        }
        let fields = row.fields.0.into_iter().map(SpecField::from).collect::<Vec<_>>();
        definitions.push((row.spec_id, fields));
    }
    let mut book = SpecBook::of_definitions(definitions);
    book.past = past;
    reused.into_iter().for_each(|spec_id| book.dispute(spec_id));
    let columns = sqlx::query!(
        r#"select field_id as "field_id!", col_type as "col_type!", name from (
             select field_id, col_type, case when end_snapshot is null then name end as name
             from hog_column where catalog_id = $1 and table_id = $2
             union
             select field_id, col_type, null from tailrace.source_column_type
             where catalog_id = $1 and table_id = $2
               and table_uuid = (select t.table_uuid from hog_table t
                                 where t.catalog_id = $1 and t.table_id = $2)) as known"#,
        catalog_id,
        table_id
    )
    .fetch_all(connection)
    .await?;
    for row in columns {
        book.column_types.entry(row.field_id).or_default().insert(row.col_type);
        if let Some(name) = row.name {
            book.column_names.insert(row.field_id, name);
        }
    }
    Ok(book)
}

/// Copies every spec of the catalog's tables, and the types of their source columns, that we
/// have no copy of yet. Writes nothing where nothing is new. The rules of the window in SQL that are kept of a
/// table are forgotten with each copy that is made or told something: they may have been other ones.
/// Beside a session that keeps these rules the two may wait for each other's rows: the server ends one of them, which
/// fails in words, writes nothing, and does it again with the next pass or renewal.
///
/// All tables that are not dropped, not only those with a policy: a policy that is set later must know
/// the specs that the server has deleted by then. `seen_at` is noted as the time at which a new spec was
/// seen: not before it was there. `None` leaves that to the next pass: only a pass knows whether the clock
/// is acted by. Of a catalog that was restored, nothing is copied before a pass has settled that
/// ([`super::restore`]): an id of a spec may be that of another copy, and would be disputed for ever.
///
/// Any number of sessions may do this at once, without the catalog's lease: each writes only what its own
/// snapshot of the catalog shows, whoever comes second at a key waits for the first and finds the same
/// fields there, and a copy that is there loses nothing: neither its date, its mark nor its trust. If the
/// two saw the id begin in different snapshots, it was given twice, and is noted as that.
pub async fn copy_specs(
    connection: &mut Session,
    catalog_id: i64,
    seen_at: Option<UtcInstant>,
) -> sqlx::Result<()> {
    if seen_at.is_none() && restored(connection, catalog_id).await?.is_some() {
        return Ok(());
    }
    sqlx::query!(
        r#"with told as (
             insert into tailrace.spec_copy (catalog_id, table_id, table_uuid, spec_id, fields,
                                             begin_snapshot, copied_at, clock_epoch)
             select q.catalog_id, q.table_id, q.table_uuid, q.spec_id, q.fields, q.begin_snapshot,
                    $2,
                    coalesce((select m.epoch from tailrace.clock_memory m where m.catalog_id = $1),
                             0::bigint)
             from (
               select s.catalog_id, s.table_id, t.table_uuid, s.spec_id, s.begin_snapshot,
                      coalesce(pg_catalog.jsonb_agg(pg_catalog.jsonb_build_object(
                          'key_index', f.key_index, 'source_field_id', f.source_field_id,
                          'transform', f.transform, 'transform_param', f.transform_param)
                        order by f.key_index) filter (where f.key_index is not null), '[]') as fields
               from hog_partition_spec s
               join hog_table t on t.catalog_id = s.catalog_id and t.table_id = s.table_id
                               and t.dropped_snapshot is null
               left join hog_partition_field f
                 on f.catalog_id = s.catalog_id and f.table_id = s.table_id
                and f.spec_id = s.spec_id
               where s.catalog_id = $1
               group by s.catalog_id, s.table_id, t.table_uuid, s.spec_id, s.begin_snapshot
               -- One without a field dates nothing, or its fields are yet to be loaded.
               having pg_catalog.count(f.key_index) > 0::bigint) as q
             where not exists (
               select from tailrace.spec_copy k
               where k.catalog_id = q.catalog_id and k.table_id = q.table_id
                 and k.table_uuid = q.table_uuid and k.spec_id = q.spec_id and k.fields = q.fields
                 and k.begin_snapshot = q.begin_snapshot)
             -- Sessions that copy at one time wait for each other's rows in one order.
             order by q.table_id, q.spec_id
             on conflict (catalog_id, table_id, table_uuid, spec_id, fields) do update
             set is_reused = spec_copy.is_reused
                             or coalesce(spec_copy.begin_snapshot <> excluded.begin_snapshot, false),
                 begin_snapshot = excluded.begin_snapshot
             returning catalog_id, table_id
           )
           delete from tailrace.window_rule r using told
           where r.catalog_id = told.catalog_id and r.table_id = told.table_id"#,
        catalog_id,
        seen_at.and_then(UtcInstant::to_chrono)
    )
    .execute(&mut *connection)
    .await?;
    // What a command copied, and the server may have deleted since, is dated by the first pass.
    sqlx::query!(
        r#"update tailrace.spec_copy
           set copied_at = $2,
               clock_epoch = coalesce((select m.epoch from tailrace.clock_memory m
                                       where m.catalog_id = $1), 0::bigint)
           where catalog_id = $1 and copied_at is null and mark_row_id is null
             and $2::timestamptz is not null"#,
        catalog_id,
        seen_at.and_then(UtcInstant::to_chrono)
    )
    .execute(&mut *connection)
    .await?;
    sqlx::query!(
        r#"insert into tailrace.source_column_type (catalog_id, table_id, table_uuid, field_id,
                                                    col_type)
           select distinct c.catalog_id, c.table_id, d.table_uuid, c.field_id, c.col_type
           from hog_partition_field f
           join hog_table d on d.catalog_id = f.catalog_id and d.table_id = f.table_id
                           and d.dropped_snapshot is null
           join hog_column c on c.catalog_id = f.catalog_id and c.table_id = f.table_id
                            and c.field_id = f.source_field_id
           where f.catalog_id = $1
             and not exists (select from tailrace.source_column_type t
                             where t.catalog_id = c.catalog_id and t.table_id = c.table_id
                               and t.table_uuid = d.table_uuid and t.field_id = c.field_id and t.col_type = c.col_type)
           on conflict do nothing"#,
        catalog_id
    )
    .execute(connection)
    .await?;
    Ok(())
}
