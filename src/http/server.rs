//! Connections: their number, their timeouts, their end.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::routes::router;
use super::stalling::Stalling;
use super::state::{Context, State};
use crate::config::Config;
use crate::events;

/// The most that is kept of a request's head.
const LARGEST_HEAD: usize = 64 * 1024;
const MOST_HEADERS: usize = 64;

/// How long no connection is accepted after that failed: it does so when files run out, and would
/// again at once.
const AFTER_REFUSAL: Duration = Duration::from_millis(100);

/// The HTTP interface. It listens from the start, and answers once it is run.
pub struct Server {
    listener: TcpListener,
    state: Arc<State>,
    connections: usize,
    header_timeout: Duration,
    write_timeout: Duration,
    grace: Duration,
    stop: CancellationToken,
}

impl Server {
    /// Listens at `address`.
    ///
    /// # Errors
    /// The address cannot be had.
    pub async fn bind(
        address: SocketAddr,
        config: &Config,
        context: Context,
    ) -> anyhow::Result<Self> {
        let listener = TcpListener::bind(address)
            .await
            .with_context(|| format!("cannot listen on {address} (http.bind)"))?;
        let stop = CancellationToken::new();
        Ok(Server {
            listener,
            state: State::new(config, context, stop.clone()),
            connections: config.http.max_connections.get() as usize,
            header_timeout: config.http.header_timeout.get(),
            write_timeout: config.http.write_timeout.get(),
            grace: config.shutdown.grace.get(),
            stop,
        })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// As the system reports them.
    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until `stop`, then lets what is in flight end, at most for the grace. Returns
    /// whether all of it did.
    pub async fn run(self, stop: CancellationToken) -> bool {
        if let Ok(address) = self.address() {
            tracing::info!(
                event = events::HTTP_LISTENING,
                address = %address,
                tokens = self.state.tokens.is_some(),
                "The HTTP interface is up"
            );
        }
        let app = router(self.state.clone());
        let connections = Arc::new(Semaphore::new(self.connections));
        loop {
            let accepted = tokio::select! {
                biased;
                () = stop.cancelled() => break,
                accepted = self.accept(&connections) => accepted,
            };
            let Some((stream, permit)) = accepted else { break };
            let serving = self.serve(stream, app.clone(), stop.clone());
            self.state.tasks().spawn(async move {
                serving.await;
                drop(permit);
            });
        }
        // The port is free from here on: who comes now is told so, and does not wait for us.
        let Server { listener, state, grace, stop: passes, .. } = self;
        drop(listener);
        passes.cancel();
        state.tasks().close();
        let all_ended = tokio::time::timeout(grace, state.tasks().wait()).await.is_ok();
        tracing::info!(event = events::HTTP_STOPPED, all_ended, "The HTTP interface is down");
        all_ended
    }

    /// The next connection, once there may be one more. `None` never comes.
    async fn accept(
        &self,
        connections: &Arc<Semaphore>,
    ) -> Option<(TcpStream, tokio::sync::OwnedSemaphorePermit)> {
        let permit = connections.clone().acquire_owned().await.ok()?;
        loop {
            match self.listener.accept().await {
                Ok((stream, _)) => return Some((stream, permit)),
                Err(error) => {
                    tracing::debug!(%error, "a connection was not accepted");
                    tokio::time::sleep(AFTER_REFUSAL).await;
                }
            }
        }
    }

    /// Serves one connection to its end; once told to stop, the request in flight is its last.
    fn serve(
        &self,
        stream: TcpStream,
        app: Router,
        stop: CancellationToken,
    ) -> impl Future<Output = ()> + Send + 'static {
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "small packets of a connection may wait");
        }
        let io = TokioIo::new(Stalling::new(stream, self.write_timeout));
        let header_timeout = self.header_timeout;
        async move {
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(header_timeout)
                .max_buf_size(LARGEST_HEAD)
                .max_headers(MOST_HEADERS)
                .serve_connection(io, TowerToHyperService::new(app));
            let mut connection = std::pin::pin!(connection);
            let ended = tokio::select! {
                ended = connection.as_mut() => ended,
                () = stop.cancelled() => {
                    connection.as_mut().graceful_shutdown();
                    connection.await
                }
            };
            if let Err(error) = ended {
                tracing::debug!(%error, "a connection broke");
            }
        }
    }
}
