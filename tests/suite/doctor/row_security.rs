//! Tests with row-level security on a table: statements that would see only some rows fail, and
//! doctor names the table.

use anyhow::Result;
use tailrace_kit::lake::{Field, NewFile};

use super::rights::Role;
use crate::support::TestDatabase;
use crate::support::governed::live_ids;

#[tokio::test]
async fn nothing_is_hidden_from_a_pass_without_a_word() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("lake").await?;
    let table = database.table(&catalog, "raw", &[Field::day("at")]).await?;
    let files = table.append(vec![NewFile::of(["18000"]), NewFile::of(["18001"])]).await?.file_ids;
    database.govern(&table, "day(at)", "7d").await?;
    let role = Role::new(&database).await?;
    let url = role.url();
    let env = [("TAILRACE__DATABASE__URL", url.as_str())];
    for (of, condition) in [
        ("public.hog_data_file", format!("data_file_id > {}", files[0])),
        ("public.hog_catalog", "false".to_owned()),
        ("public.hog_file_partition_value", "value <> '18000'".to_owned()),
        ("tailrace.policy", "false".to_owned()),
        ("tailrace.calendar", "false".to_owned()),
    ] {
        let enable = format!(
            "ALTER TABLE {of} ENABLE ROW LEVEL SECURITY;
             CREATE POLICY part ON {of} FOR SELECT TO {} USING ({condition})",
            role.name
        );
        database.sql(&enable).await?;

        let ran = database.ran_with(&["sweep"], &env).await?;

        assert_ne!(ran.code, 0, "{of}: {ran:?}");
        let name = of.split('.').next_back().unwrap_or_default();
        assert!(ran.err.contains("row-level security policy for table"), "{of}: {}", ran.err);
        assert!(ran.err.contains(name), "{of}: {}", ran.err);
        assert_eq!(live_ids(&table).await?, files, "{of}");
        let doctor = database.doctor_with(&env).await?;
        let what = format!("row-level security hides rows of {of} from {}", role.name);
        assert_eq!(doctor.of("rights"), [("problem", what.as_str())]);
        let disable =
            format!("DROP POLICY part ON {of}; ALTER TABLE {of} DISABLE ROW LEVEL SECURITY");
        database.sql(&disable).await?;
    }
    database
        .sql(
            "ALTER TABLE hog_data_file ENABLE ROW LEVEL SECURITY;
              ALTER TABLE hog_catalog ENABLE ROW LEVEL SECURITY",
        )
        .await?;
    let doctor = database.doctor_with(&env).await?;
    let what = format!(
        "row-level security hides rows of public.hog_catalog, public.hog_data_file from {}",
        role.name
    );
    assert_eq!(doctor.of("rights"), [("problem", what.as_str())]);
    let statements = doctor.statements("rights");
    assert_eq!(statements, [format!("alter role {} bypassrls;", role.name)]);

    database.sql(statements[0]).await?;

    let ran = database.ran_with(&["sweep"], &env).await?;
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(live_ids(&table).await?, [] as [i64; 0]);
    let has = format!("the role {} has what it needs and no more", role.name);
    assert_eq!(database.doctor_with(&env).await?.of("rights"), [("ok", has.as_str())]);
    // Where no table has row-level security, the role may more than it needs.
    database
        .sql(
            "ALTER TABLE hog_data_file DISABLE ROW LEVEL SECURITY;
              ALTER TABLE hog_catalog DISABLE ROW LEVEL SECURITY",
        )
        .await?;
    let may_more = format!("the role {} is bypassrls", role.name);
    assert_eq!(database.doctor_with(&env).await?.of("rights"), [("warning", may_more.as_str())]);
    role.end().await
}
