//! Tests of `drop.max_hold`, which limits the total length of a hold. A longer hold is rolled back.

use std::time::{Duration, Instant};

use anyhow::Result;
use tailrace::catalog::session::Session;
use tailrace::drop::{Attempt, DropError, Limits, drop_tuples};
use tailrace::explicit::call::TruncateBody;
use tailrace::explicit::problem::Problem;
use tailrace::explicit::{Bounds, drop_partitions, truncate};
use uuid::Uuid;

use super::{Scene, days_of, request};
use crate::explicit::{days, patient, raw};
use crate::support::ddl::Ddl;
use crate::support::gate::is_free;
use crate::support::wait::until;

/// The words of a request whose hold was too long.
fn too_long() -> Problem {
    Problem::CommitQueueTimeout {
        reason: "the drop took longer than drop.max_hold and was rolled back whole".to_owned(),
        retry_after: Duration::from_secs(1),
    }
}

fn at_most(max_hold: Duration) -> Limits {
    Limits { max_hold, row_lock_timeout: max_hold, ..patient().limits }
}

impl Scene {
    /// Every statement that does this to a table takes so many seconds longer.
    async fn slow(&self, what: &str, table: &str, seconds: f64) -> Result<()> {
        let name = format!("slow_{}", table.replace('.', "_"));
        self.database
            .sql(&format!(
                "CREATE FUNCTION public.{name}() RETURNS trigger LANGUAGE plpgsql AS
                 $$ BEGIN PERFORM pg_sleep({seconds}); RETURN NULL; END $$;
                 CREATE TRIGGER {name} AFTER {what} ON {table}
                   FOR EACH STATEMENT EXECUTE FUNCTION public.{name}()"
            ))
            .await
    }

    async fn session(&self) -> Result<Session> {
        self.database.tailrace().session().await
    }

    /// What a pass does with the day 1.
    async fn attempt(&self, session: &mut Session, limits: &Limits) -> Attempt {
        let tuples = days_of(&["1"]);
        let request = super::DropRequest { lookup_keys: &[0], ..request(&self.identity, &tuples) };
        drop_tuples(session, &request, limits).await
    }

    /// An explicit drop of the day 1, a truncate with a key, and one without.
    async fn requests(&self, limits: Limits) -> Result<[Result<(), Problem>; 3]> {
        let mut session = self.session().await?;
        let bounds = Bounds { limits, ..patient() };
        let (of_day, table) = (days(["1"]), raw());
        let dropped = drop_partitions(&mut session, &table, &of_day, "me", &bounds).await;
        let mut truncated = async |idempotency_key| {
            let body = TruncateBody { idempotency_key, ..TruncateBody::default() };
            let uuid = Some(self.identity.table_uuid);
            truncate(&mut session, &table, uuid, &body, "me", &bounds).await.map(|_| ())
        };
        let keyed = truncated(Some(Uuid::new_v4())).await;
        Ok([dropped.map(|_| ()), keyed, truncated(None).await])
    }

    /// Everything that a drop writes, and whether the commit lock is free.
    async fn state(&self) -> Result<(tailrace_kit::lake::Dump, Vec<String>, bool)> {
        let ours = "SELECT to_jsonb(r) FROM tailrace.drop_receipt r
                    UNION ALL SELECT to_jsonb(h) FROM tailrace.drop_history h";
        let free = is_free(&self.catalog).await?;
        Ok((self.database.lake.dump().await?, self.database.rows(ours).await?, free))
    }
}

fn is_hold_exceeded(attempt: &Attempt) -> bool {
    matches!(attempt.result, Err(DropError::HoldExceeded))
}

/// The write and the receipt each take less than the bound.
#[tokio::test]
async fn short_statements_whose_sum_is_too_long_are_rolled_back() -> Result<()> {
    let scene = Scene::new().await?;
    scene.append(["1", "2"]).await?;
    scene.slow("INSERT", "hog_snapshot_change", 1.2).await?;
    scene.slow("INSERT", "tailrace.drop_receipt", 1.2).await?;
    let head = scene.catalog.head().await?;
    let limits = at_most(Duration::from_secs(2));
    let began = Instant::now();
    let [dropped, keyed, unkeyed] = scene.requests(limits).await?;
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    assert_eq!((dropped, keyed), (Err(too_long()), Err(too_long())));
    // Without a receipt there is nothing but the write.
    assert_eq!(unkeyed, Ok(()));
    assert_eq!(scene.catalog.head().await?, head + 1);
    let receipts = scene.database.text("SELECT count(*) FROM tailrace.drop_receipt").await?;
    assert_eq!(receipts.as_deref(), Some("0"));
    Ok(())
}

/// Each of two waits in one statement is less than the bound: the server adds them up.
#[tokio::test]
async fn a_write_of_short_waits_is_ended_by_the_server() -> Result<()> {
    let scene = Scene::new().await?;
    scene.append(["1"]).await?;
    scene.slow("INSERT", "hog_snapshot_change", 0.7).await?;
    scene.slow("UPDATE", "hog_data_file", 0.7).await?;
    let before = scene.state().await?;
    let limits = at_most(Duration::from_secs(1));
    let attempt = scene.attempt(&mut scene.session().await?, &limits).await;
    assert!(is_hold_exceeded(&attempt), "{attempt:?}");
    assert!(attempt.lock_hold < Duration::from_millis(2_500), "{attempt:?}");
    assert_eq!(scene.requests(limits).await?, [Err(too_long()), Err(too_long()), Err(too_long())]);
    assert_eq!(scene.state().await?, before);
    Ok(())
}

/// What the guards have waited, the write has not.
#[tokio::test]
async fn the_write_has_what_the_guards_have_left() -> Result<()> {
    let scene = Scene::new().await?;
    scene.append(["1"]).await?;
    scene.slow("INSERT", "hog_snapshot_change", 60.0).await?;
    let before = scene.state().await?;
    let ddl = Ddl::done(&scene.database, "LOCK TABLE hog_namespace").await?;
    let limits = at_most(Duration::from_secs(4));
    let mut session = scene.session().await?;
    let release = async {
        until("the guards have waited for 3 s", async || {
            Ok(sqlx::query_scalar(
                "SELECT coalesce(bool_or(clock_timestamp() - query_start > '3 s'), false)
                   FROM pg_stat_activity
                  WHERE datname = current_database() AND wait_event = 'relation'",
            )
            .fetch_one(&scene.database.pool)
            .await?)
        })
        .await?;
        ddl.end().await
    };
    let (attempt, released) = tokio::join!(scene.attempt(&mut session, &limits), release);
    released?;
    assert!(is_hold_exceeded(&attempt), "{attempt:?}");
    let held = attempt.lock_hold;
    assert!(held > Duration::from_secs(3) && held < Duration::from_secs(6), "{held:?}");
    assert_eq!(scene.state().await?, before);
    Ok(())
}

/// What a hold sets ends with it.
#[tokio::test]
async fn the_limits_of_a_hold_end_with_it() -> Result<()> {
    let scene = Scene::new().await?;
    let mut session = scene.session().await?;
    let settings = async |session: &mut Session| -> Result<String> {
        let statement = "SELECT string_agg(name || ' ' || setting, ', ' ORDER BY name)
                           FROM pg_settings
                          WHERE name LIKE '%_timeout' OR name LIKE 'enable_%'";
        Ok(sqlx::query_scalar(statement).fetch_one(&mut *session).await?)
    };
    let at_first = settings(&mut session).await?;
    let limits = at_most(Duration::from_secs(5));
    for files in [1, 0] {
        if files > 0 {
            scene.append(["1"]).await?;
        }
        let attempt = scene.attempt(&mut session, &limits).await;
        assert!(attempt.result.is_ok(), "{attempt:?}");
        assert_eq!(settings(&mut session).await?, at_first, "{files} files");
    }
    scene.append(["1"]).await?;
    scene.slow("INSERT", "hog_snapshot_change", 60.0).await?;
    let limits = at_most(Duration::from_millis(500));
    assert!(is_hold_exceeded(&scene.attempt(&mut session, &limits).await));
    assert_eq!(settings(&mut session).await?, at_first, "cancelled");
    Ok(())
}
