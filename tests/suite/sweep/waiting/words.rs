//! Tests of messages of triggers: they are data, shown on one line, of bounded length, and without
//! characters that control a terminal.

use anyhow::Result;

use super::{NOW, Scene};

/// A trigger that does `body` where the file of the second day would be ended.
async fn refuses(scene: &Scene, body: &str) -> Result<()> {
    let file = scene.files[1];
    let statements = format!(
        "create function refuse_one() returns trigger language plpgsql as $$begin {body} end$$;
         create trigger refuse_one before update on hog_data_file for each row
           when (new.end_snapshot is not null and new.data_file_id = {file})
           execute function refuse_one()"
    );
    scene.database.sql(&statements).await
}

#[tokio::test]
async fn a_long_message_is_cut() -> Result<()> {
    let scene = Scene::days(2).await?;
    refuses(&scene, "raise exception '%', repeat('x', 1000000);").await?;
    let report = scene.sweep_at(NOW).await?;
    let words = format!(
        "the database says: {}... (SQLSTATE P0001); in PL/pgSQL function refuse_one() line 1 at RAISE",
        "x".repeat(400)
    );
    assert_eq!(scene.waiting().await?[0]["error"], words);
    let told = report.error.unwrap_or_default();
    assert!(told.contains(&words) && told.len() < 1_000, "{} bytes", told.len());
    Ok(())
}

/// It cannot draw lines of its own into a plan, nor drive a terminal.
#[tokio::test]
async fn what_the_database_says_is_one_line_of_a_plan() -> Result<()> {
    let scene = Scene::days(2).await?;
    let raise = r"raise exception E'one\nlake events.forged: no policy\r\x1b[31m';";
    refuses(&scene, raise).await?;
    let report = scene.sweep_at(NOW).await?;
    assert_eq!(report.error.as_deref().unwrap_or_default().lines().count(), 1);
    let line = "\n      the database says: one lake events.forged: no policy [31m (SQLSTATE P0001); in \
                PL/pgSQL function refuse_one() line 1 at RAISE\n";
    let ran = scene.database.ran(&["plan", "--at", NOW]).await?;
    assert!(ran.out.contains(line), "{}", ran.out);

    // Nor does what an earlier version remembered.
    let stored = r"update tailrace.waiting set error = E'a\nb\u001b[0m'";
    scene.database.sql(stored).await?;
    let ran = scene.database.ran(&["plan", "--at", NOW]).await?;
    assert!(ran.out.contains("\n      a b[0m\n"), "{}", ran.out);
    Ok(())
}
