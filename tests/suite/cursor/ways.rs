//! When a pass is full and when it is incremental, and what it stores.

use anyhow::Result;
use tailrace::policy::Mode;
use tailrace::sweep::report::Outcome;
use tailrace_kit::lake::{Field, NewFile};

use super::{DAY, Scene};

#[tokio::test]
async fn the_first_pass_is_full_and_the_next_knows_how_far_it_got() -> Result<()> {
    for is_large in [false, true] {
        let mut scene = match is_large {
            true => Scene::large(&[Field::day("at")]).await?,
            false => Scene::new(&[Field::day("at")]).await?,
        };
        let ages = [0, 6, 7, 8, 9, 10];
        let ids = scene.table.append(ages.map(|age| scene.file(age)).to_vec()).await?.file_ids;
        let (head, counter) = (scene.catalog.head().await?, scene.catalog.next_file_id().await?);
        let first = scene.sweep().await?;
        assert_eq!((first.outcome, first.full), (Outcome::Dropped, Some(true)));
        assert_eq!(scene.live().await?, ids[..3]);
        assert_eq!(scene.cursor("files_below").await?, Some(counter.to_string()));
        assert_eq!(scene.cursor("through_snapshot").await?, Some(head.to_string()));
        let at = "to_char(expired_through at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS')";
        assert_eq!(scene.cursor(at).await?.as_deref(), Some("2026-11-23 12:00:00"));
        assert_eq!(scene.cursor("skipped").await?.as_deref(), Some("{}"));
        assert_eq!(scene.state("reading").await?, None);

        let second = scene.sweep().await?;
        assert_eq!((second.outcome, second.full), (Outcome::NothingToDo, Some(false)));
        // Its own drop made a snapshot meanwhile.
        let through = scene.catalog.head().await?;
        assert_eq!(scene.cursor("through_snapshot").await?, Some(through.to_string()));

        // Day 7 is over at midnight, and 7 days later it has expired.
        scene.now = "2026-11-30T23:59:59.999999Z".parse()?;
        assert_eq!(scene.sweep().await?.outcome, Outcome::NothingToDo);
        scene.now = "2026-12-01T00:00:00Z".parse()?;
        let third = scene.sweep().await?;
        assert_eq!((third.outcome, third.full), (Outcome::Dropped, Some(false)));
        assert_eq!(scene.live().await?, ids[..2]);

        scene.now = "2026-12-01T11:59:59.999999Z".parse()?;
        assert_eq!(scene.sweep().await?.full, Some(false));
        scene.now = "2026-12-01T12:00:00Z".parse()?;
        assert_eq!(scene.sweep().await?.full, Some(true), "a day after the first");
    }
    Ok(())
}

#[tokio::test]
async fn an_incremental_pass_looks_at_nothing_that_was_dealt_with() -> Result<()> {
    for is_large in [false, true] {
        let mut scene = match is_large {
            true => Scene::large(&[Field::day("at")]).await?,
            false => Scene::new(&[Field::day("at")]).await?,
        };
        scene.settings.reach.small_table = 0;
        scene.sweep().await?;
        let ages = [30, 20, 10, 9, 8];
        let ids = scene.table.append(ages.map(|age| scene.file(age)).to_vec()).await?.file_ids;
        // As if they had been there, and days up to the 20th before had been dealt with.
        scene
            .database
            .sql(
                "UPDATE tailrace.sweep_cursor SET expired_through = '2026-11-11 00:00Z',
                    (files_below, through_snapshot) =
                    (SELECT next_file_id, last_snapshot_id FROM hog_catalog)",
            )
            .await?;
        let swept = scene.sweep().await?;
        assert_eq!((swept.outcome, swept.full), (Outcome::Dropped, Some(false)));
        assert_eq!(scene.live().await?, ids[..2], "what a wrong cursor hides is overlooked");
        scene.now = scene.now.plus(DAY);
        let healed = scene.sweep().await?;
        assert_eq!((healed.outcome, healed.full), (Outcome::Dropped, Some(true)));
        assert_eq!(scene.live().await?, Vec::<i64>::new());
    }
    Ok(())
}

#[tokio::test]
async fn what_the_cursor_was_good_for_changed() -> Result<()> {
    let scene = Scene::new(&[Field::day("at")]).await?;
    scene.sweep().await?;
    assert_eq!(scene.sweep().await?.full, Some(false));
    scene.database.govern(&scene.table, "at", "8d").await?;
    assert_eq!(scene.sweep().await?.full, Some(true), "another revision of the policy");
    assert_eq!(scene.sweep().await?.full, Some(false));
    scene.table.evolve_spec(&[Field::hour("at")]).await?;
    assert_eq!(scene.sweep().await?.full, Some(true), "another spec");
    assert_eq!(scene.cursor("count(*)").await?.as_deref(), Some("2"));
    assert_eq!(scene.sweep().await?.full, Some(false));
    scene
        .database
        .sql(
            "INSERT INTO tailrace.source_column_type
               (catalog_id, table_id, table_uuid, field_id, col_type)
             SELECT catalog_id, table_id, table_uuid, source_field_id, 'date'
               FROM hog_partition_field JOIN hog_table USING (catalog_id, table_id) LIMIT 1",
        )
        .await?;
    assert_eq!(scene.sweep().await?.full, Some(true), "another type of the column");
    scene.database.sql("UPDATE tailrace.sweep_state SET table_uuid = gen_random_uuid()").await?;
    assert_eq!(scene.sweep().await?.full, Some(true), "another incarnation");
    assert_eq!(scene.sweep().await?.full, Some(false));
    Ok(())
}

#[tokio::test]
async fn a_policy_that_observes_moves_no_cursor() -> Result<()> {
    for is_large in [false, true] {
        let mut scene = Scene::large(&[Field::day("at")]).await?;
        if !is_large {
            scene.settings.reach = Default::default();
        }
        scene.database.govern_as(&scene.table, "at", "7d", Mode::Observe).await?;
        let old = scene.table.append(vec![scene.file(9), scene.file(0)]).await?.file_ids;
        let observed = scene.sweep().await?;
        assert_eq!((observed.outcome, observed.full), (Outcome::Observed, None));
        assert_eq!((observed.would_drop.len(), scene.live().await?), (1, old.clone()));
        for table in ["sweep_state", "sweep_cursor"] {
            let rows =
                scene.database.text(&format!("SELECT count(*) FROM tailrace.{table}")).await?;
            assert_eq!(rows.as_deref(), Some("0"), "{table}");
        }
        // Nor does it touch one that is there.
        scene.database.govern(&scene.table, "at", "7d").await?;
        scene.sweep().await?;
        let before = scene.database.rows("SELECT * FROM tailrace.sweep_cursor").await?;
        scene.database.govern_as(&scene.table, "at", "7d", Mode::Observe).await?;
        scene.table.append(vec![scene.file(9)]).await?;
        assert_eq!(scene.sweep().await?.outcome, Outcome::Observed);
        assert_eq!(scene.database.rows("SELECT * FROM tailrace.sweep_cursor").await?, before);
    }
    Ok(())
}

#[tokio::test]
async fn what_nobody_can_date_is_counted_by_full_passes_and_told_with_its_age() -> Result<()> {
    for is_large in [false, true] {
        let mut scene = match is_large {
            true => Scene::large(&[Field::day("at")]).await?,
            false => Scene::new(&[Field::day("at")]).await?,
        };
        let undatable = [None, Some("x".to_owned()), Some("x".to_owned())];
        let mut files: Vec<_> =
            undatable.into_iter().map(|text| NewFile::new(vec![text])).collect();
        files.extend((0..20).map(|_| scene.file(0)));
        scene.table.append(files).await?;
        let counted = |swept: &tailrace::sweep::report::TableReport| {
            swept.counted.map(|counted| {
                (counted.undatable_files, counted.uncovered_files, counted.at.to_string())
            })
        };
        let first = scene.sweep().await?;
        let noon = "2026-11-30T12:00:00Z".to_owned();
        assert_eq!(counted(&first), Some((3, 0, noon.clone())));
        scene.table.append(vec![NewFile::new(vec![None])]).await?;
        scene.now = "2026-11-30T13:00:00Z".parse()?;
        let second = scene.sweep().await?;
        assert_eq!(second.full, Some(false));
        assert_eq!(counted(&second), Some((3, 0, noon)));
        scene.now = "2026-12-01T13:00:00Z".parse()?;
        let third = scene.sweep().await?;
        assert_eq!(counted(&third), Some((4, 0, "2026-12-01T13:00:00Z".to_owned())));
    }
    Ok(())
}

#[tokio::test]
async fn timestamps_and_dates_as_they_are_written_expire_one_by_one() -> Result<()> {
    use tailrace_kit::lake::Column;
    let keep_day = "2026-11-23T";
    for (column_type, texts) in [
        ("timestamp", [11, 12, 13].map(|hour| format!("{keep_day}{hour}:30:00"))),
        ("timestamptz", [11, 12, 13].map(|hour| format!("{keep_day}{}:30:00+05:00", hour + 5))),
        (
            "timestamp_ns",
            [11, 12, 13].map(|hour| {
                (1_795_392_000_000_000_000_i64 + hour * 3_600_000_000_000 + 1_800_000_000_000)
                    .to_string()
            }),
        ),
    ] {
        let mut scene = Scene::large(&[Field::day("at")]).await?;
        let columns = [Column::new("when", column_type)];
        let spec = [Field::identity("when")];
        scene.table = scene.database.table_of(&scene.catalog, "a_named", &columns, &spec).await?;
        scene.database.govern(&scene.table, "when", "7d").await?;
        let files = texts.map(|text| NewFile::of([text])).to_vec();
        let ids = scene.table.append(files).await?.file_ids;
        assert_eq!(scene.sweep().await?.full, Some(true));
        assert_eq!(scene.live().await?, ids[1..], "{column_type}");
        scene.now = "2026-11-30T12:29:59.999999Z".parse()?;
        assert_eq!(scene.sweep().await?.outcome, Outcome::NothingToDo, "{column_type}");
        scene.now = "2026-11-30T12:30:00Z".parse()?;
        let swept = scene.sweep().await?;
        assert_eq!((swept.outcome, swept.full), (Outcome::Dropped, Some(false)), "{column_type}");
        assert_eq!(scene.live().await?, ids[2..], "{column_type}");
    }
    Ok(())
}

#[tokio::test]
async fn a_server_without_the_lookup_index_is_told_of_once() -> Result<()> {
    let scene = Scene::new(&[Field::day("at")]).await?;
    let other = scene.database.table(&scene.catalog, "other", &[Field::day("at")]).await?;
    scene.database.govern(&other, "at", "7d").await?;
    scene.table.append(vec![NewFile::of(["18000"])]).await?;
    assert_eq!(scene.database.ran(&["sweep"]).await?.events("lookup_index_missing").len(), 0);

    scene.database.lake.downgrade(22).await?;
    scene.table.append(vec![NewFile::of(["18000"])]).await?;
    let ran = scene.database.ran(&["sweep"]).await?;
    assert_eq!(ran.events("drop_committed").len(), 1, "{ran:?}");
    assert_eq!(ran.events("table_finished").len(), 2, "{ran:?}");
    let told = ran.events("lookup_index_missing");
    assert_eq!(told.len(), 1, "{ran:?}");
    // One that is being built is none yet.
    let build = "CREATE INDEX hog_file_partition_value_lookup ON hog_file_partition_value (value);
        UPDATE pg_index SET indisvalid = false
        WHERE indexrelid = 'hog_file_partition_value_lookup'::regclass";
    scene.database.sql(build).await?;
    let ran = scene.database.ran(&["sweep"]).await?;
    assert_eq!(ran.events("lookup_index_missing").len(), 1, "{ran:?}");
    scene.database.sql("DROP INDEX hog_file_partition_value_lookup").await?;
    let statement = told[0]["statement"].as_str().unwrap_or_default();
    scene.database.sql(statement).await?;
    let after = scene.database.ran(&["sweep"]).await?;
    assert_eq!((after.code, after.events("lookup_index_missing").len()), (0, 0));
    // As V23 builds it.
    let built =
        "SELECT indexdef FROM pg_indexes WHERE indexname = 'hog_file_partition_value_lookup'";
    assert_eq!(
        scene.database.text(built).await?.as_deref(),
        Some(
            "CREATE INDEX hog_file_partition_value_lookup ON public.hog_file_partition_value \
             USING btree (catalog_id, key_index, value, data_file_id)"
        )
    );
    Ok(())
}
