//! Tests of approvals: what is held for its number goes once somebody approved it, and once only.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::radius::{in_days, of_days};
use crate::explicit::{Scene, file};
use crate::support::governed::Ran;
use crate::support::program::days_ago;

const ENV: [(&str, &str); 1] = [("TAILRACE__GUARD__MIN_DROP_FILES", "3")];
const DAYS: [i64; 8] = [20, 19, 18, 17, 16, 15, 2, 1];

/// A table of which six of eight files are held, as a pass has noted.
async fn held() -> Result<Scene> {
    let scene = of_days(DAYS).await?;
    scene.set_policy("7d", &[]).await?;
    assert_eq!(scene.passes(&in_days(0)).await?, (0, 8, 6));
    Ok(scene)
}

impl Scene {
    async fn approve(&self, arguments: &[&str]) -> Result<Ran> {
        let command = [&["approve", "lake", "events.raw"], arguments].concat();
        self.database.ran_with(&command, &ENV).await
    }

    async fn digest(&self) -> Result<String> {
        let plan = self.database.ran_with(&["plan", "--output", "json"], &ENV).await?;
        let plan: Value = serde_json::from_str(&plan.out)?;
        let digest = plan["tables"][0]["blast_radius"]["digest"].as_str();
        Ok(digest.context("a digest")?.to_owned())
    }

    /// Saves a plan; gives the path.
    async fn saved(&self, folder: &tempfile::TempDir) -> Result<String> {
        let path = folder.path().join("plan.json").display().to_string();
        let ran = self.database.ran_with(&["plan", "--save", &path], &ENV).await?;
        ensure!(ran.code == 0, "{ran:?}");
        Ok(path)
    }

    async fn approved_partitions(&self) -> Result<Option<String>> {
        self.database.text("select count(*)::text from tailrace.approved_partition").await
    }
}

#[tokio::test]
async fn an_approved_plan_is_dropped_and_used_up() -> Result<()> {
    let scene = held().await?;
    let folder = tempfile::tempdir()?;
    let path = scene.saved(&folder).await?;
    let plan: Value = serde_json::from_str(&std::fs::read_to_string(&path)?)?;
    let table = &plan["tables"][0];
    assert_eq!((&plan["tailrace_plan"], &table["table"]), (&json!(1), &json!("raw")));
    assert_eq!(table["held"].as_array().map(Vec::len), Some(6));
    assert_eq!(table["held"][0]["partition_values"], json!([days_ago(20)]));
    assert_eq!(plan["digest"], table["digest"]);
    let again = scene.database.ran_with(&["plan", "--save", &path], &ENV).await?;
    assert_eq!(again.code, 2, "a file is never written over");
    let approved = scene.approve(&["--plan", &path, "--reason", "case 7"]).await?;
    assert_eq!(approved.code, 0, "{approved:?}");
    let events = approved.events("approved");
    assert_eq!(
        json!([events[0]["partitions"], events[0]["files"], events[0]["reason"]]),
        json!([6, 6, "case 7"])
    );
    assert!(approved.out.contains("lake events.raw: 6 partitions, 6 files, approved by tester"));
    assert_eq!(scene.approved_partitions().await?.as_deref(), Some("6"));
    // A file that comes to an approved partition later is held, with all that is late by then.
    assert_eq!(scene.passes(&in_days(0)).await?, (6, 2, 0));
    assert_eq!(scene.approved_partitions().await?.as_deref(), Some("0"));
    scene.table.append((0..8).map(|_| file(&days_ago(20))).collect()).await?;
    assert_eq!(scene.passes(&in_days(0)).await?, (0, 10, 8));
    let list = scene.approve(&["--list"]).await?;
    assert_eq!(list.out, "No approval is valid\n");
    Ok(())
}

#[tokio::test]
async fn a_digest_approves_what_it_is_of_and_nothing_else() -> Result<()> {
    let scene = held().await?;
    let digest = scene.digest().await?;
    let wrong = scene.approve(&["--digest", "0123"]).await?;
    assert_eq!(wrong.code, 1, "{wrong:?}");
    assert!(
        wrong.err.contains(&format!(
            "what is held of lake events.raw is not what digest 0123 is of, but {digest} is: events.raw \
             holds 6 partitions with 6 files ({digest}); nothing was approved"
        )),
        "{wrong:?}"
    );
    // Another file of another old day is held with the others, and the digest is another one.
    scene.table.append(vec![file(&days_ago(30))]).await?;
    assert_eq!(scene.approve(&["--digest", &digest]).await?.code, 1);
    assert_eq!(scene.passes(&in_days(0)).await?, (0, 9, 7));
    let digest = scene.digest().await?;
    assert_eq!(scene.approve(&["--digest", &digest]).await?.code, 0);
    assert_eq!(scene.passes(&in_days(0)).await?, (7, 2, 0));
    Ok(())
}

#[tokio::test]
async fn what_drifted_since_a_plan_is_refused() -> Result<()> {
    let folder = tempfile::tempdir()?;
    for (what, drift) in [
        ("policy", "the policy of events.raw has revision"),
        ("files", &*format!("partition {} of events.raw has 2 files, and had 1", "2026")),
        ("table", "table events.raw is gone, has no policy now, or is another table"),
    ] {
        let scene = held().await?;
        let path = scene.saved(&folder).await?;
        match what {
            "policy" => scene.set_policy("7d", &[]).await?,
            "files" => drop(scene.table.append(vec![file(&days_ago(20))]).await?),
            _ => {
                scene.database.ran(&["policy", "unset", "lake", "events.raw"]).await?;
            }
        }
        let ran = scene.approve(&["--plan", &path]).await?;
        assert_eq!(ran.code, 1, "{what}: {ran:?}");
        let is_named = ran.err.contains(drift)
            || what == "files" && ran.err.contains("of events.raw has 2 files, and had 1");
        assert!(is_named, "{what}: {ran:?}");
        assert_eq!(scene.approved_partitions().await?.as_deref(), Some("0"));
        std::fs::remove_file(&path)?;
    }
    Ok(())
}

#[tokio::test]
async fn a_plan_that_somebody_changed_is_refused() -> Result<()> {
    let scene = held().await?;
    let folder = tempfile::tempdir()?;
    let path = scene.saved(&folder).await?;
    let text = std::fs::read_to_string(&path)?;
    let day = text.replace(&days_ago(20), &days_ago(2));
    // A partition with many files would be as it was approved, however much came to it.
    let count = text.replacen("\"files\": 1", "\"files\": 1000", 1);
    for edited in [day, count] {
        assert_ne!(edited, text);
        std::fs::write(&path, edited)?;
        let ran = scene.approve(&["--plan", &path]).await?;
        assert_eq!(ran.code, 2, "{ran:?}");
        assert!(ran.err.contains("the plan is not as it was saved"), "{ran:?}");
    }
    std::fs::write(&path, "{}")?;
    let ran = scene.approve(&["--plan", &path]).await?;
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.err.contains("is no plan that `tailrace plan --save` wrote"), "{ran:?}");
    Ok(())
}

/// An approval is of one revision of the policy, and for a time.
#[tokio::test]
async fn an_approval_is_void_once_its_time_or_its_policy_is_over() -> Result<()> {
    for void in [
        "update tailrace.approval set until = clock_timestamp()",
        "update tailrace.approval set policy_revision = policy_revision - 1",
        "update tailrace.approval set rule = 'another'",
        "update tailrace.approved_partition set files = 0",
    ] {
        let scene = held().await?;
        let digest = scene.digest().await?;
        assert_eq!(scene.approve(&["--digest", &digest]).await?.code, 0);
        scene.database.sql(void).await?;
        assert_eq!(scene.passes(&in_days(0)).await?, (0, 8, 6), "{void}");
    }
    Ok(())
}

/// The drop and the use of the approval are one transaction.
#[tokio::test]
async fn a_drop_that_is_rolled_back_leaves_its_approval() -> Result<()> {
    let scene = held().await?;
    let digest = scene.digest().await?;
    assert_eq!(scene.approve(&["--digest", &digest]).await?.code, 0);
    let refuse = "create function public.refuse() returns trigger language plpgsql as \
                  $$ begin raise exception 'no'; end $$; \
                  create trigger refuse before update on hog_data_file for each row \
                  when (new.end_snapshot is not null) execute function public.refuse()";
    scene.database.sql(refuse).await?;
    assert_eq!(scene.passes(&in_days(0)).await?.1, 8);
    assert_eq!(scene.approved_partitions().await?.as_deref(), Some("6"));
    scene.database.sql("drop trigger refuse on hog_data_file").await?;
    assert_eq!(scene.passes(&in_days(0)).await?, (6, 2, 0));
    assert_eq!(scene.approved_partitions().await?.as_deref(), Some("0"));
    Ok(())
}

/// A pass that was planned before the approval does not commit by an older revision, and one after it drops.
#[tokio::test]
async fn an_approval_raises_the_guard_revision() -> Result<()> {
    let scene = held().await?;
    let before = scene.revision().await?;
    let digest = scene.digest().await?;
    assert_eq!(scene.approve(&["--digest", &digest]).await?.code, 0);
    let number = |text: Option<String>| text.and_then(|text| text.parse::<i64>().ok());
    assert_eq!(number(scene.revision().await?), number(before).map(|before| before + 1));
    Ok(())
}

/// Holds and pauses are above an approval.
#[tokio::test]
async fn an_approval_lets_nothing_go_that_is_paused_or_held() -> Result<()> {
    let scene = held().await?;
    let digest = scene.digest().await?;
    assert_eq!(scene.approve(&["--digest", &digest]).await?.code, 0);
    scene.hold(super::partitions([&*days_ago(20)])).await?;
    assert_eq!(scene.passes(&in_days(0)).await?, (5, 3, 0));
    Ok(())
}

#[tokio::test]
async fn where_nothing_is_held_nothing_is_approved() -> Result<()> {
    let scene = of_days([20, 1]).await?;
    scene.set_policy("7d", &[]).await?;
    let ran = scene.approve(&["--digest", "0123"]).await?;
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.err.contains("nothing of lake events.raw is held for its number"), "{ran:?}");
    Ok(())
}

/// Whoever needs another pair of eyes is told so, and a policy is confirmed by nobody.
#[tokio::test]
async fn with_four_eyes_the_command_line_approves_nothing() -> Result<()> {
    let scene = held().await?;
    let env = [ENV[0], ("TAILRACE__GUARD__FOUR_EYES", "true")];
    for arguments in [
        &["approve", "lake", "events.raw", "--digest", "0123"][..],
        &["policy", "set", "lake", "events.raw", "--field", "at", "--keep", "7d", "--yes"],
    ] {
        let ran = scene.database.ran_with(arguments, &env).await?;
        assert_eq!(ran.code, 1, "{ran:?}");
        assert!(ran.err.contains("guard.four_eyes is on"), "{ran:?}");
    }
    assert_eq!(scene.passes(&in_days(0)).await?, (0, 8, 6));
    Ok(())
}
