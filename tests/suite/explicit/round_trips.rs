//! Tests of how many round trips the commit lock is held for.

use anyhow::Result;
use tailrace::catalog::session::Session;
use tailrace::explicit::call::{DropBody, TruncateBody};
use tailrace::explicit::{drop_partitions, truncate};

use super::wire::Wire;
use super::{Scene, days, file, patient, raw};

/// What was asked after the lock was granted, by its first words.
fn under_lock(wire: &Wire) -> Vec<String> {
    let asked = wire.asked();
    let lock = asked.iter().rposition(|sql| sql.contains("pg_advisory_xact_lock"));
    let first_words = |sql: &String| {
        let words: Vec<_> = sql.split_whitespace().take(2).collect();
        words.join(" ")
    };
    asked[lock.map_or(0, |at| at + 1)..]
        .iter()
        .take_while(|sql| !sql.contains("from tailrace.drop_receipt where"))
        .map(first_words)
        .collect()
}

const FOUR: [&str; 4] = ["with policies", "with numbers", "insert into", "COMMIT"];

async fn drop_one(session: &mut Session, body: &DropBody) -> Result<i64> {
    Ok(drop_partitions(session, &raw(), body, "me", &patient()).await?.files_ended)
}

/// From grant to COMMIT there are four, in a warm session and in one that has never dropped.
#[tokio::test]
async fn there_are_four_from_the_grant_to_the_commit() -> Result<()> {
    let scene = Scene::new().await?;
    let (wire, through) = Wire::to(&scene.database).await?;
    let mut session = through.session().await?;
    for number in ["cold", "warm", "warmer"] {
        scene.table.append(vec![file("1"), file("2")]).await?;
        wire.forget();
        assert_eq!(drop_one(&mut session, &days(["1", "2"])).await?, 2);
        assert_eq!(under_lock(&wire), FOUR, "{number}");
    }
    // However many tuples, and whatever is guarded.
    let files: Vec<_> = (0..500).map(|day| file(&day.to_string())).collect();
    let read = scene.table.append(files).await?.snapshot_id;
    let items = (0..500).map(|day| super::item([Some(day.to_string().as_str())])).collect();
    let body = DropBody { read_snapshot: Some(read), fence: true, ..super::drop_of(items) };
    wire.forget();
    assert_eq!(drop_one(&mut session, &body).await?, 500);
    assert_eq!(under_lock(&wire), FOUR);
    Ok(())
}

#[tokio::test]
async fn a_truncate_holds_the_lock_as_briefly() -> Result<()> {
    let scene = Scene::new().await?;
    let (wire, through) = Wire::to(&scene.database).await?;
    let mut session = through.session().await?;
    let key = Some(uuid::Uuid::new_v4());
    let keyed = TruncateBody { idempotency_key: key, ..TruncateBody::default() };
    for (body, expected) in [
        (keyed, &FOUR[..]),
        (TruncateBody::default(), &["with policies", "with numbers", "COMMIT"]),
    ] {
        scene.table.append(vec![file("1"), file("2")]).await?;
        wire.forget();
        let uuid = Some(scene.table.table_uuid);
        truncate(&mut session, &raw(), uuid, &body, "me", &patient()).await?;
        assert_eq!(under_lock(&wire), expected);
    }
    Ok(())
}
