//! Tests of older servers, and of servers with packed tables, which are left alone.

use std::collections::BTreeMap;

use anyhow::Result;
use tailrace::sweep::report::Outcome;
use tailrace_kit::lake::{Field, NewFile, differences};

use crate::support::TestDatabase;
use crate::support::governed::{live_ids, outcomes};

#[tokio::test]
async fn an_older_server_is_served_as_a_newer_one() -> Result<()> {
    for version in [9, 10, 11, 14, 18, 19, 22, 23, 26, 27] {
        let database = TestDatabase::in_schema("public").await?;
        database.lake.downgrade(version).await?;
        let ran = database.ran(&["migrate"]).await?;
        assert_eq!(ran.code, 0, "V{version}: {ran:?}");
        let catalog = database.catalog("lake").await?;
        let table = database.table(&catalog, "raw", &[Field::month("at")]).await?;
        table.append(vec![NewFile::of(["600"]), NewFile::new(vec![None])]).await?;
        table.evolve_spec(&[Field::day("at")]).await?;
        let files = vec![NewFile::of(["18000"]), NewFile::of(["18001"]), NewFile::of(["99999"])];
        let ids = table.append(files).await?.file_ids;
        table.register_vector(ids[1], 1, None).await?;
        database.policy("lake", "events.raw", "day(at)", "7d").await?;
        assert_eq!(table.delete_vanished_specs().await?.0, 1, "V{version}");

        let plan = database.done(&["plan", "--output", "json"]).await?;
        let expired = plan["tables"][0]["expired"].as_array().map(Vec::len);
        assert_eq!(expired, Some(3), "V{version}: {plan}");
        assert_eq!(plan["tables"][0]["kept_files"], 2, "V{version}");
        let report = database.sweep_one().await?;
        assert_eq!(report.outcome, Outcome::Dropped, "V{version}: {report:?}");
        assert_eq!((report.counts().files, report.counts().delete_files), (3, 1), "V{version}");
        assert_eq!(live_ids(&table).await?.len(), 2, "V{version}");
        assert_eq!(database.sweep_one().await?.outcome, Outcome::NothingToDo, "V{version}");
        // A table that was dropped there has no policy any more.
        table.drop_table().await?;
        assert_eq!(outcomes(&database.sweep().await?), [], "V{version}");
    }
    Ok(())
}

#[tokio::test]
async fn a_packed_table_is_left_alone() -> Result<()> {
    let database = TestDatabase::new().await?;
    database.lake.add_packed_tables().await?;
    let catalog = database.catalog("lake").await?;
    let mut tables = Vec::new();
    for name in ["a_packed", "b_packed_later", "c_parquet"] {
        let table = database.table(&catalog, name, &[Field::day("at")]).await?;
        table.append(vec![NewFile::of(["18000"])]).await?;
        if name == "a_packed" {
            table.pack().await?;
        }
        tables.push(table);
    }
    let set = |table| ["policy", "set", "lake", table, "--field", "at", "--keep", "7d"];
    let refused = database.ran(&set("events.a_packed")).await?;
    assert_eq!((refused.code, refused.out.as_str()), (1, ""));
    assert_eq!(
        refused.err,
        "tailrace: table events.a_packed is not made of parquet files, and has no partitions to drop\n"
    );
    for table in ["events.b_packed_later", "events.c_parquet"] {
        assert_eq!(database.ran(&set(table)).await?.code, 0);
    }
    tables[0].set_property("partition_retention", Some(r#"{"field": "at", "keep": "7d"}"#)).await?;
    tables[1].pack().await?;
    let before = database.lake.dump().await?;

    let plan = database.ran(&["plan", "--output", "json"]).await?;
    assert_eq!(plan.code, 3, "{plan:?}");
    let report = database.sweep().await?;

    let expected = [
        ("a_packed", Outcome::Failed),
        ("b_packed_later", Outcome::Failed),
        ("c_parquet", Outcome::Dropped),
    ];
    assert_eq!(outcomes(&report), expected);
    let why = Some("the table is not made of parquet files, and has no partitions to drop");
    assert_eq!(report.tables[0].error.as_deref(), why);
    assert_eq!((live_ids(&tables[0]).await?.len(), live_ids(&tables[1]).await?.len()), (1, 1));
    let changed = differences(&before, &database.lake.dump().await?);
    assert_eq!(changed["hog_data_file"].new.len(), 1);
    let altered: BTreeMap<_, _> =
        changed.into_iter().filter(|(table, _)| table.starts_with("hog_table")).collect();
    assert_eq!(altered, BTreeMap::new());
    Ok(())
}
