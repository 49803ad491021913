//! Tests that doctor names the other roles that may create objects.

use anyhow::Result;

use super::Mallory;
use crate::support::TestDatabase;

#[tokio::test]
async fn whoever_else_may_create_is_named_with_the_way_out() -> Result<()> {
    let database = TestDatabase::new().await?;
    let all_well = [("ok", "nobody else may create in the schemas public and tailrace")];
    assert_eq!(database.doctor().await?.of("creators"), all_well);
    let mallory = Mallory::new(&database).await?;
    let name = &mallory.name;
    database
        .sql(&format!(
            "GRANT CREATE ON SCHEMA public TO PUBLIC; GRANT CREATE ON SCHEMA tailrace TO {name}"
        ))
        .await?;

    let said = database.doctor().await?;

    assert_eq!(
        said.of("creators"),
        [
            ("warning", format!("PUBLIC, {name} may create in the schema public").as_str()),
            ("warning", format!("{name} may create in the schema tailrace").as_str()),
        ]
    );
    let statements = said.statements("creators").join("\n");
    assert_eq!(
        statements,
        format!(
            "revoke create on schema public from PUBLIC;\nrevoke create on schema public from {name};\n\
             revoke create on schema tailrace from {name};"
        )
    );
    database.sql(&statements).await?;
    assert_eq!(database.doctor().await?.of("creators"), all_well);
    // Whoever owns the catalog may create where it is: the server adds tables.
    database
        .sql(&format!(
            "ALTER TABLE hog_catalog OWNER TO {name}; GRANT CREATE ON SCHEMA public TO {name}"
        ))
        .await?;
    assert_eq!(database.doctor().await?.of("creators"), all_well);
    Ok(())
}
