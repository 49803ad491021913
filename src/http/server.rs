//! Accepts and serves connections: limits their number, applies the timeouts, and closes them at
//! the end.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use axum::Router;
use axum::body::Body;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use super::connections::{Answer, Connection, Connections};
use super::routes::router;
use super::state::{Context, State};
use super::stream::bounded;
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
    /// It cannot listen at the address.
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

    /// Serves until `stop`, then waits for the requests in flight, at most for the grace. Returns
    /// whether all of them ended.
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
        let connections = Connections::new(self.connections);
        loop {
            let (stream, connection) = tokio::select! {
                biased;
                () = stop.cancelled() => break,
                accepted = self.accept(&connections) => accepted,
            };
            self.state.tasks().spawn(self.serve(stream, connection, app.clone(), stop.clone()));
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

    /// The next connection, once there is room for it.
    async fn accept(&self, connections: &Arc<Connections>) -> (TcpStream, Arc<Connection>) {
        loop {
            match self.listener.accept().await {
                Ok((stream, _)) => return (stream, connections.admit().await),
                Err(error) => {
                    tracing::debug!(%error, "a connection was not accepted");
                    tokio::time::sleep(AFTER_REFUSAL).await;
                }
            }
        }
    }

    /// Serves one connection to its end, or until it gives way to another one; once told to stop, the
    /// request in flight is its last.
    fn serve(
        &self,
        stream: TcpStream,
        connection: Arc<Connection>,
        app: Router,
        stop: CancellationToken,
    ) -> impl Future<Output = ()> + Send + 'static {
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "small packets of a connection may wait");
        }
        let io = TokioIo::new(bounded(stream, self.write_timeout, connection.clone()));
        let header_timeout = self.header_timeout;
        async move {
            let (of, app) = (connection.clone(), TowerToHyperService::new(app));
            let service = service_fn(move |request| answer(of.clone(), app.clone(), request));
            let serving = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(header_timeout)
                .max_buf_size(LARGEST_HEAD)
                .max_headers(MOST_HEADERS)
                .serve_connection(io, service);
            let mut serving = std::pin::pin!(serving);
            let ended = tokio::select! {
                ended = serving.as_mut() => ended,
                () = connection.gives_way() => {
                    tracing::debug!("a connection gave way to a new one");
                    Ok(())
                }
                () = stop.cancelled() => {
                    serving.as_mut().graceful_shutdown();
                    serving.await
                }
            };
            if let Err(error) = ended {
                tracing::debug!(%error, "a connection broke");
            }
        }
    }
}

/// Answers a request, which is in flight until all of the answer is written.
async fn answer(
    connection: Arc<Connection>,
    app: TowerToHyperService<Router>,
    mut request: Request<Incoming>,
) -> io::Result<Response<Answer>> {
    let gave_way = || io::Error::new(io::ErrorKind::ConnectionAborted, "the connection gave way");
    let flight = connection.flight().ok_or_else(gave_way)?;
    request.extensions_mut().insert(connection);
    let Ok(response) = app.call(request).await;
    Ok(response.map(|body: Body| Answer::new(body, flight)))
}
