//! A write timeout for connections: the peer must read the answer it asked for.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

/// Fails when a write has waited too long for the peer. Without it, clients that read nothing could
/// occupy every connection of the server.
pub(super) struct WriteLimited<S> {
    stream: S,
    limit: Duration,
    alarm: Pin<Box<Sleep>>,
    is_waiting: bool,
}

impl<S> WriteLimited<S> {
    pub(super) fn new(stream: S, limit: Duration) -> WriteLimited<S> {
        let alarm = Box::pin(tokio::time::sleep(limit));
        WriteLimited { stream, limit, alarm, is_waiting: false }
    }

    fn judge<T>(
        &mut self,
        cx: &mut Context<'_>,
        outcome: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if outcome.is_ready() {
            self.is_waiting = false;
            return outcome;
        }
        if !self.is_waiting {
            self.is_waiting = true;
            self.alarm.as_mut().reset(Instant::now() + self.limit);
        }
        match self.alarm.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WriteLimited<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WriteLimited<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.judge(cx, outcome)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write_vectored(cx, buffers);
        self.judge(cx, outcome)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.stream).poll_flush(cx);
        self.judge(cx, outcome)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.judge(cx, outcome)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_never_reads_loses_its_connection() {
        let (ours, _theirs) = duplex(64);
        let mut ours = WriteLimited::new(ours, Duration::from_secs(30));
        let begun = Instant::now();
        let error = ours.write_all(&[0; 1_000]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert_eq!(begun.elapsed().as_secs(), 30);
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_peer_that_reads_keeps_it() {
        let (ours, mut theirs) = duplex(64);
        let mut ours = WriteLimited::new(ours, Duration::from_secs(30));
        let reader = tokio::spawn(async move {
            let mut buffer = [0; 50];
            for _ in 0..20 {
                tokio::time::sleep(Duration::from_secs(20)).await;
                theirs.read_exact(&mut buffer).await.unwrap();
            }
        });
        ours.write_all(&[0; 1_000]).await.unwrap();
        reader.await.unwrap();
    }
}
