//! What the audio thread does where a sound card paces it: waits for the card, and plays every period that it captured.
//!
//! The card is real, and so are its xruns; what is played is the guitar. What the card captures is read and dropped, and it is
//! given silence, as costly as sound and nobody's ears'.

use std::io;

use sys::{
    clock::Clock,
    pcm::{Duplex, WaitResult},
};

use super::{
    Player,
    pace::Pace,
    shared::{Period, Writer},
};
use crate::timer::{Grid, Wake, Work};

/// A sound card, as far as it is needed here.
pub trait Sound: Send {
    /// Starts both directions, playback with a buffer of silence; also after [`WaitResult::Xrun`].
    fn start(&mut self) -> io::Result<()>;
    /// Waits for the next period.
    fn wait(&mut self) -> io::Result<WaitResult>;
    /// When the kernel learned how much was captured, ns of the monotonic clock.
    fn stamp_ns(&self) -> i64;
    /// Takes a period from the input.
    fn read(&self, samples: &mut [f32]);
    /// Gives a period to both sides, and hands it and the one that was taken back; `false` where the card has stopped.
    fn give(&mut self, samples: &[f32]) -> io::Result<bool>;
    /// Reads the monotonic clock.
    fn now_ns(&self) -> i64 {
        Clock::Monotonic.now_ns()
    }
}

/// A card of the kernel's.
pub struct OnCard {
    pub duplex: Duplex,
    /// The input that is read.
    pub input: u32,
}

impl Sound for OnCard {
    fn start(&mut self) -> io::Result<()> {
        self.duplex.start()
    }

    #[inline]
    fn wait(&mut self) -> io::Result<WaitResult> {
        self.duplex.wait()
    }

    #[inline]
    fn stamp_ns(&self) -> i64 {
        self.duplex.capture().stamp_ns()
    }

    #[inline]
    fn read(&self, samples: &mut [f32]) {
        self.duplex.capture().read(self.input, samples);
    }

    #[inline]
    fn give(&mut self, samples: &[f32]) -> io::Result<bool> {
        self.duplex.playback().write(0, samples);
        self.duplex.playback().write(1, samples);
        self.duplex.advance()?;
        self.duplex.is_running()
    }
}

/// The work, with all memory that it needs.
pub struct Paced<P, S> {
    pub player: P,
    pub sound: S,
    pub pace: Pace,
    pub grid: Grid,
    pub writer: Writer,
    /// Frames of the buffer.
    pub buffer: u64,
    /// What is played, again and again: whole periods.
    pub signal: Box<[f32]>,
    /// Where in it the next period begins.
    pub at: usize,
    /// A period of one channel each.
    pub captured: Box<[f32]>,
    pub silence: Box<[f32]>,
    pub left: Box<[f32]>,
    pub right: Box<[f32]>,
    pub state: State,
}

/// How far the card has got.
#[derive(Debug, Default)]
pub struct State {
    /// The first deadline of all, ns of the monotonic clock.
    first_ns: Option<i64>,
    /// Periods that were played since the card was started.
    slot: u64,
    /// Periods that wait.
    ready: u64,
    /// Whether the card ran over us.
    has_stopped: bool,
    /// Why it cannot go on.
    failed: Option<io::ErrorKind>,
}

impl<P: Player, S: Sound> Work for Paced<P, S> {
    fn start(&mut self) -> io::Result<bool> {
        self.restart()?;
        Ok(true)
    }

    fn wait(&mut self) -> io::Result<Wake> {
        if let Some(kind) = self.state.failed {
            return Err(kind.into());
        }
        let period = self.captured.len() as u64;
        let woke_ns = match self.sound.wait()? {
            WaitResult::Period(wake) => {
                self.pace.stamp(self.state.slot * period + wake.captured, self.sound.stamp_ns());
                let room = self.buffer.saturating_sub(wake.queued);
                self.state.ready = (wake.captured.min(room) / period).max(1);
                wake.woke_ns
            }
            // The period that it waited for is played all the same, too late.
            WaitResult::Xrun => {
                self.state.has_stopped = true;
                self.state.ready = 1;
                self.sound.now_ns()
            }
        };
        let deadline_ns = self.pace.deadline_ns(self.state.slot);
        Ok(Wake { slot: self.state.slot, deadline_ns, woke_ns })
    }

    fn at(&mut self, wake: Wake) {
        if let Err(error) = self.play(wake) {
            self.state.failed = Some(error.kind());
        }
    }
}

impl<P: Player, S: Sound> Paced<P, S> {
    fn restart(&mut self) -> io::Result<()> {
        self.sound.start()?;
        self.pace.start(self.sound.now_ns());
        self.state.slot = 0;
        self.state.has_stopped = false;
        Ok(())
    }

    /// Plays what waits.
    fn play(&mut self, wake: Wake) -> io::Result<()> {
        let first_ns = *self.state.first_ns.get_or_insert(wake.deadline_ns);
        let mut begun_ns = wake.woke_ns;
        for _ in 0..self.state.ready {
            let deadline_ns = self.pace.deadline_ns(self.state.slot);
            let end = self.at + self.left.len();
            self.sound.read(&mut self.captured);
            self.player.play(&self.signal[self.at..end], &mut self.left, &mut self.right);
            self.at = if end == self.signal.len() { 0 } else { end };
            let runs = !self.state.has_stopped && self.sound.give(&self.silence)?;
            let done_ns = self.sound.now_ns();
            self.state.slot += 1;
            let lost = if runs {
                None
            } else {
                self.restart()?;
                Some(self.grid.periods_in(self.sound.now_ns() - deadline_ns) as u64)
            };
            let [deadline_ns, since_ns, until_ns] = [deadline_ns, begun_ns, done_ns].map(|ns| ns - first_ns);
            self.writer.note(Period { deadline_ns, begun_ns: since_ns, done_ns: until_ns, lost }, &self.left);
            if !runs {
                break;
            }
            begun_ns = done_ns;
        }
        if let Some(rate) = self.pace.rate_ppm() {
            self.writer.shared.note_rate(rate);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
