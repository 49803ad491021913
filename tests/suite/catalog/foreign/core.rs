//! Runs the core of the program on a lake, and records its output and the rows afterwards.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, ConnectOptions};
use tailrace::catalog::connect::close;
use tailrace::claims::renew;
use tailrace::explicit::call::{TableRef, TruncateBody};
use tailrace::explicit::truncate;
use tailrace::feed;
use tailrace_kit::lake::{Catalog, Field, NewFile, Table};

use super::mask::masked;
use crate::doctor::debt::Tier;
use crate::explicit::patient;
use crate::feed::with_ends;
use crate::support::TestDatabase;
use crate::support::program::days_ago;

/// A catalog with tables for everything that the program does.
pub struct Lake {
    pub database: TestDatabase,
    catalog: Catalog,
    head: i64,
    today: Today,
}

/// What was said at each step, and the rows of each table at the end; without what differs between
/// two runs.
pub type Seen = Vec<(String, Value)>;

/// The day on which a lake is made. Two that are compared are made of one, and what their files
/// are is the same a day later.
#[derive(Clone, Copy)]
pub struct Today(i64);

impl Today {
    pub fn now() -> Result<Self> {
        Ok(Today(days_ago(0).parse()?))
    }

    fn ago(self, days: i64) -> String {
        (self.0 - days).to_string()
    }
}

async fn table(
    database: &TestDatabase,
    catalog: &Catalog,
    name: &str,
    today: Today,
) -> Result<Table> {
    let table = database.table(catalog, name, &[Field::day("at")]).await?;
    let ages = [400, 40, 30, 12, 11, 3, 1];
    let files = ages.map(|age| NewFile::of([today.ago(age)]).records(10).bytes(100));
    let ids = table.append(files.to_vec()).await?.file_ids;
    table.register_vector(ids[0], 3, None).await?;
    table.register_vector(ids[6], 3, None).await?;
    Ok(table)
}

impl Lake {
    /// In this database, in which nobody else's object may be yet.
    pub async fn within(
        database: TestDatabase,
        has_properties: bool,
        today: Today,
    ) -> Result<Self> {
        let catalog = database.catalog("lake").await?;
        let mut head = 0;
        for name in ["free", "governed", "explicit", "emptied"] {
            table(&database, &catalog, name, today).await?;
        }
        let fields = [Field::identity("kind"), Field::day("at")];
        let two = database.table(&catalog, "two", &fields).await?;
        let two_files =
            [today.ago(12), today.ago(2)].map(|day| NewFile::of(["it's".to_owned(), day]).bytes(7));
        head = head.max(two.append(two_files.to_vec()).await?.snapshot_id);
        if has_properties {
            let property = table(&database, &catalog, "property", today).await?;
            let text = r#"{"field":"at","keep":"35d"}"#;
            head = property.set_property("partition_retention", Some(text)).await?;
        }
        let governed = catalog.open_table("events", "governed").await?;
        let values: Vec<String> = [12, 11, 1].map(|age| today.ago(age)).into();
        let tiers = [[4, 4, 4, 400, 400, 40], [2, 2, 1, 90, 30, 9], [3, 0, 1, 300, 0, 30]];
        let values: Vec<[&str; 1]> = values.iter().map(|day| [day.as_str()]).collect();
        if has_properties {
            let tiers: Vec<Tier<'_>> = tiers
                .iter()
                .zip(&values)
                .map(|(counts, values)| Tier {
                    generation: 3,
                    table: &governed,
                    values: Some(values),
                    counts: *counts,
                })
                .collect();
            database.sample(&tiers).await?;
            database.publish(&governed, 3, 3).await?;
        }
        Ok(Lake { database, catalog, head, today })
    }

    async fn said(&self, args: &[&str]) -> Result<Value> {
        let ran = self.database.ran(args).await?;
        let events: Vec<Value> = ran
            .err
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok())
            .map(|line| json!({"event": line["event"], "error": line["error"]}))
            .collect();
        // What is no JSON of one line is kept line by line.
        let out = ran.out.lines().map(|line| {
            serde_json::from_str(line).unwrap_or_else(|_| Value::String(line.to_owned()))
        });
        let plain: Vec<&str> = ran.err.lines().filter(|line| !line.starts_with('{')).collect();
        Ok(json!({
            "code": ran.code, "out": out.collect::<Vec<_>>(), "events": events, "err": plain,
        }))
    }

    /// Does everything that the program does, with whatever is in the database.
    pub async fn run(&self) -> Result<Seen> {
        let mut seen = Seen::new();
        let doctor = ["doctor", "--output", "json"];
        let verify = ["verify", "--output", "json"];
        let sweep = ["sweep", "--output", "json"];
        let set = |table: &'static str, keep: &'static str| {
            ["policy", "set", "lake", table, "--field", "at", "--keep", keep]
        };
        let key = "00000000-0000-4000-8000-000000000001";
        let day = json!([self.today.ago(30)]).to_string();
        let drop = [
            "drop",
            "lake",
            "events.explicit",
            "--partition",
            &day,
            "--idempotency-key",
            key,
            "--yes",
            "--output",
            "json",
        ];
        for args in [
            &["migrate"][..],
            &set("events.governed", "7d"),
            &set("events.two", "7d"),
            &["policy", "list", "--output", "json"],
            &["policy", "get", "lake", "events.governed", "--output", "json"],
            &["plan", "--output", "json"],
        ] {
            seen.push((args.join(" "), self.said(args).await?));
        }
        let renewed = renew(&self.database.tailrace(), &crate::claims::settings(), None).await?;
        seen.push(("shield".to_owned(), json!([renewed.files, format!("{:?}", renewed.failed)])));
        self.window(&mut seen).await?;
        for args in [&["debt", "--output", "json"][..], &sweep, &sweep, &drop, &drop] {
            seen.push((args.join(" "), self.said(args).await?));
        }
        self.emptied(&mut seen).await?;
        self.changes(&mut seen).await?;
        let renewed = renew(&self.database.tailrace(), &crate::claims::settings(), None).await?;
        seen.push(("shield".to_owned(), json!([renewed.files, format!("{:?}", renewed.failed)])));
        for args in [
            &["trace", "--output", "json"][..],
            &["policy", "unset", "lake", "events.two", "--yes"],
            &sweep,
            &verify,
            &doctor,
        ] {
            seen.push((args.join(" "), self.said(args).await?));
        }
        for (name, rows) in self.rows().await? {
            seen.push((name, Value::Array(rows)));
        }
        Ok(seen.into_iter().map(|(step, value)| (step, masked(value))).collect())
    }

    /// As a planner asks, from a session whose path leads to the catalog's schema before all others.
    async fn window(&self, seen: &mut Seen) -> Result<()> {
        let options = self.database.pool.connect_options().as_ref().clone();
        let mut planner =
            options.options([("search_path", "public, pg_catalog")]).connect().await?;
        for file in 1..=40_i64 {
            let asked = format!(
                "SELECT tailrace.in_drop_window(f.catalog_id, f.table_id, f.spec_id, ARRAY(
                   SELECT v.value FROM public.hog_file_partition_value v
                   WHERE v.data_file_id OPERATOR(pg_catalog.=) f.data_file_id
                   ORDER BY v.key_index))
                 FROM public.hog_data_file f
                 WHERE f.data_file_id OPERATOR(pg_catalog.=) {file}::bigint"
            );
            let answer: Option<bool> =
                sqlx::query_scalar(AssertSqlSafe(asked)).fetch_optional(&mut planner).await?;
            seen.push((format!("in the window: {file}"), json!(answer)));
        }
        let rows: Vec<(i64, i32, String)> = sqlx::query_as(
            "SELECT w.table_id, w.key_index, w.transform FROM tailrace.drop_window w
             ORDER BY w.table_id, w.key_index",
        )
        .fetch_all(&mut planner)
        .await?;
        seen.push(("the view".to_owned(), json!(rows)));
        Ok(())
    }

    async fn emptied(&self, seen: &mut Seen) -> Result<()> {
        let mut session = self.database.tailrace().session().await?;
        let table = named("emptied");
        let uuid = Some(self.catalog.open_table("events", "emptied").await?.table_uuid);
        let body = TruncateBody::default();
        let done = truncate(&mut session, &table, uuid, &body, "me", &patient()).await?;
        seen.push(("truncate".to_owned(), serde_json::to_value(done)?));
        close(session).await;
        Ok(())
    }

    async fn changes(&self, seen: &mut Seen) -> Result<()> {
        let mut session = self.database.tailrace().session().await?;
        let head: i64 = sqlx::query_scalar(
            "SELECT c.last_snapshot_id FROM public.hog_catalog c
             WHERE c.catalog_id OPERATOR(pg_catalog.=) $1",
        )
        .bind(self.catalog.catalog_id)
        .fetch_one(&mut session)
        .await?;
        for table in ["governed", "explicit", "emptied"] {
            let query = feed::ChangesQuery { limit: Some(1_000), ..with_ends(self.head, head) };
            let told = match feed::open(&mut session, &named(table), &query).await {
                Ok(changes) => serde_json::to_value(changes.page(&mut session).await?)?,
                Err(problem) => problem.body(),
            };
            seen.push((format!("changes of {table}"), told));
        }
        close(session).await;
        Ok(())
    }

    /// The rows of every table of the server's and of ours, read past everything of anybody.
    async fn rows(&self) -> Result<BTreeMap<String, Vec<Value>>> {
        let options = self.database.pool.connect_options().as_ref().clone();
        let mut session = options.options([("search_path", "pg_catalog")]).connect().await?;
        let tables: Vec<String> = sqlx::query_scalar(
            "SELECT format('%I.%I', n.nspname, c.relname)
             FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
             WHERE c.relkind = 'r' AND (n.nspname = 'tailrace'
                                        OR n.nspname = 'public' AND c.relname LIKE 'hog\\_%')
             ORDER BY 1",
        )
        .fetch_all(&mut session)
        .await?;
        let mut all = BTreeMap::new();
        for table in tables {
            // Rows are compared by keys; what is made up is no order.
            let rows = format!("SELECT to_jsonb(t) FROM {table} t");
            let rows: Vec<Value> =
                sqlx::query_scalar(AssertSqlSafe(rows)).fetch_all(&mut session).await?;
            let mut rows: Vec<Value> = rows.into_iter().map(masked).collect();
            rows.sort_by_key(Value::to_string);
            all.insert(table, rows);
        }
        Ok(all)
    }
}

fn named(table: &str) -> TableRef {
    crate::feed::table_ref("lake", "events", table)
}

/// The steps at which two runs differ, with both sides.
pub fn differences(expected: &Seen, seen: &Seen) -> Result<Vec<String>> {
    anyhow::ensure!(expected.len() == seen.len());
    let pairs = expected.iter().zip(seen);
    Ok(pairs
        .filter(|(one, other)| one != other)
        .map(|((step, expected), (other, seen))| format!("{step}/{other}:\n{expected}\n{seen}"))
        .collect())
}

/// What was seen at a step.
pub fn at<'a>(seen: &'a Seen, step: &str) -> Result<&'a Value> {
    let found = seen.iter().find(|(name, _)| name.starts_with(step));
    found.map(|(_, value)| value).with_context(|| format!("no step {step}"))
}
