//! Tests that `deploy/sql/grants.sql` is the program's own list, as doctor prints it, and that the
//! first policies which the pages show only observe.

use std::collections::BTreeSet;

use anyhow::Result;
use tailrace::installation::rights::{Purpose, as_identifier, grants, needed};

use crate::support::TestDatabase;

const FILE: &str = include_str!("../../../deploy/sql/grants.sql");

/// Each single right of the file, as (privilege with columns, object).
fn of_file() -> BTreeSet<(String, String)> {
    let mut rights = BTreeSet::new();
    for statement in FILE.lines().filter_map(|line| line.strip_prefix("grant ")) {
        let Some((grant, _)) = statement.split_once(" to tailrace;") else { continue };
        let Some((privileges, object)) = grant.split_once(" on ") else { continue };
        let mut split: Vec<String> = Vec::new();
        for part in privileges.split(", ") {
            match split.last_mut() {
                Some(last) if is_open(last) => *last = format!("{last}, {part}"),
                _ => split.push(part.to_owned()),
            }
        }
        rights.extend(split.into_iter().map(|privilege| (privilege, object.to_owned())));
    }
    rights
}

fn is_open(privilege: &str) -> bool {
    privilege.contains('(') && !privilege.contains(')')
}

#[test]
fn the_file_lists_them_all_and_no_other() {
    let ours =
        needed().into_iter().map(|right| (right.privilege_in_sql(), right.object.in_sql("public")));
    assert_eq!(of_file(), ours.collect());
    let passes = needed().iter().filter(|right| right.purpose == Purpose::Passes).count();
    assert_eq!((passes, needed().len()), (86, 104));
}

/// An object that an older server lacks takes its statement with it, and no other.
#[test]
fn each_statement_is_for_one_object() {
    let statements: Vec<_> =
        FILE.lines().filter(|line| !line.is_empty() && !line.starts_with("--")).collect();
    for statement in &statements {
        let (_, object) = statement.split_once(" on ").expect("an object");
        assert!(statement.starts_with("grant ") && !object.contains(','), "{statement}");
    }
    let of_claims =
        statements.iter().filter(|line| line.contains(".hog_compaction_claim ")).count();
    assert_eq!((of_claims, statements.len()), (1, 47));
}

#[test]
fn it_is_what_the_program_writes() {
    if std::env::var_os("TAILRACE_BLESS").is_some_and(|asked| asked == "1") {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/sql/grants.sql");
        std::fs::write(path, grants("public", "tailrace")).expect("the file can be written");
    }
    assert_eq!(FILE, grants("public", "tailrace"), "TAILRACE_BLESS=1 writes it anew");
}

/// By the role of the URL, or by one that is named; no database is asked.
#[tokio::test]
async fn doctor_prints_it() -> Result<()> {
    let database = TestDatabase::new().await?;
    let nowhere = "postgres://tailrace@127.0.0.1:1/lake";
    let printed =
        database.ran_with(&["doctor", "--grants"], &[("TAILRACE__DATABASE__URL", nowhere)]).await?;
    assert_eq!((printed.code, &*printed.out), (0, FILE), "{printed:?}");

    let odd = ["doctor", "--grants", "--role", "user"];
    let schema = ("TAILRACE__DATABASE__SCHEMA", "Lake");
    let printed = database.ran_with(&odd, &[("TAILRACE__DATABASE__URL", ""), schema]).await?;
    assert_eq!((printed.code, &*printed.out), (0, &*grants("Lake", "user")), "{printed:?}");
    assert!(printed.out.contains("grant select on \"Lake\".hog_table to \"user\";\n"));

    for wrong in [
        &["doctor", "--role", "tailrace"][..],
        &["doctor", "--grants", "--role", ""],
        &["doctor", "--grants", "--catalog", "lake"],
    ] {
        assert_eq!(database.ran(wrong).await?.code, 2, "{wrong:?}");
    }
    Ok(())
}

/// A word that SQL keeps for itself, as of the server's own list, is no name without quotes.
#[tokio::test]
async fn names_that_are_words_of_sql_are_quoted() -> Result<()> {
    let database = TestDatabase::new().await?;
    let words = database
        .text("select string_agg(word, ' ') from pg_get_keywords() where catcode in ('R', 'T')")
        .await?
        .unwrap_or_default();
    let bare: Vec<_> = words.split(' ').filter(|word| as_identifier(word) == **word).collect();
    assert_eq!(bare, Vec::<&str>::new());
    assert_eq!(as_identifier("tailrace"), "tailrace");
    Ok(())
}

/// Whoever copies the first lines loses nothing: data is dropped when somebody has said so.
#[test]
fn each_first_policy_observes() {
    for (page, text) in [
        ("README.md", include_str!("../../../README.md")),
        ("docs/install.md", include_str!("../../../docs/install.md")),
    ] {
        let first = text.lines().find(|line| line.contains("tailrace policy set "));
        let first = first.unwrap_or_default();
        assert!(first.contains("--mode observe"), "{page}: {first}");
    }
}
