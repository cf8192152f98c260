//! The threads that serve the page. Each serves one connection at a time, and one request of it.
//!
//! A connection that stayed open would occupy its thread between two requests. A client that stalls is dropped after a
//! time limit, or as soon as another connection needs its thread. So one thread is always free to accept connections,
//! unless all others are processing requests, and the loading of a model does not delay the meters.

use std::{
    io,
    net::{Shutdown, TcpListener, TcpStream},
    sync::Arc,
    thread,
    time::Duration,
};

use super::{access::Access, backend::Backend, pending::PendingConnections, router::Router, timed_stream::TimedStream};

/// Maximum number of pending connections. A browser opens six.
const MAX_PENDING: usize = 16;
/// Additional threads, which process requests or wait for a connection.
const PROCESSING: usize = 8;
/// Time to wait after an accept that failed, for example for lack of file descriptors.
const RETRY_AFTER: Duration = Duration::from_millis(100);

/// State that the threads share.
pub struct Workers {
    listener: TcpListener,
    access: Access,
    backend: Arc<dyn Backend>,
    pending: PendingConnections,
}

impl Workers {
    pub fn new(listener: TcpListener, access: Access, backend: Arc<dyn Backend>) -> Arc<Self> {
        Arc::new(Self { listener, access, backend, pending: PendingConnections::new(MAX_PENDING) })
    }

    /// Starts all threads.
    ///
    /// # Errors
    /// If the system cannot create them.
    pub fn start(self: &Arc<Self>) -> io::Result<()> {
        (0..MAX_PENDING + PROCESSING).try_for_each(|_| {
            let own = self.clone();
            thread::Builder::new().name("page".to_owned()).spawn(move || own.run()).map(drop)
        })
    }

    fn run(&self) {
        loop {
            match self.listener.accept() {
                // An error means that the client has gone or stalls, so it needs no response.
                Ok((stream, _)) => drop(self.handle(&Arc::new(stream))),
                Err(_) => thread::sleep(RETRY_AFTER),
            }
        }
    }

    fn handle(&self, stream: &Arc<TcpStream>) -> io::Result<()> {
        let request = {
            let pending = self.pending.add(stream);
            let router = Router::new(stream.local_addr()?, &self.access);
            let request = router.route(&mut TimedStream::new(stream));
            // If a newer connection has closed this one, a response must not close yet another one.
            if !pending.is_open() {
                return Ok(());
            }
            request
        };
        let response = request.respond(&*self.backend);
        let _pending = self.pending.add(stream);
        let mut timed = TimedStream::new(stream);
        response.send(&mut timed)?;
        // Closing a connection with unread data resets it, and the client might lose the response.
        stream.shutdown(Shutdown::Write)?;
        io::copy(&mut timed, &mut io::sink()).map(drop)
    }
}
