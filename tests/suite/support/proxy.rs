//! A simulated network between the program and Postgres that fails on command.

mod line;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use tailrace::catalog::connect::Database;
use tokio::net::{TcpListener, UnixStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::TestDatabase;
use line::Line;

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

/// A message of a client: what it sends before it waits for an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Message {
    /// The n-th of all connections together, counted from 1.
    Number(usize),
    /// That which has the n-th statement of all connections together carried out, counted from 1.
    Statement(usize),
    /// The first one that contains this.
    With(&'static str),
}

/// How far a message comes at which the network falls silent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comes {
    /// Nowhere.
    Nowhere,
    /// To the server, whose answer does not come back.
    There,
    /// To the server, and half of its answer back.
    HalfWayBack,
}

/// A network that falls silent: from a message on, no byte of any connection comes through, in either
/// direction, and neither end is informed. What is sent is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Silence {
    /// The message at which it begins.
    pub from: Message,
    /// How far that message comes.
    pub comes: Comes,
    /// Whether connections that are opened later are carried. Otherwise they are silent from the start.
    pub lets_in: bool,
    /// When the server gives up the silent connections, as its kernel would after a minute; never if
    /// not given.
    pub noticed_after: Option<Duration>,
}

/// The end of connections between two statements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Break {
    /// The message at which it comes.
    pub at: Message,
    /// Whether that message reaches the server; its answer never comes back.
    pub arrives: bool,
    /// Whether all connections end and none is to be had until [`Proxy::open`], as where the process is
    /// killed. Otherwise one ends, and its owner may come back.
    pub ends_all: bool,
}

/// A message that is held up on its way to the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hold {
    Nothing,
    At(Message),
    Held,
}

/// Carries connections from a port of 127.0.0.1 to the server's socket.
pub struct Proxy {
    port: u16,
    network: Arc<Network>,
    listening: JoinHandle<()>,
}

/// What all connections share.
struct Network {
    next_cut: Mutex<Option<Cut>>,
    is_shut: AtomicBool,
    planned: Mutex<Option<Silence>>,
    silent: watch::Sender<Option<Silence>>,
    planned_break: Mutex<Option<Break>>,
    /// How often all connections were ended.
    ends: watch::Sender<u64>,
    hold: watch::Sender<Hold>,
    messages: AtomicUsize,
    statements: AtomicUsize,
    lingering: Mutex<Vec<UnixStream>>,
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
        let network = Arc::new(Network {
            next_cut: Mutex::new(None),
            is_shut: AtomicBool::new(false),
            planned: Mutex::new(None),
            silent: watch::Sender::new(None),
            planned_break: Mutex::new(None),
            ends: watch::Sender::new(0),
            hold: watch::Sender::new(Hold::Nothing),
            messages: AtomicUsize::new(0),
            statements: AtomicUsize::new(0),
            lingering: Mutex::new(Vec::new()),
        });
        let shared = network.clone();
        let listening = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (network, socket) = (shared.clone(), socket.clone());
                if network.is_shut.load(Ordering::SeqCst) {
                    continue;
                }
                tokio::spawn(async move {
                    if let Ok(server) = UnixStream::connect(socket).await {
                        let mut line = Line::new(client, server, network);
                        // An end that one side makes is the end for both, unless told otherwise.
                        if let Ok(true) = line.carry().await {
                            line.linger();
                        }
                    }
                });
            }
        });
        Ok(Proxy { port, network, listening })
    }

    /// The port that it listens on.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Cuts one connection at the next COMMIT that a client sends.
    pub fn cut_next(&self, cut: Cut) {
        *locked(&self.network.next_cut) = Some(cut);
    }

    /// Whether the cut that was asked for has been made.
    pub fn has_cut(&self) -> bool {
        locked(&self.network.next_cut).is_none()
    }

    /// Lets the server notice what was cut off half.
    pub fn let_go(&self) {
        locked(&self.network.lingering).clear();
    }

    /// Lets new connections through again.
    pub fn open(&self) {
        self.network.is_shut.store(false, Ordering::SeqCst);
    }

    /// Ends connections when a message comes by.
    pub fn break_at(&self, planned: Break) {
        *locked(&self.network.planned_break) = Some(planned);
    }

    /// Whether that message came by. It is not waited for any more.
    pub fn has_broken(&self) -> bool {
        locked(&self.network.planned_break).take().is_none()
    }

    /// Holds a message up when it comes by, until [`Self::go_on`].
    pub fn hold(&self, message: Message) {
        self.network.hold.send_replace(Hold::At(message));
    }

    /// Returns once the message is held up.
    pub async fn is_held(&self) {
        drop(self.network.hold.subscribe().wait_for(|hold| *hold == Hold::Held).await);
    }

    /// Lets go of the message that is held up. None is waited for any more.
    pub fn go_on(&self) {
        self.network.hold.send_replace(Hold::Nothing);
    }

    /// How many messages clients have sent.
    pub fn messages(&self) -> usize {
        self.network.messages.load(Ordering::Relaxed)
    }

    /// Falls silent when a message comes by.
    pub fn silence(&self, silence: Silence) {
        *locked(&self.network.planned) = Some(silence);
    }

    /// Whether the message came by.
    pub fn is_silent(&self) -> bool {
        self.network.silent.borrow().is_some()
    }

    /// From now on nothing goes through, in either direction, and neither end is informed.
    pub fn unplug(&self) {
        self.network.silent.send_replace(Some(Silence {
            from: Message::Number(0),
            comes: Comes::Nowhere,
            lets_in: false,
            noticed_after: None,
        }));
    }

    /// Breaks the connections that are silent; new ones work.
    pub fn plug_in(&self) {
        self.network.silent.send_replace(None);
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
