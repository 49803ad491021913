//! Tests of what happens between the planning of a request and its commit.

use anyhow::Result;
use tailrace::explicit::call::DropBody;
use tailrace::explicit::drop_partitions;
use tailrace::explicit::problem::Problem;
use tailrace_kit::lake::{Column, Field};
use tailrace_kit::simulated_loops::{Compaction, truncate};

use crate::support::gate::in_order;

use super::wire::Wire;
use super::{Scene, days, file, ledger, patient, raw};

/// The refusal of a drop that waits for the commit lock while somebody else commits.
async fn refused_after<T>(
    scene: &Scene,
    body: &DropBody,
    first: impl Future<Output = Result<T>>,
) -> Result<Problem> {
    let call = async { anyhow::Ok(scene.call(body).await?.expect_err("it is refused")) };
    let (_, refused) = in_order(&scene.catalog, first, call).await?;
    assert_eq!(scene.receipts().await?, 0);
    let drops = scene.database.rows("SELECT 1 FROM tailrace.drop_history").await?;
    assert_eq!(drops, Vec::<String>::new());
    Ok(refused)
}

async fn scene() -> Result<Scene> {
    let scene = Scene::new().await?;
    scene.table.append(vec![file("1"), file("2")]).await?;
    Ok(scene)
}

#[tokio::test]
async fn a_table_that_is_dropped_or_taken_over_meanwhile_is_dropped() -> Result<()> {
    let dropped = Problem::TableDropped { table: "events.raw".to_owned() };
    let first = scene().await?;
    let gone = async { Ok(first.table.drop_table().await?) };
    assert_eq!(refused_after(&first, &days(["1"]), gone).await?, dropped);
    assert_eq!(dropped.code(), "table_dropped");

    let second = scene().await?;
    let columns = [Column::new("at", "timestamptz")];
    let spec = [Field::day("at")];
    let replaced = async {
        let next = second.table.replace_table(&columns, &spec).await?;
        Ok(next)
    };
    let guarded = DropBody { expected_table_uuid: Some(second.table.table_uuid), ..days(["1"]) };
    assert_eq!(refused_after(&second, &guarded, replaced).await?, dropped);

    let third = scene().await?;
    let namespace = third.catalog.namespace("events").await?;
    let gone = async { Ok(namespace.drop_namespace().await?) };
    assert_eq!(refused_after(&third, &days(["1"]), gone).await?, dropped);
    Ok(())
}

#[tokio::test]
async fn a_table_that_is_renamed_or_moved_meanwhile_is_a_conflict() -> Result<()> {
    let conflict = Problem::CommitConflict("table events.raw was renamed meanwhile".to_owned());
    let first = scene().await?;
    let renamed = async { Ok(first.table.rename("other").await?) };
    assert_eq!(refused_after(&first, &days(["1"]), renamed).await?, conflict);
    let second = scene().await?;
    let elsewhere = second.catalog.namespace("elsewhere").await?;
    let moved = async { Ok(second.table.move_to(&elsewhere).await?) };
    assert_eq!(refused_after(&second, &days(["1"]), moved).await?, conflict);
    Ok(())
}

#[tokio::test]
async fn guards_look_under_the_lock() -> Result<()> {
    let first = scene().await?;
    let read = first.catalog.head().await?;
    let guarded = |day| DropBody { read_snapshot: Some(read), ..days([day]) };
    let appended = async { Ok(first.table.append(vec![file("1")]).await?) };
    let refused = refused_after(&first, &guarded("1"), appended).await?;
    let expected = format!(
        "files came to the named partitions of events.raw in snapshot {}, after read_snapshot {read}",
        read + 1
    );
    assert_eq!(refused, Problem::CommitConflict(expected));
    let altered = async { Ok(first.table.set_property("a", Some("b")).await?) };
    let refused = refused_after(&first, &guarded("2"), altered).await?;
    assert_eq!(refused.code(), "ddl_since_read_snapshot");
    Ok(())
}

/// Appended, and merged by a compaction with the planned file, all between plan and lock.
#[tokio::test]
async fn a_late_append_that_is_merged_at_once_is_a_conflict_still() -> Result<()> {
    for guarded in [true, false] {
        let scene = Scene::new().await?;
        scene.table.append(vec![file("1"), file("1")]).await?;
        let read = scene.catalog.head().await?;
        let body = DropBody { read_snapshot: guarded.then_some(read), ..days(["1"]) };
        let (wire, through) = Wire::to(&scene.database).await?;
        let mut session = through.session().await?;
        let bounds = patient();
        let call = async { Ok(drop_partitions(&mut session, &raw(), &body, "me", &bounds).await) };
        let merge = async {
            scene.table.append(vec![file("1")]).await?;
            Ok(Compaction::new(&scene.catalog, 1000).run(&scene.table).await?)
        };
        let (answer, merged) = wire.meanwhile("pg_advisory_xact_lock", call, merge).await?;
        assert_eq!(merged, 1);
        if guarded {
            assert_eq!(answer.expect_err("it came since").code(), "commit_conflict");
            assert_eq!(scene.live().await?.len(), 1);
        } else {
            let answer = answer?;
            assert_eq!((answer.files_ended, answer.records), (1, 30), "the one that holds all");
            assert_eq!(scene.live().await?, Vec::<i64>::new());
        }
    }
    Ok(())
}

#[tokio::test]
async fn late_files_are_dropped_and_what_ended_meanwhile_is_not_counted() -> Result<()> {
    let first = scene().await?;
    let late = vec![file("1").records(7).bytes(70), file("3")];
    let body = days(["1"]);
    let call = first.done(&body);
    let (appended, answer) = {
        let append = async { anyhow::Ok(first.table.append(late).await?) };
        in_order(&first.catalog, append, call).await?
    };
    assert_eq!((answer.files_ended, answer.records, answer.bytes), (2, 17, 170));
    assert_eq!(answer.snapshot_id, appended.snapshot_id + 1);
    ledger::agrees(&first.catalog).await?;

    let second = scene().await?;
    let truncated = async { anyhow::Ok(truncate(&second.table).await?) };
    let body = days(["1", "2"]);
    let (snapshot_id, answer) = in_order(&second.catalog, truncated, second.done(&body)).await?;
    assert_eq!((answer.committed, answer.snapshot_id, answer.files_ended), (false, snapshot_id, 0));
    let version = second.catalog.schema_version().await?;
    assert_eq!(answer.schema_version, version, "as it is under the lock");
    assert_eq!(second.receipts().await?, 1);
    ledger::agrees(&second.catalog).await
}
