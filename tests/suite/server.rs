//! Tests of the private server.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use tailrace_kit::server::{PrivateServer, ServerOptions, StopMode, Tls};

use crate::support::TestDatabase;

/// Set in the environment of the process that [`the_server_dies_with_its_process`] kills.
const VICTIM: &str = "TAILRACE_TEST_VICTIM";

async fn text(url: &str, statement: &str) -> Result<String> {
    let mut connection = PgConnection::connect(url).await?;
    let value = sqlx::query_scalar(AssertSqlSafe(format!("SELECT ({statement})::text")))
        .fetch_one(&mut connection)
        .await?;
    connection.close().await?;
    Ok(value)
}

#[tokio::test]
async fn a_server_is_set_up_as_asked() -> Result<()> {
    let options =
        ServerOptions::for_tests().setting("work_mem", "5MB").setting("application_name", "it's");
    let server = PrivateServer::start(options).await?;
    let url = server.admin_url();
    for (name, expected) in [
        ("work_mem", "5MB"),
        ("application_name", "it's"),
        ("TimeZone", "UTC"),
        ("server_encoding", "UTF8"),
        ("listen_addresses", ""),
        ("max_connections", "300"),
        ("shared_buffers", "128MB"),
        ("fsync", "off"),
        ("synchronous_commit", "off"),
        ("full_page_writes", "off"),
    ] {
        let found = text(&url, &format!("current_setting('{name}')")).await?;
        assert_eq!(found, expected, "{name}");
    }
    let collation = "SELECT datcollate FROM pg_database WHERE datname = 'postgres'";
    assert_eq!(text(&url, collation).await?, "C");
    let version = text(&url, "current_setting('server_version')").await?;
    assert_eq!(version.split(' ').next(), Some(server.version()));
    assert!(server.bin_dir().join("postgres").is_file());
    assert_eq!(server.loopback_url("postgres"), None);
    Ok(())
}

#[tokio::test]
async fn a_server_keeps_data_through_a_crash_and_removes_its_folder() -> Result<()> {
    let durable = ServerOptions::default();
    let mut server = PrivateServer::start(durable).await?;
    assert_eq!(text(&server.admin_url(), "current_setting('fsync')").await?, "on");
    let odd_name = "a \"b\" c";
    server.create_database(odd_name, None).await?;
    server.restart(StopMode::Immediate).await?;
    let url = server.url(odd_name);
    assert_eq!(text(&url, "current_database()").await?, odd_name);
    server.drop_database(odd_name).await?;
    assert!(PgConnection::connect(&url).await.is_err());
    server.drop_database(odd_name).await?;

    server.stop(StopMode::Fast).await?;
    server.stop(StopMode::Fast).await?;
    assert!(PgConnection::connect(&server.admin_url()).await.is_err());
    server.restart(StopMode::Fast).await?;
    let folder = server.folder().to_owned();
    assert!(folder.is_dir());
    drop(server);
    assert!(!folder.exists());
    Ok(())
}

#[tokio::test]
async fn a_server_that_does_not_come_up_fails_with_what_it_said() -> Result<()> {
    let options = ServerOptions::for_tests().setting("shared_preload_libraries", "no_such_library");
    let Err(refusal) = PrivateServer::start(options).await else {
        bail!("a server with a library that is not there came up");
    };
    assert!(format!("{refusal:#}").contains("no_such_library"), "{refusal:#}");
    Ok(())
}

#[tokio::test]
async fn tls_is_offered_on_the_loopback_port() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let options = ServerOptions {
        loopback: true,
        tls: Some(self_signed(folder.path())?),
        ..ServerOptions::for_tests()
    };
    let server = match PrivateServer::start(options).await {
        // The wheel's server has no TLS, and says that it has none.
        Err(refusal) if format!("{refusal:#}").contains("not supported by this build") => {
            return Ok(());
        }
        started => started?,
    };
    let url = server.loopback_url("postgres").context("a loopback port")?;
    let encrypted = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
    let found = text(&format!("{url}?sslmode=require"), encrypted).await?;
    assert_eq!(found, "true");
    let found = text(&format!("{url}?sslmode=disable"), encrypted).await?;
    assert_eq!(found, "false");
    Ok(())
}

fn self_signed(folder: &Path) -> Result<Tls> {
    let (certificate, key) = (folder.join("certificate.pem"), folder.join("key.pem"));
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"])
        .args(["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"])
        .arg("-out")
        .arg(&certificate)
        .arg("-keyout")
        .arg(&key)
        .output()
        .context("this test makes its certificate with the program openssl")?;
    if !made.status.success() {
        bail!("openssl: {}", String::from_utf8_lossy(&made.stderr));
    }
    Ok(Tls { certificate, key })
}

#[tokio::test]
async fn the_server_dies_with_its_process() -> Result<()> {
    let mut victim = Command::new(std::env::current_exe()?)
        .args(["--exact", "server::a_process_to_kill", "--nocapture"])
        .env(VICTIM, "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut told = BufReader::new(victim.stdout.take().context("a pipe")?).lines();
    let mut told = |key: &str| -> Result<String> {
        for line in told.by_ref() {
            if let Some((_, value)) = line?.split_once(key) {
                return Ok(value.to_owned());
            }
        }
        bail!("the victim said no {key}")
    };
    let url = told("url=")?;
    let folder = PathBuf::from(told("folder=")?);
    let mut connection = PgConnection::connect(&url).await?;
    assert!(folder.is_dir());

    // SIGKILL: no destructor runs.
    victim.kill()?;
    victim.wait()?;
    let broken_off = sqlx::query("SELECT pg_sleep(60)").execute(&mut connection).await;
    assert!(broken_off.is_err());
    let deadline = Instant::now() + Duration::from_secs(30);
    while folder.exists() {
        assert!(Instant::now() < deadline, "{} stays", folder.display());
        tokio::task::yield_now().await;
    }
    Ok(())
}

/// No test by itself: the process that is killed.
#[tokio::test]
async fn a_process_to_kill() -> Result<()> {
    if std::env::var_os(VICTIM).is_some() {
        let server = PrivateServer::start(ServerOptions::for_tests()).await?;
        println!("url={}", server.admin_url());
        println!("folder={}", server.folder().display());
        std::io::stdin().read_to_end(&mut Vec::new())?;
    }
    Ok(())
}

#[tokio::test]
async fn a_tests_database_goes_with_the_test() -> Result<()> {
    let database = TestDatabase::new().await?;
    let url = database.url();
    let open = database.lake.pool().acquire().await?;
    let mut other = PgConnection::connect(&url).await?;
    drop(database);
    assert!(other.ping().await.is_err(), "sessions in it are ended");
    let refused = PgConnection::connect(&url).await;
    let code =
        refused.err().and_then(|error| Some(error.as_database_error()?.code()?.into_owned()));
    assert_eq!(code.as_deref(), Some("3D000"));
    drop(open);
    Ok(())
}
