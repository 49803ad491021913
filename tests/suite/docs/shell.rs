//! The place where the commands of a page are run: a folder, a shell, and a new lake for each page.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use sqlx::postgres::PgPoolOptions;
use sqlx::{AssertSqlSafe, Connection, PgConnection, PgPool};
use tailrace_kit::lake::{CatalogOptions, Column, Field, Lake, NewFile};
use tailrace_kit::server::{PrivateServer, ServerOptions};
use tempfile::TempDir;
use tokio::process::Command;

use super::blocks::{Block, Language};
use crate::support::process::{Running, start};
use crate::support::program::days_ago;

/// The longest that the commands of a page may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// The place that the pages name, of which another one is taken: several runs of the tests may go on at once.
const PLACE: &str = "127.0.0.1:8917";

/// The longest piece of what the shell said that is shown.
const SHOWN: usize = 3_000;

/// The program. `tailrace run` is a daemon: it is stopped by SIGTERM after its first pass, and its exit code counts.
const PROGRAM: &str = r#"#!/bin/sh
[ "$1" = run ] || exec TAILRACE "$@"
TAILRACE run 2> run.log & daemon=$!
tries=0
until grep --quiet pass_finished run.log; do
  tries=$((tries + 1))
  [ $tries -lt 600 ] || { cat run.log >&2; exit 1; }
  sleep 0.1
done
kill -TERM $daemon
wait $daemon
"#;

/// Whose password psql asks for, it gets this line of stdin as often as it reads one. psql reads blocks of a
/// power of two.
const PASSWORD_LINE: &str = "secret7\n";

/// What the pages need beside tailrace.
const PROGRAMS: [&str; 7] =
    ["psql", "pg_dump", "pg_restore", "createdb", "curl", "setsid", "install"];

/// How far a page's reader has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prepared {
    /// There is a lake, and nothing of tailrace.
    Lake,
    /// The page on the installation was gone through.
    Installed,
    /// And the daemon runs.
    Daemon,
}

/// A server for the pages.
pub struct Place {
    server: PrivateServer,
}

impl Place {
    /// Starts it; or why no page can be run on this machine.
    pub async fn find() -> Result<Result<Self, String>> {
        let server = PrivateServer::start(ServerOptions::for_tests()).await?;
        let place = Self { server };
        let path = place.path()?;
        for program in PROGRAMS {
            if !std::env::split_paths(&path).any(|folder| folder.join(program).is_file()) {
                return Ok(Err(format!(
                    "there is no {program}; psql, pg_dump and others are in \
                                       Debian's package postgresql-client"
                )));
            }
        }
        let output = Command::new("pg_dump").arg("--version").env("PATH", &path).output().await?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let major = |text: &str| text.split('.').next().and_then(|text| text.parse::<u32>().ok());
        let dumps = text.split_whitespace().nth(2).and_then(major);
        let serves = major(place.server.version()).context("the server's version")?;
        Ok(match dumps.is_some_and(|dumps| dumps >= serves) {
            true => Ok(place),
            false => Err(format!("{} is older than the server, {serves}", text.trim())),
        })
    }

    fn path(&self) -> Result<std::ffi::OsString> {
        let bin = self.server.bin_dir().to_owned();
        let usual = std::env::var_os("PATH").unwrap_or_default();
        Ok(std::env::join_paths([bin].into_iter().chain(std::env::split_paths(&usual)))?)
    }

    fn url(&self, role: &str, database: &str) -> String {
        self.server.url(database).replacen("postgres@", &format!("{role}@"), 1)
    }

    /// Statements of the superuser, each on its own.
    async fn admin(&self, statements: &[&str]) -> Result<()> {
        let mut connection = PgConnection::connect(&self.server.admin_url()).await?;
        for statement in statements {
            sqlx::raw_sql(AssertSqlSafe((*statement).to_owned())).execute(&mut connection).await?;
        }
        Ok(connection.close().await?)
    }

    /// A new lake of the role `hoglake`, with a table by day that has old partitions.
    async fn lake(&self, snapshots: usize) -> Result<()> {
        self.admin(&[
            "drop database if exists lake",
            "drop database if exists lake_restored",
            "drop role if exists tailrace",
            "drop role if exists planner",
            "drop role if exists hoglake",
            "create role hoglake login createrole",
            "create role planner",
            "create database lake owner hoglake",
        ])
        .await?;
        let pool =
            PgPoolOptions::new().max_connections(2).connect(&self.url("hoglake", "lake")).await?;
        let filled = fill(&pool, snapshots).await;
        pool.close().await;
        filled
    }

    /// Runs the commands of a page in its order, in one shell; what the shell said is in the error.
    pub async fn run(&self, prepared: Prepared, blocks: &[Block]) -> Result<()> {
        // The page on HTTP names snapshots up to the 412th.
        self.lake(if prepared == Prepared::Daemon { 412 } else { 0 }).await?;
        let folder = Folder::new()?;
        if prepared != Prepared::Lake {
            self.admin(&["create role tailrace login"]).await?;
            let install = "DATABASE_URL=\"$OWNER_URL\" tailrace migrate\n\
                           psql \"$OWNER_URL\" --file deploy/sql/grants.sql\n";
            self.ran(&folder, install).await.context("the installation")?;
        }
        let _daemon = match prepared {
            Prepared::Daemon => Some(self.daemon(&folder).await?),
            Prepared::Lake | Prepared::Installed => None,
        };
        self.ran(&folder, &folder.script(blocks)?).await
    }

    async fn daemon(&self, folder: &Folder) -> Result<Running> {
        let health = folder.path("health.json").to_string_lossy().into_owned();
        let env = [("TAILRACE__HEALTH__FILE", health.as_str())];
        let mut daemon = start(&self.url("tailrace", "lake"), &["run"], &env)?;
        let listening = daemon.told("http_listening").await?;
        // A pass that is asked for while this one runs is refused.
        daemon.event("pass_finished", 1).await?;
        let address = listening["address"].as_str().context("an address")?;
        let curl =
            format!("connect-to = \"{PLACE}:{address}\"\nfail-with-body\nsilent\nshow-error\n");
        fs::write(folder.path(".curlrc"), curl)?;
        Ok(daemon)
    }

    async fn ran(&self, folder: &Folder, script: &str) -> Result<()> {
        fs::write(folder.path("script"), script)?;
        let usual = self.path()?;
        let path = [folder.path("bin")].into_iter().chain(std::env::split_paths(&usual));
        fs::write(folder.path("said"), "")?;
        let said = || fs::OpenOptions::new().append(true).open(folder.path("said"));
        // In a session of its own: psql asks for a password on a terminal where there is one.
        let shell = Command::new("setsid")
            .args(["--wait", "sh", "-e", "-x", "script"])
            .current_dir(folder.path(""))
            .env_clear()
            .env("PATH", std::env::join_paths(path)?)
            .env("HOME", folder.path(""))
            .env("TMPDIR", folder.path(""))
            .env("USER", "tester")
            .env("PGHOST", self.server.folder())
            .env("PGUSER", "postgres")
            .env("OWNER_URL", self.url("hoglake", "lake"))
            .env("RESTORED_URL", self.url("hoglake", "lake_restored"))
            .env("DATABASE_URL", self.url("tailrace", "lake"))
            .env("TAILRACE__HTTP__BIND", "127.0.0.1:0")
            .stdin(fs::File::open(folder.path("stdin"))?)
            .stdout(said()?)
            .stderr(said()?)
            .kill_on_drop(true)
            .status();
        let ended = tokio::time::timeout(PATIENCE, shell).await;
        let said = fs::read(folder.path("said"))?;
        let last = &said[said.len().saturating_sub(SHOWN)..];
        let last = String::from_utf8_lossy(last);
        let status = ended.with_context(|| format!("it does not end: {last}"))??;
        ensure!(status.success(), "{status}: {last}");
        Ok(())
    }
}

async fn fill(pool: &PgPool, snapshots: usize) -> Result<()> {
    let lake = Lake::install(pool, "public").await?;
    let catalog = lake.catalog("lake", CatalogOptions::default()).await?;
    let namespace = catalog.namespace("events").await?;
    let columns = [Column::new("timestamp", "timestamptz"), Column::new("kind", "string")];
    let spec = [Field::day("timestamp")];
    let table = catalog.create_table(&namespace, "events_raw", &columns, &spec).await?;
    let days = ["20713".to_owned(), "20775".to_owned(), days_ago(1), days_ago(0)];
    table.append(days.map(|day| NewFile::of([day])).into()).await?;
    table.append(vec![NewFile::new(vec![None])]).await?;
    for _ in 0..snapshots {
        table.append(vec![NewFile::of([days_ago(0)])]).await?;
    }
    Ok(())
}

/// Where the shell of a page is: the folder of the sources to it, and its home.
struct Folder(TempDir);

impl Folder {
    fn new() -> Result<Self> {
        let folder = Self(tempfile::tempdir()?);
        for name in ["config", "deploy"] {
            symlink(Path::new(env!("CARGO_MANIFEST_DIR")).join(name), folder.path(name))?;
        }
        fs::create_dir(folder.path("bin"))?;
        let program = PROGRAM.replace("TAILRACE", env!("CARGO_BIN_EXE_tailrace"));
        fs::write(folder.path("bin/tailrace"), program)?;
        fs::set_permissions(folder.path("bin/tailrace"), fs::Permissions::from_mode(0o755))?;
        fs::write(folder.path("stdin"), PASSWORD_LINE.repeat(8_192))?;
        fs::write(folder.path(".psqlrc"), "\\set ON_ERROR_STOP on\n")?;
        Ok(folder)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The blocks one after the other, each with a word before it.
    fn script(&self, blocks: &[Block]) -> Result<String> {
        let mut script = String::new();
        for Block { line, language, text, .. } in blocks {
            writeln!(script, ": the block of line {line}")?;
            match language {
                Language::Sh => script.push_str(text),
                Language::Sql => {
                    let name = format!("line-{line}.sql");
                    fs::write(self.path(&name), text)?;
                    writeln!(script, "psql \"$OWNER_URL\" --file {name}")?;
                }
            }
        }
        Ok(script)
    }
}
