//! Tests of a renewal of claims, doctor and verify on a network that falls silent.

use std::time::Duration;

use anyhow::Result;
use tailrace::catalog::connect::Database;
use tailrace::claims::renew;
use tailrace::config::{Config, LoadOptions};
use tailrace::doctor::{Doctor, examine};
use tailrace::sweep::Scope;
use tailrace::verify::{Settings, verify};

use super::{Lake, silent_at};
use crate::claims::{rows_of, settings as claim_settings};
use crate::support::program::settings;

/// The claims of a renewal are those of before or those of after, and the next one writes them.
#[tokio::test]
async fn a_renewal_of_claims_ends() -> Result<()> {
    let act = async |_: &Lake, through: &Database| {
        drop(renew(through, &claim_settings(), None).await);
        Ok(())
    };
    let after = async |lake: &Lake| {
        lake.let_go().await?;
        let claimed = async || -> Result<Vec<i64>> {
            let rows = rows_of(&lake.database, &lake.table).await?;
            let mut ids: Vec<i64> = rows.into_iter().flat_map(|(_, ids)| ids).collect();
            ids.sort_unstable();
            Ok(ids)
        };
        let before = claimed().await?;
        assert!(before.is_empty() || before == lake.files[..4], "{before:?}");
        let renewed = renew(&lake.database.tailrace(), &claim_settings(), None).await?;
        assert_eq!((renewed.files, renewed.failed.len()), (4, 0));
        assert_eq!(claimed().await?, lake.files[..4]);
        Ok(())
    };
    silent_at(&["COMMIT"], 1, act, after).await
}

#[tokio::test]
async fn doctor_ends() -> Result<()> {
    let settings = settings();
    let look = async |database: &Database| {
        examine(&Doctor { database, settings: &settings, catalog: None }).await
    };
    let act = async |_: &Lake, through: &Database| {
        drop(look(through).await);
        Ok(())
    };
    let after = async |lake: &Lake| {
        assert!(!look(&lake.database.tailrace()).await?.has_problem());
        Ok(())
    };
    // Its statements may take 10 s.
    silent_at(&[], 4, act, after).await
}

#[tokio::test]
async fn a_verification_ends() -> Result<()> {
    let config = Config::load(&LoadOptions::default())?;
    let settings = Settings { budget: Duration::from_secs(1), ..Settings::from_config(&config) };
    let look = async |database: &Database| verify(database, &settings, &Scope::default()).await;
    let act = async |_: &Lake, through: &Database| {
        drop(look(through).await);
        Ok(())
    };
    let after = async |lake: &Lake| {
        let report = look(&lake.database.tailrace()).await?;
        assert_eq!(report.catalogs.len(), 1);
        Ok(())
    };
    silent_at(&[], 3, act, after).await
}
