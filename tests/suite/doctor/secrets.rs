//! Tests that the JSON of doctor, which the issue form asks for, has no secret in it: with all
//! rights, with almost none, and without a database.

use anyhow::Result;
use tailrace_kit::lake::Field;

use super::rights::Role;
use crate::support::TestDatabase;

const PASSWORD: &str = "hunter2";

#[tokio::test]
async fn the_json_of_doctor_has_neither_password_nor_url() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("lake").await?;
    let table = database.table(&catalog, "raw", &[Field::day("at")]).await?;
    database.govern(&table, "day(at)", "7d").await?;
    // It may ask which catalogs there are, and nothing else.
    let role = Role::new(&database).await?;
    let revoke = "REVOKE SELECT ON ALL TABLES IN SCHEMA public, tailrace FROM";
    let name = &role.name;
    role.sql(&format!("{revoke} {name}; GRANT SELECT ON hog_catalog TO {name}")).await?;
    let with_password = |url: String| url.replacen('@', &format!(":{PASSWORD}@"), 1);
    let away = "postgres://postgres@localhost:1/lake?host=/nowhere/at/all";
    for (url, code) in [
        (with_password(database.url()), 0),
        (with_password(role.url()), 3),
        (with_password(away.to_owned()), 1),
    ] {
        assert!(url.contains(PASSWORD), "{url}");
        let env = [("TAILRACE__DATABASE__URL", url.as_str())];
        let ran = database.ran_with(&["doctor", "--output", "json"], &env).await?;
        assert_eq!(ran.code, code, "{ran:?}");
        for secret in [PASSWORD, "postgres://"] {
            assert!(!ran.out.contains(secret) && !ran.err.contains(secret), "{secret}: {ran:?}");
        }
    }
    role.end().await
}
