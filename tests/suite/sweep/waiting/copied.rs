//! Tests that a migration copies what earlier versions remembered of waiting tuples.

use anyhow::Result;
use serde_json::{Value, json};
use tailrace_kit::lake::{Field, NewFile};

use super::{NOW, Scene, remembered};
use crate::support::TestDatabase;
use crate::support::program::settings;

/// The migration that copies it, once more.
pub const COPY: &str = include_str!("../../../../migrations/0015_waiting_copied.sql");

/// Rows as earlier programs wrote them: a table's UUID, and what waits.
async fn remember(database: &TestDatabase, rows: &[(uuid::Uuid, Option<Value>)]) -> Result<()> {
    for (table_id, (table_uuid, waiting)) in (1_i64..).zip(rows) {
        sqlx::query(
            "insert into tailrace.sweep_state (catalog_id, table_id, table_uuid, policy_revision, rules,
               waiting)
             values (1, $1, $2, 1, '', $3)
             on conflict (catalog_id, table_id) do update
             set table_uuid = excluded.table_uuid, waiting = excluded.waiting",
        )
        .bind(table_id)
        .bind(table_uuid)
        .bind(waiting)
        .execute(&database.pool)
        .await?;
    }
    Ok(())
}

/// The program and the migration agree on the key of each tuple, whatever its values are.
#[tokio::test]
async fn it_has_the_keys_that_the_program_gives() -> Result<()> {
    let scene = Scene::days(0).await?;
    let spec = [Field::day("at"), Field::identity("kind")];
    let table = scene.database.table(&scene.catalog, "tenants", &spec).await?;
    scene.database.govern(&table, "day(at)", "7d").await?;
    let long = super::long_value();
    let odd = ["", "'\"\\", "\u{e9}\u{1f600}\u{202e}\n\t\u{1}", "null", " a / b ", long.as_str()];
    let tenants = odd.map(|value| Some(value.to_owned())).into_iter().chain([None]);
    let files = tenants
        .flat_map(|tenant| vec![NewFile::new(vec![Some("18000".to_owned()), tenant.clone()]); 2]);
    table.append(files.collect()).await?;
    let mut skipping = settings();
    (skipping.batch.files_per_commit, skipping.batch.files_per_tuple) = (1, 1);
    skipping.batch.split_oversize = false;
    scene.sweep_with(&skipping, NOW).await?;
    let keys = "select tuple_hash::text || tuple from tailrace.waiting order by 1";
    let (before, by_program) = (scene.waiting().await?, scene.database.rows(keys).await?);
    assert_eq!(before.len(), odd.len() + 1);

    let tuples: Vec<Value> = before
        .iter()
        .cloned()
        .map(|mut one| {
            if let Some(fields) = one.as_object_mut() {
                fields.retain(|_, value| !value.is_null());
            }
            one
        })
        .collect();
    let waiting = json!({"tuples": tuples, "more": {}, "parts": []});
    remember(&scene.database, &[(table.table_uuid, Some(waiting))]).await?;
    scene.database.sql("delete from tailrace.waiting").await?;
    for _ in 0..2 {
        scene.database.sql(COPY).await?;
        assert_eq!(scene.waiting().await?, before);
        assert_eq!(scene.database.rows(keys).await?, by_program);
    }
    // The program goes on with them.
    scene.sweep_with(&skipping, "2026-11-30T12:10:00Z").await?;
    let after = scene.waiting().await?;
    let known = |one: &Value| (one["since"] == NOW, one["tries"] == 2);
    assert_eq!(after.iter().map(known).collect::<Vec<_>>(), vec![(true, true); before.len()]);
    Ok(())
}

/// Nothing that is stored there makes it fail; what cannot be read is passed over.
#[tokio::test]
async fn what_cannot_be_read_is_passed_over() -> Result<()> {
    let database = TestDatabase::new().await?;
    let good = json!({
        "spec_id": 1, "tuple": {"keys": [0], "values": ["18000"]}, "display": "2019-04-14",
        "reason": "poisoned", "since": "2026-11-30T12:00:00.5Z", "seen_at": NOW, "tries": 2,
        "next_look": "2026-11-30T12:30:00Z", "said": "no", "error": "no, no", "files": 3,
        "range_end": "2019-04-15T00:00:00Z",
    });
    let with = |key: &str, value: Value| {
        let mut one = good.clone();
        one[key] = value;
        one
    };
    let bad = [
        json!({}),
        json!(7),
        json!(null),
        json!([[]]),
        with("spec_id", json!("x")),
        with("spec_id", json!(1e40)),
        with("tuple", json!(null)),
        with("tuple", json!({"keys": 1, "values": []})),
        with("tuple", json!({"keys": ["0"], "values": ["1"]})),
        with("tuple", json!({"keys": [0], "values": [1]})),
        with("tuple", json!({"keys": [0], "values": [["1"]]})),
        with("tuple", json!({"keys": [0]})),
        with("display", json!(null)),
        with("reason", json!("tired")),
        with("reason", json!({})),
        with("since", json!("today or tomorrow")),
        with("since", json!("2026-99-99T00:00:00Z")),
        with("seen_at", json!(7)),
        with("next_look", json!({})),
        with("tries", json!(-1.5)),
        with("files", json!("many")),
        with("range_end", json!(null)),
    ];
    let tuples = bad.iter().cloned().chain([good.clone()]).collect::<Vec<_>>();
    let uuid = uuid::Uuid::from_u128;
    remember(
        &database,
        &[
            (uuid(1), None),
            (uuid(2), Some(json!(null))),
            (uuid(3), Some(json!(7))),
            (uuid(4), Some(json!({"tuples": 1}))),
            (uuid(5), Some(json!({"tuples": {"a": 1}}))),
            (uuid(6), Some(json!([good]))),
            (uuid(7), Some(json!({"tuples": tuples}))),
        ],
    )
    .await?;
    for _ in 0..2 {
        database.sql(COPY).await?;
        assert_eq!(remembered(&database, "true").await?, std::slice::from_ref(&good));
        assert_eq!(remembered(&database, &format!("table_uuid = '{}'", uuid(7))).await?.len(), 1);
    }
    Ok(())
}
