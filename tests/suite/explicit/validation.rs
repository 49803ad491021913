//! Tests of how a list of tuples is validated, with a database. The rules themselves are tested in
//! `tailrace::explicit::validate`.

use anyhow::Result;
use tailrace::explicit::call::{DropBody, PartitionItem, TableRef, TruncateBody};
use tailrace::explicit::problem::Problem;
use tailrace::explicit::{Bounds, drop_partitions, truncate};
use tailrace_kit::lake::{Field, NewFile};

use crate::support::program::settings;

use super::{Scene, days, drop_of, item, ledger, of_spec, patient, per_partition, raw};

fn invalid(text: &str) -> Problem {
    Problem::Validation(text.to_owned())
}

#[tokio::test]
async fn a_list_is_refused_whole_and_the_item_is_named() -> Result<()> {
    let scene = Scene::of(&[Field::day("at"), Field::bucket("kind", 4)]).await?;
    scene.table.append(vec![NewFile::of(["1", "2"])]).await?;
    let good = || item([Some("1"), Some("2")]);
    for (bad, expected) in [
        (item([Some("1")]), r#"["1"] has 1 values, and spec 1 has 2 keys"#),
        (item([]), "[] has 0 values, and spec 1 has 2 keys"),
        (
            of_spec(7, [Some("1"), Some("2")]),
            r#"["1","2"] names spec 7, which the table does not have"#,
        ),
        (
            item([Some("*"), Some("2")]),
            r#"["*","2"] has a wildcard at key 0, and there are none: name each partition (or say literal, if the text * is meant)"#,
        ),
        (
            item([Some("01"), Some("2")]),
            r#"["01","2"] has "01" at key 0, which is no day (a canonical decimal counted from 1970): say literal, if this very text is meant"#,
        ),
        (
            item([Some("1"), Some("4")]),
            r#"["1","4"] has "4" at key 1, which is no bucket of 0 to 3: say literal, if this very text is meant"#,
        ),
        (of_spec(1, [Some("1"), Some("2")]), r#"["1","2"] is named twice"#),
        (good(), r#"["1","2"] is named twice"#),
    ] {
        let body = drop_of(vec![good(), bad]);
        for dry_run in [false, true] {
            let refused = scene.refused(&DropBody { dry_run, ..body.clone() }).await?;
            assert_eq!(refused, invalid(&format!("partitions[1] {expected}")));
            assert_eq!(refused.status(), 422);
        }
    }
    assert_eq!(scene.done(&drop_of(vec![good()])).await?.files_ended, 1);
    Ok(())
}

#[tokio::test]
async fn a_table_without_a_live_spec_has_only_what_specs_are_named() -> Result<()> {
    let scene = Scene::of(&[]).await?;
    let none = r#"partitions[0] ["1"] names no spec_id, and the table has no live partition spec"#;
    assert_eq!(scene.refused(&days(["1"])).await?, invalid(none));
    let unknown = drop_of(vec![of_spec(1, [Some("1")])]);
    let expected = r#"partitions[0] ["1"] names spec 1, which the table does not have"#;
    assert_eq!(scene.refused(&unknown).await?, invalid(expected));
    assert_eq!(
        scene.refused(&drop_of(vec![item([])])).await?,
        invalid("partitions[0] [] names no spec_id, and the table has no live partition spec")
    );

    let spec = scene.table.evolve_spec(&[Field::day("at")]).await?;
    scene.table.append(vec![NewFile::of(["1"])]).await?;
    scene.table.drop_spec().await?;
    assert_eq!(scene.refused(&days(["1"])).await?, invalid(none));
    let named = drop_of(vec![of_spec(spec, [Some("1")])]);
    assert_eq!(scene.done(&named).await?.files_ended, 1);
    Ok(())
}

/// With `literal` a text is what it is; no wildcard comes alive.
#[tokio::test]
async fn malformed_partitions_are_dropped_by_their_exact_value() -> Result<()> {
    let scene = Scene::of(&[Field::day("at"), Field::bucket("kind", 4)]).await?;
    let texts = [["*", "1"], ["2026-09-17", "1"], ["1", "four"], ["1", "1"], ["", "-1"]];
    let ids = scene.table.append(texts.map(NewFile::of).to_vec()).await?.file_ids;
    let literal = |texts: [&str; 2]| PartitionItem { literal: true, ..item(texts.map(Some)) };
    let star = scene.done(&drop_of(vec![literal(["*", "1"])])).await?;
    assert_eq!((star.files_ended, scene.live().await?), (1, ids[1..].to_vec()));
    let others = [texts[1], texts[2], texts[4]].map(literal).to_vec();
    assert_eq!(per_partition(&scene.done(&drop_of(others)).await?), [1, 1, 1]);
    assert_eq!(scene.live().await?, [ids[3]]);
    Ok(())
}

#[tokio::test]
async fn ten_thousand_tuples_at_once_go_in_one_snapshot() -> Result<()> {
    let scene = Scene::new().await?;
    let files: Vec<_> = (0..10_000).map(|day| super::file(&day.to_string())).collect();
    let ids = scene.table.append(files).await?.file_ids;
    let kept = scene.table.append(vec![super::file("10000")]).await?.file_ids;
    let head = scene.catalog.head().await?;
    let all = |days: std::ops::Range<i32>| {
        drop_of(days.map(|day| item([Some(day.to_string().as_str())])).collect())
    };
    let refused = scene.refused(&all(0..10_001)).await?;
    assert_eq!(refused, invalid("partitions has 10001 items: 1 to 10000 are allowed"));
    let empty = scene.refused(&all(0..0)).await?;
    assert_eq!(empty, invalid("partitions has 0 items: 1 to 10000 are allowed"));

    let body = DropBody { read_snapshot: Some(head), ..all(0..10_000) };
    let mut session = scene.session().await?;
    // Within the hold that is allowed by default, though nobody has analyzed the tables.
    let bounds = Bounds { limits: settings().limits, ..patient() };
    let answer = drop_partitions(&mut session, &raw(), &body, "me", &bounds).await?;
    assert_eq!((answer.snapshot_id, answer.files_ended), (head + 1, 10_000));
    assert_eq!(per_partition(&answer), vec![1; 10_000]);
    assert_eq!(answer.partitions[9_999].partition_values, [Some("9999".to_owned())]);
    assert_eq!((ids.len(), scene.live().await?), (10_000, kept));
    let replayed = scene.done(&body).await?;
    assert!(replayed.replayed);
    assert_eq!(super::first(replayed), answer);
    ledger::agrees(&scene.catalog).await
}

/// Every reader of the catalog's snapshots gets them whole. A request that was answered is still answered
/// from its receipt.
#[tokio::test]
async fn author_and_message_have_a_limit_in_bytes() -> Result<()> {
    let scene = Scene::of(&[Field::identity("kind")]).await?;
    scene.table.append(vec![NewFile::of(["a"])]).await?;
    let author = |length: usize| Some("é".repeat(length / 2) + &"a".repeat(length % 2));
    let mut session = scene.session().await?;
    for (given_author, given_message, says) in [
        (author(1025), None, "author has 1025 bytes, and at most 1024 are allowed"),
        (None, author(8193), "message has 8193 bytes, and at most 8192 are allowed"),
    ] {
        for dry_run in [false, true] {
            let (author, message) = (given_author.clone(), given_message.clone());
            let refused =
                scene.refused(&DropBody { author, message, dry_run, ..days(["a"]) }).await?;
            assert_eq!((refused.status(), refused), (422, invalid(says)));
        }
        let body = TruncateBody {
            author: given_author,
            message: given_message,
            ..TruncateBody::default()
        };
        let uuid = Some(scene.table.table_uuid);
        let refused = truncate(&mut session, &raw(), uuid, &body, "me", &patient()).await;
        assert_eq!(refused, Err(invalid(says)));
    }
    // The caller's name stands in the author's place.
    let long = "a".repeat(1025);
    let refused = drop_partitions(&mut session, &raw(), &days(["a"]), &long, &patient()).await;
    let says = "author has 1025 bytes, and at most 1024 are allowed";
    assert_eq!(refused, Err(invalid(says)));

    let full = DropBody { author: author(1024), message: author(8192), ..days(["a"]) };
    assert_eq!(scene.done(&full).await?.files_ended, 1);
    let longer = DropBody { author: author(1025), ..full };
    assert!(scene.done(&longer).await?.replayed);
    Ok(())
}

/// What Postgres cannot store is nobody's partition, note or table, and no failure of ours.
#[tokio::test]
async fn a_nul_anywhere_is_the_callers_mistake() -> Result<()> {
    let scene = Scene::of(&[Field::identity("kind")]).await?;
    scene.table.append(vec![NewFile::of(["a"])]).await?;
    for literal in [false, true] {
        let nul = PartitionItem { literal, ..item([Some("a\0")]) };
        let expected = r#"partitions[0] ["a\u0000"] has a NUL, which no partition value can have"#;
        assert_eq!(scene.refused(&drop_of(vec![nul])).await?, invalid(expected));
    }
    let nul = || Some("a\0".to_owned());
    let author = DropBody { author: nul(), ..days(["a"]) };
    let refused = scene.refused(&author).await?;
    assert_eq!(refused, invalid("author has a NUL, which no text can have"));
    let message = DropBody { message: nul(), ..days(["a"]) };
    let refused = scene.refused(&message).await?;
    assert_eq!(refused, invalid("message has a NUL, which no text can have"));

    let mut session = scene.session().await?;
    for odd in [
        TableRef { table: "raw\0".to_owned(), ..raw() },
        TableRef { namespace: "\0".to_owned(), ..raw() },
        TableRef { catalog: "lake\0".to_owned(), ..raw() },
        TableRef { table: "other".to_owned(), ..raw() },
        TableRef { namespace: "other".to_owned(), ..raw() },
        TableRef { catalog: "other".to_owned(), ..raw() },
    ] {
        let refused = drop_partitions(&mut session, &odd, &days(["a"]), "me", &patient()).await;
        assert_eq!(refused.expect_err("there is none").status(), 404, "{odd:?}");
    }
    Ok(())
}
