//! The byte stream of a connection. It fails where the client does not take its answer for too
//! long, and notifies the connection of what was read and flushed.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_io_timeout::TimeoutWriter;

use super::connections::Connection;

/// A stream on which a write, a flush or an end that makes no progress for `patience` is an error.
pub fn bounded(
    stream: TcpStream,
    patience: Duration,
    connection: Arc<Connection>,
) -> Pin<Box<TimeoutWriter<Telling>>> {
    let mut bounded = TimeoutWriter::new(Telling { stream, connection });
    bounded.set_timeout(Some(patience));
    Box::pin(bounded)
}

/// A stream that notifies its connection of reads and flushes.
pub struct Telling {
    stream: TcpStream,
    connection: Arc<Connection>,
}

impl AsyncRead for Telling {
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

impl AsyncWrite for Telling {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
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
        came
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
