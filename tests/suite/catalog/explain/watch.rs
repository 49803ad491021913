//! Records how the server executes the statements that sessions of tailrace send.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};
use serde_json::Value;
use tailrace::catalog::connect::Database;
use tracing::field::{Field, Visit};
use tracing::subscriber::DefaultGuard;
use tracing::{Event, Metadata, Subscriber};
use tracing_subscriber::layer::{self, SubscriberExt};
use tracing_subscriber::{Layer, registry};

use crate::support::TestDatabase;

/// Where the driver tells the notices of the server.
const NOTICES: &str = "sqlx::postgres::notice";

/// How often a statement is planned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Planned {
    /// For its parameters each time, as in the first five executions of a session.
    EachTime,
    /// Once for all parameters, as the server may do from the sixth on.
    Once,
}

/// How a table was read by a statement.
#[derive(Debug, Clone, PartialEq)]
pub struct Scan {
    /// The kind of scan, and how it was come to.
    pub kind: String,
    /// The index; of a scan without one, the table.
    pub by: String,
    /// How often it was begun.
    pub times: f64,
    /// Rows that it looked at, those that a filter took away among them. A server before 18 tells
    /// the mean over all times, rounded: then it is the least that they can have been.
    pub rows: f64,
}

/// A statement that was carried out.
#[derive(Debug, Clone, PartialEq)]
pub struct Executed {
    /// Its text.
    pub sql: String,
    /// Its scans of tables, those that were never begun left out.
    pub scans: Vec<Scan>,
    /// Pairs of rows that its joins compared and that did not belong together.
    pub compared: f64,
}

/// Gathers what the sessions of [`Watch::over`] have the server do, for as long as it lives and in
/// this thread: a test's runtime has no other.
pub struct Watch {
    notices: Notices,
    _set: DefaultGuard,
}

impl Watch {
    /// Begins to gather.
    pub fn begin() -> Self {
        let notices = Notices::default();
        let subscriber = registry().with(notices.clone());
        Watch { notices, _set: tracing::subscriber::set_default(subscriber) }
    }

    /// The database, in sessions that explain what they execute.
    pub fn over(&self, database: &TestDatabase, planned: Planned) -> Database {
        let direct = database.tailrace();
        let plan_cache_mode = match planned {
            Planned::EachTime => "force_custom_plan",
            Planned::Once => "force_generic_plan",
        };
        let options = direct.options.options([
            ("plan_cache_mode", plan_cache_mode),
            ("client_min_messages", "notice"),
            ("session_preload_libraries", "auto_explain"),
            ("auto_explain.log_min_duration", "0"),
            ("auto_explain.log_analyze", "on"),
            ("auto_explain.log_timing", "off"),
            ("auto_explain.log_format", "json"),
            ("auto_explain.log_level", "notice"),
        ]);
        Database { options, ..direct }
    }

    /// What was executed since this was asked last.
    pub fn take(&self) -> Result<Vec<Executed>> {
        let mut told = self.notices.told.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *told)
            .iter()
            .filter_map(|notice| notice.split_once("plan:\n"))
            .map(|(_, explained)| {
                let explained: Value = serde_json::from_str(explained)?;
                let (mut scans, mut compared) = (Vec::new(), 0.0);
                gather(&explained["Plan"], &mut scans, &mut compared);
                let sql = explained["Query Text"].as_str().context("no text")?.to_owned();
                Ok(Executed { sql, scans, compared })
            })
            .collect()
    }
}

/// The scans of a node and of those below it, and what their joins compared in vain.
fn gather(node: &Value, scans: &mut Vec<Scan>, compared: &mut f64) {
    let times = node["Actual Loops"].as_f64().unwrap_or_default();
    let rows = |name: &str| match &node[name] {
        mean if mean.is_i64() && times > 1.0 => {
            mean.as_f64().map_or(0.0, |mean| mean - 0.5).max(0.0)
        }
        mean => mean.as_f64().unwrap_or_default(),
    };
    let kind = node["Node Type"].as_str().unwrap_or_default();
    let by = node["Index Name"].as_str().or(node["Relation Name"].as_str());
    // The rows of a bitmap are those that the index below gave.
    let is_scan = kind.ends_with("Scan") && kind != "Bitmap Heap Scan";
    if let Some(by) = by.filter(|_| is_scan && times > 0.0) {
        let each = rows("Actual Rows")
            + rows("Rows Removed by Filter")
            + rows("Rows Removed by Index Recheck");
        scans.push(Scan { kind: kind.to_owned(), by: by.to_owned(), times, rows: each * times });
    }
    *compared += rows("Rows Removed by Join Filter") * times;
    for below in node["Plans"].as_array().into_iter().flatten() {
        gather(below, scans, compared);
    }
}

#[derive(Clone, Default)]
struct Notices {
    told: Arc<Mutex<Vec<String>>>,
}

impl<S: Subscriber> Layer<S> for Notices {
    fn enabled(&self, metadata: &Metadata<'_>, _: layer::Context<'_, S>) -> bool {
        metadata.target() == NOTICES
    }

    fn on_event(&self, event: &Event<'_>, _: layer::Context<'_, S>) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        event.record(&mut Text(&mut told));
    }
}

struct Text<'a>(&'a mut Vec<String>);

impl Visit for Text<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "message" {
            self.0.push(value.to_owned());
        }
    }

    fn record_debug(&mut self, _: &Field, _: &dyn std::fmt::Debug) {}
}
