//! Leases of tailrace that protect files which need no protection any more.

use std::collections::BTreeSet;
use std::time::Duration;

use super::Scene;
use super::probe::{Probe, Stop};
use super::report::Findings;
use super::report::Sample;
use crate::catalog::checks::leases::{Lease, lease_tables, leases};
use crate::claims::LEASE;
use crate::config::Config;
use crate::policy::governed::Governed;
use crate::rules::instant::UtcInstant;

/// Leases in one piece.
const PIECE: i64 = 1_000;

/// How long a lease may outlive the policy that it was taken for: only the next renewal lets go of it, which may be
/// two times `compaction.renew_every` away. No less than `grace`, which files have.
pub fn renewal_grace(config: &Config, grace: Duration) -> Duration {
    config.compaction.renew_every.get().saturating_mul(2).max(grace)
}

/// Looks at every lease of our claimant in the catalog.
pub async fn check(
    probe: &mut Probe<'_>,
    scene: &Scene<'_>,
    findings: &mut Findings,
) -> Result<(), Stop> {
    let there = lease_tables(probe.turn().await?).await?;
    if !there.claims {
        let note = "the server is older than V15 and has no compaction claims: there are no leases";
        findings.unsupported.push(note.to_owned());
        return Ok(());
    }
    if !there.claimants {
        findings.notes.push("no lease was ever taken".to_owned());
        return Ok(());
    }
    scene.trusts_clock(probe).await?;
    let then = scene.now.minus(scene.settings.renewal_grace);
    // A policy that has just changed may have its leases released in this moment.
    let is_fine = |table: &&Governed| {
        table.enforced().is_some() || table.since.is_some_and(|since| since > then)
    };
    let fine = scene.governed()?.filter(is_fine);
    let fine: BTreeSet<i64> = fine.map(|table| table.live.identity.table_id).collect();
    let mut after = (i64::MIN, String::new());
    loop {
        let (turn, from) = (probe.turn().await?, (after.0, after.1.as_str()));
        let found = leases(turn, scene.catalog.catalog_id, from, PIECE).await?;
        for lease in found.iter().filter(|lease| scene.has(lease.table_id)) {
            let is_fine = fine.contains(&lease.table_id);
            if let Some(problem) = problem(lease, is_fine, scene.now, then) {
                findings.add(Sample {
                    table: Some(scene.name(lease.table_id)),
                    problem: format!("the lease {} {problem}", lease.group_key),
                    ..Sample::default()
                });
            }
        }
        match found.last() {
            Some(last) if found.len() as i64 == PIECE => {
                after = (last.table_id, last.group_key.clone());
            }
            _ => return Ok(()),
        }
    }
}

/// What is stale about a lease, a grace after `then`; `is_fine` where the table has a policy that is
/// enforced, or was until just now. One of a table without any policy may be released in this moment
/// as well, and has a grace from when it was last renewed: then a policy was enforced.
fn problem(lease: &Lease, is_fine: bool, now: UtcInstant, then: UtcInstant) -> Option<String> {
    let (files, expires_at) = (lease.files, UtcInstant::from(lease.expires_at));
    if expires_at <= now {
        return Some(format!("of {files} files expired at {expires_at}, and nobody renewed it"));
    }
    let renewed_at = expires_at.minus(LEASE);
    (!is_fine && renewed_at <= then).then(|| {
        format!("keeps {files} files from compaction, and no policy is enforced on the table")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_is_stale_when_it_has_expired_or_stands_for_nothing() {
        let now = UtcInstant::from_days(20);
        let minutes = |count: u64| Duration::from_secs(60 * count);
        for (left, is_fine, is_stale) in [
            (30, true, false),
            (1, true, false),
            (0, true, true),
            // Renewed 19 and 20 minutes ago, with a grace of 20.
            (11, false, false),
            (10, false, true),
            (0, false, true),
        ] {
            let lease = Lease {
                table_id: 7,
                group_key: "a".to_owned(),
                files: 2,
                expires_at: now.plus(minutes(left)).to_chrono().expect("a time"),
            };
            let found = problem(&lease, is_fine, now, now.minus(minutes(20)));
            assert_eq!(found.is_some(), is_stale, "{lease:?} {found:?}");
        }
    }
}
