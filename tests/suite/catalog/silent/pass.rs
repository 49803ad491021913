//! Tests of a pass on a network that falls silent.

use std::time::Duration;

use anyhow::Result;
use tailrace::catalog::connect::Database;
use tailrace::sweep::report::{Outcome, PassReport};
use tailrace::sweep::{Scope, Settings, run_pass};
use tokio_util::sync::CancellationToken;

use super::{BOUND, Lake, at_text, silent_at};
use crate::drop::races::patient;

/// Two commits, of a day each, with short limits under the lock.
fn settings() -> Settings {
    let mut settings = patient();
    settings.batch.files_per_commit = 2;
    settings.limits.lock_timeout = Duration::from_secs(1);
    settings.limits.max_hold = Duration::from_secs(1);
    settings
}

async fn pass(through: &Database) -> Result<PassReport> {
    let (scope, stop) = (Scope::default(), CancellationToken::new());
    run_pass(through, &settings(), &scope, &stop, &|_| {}).await
}

/// What was dropped was dropped whole and once, and the next pass does the rest.
#[tokio::test]
async fn it_ends_and_the_next_one_does_the_rest() -> Result<()> {
    // An error is an end, too.
    let act = async |_: &Lake, through: &Database| {
        drop(pass(through).await);
        Ok(())
    };
    let after = async |lake: &Lake| {
        let before = lake.drops().await?;
        let mut report = lake.database.sweep().await?;
        assert_eq!((report.skipped_catalogs.len(), report.failed_catalogs.len()), (0, 0));
        let table = report.tables.pop().expect("the table");
        let ended: i64 = before.iter().map(|(_, files)| files).sum();
        let outcome = if ended == 4 { Outcome::NothingToDo } else { Outcome::Dropped };
        assert_eq!((table.outcome, &table.error), (outcome, &None));
        let drops = lake.drops().await?;
        assert_eq!(drops[..before.len()], before);
        assert_eq!(drops.iter().map(|(_, files)| files).sum::<i64>(), 4);
        assert_eq!(lake.ends().await?[4..], [None, None]);
        Ok(())
    };
    silent_at(&["COMMIT"], 1, act, after).await
}

/// Where only its own connection fell silent, it goes on with another one, although to the server the
/// silent one stands and has the lease. What was committed is reported, and nothing twice.
#[tokio::test]
async fn it_goes_on_with_another_connection() -> Result<()> {
    let texts = ["pg_advisory_xact_lock", "for share nowait", "insert into tailrace.drop_history"];
    for silence in texts.iter().flat_map(|text| at_text(text)).filter(|silence| silence.lets_in) {
        let lake = Lake::new().await?;
        let (proxy, through) = lake.network().await?;
        proxy.silence(silence);
        let mut report = tokio::time::timeout(BOUND, pass(&through)).await??;
        assert!(proxy.is_silent(), "{silence:?}");
        let table = report.tables.pop().expect("the table");
        assert_eq!((table.outcome, &table.error), (Outcome::Dropped, &None), "{silence:?}");
        let told: Vec<_> = table.snapshots.iter().map(|s| (s.snapshot_id, s.files_ended)).collect();
        assert_eq!((told.len(), lake.drops().await?), (2, told), "{silence:?}");
    }
    Ok(())
}
