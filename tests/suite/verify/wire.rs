//! Tests of the command and of the endpoint.

use anyhow::Result;
use serde_json::json;
use tailrace::verify::report::Check;
use tailrace_kit::lake::Field;

use super::Scene;
use crate::drop::races::file;
use crate::http;

#[tokio::test]
async fn the_command_tells_in_text_and_json_and_by_its_exit_code() -> Result<()> {
    let scene = Scene::new().await?;
    let other = scene.database.table(&scene.catalog, "other", &[Field::day("at")]).await?;
    other.append(vec![file(0)]).await?;
    let report = scene.database.done(&["verify", "--output", "json"]).await?;
    assert_eq!(report["status"], "ok");
    assert_eq!(report["catalogs"][0]["catalog"], "lake");
    let checks = report["catalogs"][0]["checks"].as_array().cloned().unwrap_or_default();
    let names: Vec<_> = checks.iter().map(|check| check["check"].clone()).collect();
    assert_eq!(names, Check::ALL.map(Check::name));
    let ok = json!({"check": "overdue_files", "status": "ok", "count": 0, "complete": true,
                    "samples": [], "notes": []});
    assert_eq!(checks[0], ok);

    scene.age().await?;
    let (report, code) = scene.database.json(&["verify", "--output", "json"]).await?;
    assert_eq!((code, &report["status"]), (3, &json!("violated")));
    let overdue = &report["catalogs"][0]["checks"][0];
    assert_eq!((&overdue["status"], &overdue["count"]), (&json!("violated"), &json!(3)));
    let sample = &overdue["samples"][0];
    assert_eq!(
        (&sample["table"], &sample["data_file_id"]),
        (&json!("events.raw"), &json!(scene.files[2]))
    );

    let ran = scene.database.ran(&["verify", "--table", "events.raw"]).await?;
    assert_eq!(ran.code, 3, "{ran:?}");
    for line in ["  violated    overdue_files: 3\n", "  ok          receipts\n"] {
        assert!(ran.out.contains(line), "{line}: {}", ran.out);
    }
    assert!(ran.out.ends_with("\nviolated\n"), "{}", ran.out);
    let ran = scene.database.ran(&["verify", "--table", "events.other"]).await?;
    assert_eq!(ran.code, 0, "{ran:?}");
    for scope in [["--catalog", "pond"], ["--table", "events.nothing"]] {
        let ran = scene.database.ran(&[&["verify"][..], &scope].concat()).await?;
        assert_eq!((ran.code, ran.out.as_str()), (1, ""), "{ran:?}");
    }
    Ok(())
}

#[tokio::test]
async fn the_grace_and_the_budget_are_settings() -> Result<()> {
    let scene = Scene::new().await?;
    scene.age().await?;
    let run = async |variable: &str, value: &str| {
        let args = ["verify", "--output", "json"];
        let ran = scene.database.ran_with(&args, &[(variable, value)]).await?;
        let report: serde_json::Value = serde_json::from_str(&ran.out)?;
        anyhow::Ok((ran.code, report["catalogs"][0]["checks"][0]["status"].clone()))
    };
    assert_eq!(run("TAILRACE__VERIFY__GRACE", "25h").await?, (0, json!("ok")));
    assert_eq!(run("TAILRACE__SCHEDULE__EVERY", "13h").await?, (0, json!("ok")));
    assert_eq!(run("TAILRACE__SCHEDULE__EVERY", "11h").await?, (3, json!("violated")));
    Ok(())
}

#[tokio::test]
async fn a_reader_may_ask_over_http() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("tokens");
    http::tokens::write(&file, &http::tokens::line("dashboard", "reader", "look"))?;
    let shown = file.display().to_string();
    let scene = http::Scene::with(&[("TAILRACE__HTTP__TOKENS_FILE", &shown)]).await?;
    let reader = scene.client.token("look");
    let path = "/v1/catalogs/lake/maintenance/partition-retention/verify";
    for path in [path.to_owned(), format!("{path}?table=events.raw")] {
        let answer = reader.send("POST", &path, b"").await?;
        assert_eq!(answer.status, 200, "{answer:?}");
        let report = answer.json()?;
        assert_eq!(
            (&report["status"], &report["catalogs"][0]["catalog"]),
            (&json!("ok"), &json!("lake"))
        );
    }
    for (path, status) in [
        (format!("{path}?table=raw"), 400),
        (format!("{path}?tables=events.raw"), 400),
        (format!("{path}?table=events.nothing"), 404),
        (path.replace("lake", "pond"), 404),
    ] {
        assert_eq!(reader.send("POST", &path, b"").await?.status, status, "{path}");
    }
    assert_eq!(scene.client.send("POST", path, b"").await?.status, 401);
    Ok(())
}
