//! Tables with policies, and short summaries of what a plan or a pass reports of them.

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use sqlx::AssertSqlSafe;
use tailrace::catalog::connect::close;
use tailrace::catalog::specs::table_shape;
use tailrace::catalog::tables::{LiveTable, catalogs, live_tables};
use tailrace::guards::Guards;
use tailrace::policy::field::FieldExpression;
use tailrace::policy::history::Changer;
use tailrace::policy::present::PolicyField;
use tailrace::policy::store;
use tailrace::policy::{Mode, Policy, Source};
use tailrace::rules::keep::Keep;
use tailrace::sweep::Scope;
use tailrace::sweep::plan::TablePlan;
use tailrace::sweep::plan_report::PlanReport;
use tailrace::sweep::planning::{Plans, plan_all};
use tailrace::sweep::report::{Outcome, PassReport, TableReport};
use tailrace_kit::lake::{Catalog, Column, Field, Table};

use super::TestDatabase;
use super::program::settings;

/// Partition values by key index, as they are stored.
pub type Values = Vec<Option<String>>;

/// Partition values of which none is null.
pub fn values<const N: usize>(texts: [&str; N]) -> Values {
    texts.into_iter().map(|text| Some(text.to_owned())).collect()
}

/// What the program did.
#[derive(Debug)]
pub struct Ran {
    /// The exit code.
    pub code: i32,
    /// All of stdout.
    pub out: String,
    /// All of stderr.
    pub err: String,
}

impl Ran {
    /// The log's events of this name, with all of their fields.
    pub fn events(&self, name: &str) -> Vec<serde_json::Value> {
        self.err
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .filter(|line: &serde_json::Value| line["event"] == name)
            .collect()
    }
}

impl TestDatabase {
    /// A table `events.name` with these columns and partition fields.
    pub async fn table_of(
        &self,
        catalog: &Catalog,
        name: &str,
        columns: &[Column],
        spec: &[Field],
    ) -> Result<Table> {
        let namespace = catalog.namespace("events").await?;
        Ok(catalog.create_table(&namespace, name, columns, spec).await?)
    }

    /// Gives a table a stored policy as `tailrace policy set` does, without a process for it and
    /// without copying any spec.
    pub async fn govern(&self, table: &Table, field: &str, keep: &str) -> Result<i64> {
        self.govern_as(table, field, keep, Mode::Enforce).await
    }

    /// As [`Self::govern`], in this mode.
    pub async fn govern_as(
        &self,
        table: &Table,
        field: &str,
        keep: &str,
        mode: Mode,
    ) -> Result<i64> {
        let live = self.live(table).await?;
        let mut session = self.tailrace().session().await?;
        let shape = table_shape(&mut session, table.catalog.catalog_id, table.table_id).await?;
        let source_field_id = FieldExpression::parse(field)?.resolve(&shape)?;
        let policy = Policy {
            source: Source::Stored,
            field: PolicyField::of(field, source_field_id, &shape),
            source_field_id,
            keep: Keep::parse(keep)?,
            keep_last: None,
            mode,
            fence: false,
            is_confirmed: true,
            revision: 0,
            property_text: None,
            pending: None,
            guards: Guards::default(),
        };
        let put = store::put(
            &mut session,
            &live.identity,
            Changer { name: "tester", reason: None },
            Duration::ZERO,
            |_| Ok(policy),
        )
        .await?;
        close(session).await;
        let (_, policy) = put.map_err(anyhow::Error::msg)?;
        Ok(policy.revision)
    }

    /// The table as our own code sees it.
    pub async fn live(&self, table: &Table) -> Result<LiveTable> {
        let mut session = self.tailrace().session().await?;
        let catalog = catalogs(&mut session)
            .await?
            .into_iter()
            .find(|catalog| catalog.catalog_id == table.catalog.catalog_id)
            .context("the catalog")?;
        let live = live_tables(&mut session, &catalog, false).await?;
        close(session).await;
        live.into_iter()
            .find(|live| live.identity.table_id == table.table_id)
            .context("the table is live")
    }

    /// The plans of all governed tables at a time.
    pub async fn plans(&self, at: &str) -> Result<Plans> {
        plan_all(&self.tailrace(), &settings(), &Scope::default(), Some(at.parse()?)).await
    }

    /// The plan of one table, by its name, at a time.
    pub async fn plan(&self, table: &str, at: &str) -> Result<TablePlan> {
        let scope = Scope { catalog: None, table: Some(("events".to_owned(), table.to_owned())) };
        let plans = plan_all(&self.tailrace(), &settings(), &scope, Some(at.parse()?)).await?;
        let found = plans.tables.into_iter().next();
        let (_, plan) = found.with_context(|| format!("no plan of {table}"))?;
        plan.map_err(anyhow::Error::msg)
    }

    /// As [`Self::plan_one`], as JSON has it.
    pub async fn plan_json(&self, at: &str) -> Result<serde_json::Value> {
        let report = serde_json::to_value(PlanReport::of(&self.plans(at).await?))?;
        match report["tables"].as_array().map(Vec::as_slice) {
            Some([table]) => Ok(table.clone()),
            other => bail!("not one table: {other:?}"),
        }
    }

    /// Runs the program to its end.
    pub async fn ran(&self, args: &[&str]) -> Result<Ran> {
        self.ran_with(args, &[]).await
    }

    /// Runs the program to its end, with these variables beside the database's, the log in JSON.
    pub async fn ran_with(&self, args: &[&str], env: &[(&str, &str)]) -> Result<Ran> {
        let env = [&[("TAILRACE__LOG__FORMAT", "json")], env].concat();
        let output = self.run_with(args, &env).await?;
        Ok(Ran {
            code: output.status.code().context("killed")?,
            out: String::from_utf8(output.stdout)?,
            err: String::from_utf8(output.stderr)?,
        })
    }

    /// What the program prints as JSON, which must be one line, where it is done with code 0.
    pub async fn done(&self, args: &[&str]) -> Result<serde_json::Value> {
        let ran = self.ran(args).await?;
        ensure!(ran.code == 0, "{args:?}: {ran:?}");
        Ok(serde_json::from_str(&ran.out)?)
    }

    /// The policies that `policy get` or `policy list` prints.
    pub async fn policies(&self, args: &[&str]) -> Result<serde_json::Value> {
        Ok(self.done(args).await?["policies"].take())
    }

    /// Runs statements as the database's owner, with the lake's schema first.
    pub async fn sql(&self, statements: &str) -> Result<()> {
        sqlx::raw_sql(AssertSqlSafe(statements.to_owned())).execute(self.lake.pool()).await?;
        Ok(())
    }

    /// The one value that a query gives, as text; `None` for null or no row.
    pub async fn text(&self, query: &str) -> Result<Option<String>> {
        let statement = format!("SELECT (SELECT ({query})::text)");
        Ok(sqlx::query_scalar(AssertSqlSafe(statement)).fetch_one(self.lake.pool()).await?)
    }

    /// Every row that a query gives, as JSON texts in the order of the query.
    pub async fn rows(&self, query: &str) -> Result<Vec<String>> {
        let statement = format!("SELECT to_jsonb(q)::text FROM ({query}) AS q");
        Ok(sqlx::query_scalar(AssertSqlSafe(statement)).fetch_all(self.lake.pool()).await?)
    }
}

/// The partition values of the table's live files, in the order of the files' ids.
pub async fn live_values(table: &Table) -> Result<Vec<Values>> {
    Ok(table.live_files().await?.into_iter().map(|file| file.values).collect())
}

/// The ids of the table's live files.
pub async fn live_ids(table: &Table) -> Result<Vec<i64>> {
    Ok(table.live_files().await?.into_iter().map(|file| file.data_file_id).collect())
}

/// What expires, as (spec, values, files), in the plan's order.
pub fn expired(plan: &TablePlan) -> Vec<(i64, Values, i64)> {
    plan.expired
        .iter()
        .map(|tuple| (tuple.tuple.spec_id, tuple.tuple.tuple.values.clone(), tuple.counts.files))
        .collect()
}

/// What stays, as (reason, files), in the order of a report.
pub fn kept(plan: &TablePlan) -> Vec<(&'static str, i64)> {
    let kept_counts = plan.kept_counts.iter().flat_map(|kept_counts| &kept_counts.kept);
    kept_counts.map(|(reason, group)| (reason.name(), group.files)).collect()
}

/// The report of a table by its name.
pub fn of_table<'a>(report: &'a PassReport, table: &str) -> &'a TableReport {
    let found = report.tables.iter().find(|found| found.table == table);
    found.unwrap_or_else(|| panic!("no report of {table}: {report:?}"))
}

/// Each table with its outcome.
pub fn outcomes(report: &PassReport) -> Vec<(&str, Outcome)> {
    report.tables.iter().map(|table| (table.table.as_str(), table.outcome)).collect()
}

/// What each snapshot ended, as (files, displays of its partitions).
pub fn snapshots(report: &TableReport) -> Vec<(i64, Vec<&str>)> {
    report
        .snapshots
        .iter()
        .map(|snapshot| {
            let partitions = snapshot.partitions.iter();
            (snapshot.files_ended, partitions.map(|partition| partition.display.as_str()).collect())
        })
        .collect()
}
