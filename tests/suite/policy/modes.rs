//! Tests of a mode that is not given: the rule is the same for `policy set`, PUT and the property.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::properties::PROPERTY;
use crate::http::Scene;
use crate::support::wait::until;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Command,
    Put,
    Property,
}

impl Way {
    /// Says the policy, with this mode or without one; a property is then seen by a pass.
    async fn say(self, scene: &Scene, keep: &str, mode: Option<&str>) -> Result<()> {
        let mut policy = json!({"field": "at", "keep": keep});
        if let Some(mode) = mode {
            policy["mode"] = json!(mode);
        }
        match self {
            Way::Command => {
                let set = ["policy", "set", "lake", "events.raw", "--field", "at", "--keep", keep];
                let mode = mode.map(|mode| format!("--mode={mode}"));
                let args: Vec<_> = set.into_iter().chain(mode.as_deref()).collect();
                let ran = scene.database.ran(&args).await?;
                ensure!(ran.code == 0, "{ran:?}");
            }
            Way::Put => {
                let put = scene.client.json("PUT", &scene.policy(""), &policy.to_string()).await?;
                ensure!(put.status == 200, "{put:?}");
            }
            Way::Property => {
                scene.table.set_property(PROPERTY, Some(&policy.to_string())).await?;
                scene.database.sweep().await?;
            }
        }
        Ok(())
    }

    async fn unsay(self, scene: &Scene) -> Result<()> {
        match self {
            Way::Command => {
                let ran = scene.database.ran(&["policy", "unset", "lake", "events.raw", "--yes"]);
                ensure!(ran.await?.code == 0);
            }
            Way::Put => {
                let path = scene.policy("?accept_property=true");
                let deleted = scene.client.send("DELETE", &path, b"").await?;
                ensure!(deleted.status == 204, "{deleted:?}");
            }
            Way::Property => {
                scene.table.set_property(PROPERTY, None).await?;
                scene.database.sweep().await?;
            }
        }
        Ok(())
    }
}

/// Source, keep and mode of the policy in force.
async fn in_force(scene: &Scene) -> Result<[String; 3]> {
    let listed = scene.database.policies(&["policy", "list", "--output", "json"]).await?;
    let rows: Vec<&Value> = listed.as_array().into_iter().flatten().collect();
    let mut followed = rows.iter().filter(|row| row["in_force"] == true);
    let (Some(row), None) = (followed.next(), followed.next()) else {
        anyhow::bail!("not one: {listed}");
    };
    let text = |key: &str| row[key].as_str().unwrap_or_default().to_owned();
    Ok([text("source"), text("keep"), text("mode")])
}

#[tokio::test]
async fn a_new_policy_enforces_and_an_existing_one_keeps_its_mode() -> Result<()> {
    let scene = Scene::new().await?;
    for way in [Way::Command, Way::Put, Way::Property] {
        let source = if way == Way::Property { "property" } else { "stored" };
        // Set, said again without a mode; unset, and set again.
        for (said, is) in [
            (None, "enforce"),
            (Some("observe"), "observe"),
            (None, "observe"),
            (Some("paused"), "paused"),
            (None, "paused"),
            (Some("enforce"), "enforce"),
            (None, "enforce"),
        ] {
            for keep in ["40d", "41d"] {
                way.say(&scene, keep, said).await?;
                let expected = [source, keep, is].map(str::to_owned);
                assert_eq!(in_force(&scene).await?, expected, "{way:?} {said:?}");
            }
        }
        way.say(&scene, "40d", Some("observe")).await?;
        way.unsay(&scene).await?;
        way.say(&scene, "40d", None).await?;
        assert_eq!(in_force(&scene).await?[2], "enforce", "{way:?}: it is a new one");
        way.unsay(&scene).await?;
    }
    Ok(())
}

/// One way takes the other's place, and says nothing of the mode.
#[tokio::test]
async fn a_stored_policy_over_a_property_keeps_the_propertys_mode() -> Result<()> {
    let scene = Scene::new().await?;
    for way in [Way::Command, Way::Put] {
        for mode in ["observe", "paused", "enforce"] {
            Way::Property.say(&scene, "40d", Some(mode)).await?;
            way.say(&scene, "50d", None).await?;
            assert_eq!(in_force(&scene).await?, ["stored", "50d", mode].map(str::to_owned));
            // A property that appears, or changes, where a stored one is: that one stays in force.
            Way::Property.say(&scene, "41d", Some("enforce")).await?;
            assert_eq!(in_force(&scene).await?, ["stored", "50d", mode].map(str::to_owned));
            way.say(&scene, "51d", None).await?;
            assert_eq!(in_force(&scene).await?, ["stored", "51d", mode].map(str::to_owned));
            way.unsay(&scene).await?;
        }
        // One that is not followed by now, or is gone and no pass has seen that, has its mode still.
        let refused = r#"{"field": "at", "keep": "7 months", "mode": "enforce"}"#;
        for now in [Some(refused), None] {
            Way::Property.say(&scene, "40d", Some("observe")).await?;
            scene.table.set_property(PROPERTY, now).await?;
            way.say(&scene, "50d", None).await?;
            assert_eq!(in_force(&scene).await?[2], "observe", "{way:?} {now:?}");
            way.unsay(&scene).await?;
        }
        // One that was never followed has what it asks for, as far as that can be read.
        for (asked, is) in
            [(r#","mode":"paused""#, "paused"), (r#","mode":1"#, "enforce"), ("", "enforce")]
        {
            Way::Property.unsay(&scene).await?;
            let refused = format!(r#"{{"field":"at","keep":"7 months"{asked}}}"#);
            scene.table.set_property(PROPERTY, Some(&refused)).await?;
            way.say(&scene, "50d", None).await?;
            assert_eq!(in_force(&scene).await?[2], is, "{way:?} {asked}");
            way.unsay(&scene).await?;
        }
        Way::Property.unsay(&scene).await?;
    }
    Ok(())
}

/// Taken away and set again before any pass looked: as passes see it, it was changed.
#[tokio::test]
async fn a_property_that_no_pass_saw_gone_keeps_its_mode() -> Result<()> {
    let scene = Scene::new().await?;
    Way::Property.say(&scene, "7d", Some("observe")).await?;
    scene.table.set_property(PROPERTY, None).await?;
    Way::Property.say(&scene, "7d", None).await?;
    assert_eq!(in_force(&scene).await?, ["property", "7d", "observe"].map(str::to_owned));
    assert_eq!(scene.table.live_files().await?.len(), 3);
    Ok(())
}

/// Whoever pauses a policy while another one sets its `keep` finds it paused.
#[tokio::test]
async fn the_mode_kept_is_that_of_the_policy_there_at_the_write() -> Result<()> {
    let scene = Scene::new().await?;
    for way in [Way::Command, Way::Put] {
        way.say(&scene, "40d", Some("enforce")).await?;
        let mut other = scene.database.pool.begin().await?;
        sqlx::query("UPDATE tailrace.policy SET mode = 'paused'").execute(&mut *other).await?;
        let pause = async {
            until("the other one waits", async || {
                let waiting: i64 = sqlx::query_scalar(
                    "SELECT count(*) FROM pg_stat_activity
                      WHERE datname = current_database() AND wait_event_type = 'Lock'
                        AND query LIKE '%tailrace.policy%'",
                )
                .fetch_one(scene.catalog.pool())
                .await?;
                Ok(waiting == 1)
            })
            .await?;
            Ok(other.commit().await?)
        };
        tokio::try_join!(way.say(&scene, "41d", None), pause)?;
        assert_eq!(in_force(&scene).await?, ["stored", "41d", "paused"].map(str::to_owned));
    }
    Ok(())
}
