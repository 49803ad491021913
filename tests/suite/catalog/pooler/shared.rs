//! Tests with a pooler that shares sessions with other clients.

use anyhow::Result;
use serde_json::{Value, json};
use sqlx::Row;
use tailrace::installation::{Unfit, check};
use tailrace_kit::pooler::PoolMode;

use super::{SHARED, behind, client, ran};
use crate::http::client::Client;
use crate::http::{TABLE, address};
use crate::support::process::start;

/// The first command that a pool ever sees is refused, and whatever comes after it.
#[tokio::test]
async fn every_command_is_refused_and_nothing_is_written() -> Result<()> {
    for mode in [PoolMode::Transaction, PoolMode::Statement] {
        for first in [0, 1, 2, 3] {
            let Some((scene, pooler)) = behind(mode).await? else { return Ok(()) };
            let before = scene.database.lake.dump().await?;
            let commands = [
                &["plan"][..],
                &["sweep"],
                &["migrate"],
                &["drop", "lake", "events.raw", "--partition", "[\"18000\"]", "--yes"],
            ];
            for args in commands.iter().cycle().skip(first).take(commands.len()) {
                let ended = ran(&pooler, args).await?;
                let said = format!("tailrace: {SHARED}");
                assert_eq!(
                    (ended.code, ended.stdout.as_str()),
                    (Some(1), ""),
                    "{args:?}: {ended:?}"
                );
                assert_eq!(ended.log.last(), Some(&Value::String(said)), "{args:?}: {ended:?}");
            }
            assert!(scene.database.lake.dump().await? == before);
        }
    }
    Ok(())
}

/// What we would have set is set for nobody.
#[tokio::test]
async fn a_session_that_is_refused_stays_as_others_know_it() -> Result<()> {
    let Some((_scene, pooler)) = behind(PoolMode::Transaction).await? else { return Ok(()) };
    assert_eq!(ran(&pooler, &["plan"]).await?.code, Some(1));
    let mut client = client(&pooler).await?;
    let settings = "SELECT current_setting('tailrace.session', true) <> '',
                           current_setting('enable_seqscan'),
                           current_setting('default_transaction_read_only')";
    let row = sqlx::raw_sql(settings).fetch_one(&mut client).await?;
    let ours: Option<bool> = row.try_get(0)?;
    assert_eq!(ours, Some(true), "it is the session that was refused");
    assert_eq!((row.try_get::<&str, _>(1)?, row.try_get::<&str, _>(2)?), ("on", "off"));
    Ok(())
}

#[tokio::test]
async fn a_daemon_tells_what_is_wrong_and_stays_up() -> Result<()> {
    let Some((scene, pooler)) = behind(PoolMode::Transaction).await? else { return Ok(()) };
    let schedule = [("TAILRACE__SCHEDULE__EVERY", "1s"), ("TAILRACE__SCHEDULE__JITTER", "0s")];
    let mut run = start(&pooler.url(), &["run"], &schedule)?;
    run.event("pass_failed", 2).await?;
    let failed = run.told("pass_failed").await?;
    assert_eq!((&failed["level"], &failed["error"]), (&json!("ERROR"), &json!(SHARED)));

    let client = Client { address: address(&mut run).await?, headers: Vec::new() };
    let asked = client.get(&format!("{TABLE}/partition-retention")).await?;
    let expected = json!({"detail": format!("{SHARED}; nothing was done"), "error": "unavailable"});
    assert_eq!(asked.told(), (503, expected.to_string().as_str()));
    assert_eq!(client.get("/livez").await?.status, 200);
    assert_eq!(scene.live().await?, scene.files);

    pooler.turn(PoolMode::Session).await?;
    run.event("drop_committed", 1).await?;
    assert_eq!(scene.live().await?, [scene.files[0]]);
    // And back again, while it runs.
    let failures = run.so_far("pass_failed").len();
    pooler.turn(PoolMode::Transaction).await?;
    run.event("pass_failed", failures + 1).await?;
    run.signal("TERM").await?;
    let ended = run.end().await?;
    assert_eq!((ended.code, ended.count("database_lost")), (Some(0), 0), "{ended:?}");
    Ok(())
}

/// A session that was ours alone, and then is not: a pass looks before each table.
#[tokio::test]
async fn a_session_that_is_taken_away_later_is_not_worked_on() -> Result<()> {
    let Some((scene, pooler)) = behind(PoolMode::Session).await? else { return Ok(()) };
    let mut database = scene.database.tailrace();
    database.options = pooler.url().parse()?;
    database.options = database.options.extra_float_digits(None);
    let mut session = database.session().await?;
    let schema = scene.database.lake.schema();
    check(&mut session, schema).await?;
    pooler.turn(PoolMode::Transaction).await?;
    // With the end of this transaction it goes back to the pool.
    check(&mut session, schema).await?;
    let mut other = client(&pooler).await?;
    sqlx::raw_sql("BEGIN").execute(&mut other).await?;
    let error = check(&mut session, schema).await.expect_err("it is in another session");
    assert!(matches!(error.downcast_ref::<Unfit>(), Some(Unfit::Shared(_))), "{error:#}");
    assert_eq!(error.to_string(), SHARED);
    Ok(())
}
