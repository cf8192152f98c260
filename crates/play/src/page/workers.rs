//! The threads that answer, each of them one connection at a time, and one request of it.
//!
//! A connection that lived on would keep its thread from others between two questions. Who sends nothing, sends half or reads
//! nothing is waited for only so long, and no longer than others do not need the place. So there is always a thread that waits for
//! the next connection, unless all the others are at work; loading a model keeps no meters waiting.

use std::{
    io,
    net::{Shutdown, TcpListener, TcpStream},
    sync::Arc,
    thread,
    time::Duration,
};

use super::{Desk, router::Router, timed_stream::TimedStream, waiting::WaitingConnections};

/// Connections that are waited for at once. A browser opens six.
const MAX_WAITING: usize = 16;
/// Threads beyond those: they are at work, or wait for a connection.
const AT_WORK: usize = 8;
/// How long a request, and then an answer, may be under way.
pub const TIMEOUT: Duration = Duration::from_secs(5);
/// Until a connection is accepted again, where the system had no room for one.
const RETRY_AFTER: Duration = Duration::from_millis(100);

/// What the threads share.
pub struct Workers {
    listener: TcpListener,
    router: Router,
    desk: Arc<dyn Desk>,
    waiting: WaitingConnections,
}

impl Workers {
    pub fn new(listener: TcpListener, router: Router, desk: Arc<dyn Desk>) -> Arc<Self> {
        Arc::new(Self { listener, router, desk, waiting: WaitingConnections::new(MAX_WAITING) })
    }

    /// Begins with all threads.
    ///
    /// # Errors
    /// When the system has no room for them.
    pub fn begin(self: &Arc<Self>) -> io::Result<()> {
        (0..MAX_WAITING + AT_WORK).try_for_each(|_| {
            let own = self.clone();
            thread::Builder::new().name("page".to_owned()).spawn(move || own.run()).map(drop)
        })
    }

    fn run(&self) {
        loop {
            match self.listener.accept() {
                // Who has gone or stalls needs no answer.
                Ok((stream, _)) => drop(self.handle(&Arc::new(stream))),
                Err(_) => thread::sleep(RETRY_AFTER),
            }
        }
    }

    fn handle(&self, stream: &Arc<TcpStream>) -> io::Result<()> {
        let request = {
            let waiting = self.waiting.add(stream);
            let request = self.router.route(&mut TimedStream::new(stream, TIMEOUT));
            // Who made room takes none from others to be told so.
            if !waiting.is_kept() {
                return Ok(());
            }
            request
        };
        let answer = request.answer(&*self.desk);
        let _waiting = self.waiting.add(stream);
        let mut timed = TimedStream::new(stream, TIMEOUT);
        answer.send(&mut timed)?;
        // Closed while something is unread, it would be reset, and the answer with it might be lost.
        stream.shutdown(Shutdown::Write)?;
        io::copy(&mut timed, &mut io::sink()).map(drop)
    }
}
