//! A network between tailrace and Postgres that knows where one request ends and the next begins.
//! It records the requests, and can stop or cut the connection, or end the server's session, at any
//! request.
//!
//! A request is what a client waits for an answer to: a simple query, or messages up to Sync.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result, bail};
use sqlx::{Connection, PgConnection};
use tailrace::catalog::connect::Database;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use crate::support::TestDatabase;
use crate::support::wait::until;

/// What befalls a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It never reaches the server, which sees the connection end.
    Before,
    /// The server has done it; the answer is lost.
    After,
    /// The server's session is ended by an operator just before.
    Killed,
}

#[derive(Default)]
struct State {
    asked: Vec<String>,
    /// The requests until the fault, and the fault.
    fault: Option<(usize, Fault)>,
    stop_at: Option<&'static str>,
    stopped: bool,
}

/// The network.
pub struct Wire {
    state: Arc<Mutex<State>>,
    go_on: Arc<Notify>,
    listening: JoinHandle<()>,
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

fn locked(state: &Mutex<State>) -> std::sync::MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Wire {
    /// A network to this database, and the database through it.
    pub async fn to(database: &TestDatabase) -> Result<(Self, Database)> {
        let direct = database.tailrace();
        let folder = direct.options.get_socket().context("the tests' server has a socket")?;
        let socket = folder.join(format!(".s.PGSQL.{}", direct.options.get_port()));
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let port = listener.local_addr()?.port();
        let (state, go_on) = (Arc::new(Mutex::new(State::default())), Arc::new(Notify::new()));
        let (told, going, operator) = (state.clone(), go_on.clone(), database.url());
        let listening = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let Ok(server) = UnixStream::connect(&socket).await else { continue };
                let (state, go_on) = (told.clone(), going.clone());
                let operator = operator.clone();
                // The end of one side is the end of both.
                tokio::spawn(async move { carry(client, server, &state, &go_on, &operator).await });
            }
        });
        let name = direct.options.get_database().context("a database is named")?;
        let url = format!("postgres://postgres@127.0.0.1:{port}/{name}");
        let wire = Wire { state, go_on, listening };
        Ok((wire, Database { options: url.parse()?, ..direct }))
    }

    /// Forgets what was asked so far.
    pub fn forget(&self) {
        locked(&self.state).asked.clear();
    }

    /// The SQL of the requests since [`Self::forget`], in order. What is prepared is there twice,
    /// when it is parsed and when it is run.
    pub fn asked(&self) -> Vec<String> {
        locked(&self.state).asked.clone()
    }

    /// Lets this befall the request after so many others.
    pub fn fault(&self, after: usize, fault: Fault) {
        locked(&self.state).fault = Some((after, fault));
    }

    /// Forgets a fault that has not come; false if it has.
    pub fn spare(&self) -> bool {
        locked(&self.state).fault.take().is_some()
    }

    /// Stops the next request with this in its SQL before it reaches the server.
    pub fn stop_at(&self, text: &'static str) {
        locked(&self.state).stop_at = Some(text);
    }

    /// Returns once a request is stopped.
    pub async fn stopped(&self) -> Result<()> {
        until("a request is stopped", async || Ok(locked(&self.state).stopped)).await
    }

    /// Lets the stopped request go on.
    pub fn go_on(&self) {
        locked(&self.state).stopped = false;
        self.go_on.notify_one();
    }

    /// Runs this, does that when a request with this in its SQL is stopped, and lets it go on.
    pub async fn meanwhile<A, B>(
        &self,
        text: &'static str,
        call: impl Future<Output = Result<A>>,
        that: impl Future<Output = Result<B>>,
    ) -> Result<(A, B)> {
        self.stop_at(text);
        let between = async {
            self.stopped().await?;
            let done = that.await?;
            self.go_on();
            Ok(done)
        };
        tokio::try_join!(call, between)
    }
}

async fn carry(
    mut client: TcpStream,
    mut server: UnixStream,
    state: &Mutex<State>,
    go_on: &Notify,
    operator: &str,
) -> Result<()> {
    client.set_nodelay(true)?;
    let session = start(&mut client, &mut server).await?;
    let mut statements: HashMap<Vec<u8>, String> = HashMap::new();
    loop {
        let (bytes, sql) = request(&mut client, &mut statements).await?;
        let (fault, stop) = {
            let mut state = locked(state);
            state.asked.push(sql.clone());
            let stop = state.stop_at.is_some_and(|text| sql.contains(text));
            if stop {
                (state.stop_at, state.stopped) = (None, true);
            }
            let fault = match state.fault {
                Some((0, fault)) => {
                    state.fault = None;
                    Some(fault)
                }
                later => {
                    state.fault = later.map(|(after, fault)| (after - 1, fault));
                    None
                }
            };
            (fault, stop)
        };
        if stop {
            go_on.notified().await;
        }
        match fault {
            Some(Fault::Before) => return Ok(()),
            Some(Fault::Killed) => {
                let mut operator = PgConnection::connect(operator).await?;
                sqlx::query("SELECT pg_terminate_backend($1)")
                    .bind(session)
                    .execute(&mut operator)
                    .await?;
            }
            Some(Fault::After) | None => {}
        }
        server.write_all(&bytes).await?;
        let mut answer = Vec::new();
        let ended = loop {
            match message(&mut server).await {
                Ok((kind, message)) => {
                    answer.extend_from_slice(&message);
                    if kind == b'Z' {
                        break false;
                    }
                }
                Err(_) => break true,
            }
        };
        if fault == Some(Fault::After) {
            return Ok(());
        }
        client.write_all(&answer).await?;
        if ended {
            return Ok(());
        }
    }
}

/// Carries the connection's beginning; the server's session.
async fn start(client: &mut TcpStream, server: &mut UnixStream) -> Result<i32> {
    const SSL_REQUEST: [u8; 4] = 80_877_103_u32.to_be_bytes();
    loop {
        let length = client.read_u32().await?;
        let mut rest = vec![0; length as usize - 4];
        client.read_exact(&mut rest).await?;
        if rest == SSL_REQUEST {
            client.write_all(b"N").await?;
            continue;
        }
        server.write_all(&length.to_be_bytes()).await?;
        server.write_all(&rest).await?;
        break;
    }
    let mut session = None;
    loop {
        let (kind, message) = message(server).await?;
        client.write_all(&message).await?;
        match kind {
            b'K' => session = Some(i32::from_be_bytes(message[5..9].try_into()?)),
            b'Z' => return session.context("the server names its session"),
            _ => {}
        }
    }
}

/// One request and its SQL.
async fn request(
    client: &mut TcpStream,
    statements: &mut HashMap<Vec<u8>, String>,
) -> Result<(Vec<u8>, String)> {
    let (mut bytes, mut sql) = (Vec::new(), String::new());
    loop {
        let (kind, message) = message(client).await?;
        let texts: Vec<&[u8]> = message[5..].split(|byte| *byte == 0).collect();
        let text = |at: usize| {
            String::from_utf8_lossy(texts.get(at).copied().unwrap_or_default()).into_owned()
        };
        match kind {
            b'Q' => sql = text(0),
            b'P' => {
                sql = text(1);
                statements.insert(texts[0].to_vec(), sql.clone());
            }
            // The portal's name, then the statement's.
            b'B' => sql = statements.get(texts[1]).cloned().unwrap_or_default(),
            b'X' => bail!("the client leaves"),
            _ => {}
        }
        bytes.extend_from_slice(&message);
        if matches!(kind, b'Q' | b'S') {
            return Ok((bytes, sql));
        }
    }
}

/// One message with its head.
async fn message(from: &mut (impl AsyncReadExt + Unpin)) -> Result<(u8, Vec<u8>)> {
    let kind = from.read_u8().await?;
    let length = from.read_u32().await?;
    let mut message = vec![0; length as usize + 1];
    message[0] = kind;
    message[1..5].copy_from_slice(&length.to_be_bytes());
    from.read_exact(&mut message[5..]).await?;
    Ok((kind, message))
}
