//! Tests of the sources of the password, in their order: the URL, `PGPASSWORD`, libpq's password
//! file.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::{Context, Result};
use sqlx::{Connection, PgConnection};
use tailrace_kit::server::{PrivateServer, ServerOptions};
use tempfile::TempDir;

use crate::support::process::{Ended, start};

/// As it is in a file: `p:a\s`.
const RIGHT: &str = r"p\:a\\s";

fn write(file: &Path, text: &str, mode: u32) -> Result<()> {
    std::fs::write(file, text)?;
    Ok(std::fs::set_permissions(file, Permissions::from_mode(mode))?)
}

/// A server that asks the role `se:cret` for its password.
struct Asking {
    server: PrivateServer,
    _rules: TempDir,
}

impl Asking {
    async fn new() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let rules = folder.path().join("rules");
        let text = "local all postgres trust\nhost all all 127.0.0.1/32 scram-sha-256\n";
        // The server has an account of its own where we are root.
        write(&rules, text, 0o644)?;
        std::fs::set_permissions(folder.path(), Permissions::from_mode(0o755))?;
        let options = ServerOptions { loopback: true, ..ServerOptions::for_tests() }
            .setting("hba_file", &rules.to_string_lossy());
        let server = PrivateServer::start(options).await?;
        server.create_database("lake", None).await?;
        let mut connection = PgConnection::connect(&server.admin_url()).await?;
        sqlx::raw_sql(r#"CREATE ROLE "se:cret" LOGIN PASSWORD 'p:a\s'"#)
            .execute(&mut connection)
            .await?;
        connection.close().await?;
        Ok(Asking { server, _rules: folder })
    }

    /// A URL with this after the user's name, and this after the port.
    fn url(&self, password: &str, database: &str) -> Result<String> {
        let url = self.server.loopback_url("").context("a port")?;
        let url = url.replacen("postgres@", &format!("se%3Acret{password}@"), 1);
        Ok(format!("{}{database}", url.trim_end_matches('/')))
    }

    /// Whether the server takes the password that a command comes with.
    async fn takes(&self, url: &str, env: &[(&str, &str)]) -> Result<(bool, Ended)> {
        let ended = start(url, &["plan"], env)?.end().await?;
        let log = format!("{:?}", ended.log);
        let refused = log.contains("password authentication failed");
        // Let in, it finds no lake.
        let missing = log.contains("does not exist") || log.contains("is not there");
        assert_ne!(refused, missing, "{log}");
        Ok((!refused, ended))
    }
}

#[tokio::test]
async fn the_password_file_is_read_as_libpq_reads_it() -> Result<()> {
    let asking = Asking::new().await?;
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("passwords");
    let url = asking.url("", "/lake")?;
    let port = url.rsplit_once(':').and_then(|(_, rest)| rest.split_once('/')).context("a port")?.0;
    let env = [("PGPASSFILE", &*file.to_string_lossy())];
    for (text, takes) in [
        (format!(r"127.0.0.1:{port}:lake:se\:cret:{RIGHT}"), true),
        (format!("*:*:*:*:{RIGHT}\n"), true),
        (format!("# *:*:*:*:wrong\r\n\r\n*:*:sea:*:wrong\r\n*:*:lake:*:{RIGHT}\r\n"), true),
        (format!("*:*:*:*:wrong\n*:*:*:*:{RIGHT}\n"), false),
        (format!(r"\*:*:*:*:{RIGHT}"), false),
        (format!(r"localhost:*:*:*:{RIGHT}"), false),
        (format!("*:*:*:*:{RIGHT}:and more"), true),
        (format!("hunter2\n*:*:*:*:{RIGHT}"), true),
    ] {
        write(&file, &text, 0o600)?;
        let (taken, ended) = asking.takes(&url, &env).await?;
        assert_eq!(taken, takes, "{text:?}");
        assert!(!format!("{:?}", ended.log).contains("hunter2"), "a line is shown: {ended:?}");
        assert_eq!(ended.count("passfile_ignored"), 0);
    }
    // Without a database in the URL it is that of the user's name.
    write(&file, &format!(r"*:*:se\:cret:*:{RIGHT}"), 0o600)?;
    assert!(asking.takes(&asking.url("", "")?, &env).await?.0);

    write(&file, &format!("*:*:*:*:{RIGHT}"), 0o640)?;
    let (taken, ended) = asking.takes(&url, &env).await?;
    assert_eq!((taken, ended.count("passfile_ignored")), (false, 1));
    let told = ended.log.iter().find(|line| line["event"] == "passfile_ignored").context("told")?;
    let says = "its group or others have access to it (mode 0640): chmod 600 it";
    assert_eq!((&told["error"], &told["level"]), (&says.into(), &"WARN".into()));
    Ok(())
}

#[tokio::test]
async fn the_url_comes_first_then_the_variable_then_one_file() -> Result<()> {
    let asking = Asking::new().await?;
    let home = tempfile::tempdir()?;
    let (right, wrong, none) =
        (home.path().join(".pgpass"), home.path().join("wrong"), home.path().join("none"));
    write(&right, &format!("*:*:*:*:{RIGHT}\n"), 0o600)?;
    write(&wrong, "*:*:*:*:wrong\n", 0o600)?;
    write(&none, "nowhere:*:*:*:wrong\n", 0o600)?;
    let (plain, with) = (asking.url("", "/lake")?, asking.url(":p%3Aa%5Cs", "/lake")?);
    let home = ("HOME", &*home.path().to_string_lossy());
    let (wrong, none) = (&*wrong.to_string_lossy(), &*none.to_string_lossy());
    for (url, env, takes) in [
        (&plain, vec![home], true),
        (&plain, vec![home, ("PGPASSFILE", "")], true),
        // A file that was named is the only one.
        (&plain, vec![home, ("PGPASSFILE", none)], false),
        (&plain, vec![home, ("PGPASSWORD", "wrong")], false),
        (&plain, vec![home, ("PGPASSWORD", "")], true),
        (&plain, vec![("PGPASSFILE", wrong), ("PGPASSWORD", r"p:a\s")], true),
        (&with, vec![("PGPASSFILE", wrong), ("PGPASSWORD", "wrong")], true),
    ] {
        assert_eq!(asking.takes(url, &env).await?.0, takes, "{env:?}");
    }
    Ok(())
}
