//! A network between the program and Postgres that fails on command.

use std::path::PathBuf;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

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

/// A message of a client: what it sends before it waits for an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Message {
    /// The n-th of all connections together, counted from 1.
    Number(usize),
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
/// direction, and nobody is told. What is sent is taken.
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
    messages: AtomicUsize,
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
            messages: AtomicUsize::new(0),
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
                        let mut line = Line { client, server, network, answers: Answers::Pass };
                        // An end that one side makes is the end for both, unless told otherwise.
                        if let Ok(true) = line.carry().await {
                            locked(&line.network.lingering).push(line.server);
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

    /// From now on nothing goes through, in either direction, and nobody is told.
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

/// What becomes of the server's next answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answers {
    Pass,
    /// It ends the connection.
    Cut(Cut),
    /// The network falls silent in the middle of it.
    Silent(Silence),
}

/// One connection.
struct Line {
    client: TcpStream,
    server: UnixStream,
    network: Arc<Network>,
    answers: Answers,
}

impl Line {
    /// Carries bytes to the end of the connection; true if the server's side of it is to stay.
    async fn carry(&mut self) -> Result<bool> {
        let (mut sent, mut answered) = (vec![0; 65536], vec![0; 65536]);
        let mut silent = self.network.silent.subscribe();
        let is_let_in = silent.borrow().is_some_and(|silence| silence.lets_in);
        loop {
            tokio::select! {
                biased;
                () = async { drop(silent.wait_for(Option::is_some).await) }, if !is_let_in => {
                    return self.hold().await;
                }
                length = self.client.read(&mut sent) => {
                    match (length?, self.answers) {
                        // Its end was the message; there is no answer to that.
                        (0, Answers::Silent(silence)) => {
                            self.network.silent.send_replace(Some(silence));
                        }
                        (0, _) => return Ok(false),
                        (length, _) => {
                            if !self.send(&sent[..length]).await? {
                                return Ok(false);
                            }
                        }
                    }
                }
                length = self.server.read(&mut answered) => {
                    let length = length?;
                    match self.answers {
                        // Also where the server has no answer but its end.
                        Answers::Silent(silence) => {
                            self.client.write_all(&answered[..length / 2]).await?;
                            self.network.silent.send_replace(Some(silence));
                        }
                        Answers::Cut(cut) => {
                            // Before the client can notice and come back.
                            let shuts = cut == Cut::AfterCommitShut;
                            self.network.is_shut.fetch_or(shuts, Ordering::SeqCst);
                            return Ok(cut == Cut::AfterCommitHalf);
                        }
                        Answers::Pass if length == 0 => return Ok(false),
                        Answers::Pass => self.client.write_all(&answered[..length]).await?,
                    }
                }
            }
        }
    }

    /// Passes a message on, as far as it comes; false where that ends the connection.
    async fn send(&mut self, message: &[u8]) -> Result<bool> {
        let contains = |text: &str| message.windows(text.len()).any(|part| part == text.as_bytes());
        if contains("COMMIT\0") {
            match locked(&self.network.next_cut).take() {
                Some(Cut::BeforeCommit) => return Ok(false),
                Some(cut) => self.answers = Answers::Cut(cut),
                None => {}
            }
        }
        let number = self.network.messages.fetch_add(1, Ordering::Relaxed) + 1;
        let begins = |silence: &mut Silence| match silence.from {
            Message::Number(first) => number == first,
            Message::With(text) => contains(text),
        };
        let begins_now = locked(&self.network.planned).take_if(begins);
        match begins_now {
            None => self.server.write_all(message).await?,
            Some(silence) if silence.comes == Comes::Nowhere => {
                self.network.silent.send_replace(Some(silence));
            }
            Some(silence) => {
                self.server.write_all(message).await?;
                match silence.comes {
                    Comes::HalfWayBack => self.answers = Answers::Silent(silence),
                    _ => drop(self.network.silent.send_replace(Some(silence))),
                }
            }
        }
        Ok(true)
    }

    /// Keeps both sides open, and nothing goes from one to the other, until the silence is over.
    async fn hold(&mut self) -> Result<bool> {
        let mut silent = self.network.silent.subscribe();
        let noticed_after = silent.borrow().and_then(|silence| silence.noticed_after);
        let mut over = pin!(async { drop(silent.wait_for(Option::is_none).await) });
        let noticed = async {
            match noticed_after {
                Some(after) => tokio::time::sleep(after).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = over.as_mut() => return Ok(false),
            () = noticed => self.server.shutdown().await?,
        }
        over.await;
        Ok(false)
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
