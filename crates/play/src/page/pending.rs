//! The connections that a thread is reading from or writing to. Their number is limited: a new one closes the oldest.

use std::{
    collections::VecDeque,
    net::{Shutdown, TcpStream},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// The pending connections, the oldest first.
pub struct PendingConnections {
    limit: usize,
    streams: Mutex<VecDeque<Arc<TcpStream>>>,
}

/// A pending connection; dropping it removes it from the list.
pub struct PendingConnection<'a> {
    list: &'a PendingConnections,
    stream: &'a Arc<TcpStream>,
}

impl PendingConnections {
    pub fn new(limit: usize) -> Self {
        Self { limit, streams: Mutex::default() }
    }

    /// Adds a connection. If the list is full, closes the oldest one.
    pub fn add<'a>(&'a self, stream: &'a Arc<TcpStream>) -> PendingConnection<'a> {
        let mut streams = self.streams();
        if streams.len() == self.limit
            && let Some(oldest) = streams.pop_front()
        {
            // Wakes its thread, which sees the end of the stream. Fails if the connection has ended by itself.
            let _ = oldest.shutdown(Shutdown::Both);
        }
        streams.push_back(stream.clone());
        PendingConnection { list: self, stream }
    }

    fn streams(&self) -> MutexGuard<'_, VecDeque<Arc<TcpStream>>> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PendingConnection<'_> {
    /// False if a newer connection has closed this one.
    pub fn is_open(&self) -> bool {
        self.list.streams().iter().any(|stream| Arc::ptr_eq(stream, self.stream))
    }
}

impl Drop for PendingConnection<'_> {
    fn drop(&mut self) {
        self.list.streams().retain(|stream| !Arc::ptr_eq(stream, self.stream));
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::{ErrorKind, Read},
        net::TcpListener,
    };

    use super::*;

    /// The client's end of a connection, which never blocks, and the server's end.
    fn connection() -> (TcpStream, Arc<TcpStream>) {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        client.set_nonblocking(true).unwrap();
        (client, Arc::new(listener.accept().unwrap().0))
    }

    #[test]
    fn closes_the_oldest_connection_when_full() {
        let connections = PendingConnections::new(2);
        let all: Vec<_> = (0..4).map(|_| connection()).collect();
        let is_open = |n: usize| (&all[n].0).read(&mut [0]).is_err_and(|error| error.kind() == ErrorKind::WouldBlock);
        let first = connections.add(&all[0].1);
        let second = connections.add(&all[1].1);
        drop(second);
        let _third = connections.add(&all[2].1);
        assert!([0, 1, 2, 3].into_iter().all(is_open), "the list was never full");
        let fourth = connections.add(&all[3].1);
        assert_eq!([0, 1, 2, 3].map(is_open), [false, true, true, true]);
        assert!(!first.is_open() && fourth.is_open());
    }
}
