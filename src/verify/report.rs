//! The answer of a verification.

use serde::Serialize;
use utoipa::ToSchema;

use crate::rules::instant::UtcInstant;

/// How many samples of a check's findings are shown.
pub const SAMPLES: usize = 20;

/// What is checked, in the order of the report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Check {
    /// No live file is overdue under a policy that is enforced, but for those of waiting partitions.
    OverdueFiles,
    /// No live deletion vector is on a file that a drop of ours ended.
    VectorsOfDroppedFiles,
    /// Each drop of the drop history is in the catalog as the history has it.
    DropHistory,
    /// No tuple that a drop ended has a live file that is older than the drop.
    DroppedPartitions,
    /// Snapshot ids are dense from the floor to the head.
    SnapshotIds,
    /// The receipts of explicit drops agree with their snapshots and the drop history.
    Receipts,
    /// Each policy means a time field of the live partition spec.
    PolicyFields,
    /// Files of governed tables that are undatable, that can be read in two ways, or that their
    /// policy does not cover. Only reported.
    UndatedFiles,
    /// Partitions that have expired and wait, as passes have noted it: the database refuses them, they
    /// are too large, busy, or kept for their evidence. Only reported.
    WaitingPartitions,
    /// No lease of ours on files is stale.
    Leases,
    /// No policy was left behind on a table whose place another one took that has none.
    ReplacedTables,
}

impl Check {
    /// All of them.
    pub const ALL: [Check; 11] = [
        Self::OverdueFiles,
        Self::VectorsOfDroppedFiles,
        Self::DropHistory,
        Self::DroppedPartitions,
        Self::SnapshotIds,
        Self::Receipts,
        Self::PolicyFields,
        Self::UndatedFiles,
        Self::WaitingPartitions,
        Self::Leases,
        Self::ReplacedTables,
    ];

    /// The check as JSON and text have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::OverdueFiles => "overdue_files",
            Self::VectorsOfDroppedFiles => "vectors_of_dropped_files",
            Self::DropHistory => "drop_history",
            Self::DroppedPartitions => "dropped_partitions",
            Self::SnapshotIds => "snapshot_ids",
            Self::Receipts => "receipts",
            Self::PolicyFields => "policy_fields",
            Self::UndatedFiles => "undated_files",
            Self::WaitingPartitions => "waiting_partitions",
            Self::Leases => "leases",
            Self::ReplacedTables => "replaced_tables",
        }
    }
}

/// How a check came out. Of several, the last one in this order counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// All was looked at, and nothing was found.
    Ok,
    /// All was looked at; what was found is worth knowing, and no violation.
    Information,
    /// The server lacks what the check needs, for it is older: nobody can make all of the check there.
    /// In the rest nothing was found.
    Unsupported,
    /// Not all could be looked at, and nothing was found in the rest.
    Incomplete,
    /// What must not be was found.
    Violated,
}

impl Status {
    /// The status as JSON and text have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Information => "information",
            Self::Unsupported => "unsupported",
            Self::Incomplete => "incomplete",
            Self::Violated => "violated",
        }
    }
}

/// What a check has found.
#[derive(Debug, Default)]
pub struct Findings {
    /// How many were found, those beyond the samples too.
    pub count: i64,
    /// The first of them.
    pub samples: Vec<Sample>,
    /// What is to be said beside, such as the age of a count.
    pub notes: Vec<String>,
    /// Why not all of it could be listed, although the check finished.
    pub gaps: Vec<String>,
    /// What of it this server cannot support, and what it lacks for that.
    pub unsupported: Vec<String>,
}

impl Findings {
    /// One more.
    pub fn add(&mut self, sample: Sample) {
        self.count_more(1);
        self.show(sample);
    }

    /// So many more, of which samples may be shown.
    pub fn count_more(&mut self, number: i64) {
        self.count = self.count.saturating_add(number);
    }

    /// Whether a sample would be shown.
    pub fn has_room(&self) -> bool {
        self.samples.len() < SAMPLES
    }

    /// Shows a sample of what is counted, if there is room.
    pub fn show(&mut self, sample: Sample) {
        if self.has_room() {
            self.samples.push(sample);
        }
    }
}

/// One of the things that were found. What is not known, or makes no sense for it, is left out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct Sample {
    /// `namespace.table`, or `table ID` for one that is gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub table: Option<String>,
    /// The partition, as a person reads it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partition: Option<String>,
    /// The data file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data_file_id: Option<i64>,
    /// The deletion vector.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delete_file_id: Option<i64>,
    /// The snapshot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snapshot_id: Option<i64>,
    /// What is wrong with it, or worth knowing.
    pub problem: String,
}

/// How a check came out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct CheckReport {
    /// Which.
    pub check: Check,
    /// How.
    pub status: Status,
    /// How many were found: all there are, if the check is complete, else at least so many.
    pub count: i64,
    /// Whether all was looked at.
    pub complete: bool,
    /// Up to 20 of those found.
    pub samples: Vec<Sample>,
    /// Why it is not complete, what the server lacks, and what else there is to say.
    pub notes: Vec<String>,
}

/// The checks of one catalog, all at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct CatalogReport {
    /// The catalog's name.
    pub catalog: String,
    /// The moment, by the database's clock.
    pub as_of: UtcInstant,
    /// The head at that moment.
    pub snapshot_id: i64,
    /// In a fixed order.
    pub checks: Vec<CheckReport>,
}

/// A verification.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Report {
    /// `violated` if any check is, else `incomplete` if any is, else `ok`: what a server cannot support is
    /// no failure.
    pub status: Status,
    /// By name.
    pub catalogs: Vec<CatalogReport>,
}

impl CheckReport {
    pub(super) fn of(check: Check, findings: Findings, stopped: Option<String>) -> Self {
        let Findings { count, samples, notes, gaps, unsupported } = findings;
        let is_through = stopped.is_none() && gaps.is_empty();
        let complete = is_through && unsupported.is_empty();
        let only_tells = matches!(check, Check::UndatedFiles | Check::WaitingPartitions);
        let status = match (count > 0, is_through) {
            (true, _) if !only_tells => Status::Violated,
            (_, false) => Status::Incomplete,
            _ if !complete => Status::Unsupported,
            (true, true) => Status::Information,
            (false, true) => Status::Ok,
        };
        let notes = stopped.into_iter().chain(gaps).chain(unsupported).chain(notes).collect();
        CheckReport { check, status, count, complete, samples, notes }
    }
}

impl Report {
    pub(super) fn of(catalogs: Vec<CatalogReport>) -> Self {
        let checks = catalogs.iter().flat_map(|catalog| &catalog.checks);
        let worst = checks.map(|check| check.status).max().unwrap_or(Status::Ok);
        let is_fine = matches!(worst, Status::Information | Status::Unsupported);
        let status = if is_fine { Status::Ok } else { worst };
        Report { status, catalogs }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(count: i64, gaps: usize) -> Findings {
        let gaps = vec!["a gap".to_owned(); gaps];
        Findings { count, gaps, ..Findings::default() }
    }

    #[test]
    fn what_was_not_looked_at_is_never_ok() {
        let out = || Some("out of budget".to_owned());
        let table = [
            (Check::Leases, 0, 0, None, Status::Ok, true),
            (Check::Leases, 0, 1, None, Status::Incomplete, false),
            (Check::Leases, 0, 0, out(), Status::Incomplete, false),
            (Check::Leases, 2, 0, None, Status::Violated, true),
            (Check::Leases, 2, 0, out(), Status::Violated, false),
            (Check::UndatedFiles, 0, 0, None, Status::Ok, true),
            (Check::UndatedFiles, 2, 0, None, Status::Information, true),
            (Check::UndatedFiles, 2, 0, out(), Status::Incomplete, false),
            (Check::WaitingPartitions, 2, 0, None, Status::Information, true),
        ];
        for (check, count, gaps, stopped, status, complete) in table {
            let report = CheckReport::of(check, found(count, gaps), stopped);
            assert_eq!((report.status, report.complete), (status, complete), "{report:?}");
            assert_eq!(report.count, count);
        }
    }

    #[test]
    fn what_a_server_lacks_hides_nothing_found_or_not_looked_at() {
        let out = || Some("out of budget".to_owned());
        for (count, gaps, stopped, status) in [
            (0, 0, None, Status::Unsupported),
            (0, 1, None, Status::Incomplete),
            (0, 0, out(), Status::Incomplete),
            (1, 0, None, Status::Violated),
        ] {
            let unsupported = vec!["the server is older".to_owned()];
            let findings = Findings { unsupported, ..found(count, gaps) };
            let report = CheckReport::of(Check::DropHistory, findings, stopped);
            assert_eq!((report.status, report.complete), (status, false), "{report:?}");
        }
    }

    #[test]
    fn the_worst_check_counts_and_information_is_none() {
        let report = |checks: &[(Check, i64, usize)]| {
            let checks = checks
                .iter()
                .map(|(check, count, gaps)| CheckReport::of(*check, found(*count, *gaps), None))
                .collect();
            let as_of = UtcInstant::from_days(0);
            let catalog = "lake".to_owned();
            Report::of(vec![CatalogReport { catalog, as_of, snapshot_id: 1, checks }]).status
        };
        let (told, gap) = ((Check::UndatedFiles, 3, 0), (Check::Receipts, 0, 1));
        assert_eq!(report(&[]), Status::Ok);
        assert_eq!(report(&[told]), Status::Ok);
        assert_eq!(report(&[gap, told]), Status::Incomplete);
        assert_eq!(report(&[gap, (Check::Leases, 1, 0), told]), Status::Violated);
        let of_statuses = |statuses: &[Status]| {
            let checks = statuses.iter().map(|status| CheckReport {
                status: *status,
                ..CheckReport::of(Check::Leases, Findings::default(), None)
            });
            let (catalog, as_of) = ("lake".to_owned(), UtcInstant::from_days(0));
            let checks = checks.collect();
            Report::of(vec![CatalogReport { catalog, as_of, snapshot_id: 1, checks }]).status
        };
        let (unsupported, incomplete) = (Status::Unsupported, Status::Incomplete);
        assert_eq!(of_statuses(&[Status::Information, unsupported, Status::Ok]), Status::Ok);
        assert_eq!(of_statuses(&[incomplete, unsupported]), incomplete);
    }

    #[test]
    fn names_are_those_of_the_json() {
        for check in Check::ALL {
            assert_eq!(serde_json::to_value(check).expect("JSON"), check.name());
        }
        for status in [
            Status::Ok,
            Status::Information,
            Status::Unsupported,
            Status::Incomplete,
            Status::Violated,
        ] {
            assert_eq!(serde_json::to_value(status).expect("JSON"), status.name());
        }
    }
}
