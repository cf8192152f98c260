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

use super::{Desk, counter::Counter, seats::Seats, wire::Wire};

/// Connections that are waited for at once. A browser opens six.
const WAITED_FOR: usize = 16;
/// Threads beyond those: they are at work, or wait for a connection.
const AT_WORK: usize = 8;
/// How long a request, and then an answer, may be under way.
pub const PATIENCE: Duration = Duration::from_secs(5);
/// Until a connection is accepted again, where the system had no room for one.
const BREATH: Duration = Duration::from_millis(100);

/// What the threads share.
pub struct Crew {
    listener: TcpListener,
    counter: Counter,
    desk: Arc<dyn Desk>,
    seats: Seats,
}

impl Crew {
    pub fn new(listener: TcpListener, counter: Counter, desk: Arc<dyn Desk>) -> Arc<Self> {
        Arc::new(Self { listener, counter, desk, seats: Seats::new(WAITED_FOR) })
    }

    /// Begins with all threads.
    ///
    /// # Errors
    /// When the system has no room for them.
    pub fn begin(self: &Arc<Self>) -> io::Result<()> {
        (0..WAITED_FOR + AT_WORK).try_for_each(|_| {
            let own = self.clone();
            thread::Builder::new().name("page".to_owned()).spawn(move || own.run()).map(drop)
        })
    }

    fn run(&self) {
        loop {
            match self.listener.accept() {
                // Who has gone or stalls needs no answer.
                Ok((stream, _)) => drop(self.attend(&Arc::new(stream))),
                Err(_) => thread::sleep(BREATH),
            }
        }
    }

    fn attend(&self, stream: &Arc<TcpStream>) -> io::Result<()> {
        let heard = {
            let seat = self.seats.take(stream);
            let heard = self.counter.hear(&mut Wire::new(stream, PATIENCE));
            // Who made room takes none from others to be told so.
            if !seat.is_kept() {
                return Ok(());
            }
            heard
        };
        let answer = heard.answer(&*self.desk);
        let _seat = self.seats.take(stream);
        let mut wire = Wire::new(stream, PATIENCE);
        answer.send(&mut wire)?;
        // Closed while something is unread, it would be reset, and the answer with it might be lost.
        stream.shutdown(Shutdown::Write)?;
        io::copy(&mut wire, &mut io::sink()).map(drop)
    }
}
