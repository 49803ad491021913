//! Tests of `tailrace doctor --bundle`: the file is complete, only its owner can read it, and it
//! has no secret in it.

use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use tailrace_kit::lake::{Field, NewFile};
use tempfile::TempDir;

use crate::support::TestDatabase;
use crate::support::governed::Ran;

/// What every planted secret has in it.
const PLANT: &str = "hunter2";
/// A token, and what its file has of it.
const TOKEN: &str = "5f2c86a1b7";
const DIGEST: &str = "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b";
const AWAY: &str = "postgres://postgres:url-hunter2@localhost:1/lake?host=/nowhere/at/all";

const PARTS: [&str; 5] = ["database", "doctor", "plan", "trace", "verify"];

/// A lake with a governed table, one file of which was dropped; the database refuses another one, in these words.
async fn lake(words: &str) -> Result<TestDatabase> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("lake").await?;
    let table = database.table(&catalog, "raw", &[Field::day("at")]).await?;
    let days = ["18000", "18001"].map(|day| NewFile::of([day]));
    let files = table.append(days.into()).await?.file_ids;
    database.govern(&table, "day(at)", "7d").await?;
    let refuse = format!(
        "create function refuse() returns trigger language plpgsql as $$ begin raise exception '{words}'; end $$;
         create trigger refuse before update on hog_data_file for each row when (new.data_file_id = {})
           execute function refuse()",
        files[1]
    );
    database.sql(&refuse).await?;
    database.ran(&["sweep"]).await?;
    Ok(database)
}

fn names(folder: &TempDir) -> Result<Vec<String>> {
    let entries = std::fs::read_dir(folder.path())?;
    entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
}

impl TestDatabase {
    async fn bundle(&self, file: &Path, env: &[(&str, &str)]) -> Result<Ran> {
        let file = file.to_str().context("UTF-8")?;
        self.ran_with(&["doctor", "--bundle", file], env).await
    }
}

fn read(file: &Path) -> Result<(String, Value)> {
    let text = std::fs::read_to_string(file)?;
    let value = serde_json::from_str(&text)?;
    Ok((text, value))
}

#[tokio::test]
async fn no_planted_secret_is_in_a_bundle() -> Result<()> {
    let words = "no way to postgres://fdw:fdw-hunter2@h/db by password=pair-hunter2, nor env-hunter2, pgpass-hunter2";
    let database = lake(words).await?;
    let folder = tempfile::tempdir()?;
    let planted = |name: &str, text: &str| -> Result<String> {
        let path = folder.path().join(name);
        std::fs::write(&path, text)?;
        Ok(path.to_string_lossy().into_owned())
    };
    let password_file = planted("password", "file-hunter2\n")?;
    let tokens_file = planted("tokens", &format!("etl operator {DIGEST}\n"))?;
    let passwords = planted("pgpass", "h:5432:a\\:b:bob:pgpass-hunter2\n")?;
    std::fs::set_permissions(&passwords, std::fs::Permissions::from_mode(0o600))?;
    let url = |password: &str| database.url().replacen('@', &format!(":{password}@"), 1);
    let file = folder.path().join("bundle.json");
    let doctor = database.doctor().await?;
    for (url, code) in [(url("url%2Dhunter2"), doctor.code), (AWAY.to_owned(), 1)] {
        assert!(url.contains(PLANT), "{url}");
        let env = [
            ("TAILRACE__DATABASE__URL", url.as_str()),
            ("TAILRACE__DATABASE__PASSWORD_FILE", &password_file),
            ("TAILRACE__HTTP__TOKENS_FILE", &tokens_file),
            ("PGPASSWORD", "env-hunter2"),
            ("PGPASSFILE", &passwords),
        ];
        let ran = database.bundle(&file, &env).await?;
        assert_eq!(ran.code, code, "{ran:?}");
        let (text, bundle) = read(&file)?;
        for secret in [PLANT, TOKEN, DIGEST] {
            assert!(!text.contains(secret), "{secret}: {text}");
            assert!(!ran.out.contains(secret) && !ran.err.contains(secret), "{secret}: {ran:?}");
        }
        if code != 1 {
            let error = bundle["plan"]["tables"][0]["waiting"][0]["error"].as_str();
            let masked = "the database says: no way to postgres://fdw:***@h/db by password=***, nor ***, *** (SQLSTATE P0001)";
            assert!(error.is_some_and(|error| error.starts_with(masked)), "{text}");
        }
        std::fs::remove_file(&file)?;
    }
    Ok(())
}

#[tokio::test]
async fn a_bundle_has_what_the_commands_say() -> Result<()> {
    let database = lake("no").await?;
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("bundle.json");
    let ran = database.bundle(&file, &[]).await?;
    let doctor = database.doctor().await?;
    assert_eq!(
        (ran.code, names(&folder)?),
        (doctor.code, vec!["bundle.json".to_owned()]),
        "{ran:?}"
    );
    assert_eq!(std::fs::metadata(&file)?.mode() & 0o7777, 0o600);
    let (text, bundle) = read(&file)?;
    let keys: Vec<_> = bundle.as_object().context("an object")?.keys().collect();
    assert_eq!(
        keys,
        ["as_of", "config", "database", "doctor", "plan", "program", "trace", "verify"]
    );
    assert!(text.lines().count() > 100, "a line for each value: {text}");

    assert_eq!(bundle["program"]["tailrace"], env!("CARGO_PKG_VERSION"));
    let migration = tailrace::installation::version();
    assert_eq!(bundle["program"]["migration"], migration);
    assert_eq!(bundle["database"]["migration"], migration);
    assert_eq!(bundle["database"]["hoglake"], 27);
    let postgres = database.text("version()").await?;
    assert_eq!(bundle["database"]["postgres"].as_str(), postgres.as_deref());
    let config = database.ran(&["config"]).await?;
    let lines: Vec<_> = config.out.lines().map(|line| json!(line)).collect();
    assert_eq!(bundle["config"], json!(lines));

    let whats = |findings: &Value| -> Vec<Value> {
        findings.as_array().into_iter().flatten().map(|one| one["check"].clone()).collect()
    };
    assert_eq!(whats(&bundle["doctor"]["findings"]), whats(&json!(doctor.findings)));
    let plan = database.done(&["plan", "--output", "json"]).await?;
    assert_eq!(plan["tables"][0]["waiting"].as_array().map(Vec::len), Some(1), "{plan}");
    assert_eq!(bundle["plan"]["tables"][0]["waiting"], plan["tables"][0]["waiting"]);
    assert_eq!(bundle["verify"]["status"], "ok");
    assert_eq!(bundle["trace"]["catalogs"][0]["catalog"], "lake");

    let (head, rest) = ran.out.split_once(":\n").context("a head")?;
    assert!(head.starts_with(&format!("{} is written (", file.display())), "{head}");
    assert!(head.ends_with(" KiB, readable by you alone). It has"), "{head}");
    let levels = |level: &str| {
        let found = doctor.findings.iter().filter(|finding| finding["level"] == level).count();
        format!("{found} {level}{}", if found == 1 { "" } else { "s" })
    };
    let fine = doctor.findings.iter().filter(|finding| finding["level"] == "ok").count();
    assert_eq!(
        rest,
        format!(
            "  config    the configuration, with where each key is from
  database  versions
  doctor    {}, {}, {}, {fine} ok
  plan      1 table
  verify    ok
  trace     the newest 1 drop of 1 catalog
Passwords, keys and tokens are masked. Names of hosts, catalogs, tables, columns,
roles and consumers, partition values, paths of objects, and what people typed
(authors, reasons) are in it. Look at it before you send it.
",
            levels("problem"),
            levels("warning"),
            levels("note"),
        )
    );
    Ok(())
}

#[tokio::test]
async fn parts_that_fail_are_there_with_their_errors() -> Result<()> {
    let database = TestDatabase::new().await?;
    database.catalog("lake").await?;
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("away.json");
    let ran = database.bundle(&file, &[("TAILRACE__DATABASE__URL", AWAY)]).await?;
    assert_eq!(ran.code, 1, "{ran:?}");
    let (_, bundle) = read(&file)?;
    let error = "cannot connect to database \"lake\" at /nowhere/at/all:1 as role \"postgres\"";
    for part in PARTS {
        let told = bundle[part]["error"].as_str().unwrap_or_default();
        assert!(told.starts_with(error), "{part}: {bundle}");
        let line = format!("\n  {part:<8}  failed: its error is in the file\n");
        assert!(ran.out.contains(&line), "{part}: {ran:?}");
    }
    assert!(ran.err.starts_with(&format!("tailrace: doctor failed: {error}")), "{ran:?}");
    assert_eq!(bundle["program"]["tailrace"], env!("CARGO_PKG_VERSION"));
    let url = "url = \"postgres://postgres:***@localhost:1/lake?host=/nowhere/at/all\"";
    let config = bundle["config"].as_array().context("lines")?;
    assert!(config.iter().any(|line| line.as_str().is_some_and(|line| line.starts_with(url))));

    // Where the schema `tailrace` is not there, doctor and the versions are.
    database.sql("drop schema tailrace cascade").await?;
    let file = folder.path().join("bare.json");
    let ran = database.bundle(&file, &[]).await?;
    let (_, bundle) = read(&file)?;
    assert_eq!((ran.code, &bundle["database"]["migration"]), (3, &Value::Null), "{ran:?}");
    let failed: Vec<_> =
        PARTS.into_iter().filter(|part| bundle[*part]["error"].is_string()).collect();
    assert_eq!(failed, ["plan", "trace", "verify"]);
    Ok(())
}

#[tokio::test]
async fn a_bundle_replaces_nothing_and_is_whole_or_not_there() -> Result<()> {
    let database = TestDatabase::new().await?;
    database.catalog("lake").await?;
    let folder = tempfile::tempdir()?;
    let taken = folder.path().join("taken.json");
    std::fs::write(&taken, "mine")?;
    let link = folder.path().join("link.json");
    symlink(folder.path().join("nowhere"), &link)?;
    for file in [&taken, &link] {
        let ran = database.bundle(file, &[]).await?;
        let why = format!(
            "tailrace: cannot write the bundle {}: it exists, and nothing is written over it: name a new file\n",
            file.display()
        );
        assert_eq!((ran.code, ran.out.as_str(), ran.err), (2, "", why));
    }
    assert_eq!(std::fs::read_to_string(&taken)?, "mine");
    let ran = database.bundle(&folder.path().join("none/bundle.json"), &[]).await?;
    assert_eq!((ran.code, ran.out.as_str()), (1, ""), "{ran:?}");
    assert!(ran.err.contains(": there is no folder "), "{ran:?}");

    // The file system takes no byte.
    let full: PathBuf = folder.path().join("full.json");
    let script = "trap '' XFSZ; ulimit -f 0; exec \"$0\" doctor --bundle \"$1\"";
    let ended = tokio::process::Command::new("sh")
        .args(["-c", script, env!("CARGO_BIN_EXE_tailrace")])
        .arg(&full)
        .env("TAILRACE__DATABASE__URL", database.url())
        .stdin(Stdio::null())
        .output()
        .await?;
    assert_eq!(ended.status.code(), Some(1), "{ended:?}");
    assert!(String::from_utf8_lossy(&ended.stderr).contains("File too large"), "{ended:?}");
    let mut left = names(&folder)?;
    left.sort();
    assert_eq!(left, ["link.json", "taken.json"]);
    Ok(())
}

#[tokio::test]
async fn a_bundle_takes_no_output_and_may_be_of_one_catalog() -> Result<()> {
    let database = TestDatabase::new().await?;
    database.catalog("lake").await?;
    database.catalog("other").await?;
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("bundle.json");
    let name = file.to_str().context("UTF-8")?;
    for other in [&["--output", "json"][..], &["--grants"]] {
        let ran = database.ran(&[&["doctor", "--bundle", name], other].concat()).await?;
        assert_eq!(ran.code, 2, "{ran:?}");
    }
    let ran = database.ran(&["doctor", "--catalog", "other", "--bundle", name]).await?;
    assert_eq!(ran.code, 0, "{ran:?}");
    let (_, bundle) = read(&file)?;
    for part in ["verify", "trace"] {
        let catalogs = bundle[part]["catalogs"].as_array().context("catalogs")?;
        let names: Vec<_> = catalogs.iter().map(|catalog| &catalog["catalog"]).collect();
        assert_eq!(names, ["other"], "{part}");
    }
    Ok(())
}
