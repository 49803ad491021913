//! Tests of which files a drop ends: those of the table, of the spec and of the whole tuple, and no
//! file that only shares a value.

use anyhow::Result;
use tailrace::sweep::report::Outcome;
use tailrace_kit::lake::{Column, Field, NewFile, differences};

use crate::support::TestDatabase;
use crate::support::governed::{Values, expired, kept, live_ids, live_values, outcomes, values};
use crate::support::program::proven_18000;

const OLD: &str = "18000";

#[tokio::test]
async fn tables_and_catalogs_that_share_the_texts_lose_nothing() -> Result<()> {
    let database = TestDatabase::new().await?;
    let (one, two) = (database.catalog("one").await?, database.catalog("two").await?);
    let days = || (18_000..18_010).map(|day| NewFile::of([day.to_string()])).collect::<Vec<_>>();
    let governed = database.table(&one, "governed", &[Field::day("at")]).await?;
    let neighbour = database.table(&one, "neighbour", &[Field::day("at")]).await?;
    let namesake = database.table(&two, "governed", &[Field::day("at")]).await?;
    // The same key index holds another column's texts here.
    let by_kind = database.table(&one, "by_kind", &[Field::identity("kind")]).await?;
    for table in [&governed, &neighbour, &namesake, &by_kind] {
        table.append(days()).await?;
    }
    let vectored = neighbour.live_files().await?[0].data_file_id;
    neighbour.register_vector(vectored, 1, None).await?;
    database.policy("one", "events.governed", "day(at)", "7d").await?;
    let before = database.lake.dump().await?;

    let report = database.sweep().await?;

    assert_eq!(outcomes(&report), [("governed", Outcome::Dropped)]);
    assert_eq!(report.tables[0].counts().files, 10);
    let changed = differences(&before, &database.lake.dump().await?);
    let ended: Vec<_> = changed["hog_data_file"].new.iter().collect();
    assert_eq!(ended.len(), 10);
    let table_id = format!("\"table_id\": {},", governed.table_id);
    let catalog_id = format!("\"catalog_id\": {},", one.catalog_id);
    assert!(ended.iter().all(|row| row.contains(&table_id) && row.contains(&catalog_id)));
    let tables: Vec<_> = changed.keys().map(String::as_str).collect();
    assert_eq!(tables, ["hog_catalog", "hog_data_file", "hog_snapshot", "hog_snapshot_change"]);
    for table in [&neighbour, &namesake, &by_kind] {
        assert_eq!(live_ids(table).await?.len(), 10);
    }
    Ok(())
}

fn pair(team: Option<&str>, day: Option<&str>) -> Values {
    vec![team.map(str::to_owned), day.map(str::to_owned)]
}

#[tokio::test]
async fn a_tuple_is_matched_whole_and_null_is_a_value_of_it() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("lake").await?;
    let columns = [Column::new("team_id", "long"), Column::new("at", "timestamptz")];
    let spec = [Field::identity("team_id"), Field::day("at")];
    let table = database.table_of(&catalog, "raw", &columns, &spec).await?;
    let stored = [
        pair(Some("1"), Some(OLD)),
        pair(Some("1"), Some(OLD)),
        pair(Some("2"), Some(OLD)),
        pair(None, Some(OLD)),
        pair(None, Some(OLD)),
        pair(Some(""), Some(OLD)),
        pair(Some("null"), Some(OLD)),
        pair(Some("1"), None),
        pair(None, None),
        pair(Some(OLD), Some("99999")),
        pair(Some("1"), Some("99999")),
        pair(None, Some("99999")),
    ];
    let mut files: Vec<_> = stored.iter().cloned().map(NewFile::new).collect();
    // Damage: without the row of the null, it looks like nothing that a writer wrote.
    files.push(NewFile::new(pair(None, Some(OLD))).missing(0));
    files.push(NewFile::new(pair(Some("1"), Some(OLD))).missing(1));
    let ids = table.append(files).await?.file_ids;
    database.policy("lake", "events.raw", "at", "7d").await?;

    let plan = database.plan_one("2026-09-25T00:00:00Z").await?;
    let tuples = [
        (1, pair(None, Some(OLD)), 2),
        (1, pair(Some(""), Some(OLD)), 1),
        (1, pair(Some("1"), Some(OLD)), 2),
        (1, pair(Some("2"), Some(OLD)), 1),
        (1, pair(Some("null"), Some(OLD)), 1),
    ];
    assert_eq!(expired(&plan), tuples);
    assert_eq!(plan.expired[0].display, "null / 2019-04-14");
    assert_eq!(kept(&plan), [("future", 3), ("null", 2), ("incomplete", 2)]);

    let report = database.sweep_one().await?;
    assert_eq!((report.outcome, report.counts().files), (Outcome::Dropped, 7));
    assert_eq!(live_ids(&table).await?, ids[7..]);
    Ok(())
}

#[tokio::test]
async fn a_missing_or_an_extra_row_matches_no_tuple() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("lake").await?;
    let table = database.table(&catalog, "raw", &[Field::day("at")]).await?;
    let spec = table.live_spec().await?.unwrap_or_default();
    let extra = NewFile::of([OLD, OLD]).spec(spec);
    let shifted = NewFile::of(["x", OLD]).spec(spec).missing(0);
    let files = vec![NewFile::of([OLD]), NewFile::of([OLD]).missing(0), extra, shifted];
    let ids = table.append(files).await?.file_ids;
    database.policy("lake", "events.raw", "day(at)", "7d").await?;

    let plan = database.plan_one("2026-09-25T00:00:00Z").await?;
    assert_eq!(expired(&plan), [(spec, values([OLD]), 1)]);
    assert_eq!(kept(&plan), [("incomplete", 3)]);
    let json = database.plan_json("2026-09-25T00:00:00Z").await?;
    let shown: Vec<_> = json["undatable"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|sample| (sample["partition_values"].to_string(), sample["files"].as_i64()))
        .collect();
    assert_eq!(shown.len(), 3, "{json}");
    for values in ["[]", "[\"18000\"]", "[\"18000\",\"18000\"]"] {
        assert!(shown.contains(&(values.to_owned(), Some(1))), "{values}: {shown:?}");
    }
    assert_eq!(database.sweep_one().await?.counts().files, 1);
    assert_eq!(live_ids(&table).await?, ids[1..]);
    Ok(())
}

#[tokio::test]
async fn the_same_texts_under_another_spec_stay() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("lake").await?;
    // The text that is an old day under the second spec is a kind under the first and the
    // third, and a bucket under the fourth.
    let table = database.table(&catalog, "raw", &[Field::identity("kind")]).await?;
    table.append(vec![NewFile::of([OLD])]).await?;
    let day = table.evolve_spec(&[Field::day("at")]).await?;
    let dropped = table.append(vec![proven_18000("at"), proven_18000("at")]).await?.file_ids;
    table.evolve_spec(&[Field::identity("kind"), Field::bucket("at", 4)]).await?;
    table.append(vec![NewFile::of([OLD, "1"])]).await?;
    table.evolve_spec(&[Field::bucket("at", 20_000)]).await?;
    table.append(vec![NewFile::of([OLD])]).await?;
    table.evolve_spec(&[Field::day("at")]).await?;
    database.policy("lake", "events.raw", "day(at)", "7d").await?;
    let before = live_ids(&table).await?;

    let plan = database.plan_one("2026-09-25T00:00:00Z").await?;
    assert_eq!(expired(&plan), [(day, values([OLD]), 2)]);
    assert_eq!(kept(&plan), [("uncovered", 3)]);
    assert_eq!(database.sweep_one().await?.counts().files, 2);
    let expected: Vec<_> = before.into_iter().filter(|id| !dropped.contains(id)).collect();
    assert_eq!(live_ids(&table).await?, expected);
    Ok(())
}

/// Two time fields of the policy's column in one spec: both must say expired.
#[tokio::test]
async fn all_time_fields_of_the_column_must_agree() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("lake").await?;
    let spec = [Field::month("at"), Field::day("at")];
    let table = database.table(&catalog, "raw", &spec).await?;
    // 591 is 2019-04, and 18000 a day of it; the others are a writer's mistakes.
    let files = [["591", OLD], ["20000", OLD], ["591", "99999"], ["591", "x"]];
    table.append(files.map(NewFile::of).to_vec()).await?;
    database.policy("lake", "events.raw", "at", "7d").await?;
    // The day alone leaves on 2019-04-22, its month on 2019-05-08.
    let early = database.plan_one("2019-05-07T23:59:59.999999Z").await?;
    assert_eq!(expired(&early), []);
    let plan = database.plan_one("2019-05-08T00:00:00Z").await?;
    assert_eq!(expired(&plan), [(1, values(["591", OLD]), 1)]);
    assert_eq!(kept(&plan), [("future", 2), ("malformed", 1)]);
    assert_eq!(database.sweep_one().await?.counts().files, 1);
    assert_eq!(
        live_values(&table).await?,
        [values(["20000", OLD]), values(["591", "99999"]), values(["591", "x"])]
    );
    Ok(())
}
