//! The measuring loop if the work sets the deadlines, e.g. for a sound card, and not the clock.

use std::sync::atomic::Ordering::Relaxed;

use super::{CPU_CHECKED_EVERY, Measuring, SECOND_NS};
use crate::{
    guard::{Heartbeat, PAUSE_NS},
    probe_threads::Wake,
    timer::{backend::ThreadBackend, settings::End, shared::add},
};

impl Measuring {
    /// Like [`measure`](Measuring::measure), at the deadlines of the work, which was started already. `is_periodic` says
    /// that the next deadline is a period after the last one.
    pub(super) fn follow(&mut self, backend: &ThreadBackend, heartbeat: &Heartbeat, is_periodic: bool) -> End {
        let mut is_first = true;
        while self.samples_left > 0 {
            let Some(Ok(wake)) = self.work.as_mut().map(|work| work.wait()) else { return End::PacerFailed };
            add(&self.writer.shared.waits, 1);
            let Some(wake) = wake else {
                let now_ns = self.clock.now_ns();
                if self.writer.shared.is_stopped() || now_ns > self.end_ns {
                    break;
                }
                // Interrupts that do not count may come in a storm.
                self.wake_ups += 1;
                if now_ns >= self.second_end_ns
                    && let Err(end) = self.end_second_or_pause(now_ns, backend, heartbeat)
                {
                    return end;
                }
                continue;
            };
            if std::mem::take(&mut is_first) {
                self.begin_at(wake.deadline_ns);
            }
            let deadline_ns = wake.deadline_ns.max(self.first_ns);
            let stopped = self.writer.shared.is_stopped();
            let is_taken = stopped && is_periodic && self.writer.shared.pending.take().is_none();
            if deadline_ns > self.end_ns || is_taken {
                break;
            }
            self.note(deadline_ns, wake.woke_ns);
            if is_periodic {
                self.writer.shared.pending.set(deadline_ns + self.period_ns);
            }
            if let Some(work) = &mut self.work {
                work.at(Wake { deadline_ns, ..wake });
            }
            self.samples_left -= 1;
            self.wake_ups += 1;
            if self.samples_left.is_multiple_of(CPU_CHECKED_EVERY) && !self.on_pinned_cpu(backend) {
                return End::LeftCpu;
            }
            if self.stop_on.as_ref().is_some_and(|stop_on| wake.woke_ns - deadline_ns > stop_on.lateness_ns) {
                return End::StoppedOn;
            }
            if stopped {
                break;
            }
            // After a pause, the next wake-up counts the deadlines within it as missed, and the card has an xrun.
            if deadline_ns >= self.second_end_ns
                && let Err(end) = self.end_second_or_pause(deadline_ns, backend, heartbeat)
            {
                return end;
            }
        }
        End::Planned
    }

    /// Ends a second, and then sleeps if the guard imposes a pause.
    #[cold]
    fn end_second_or_pause(&mut self, now_ns: i64, backend: &ThreadBackend, heartbeat: &Heartbeat) -> Result<(), End> {
        match self.end_second(now_ns, backend, heartbeat)? {
            0 => Ok(()),
            _ => backend.sleep_until(self.clock.now_ns() + PAUSE_NS).map_err(|_| End::ClockFailed),
        }
    }

    /// Sets the first deadline when it is known, and shifts the end accordingly.
    fn begin_at(&mut self, first_ns: i64) {
        self.end_ns = self.end_ns.saturating_add(first_ns - self.first_ns);
        self.first_ns = first_ns;
        self.second_end_ns = first_ns + SECOND_NS;
        self.writer.shared.first_deadline_ns.store(first_ns, Relaxed);
    }
}
