//! Files by a value of their tuples, through hog_file_partition_value_lookup.

use std::collections::VecDeque;
use std::ops::ControlFlow;

use futures_util::TryStreamExt;

use super::matching::Matcher;
use super::{FoundFile, Search};
use crate::catalog::session::Session;

/// How many entries of the index one statement reads, over all of its values.
const PAGE: usize = 16_384;

/// How many values one statement looks up.
const VALUES: usize = 512;

/// A value, and the file id from which on its entries are to be read.
struct Open {
    lead: usize,
    from_id: i64,
}

/// Hands on the files of the tuples, page by page. The entries of a value are those of the whole
/// catalog and of ended files too, so each page tells how far it came even where none of it fits.
pub async fn by_leads(
    connection: &mut Session,
    search: &Search<'_>,
    matcher: &Matcher<'_>,
    each: &mut impl FnMut(FoundFile) -> ControlFlow<()>,
) -> sqlx::Result<()> {
    let leads = matcher.leads();
    let mut open: VecDeque<Open> =
        (0..leads.len()).map(|lead| Open { lead, from_id: search.from_id }).collect();
    let mut stopped = ControlFlow::Continue(());
    while !open.is_empty() && stopped.is_continue() {
        let asked: Vec<Open> = open.drain(..open.len().min(VALUES)).collect();
        let entries = (PAGE / asked.len()).max(1);
        let keys: Vec<i32> = asked.iter().map(|open| leads[open.lead].0).collect();
        let values: Vec<Option<&str>> = asked.iter().map(|open| leads[open.lead].1).collect();
        let from_ids: Vec<i64> = asked.iter().map(|open| open.from_id).collect();
        // Entries by the lookup index, each entry's file by its primary key: what else is asked of
        // it stands outside, or the planner, without statistics, would read all live files of the
        // catalog for each value. An array per file costs less than an aggregate of its rows.
        let mut rows = sqlx::query!(
            r#"select l.ordinal as "value_no!", pg_catalog.cardinality(e.ids) as "entries!",
                      e.ids[pg_catalog.cardinality(e.ids)] as last_id,
                      f.data_file_id as "data_file_id?", f.spec_id as "spec_id?",
                      f.record_count as "record_count?", f.file_size_bytes as "file_size_bytes?", f.has_vector as "has_vector?",
                      f.texts as "texts?"
               from unnest($3::int[], $4::text[], $5::bigint[]) with ordinality
                      as l (key_index, value, from_id, ordinal)
               cross join lateral (
                 select array(
                   -- A range and not an equality, and so in the order of the value, too: with an
                   -- equality the order is that of the file ids alone, and the planner may then
                   -- read them by the primary key, in the hope that the first ones fit.
                   (select v.data_file_id from hog_file_partition_value v
                    where v.catalog_id = $1 and v.key_index = l.key_index
                      and (v.value, v.data_file_id) >= (l.value, l.from_id)
                      and v.value <= l.value
                    order by v.value, v.data_file_id limit $6)
                   union all
                   -- Ordered by the null, too, which the index then need not sort.
                   (select v.data_file_id from hog_file_partition_value v
                    where l.value is null and v.catalog_id = $1 and v.key_index = l.key_index
                      and v.value is null and v.data_file_id >= l.from_id
                    order by v.value, v.data_file_id limit $6)) as ids
                 offset 0) as e
               left join lateral (
                 select d.data_file_id, d.spec_id, d.record_count, d.file_size_bytes,
                        exists (select from (
                                  select end_snapshot from hog_delete_file
                                  where catalog_id = d.catalog_id
                                    and data_file_id = d.data_file_id offset 0) as x
                                where x.end_snapshot is null) as has_vector,
                        array(select a.key_index::text || coalesce(':'::text || a.value, '')
                              from hog_file_partition_value a
                              where a.catalog_id = d.catalog_id
                                and a.data_file_id = d.data_file_id
                              order by a.key_index) as texts
                 from pg_catalog.unnest(e.ids) as i (id)
                 cross join lateral (
                   select catalog_id, table_id, data_file_id, end_snapshot, spec_id, record_count,
                          file_size_bytes
                   from hog_data_file
                   where catalog_id = $1 and data_file_id = i.id offset 0) as d
                 where d.table_id = $2 and d.end_snapshot is null
               ) as f on true"#,
            search.catalog_id,
            search.table_id,
            &keys,
            &values as &[Option<&str>],
            &from_ids,
            entries as i64
        )
        .fetch(&mut *connection);
        let mut told = vec![false; asked.len()];
        while let Some(row) = rows.try_next().await? {
            let value_no = usize::try_from(row.value_no - 1).unwrap_or(usize::MAX);
            let Some(Open { lead, .. }) = asked.get(value_no) else { continue };
            let first = !std::mem::replace(&mut told[value_no], true);
            if first
                && let Some(last_id) = row.last_id
                && usize::try_from(row.entries).is_ok_and(|read| read >= entries)
            {
                open.push_back(Open { lead: *lead, from_id: last_id + 1 });
            }
            let Some(found) = Option::zip(row.spec_id, row.texts)
                .and_then(|(spec_id, texts)| matcher.by_lead(spec_id, &texts, *lead))
                .zip(row.data_file_id)
            else {
                continue;
            };
            if stopped.is_continue() {
                let (tuple_no, data_file_id) = found;
                stopped = each(FoundFile {
                    data_file_id,
                    tuple_no,
                    has_vector: row.has_vector.unwrap_or_default(),
                    record_count: row.record_count.unwrap_or_default(),
                    file_size_bytes: row.file_size_bytes.unwrap_or_default(),
                });
            }
        }
    }
    Ok(())
}
