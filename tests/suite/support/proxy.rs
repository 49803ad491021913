//! A network between the program and Postgres that fails on command.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};
use tailrace::catalog::connect::Database;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::TestDatabase;

/// Where the next COMMIT is cut off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// It never reaches the server.
    BeforeCommit,
    /// The server has committed; its answer is lost.
    AfterCommit,
    /// As `AfterCommit`, and the server has yet to notice: to it, the connection stands until
    /// [`Proxy::let_go`].
    AfterCommitHalf,
    /// As `AfterCommit`, and no connection is to be had until [`Proxy::open`].
    AfterCommitShut,
}

/// Carries connections from a port of 127.0.0.1 to the server's socket.
pub struct Proxy {
    port: u16,
    next_cut: Arc<Mutex<Option<Cut>>>,
    unplugged: watch::Sender<bool>,
    is_shut: Arc<AtomicBool>,
    lingering: Arc<Mutex<Vec<UnixStream>>>,
    listening: JoinHandle<()>,
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

impl TestDatabase {
    /// A network to this database, and the database through it.
    pub async fn through_proxy(&self) -> Result<(Proxy, Database)> {
        let direct = self.tailrace();
        let folder = direct.options.get_socket().context("the tests' server has a socket")?;
        let socket = folder.join(format!(".s.PGSQL.{}", direct.options.get_port()));
        let proxy = Proxy::start(socket).await?;
        let name = direct.options.get_database().context("a database is named")?;
        let url = format!("postgres://postgres@127.0.0.1:{}/{name}", proxy.port);
        Ok((proxy, Database { options: url.parse()?, ..direct }))
    }
}

impl Proxy {
    async fn start(socket: PathBuf) -> Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let port = listener.local_addr()?.port();
        let next_cut = Arc::new(Mutex::new(None));
        let (unplugged, plug) = watch::channel(false);
        let is_shut = Arc::new(AtomicBool::new(false));
        let shut = is_shut.clone();
        let cut = next_cut.clone();
        let lingering = Arc::new(Mutex::new(Vec::new()));
        let kept = lingering.clone();
        let listening = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (cut, plug, socket) = (cut.clone(), plug.clone(), socket.clone());
                let (kept, shut) = (kept.clone(), shut.clone());
                if shut.load(Ordering::SeqCst) {
                    continue;
                }
                tokio::spawn(async move {
                    if let Ok(mut server) = UnixStream::connect(socket).await {
                        // An end that one side makes is the end for both, unless told otherwise.
                        if let Ok(true) = carry(client, &mut server, &cut, &shut, plug).await {
                            kept.lock().unwrap_or_else(PoisonError::into_inner).push(server);
                        }
                    }
                });
            }
        });
        Ok(Proxy { port, next_cut, unplugged, is_shut, lingering, listening })
    }

    /// Cuts one connection at the next COMMIT that a client sends.
    pub fn cut_next(&self, cut: Cut) {
        *self.next_cut.lock().unwrap_or_else(PoisonError::into_inner) = Some(cut);
    }

    /// Whether the cut that was asked for has been made.
    pub fn has_cut(&self) -> bool {
        self.next_cut.lock().unwrap_or_else(PoisonError::into_inner).is_none()
    }

    /// Lets the server notice what was cut off half.
    pub fn let_go(&self) {
        self.lingering.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Lets new connections through again.
    pub fn open(&self) {
        self.is_shut.store(false, Ordering::SeqCst);
    }

    /// From now on nothing goes through, in either direction, and nobody is told.
    pub fn unplug(&self) {
        self.unplugged.send_replace(true);
    }

    /// Breaks the connections that were unplugged; new ones work.
    pub fn plug_in(&self) {
        self.unplugged.send_replace(false);
    }
}

/// Carries bytes to the end of the connection; true if the server's side of it is to stay.
async fn carry(
    mut client: TcpStream,
    server: &mut UnixStream,
    next_cut: &Mutex<Option<Cut>>,
    is_shut: &AtomicBool,
    mut plug: watch::Receiver<bool>,
) -> Result<bool> {
    let (mut sent, mut answered) = (vec![0; 65536], vec![0; 65536]);
    let mut committed = None;
    let mut pulled = plug.clone();
    loop {
        tokio::select! {
            biased;
            () = async { drop(pulled.wait_for(|unplugged| *unplugged).await) } => {
                plug.wait_for(|unplugged| !*unplugged).await?;
                return Ok(false);
            }
            length = client.read(&mut sent) => {
                let length = length?;
                if length == 0 {
                    return Ok(false);
                }
                let is_commit = sent[..length].windows(7).any(|part| part == b"COMMIT\0");
                if is_commit {
                    let cut = next_cut.lock().unwrap_or_else(PoisonError::into_inner).take();
                    match cut {
                        Some(Cut::BeforeCommit) => return Ok(false),
                        after => committed = after,
                    }
                }
                server.write_all(&sent[..length]).await?;
            }
            length = server.read(&mut answered) => {
                let length = length?;
                if length == 0 || committed.is_some() {
                    // Before the client can notice and come back.
                    is_shut.fetch_or(committed == Some(Cut::AfterCommitShut), Ordering::SeqCst);
                    return Ok(committed == Some(Cut::AfterCommitHalf));
                }
                client.write_all(&answered[..length]).await?;
            }
        }
    }
}
