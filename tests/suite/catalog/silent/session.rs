//! Tests of a single session of tailrace: how long it waits for an answer, and what is left of it
//! after that.

use std::io::ErrorKind;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use futures_util::TryStreamExt;
use tailrace::catalog::connect::Database;
use tailrace::catalog::session::Session;

use super::{BOUND, Lake, PATIENCE};

/// What a question of the session is answered, if it is no error of the server.
async fn ask(session: &mut Session) -> Result<Result<i32, ErrorKind>> {
    let asked = sqlx::query_scalar("SELECT 1").fetch_one(session);
    match tokio::time::timeout(BOUND, asked).await? {
        Ok(one) => Ok(Ok(one)),
        Err(sqlx::Error::Io(error)) => Ok(Err(error.kind())),
        Err(other) => bail!(other),
    }
}

#[tokio::test]
async fn an_answer_is_waited_for_so_long_and_the_session_is_lost_then() -> Result<()> {
    let lake = Lake::new().await?;
    let (proxy, through) = lake.network().await?;
    let mut session = through.session().await?;
    assert_eq!(ask(&mut session).await?, Ok(1));
    proxy.unplug();
    let since = Instant::now();
    assert_eq!(ask(&mut session).await?, Err(ErrorKind::TimedOut));
    let waited = since.elapsed();
    assert!(waited >= PATIENCE.statement + PATIENCE.slack, "{waited:?}");
    // Also where the network is well again: nobody knows which answer would come.
    proxy.plug_in();
    let since = Instant::now();
    assert_eq!(ask(&mut session).await?, Err(ErrorKind::NotConnected));
    assert!(since.elapsed() < PATIENCE.statement, "it waits again");
    assert!(session.begin().await.is_err());
    Ok(())
}

/// Of a stream every row is waited for anew, however many came before.
#[tokio::test]
async fn the_next_row_is_waited_for_so_long() -> Result<()> {
    let lake = Lake::new().await?;
    let (proxy, through) = lake.network().await?;
    let mut session = through.session().await?;
    // More than the network and the driver hold.
    let rows = "SELECT repeat('x', 10000) FROM generate_series(1, 100000)";
    let read = async {
        let mut rows = sqlx::query_scalar::<_, String>(rows).fetch(&mut session);
        assert!(rows.try_next().await?.is_some());
        proxy.unplug();
        while rows.try_next().await?.is_some() {}
        Ok(())
    };
    match tokio::time::timeout(BOUND, read).await? {
        Err(sqlx::Error::Io(error)) => assert_eq!(error.kind(), ErrorKind::TimedOut),
        other => bail!("{other:?}"),
    }
    assert_eq!(ask(&mut session).await?, Err(ErrorKind::NotConnected));
    Ok(())
}

/// Whoever gives a wait up himself loses the session, too: the answer may still come, to a question
/// that somebody else has put since.
#[tokio::test]
async fn a_wait_that_is_given_up_loses_the_session() -> Result<()> {
    let lake = Lake::new().await?;
    let mut session = lake.database.tailrace().session().await?;
    let given_up = sqlx::raw_sql("SELECT pg_sleep(0.1), 7").execute(&mut session);
    assert!(tokio::time::timeout(Duration::from_millis(1), given_up).await.is_err());
    assert_eq!(ask(&mut session).await?, Err(ErrorKind::NotConnected));
    Ok(())
}

/// A transaction that is dropped without an end is rolled back before anything else, and what its
/// statements may take is forgotten with it.
#[tokio::test]
async fn a_transaction_that_is_left_open_is_rolled_back() -> Result<()> {
    let lake = Lake::new().await?;
    let database = Database { patience: PATIENCE, ..lake.database.tailrace() };
    let mut session = database.session().await?;
    let mut transaction = session.begin().await?;
    transaction.statements_take(Duration::ZERO);
    sqlx::query("UPDATE tailrace.policy SET keep = '1d'").execute(&mut *transaction).await?;
    drop(transaction);
    sqlx::raw_sql("SELECT pg_sleep(0.8)").execute(&mut session).await?;
    let seen = session.whole(async |driver| {
        sqlx::query_scalar::<_, String>("SELECT keep FROM tailrace.policy").fetch_one(driver).await
    });
    assert_eq!(seen.await??, "7d");
    Ok(())
}
