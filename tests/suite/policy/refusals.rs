//! Tests of policies that are refused, and of the messages.

use anyhow::Result;
use tailrace_kit::lake::{Column, Field};

use crate::support::TestDatabase;

async fn a_table_of_every_kind(database: &TestDatabase) -> Result<()> {
    let catalog = database.catalog("lake").await?;
    let columns = [
        Column::new("at", "timestamptz"),
        Column::new("team", "long"),
        Column::new("kind", "string"),
        Column::new("other", "timestamp"),
        Column::structure("meta", vec![Column::new("ts", "timestamp")]),
    ];
    let spec = [
        Field::bucket("team", 16),
        Field::day("at"),
        Field::identity("kind"),
        Field::month("meta.ts"),
        Field::bucket("other", 4),
    ];
    database.table_of(&catalog, "raw", &columns, &spec).await?;
    database.table_of(&catalog, "bare", &columns, &[]).await?;
    Ok(())
}

fn set<'a>(table: &'a str, field: &'a str, keep: &'a str) -> [&'a str; 8] {
    ["policy", "set", "lake", table, "--field", field, "--keep", keep]
}

#[tokio::test]
async fn a_field_without_time_is_refused_with_the_fields_there_are() -> Result<()> {
    let database = TestDatabase::new().await?;
    a_table_of_every_kind(&database).await?;
    let partitioned = "the table is partitioned by bucket(16, team), day(at), identity(kind), \
                       month(meta.ts), bucket(4, other)";
    for (field, reason) in [
        ("team", "is a bucket, which gives no date"),
        ("other", "is a bucket, which gives no date"),
        ("bucket(team)", "is a bucket, which gives no date"),
        ("kind", "is the identity of a string column, which gives no date"),
        ("nope", "names no column \"nope\" of the table"),
        ("day(nope)", "names no column \"nope\" of the table"),
        ("meta", "names no column \"meta\" of the table"),
        ("ts", "names no column \"ts\" of the table"),
        ("AT", "names no column \"AT\" of the table"),
        ("month(at)", "is not what the table is partitioned by (no month of at)"),
        ("day(meta.ts)", "is not what the table is partitioned by (no day of meta.ts)"),
        ("void(at)", "is not what the table is partitioned by (no void of at)"),
    ] {
        let ran = database.ran(&set("events.raw", field, "7d")).await?;
        assert_eq!((ran.code, ran.out.as_str()), (1, ""), "{field}");
        assert_eq!(ran.err, format!("tailrace: field {field:?} {reason}; {partitioned}\n"));
    }
    let ran = database.ran(&set("events.bare", "at", "7d")).await?;
    assert_eq!(ran.code, 1);
    assert_eq!(
        ran.err,
        "tailrace: field \"at\" is not what the table is partitioned by; the table is not \
         partitioned\n"
    );
    for field in ["", "day(at", "a b"] {
        let ran = database.ran(&set("events.raw", field, "7d")).await?;
        assert_eq!(ran.code, 2, "{field}");
        assert!(ran.err.contains("is neither a column"), "{}", ran.err);
    }
    let count = database.text("SELECT count(*) FROM tailrace.policy").await?;
    assert_eq!(count.as_deref(), Some("0"));
    for field in ["at", "day(at)", "meta.ts", "month(meta.ts)"] {
        assert_eq!(database.ran(&set("events.raw", field, "7d")).await?.code, 0, "{field}");
    }
    Ok(())
}

/// Identity is a time field on time types only.
#[tokio::test]
async fn identity_counts_on_dates_and_timestamps_alone() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("lake").await?;
    for (col_type, code) in [
        ("date", 0),
        ("timestamp", 0),
        ("timestamp_s", 0),
        ("timestamp_ms", 0),
        ("timestamp_ns", 0),
        ("timestamptz", 0),
        ("time", 1),
        ("string", 1),
        ("int", 1),
        ("long", 1),
        ("double", 1),
        ("boolean", 1),
        ("uuid", 1),
        ("binary", 1),
    ] {
        let columns = [Column::new("v", col_type)];
        database.table_of(&catalog, col_type, &columns, &[Field::identity("v")]).await?;
        let name = format!("events.{col_type}");
        let ran = database.ran(&set(&name, "v", "7d")).await?;
        assert_eq!(ran.code, code, "{col_type}: {ran:?}");
        if code == 1 {
            let words = format!(
                "tailrace: field \"v\" is the identity of a {col_type} column, which gives no date; \
                 the table is partitioned by identity(v)\n"
            );
            assert_eq!(ran.err, words);
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_keep_that_is_no_exact_length_is_refused_with_a_hint() -> Result<()> {
    let database = TestDatabase::new().await?;
    a_table_of_every_kind(&database).await?;
    for (keep, words) in [
        ("", "keep \"\" is empty: say a length such as 7d"),
        ("7", "keep \"7\" has no unit: use s, m, h, d or w, such as 7d"),
        ("0d", "keep \"0d\" is zero: nothing would be kept"),
        ("-7d", "keep \"-7d\" is negative: say a length such as 7d"),
        (
            "6M",
            "keep \"6M\" is in months, and months differ in length (6 months are 181 to 184 days): \
             say 184d",
        ),
        (
            "3 months",
            "keep \"3 months\" is in months, and months differ in length (3 months are 89 to 92 \
             days): say 92d",
        ),
        (
            "2y",
            "keep \"2y\" is in years, and years differ in length (2 years are 730 to 731 days): \
             say 731d",
        ),
        ("7d7d", "keep \"7d7d\" names days twice: name each unit once"),
        ("500ms", "keep \"500ms\" has the unit \"ms\": use s, m, h, d or w, such as 7d"),
        ("1000001d", "keep \"1000001d\" is too long: at most 1000000d"),
        ("99999999999999999999w", "keep \"99999999999999999999w\" is too long"),
        (
            "59m 59s",
            "keep \"59m 59s\" is less than guard.min_keep (1h): keep more, or lower that guard",
        ),
    ] {
        let ran = database.ran(&set("events.raw", "at", keep)).await?;
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{keep}");
        assert_eq!(ran.err, format!("tailrace: {words}\n"));
    }
    let count = database.text("SELECT count(*) FROM tailrace.policy").await?;
    assert_eq!(count.as_deref(), Some("0"));
    // The guard is a setting.
    let lower = [("TAILRACE__GUARD__MIN_KEEP", "30m")];
    assert_eq!(database.ran_with(&set("events.raw", "at", "30m"), &lower).await?.code, 0);
    let higher = [("TAILRACE__GUARD__MIN_KEEP", "2d")];
    assert_eq!(database.ran_with(&set("events.raw", "at", "47h"), &higher).await?.code, 2);
    assert_eq!(database.ran_with(&set("events.raw", "at", "48h"), &higher).await?.code, 0);
    Ok(())
}

#[tokio::test]
async fn names_that_are_not_there_are_said() -> Result<()> {
    let database = TestDatabase::new().await?;
    a_table_of_every_kind(&database).await?;
    for (catalog, table, words) in [
        ("nope", "events.raw", "there is no catalog \"nope\""),
        ("lake", "events.nope", "there is no table events.nope in catalog \"lake\""),
        ("lake", "nope.raw", "there is no table nope.raw in catalog \"lake\""),
    ] {
        for args in [
            vec!["policy", "set", catalog, table, "--field", "at", "--keep", "7d"],
            vec!["policy", "get", catalog, table],
            vec!["policy", "unset", catalog, table],
        ] {
            let ran = database.ran(&args).await?;
            assert_eq!((ran.code, ran.out.as_str()), (1, ""), "{args:?}");
            assert_eq!(ran.err, format!("tailrace: {words}\n"));
        }
    }
    let ran = database.ran(&["policy", "list", "--catalog", "nope"]).await?;
    assert_eq!((ran.code, ran.err.as_str()), (1, "tailrace: there is no catalog \"nope\"\n"));
    for args in [
        vec!["policy", "set", "lake", "raw", "--field", "at", "--keep", "7d"],
        vec!["policy", "set", "lake", "a.b.c", "--field", "at", "--keep", "7d"],
        vec!["policy", "set", "lake", "events.raw", "--field", "at"],
        vec!["policy", "set", "lake", "events.raw", "--field", "at", "--keep", "7d", "--mode", "x"],
        vec!["policy", "get", "lake"],
        vec!["policy"],
    ] {
        assert_eq!(database.ran(&args).await?.code, 2, "{args:?}");
    }
    Ok(())
}
