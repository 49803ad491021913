//! A private Postgres cluster. It is created in a temporary folder and reached through a socket in
//! that folder. It ends, and the folder is deleted, with the process that started it.

pub(crate) mod folder;
mod supervisor;

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use tempfile::TempDir;
use url::form_urlencoded::byte_serialize;

use super::binaries::find_binaries;
use folder::{Account, DATA, as_account, make_cluster};
use supervisor::Supervisor;

/// How long a server may take until it answers.
const READY_WITHIN: Duration = Duration::from_secs(60);

/// The pause between two attempts to connect to a server that is coming up.
const READY_POLL: Duration = Duration::from_millis(15);

/// How a private server is set up.
#[derive(Clone, Debug, Default)]
pub struct ServerOptions {
    /// Trade durability for speed: no fsync, no full pages, asynchronous commits. What
    /// such a server holds does not survive a crash of the machine.
    pub fast_and_loose: bool,
    /// Listen on a free port of 127.0.0.1 too.
    pub loopback: bool,
    /// Offer TLS on the loopback port. A build of Postgres without it does not come up.
    pub tls: Option<Tls>,
    /// Further settings for `postgresql.conf`, over all others.
    pub settings: Vec<(String, String)>,
}

impl ServerOptions {
    /// What the tests run on: loose durability, and many small databases side by side.
    pub fn for_tests() -> Self {
        Self { fast_and_loose: true, ..Self::default() }
    }

    /// Adds one setting.
    #[must_use]
    pub fn setting(mut self, name: &str, value: &str) -> Self {
        self.settings.push((name.to_owned(), value.to_owned()));
        self
    }
}

/// A certificate and its key, in PEM files. They are copied: the server wants to own them.
#[derive(Clone, Debug)]
pub struct Tls {
    /// The server's certificate.
    pub certificate: PathBuf,
    /// The private key of it.
    pub key: PathBuf,
}

/// How a server is told to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopMode {
    /// Sessions are ended, their transactions rolled back, and a checkpoint written.
    Fast,
    /// As a crash: nothing is written, and the next start recovers from the WAL.
    Immediate,
}

impl StopMode {
    fn signal(self) -> &'static str {
        match self {
            Self::Fast => "INT",
            Self::Immediate => "QUIT",
        }
    }
}

/// A Postgres cluster of our own. Dropping it stops the server and removes its folder; so
/// does the end of this process, a `kill -9` included.
///
/// It listens on a Unix socket inside its folder and trusts whoever reaches it; encoding
/// UTF8, locale C, time zone UTC. When we run as root, which Postgres refuses, it runs as
/// `nobody`. It holds no connection and no task, so it may be shared between runtimes.
#[derive(Debug)]
pub struct PrivateServer {
    // Before the folder, so that the server has ended when its folder goes.
    supervisor: Option<Supervisor>,
    folder: TempDir,
    bin_dir: PathBuf,
    account: Option<Account>,
    port: u16,
    loopback: bool,
    version: String,
}

impl PrivateServer {
    /// Makes a cluster and starts it; returns when it answers.
    ///
    /// # Errors
    /// If no server programs are found, or the server does not come up; the text then
    /// ends with its last log lines.
    pub async fn start(options: ServerOptions) -> Result<Self> {
        let bin_dir = find_binaries()?;
        // In a blocking task, which ends and takes its folder along even if we are cancelled.
        let programs = bin_dir.clone();
        let making = tokio::task::spawn_blocking(move || make_cluster(&programs));
        let (folder, account) = making.await??;
        let port = if options.loopback { free_port()? } else { 5432 };
        let mut server = Self {
            supervisor: None,
            folder,
            bin_dir,
            account,
            port,
            loopback: options.loopback,
            version: String::new(),
        };
        server.configure(&options)?;
        server.launch().await?;
        Ok(server)
    }

    /// The socket URL of a database, for sqlx and libpq alike.
    pub fn url(&self, database: &str) -> String {
        let socket = escaped(&self.folder.path().to_string_lossy());
        format!("{}?host={socket}", self.address("localhost", database))
    }

    /// The socket URL of the maintenance database.
    pub fn admin_url(&self) -> String {
        self.url("postgres")
    }

    /// The URL of a database over TCP; none unless the server was asked to listen there.
    pub fn loopback_url(&self, database: &str) -> Option<String> {
        self.loopback.then(|| self.address("127.0.0.1", database))
    }

    /// The folder of the server programs.
    pub fn bin_dir(&self) -> &Path {
        &self.bin_dir
    }

    /// The folder that holds data, socket and log.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// What the server calls its version, such as `15.18`.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Makes a database, a copy of `template` if one is named. Nobody may be connected to
    /// the template meanwhile, but copies of one may be made side by side.
    pub async fn create_database(&self, name: &str, template: Option<&str>) -> Result<()> {
        let template = template.unwrap_or("template1");
        let statement = format!("CREATE DATABASE {} TEMPLATE {}", quoted(name), quoted(template));
        self.administer(statement)
            .await
            .with_context(|| format!("cannot make the database {name} from {template}"))
    }

    /// Drops a database if it is there, ending the sessions in it.
    pub async fn drop_database(&self, name: &str) -> Result<()> {
        self.administer(format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", quoted(name)))
            .await
            .with_context(|| format!("cannot drop the database {name}"))
    }

    /// Stops the server and keeps its folder, for a later [`restart`](Self::restart).
    /// Nothing happens if it is stopped already.
    pub async fn stop(&mut self, mode: StopMode) -> Result<()> {
        let Some(supervisor) = self.supervisor.take() else {
            return Ok(());
        };
        tokio::task::spawn_blocking(move || supervisor.stop(mode)).await?
    }

    /// Stops the server, starts it again on the same data and address, and returns when it
    /// answers.
    pub async fn restart(&mut self, mode: StopMode) -> Result<()> {
        self.stop(mode).await?;
        self.launch().await
    }

    fn address(&self, host: &str, database: &str) -> String {
        format!("postgres://postgres@{host}:{}/{}", self.port, escaped(database))
    }

    async fn administer(&self, statement: String) -> Result<()> {
        let mut connection = PgConnection::connect(&self.admin_url()).await?;
        sqlx::raw_sql(AssertSqlSafe(statement)).execute(&mut connection).await?;
        connection.close().await?;
        Ok(())
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join(DATA)
    }

    fn log(&self) -> PathBuf {
        self.folder.path().join("log")
    }

    fn configure(&self, options: &ServerOptions) -> Result<()> {
        let mut settings: Vec<(&str, String)> = vec![
            ("unix_socket_directories", self.folder.path().to_string_lossy().into_owned()),
            ("port", self.port.to_string()),
            ("timezone", "UTC".into()),
            ("log_timezone", "UTC".into()),
            ("max_connections", "300".into()),
            ("shared_buffers", "128MB".into()),
            ("listen_addresses", if options.loopback { "127.0.0.1" } else { "" }.into()),
        ];
        if options.fast_and_loose {
            for name in ["fsync", "synchronous_commit", "full_page_writes"] {
                settings.push((name, "off".into()));
            }
        }
        if let Some(tls) = &options.tls {
            settings.push(("ssl", "on".into()));
            let certificate = self.adopt(&tls.certificate, "server.crt")?;
            settings.push(("ssl_cert_file", certificate));
            settings.push(("ssl_key_file", self.adopt(&tls.key, "server.key")?));
        }
        for (name, value) in &options.settings {
            settings.push((name, value.clone()));
        }
        let mut text = String::new();
        for (name, value) in settings {
            text.push_str(&format!("{name} = '{}'\n", value.replace('\'', "''")));
        }
        // The last occurrence of a setting counts, so these go behind what initdb wrote.
        fs::OpenOptions::new()
            .append(true)
            .open(self.data().join("postgresql.conf"))
            .and_then(|mut file| file.write_all(text.as_bytes()))
            .context("cannot write the server's settings")
    }

    /// Copies a file into the folder, for the server's eyes only.
    fn adopt(&self, file: &Path, name: &str) -> Result<String> {
        let copy = self.folder.path().join(name);
        fs::copy(file, &copy).with_context(|| format!("cannot copy {}", file.display()))?;
        fs::set_permissions(&copy, fs::Permissions::from_mode(0o600))?;
        if let Some(account) = self.account {
            chown(&copy, Some(account.uid), Some(account.gid))?;
        }
        Ok(copy.to_string_lossy().into_owned())
    }

    async fn launch(&mut self) -> Result<()> {
        let (url, log) = (self.admin_url(), self.log());
        let mut command = Command::new("sh");
        command
            .args(["-c", include_str!("server/supervise.sh"), "supervise"])
            .arg(self.bin_dir.join("postgres"))
            .args([&self.data(), &log, self.folder.path()])
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // A Ctrl-C at the terminal is for us; the server is stopped when we are done.
            .process_group(0);
        as_account(&mut command, self.account);
        let mut child = command.spawn().context("cannot run the shell `sh`")?;
        let pipe = child.stdin.take();
        let supervisor = self.supervisor.insert(Supervisor { child, pipe });

        let deadline = Instant::now() + READY_WITHIN;
        let mut connection = loop {
            let refusal = match PgConnection::connect(&url).await {
                Ok(connection) => break connection,
                Err(refusal) => refusal,
            };
            let gone = supervisor.child.try_wait()?.is_some();
            if gone || Instant::now() > deadline {
                return Err(anyhow!(refusal).context(format!(
                    "the private Postgres server did not come up; the end of its log:\n{}",
                    last_lines(&log)
                )));
            }
            tokio::time::sleep(READY_POLL).await;
        };
        self.version =
            sqlx::query_scalar("SELECT split_part(current_setting('server_version'), ' ', 1)")
                .fetch_one(&mut connection)
                .await?;
        connection.close().await?;
        Ok(())
    }
}

/// A port of 127.0.0.1 that was free a moment ago.
fn free_port() -> Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// For the path or the query of a URL.
fn escaped(text: &str) -> String {
    let plus_for_space: String = byte_serialize(text.as_bytes()).collect();
    plus_for_space.replace('+', "%20")
}

fn last_lines(log: &Path) -> String {
    let mut text = String::new();
    match fs::File::open(log).and_then(|mut file| file.read_to_string(&mut text)) {
        Ok(_) => {
            let lines: Vec<&str> = text.lines().collect();
            lines[lines.len().saturating_sub(12)..].join("\n")
        }
        Err(refusal) => format!("(no log: {refusal})"),
    }
}
