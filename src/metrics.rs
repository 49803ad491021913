//! The metrics, in the text format of OpenMetrics, which Prometheus reads.

use std::sync::atomic::AtomicU64;
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use crate::claims::Renewed;
use crate::sweep::report::PassReport;

/// The content type of [`Metrics::text`].
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Waits and holds of the commit lock, in seconds.
const LOCK_BUCKETS: [f64; 13] =
    [0.001, 0.003, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0];

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PassLabels {
    result: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    method: &'static str,
    route: String,
    status: u16,
}

/// All metrics, counted since the daemon started.
pub struct Metrics {
    registry: Registry,
    passes: Family<PassLabels, Counter>,
    last_pass: Gauge<f64, AtomicU64>,
    tables_failed: Gauge,
    snapshots: Counter,
    files_ended: Counter,
    lock_wait: Histogram,
    lock_hold: Histogram,
    requests: Family<RequestLabels, Counter>,
    shield_renewals: Family<PassLabels, Counter>,
    shielded_files: Gauge,
    shield_renewal: Histogram,
    pauses: Gauge,
    holds: Gauge,
    pending_policies: Gauge,
    blast_radius_files: Gauge,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("tailrace");
        let metrics = Metrics {
            registry: Registry::default(),
            passes: Family::default(),
            last_pass: Gauge::default(),
            tables_failed: Gauge::default(),
            snapshots: Counter::default(),
            files_ended: Counter::default(),
            lock_wait: Histogram::new(LOCK_BUCKETS),
            lock_hold: Histogram::new(LOCK_BUCKETS),
            requests: Family::default(),
            shield_renewals: Family::default(),
            shielded_files: Gauge::default(),
            shield_renewal: Histogram::new(LOCK_BUCKETS),
            pauses: Gauge::default(),
            holds: Gauge::default(),
            pending_policies: Gauge::default(),
            blast_radius_files: Gauge::default(),
        };
        registry.register("passes", "Passes, by how they ended", metrics.passes.clone());
        registry.register_with_unit(
            "last_pass_timestamp",
            "When the last pass ended, in Unix time; 0 before the first",
            Unit::Seconds,
            metrics.last_pass.clone(),
        );
        registry.register(
            "tables_failed",
            "Tables of the last pass that somebody has to look at",
            metrics.tables_failed.clone(),
        );
        registry.register("snapshots", "Snapshots made by passes", metrics.snapshots.clone());
        registry.register("files_ended", "Data files ended", metrics.files_ended.clone());
        registry.register_with_unit(
            "commit_lock_wait",
            "Waits of passes for the commit lock, of commits that ended something",
            Unit::Seconds,
            metrics.lock_wait.clone(),
        );
        registry.register_with_unit(
            "commit_lock_hold",
            "Holds of the commit lock by passes, of commits that ended something",
            Unit::Seconds,
            metrics.lock_hold.clone(),
        );
        registry.register(
            "http_requests",
            "Requests, by method, path template and status; 499 went away unanswered",
            metrics.requests.clone(),
        );
        registry.register(
            "shield_renewals",
            "Renewals of the claims on files that are about to be dropped, by how they ended",
            metrics.shield_renewals.clone(),
        );
        registry.register(
            "shielded_files",
            "Files that the last renewal claimed",
            metrics.shielded_files.clone(),
        );
        registry.register_with_unit(
            "shield_renewal",
            "How long renewals took",
            Unit::Seconds,
            metrics.shield_renewal.clone(),
        );
        registry.register(
            "pauses",
            "Pauses in force when the last pass began",
            metrics.pauses.clone(),
        );
        registry.register(
            "holds",
            "Holds of partitions or tables when the last pass began",
            metrics.holds.clone(),
        );
        registry.register(
            "pending_policies",
            "Policies of which a change waited for guard.policy_grace when the last pass began",
            metrics.pending_policies.clone(),
        );
        registry.register(
            "blast_radius_files",
            "Files that were held because they are too many when the last pass began",
            metrics.blast_radius_files.clone(),
        );
        Metrics { registry, ..metrics }
    }
}

impl Metrics {
    /// Counts a pass that finished.
    pub fn pass_done(&self, report: &PassReport) {
        let failed = !report.failed_catalogs.is_empty();
        self.pass_ended(if failed { "catalogs_failed" } else { "done" });
        self.tables_failed.set(i64::try_from(report.failures()).unwrap_or(i64::MAX));
        self.pauses.set(i64::try_from(report.pauses.len()).unwrap_or(i64::MAX));
        self.holds.set(i64::try_from(report.holds).unwrap_or(i64::MAX));
        self.pending_policies.set(report.waits.pending_policies);
        self.blast_radius_files.set(report.waits.blast_radius_files);
        self.files_ended(report.counts().files);
        for snapshot in report.tables.iter().flat_map(|table| &table.snapshots) {
            self.snapshots.inc();
            self.lock_wait.observe(snapshot.lock_wait_ms / 1e3);
            self.lock_hold.observe(snapshot.lock_hold_ms / 1e3);
        }
    }

    /// Counts a pass that failed.
    pub fn pass_failed(&self, database_away: bool) {
        self.pass_ended(if database_away { "database_away" } else { "failed" });
    }

    fn pass_ended(&self, result: &'static str) {
        self.passes.get_or_create(&PassLabels { result }).inc();
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        self.last_pass.set(now.as_ref().map_or(0.0, Duration::as_secs_f64));
    }

    /// Counts files that a drop ended.
    pub fn files_ended(&self, files: i64) {
        self.files_ended.inc_by(u64::try_from(files).unwrap_or(0));
    }

    /// Counts a renewal of the claims that finished.
    pub fn shield_renewed(&self, renewed: &Renewed) {
        let result = if renewed.failed.is_empty() { "done" } else { "tables_failed" };
        self.shield_renewals.get_or_create(&PassLabels { result }).inc();
        self.shielded_files.set(i64::try_from(renewed.files).unwrap_or(i64::MAX));
        self.shield_renewal.observe(renewed.took.as_secs_f64());
    }

    /// Counts a renewal of the claims that failed.
    pub fn shield_failed(&self) {
        self.shield_renewals.get_or_create(&PassLabels { result: "failed" }).inc();
    }

    /// Counts a request.
    pub fn request(&self, method: &'static str, route: &str, status: u16) {
        let labels = RequestLabels { method, route: route.to_owned(), status };
        self.requests.get_or_create(&labels).inc();
    }

    /// All metrics as text.
    pub fn text(&self) -> String {
        let mut text = String::new();
        match encode(&mut text, &self.registry) {
            Ok(()) => text,
            // Writing to a String does not fail.
            Err(std::fmt::Error) => String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claims::Failed;
    use crate::rules::instant::UtcInstant;
    use crate::sweep::report::{CatalogFailure, Waits};

    /// How passes and renewals may end. (Names, units and types are pinned in `tests/suite/pins`.)
    #[test]
    fn results_are_these() {
        let metrics = Metrics::default();
        let mut report = PassReport {
            as_of: UtcInstant::EARLIEST,
            tables: Vec::new(),
            pauses: Vec::new(),
            holds: 0,
            waits: Waits::default(),
            skipped_catalogs: Vec::new(),
            failed_catalogs: Vec::new(),
            gave_way: false,
        };
        metrics.pass_done(&report);
        let failure = CatalogFailure { catalog: "lake".into(), error: "no".into(), away: false };
        report.failed_catalogs.push(failure);
        metrics.pass_done(&report);
        metrics.pass_failed(true);
        metrics.pass_failed(false);
        let mut renewed = Renewed::default();
        metrics.shield_renewed(&renewed);
        let failed = Failed { catalog: "lake".into(), table: None, error: "no".into() };
        renewed.failed.push(failed);
        metrics.shield_renewed(&renewed);
        metrics.shield_failed();
        let text = metrics.text();
        let mut results: Vec<&str> =
            text.lines().filter(|line| line.contains("{result=")).collect();
        results.sort_unstable();
        assert_eq!(
            results,
            [
                "tailrace_passes_total{result=\"catalogs_failed\"} 1",
                "tailrace_passes_total{result=\"database_away\"} 1",
                "tailrace_passes_total{result=\"done\"} 1",
                "tailrace_passes_total{result=\"failed\"} 1",
                "tailrace_shield_renewals_total{result=\"done\"} 1",
                "tailrace_shield_renewals_total{result=\"failed\"} 1",
                "tailrace_shield_renewals_total{result=\"tables_failed\"} 1",
            ]
        );
    }
}
