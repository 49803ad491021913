//! A connection whose client takes nothing of its answer is given up; and it is told what was read and flushed.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep};

use super::connections::Connection;

/// A stream on which a write that makes no progress for `patience` is an error.
pub struct Stalling {
    stream: TcpStream,
    patience: Duration,
    connection: Arc<Connection>,
    stalled: Option<Pin<Box<Sleep>>>,
}

impl Stalling {
    pub fn new(stream: TcpStream, patience: Duration, connection: Arc<Connection>) -> Self {
        Stalling { stream, patience, connection, stalled: None }
    }

    /// What came of a write: progress stops the clock, none starts it.
    fn bounded<T>(
        &mut self,
        context: &mut Context<'_>,
        came: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if came.is_ready() {
            self.stalled = None;
            return came;
        }
        let patience = self.patience;
        let clock = self.stalled.get_or_insert_with(|| Box::pin(sleep(patience)));
        clock.as_mut().poll(context).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for Stalling {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let came = Pin::new(&mut self.stream).poll_read(context, buffer);
        if came.is_pending() {
            self.connection.has_read();
        }
        came
    }
}

impl AsyncWrite for Stalling {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let came = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.bounded(context, came)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let came = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.bounded(context, came)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let came = Pin::new(&mut self.stream).poll_flush(context);
        // It is asked for when all that was to be written is.
        if matches!(came, Poll::Ready(Ok(()))) {
            self.connection.flushed();
        }
        self.bounded(context, came)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let came = Pin::new(&mut self.stream).poll_shutdown(context);
        self.bounded(context, came)
    }
}
