//! Capture and playback of one card or of two, started together and processed one period at a time.

use std::{io, os::fd::AsRawFd};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
};

use super::{
    Node, PcmError, Stream, StreamConfig,
    abi::{Command, DROP, LINK, PREPARE, START, UNLINK, command},
};
use crate::clock::Clock;

/// Playback channels.
const OUTPUTS: u32 = 2;
/// Maximum wait for a card in addition to the length of its buffer, s.
const TIMEOUT_S: i64 = 1;

/// Capture and playback with the same period, buffer and sample rate.
///
/// Captured audio is played one buffer later, because both directions start together and playback starts with a buffer
/// of silence.
#[derive(Debug)]
pub struct Duplex {
    capture: Stream,
    playback: Stream,
    is_linked: bool,
    timeout: Timespec,
}

/// The result of waiting for a period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitResult {
    /// A period can be read and another written.
    Period(Wake),
    /// An xrun stopped the stream; [`Duplex::start`] restarts it.
    Xrun,
}

/// A period that is ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wake {
    /// When the thread noticed it, ns on the monotonic clock.
    pub woke_ns: i64,
    /// When the kernel updated the card's position, ns on the monotonic clock; the later of both directions.
    pub card_ns: i64,
    /// Captured frames that have not been read.
    pub captured: u64,
    /// Written frames that have not been played.
    pub queued: u64,
}

impl Duplex {
    /// Opens and configures both directions. [`start`](Self::start) starts them.
    ///
    /// # Errors
    /// [`PcmError`], with the supported values.
    pub fn open(capture: Node, playback: Node, asked: &StreamConfig) -> Result<Self, PcmError> {
        let playback = Stream::open(playback, asked, OUTPUTS)?;
        let capture = Stream::open(capture, asked, asked.inputs)?;
        // Linking fails if the devices are unrelated; they are then started one after the other.
        let is_linked = command(&capture.file, LINK, playback.file.as_raw_fd()).is_ok();
        let buffer_ns = i64::from(asked.buffer_frames()) * 1_000_000_000 / i64::from(asked.rate_hz.max(1));
        let timeout = Timespec { tv_sec: TIMEOUT_S + buffer_ns / 1_000_000_000, tv_nsec: buffer_ns % 1_000_000_000 };
        Ok(Self { capture, playback, is_linked, timeout })
    }

    /// True if the kernel starts and stops both directions in one call.
    #[must_use]
    pub fn is_linked(&self) -> bool {
        self.is_linked
    }

    /// Unlinks the directions, as on cards that cannot be linked. For tests.
    ///
    /// # Errors
    /// The kernel's error.
    #[doc(hidden)]
    pub fn unlink(&mut self) -> io::Result<()> {
        self.capture.command(UNLINK)?;
        self.is_linked = false;
        Ok(())
    }

    /// The capture stream.
    #[inline]
    #[must_use]
    pub fn capture(&self) -> &Stream {
        &self.capture
    }

    /// The playback stream.
    #[inline]
    pub fn playback(&mut self) -> &mut Stream {
        &mut self.playback
    }

    /// Starts both directions with a buffer of silence, also after [`WaitResult::Xrun`].
    ///
    /// # Errors
    /// The kernel's error.
    pub fn start(&mut self) -> io::Result<()> {
        if !self.is_linked {
            // After an xrun of one direction, the other still runs and cannot be prepared. Errors of a stopped one do
            // not matter.
            let _ = self.playback.command(DROP);
            let _ = self.capture.command(DROP);
        }
        self.both(PREPARE)?;
        self.playback.prepare()?;
        self.capture.prepare()?;
        self.both(START)
    }

    /// Sends a command to both directions; linked streams share it.
    fn both(&self, command: Command) -> io::Result<()> {
        if !self.is_linked {
            self.playback.command(command)?;
        }
        self.capture.command(command)
    }

    /// Waits until one period can be read and one written.
    ///
    /// # Errors
    /// ENODEV if the card was removed, `TimedOut` if neither direction advances; otherwise the kernel's error.
    #[inline]
    pub fn wait(&mut self) -> io::Result<WaitResult> {
        loop {
            self.capture.exchange()?;
            self.playback.exchange()?;
            if !self.is_running()? {
                return Ok(WaitResult::Xrun);
            }
            let is_due = [self.capture.has_period(), self.playback.has_period()];
            if is_due == [true; 2] {
                return Ok(WaitResult::Period(self.wake()));
            }
            let both =
                [PollFd::new(&self.capture.file, PollFlags::IN), PollFd::new(&self.playback.file, PollFlags::OUT)];
            let [captured, played] = both;
            let waited = match is_due {
                [true, _] => poll(&mut [played], Some(&self.timeout)),
                [_, true] => poll(&mut [captured], Some(&self.timeout)),
                _ => poll(&mut [captured, played], Some(&self.timeout)),
            };
            match waited {
                Ok(0) => return Err(io::ErrorKind::TimedOut.into()),
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// True if both directions were running at the last exchange with the kernel.
    ///
    /// # Errors
    /// ENODEV if the card was removed.
    #[inline]
    pub fn is_running(&self) -> io::Result<bool> {
        Ok(self.capture.is_running()? && self.playback.is_running()?)
    }

    #[inline]
    fn wake(&self) -> Wake {
        Wake {
            woke_ns: Clock::Monotonic.now_ns(),
            card_ns: self.capture.stamp_ns().max(self.playback.stamp_ns()),
            captured: self.capture.available(),
            queued: self.playback.queued(),
        }
    }

    /// Releases the period that was read and submits the one that was written.
    ///
    /// # Errors
    /// The kernel's error.
    #[inline]
    pub fn advance(&mut self) -> io::Result<()> {
        self.playback.advance()?;
        self.capture.advance()
    }
}
