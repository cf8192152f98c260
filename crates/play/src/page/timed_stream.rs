//! A connection with a deadline for the whole exchange, however its bytes are spread over that time.

use std::{
    io::{self, ErrorKind, Read, Write},
    net::TcpStream,
    time::{Duration, Instant},
};

/// Maximum time for a request without its body, and for its response.
pub const TIMEOUT: Duration = Duration::from_secs(5);
/// Additional time for each received KiB, so that an upload may take longer: 16 KiB/s, a slow wireless network.
const TIME_PER_KIB: Duration = Duration::from_micros(62_500);

/// A connection that fails with `TimedOut` after its deadline.
pub struct TimedStream<'a> {
    stream: &'a TcpStream,
    deadline: Instant,
}

impl<'a> TimedStream<'a> {
    /// Starts the time limit of [`TIMEOUT`].
    pub fn new(stream: &'a TcpStream) -> Self {
        Self { stream, deadline: Instant::now() + TIMEOUT }
    }

    fn remaining(&self) -> io::Result<Option<Duration>> {
        let remaining = self.deadline.saturating_duration_since(Instant::now());
        if remaining.is_zero() { Err(ErrorKind::TimedOut.into()) } else { Ok(Some(remaining)) }
    }
}

impl Read for TimedStream<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(self.remaining()?)?;
        let count = self.stream.read(bytes)?;
        let extended = self.deadline + TIME_PER_KIB.mul_f64(count as f64 / 1024.0);
        // Time is not saved up: a client that stalls is dropped, however much it has sent before.
        self.deadline = self.deadline.max(extended.min(Instant::now() + TIMEOUT));
        Ok(count)
    }
}

impl Write for TimedStream<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(self.remaining()?)?;
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
