//! Tests of connections with TLS, with a password from a file, and to a server that does not
//! answer.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use sqlx::postgres::PgPoolOptions;
use tailrace::catalog::connect::Database;
use tailrace::catalog::session::Patience;
use tailrace::installation::migrate;
use tailrace_kit::lake::{CatalogOptions, Column, Field, Lake, NewFile};
use tailrace_kit::server::{PrivateServer, ServerOptions, Tls};

fn openssl(args: &[&str]) -> Result<()> {
    let made = Command::new("openssl").args(args).output().context("the program openssl")?;
    ensure!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    Ok(())
}

fn path(folder: &Path, name: &str) -> String {
    folder.join(name).to_string_lossy().into_owned()
}

/// An authority of its own, and the certificate of a server at 127.0.0.1 that it has signed.
fn authority(folder: &Path, name: &str) -> Result<()> {
    let file = |suffix: &str| path(folder, &format!("{name}-{suffix}"));
    let (ca, ca_key, key) = (file("ca.pem"), file("ca-key.pem"), file("key.pem"));
    let (request, certificate, extensions) = (file("csr.pem"), file("cert.pem"), file("ext"));
    let subject = format!("/CN={name} authority");
    openssl(&[
        "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", &subject, "-out",
        &ca, "-keyout", &ca_key,
    ])?;
    openssl(&[
        "req",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-subj",
        "/CN=server",
        "-out",
        &request,
        "-keyout",
        &key,
    ])?;
    std::fs::write(&extensions, "subjectAltName=IP:127.0.0.1\nbasicConstraints=CA:FALSE\n")?;
    openssl(&[
        "x509",
        "-req",
        "-in",
        &request,
        "-CA",
        &ca,
        "-CAkey",
        &ca_key,
        "-CAcreateserial",
        "-days",
        "2",
        "-out",
        &certificate,
        "-extfile",
        &extensions,
    ])
}

struct Ran {
    code: Option<i32>,
    err: String,
}

async fn ran(args: &[&str], env: &[(&str, &str)]) -> Result<Ran> {
    let output = tokio::process::Command::new(env!("CARGO_BIN_EXE_tailrace"))
        .args(args)
        .env_clear()
        .envs(env.iter().copied())
        .stdin(Stdio::null())
        .output()
        .await?;
    Ok(Ran { code: output.status.code(), err: String::from_utf8(output.stderr)? })
}

#[tokio::test]
async fn tls_is_verified_and_a_password_comes_from_a_file() -> Result<()> {
    let folder = tempfile::tempdir()?;
    authority(folder.path(), "right")?;
    authority(folder.path(), "wrong")?;
    // The server runs as somebody else when we are root, and reads only this of the folder.
    let hba = folder.path().join("pg_hba.conf");
    std::fs::write(&hba, "local all all trust\nhostssl all all 127.0.0.1/32 scram-sha-256\n")?;
    std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755))?;
    std::fs::set_permissions(&hba, PermissionsExt::from_mode(0o644))?;
    let options = ServerOptions {
        loopback: true,
        tls: Some(Tls {
            certificate: PathBuf::from(path(folder.path(), "right-cert.pem")),
            key: PathBuf::from(path(folder.path(), "right-key.pem")),
        }),
        ..ServerOptions::for_tests().setting("hba_file", &hba.to_string_lossy())
    };
    let server = match PrivateServer::start(options).await {
        // The wheel's server has no TLS, and says that it has none.
        Err(refusal) if format!("{refusal:#}").contains("not supported by this build") => {
            return Ok(());
        }
        started => started?,
    };
    let pool = PgPoolOptions::new().max_connections(2).connect(&server.admin_url()).await?;
    let lake = Lake::install(&pool, "public").await?;
    sqlx::raw_sql("CREATE ROLE owner LOGIN SUPERUSER PASSWORD 'p@ss:/w0rd'").execute(&pool).await?;
    let url = server.loopback_url("postgres").context("a port")?.replace("postgres@", "owner@");
    let secret = path(folder.path(), "password");
    std::fs::write(&secret, "p@ss:/w0rd\n")?;
    let wrong_secret = path(folder.path(), "wrong-password");
    std::fs::write(&wrong_secret, "guess")?;
    let right =
        format!("{url}?sslmode=verify-full&sslrootcert={}", path(folder.path(), "right-ca.pem"));
    let wrong = right.replace("right-ca", "wrong-ca");
    let by_name = right.replace("127.0.0.1", "localhost");
    let plain = format!("{url}?sslmode=disable");

    let attempt = |url: &str, secret: &str| {
        let (url, secret) = (url.to_owned(), secret.to_owned());
        async move {
            ran(
                &["migrate"],
                &[
                    ("TAILRACE__DATABASE__URL", &url),
                    ("TAILRACE__DATABASE__PASSWORD_FILE", &secret),
                ],
            )
            .await
        }
    };
    let port = url.rsplit_once(':').and_then(|(_, rest)| rest.split_once('/')).context("a port")?.0;
    for (url, secret, host, look_at, words) in [
        (&wrong, &secret, "127.0.0.1", "sslrootcert", "invalid peer certificate: UnknownIssuer"),
        (&by_name, &secret, "localhost", "sslrootcert", "not valid for name \"localhost\""),
        (&plain, &secret, "127.0.0.1", "pg_hba.conf", "no pg_hba.conf entry"),
        (&right, &wrong_secret, "127.0.0.1", "database.password_file", "authentication failed"),
    ] {
        let refused = attempt(url, secret).await?;
        assert_eq!(refused.code, Some(1), "{}", refused.err);
        assert!(refused.err.contains(words), "{words}: {}", refused.err);
        let place = format!("to database \"postgres\" at {host}:{port} as role \"owner\" (see ");
        let (_, hint) = refused.err.split_once(&place).context(refused.err.clone())?;
        assert!(hint.split_once("): ").is_some_and(|(hint, _)| hint.contains(look_at)), "{hint}");
        assert!(!refused.err.contains("p@ss"), "{}", refused.err);
    }
    let refused = attempt(&right, &path(folder.path(), "no-such-file")).await?;
    assert_eq!(refused.code, Some(2), "{}", refused.err);
    assert!(refused.err.contains("database.password_file"), "{}", refused.err);

    let migrated = attempt(&right, &secret).await?;
    assert_eq!(migrated.code, Some(0), "{}", migrated.err);
    let catalog = lake.catalog("lake", CatalogOptions::default()).await?;
    let namespace = catalog.namespace("events").await?;
    let columns = [Column::new("at", "date")];
    let table = catalog.create_table(&namespace, "raw", &columns, &[Field::day("at")]).await?;
    table.append(vec![NewFile::of(["18000"])]).await?;
    let env =
        [("DATABASE_URL", right.as_str()), ("TAILRACE__DATABASE__PASSWORD_FILE", secret.as_str())];
    for args in [
        &["policy", "set", "lake", "events.raw", "--field", "at", "--keep", "7d", "--yes"][..],
        &["plan"],
        &["sweep"],
    ] {
        let done = ran(args, &env).await?;
        assert_eq!((done.code, done.err.as_str()), (Some(0), ""), "{args:?}");
    }
    assert_eq!(table.live_files().await?, []);
    // The same through the library, for the session itself: it is encrypted.
    let database = Database {
        options: right.parse::<sqlx::postgres::PgConnectOptions>()?.password("p@ss:/w0rd"),
        schema: "public".into(),
        connect_timeout: Duration::from_secs(10),
        patience: Patience::default(),
    };
    assert_eq!(migrate(&database).await?.applied, 0);
    let mut session = database.session().await?;
    let encrypted: bool =
        sqlx::query_scalar("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()")
            .fetch_one(&mut session)
            .await?;
    assert!(encrypted);
    Ok(())
}

/// A server that takes nobody's connection is given up on in time.
#[tokio::test]
async fn a_server_that_never_answers_is_given_up_on() -> Result<()> {
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("postgres://me@{}/lake?sslmode=disable", silent.local_addr()?);
    let env = [
        ("TAILRACE__DATABASE__URL", url.as_str()),
        ("TAILRACE__DATABASE__CONNECT_TIMEOUT", "100ms"),
    ];
    let refused = ran(&["plan"], &env).await?;
    assert_eq!(refused.code, Some(1), "{}", refused.err);
    assert!(refused.err.contains("no session within 100ms"), "{}", refused.err);
    Ok(())
}
