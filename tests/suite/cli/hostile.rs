//! Tests with hostile names, values and notes in a catalog: no command prints what controls a
//! terminal, none of them can forge a line, and JSON holds exactly these texts.

use anyhow::{Context, Result};
use serde_json::Value;
use tailrace::policy::Mode;
use tailrace_kit::lake::{Field, Table};
use tailrace_kit::simulated_loops::Consumer;

use crate::support::TestDatabase;
use crate::support::governed::Ran;
use crate::support::program::days_ago;

/// Clears a screen, goes back to the beginning of a line, forges one, colors by C1, turns the direction.
const HOSTILE: &str =
    "x\u{1b}[2J\r\nFORGED\u{9b}31m\u{202e}\u{2066}\u{7f}\u{85}\u{2028}\u{200f}\ty";

/// The last letter of names that have to differ.
fn hostile(last: &str) -> String {
    format!("{HOSTILE}{last}")
}

struct Scene {
    database: TestDatabase,
    raw: Table,
}

impl Scene {
    /// A lake whose every text is [`HOSTILE`], as far as it can be: what keeps names plain in the server's
    /// tables is taken away.
    async fn new() -> Result<Self> {
        let database = TestDatabase::new().await?;
        let catalog = database.catalog("lake").await?;
        let raw =
            database.table(&catalog, "raw", &[Field::identity("kind"), Field::day("at")]).await?;
        let of = |day: String| tailrace_kit::lake::NewFile::of([HOSTILE.to_owned(), day]);
        let files = vec![of(days_ago(9)), of(days_ago(8)), of(days_ago(0)), of(HOSTILE.to_owned())];
        raw.append(files).await?;
        database.govern(&raw, "day(at)", "7d").await?;
        Consumer::register(&raw, HOSTILE).await?;
        let observed = database.table(&catalog, "observed", &[Field::day("at")]).await?;
        observed.append(vec![tailrace_kit::lake::NewFile::of([days_ago(9)])]).await?;
        database.govern_as(&observed, "at", "7d", Mode::Observe).await?;
        let broken = database.table(&catalog, "broken", &[Field::day("at")]).await?;
        broken.set_property("partition_retention", Some(HOSTILE)).await?;
        let gone = database.table(&catalog, "gone", &[Field::day("at")]).await?;
        database.govern(&gone, "at", "7d").await?;
        gone.drop_table().await?;
        let scene = Scene { database, raw };
        scene.rename().await?;
        Ok(scene)
    }

    async fn rename(&self) -> Result<()> {
        let plain = "ALTER TABLE hog_catalog DROP CONSTRAINT hog_catalog_name_check;
            ALTER TABLE hog_namespace DROP CONSTRAINT hog_namespace_name_check;
            ALTER TABLE hog_table_version DROP CONSTRAINT hog_table_version_name_check;
            ALTER TABLE hog_column DROP CONSTRAINT hog_column_name_check";
        self.database.sql(plain).await?;
        for update in [
            "UPDATE hog_catalog SET name = $1",
            "UPDATE hog_namespace SET name = $1",
            "UPDATE hog_table_version SET name = $1 || name",
            "UPDATE hog_column SET name = $1 || name",
            "UPDATE hog_snapshot SET author = $1, commit_message = $1",
            "UPDATE hog_file_removal SET path = $1",
            "UPDATE tailrace.policy SET updated_by = $1, catalog_name = $1, namespace_name = $1,
               table_name = $1 || table_id",
        ] {
            sqlx::query(update).bind(HOSTILE).execute(&self.database.pool).await?;
        }
        Ok(())
    }

    /// A table's name as arguments have it. What parts it from its namespace is the first dot.
    fn name(&self, table: &str) -> String {
        format!("{HOSTILE}.{HOSTILE}{table}")
    }

    /// Runs the program; what it printed must be harmless.
    async fn harmless(&self, args: &[&str], log: &str) -> Result<Ran> {
        let env = [
            ("TAILRACE__LOG__FORMAT", log),
            ("TAILRACE__LOG__FILTER", "tailrace=debug"),
            ("USER", HOSTILE),
        ];
        let output = self.database.run_with(args, &env).await?;
        let code = output.status.code().context("killed")?;
        let (out, err) = (String::from_utf8(output.stdout)?, String::from_utf8(output.stderr)?);
        for (stream, text) in [("stdout", &out), ("stderr", &err)] {
            let obeyed = text.chars().find(|letter| {
                letter.is_control() && *letter != '\n'
                    || "\u{202e}\u{2066}\u{2028}\u{200f}".contains(*letter)
            });
            assert_eq!(obeyed, None, "{args:?} on {stream}: {text:?}");
            let forged = text.lines().find(|line| line.trim_start().starts_with("FORGED"));
            assert_eq!(forged, None, "{args:?} on {stream}: {text}");
        }
        Ok(Ran { code, out, err })
    }
}

/// Every text in a value, keys left out.
fn texts(value: &Value) -> Vec<&str> {
    match value {
        Value::String(text) => vec![text],
        Value::Array(values) => values.iter().flat_map(texts).collect(),
        Value::Object(values) => values.values().flat_map(texts).collect(),
        _ => Vec::new(),
    }
}

#[tokio::test]
async fn no_command_prints_what_a_terminal_obeys() -> Result<()> {
    let scene = Scene::new().await?;
    let (raw, observed) = (scene.name("raw"), scene.name("observed"));
    let day = days_ago(8);
    let partition = serde_json::to_string(&[HOSTILE, &day])?;
    let named = format!("{}={HOSTILE},day={day}", hostile("kind"));
    let field = format!("day({})", hostile("at"));
    for (args, code) in [
        (&["policy", "list"][..], 0),
        (&["policy", "list", "--all"], 0),
        (&["policy", "get", HOSTILE, &raw], 0),
        (&["plan"], 3),
        (&["doctor"], 3),
        (&["verify"], 3),
        (&["debt"], 0),
        (&["trace"], 0),
        (&["spec", "list", HOSTILE, &raw], 0),
        (&["drop", HOSTILE, &raw, "--dry-run", "--partition", &partition], 0),
    ] {
        let words = scene.harmless(args, "pretty").await?;
        assert_eq!(words.code, code, "{args:?}: {words:?}");
        let shown = words.out.contains("x\\u001b[2J");
        assert!(shown, "{args:?}: {}", words.out);
        let json = scene.harmless(&[args, &["--output", "json"]].concat(), "json").await?;
        assert_eq!((json.code, json.out.lines().count()), (code, 1), "{args:?}: {json:?}");
        let value: Value = serde_json::from_str(&json.out)?;
        let is_there = texts(&value).iter().any(|text| text.contains(HOSTILE));
        assert!(is_there, "{args:?}: {}", json.out);
        for line in json.err.lines() {
            serde_json::from_str::<Value>(line)?;
        }
    }

    // What is asked on a terminal, errors, and what changes something.
    let no_table = scene.name("nothing");
    for (args, code) in [
        (&["spec", "trust", HOSTILE, &raw, "1", "--reason", HOSTILE][..], 2),
        (&["spec", "trust", HOSTILE, &raw, "1", "--reason", HOSTILE, "--yes"], 0),
        (&["spec", "trust", HOSTILE, &raw, "1", "--reason", HOSTILE, "--yes"], 0),
        (&["clock", "accept", HOSTILE, "--reason", HOSTILE, "--yes"], 0),
        (&["policy", "set", HOSTILE, &raw, "--field", &field, "--keep", "7d", "--by", HOSTILE], 2),
        (&["policy", "set", HOSTILE, &raw, "--field", HOSTILE, "--keep", "7d"], 2),
        (&["policy", "set", HOSTILE, &raw, "--field", &field, "--keep", HOSTILE], 2),
        (&["policy", "get", HOSTILE, &no_table], 1),
        (&["plan", "--catalog", HOSTILE, "--table", &no_table], 1),
        (&["drop", HOSTILE, &raw, "--yes", "--partition", &named], 2),
        (&["drop", HOSTILE, &raw, "--yes", "--partition", &partition, "--author", HOSTILE], 0),
        (&["policy", "unset", HOSTILE, &observed], 0),
        (&["sweep"], 3),
        (&["trace", HOSTILE, &raw], 0),
    ] {
        // There is no policy any more to be taken away the second time.
        let again = if args.starts_with(&["policy", "unset"]) { 1 } else { code };
        for (log, code) in [("pretty", code), ("json", again)] {
            let ran = scene.harmless(args, log).await?;
            assert_eq!(ran.code, code, "{args:?}: {ran:?}");
        }
    }
    let ended = scene.raw.all_files().await?;
    let ended: Vec<_> = ended.iter().map(|file| file.end_snapshot.is_some()).collect();
    assert_eq!(ended, [true, true, false, false]);
    Ok(())
}
