//! Tests of the findings on the server: its version, what it lacks, and its indexes.

use anyhow::Result;
use tailrace::catalog::connect::{Access, close};
use tailrace::catalog::inventory::objects;
use tailrace::doctor::server::version;

use crate::doctor::text;
use crate::support::TestDatabase;

/// V8 and V13 left nothing that could be seen.
#[tokio::test]
async fn each_version_is_told_by_what_it_left() -> Result<()> {
    for (is, seen) in [
        (6, None),
        (7, Some(7)),
        (8, Some(7)),
        (9, Some(9)),
        (10, Some(10)),
        (11, Some(11)),
        (12, Some(12)),
        (13, Some(12)),
        (14, Some(14)),
        (15, Some(15)),
        (16, Some(16)),
        (17, Some(17)),
        (18, Some(18)),
        (19, Some(19)),
        (20, Some(20)),
        (21, Some(21)),
        (22, Some(22)),
        (23, Some(23)),
        (24, Some(24)),
        (25, Some(25)),
        (26, Some(26)),
        (27, Some(27)),
    ] {
        let database = TestDatabase::in_schema("public").await?;
        database.lake.downgrade(is).await?;
        let mut session = database.tailrace().unchecked(Access::ReadOnly).await?;
        let found = objects(&mut session, "public").await?;
        close(session).await;
        assert_eq!(version(&found), seen, "V{is}");
    }
    Ok(())
}

#[tokio::test]
async fn the_newest_server_lacks_nothing() -> Result<()> {
    let database = TestDatabase::new().await?;
    let said = database.doctor().await?;
    assert_eq!(said.of("server"), [("ok", "the server is at V27 or newer")]);
    let all = "every index that is used is there and valid";
    assert_eq!(said.of("indexes"), [("ok", all)]);
    let at = format!("the schema tailrace is at version {}", tailrace::installation::version());
    assert_eq!(said.of("schema"), [("ok", at.as_str())]);
    assert_eq!(said.code, 0);
    Ok(())
}

#[tokio::test]
async fn an_older_server_is_told_what_it_lacks() -> Result<()> {
    let database = TestDatabase::in_schema("Lake").await?;
    database.lake.downgrade(14).await?;
    assert_eq!(database.ran(&["migrate"]).await?.code, 0);
    let said = database.doctor().await?;
    assert_eq!(said.of("server"), [("note", "the server is at V14")]);
    assert_eq!(
        text(&said.whole("server")[0]["why"]),
        "nothing keeps compaction from rewriting partitions that are about to be dropped (V15); \
         which row names a queued path that cleanup skips is unknown (V17); the feed of changes \
         looks for ended files without an index (V19); cleanup holds the commit lock, some 19 s \
         for 1,000 objects: passes wait meanwhile, and where it is switched off for that objects \
         stay (V21); the sample does not tell how many rows it stands for (V22); passes over \
         large tables read all of their files (V23)"
    );
    assert_eq!(
        said.of("indexes"),
        [
            ("warning", "the index hog_data_file_ended is missing"),
            ("warning", "the index hog_file_partition_value_lookup is missing"),
            ("warning", "the index hog_maintenance_summary_tier_table is missing"),
        ]
    );
    let statements = said.statements("indexes");
    assert_eq!(
        statements,
        [
            "create index concurrently hog_data_file_ended on \"Lake\".hog_data_file (catalog_id, \
             end_snapshot) where end_snapshot is not null;",
            "create index concurrently hog_file_partition_value_lookup on \
             \"Lake\".hog_file_partition_value (catalog_id, key_index, value, data_file_id);",
            "create index concurrently hog_maintenance_summary_tier_table on \
             \"Lake\".hog_maintenance_summary_tier (catalog_id, generation, table_id);",
        ]
    );
    // What is printed builds them.
    for statement in statements {
        database.sql(statement).await?;
    }
    assert_eq!(database.doctor().await?.of("indexes").len(), 1);
    Ok(())
}

#[tokio::test]
async fn an_index_that_is_not_there_or_not_valid() -> Result<()> {
    let database = TestDatabase::new().await?;
    database
        .sql(
            "DROP INDEX hog_data_file_live;
             UPDATE pg_index SET indisvalid = false
              WHERE indexrelid = 'hog_delete_file_changefeed'::regclass;
             DROP INDEX hog_file_removal_undrained_path",
        )
        .await?;
    let said = database.doctor().await?;
    assert_eq!(said.code, 3);
    assert_eq!(
        said.of("indexes"),
        [
            ("problem", "the index hog_data_file_live is missing"),
            ("problem", "the index hog_delete_file_changefeed is not valid"),
        ]
    );
    let statements = said.statements("indexes");
    assert_eq!(
        statements,
        [
            "create index concurrently hog_data_file_live on public.hog_data_file (catalog_id, \
             table_id, begin_snapshot) where end_snapshot is null;",
            "drop index concurrently public.hog_delete_file_changefeed;",
            "create index concurrently hog_delete_file_changefeed on public.hog_delete_file \
             (catalog_id, table_id, begin_snapshot);",
        ]
    );
    for statement in statements {
        database.sql(statement).await?;
    }
    let said = database.doctor().await?;
    assert_eq!(said.of("indexes").len(), 1);
    assert_eq!(
        said.of("server"),
        [
            ("warning", "of the older migrations V16 something is missing"),
            ("ok", "the server is at V27 or newer"),
        ]
    );
    Ok(())
}

#[tokio::test]
async fn before_migrate_it_says_so() -> Result<()> {
    let database = TestDatabase::in_schema("public").await?;
    database.catalog("lake").await?;
    let said = database.doctor().await?;
    let problem = "the database's schema tailrace is not there or older than this program: run \
                   `tailrace migrate`";
    assert_eq!((said.code, said.of("schema")), (3, vec![("problem", problem)]));
    assert_eq!(said.of("policies"), []);
    let ran = database.ran_with(&["doctor"], &[("TAILRACE__DATABASE__SCHEMA", "sea")]).await?;
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.err.contains("there is no hoglake catalog"), "{ran:?}");
    let ran = database.ran(&["doctor", "--catalog", "sea"]).await?;
    assert_eq!((ran.code, ran.err.as_str()), (1, "tailrace: there is no catalog \"sea\"\n"));
    Ok(())
}
