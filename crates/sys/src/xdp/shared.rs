//! The two rings of a queue that all its sockets share, for several threads: the fill ring and the completion ring.
//!
//! A thread never waits for another one. If another thread uses a ring, a sending thread takes one of its own free chunks,
//! and a receiving thread keeps its chunks until it returns the next one.

use std::sync::{
    Mutex,
    atomic::{
        AtomicU64,
        Ordering::{AcqRel, Acquire, Release},
    },
};

use super::ring::{Consumer, Producer};

/// Chunks for sending of each socket: one bit of a word for each.
pub const TO_SEND: u32 = u64::BITS;

/// The chunks for sending. Those that the kernel has sent are returned to the socket that they belong to.
#[derive(Debug)]
pub struct SendChunks {
    /// The completion ring: numbers of chunks that were sent.
    done: Mutex<Consumer<u64>>,
    /// The free chunks of each socket.
    free: Box<[AtomicU64]>,
    /// Address of the first chunk, and length of each, bytes.
    first: u64,
    length: u64,
}

/// The fill ring: chunks for the kernel to receive into.
#[derive(Debug)]
pub struct FillRing(Mutex<Producer<u64>>);

impl SendChunks {
    /// All chunks of `sockets` sockets, free. They follow each other from address `first` on.
    pub fn new(done: Consumer<u64>, sockets: usize, first: u64, length: u64) -> Self {
        let free = (0..sockets).map(|_| AtomicU64::new(u64::MAX)).collect();
        Self { done: Mutex::new(done), free, first, length }
    }

    pub fn sockets(&self) -> usize {
        self.free.len()
    }

    /// Takes a free chunk of a socket; `None` if the kernel has all of them. Returns the number of the chunk among those of
    /// the socket. Only one thread may take the chunks of a socket.
    #[inline]
    pub fn take(&self, socket: usize) -> Option<u32> {
        self.collect();
        let free = self.free.get(socket)?;
        let chunk = free.load(Acquire).trailing_zeros();
        if chunk == TO_SEND {
            return None;
        }
        free.fetch_and(!(1 << chunk), AcqRel);
        Some(chunk)
    }

    /// Returns a chunk of a socket that the kernel does not have.
    #[inline]
    pub fn give_back(&self, socket: usize, chunk: u32) {
        if let Some(free) = self.free.get(socket) {
            free.fetch_or(1 << chunk, Release);
        }
    }

    /// The address of a chunk of a socket.
    #[inline]
    pub fn address(&self, socket: usize, chunk: u32) -> u64 {
        self.first + (socket as u64 * u64::from(TO_SEND) + u64::from(chunk)) * self.length
    }

    /// Returns the chunks that were sent, of all sockets, unless another thread does so at this moment.
    #[inline]
    fn collect(&self) {
        let Ok(mut done) = self.done.try_lock() else { return };
        while let Some(address) = done.take() {
            let number = address.wrapping_sub(self.first) / self.length;
            let (socket, chunk) = (number / u64::from(TO_SEND), number % u64::from(TO_SEND));
            let free = usize::try_from(socket).ok().and_then(|socket| self.free.get(socket));
            debug_assert!(free.is_some(), "the kernel returns only chunks of ours: {address}");
            if let Some(free) = free {
                free.fetch_or(1 << chunk, Release);
            }
        }
    }
}

impl FillRing {
    pub fn new(ring: Producer<u64>) -> Self {
        Self(Mutex::new(ring))
    }

    /// Returns these chunks to the kernel, or leaves them in place if another thread uses the ring.
    #[inline]
    pub fn put(&self, chunks: &mut Vec<u64>) {
        let Ok(mut ring) = self.0.try_lock() else { return };
        while let Some(chunk) = chunks.last() {
            if !ring.put(*chunk) {
                return;
            }
            chunks.pop();
        }
    }

    /// True if the kernel reads the ring only after a wake-up call; false if another thread uses the ring, which then makes
    /// the call.
    #[inline]
    pub fn needs_wakeup(&self) -> bool {
        self.0.try_lock().is_ok_and(|ring| ring.needs_wakeup())
    }
}

#[cfg(test)]
mod tests {
    use super::{super::ring::tests::both_sides, *};

    const FIRST: u64 = 8 * 2048;

    #[test]
    fn a_sent_chunk_returns_to_its_socket() {
        let (mut kernel, done) = both_sides(u32::MAX - 3);
        let chunks = SendChunks::new(done, 3, FIRST, 2048);
        let taken: Vec<u32> = std::iter::from_fn(|| chunks.take(1)).collect();
        assert_eq!(taken, (0..TO_SEND).collect::<Vec<_>>());
        assert_eq!((chunks.take(0), chunks.take(3)), (Some(0), None), "of another socket, and of none");
        for chunk in [63, 5] {
            assert!(kernel.put(chunks.address(1, chunk)));
        }
        assert!(kernel.put(chunks.address(0, 0)));
        assert_eq!([chunks.take(1), chunks.take(1), chunks.take(1)], [Some(5), Some(63), None]);
        assert_eq!(chunks.take(0), Some(0));
        chunks.give_back(1, 7);
        assert_eq!([chunks.take(1), chunks.take(1)], [Some(7), None]);
    }

    #[test]
    fn a_thread_that_finds_a_ring_in_use_does_not_wait() {
        let (mut kernel, done) = both_sides(0);
        let chunks = SendChunks::new(done, 1, FIRST, 2048);
        assert!(kernel.put(chunks.address(0, 0)));
        {
            let _other = chunks.done.lock().unwrap();
            let taken = (0..=TO_SEND).filter_map(|_| chunks.take(0)).count();
            assert_eq!(taken, 64, "the free ones, but not the one that was sent");
        }
        assert_eq!([chunks.take(0), chunks.take(0)], [Some(0), None]);

        let (ours, mut kernel) = both_sides(0);
        let (fill, mut kept) = (FillRing::new(ours), vec![3, 4]);
        {
            let _other = fill.0.lock().unwrap();
            fill.put(&mut kept);
            assert!(kept == [3, 4] && !fill.needs_wakeup());
        }
        fill.put(&mut kept);
        assert_eq!((kept.len(), kernel.take(), kernel.take(), kernel.take()), (0, Some(4), Some(3), None));
    }
}
