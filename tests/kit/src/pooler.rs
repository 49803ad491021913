//! A pgbouncer in front of a private server, on a port of 127.0.0.1.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions, Connection};
use tempfile::TempDir;

use crate::server::folder::{Account, as_account, make_folder};

/// The environment variable that names the program. Empty, it says that none can be had.
pub const ENV_PROGRAM: &str = "TAILRACE_PGBOUNCER";

const READY_WITHIN: Duration = Duration::from_secs(30);
const READY_POLL: Duration = Duration::from_millis(15);

/// Runs the program for as long as its standard input is open: when this process is gone, however it
/// went, the pipe is too.
const SUPERVISE: &str = r#""$1" -q "$2" </dev/null & read -r _; kill "$!"; wait"#;

/// To whom a session of the server belongs, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PoolMode {
    /// To a client until it goes.
    Session,
    /// Until the end of the transaction.
    Transaction,
    /// Until the end of the statement.
    Statement,
}

impl PoolMode {
    fn name(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::Transaction => "transaction",
            Self::Statement => "statement",
        }
    }
}

/// A pooler. It ends when this is dropped, and with the process that started it.
#[derive(Debug)]
pub struct Pooler {
    child: Child,
    folder: TempDir,
    account: Option<Account>,
    server: PgConnectOptions,
    port: u16,
}

impl Pooler {
    /// Starts a pooler before the server that these options lead to by a socket; none where
    /// [`ENV_PROGRAM`] says so. As pgbouncer comes, but for this: it asks for no password, and is whoever
    /// the options name.
    ///
    /// # Errors
    /// There is no pgbouncer (scripts/ensure-pgbouncer.sh installs one), or it does not come up.
    pub async fn start(server: &PgConnectOptions, mode: PoolMode) -> Result<Option<Self>> {
        let Some(program) = find_program()? else { return Ok(None) };
        let (folder, account) = make_folder()?;
        let port = TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port();
        let mut command = Command::new("sh");
        command.args(["-c", SUPERVISE, "supervise"]).arg(program).arg(folder.path().join("ini"));
        command
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0);
        as_account(&mut command, account);
        let settings = settings(server, mode, port, &folder)?;
        write(&folder, account, &settings)?;
        let child = command.spawn().context("cannot run the shell `sh`")?;
        let pooler = Pooler { child, folder, account, server: server.clone(), port };
        pooler.answers().await?;
        Ok(Some(pooler))
    }

    /// The database of the server's options, through the pooler.
    pub fn url(&self) -> String {
        let database = self.server.get_database().unwrap_or("postgres");
        format!("postgres://{}@127.0.0.1:{}/{database}", self.server.get_username(), self.port)
    }

    /// Gives out sessions in another way from now on; for those that are out, from the end of their
    /// transaction on.
    ///
    /// # Errors
    /// The pooler does not answer.
    pub async fn turn(&self, mode: PoolMode) -> Result<()> {
        let settings = settings(&self.server, mode, self.port, &self.folder)?;
        write(&self.folder, self.account, &settings)?;
        self.administer("RELOAD").await
    }

    /// Runs a command of the pooler's own.
    ///
    /// # Errors
    /// It refuses it.
    pub async fn administer(&self, command: &'static str) -> Result<()> {
        let console = self.url().parse::<PgConnectOptions>()?.database("pgbouncer");
        let console = console.extra_float_digits(None);
        let mut connection = console.connect().await?;
        sqlx::raw_sql(command).execute(&mut connection).await?;
        Ok(connection.close().await?)
    }

    async fn answers(&self) -> Result<()> {
        let since = Instant::now();
        loop {
            let refusal = match self.administer("SHOW VERSION").await {
                Ok(()) => return Ok(()),
                Err(refusal) => refusal,
            };
            if since.elapsed() > READY_WITHIN {
                let log = fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
                return Err(refusal.context(format!("pgbouncer does not answer; its log:\n{log}")));
            }
            tokio::time::sleep(READY_POLL).await;
        }
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

fn settings(
    server: &PgConnectOptions,
    mode: PoolMode,
    port: u16,
    folder: &TempDir,
) -> Result<String> {
    let socket = server.get_socket().context("the server has a socket")?;
    let (host, user) = (socket.to_string_lossy(), server.get_username());
    let log = folder.path().join("log");
    Ok(format!(
        "[databases]\n* = host={host} port={} user={user}\n\
         [pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n\
         auth_type = any\nadmin_users = {user}\npool_mode = {}\nlogfile = {}\n",
        server.get_port(),
        mode.name(),
        log.to_string_lossy(),
    ))
}

fn write(folder: &TempDir, account: Option<Account>, settings: &str) -> Result<()> {
    let file = folder.path().join("ini");
    fs::write(&file, settings)?;
    if let Some(account) = account {
        chown(&file, Some(account.uid), Some(account.gid))?;
    }
    Ok(())
}

/// The program, the first of: what the environment names, those on `PATH`, and where Debian has it,
/// which is not on everybody's.
fn find_program() -> Result<Option<PathBuf>> {
    if let Some(named) = std::env::var_os(ENV_PROGRAM) {
        return Ok(Some(PathBuf::from(named)).filter(|named| !named.as_os_str().is_empty()));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain([PathBuf::from("/usr/sbin")]);
    match folders.map(|folder| folder.join("pgbouncer")).find(|program| program.is_file()) {
        Some(program) => Ok(Some(program)),
        None => bail!(
            "no pgbouncer found: run scripts/ensure-pgbouncer.sh, install the package `pgbouncer`, or \
             set {ENV_PROGRAM} to the program, or to nothing to do without these tests"
        ),
    }
}
