//! A connection's bytes, with a valve in front of them.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_util::sync::CancellationToken;

/// Shut, it makes a node a black hole: connections stay open, and nothing is read or written.
#[derive(Debug, Default)]
pub(crate) struct Valve {
    shut: AtomicBool,
    waiting: Mutex<Vec<Waker>>,
}

impl Valve {
    pub(crate) fn set(&self, shut: bool) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        self.shut.store(shut, Ordering::Release);
        if !shut {
            waiting.drain(..).for_each(Waker::wake);
        }
    }

    fn poll_open(&self, cx: &mut Context<'_>) -> Poll<()> {
        if !self.shut.load(Ordering::Acquire) {
            return Poll::Ready(());
        }
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.shut.load(Ordering::Acquire) {
            return Poll::Ready(());
        }
        if !waiting.iter().any(|waker| waker.will_wake(cx.waker())) {
            waiting.push(cx.waker().clone());
        }
        Poll::Pending
    }
}

/// `io` behind a [`Valve`].
#[derive(Debug)]
pub(crate) struct Wire<T> {
    io: T,
    valve: Arc<Valve>,
    connection: CancellationToken,
    cut: fn(&T),
}

impl<T> Wire<T> {
    /// When `connection` is cancelled before `io` is dropped, `cut` is called first.
    pub(crate) fn new(
        io: T,
        valve: Arc<Valve>,
        connection: CancellationToken,
        cut: fn(&T),
    ) -> Self {
        Self {
            io,
            valve,
            connection,
            cut,
        }
    }
}

impl<T> Drop for Wire<T> {
    fn drop(&mut self) {
        if self.connection.is_cancelled() {
            (self.cut)(&self.io);
        }
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Wire<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        std::task::ready!(self.valve.poll_open(cx));
        Pin::new(&mut self.io).poll_read(cx, buf)
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Wire<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        std::task::ready!(self.valve.poll_open(cx));
        Pin::new(&mut self.io).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        std::task::ready!(self.valve.poll_open(cx));
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        std::task::ready!(self.valve.poll_open(cx));
        Pin::new(&mut self.io).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        std::task::ready!(self.valve.poll_open(cx));
        Pin::new(&mut self.io).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }
}
