//! The leases of tailrace in `hog_compaction_claim`.
//!
//! A claim keeps the server's planner from files by their ids, whatever the claim's key is (contract,
//! "Compaction"). The keys of tailrace have a name space of their own, and its claimant is that of the
//! catalog; no statement here touches a row of another claimant.

use std::collections::BTreeSet;
use std::time::Duration;

use uuid::Uuid;

use super::inventory::owners::server_has_table;
use super::session::Session;

/// Our own lock class for writing the leases of a catalog.
const SHIELD_CLASS: i64 = 7_232_482;

/// A row of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimRow {
    /// Its key within the table.
    pub group_key: String,
    /// The `data_file_id` of each file that it names.
    pub ids: Vec<i64>,
}

/// The table that a row is of, and by whom.
#[derive(Debug, Clone, Copy)]
pub struct Claims {
    pub catalog_id: i64,
    pub table_id: i64,
    /// The one that all daemons share in the catalog.
    pub claimant: Uuid,
}

/// Whether the server has claims at all; it does from V15 on.
pub async fn has_claims(connection: &mut Session) -> sqlx::Result<bool> {
    server_has_table(connection, "hog_compaction_claim").await
}

/// The claimant of a catalog; `None` if nothing was ever claimed in it.
pub async fn claimant(connection: &mut Session, catalog_id: i64) -> sqlx::Result<Option<Uuid>> {
    sqlx::query_scalar!("select claimant from tailrace.claimant where catalog_id = $1", catalog_id)
        .fetch_optional(connection)
        .await
}

/// The claimant of a catalog, made if there is none yet. Of two daemons that make one, both get
/// the same.
pub async fn make_claimant(connection: &mut Session, catalog_id: i64) -> sqlx::Result<Uuid> {
    if let Some(known) = claimant(connection, catalog_id).await? {
        return Ok(known);
    }
    sqlx::query!(
        "insert into tailrace.claimant (catalog_id) values ($1) on conflict do nothing",
        catalog_id
    )
    .execute(&mut *connection)
    .await?;
    // A statement of its own: the one that the insert met was committed by now, but not yet when
    // that statement began.
    sqlx::query_scalar!("select claimant from tailrace.claimant where catalog_id = $1", catalog_id)
        .fetch_one(connection)
        .await
}

/// Lets one at a time write the leases of a catalog, until the transaction ends. Waits as long as
/// `lock_timeout` allows. Neither the server nor a pass ever waits for it.
pub async fn lock(connection: &mut Session, catalog_id: i64) -> sqlx::Result<()> {
    let key = (SHIELD_CLASS << 32) | (catalog_id & 0xffff_ffff);
    sqlx::query!(r#"select pg_catalog.pg_advisory_xact_lock($1) as "locked!: ()""#, key)
        .fetch_one(connection)
        .await?;
    Ok(())
}

impl Claims {
    /// Our rows of the table, by key, locked: the server's purge of expired rows then waits, and
    /// leaves those alone that are renewed.
    pub async fn rows(&self, connection: &mut Session) -> sqlx::Result<Vec<ClaimRow>> {
        sqlx::query_as!(
            ClaimRow,
            r#"select group_key, input_file_ids as ids from hog_compaction_claim
               where catalog_id = $1 and table_id = $2 and claimant = $3
               order by group_key for update"#,
            self.catalog_id,
            self.table_id,
            self.claimant
        )
        .fetch_all(connection)
        .await
    }

    /// The keys of the table that are another claimant's. Those of ours from before the schema `tailrace` was
    /// made anew are among them, and lapse: the claimant's id went with the schema.
    pub async fn keys_of_others(&self, connection: &mut Session) -> sqlx::Result<BTreeSet<String>> {
        let keys = sqlx::query_scalar!(
            r#"select group_key from hog_compaction_claim
               where catalog_id = $1 and table_id = $2 and claimant <> $3"#,
            self.catalog_id,
            self.table_id,
            self.claimant
        )
        .fetch_all(connection)
        .await?;
        Ok(keys.into_iter().collect())
    }

    /// Lengthens the leases of some rows to `lease` from now, by the database's clock, for the
    /// planner goes by that. The ids are not written: an array out of line stays where it is.
    pub async fn renew(
        &self,
        connection: &mut Session,
        keys: &[String],
        lease: Duration,
    ) -> sqlx::Result<()> {
        sqlx::query!(
            r#"update hog_compaction_claim
               set expires_at = pg_catalog.clock_timestamp() + pg_catalog.make_interval(secs => $5)
               where catalog_id = $1 and table_id = $2 and group_key = any($4) and claimant = $3"#,
            self.catalog_id,
            self.table_id,
            self.claimant,
            keys,
            lease.as_secs_f64()
        )
        .execute(connection)
        .await?;
        Ok(())
    }

    /// Writes a row with its ids and a lease from now. Where another claimant has the key nothing is written,
    /// and the answer is false.
    pub async fn put(
        &self,
        connection: &mut Session,
        row: &ClaimRow,
        lease: Duration,
    ) -> sqlx::Result<bool> {
        let written = sqlx::query!(
            r#"insert into hog_compaction_claim as c
                 (catalog_id, table_id, group_key, input_file_ids, claimant, claimed_at, expires_at)
               values ($1, $2, $3, $4, $5, pg_catalog.clock_timestamp(),
                       pg_catalog.clock_timestamp() + pg_catalog.make_interval(secs => $6))
               on conflict (catalog_id, table_id, group_key) do update
               set input_file_ids = excluded.input_file_ids, claimed_at = excluded.claimed_at,
                   expires_at = excluded.expires_at
               where c.claimant = excluded.claimant"#,
            self.catalog_id,
            self.table_id,
            row.group_key,
            &row.ids,
            self.claimant,
            lease.as_secs_f64()
        )
        .execute(connection)
        .await?;
        Ok(written.rows_affected() > 0)
    }

    /// Takes ids out of a row; its lease stays as it is.
    pub async fn shrink(&self, connection: &mut Session, row: &ClaimRow) -> sqlx::Result<()> {
        sqlx::query!(
            r#"update hog_compaction_claim set input_file_ids = $5
               where catalog_id = $1 and table_id = $2 and group_key = $4 and claimant = $3"#,
            self.catalog_id,
            self.table_id,
            self.claimant,
            row.group_key,
            &row.ids
        )
        .execute(connection)
        .await?;
        Ok(())
    }

    /// Ends some rows.
    pub async fn remove(&self, connection: &mut Session, keys: &[String]) -> sqlx::Result<()> {
        sqlx::query!(
            r#"delete from hog_compaction_claim
               where catalog_id = $1 and table_id = $2 and group_key = any($4) and claimant = $3"#,
            self.catalog_id,
            self.table_id,
            self.claimant,
            keys
        )
        .execute(connection)
        .await?;
        Ok(())
    }
}

/// The tables of all catalogs of which we have rows, by catalog and table id. Reads the rows of claims of
/// each catalog in which something was ever claimed, without their ids.
pub async fn claimed_tables(connection: &mut Session) -> sqlx::Result<BTreeSet<(i64, i64)>> {
    let rows = sqlx::query!(
        r#"select o.catalog_id as "catalog_id!", c.table_id as "table_id!"
           from tailrace.claimant o
           cross join lateral (
             select distinct table_id from hog_compaction_claim
             where catalog_id = o.catalog_id and claimant = o.claimant) as c"#
    )
    .fetch_all(connection)
    .await?;
    Ok(rows.into_iter().map(|row| (row.catalog_id, row.table_id)).collect())
}

/// Ends our rows of these tables, by catalog and table id. Waits for whoever writes one of them as long as
/// `lock_timeout` allows; then all stay.
pub async fn release_tables(connection: &mut Session, tables: &[(i64, i64)]) -> sqlx::Result<()> {
    let (catalogs, ids): (Vec<i64>, Vec<i64>) = tables.iter().copied().unzip();
    sqlx::query!(
        r#"delete from hog_compaction_claim where ctid = any (array(
             select c.at
             from unnest($1::bigint[], $2::bigint[]) as g (catalog_id, table_id)
             cross join lateral (
               select claimant from tailrace.claimant where catalog_id = g.catalog_id offset 0) as o
             cross join lateral (
               -- By the key, whose order this is: by the index of leases all of the catalog's would be read
               -- for each table.
               select ctid as at from hog_compaction_claim
               where catalog_id = g.catalog_id and table_id = g.table_id and claimant = o.claimant
               order by group_key limit 1000000) as c))"#,
        &catalogs,
        &ids
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Forgets the claimants and rules of catalogs that are gone, whose claims went with them. For one that is
/// back, as after a restore, both are made anew; claims that came back with it lapse.
pub async fn forget_gone_catalogs(connection: &mut Session) -> sqlx::Result<()> {
    sqlx::query!(
        r#"with claimants as (
             delete from tailrace.claimant x
             where not exists (select from hog_catalog c where c.catalog_id = x.catalog_id))
           delete from tailrace.window_rule x
           where not exists (select from hog_catalog c where c.catalog_id = x.catalog_id)"#
    )
    .execute(connection)
    .await?;
    Ok(())
}
