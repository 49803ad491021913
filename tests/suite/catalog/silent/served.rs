//! The HTTP interface as a daemon runs it, with the short timeouts of these tests.

use std::sync::Arc;

use anyhow::{Result, bail};
use futures_util::FutureExt;
use tailrace::catalog::connect::Database;
use tailrace::config::{Config, LoadOptions};
use tailrace::http::{Context, Server};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::BOUND;
use crate::http::client::{Answer, Client};

/// What the requests of these tests are bounded by.
const BOUNDS: [(&str, &str); 3] = [
    ("TAILRACE__DROP__LOCK_TIMEOUT", "1s"),
    ("TAILRACE__DROP__MAX_HOLD", "1s"),
    ("TAILRACE__VERIFY__BUDGET", "1s"),
];

/// An interface that listens.
pub struct Served {
    pub client: Client,
    stop: CancellationToken,
    serving: JoinHandle<bool>,
}

impl Served {
    pub async fn start(database: &Database) -> Result<Self> {
        Self::with(database, &[]).await
    }

    /// With these variables, too.
    pub async fn with(database: &Database, env: &[(&str, &str)]) -> Result<Self> {
        let env = BOUNDS.iter().chain(env).map(|(key, value)| (key.to_string(), value.to_string()));
        let options = LoadOptions { env: env.collect(), ..LoadOptions::default() };
        let database = database.clone();
        let context = Context {
            database: Arc::new(move || Ok(database.clone())),
            pass: Arc::new(|_, _| async { bail!("no pass here") }.boxed()),
            pass_lock: Default::default(),
            metrics: Default::default(),
            tokens: None,
        };
        let config = Config::load(&options)?;
        let server = Server::bind(([127, 0, 0, 1], 0).into(), &config, context).await?;
        let (address, stop) = (server.address()?, CancellationToken::new());
        let serving = tokio::spawn(server.run(stop.clone()));
        Ok(Served { client: Client { address, headers: Vec::new() }, stop, serving })
    }

    /// Stops, with all that it does at an end.
    pub async fn stop(self) -> Result<()> {
        self.stop.cancel();
        assert!(self.serving.await?, "something is still in flight");
        Ok(())
    }
}

/// The answer to one request of an interface that reaches the database so.
pub async fn ask(database: &Database, method: &str, path: &str, body: &str) -> Result<Answer> {
    let served = Served::start(database).await?;
    let asked = served.client.json(method, path, body);
    let answer = tokio::time::timeout(BOUND, asked).await??;
    served.stop().await?;
    Ok(answer)
}

/// Whether a request was carried out; if not, its answer says that the database was not to be had.
pub fn is_done(answer: &Answer) -> Result<bool> {
    if answer.status < 300 {
        return Ok(true);
    }
    let body = answer.json()?;
    assert_eq!((answer.status, body["error"].as_str()), (503, Some("unavailable")), "{answer:?}");
    // Whoever has to look first is not told to ask again.
    let asks_again = !answer.body.contains("Look there before you ask again");
    assert_eq!(answer.header("retry-after"), asks_again.then_some("1"), "{answer:?}");
    Ok(false)
}
