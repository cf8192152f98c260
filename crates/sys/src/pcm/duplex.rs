//! Both directions of a card, or of two: started together, a period taken and a period given at a time.

use std::{io, os::fd::AsRawFd};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
};

use super::{
    Asked, Node, PcmError, Stream,
    abi::{DROP, LINK, PREPARE, START, UNLINK, tell},
};
use crate::clock::Clock;

/// Channels that are played.
const OUTPUTS: u32 = 2;
/// How long a card may keep silent beyond its buffer, s.
const PATIENCE_S: i64 = 1;

/// Capture and playback of the same period, buffer and rate.
///
/// What is captured in one period is played one buffer later: both begin in the same moment, playback with a buffer of
/// silence.
#[derive(Debug)]
pub struct Duplex {
    capture: Stream,
    playback: Stream,
    is_linked: bool,
    patience: Timespec,
}

/// What waiting for a period came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// A period can be taken, and one be given.
    Period(Wake),
    /// The card has run over us and stopped: [`Duplex::start`] goes on.
    Xrun,
}

/// A period that is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wake {
    /// When we looked at it, ns of the monotonic clock.
    pub woke_ns: i64,
    /// When the kernel learned of it from the card, ns of the monotonic clock; of the later direction.
    pub card_ns: i64,
    /// Frames captured and not taken yet.
    pub captured: u64,
    /// Frames given and not played yet.
    pub queued: u64,
}

impl Duplex {
    /// Opens both directions and sets them alike; nothing moves before [`start`](Self::start).
    ///
    /// # Errors
    /// [`PcmError`], with what the card offers instead.
    pub fn open(capture: Node, playback: Node, asked: &Asked) -> Result<Self, PcmError> {
        let playback = Stream::open(playback, asked, OUTPUTS)?;
        let capture = Stream::open(capture, asked, asked.inputs)?;
        // Refused where the two have nothing to do with each other; they are started one after the other then.
        let is_linked = tell(&capture.file, LINK, playback.file.as_raw_fd()).is_ok();
        let buffer_ns = i64::from(asked.buffer_frames()) * 1_000_000_000 / i64::from(asked.rate_hz.max(1));
        let patience = Timespec { tv_sec: PATIENCE_S + buffer_ns / 1_000_000_000, tv_nsec: buffer_ns % 1_000_000_000 };
        Ok(Self { capture, playback, is_linked, patience })
    }

    /// Whether the kernel starts and stops both in one call.
    #[must_use]
    pub fn is_linked(&self) -> bool {
        self.is_linked
    }

    /// Has each start and stop by itself, as where the kernel refuses to link them: for tests, whose cards it links.
    ///
    /// # Errors
    /// What the kernel answered.
    #[doc(hidden)]
    pub fn unlink(&mut self) -> io::Result<()> {
        self.capture.tell(UNLINK)?;
        self.is_linked = false;
        Ok(())
    }

    /// What is captured.
    #[inline]
    #[must_use]
    pub fn capture(&self) -> &Stream {
        &self.capture
    }

    /// What is played.
    #[inline]
    pub fn playback(&mut self) -> &mut Stream {
        &mut self.playback
    }

    /// Starts both, with a buffer of silence to be played first; also after [`Turn::Xrun`].
    ///
    /// # Errors
    /// What the kernel answered.
    pub fn start(&mut self) -> io::Result<()> {
        if !self.is_linked {
            // After an xrun of one the other still runs, and cannot be prepared. What does not run has nothing to stop.
            let _ = self.playback.tell(DROP);
            let _ = self.capture.tell(DROP);
        }
        self.both(PREPARE)?;
        self.playback.prepare()?;
        self.capture.prepare()?;
        self.both(START)
    }

    /// Tells both; linked ones share what they are told.
    fn both(&self, what: super::abi::Order) -> io::Result<()> {
        if !self.is_linked {
            self.playback.tell(what)?;
        }
        self.capture.tell(what)
    }

    /// Waits until the next period can be taken and given.
    ///
    /// # Errors
    /// ENODEV when the card is gone, `TimedOut` when it moves in neither direction, and what else the kernel answered.
    #[inline]
    pub fn wait(&mut self) -> io::Result<Turn> {
        loop {
            self.capture.exchange()?;
            self.playback.exchange()?;
            if !self.is_running()? {
                return Ok(Turn::Xrun);
            }
            let is_due = [self.capture.has_period(), self.playback.has_period()];
            if is_due == [true; 2] {
                return Ok(Turn::Period(self.wake()));
            }
            let both =
                [PollFd::new(&self.capture.file, PollFlags::IN), PollFd::new(&self.playback.file, PollFlags::OUT)];
            let [captured, played] = both;
            let waited = match is_due {
                [true, _] => poll(&mut [played], Some(&self.patience)),
                [_, true] => poll(&mut [captured], Some(&self.patience)),
                _ => poll(&mut [captured, played], Some(&self.patience)),
            };
            match waited {
                Ok(0) => return Err(io::ErrorKind::TimedOut.into()),
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Whether neither direction had stopped when we spoke to the kernel last.
    ///
    /// # Errors
    /// ENODEV when the card is gone.
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

    /// Hands back the period that was taken, and has the one that was given played.
    ///
    /// # Errors
    /// What the kernel answered.
    #[inline]
    pub fn turn(&mut self) -> io::Result<()> {
        self.playback.advance()?;
        self.capture.advance()
    }
}
