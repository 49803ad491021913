//! Tests of how many round trips a pass's commit holds the lock for.

use anyhow::Result;
use tailrace::drop::DropOutcome;

use super::{Scene, days_of, drop_days, per_tuple, receipt};
use crate::explicit::wire::Wire;

/// What was asked after each grant of the lock, by its first words.
fn under_lock(wire: &Wire) -> Vec<Vec<String>> {
    let asked = wire.asked();
    let first_words = |sql: &String| sql.split_whitespace().take(2).collect::<Vec<_>>().join(" ");
    let mut holds: Vec<Vec<String>> = Vec::new();
    let mut held = false;
    for sql in &asked {
        if sql.contains("pg_advisory_xact_lock") {
            // It may be there twice: parsed, then run.
            if !held {
                holds.push(Vec::new());
            }
            held = true;
        } else if let (true, Some(hold)) = (held, holds.last_mut()) {
            hold.push(first_words(sql));
            held = !matches!(sql.as_str(), "COMMIT" | "ROLLBACK");
        }
    }
    holds
}

/// In a session that has never dropped, in a warm one, and for any number of files and tuples.
#[tokio::test]
async fn there_are_three_from_the_grant_to_the_commit() -> Result<()> {
    let scene = Scene::new().await?;
    let (wire, through) = Wire::to(&scene.database).await?;
    let mut session = through.session().await?;
    for number in ["cold", "warm", "warmer"] {
        scene.append(["1", "2", "2"]).await?;
        wire.forget();
        let outcome = drop_days(&mut session, &scene.identity, &days_of(&["1", "2"])).await?;
        assert_eq!(per_tuple(&receipt(outcome)?), [(1, 0), (2, 0)]);
        assert_eq!(under_lock(&wire), [["with policies", "with numbers", "COMMIT"]], "{number}");
    }
    let days: Vec<_> = (0..300).map(|day| day.to_string()).collect();
    scene.table.append(days.iter().map(|day| super::file(day)).collect()).await?;
    let days: Vec<_> = days.iter().map(String::as_str).collect();
    wire.forget();
    let outcome = drop_days(&mut session, &scene.identity, &days_of(&days)).await?;
    assert_eq!(receipt(outcome)?.counts.files, 300);
    assert_eq!(under_lock(&wire), [["with policies", "with numbers", "COMMIT"]]);
    Ok(())
}

/// A row that somebody has locked costs a rollback, and one more round trip that finds out whose.
#[tokio::test]
async fn with_locked_rows_there_are_four() -> Result<()> {
    let scene = Scene::new().await?;
    let files = scene.append(["1", "2"]).await?;
    let mut hydrator = scene.database.pool.begin().await?;
    sqlx::query("SELECT FROM hog_data_file WHERE data_file_id = $1 FOR UPDATE")
        .bind(files[0])
        .execute(&mut *hydrator)
        .await?;
    let (wire, through) = Wire::to(&scene.database).await?;
    let mut session = through.session().await?;
    wire.forget();
    let outcome = drop_days(&mut session, &scene.identity, &days_of(&["1", "2"])).await?;
    let dropped = receipt(outcome)?;
    assert_eq!((per_tuple(&dropped), dropped.busy), (vec![(0, 0), (1, 0)], vec![0]));
    assert_eq!(
        under_lock(&wire),
        [
            vec!["with policies", "with numbers", "ROLLBACK"],
            vec!["with policies", "with planned", "with numbers", "COMMIT"],
        ]
    );
    hydrator.rollback().await?;
    Ok(())
}

/// What wrote nothing waits for no disk and no replica.
#[tokio::test]
async fn where_nothing_matches_nothing_is_committed() -> Result<()> {
    let scene = Scene::new().await?;
    scene.append(["3"]).await?;
    let (wire, through) = Wire::to(&scene.database).await?;
    let mut session = through.session().await?;
    let outcome = drop_days(&mut session, &scene.identity, &days_of(&["1", "2"])).await?;
    assert_eq!(outcome, DropOutcome::NothingMatches { busy: vec![] });
    assert_eq!(under_lock(&wire), [["with policies", "with numbers", "ROLLBACK"]]);
    Ok(())
}
