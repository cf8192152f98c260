//! The connections that are waited for: only so many, and who has been waited for longest makes room for the next.

use std::{
    collections::VecDeque,
    net::{Shutdown, TcpStream},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// The connections that are waited for, those first that have been for longest.
pub struct Seats {
    most: usize,
    taken: Mutex<VecDeque<Arc<TcpStream>>>,
}

/// One that is waited for, until this is dropped.
pub struct Seat<'a> {
    seats: &'a Seats,
    stream: &'a Arc<TcpStream>,
}

impl Seats {
    pub fn new(most: usize) -> Self {
        Self { most, taken: Mutex::default() }
    }

    /// One more is waited for; where there are as many as may be, one is not any longer.
    pub fn take<'a>(&'a self, stream: &'a Arc<TcpStream>) -> Seat<'a> {
        let mut taken = self.taken();
        if taken.len() == self.most
            && let Some(oldest) = taken.pop_front()
        {
            // Its thread wakes and finds that it has ended; what has ended by itself needs no more.
            let _ = oldest.shutdown(Shutdown::Both);
        }
        taken.push_back(stream.clone());
        Seat { seats: self, stream }
    }

    fn taken(&self) -> MutexGuard<'_, VecDeque<Arc<TcpStream>>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seat<'_> {
    /// Whether it did not have to make room.
    pub fn is_kept(&self) -> bool {
        self.seats.taken().iter().any(|taken| Arc::ptr_eq(taken, self.stream))
    }
}

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        self.seats.taken().retain(|taken| !Arc::ptr_eq(taken, self.stream));
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
        let seats = Seats::new(2);
        let all: Vec<_> = (0..4).map(|_| connection()).collect();
        let is_open = |n: usize| (&all[n].0).read(&mut [0]).is_err_and(|error| error.kind() == ErrorKind::WouldBlock);
        let first = seats.take(&all[0].1);
        let second = seats.take(&all[1].1);
        drop(second);
        let _third = seats.take(&all[2].1);
        assert!([0, 1, 2, 3].into_iter().all(is_open), "there was room for all");
        let fourth = seats.take(&all[3].1);
        assert_eq!([0, 1, 2, 3].map(is_open), [false, true, true, true]);
        assert!(!first.is_kept() && fourth.is_kept());
    }
}
