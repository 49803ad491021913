//! Tests of files whose rows and bytes add up to more than 64 bits can hold.

use anyhow::Result;
use serde_json::json;
use tailrace::explicit::call::{DropBody, TableRef};
use tailrace::explicit::{Bounds, drop_partitions};
use tailrace::sweep::report::Outcome;
use tailrace_kit::lake::{Field, NewFile};
use uuid::Uuid;

use crate::support::TestDatabase;
use crate::support::governed::{live_ids, of_table, snapshots};
use crate::support::program::settings;

const HUGE: &str = "UPDATE hog_data_file
    SET record_count = 5000000000000000000, file_size_bytes = 5000000000000000000";

#[tokio::test]
async fn what_cannot_be_summed_goes_and_is_told_as_the_largest_number() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("lake").await?;
    let table = database.table(&catalog, "raw", &[Field::day("at")]).await?;
    let days = ["18000", "18000", "18001"];
    table.append(days.map(|day| NewFile::of([day]).records(1).bytes(1)).to_vec()).await?;
    database.sql(HUGE).await?;
    database.govern(&table, "day(at)", "7d").await?;

    let plan = database.ran(&["plan", "--output", "json"]).await?;
    let plan: serde_json::Value = serde_json::from_str(&plan.out)?;
    let told = |of: &serde_json::Value| json!([of["display"], of["records"], of["bytes"]]);
    let expired = &plan["tables"][0]["expired"];
    let one = 5_000_000_000_000_000_000_i64;
    assert_eq!(told(&expired[0]), json!(["2019-04-14", i64::MAX, i64::MAX]), "{plan}");
    assert_eq!(told(&expired[1]), json!(["2019-04-15", one, one]), "{plan}");

    let report = database.sweep_with(&settings()).await?;

    let report = of_table(&report, "raw");
    assert_eq!((report.outcome, &report.error), (Outcome::Dropped, &None));
    assert_eq!(snapshots(report), [(3, vec!["2019-04-14", "2019-04-15"])]);
    assert_eq!((report.snapshots[0].records, report.snapshots[0].bytes), (i64::MAX, i64::MAX));
    assert_eq!(live_ids(&table).await?, [] as [i64; 0]);
    let partitions = database
        .text("SELECT jsonb_path_query_array(partitions, '$[*].bytes')::text FROM tailrace.drop_history")
        .await?;
    assert_eq!(partitions, Some(format!("[{}, {one}]", i64::MAX)));
    let verified = database.ran(&["verify"]).await?;
    assert_eq!(verified.code, 0, "{}{}", verified.out, verified.err);
    let traced = database.ran(&["trace", "lake", "--output", "json"]).await?;
    let traced: serde_json::Value = serde_json::from_str(&traced.out)?;
    assert_eq!(traced["catalogs"][0]["drops"][0]["bytes"], i64::MAX, "{traced}");
    Ok(())
}

#[tokio::test]
async fn an_explicit_drop_of_it_has_a_receipt() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("lake").await?;
    let table = database.table(&catalog, "raw", &[Field::day("at")]).await?;
    table.append(["1", "1"].map(|day| NewFile::of([day]).records(1).bytes(1)).to_vec()).await?;
    database.sql(HUGE).await?;
    let name = TableRef {
        catalog: "lake".to_owned(),
        namespace: "events".to_owned(),
        table: "raw".to_owned(),
    };
    let body: DropBody = serde_json::from_value(json!({
        "partitions": [{ "partition_values": ["1"] }], "idempotency_key": Uuid::new_v4(),
    }))?;
    let bounds = Bounds { limits: settings().limits, max_files: 100 };
    let mut session = database.tailrace().session().await?;

    for replayed in [false, true] {
        let answer = drop_partitions(&mut session, &name, &body, "me", &bounds).await?;
        assert_eq!((answer.committed, answer.replayed, answer.files_ended), (true, replayed, 2));
        assert_eq!((answer.records, answer.bytes), (i64::MAX, i64::MAX));
    }
    Ok(())
}
