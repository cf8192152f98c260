//! A connection that is waited for only so long, however much of it comes or goes meanwhile.

use std::{
    io::{self, ErrorKind, Read, Write},
    net::TcpStream,
    time::{Duration, Instant},
};

/// A connection, until its time is over.
pub struct TimedStream<'a> {
    stream: &'a TcpStream,
    until: Instant,
}

impl<'a> TimedStream<'a> {
    /// From now on for so long.
    pub fn new(stream: &'a TcpStream, timeout: Duration) -> Self {
        Self { stream, until: Instant::now() + timeout }
    }

    fn left(&self) -> io::Result<Option<Duration>> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(ErrorKind::TimedOut.into()) } else { Ok(Some(left)) }
    }
}

impl Read for TimedStream<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(self.left()?)?;
        self.stream.read(bytes)
    }
}

impl Write for TimedStream<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(self.left()?)?;
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
