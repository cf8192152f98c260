//! The audio thread. Its loop does not allocate, lock or print; it calls only the device and the player.

use std::{io, sync::mpsc, thread::sleep, time::Duration};

use probes::{
    audio::Player,
    guard::{Advice, Guard, Heartbeat, PAUSE_NS},
    setup::{Grant, floor_ns, set_up},
};
use rustix::io::Errno;
use sys::{alloc_guard::without_allocation, clock::Clock, pcm::WaitResult, usage::ThreadUsage};

use crate::{
    device::Device,
    load::{End, Shared},
    settings::Settings,
};

const SECOND_NS: i64 = 1_000_000_000;
/// Pause that the guard imposes on a thread that never sleeps by itself.
const PAUSE: Duration = Duration::from_nanos(PAUSE_NS.cast_unsigned());

/// The body of the thread: sets it up, sends the grant, waits for the start, plays.
pub fn run(
    device: Device,
    player: Box<dyn Player>,
    settings: &Settings,
    shared: &Shared,
    heartbeat: &Heartbeat,
    send_grant: &mpsc::Sender<io::Result<Grant>>,
    wait_for_start: &mpsc::Receiver<()>,
) {
    let granted = set_up(settings.cpu, settings.policy, || floor_ns(Clock::Monotonic));
    // The receiver waits for this message, so it still exists.
    let _ = send_grant.send(granted);
    let mut playing = Playing::new(device, player, settings, shared);
    if wait_for_start.recv().is_err() {
        return shared.set_end(End::Stopped);
    }
    let end = without_allocation(|| playing.run(heartbeat));
    shared.set_end(end.unwrap_or_else(|error| end_of(&error)));
}

/// The reason of the end for an error of the card.
fn end_of(error: &io::Error) -> End {
    match error.raw_os_error() {
        _ if error.kind() == io::ErrorKind::TimedOut => End::Silent,
        Some(number) if number == Errno::NODEV.raw_os_error() => End::Gone,
        number => End::Card(number.unwrap_or_default()),
    }
}

/// State of the loop.
struct Playing<'a> {
    device: Device,
    player: Box<dyn Player>,
    shared: &'a Shared,
    input: u32,
    is_mono: bool,
    period_ns: u64,
    captured: Vec<f32>,
    left: Vec<f32>,
    right: Vec<f32>,
}

impl<'a> Playing<'a> {
    fn new(mut device: Device, player: Box<dyn Player>, settings: &Settings, shared: &'a Shared) -> Self {
        let silence = || vec![0.0; settings.card.period_frames as usize];
        Self {
            is_mono: device.is_mono(),
            device,
            player,
            shared,
            input: settings.input,
            period_ns: settings.period_ns(),
            captured: silence(),
            left: silence(),
            right: silence(),
        }
    }

    fn run(&mut self, heartbeat: &Heartbeat) -> io::Result<End> {
        let mut guard = Guard::default();
        let mut second_began_ns = Clock::Monotonic.now_ns();
        let mut wake_ups = 0;
        self.device.start()?;
        while !self.shared.is_stopped() {
            let now_ns = match self.device.wait()? {
                WaitResult::Period(wake) => {
                    wake_ups += 1;
                    self.period(wake.woke_ns)?
                }
                WaitResult::Xrun => {
                    self.shared.note_xrun();
                    self.device.start()?;
                    Clock::Monotonic.now_ns()
                }
            };
            let since_ns = now_ns - second_began_ns;
            if since_ns >= SECOND_NS {
                second_began_ns = now_ns;
                match guard.judge(since_ns.cast_unsigned(), ThreadUsage::so_far(), wake_ups, heartbeat) {
                    Advice::Continue => {}
                    Advice::Stop => return Ok(End::Starved),
                    // The card has an xrun meanwhile, which is counted.
                    Advice::Pause => {
                        self.shared.note_throttled();
                        sleep(PAUSE);
                    }
                }
            }
        }
        Ok(End::Stopped)
    }

    /// Plays one period; returns the time at its end, ns of the monotonic clock.
    #[inline]
    fn period(&mut self, woke_ns: i64) -> io::Result<i64> {
        self.device.read(self.input, &mut self.captured);
        self.player.play(&self.captured, &mut self.left, &mut self.right);
        if self.is_mono {
            for (left, right) in self.left.iter_mut().zip(&self.right) {
                *left = 0.5 * (*left + right);
            }
        }
        self.device.write(&self.left, &self.right);
        self.device.turn()?;
        let now_ns = Clock::Monotonic.now_ns();
        self.shared.note((now_ns - woke_ns).max(0).cast_unsigned(), self.period_ns);
        Ok(now_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distinguishes_a_removed_card_from_one_that_failed() {
        let end = |errno: Errno| end_of(&errno.into());
        assert_eq!(end(Errno::NODEV), End::Gone);
        assert_eq!(end(Errno::BUSY), End::Card(Errno::BUSY.raw_os_error()));
        assert_eq!(end_of(&io::ErrorKind::TimedOut.into()), End::Silent);
    }
}
