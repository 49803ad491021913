//! A lake for which the program writes as many kinds of rows as possible into the schema `tailrace`.

use std::time::Duration;

use anyhow::{Result, bail, ensure};
use chrono::{TimeDelta, Utc};
use tailrace::sweep::report::Outcome;
use tailrace_kit::lake::{Catalog, CatalogOptions, Column, Field, NewFile, Table};
use tailrace_kit::simulated_loops::{Cleanup, Expiry};
use tokio_util::sync::CancellationToken;

use super::pass::{expect, one_commit, pass, refuse, small_pieces};
use crate::http::address;
use crate::http::client::Client;
use crate::support::TestDatabase;
use crate::support::governed::live_ids;
use crate::support::program::settings;

/// The explicit drops: path, body.
pub const DROPS: [(&str, &str); 4] = [
    (
        "raw/partitions/drop",
        r#"{"idempotency_key": "11111111-2222-4333-8444-000000000001", "fence": true,
            "partitions": [{"partition_values": ["7", "18000"]},
                           {"partition_values": [null, "18000"], "spec_id": 1},
                           {"partition_values": ["9", "18000"]}]}"#,
    ),
    (
        "raw/partitions/drop",
        r#"{"idempotency_key": "11111111-2222-4333-8444-000000000002",
            "partitions": [{"partition_values": ["x", "y"], "literal": true}]}"#,
    ),
    ("bare/truncate", r#"{"idempotency_key": "11111111-2222-4333-8444-000000000003"}"#),
    ("empty/truncate", r#"{"idempotency_key": "11111111-2222-4333-8444-000000000004"}"#),
];

/// The path of an explicit drop.
pub fn path(of: &str) -> String {
    format!("/v1/catalogs/lake/namespaces/events/tables/{of}")
}

/// The path, with the UUID that a truncate has to name.
pub async fn named(catalog: &Catalog, of: &str) -> Result<String> {
    let Some(table) = of.strip_suffix("/truncate") else { return Ok(path(of)) };
    let uuid = catalog.open_table("events", table).await?.table_uuid;
    Ok(format!("{}?expected_table_uuid={uuid}", path(of)))
}

/// Runs the program and its passes until all is written.
pub async fn written() -> Result<TestDatabase> {
    let database = TestDatabase::new().await?;
    restored(&database).await?;
    let lake = Lake::new(database).await?;
    lake.policies().await?;
    lake.daemon().await?;
    lake.expiry().await?;
    lake.gone().await?;
    lake.specs().await?;
    lake.clocks().await?;
    lake.kept().await?;
    lake.halved().await?;
    lake.read().await?;
    Ok(lake.database)
}

/// A catalog that was restored to before a drop.
async fn restored(database: &TestDatabase) -> Result<()> {
    let catalog = database.catalog("sea").await?;
    let table = database.table(&catalog, "raw", &[Field::day("at")]).await?;
    table.append(vec![NewFile::of(["18000"]), NewFile::of(["99999"])]).await?;
    let backup = database.back_up("earlier").await?;
    database.policy("sea", "events.raw", "day(at)", "7d").await?;
    done(database, &["sweep"], 0).await?;
    database.restore(&backup).await?;
    database.sql("DROP SCHEMA earlier CASCADE").await?;
    // Nothing goes in a pass that settles a restore, or by a policy that nobody has confirmed since.
    done(database, &["sweep"], 0).await
}

async fn done(database: &TestDatabase, args: &[&str], code: i32) -> Result<()> {
    let ran = database.ran(args).await?;
    ensure!(ran.code == code, "{args:?}: {ran:?}");
    Ok(())
}

struct Lake {
    database: TestDatabase,
    catalog: Catalog,
    /// `events.raw`, by `identity(team)` and `day(at)`.
    raw: Table,
}

impl Lake {
    async fn new(database: TestDatabase) -> Result<Self> {
        let retention = Some(Duration::from_secs(3600));
        let options = CatalogOptions { retention, ..CatalogOptions::default() };
        let catalog = database.lake.catalog("lake", options).await?;
        let columns = [Column::new("team", "string"), Column::new("at", "timestamptz")];
        let spec = [Field::identity("team"), Field::day("at")];
        let raw = database.table_of(&catalog, "raw", &columns, &spec).await?;
        Ok(Lake { database, catalog, raw })
    }

    /// A table `events.name` by day, with a file of each of these days and a policy of 7 days.
    async fn by_day<T: Into<String>>(
        &self,
        name: &str,
        days: impl IntoIterator<Item = T>,
    ) -> Result<Table> {
        let table = self.database.table(&self.catalog, name, &[Field::day("at")]).await?;
        let files: Vec<_> = days.into_iter().map(|day| NewFile::of([day])).collect();
        if !files.is_empty() {
            table.append(files).await?;
        }
        self.govern(&table, name).await?;
        Ok(table)
    }

    async fn govern(&self, table: &Table, name: &str) -> Result<()> {
        self.database.policy(&table.catalog.name, &format!("events.{name}"), "day(at)", "7d").await
    }

    /// Two files that have expired, one of team 7 with a vector and one of nobody.
    async fn expired(&self, day: &str) -> Result<()> {
        let team = NewFile::of(["7", day]).records(10).bytes(100);
        let nobody = NewFile::new(vec![None, Some(day.to_owned())]);
        let files = self.raw.append(vec![team, nobody]).await?.file_ids;
        self.raw.register_vector(files[0], 3, None).await?;
        Ok(())
    }

    /// Policies: stored, of a property, and of a property that is not followed. A drop by a pass.
    async fn policies(&self) -> Result<()> {
        self.by_day("bare", ["99999"]).await?;
        self.by_day("empty", [""; 0]).await?;
        self.expired("17000").await?;
        self.raw.append(vec![NewFile::of(["7", "99999"]), NewFile::of(["7", "x"])]).await?;
        self.govern(&self.raw, "raw").await?;
        let property = self.database.table(&self.catalog, "property", &[Field::day("at")]).await?;
        let text = r#"{"field": "at", "keep": "2w", "mode": "observe"}"#;
        property.set_property("partition_retention", Some(text)).await?;
        let pond = self.database.catalog("pond").await?;
        let broken = self.database.table(&pond, "broken", &[Field::day("at")]).await?;
        let text = |keep| format!(r#"{{"field": "at", "keep": "{keep}"}}"#);
        broken.set_property("partition_retention", Some(&text("7d"))).await?;
        done(&self.database, &["sweep"], 0).await?;
        broken.set_property("partition_retention", Some(&text("7 months"))).await?;
        done(&self.database, &["sweep"], 3).await
    }

    /// A daemon's renewal of claims; drops and a policy over HTTP.
    async fn daemon(&self) -> Result<()> {
        // Under this policy nothing has expired.
        let args = ["policy", "set", "lake", "events.raw", "--field", "at", "--keep", "20000d"];
        done(&self.database, &args, 0).await?;
        self.expired("18000").await?;
        let mut daemon = self.database.start(&["run"], &[("TAILRACE__SCHEDULE__EVERY", "1d")])?;
        let address = address(&mut daemon).await?;
        daemon.event("pass_finished", 1).await?;
        daemon.event("shield_renewed", 1).await?;
        let client = Client { address, headers: Vec::new() };
        for (of, body) in DROPS {
            let answer = client.json("POST", &named(&self.catalog, of).await?, body).await?;
            ensure!(answer.status == 200, "{of}: {answer:?}");
        }
        let fenced = r#"{"field": "day(at)", "keep": "7d", "fence": true}"#;
        let answer = client.json("PUT", &path("raw/partition-retention"), fenced).await?;
        ensure!(answer.status == 200, "{answer:?}");
        daemon.signal("TERM").await?;
        ensure!(daemon.end().await?.code == Some(0));
        Ok(())
    }

    /// The server's expiry and cleanup: of the first drop nothing is left, the objects of the second one
    /// wait to be deleted, the third is kept for older readers.
    async fn expiry(&self) -> Result<()> {
        let drops: Vec<i64> = sqlx::query_scalar(
            "SELECT snapshot_id FROM tailrace.drop_history WHERE catalog_id = $1 ORDER BY 1",
        )
        .bind(self.catalog.catalog_id)
        .fetch_all(&self.database.pool)
        .await?;
        let [gone, queued, _kept] = drops[..] else { bail!("not three drops: {drops:?}") };
        for (floor, is_cleaned) in [(gone, true), (queued, false)] {
            let mut expiry = Expiry::new(&self.catalog);
            expiry.batch = floor - self.catalog.floor().await?;
            let later = Utc::now() + TimeDelta::days(1);
            ensure!(expiry.advance_floor(Some(later)).await?.to == floor);
            expiry.purge().await?;
            done(&self.database, &["sweep"], 3).await?;
            if is_cleaned {
                Cleanup::new(&self.catalog).run(100).await?;
                done(&self.database, &["sweep"], 3).await?;
            }
        }
        Ok(())
    }

    /// Tables that are gone; one is there again by its name.
    async fn gone(&self) -> Result<()> {
        let mut tables = Vec::new();
        for name in ["gone", "anew"] {
            tables.push(self.by_day(name, ["99999"]).await?);
        }
        done(&self.database, &["sweep"], 3).await?;
        for table in tables {
            table.drop_table().await?;
        }
        self.database.table(&self.catalog, "anew", &[Field::day("at")]).await?;
        done(&self.database, &["sweep"], 3).await
    }

    /// A spec that is marked and one that is trusted, too.
    async fn specs(&self) -> Result<()> {
        let columns = [Column::new("team", "long"), Column::new("at", "timestamptz")];
        let tenants = self
            .database
            .table_of(&self.catalog, "tenants", &columns, &[Field::bucket("team", 16)])
            .await?;
        tenants.evolve_spec(&[Field::day("at")]).await?;
        self.govern(&tenants, "tenants").await?;
        let trust =
            ["spec", "trust", "lake", "events.tenants", "2", "--reason", "by hand", "--yes"];
        done(&self.database, &trust, 0).await?;
        done(&self.database, &["sweep"], 3).await?;
        let earlier = "UPDATE tailrace.spec_copy SET copied_at = copied_at - interval '8 days'";
        self.database.sql(earlier).await?;
        done(&self.database, &["sweep"], 3).await
    }

    /// A clock that a person accepted, and one that is refused.
    async fn clocks(&self) -> Result<()> {
        for catalog in ["sea", "pond"] {
            let moved = format!(
                "UPDATE tailrace.clock_memory SET accepted_now = accepted_now - interval '365 days'
                  WHERE catalog_id = (SELECT catalog_id FROM hog_catalog WHERE name = '{catalog}')"
            );
            self.database.sql(&moved).await?;
            done(&self.database, &["sweep", "--catalog", catalog], 3).await?;
        }
        done(&self.database, &["clock", "accept", "sea", "--reason", "moved", "--yes"], 0).await?;
        done(&self.database, &["sweep", "--catalog", "sea"], 0).await
    }

    /// What has expired and stays, for every reason.
    async fn kept(&self) -> Result<()> {
        let columns = [Column::new("team", "long"), Column::new("at", "timestamptz")];
        let doubt = self
            .database
            .table_of(&self.catalog, "doubt", &columns, &[Field::identity("team")])
            .await?;
        doubt.evolve_spec(&[Field::day("at")]).await?;
        let now = Utc::now().timestamp_micros().to_le_bytes();
        doubt.append(vec![NewFile::of(["42"]), NewFile::of(["18000"]).upper("at", &now)]).await?;
        self.govern(&doubt, "doubt").await?;
        pass(&self.database, "doubt", &settings(), None).await?;

        self.by_day("large", ["18000", "18000", "18000"]).await?;
        let mut settings = settings();
        (settings.batch.files_per_commit, settings.batch.files_per_tuple) = (2, 2);
        settings.batch.split_oversize = false;
        expect(Outcome::Oversize, pass(&self.database, "large", &settings, None).await?)?;

        let busy = self.by_day("busy", ["18000", "18001"]).await?;
        settings.limits.row_lock_timeout = Duration::from_millis(50);
        let mut somebody = self.database.pool.begin().await?;
        sqlx::query(
            "SELECT FROM hog_data_file WHERE catalog_id = $1 AND data_file_id = $2 FOR UPDATE",
        )
        .bind(self.catalog.catalog_id)
        .bind(live_ids(&busy).await?[0])
        .execute(&mut *somebody)
        .await?;
        expect(Outcome::Busy, pass(&self.database, "busy", &settings, None).await?)?;
        somebody.rollback().await?;

        let refused = self.by_day("refused", ["18000", "18001"]).await?;
        refuse(&self.database, live_ids(&refused).await?[0]).await?;
        expect(Outcome::Poisoned, pass(&self.database, "refused", &settings, None).await?)
    }

    /// Commits that were refused and not halved to the end.
    async fn halved(&self) -> Result<()> {
        let halved = self.by_day("halved", (18_000..18_010).map(|day| day.to_string())).await?;
        refuse(&self.database, live_ids(&halved).await?[0]).await?;
        for _ in 0..2 {
            expect(Outcome::Partial, pass(&self.database, "halved", &one_commit(), None).await?)?;
        }
        Ok(())
    }

    /// A full scan of a table that stopped after its first piece, with a tuple that stayed.
    async fn read(&self) -> Result<()> {
        let read = self.by_day("read", ["x", "x", "y", "x", "99999", "18000", "18001"]).await?;
        let now = Utc::now().timestamp_micros().to_le_bytes();
        read.append(vec![NewFile::of(["18002"]).upper("at", &now)]).await?;
        let stop = CancellationToken::new();
        expect(Outcome::Dropped, pass(&self.database, "read", &small_pieces(), Some(&stop)).await?)
    }
}
