//! One connection through the simulated network.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use anyhow::Result;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::watch;

use super::{Break, Comes, Cut, Hold, Message, Network, Silence, locked};

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
pub(super) struct Line {
    client: TcpStream,
    server: UnixStream,
    network: Arc<Network>,
    answers: Answers,
    /// Changes when all connections end.
    ends: watch::Receiver<u64>,
}

impl Line {
    pub(super) fn new(client: TcpStream, server: UnixStream, network: Arc<Network>) -> Self {
        let ends = network.ends.subscribe();
        Line { client, server, network, answers: Answers::Pass, ends }
    }

    /// Keeps the server's side open until [`Proxy::let_go`](super::Proxy::let_go).
    pub(super) fn linger(self) {
        locked(&self.network.lingering).push(self.server);
    }

    /// Carries bytes to the end of the connection; true if the server's side of it is to stay.
    pub(super) async fn carry(&mut self) -> Result<bool> {
        let (mut sent, mut answered) = (vec![0; 65536], vec![0; 65536]);
        let mut silent = self.network.silent.subscribe();
        let is_let_in = silent.borrow().is_some_and(|silence| silence.lets_in);
        loop {
            tokio::select! {
                biased;
                () = async { drop(silent.wait_for(Option::is_some).await) }, if !is_let_in => {
                    return self.hold().await;
                }
                _ = self.ends.changed() => return Ok(false),
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
        // Others have it prepared, or open and end the connection.
        let is_statement = matches!(message.first(), Some(b'B' | b'Q'));
        let statement =
            is_statement.then(|| self.network.statements.fetch_add(1, Ordering::Relaxed) + 1);
        let is_this = |message: Message| match message {
            Message::Statement(wanted) => statement == Some(wanted),
            Message::Number(wanted) => number == wanted,
            Message::With(text) => contains(text),
        };
        self.wait_if_held(is_this).await;
        let is_here = |planned: &mut Break| is_this(planned.at);
        let breaks = locked(&self.network.planned_break).take_if(is_here);
        if let Some(Break { arrives, ends_all, .. }) = breaks {
            if arrives {
                self.server.write_all(message).await?;
            }
            if ends_all {
                self.network.is_shut.store(true, Ordering::SeqCst);
                self.network.ends.send_modify(|times| *times += 1);
            }
            return Ok(false);
        }
        let begins = |silence: &mut Silence| is_this(silence.from);
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

    /// Waits where this message is to be held up.
    async fn wait_if_held(&self, is_this: impl Fn(Message) -> bool) {
        let is_held = self.network.hold.send_if_modified(|hold| {
            let is_here = matches!(*hold, Hold::At(message) if is_this(message));
            if is_here {
                *hold = Hold::Held;
            }
            is_here
        });
        if is_held {
            let mut hold = self.network.hold.subscribe();
            drop(hold.wait_for(|hold| *hold != Hold::Held).await);
        }
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
