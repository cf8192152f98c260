//! The connections that are waited for: only so many, and who has been waited for longest makes room for the next.

use std::{
    collections::VecDeque,
    net::{Shutdown, TcpStream},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// The connections that are waited for, those first that have been for longest.
pub struct WaitingConnections {
    limit: usize,
    waiting: Mutex<VecDeque<Arc<TcpStream>>>,
}

/// One that is waited for, until this is dropped.
pub struct WaitingConnection<'a> {
    all: &'a WaitingConnections,
    stream: &'a Arc<TcpStream>,
}

impl WaitingConnections {
    pub fn new(limit: usize) -> Self {
        Self { limit, waiting: Mutex::default() }
    }

    /// One more is waited for; where there are as many as may be, one is not any longer.
    pub fn add<'a>(&'a self, stream: &'a Arc<TcpStream>) -> WaitingConnection<'a> {
        let mut waiting = self.waiting();
        if waiting.len() == self.limit
            && let Some(oldest) = waiting.pop_front()
        {
            // Its thread wakes and finds that it has ended; what has ended by itself needs no more.
            let _ = oldest.shutdown(Shutdown::Both);
        }
        waiting.push_back(stream.clone());
        WaitingConnection { all: self, stream }
    }

    fn waiting(&self) -> MutexGuard<'_, VecDeque<Arc<TcpStream>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WaitingConnection<'_> {
    /// Whether it did not have to make room.
    pub fn is_kept(&self) -> bool {
        self.all.waiting().iter().any(|waiting| Arc::ptr_eq(waiting, self.stream))
    }
}

impl Drop for WaitingConnection<'_> {
    fn drop(&mut self) {
        self.all.waiting().retain(|waiting| !Arc::ptr_eq(waiting, self.stream));
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::{ErrorKind, Read},
        net::TcpListener,
    };

    use super::*;

    /// Both ends of a connection; the first never waits.
    fn connection() -> (TcpStream, Arc<TcpStream>) {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let theirs = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        theirs.set_nonblocking(true).unwrap();
        (theirs, Arc::new(listener.accept().unwrap().0))
    }

    #[test]
    fn who_has_been_waited_for_longest_makes_room() {
        let connections = WaitingConnections::new(2);
        let all: Vec<_> = (0..4).map(|_| connection()).collect();
        let is_open = |n: usize| (&all[n].0).read(&mut [0]).is_err_and(|error| error.kind() == ErrorKind::WouldBlock);
        let first = connections.add(&all[0].1);
        let second = connections.add(&all[1].1);
        drop(second);
        let _third = connections.add(&all[2].1);
        assert!([0, 1, 2, 3].into_iter().all(is_open), "there was room for all");
        let fourth = connections.add(&all[3].1);
        assert_eq!([0, 1, 2, 3].map(is_open), [false, true, true, true]);
        assert!(!first.is_kept() && fourth.is_kept());
    }
}
