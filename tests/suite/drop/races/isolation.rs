//! Tests of roles whose default settings would break a drop that relied on the usual defaults.

use std::time::Duration;

use anyhow::Result;
use sqlx::AssertSqlSafe;
use tailrace::catalog::connect::{Database, close};
use tailrace::catalog::live_file::Counts;
use tailrace::catalog::tables::TableIdentity;
use tailrace::catalog::tuples::TupleOfSpec;
use tailrace::drop::{DropOutcome, DropRequest, drop_tuples};
use tailrace::rules::expiry::StoredTuple;
use tailrace::sweep::report::Outcome;
use tailrace::sweep::{Scope, run_pass};
use tokio_util::sync::CancellationToken;

use crate::support::gate::in_order;
use crate::support::process;
use crate::support::program::days_ago;
use crate::support::wait::until;

use super::{Scene, file, only, patient, texts, whole};

/// What a role's sessions start with.
const DEFAULTS: [(&str, &str); 4] = [
    ("default_transaction_isolation", "repeatable read"),
    ("default_transaction_isolation", "serializable"),
    ("default_transaction_read_only", "on"),
    ("default_transaction_deferrable", "on"),
];

/// The database as a role sees it that may do no more than it has to, with a default of its own.
async fn as_role(scene: &Scene, (setting, value): (&str, &str)) -> Result<Database> {
    let database = scene.database.tailrace();
    let name = database.options.get_database().unwrap_or_default();
    let role = format!("{name}_role");
    let statements = format!(
        "CREATE ROLE {role} LOGIN; ALTER ROLE {role} SET {setting} = '{value}'; \
         GRANT USAGE ON SCHEMA public, tailrace TO {role}; \
         GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public, tailrace TO {role}; \
         GRANT USAGE ON ALL SEQUENCES IN SCHEMA tailrace TO {role}"
    );
    sqlx::raw_sql(AssertSqlSafe(statements)).execute(&scene.database.pool).await?;
    let options = database.options.username(&role);
    let database = Database { options, ..database };
    let mut session = database.options.clone();
    session = session.application_name("look");
    let mut look =
        sqlx::postgres::PgPoolOptions::new().connect_lazy_with(session).acquire().await?;
    let shown: String =
        sqlx::query_scalar(AssertSqlSafe(format!("SHOW {setting}"))).fetch_one(&mut *look).await?;
    assert_eq!(shown, value, "the role has the default that is tested");
    Ok(database)
}

async fn forget_role(scene: &Scene, database: &Database) -> Result<()> {
    let role = database.options.get_username();
    let statements = format!("DROP OWNED BY {role}; DROP ROLE {role}");
    sqlx::raw_sql(AssertSqlSafe(statements)).execute(&scene.database.pool).await?;
    Ok(())
}

#[tokio::test]
async fn a_late_file_is_dropped_whatever_the_roles_defaults_are() -> Result<()> {
    for default in DEFAULTS {
        let scene = Scene::new(&[0, 8, 9]).await?;
        let database = as_role(&scene, default).await?;
        let (settings, scope, stop) = (patient(), Scope::default(), CancellationToken::new());
        let pass = run_pass(&database, &settings, &scope, &stop, &|_| {});
        let late = scene.table.append(vec![file(8)]);
        let (late, report) = in_order(&scene.catalog, late, pass).await?;
        let [report] = report.tables.as_slice() else { panic!("{default:?}: {report:?}") };
        assert_eq!(report.outcome, Outcome::Dropped, "{default:?}: {report:?}");
        assert_eq!(only(report).snapshot_id, late.snapshot_id + 1, "{default:?}");
        assert_eq!(texts(only(report)), [(days_ago(9), 1), (days_ago(8), 2)], "{default:?}");
        assert_eq!(scene.live().await?, [scene.files[0]], "{default:?}");
        whole::drops(&scene.catalog, scene.table.table_id).await?;
        forget_role(&scene, &database).await?;
    }
    Ok(())
}

/// A pass would hide that a commit failed for its isolation, for it tries again. Here is the one
/// commit itself, and its wait.
#[tokio::test]
async fn a_late_file_costs_no_second_try() -> Result<()> {
    for default in DEFAULTS {
        let scene = Scene::new(&[0, 8]).await?;
        let database = as_role(&scene, default).await?;
        let table = TableIdentity {
            catalog_id: scene.catalog.catalog_id,
            catalog: "lake".to_owned(),
            table_id: scene.table.table_id,
            table_uuid: scene.table.table_uuid,
            namespace: "events".to_owned(),
            table: "raw".to_owned(),
        };
        let tuple = StoredTuple { keys: vec![0], values: vec![Some(days_ago(8))] };
        let request = DropRequest {
            table: &table,
            tuples: &[TupleOfSpec { spec_id: 1, tuple }],
            lookup_keys: &[0],
            policy: None,
            found: &[],
            found_below: 0,
            late: None,
            is_piece: false,
            fence: false,
            author: "tailrace",
            message: "one commit",
        };
        let mut session = database.session().await?;
        let limits = patient().limits;
        let commit = async { anyhow::Ok(drop_tuples(&mut session, &request, &limits).await) };
        let late = scene.table.append(vec![file(8)]);
        let (late, attempt) = in_order(&scene.catalog, late, commit).await?;
        let DropOutcome::Dropped(receipt) = attempt.result? else { panic!("{default:?}") };
        assert_eq!(receipt.snapshot_id, late.snapshot_id + 1, "{default:?}");
        let counts = Counts { files: 2, delete_files: 0, records: 20, bytes: 200 };
        assert_eq!((receipt.counts, &receipt.per_tuple[..]), (counts, &[counts][..]));
        assert!(attempt.lock_wait > Duration::ZERO && attempt.lock_hold > Duration::ZERO);
        close(session).await;
        forget_role(&scene, &database).await?;
    }
    Ok(())
}

/// Outside the commit too: a stricter default would make a pass fail where another one, or a
/// person, writes the same row of ours.
#[tokio::test]
async fn a_pass_waits_for_another_writer_of_our_rows_and_goes_on() -> Result<()> {
    for default in &DEFAULTS[..2] {
        let scene = Scene::new(&[0, 8, 9]).await?;
        assert_eq!(scene.sweep().await?.outcome, Outcome::Dropped);
        sqlx::query(
            "UPDATE tailrace.drop_history
                SET last_removal_id = 0,
                    purged_seen_at = now() - interval '1 year',
                    gone_seen_at = now() - interval '1 year'",
        )
        .execute(&scene.database.pool)
        .await?;
        scene.table.append(vec![file(8)]).await?;
        let database = as_role(&scene, *default).await?;
        let (settings, scope, stop) = (patient(), Scope::default(), CancellationToken::new());
        // Another pass is about to have purged the same old history.
        let mut other = scene.database.pool.begin().await?;
        sqlx::query("DELETE FROM tailrace.drop_history").execute(&mut *other).await?;
        let pass = run_pass(&database, &settings, &scope, &stop, &|_| {});
        let release = async {
            waits_for_a_row(&scene).await?;
            Ok(other.commit().await?)
        };
        let (report, ()) = tokio::try_join!(pass, release)?;
        assert_eq!(report.tables[0].outcome, Outcome::Dropped, "{default:?}");
        forget_role(&scene, &database).await?;
    }
    Ok(())
}

#[tokio::test]
async fn two_who_set_a_policy_at_once_both_succeed() -> Result<()> {
    for default in DEFAULTS {
        let scene = Scene::new(&[0]).await?;
        let database = as_role(&scene, default).await?;
        let mut url = url::Url::parse(&scene.database.url())?;
        url.set_username(database.options.get_username()).expect("a URL with a host");
        let mut other = scene.database.pool.begin().await?;
        sqlx::query("UPDATE tailrace.policy SET keep = '9d', keep_seconds = 777600, revision = nextval('tailrace.policy_revision')")
            .execute(&mut *other)
            .await?;
        let args = ["policy", "set", "lake", "events.raw", "--field", "at", "--keep", "10d"];
        let set = process::start(url.as_str(), &args, &[])?;
        waits_for_a_row(&scene).await?;
        other.commit().await?;
        let ended = set.end().await?;
        assert_eq!(ended.code, Some(0), "{default:?}: {ended:?}");
        let stored: (String, i64) = sqlx::query_as("SELECT keep, revision FROM tailrace.policy")
            .fetch_one(&scene.database.pool)
            .await?;
        assert_eq!(stored, ("10d".to_owned(), 3), "{default:?}");
        forget_role(&scene, &database).await?;
    }
    Ok(())
}

async fn waits_for_a_row(scene: &Scene) -> Result<()> {
    until("somebody waits for a row", async || {
        let waiting: i64 = sqlx::query_scalar(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
                AND wait_event_type = 'Lock' AND wait_event IN ('transactionid', 'relation')",
        )
        .fetch_one(scene.catalog.pool())
        .await?;
        Ok(waiting == 1)
    })
    .await
}
