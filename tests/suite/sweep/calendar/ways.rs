//! Tests of when a pass is full and when it is incremental, and of what each stores.

use anyhow::Result;
use tailrace::policy::Mode;
use tailrace::rules::instant::UtcInstant;
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
        assert_eq!(scene.state("files_below").await?, Some(counter.to_string()));
        assert_eq!(scene.state("through_snapshot").await?, Some(head.to_string()));
        let row = |age: i64| {
            let end = UtcInstant::from_days(i128::from(scene.now.days() as i64 - age + 1));
            format!("1 {} {}", scene.day(age), &end.to_string()[..16])
        };
        assert_eq!(scene.rows().await?, [row(7), row(6), row(0)]);
        assert_eq!(scene.state("reading").await?, None);

        let second = scene.sweep().await?;
        assert_eq!((second.outcome, second.full), (Outcome::NothingToDo, Some(false)));

        // Day 7 is over at midnight, and 7 days later it has expired.
        scene.now = "2026-11-30T23:59:59.999999Z".parse()?;
        assert_eq!(scene.sweep().await?.outcome, Outcome::NothingToDo);
        scene.now = "2026-12-01T00:00:00Z".parse()?;
        let third = scene.sweep().await?;
        assert_eq!((third.outcome, third.full), (Outcome::Dropped, Some(false)));
        assert_eq!(scene.live().await?, ids[..2]);
        assert_eq!(scene.rows().await?.len(), 2);

        scene.now = "2026-12-01T11:59:59.999999Z".parse()?;
        assert_eq!(scene.sweep().await?.full, Some(false));
        scene.now = "2026-12-01T12:00:00Z".parse()?;
        assert_eq!(scene.sweep().await?.full, Some(true), "a day after the first");
    }
    Ok(())
}

#[tokio::test]
async fn an_incremental_pass_looks_at_nothing_but_what_is_due_or_late() -> Result<()> {
    for is_large in [false, true] {
        let mut scene = match is_large {
            true => Scene::large(&[Field::day("at")]).await?,
            false => Scene::new(&[Field::day("at")]).await?,
        };
        scene.settings.scan_limits.small_table = 0;
        scene.sweep().await?;
        let ages = [30, 20, 10, 9, 8];
        let ids = scene.table.append(ages.map(|age| scene.file(age)).to_vec()).await?.file_ids;
        // As if they had been read, and the two oldest days had no files.
        scene
            .database
            .sql(&format!(
                "UPDATE tailrace.table_state SET (files_below, through_snapshot) =
                    (SELECT next_file_id, last_snapshot_id FROM hog_catalog);
                 INSERT INTO tailrace.calendar SELECT catalog_id, table_uuid, 1, false, day,
                    '2026-11-20 00:00Z', '2026-11-20 00:00Z', 86400
                 FROM tailrace.table_state, unnest(ARRAY['{}', '{}', '{}']) AS day",
                scene.day(10),
                scene.day(9),
                scene.day(8)
            ))
            .await?;
        let swept = scene.sweep().await?;
        assert_eq!((swept.outcome, swept.full), (Outcome::Dropped, Some(false)));
        assert_eq!(scene.live().await?, ids[..2], "what a wrong calendar hides is overlooked");
        assert_eq!(scene.rows().await?, Vec::<String>::new());
        scene.now = scene.now.plus(DAY);
        let healed = scene.sweep().await?;
        assert_eq!((healed.outcome, healed.full), (Outcome::Dropped, Some(true)));
        assert_eq!(scene.live().await?, Vec::<i64>::new());
    }
    Ok(())
}

/// A longer or shorter keep and another mode read nothing and write no row; a spec that was learned as it came
/// reads nothing; another type of the column does, and another field.
#[tokio::test]
async fn what_makes_a_pass_read_the_table_again() -> Result<()> {
    let mut scene = Scene::new(&[Field::day("at")]).await?;
    scene.table.append(vec![scene.file(0), scene.file(7)]).await?;
    scene.sweep().await?;
    let written = "SELECT string_agg(xmin::text, ' ' ORDER BY value) FROM tailrace.calendar";
    let before = scene.database.text(written).await?;
    for keep in ["8d", "30d", "7d"] {
        scene.database.govern(&scene.table, "at", keep).await?;
        let swept = scene.sweep().await?;
        assert_eq!((swept.outcome, swept.full), (Outcome::NothingToDo, Some(false)), "{keep}");
    }
    scene.database.govern_as(&scene.table, "at", "7d", Mode::Observe).await?;
    assert_eq!(scene.sweep().await?.outcome, Outcome::Observed);
    scene.database.govern(&scene.table, "at", "7d").await?;
    assert_eq!(scene.sweep().await?.full, Some(false), "another mode");
    assert_eq!(scene.database.text(written).await?, before);

    scene.table.evolve_spec(&[Field::hour("at")]).await?;
    assert_eq!(scene.sweep().await?.full, Some(false), "another spec");
    scene
        .database
        .sql(
            "INSERT INTO tailrace.source_column_type
               (catalog_id, table_id, table_uuid, field_id, col_type)
             SELECT catalog_id, table_id, table_uuid, source_field_id, 'date'
               FROM hog_partition_field JOIN hog_table USING (catalog_id, table_id) LIMIT 1",
        )
        .await?;
    scene.database.sql("UPDATE tailrace.table_state SET schema_version = 0, shape = ''").await?;
    assert_eq!(scene.sweep().await?.full, Some(true), "another type of the column");
    assert_eq!(scene.sweep().await?.full, Some(false));
    scene.database.sql("UPDATE tailrace.table_state SET table_uuid = gen_random_uuid()").await?;
    assert_eq!(scene.sweep().await?.full, Some(true), "another UUID");
    scene.database.sql("UPDATE tailrace.table_state SET source_field_id = 77").await?;
    assert_eq!(scene.sweep().await?.full, Some(true), "another field");
    assert_eq!(scene.sweep().await?.full, Some(false));
    // A shorter keep drops what is in the calendar, and a full pass is not needed for it.
    scene.database.govern(&scene.table, "at", "6d").await?;
    let swept = scene.sweep().await?;
    assert_eq!((swept.outcome, swept.full), (Outcome::Dropped, Some(false)));
    scene.now = scene.now.plus(DAY);
    assert_eq!(scene.sweep().await?.full, Some(true), "a day later");
    Ok(())
}

/// A row that waits for the next full pass, because a policy with a shorter keep observed it, falls due by the policy
/// that enforces.
#[tokio::test]
async fn what_a_shorter_keep_observed_falls_due_by_a_longer_one() -> Result<()> {
    let mut scene = Scene::large(&[Field::day("at")]).await?;
    scene.settings.full_pass_every = DAY * 1_000;
    scene.table.append(vec![scene.file(5)]).await?;
    scene.table.append(vec![scene.file(0); 20]).await?;
    scene.database.govern_as(&scene.table, "at", "3d", Mode::Observe).await?;
    assert_eq!(scene.sweep().await?.outcome, Outcome::Observed);
    scene.database.govern_as(&scene.table, "at", "7d", Mode::Enforce).await?;
    assert_eq!(scene.sweep().await?.outcome, Outcome::NothingToDo);
    scene.now = scene.now.plus(DAY * 3);
    let swept = scene.sweep().await?;
    assert_eq!((swept.outcome, swept.counts().files), (Outcome::Dropped, 1));
    Ok(())
}

/// What would be dropped is logged when it becomes so, and once per full pass; its rows wait until then, and fall due at
/// once when the policy comes to enforce.
#[tokio::test]
async fn a_policy_that_observes_has_a_calendar_and_ends_nothing() -> Result<()> {
    for is_large in [false, true] {
        let mut scene = Scene::large(&[Field::day("at")]).await?;
        if !is_large {
            scene.settings.scan_limits = Default::default();
        }
        scene.database.govern_as(&scene.table, "at", "7d", Mode::Observe).await?;
        let ids = scene.table.append(vec![scene.file(9), scene.file(7)]).await?.file_ids;
        scene.table.append(vec![scene.file(0); 20]).await?;
        let told = |swept: &tailrace::sweep::report::TableReport| {
            assert_eq!((swept.outcome, swept.full), (Outcome::Observed, None));
            swept.would_drop.iter().map(|one| one.counts.files).collect::<Vec<_>>()
        };
        assert_eq!(told(&scene.sweep().await?), [1]);
        let later = "2026-12-01T12:00";
        assert_eq!(scene.rows().await?.len(), 3);
        assert!(scene.rows().await?[0].ends_with(later), "{:?}", scene.rows().await?);
        assert_eq!(told(&scene.sweep().await?), Vec::<i64>::new(), "it was told");
        scene.table.append(vec![scene.file(9)]).await?;
        assert_eq!(told(&scene.sweep().await?), [2], "another file came");
        scene.now = "2026-12-01T00:00:00Z".parse()?;
        assert_eq!(told(&scene.sweep().await?), [1], "another day fell due");
        scene.now = "2026-12-01T12:00:00Z".parse()?;
        assert_eq!(told(&scene.sweep().await?), [2, 1], "a full pass");
        assert_eq!(scene.live().await?.len(), 23);
        scene.database.govern(&scene.table, "at", "7d").await?;
        let swept = scene.sweep().await?;
        assert_eq!((swept.outcome, swept.full), (Outcome::Dropped, Some(false)));
        assert_eq!(scene.live().await?.len(), 20, "{ids:?}");
    }
    Ok(())
}

#[tokio::test]
async fn undatable_files_are_counted_by_full_passes_with_their_age() -> Result<()> {
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
async fn a_server_without_the_lookup_index_is_reported_once() -> Result<()> {
    let scene = Scene::new(&[Field::day("at")]).await?;
    let other = scene.database.table(&scene.catalog, "other", &[Field::day("at")]).await?;
    scene.database.govern(&other, "at", "7d").await?;
    scene.table.append(vec![NewFile::of(["18000"])]).await?;
    assert_eq!(scene.database.ran(&["sweep"]).await?.events("lookup_index_missing").len(), 0);

    scene.database.lake.downgrade(22).await?;
    scene.table.append(vec![NewFile::of(["18000"])]).await?;
    let ran = scene.database.ran(&["sweep"]).await?;
    assert_eq!(ran.events("drop_committed").len(), 1, "{ran:?}");
    assert_eq!(ran.events("table_finished").len(), 1, "the other has no work: {ran:?}");
    let told = ran.events("lookup_index_missing");
    assert_eq!(told.len(), 1, "{ran:?}");
    // One that is being built is none yet.
    let build = "CREATE INDEX hog_file_partition_value_lookup ON hog_file_partition_value (value);
        UPDATE pg_index SET indisvalid = false
        WHERE indexrelid = 'hog_file_partition_value_lookup'::regclass";
    scene.database.sql(build).await?;
    scene.table.append(vec![NewFile::of(["18000"])]).await?;
    let ran = scene.database.ran(&["sweep"]).await?;
    assert_eq!(ran.events("lookup_index_missing").len(), 1, "{ran:?}");
    scene.database.sql("DROP INDEX hog_file_partition_value_lookup").await?;
    let statement = told[0]["statement"].as_str().unwrap_or_default();
    scene.database.sql(statement).await?;
    scene.table.append(vec![NewFile::of(["18000"])]).await?;
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

/// Values that have expired and stay, as under a policy that observes, have rows of their own as long as they are
/// few; beyond that they share those of their days.
#[tokio::test]
async fn many_values_that_stay_share_the_rows_of_their_days() -> Result<()> {
    let singly = [
        "1 438912 2020-01-27T01:00 2026-12-01T12:00",
        "1 438913 2020-01-27T02:00 2026-12-01T12:00",
        "1 438936 2020-01-28T01:00 2026-12-01T12:00",
    ];
    let by_day = ["1 d18288 2020-01-27T01:00", "1 d18289 2020-01-28T01:00"];
    for (most_rows, expected) in [(3, &singly[..]), (2, &by_day[..])] {
        let mut scene = Scene::new(&[Field::hour("at")]).await?;
        scene.settings.scan_limits.most_rows = most_rows;
        scene.database.govern_as(&scene.table, "at", "7d", Mode::Observe).await?;
        let files = ["438912", "438913", "438936"].map(|hour| NewFile::of([hour])).to_vec();
        scene.table.append(files).await?;
        scene.sweep().await?;
        assert_eq!(scene.rows().await?, expected, "{most_rows}");
        assert_eq!(scene.live().await?.len(), 3);
    }
    Ok(())
}
