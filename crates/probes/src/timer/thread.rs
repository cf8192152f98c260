//! The measuring thread. Its loop neither allocates, locks, prints nor calls anything it does not need.

mod follow;

use std::{
    io::Write,
    sync::{atomic::Ordering::Relaxed, mpsc},
};

use sys::{alloc_guard::without_allocation, clock::Clock};

use super::{
    End, Grant, Grid, Settings, StopOn, TimerError, Wake, Work,
    shared::{Event, Shared, Writer, add},
    stage::Stage,
};
use crate::{
    guard::{Advice, Guard, Heartbeat, REST_NS},
    noise::Spinning,
    setup::{floor_ns, set_up},
};

const SECOND_NS: i64 = 1_000_000_000;
/// Time to the first deadline, at most, where the word to begin came too late for the one that was planned, ns.
const LATE_LEAD_NS: i64 = 10 * 1_000_000;
/// Wake-ups between two looks at which CPU the thread is on; it looks once a second too.
const CPU_CHECKED_EVERY: u64 = 1000;

/// The life of the thread: set up, say what was granted, wait for the start, measure.
pub fn run(
    settings: &Settings,
    work: Option<Box<dyn Work>>,
    writer: Writer,
    heartbeat: &Heartbeat,
    tell_grant: &mpsc::Sender<Result<Grant, TimerError>>,
    wait_for_start: &mpsc::Receiver<(i64, i64)>,
) {
    let granted = set_up(settings.cpu, settings.policy, || {
        settings.spin.map_or_else(|| floor_ns(settings.clock), |spin| spin.floor_ns())
    })
    .map_err(|_| TimerError::Wait(settings.clock, settings.wait))
    .and_then(|grant| Ok((grant, Stage::enter(settings)?)));
    let (grant, mut stage) = match granted {
        Ok(granted) => granted,
        // The other side waits for this message, so it is there to take it; likewise below.
        Err(error) => return drop(tell_grant.send(Err(error))),
    };
    let pinned_to = settings.cpu.filter(|_| grant.pin_refused.is_none());
    let _ = tell_grant.send(Ok(Grant { evl_level: stage.evl_level(), ..grant }));
    let Ok((first_ns, end_ns)) = wait_for_start.recv() else { return };
    let shared = writer.shared.clone();
    // Deadlines that passed before the word to begin came here are none. The grid stays, and begins later; but nobody
    // waits for a long period because of that.
    let period_ns = settings.period_ns as i64;
    let behind_ns = settings.clock.now_ns() - first_ns;
    let late_ns =
        if behind_ns < 0 { 0 } else { ((behind_ns / period_ns + 1) * period_ns).min(behind_ns + LATE_LEAD_NS) };
    let (first_ns, end_ns) = (first_ns + late_ns, end_ns.saturating_add(late_ns));
    shared.first_deadline_ns.store(first_ns, Relaxed);
    let end = match settings.spin {
        None => {
            let mut measuring = Measuring::new(settings, work, pinned_to, writer, first_ns, end_ns);
            without_allocation(|| measuring.run(&mut stage, heartbeat))
        }
        Some(spin) => {
            let mut spinning = Spinning::new(settings, spin, pinned_to, writer, first_ns, end_ns);
            without_allocation(|| spinning.run(&stage, heartbeat))
        }
    };
    shared.set_end(end);
}

/// The state of the loop.
struct Measuring {
    clock: Clock,
    pinned_to: Option<u32>,
    grid: Grid,
    period_ns: i64,
    threshold_ns: i64,
    stop_on: Option<StopOn>,
    work: Option<Box<dyn Work>>,
    first_ns: i64,
    end_ns: i64,
    samples_left: u64,
    wake_ups: u64,
    writer: Writer,
    previous_ns: Option<i64>,
    second_max_ns: i64,
    second_end_ns: i64,
    guard: Guard,
}

impl Measuring {
    fn new(
        settings: &Settings,
        work: Option<Box<dyn Work>>,
        pinned_to: Option<u32>,
        writer: Writer,
        first_ns: i64,
        end_ns: i64,
    ) -> Self {
        Self {
            clock: settings.clock,
            pinned_to,
            grid: Grid::new(settings.period_ns, settings.fraction),
            period_ns: settings.period_ns as i64,
            threshold_ns: settings.threshold_ns,
            stop_on: settings.stop_on.clone(),
            work,
            first_ns,
            end_ns,
            samples_left: settings.samples.unwrap_or(u64::MAX),
            wake_ups: 0,
            writer,
            previous_ns: None,
            second_max_ns: i64::MIN,
            second_end_ns: first_ns + SECOND_NS,
            guard: Guard::default(),
        }
    }

    fn run(&mut self, stage: &mut Stage, heartbeat: &Heartbeat) -> End {
        if stage.begin().is_err() {
            return End::ClockFailed;
        }
        let ended = match self.work.as_mut().map_or(Ok(false), |work| work.start()) {
            Ok(false) => self.measure(stage, heartbeat),
            Ok(true) => self.follow(stage, heartbeat),
            Err(_) => End::PacerFailed,
        };
        let end = match ended {
            End::Planned if !self.is_at_home(stage) => End::CpuGone,
            end => end,
        };
        if self.tell_in_band(stage).is_err() {
            return End::ClockFailed;
        }
        if end == End::StoppedOn {
            self.freeze();
        }
        // The maximum of the second that did not become whole; the queue takes it unless it is lost as a whole.
        if let Some(last_ns) = self.previous_ns.filter(|_| self.second_max_ns > i64::MIN) {
            let at_ns = (last_ns - self.second_max_ns.max(0) - self.first_ns).max(0) as u64 + 1;
            let _ = self.writer.events.push(Event::SecondEnded { at_ns, max_ns: self.second_max_ns });
        }
        end
    }

    /// Whether the thread is on its own CPU.
    fn is_at_home(&self, stage: &Stage) -> bool {
        self.writer.shared.is_on(self.pinned_to, stage.cpu())
    }

    /// Tells whether the thread stayed with the EVL core.
    fn tell_in_band(&self, stage: &Stage) -> Result<(), End> {
        let in_band = stage.in_band().map_err(|_| End::ClockFailed)?;
        self.writer.shared.in_band.store(in_band.into(), Relaxed);
        Ok(())
    }

    fn measure(&mut self, stage: &Stage, heartbeat: &Heartbeat) -> End {
        let mut slot = 0;
        let mut deadline_ns = self.first_ns;
        while deadline_ns <= self.end_ns && self.samples_left > 0 {
            if stage.sleep_until(deadline_ns).is_err() {
                return End::ClockFailed;
            }
            let now_ns = self.clock.now_ns();
            if self.writer.shared.is_stopped() {
                break;
            }
            let missed = self.note(deadline_ns, now_ns);
            if let Some(work) = &mut self.work {
                work.at(Wake { slot, deadline_ns, woke_ns: now_ns });
            }
            self.samples_left -= 1;
            self.wake_ups += 1;
            if self.samples_left.is_multiple_of(CPU_CHECKED_EVERY) && !self.is_at_home(stage) {
                return End::CpuGone;
            }
            if self.stop_on.as_ref().is_some_and(|stop_on| now_ns - deadline_ns > stop_on.lateness_ns) {
                return End::StoppedOn;
            }
            slot += missed as u64 + 1;
            deadline_ns = self.first_ns + self.grid.offset_ns(slot);
            if deadline_ns >= self.second_end_ns {
                match self.end_second(deadline_ns, stage, heartbeat) {
                    Ok(rested) => {
                        add(&self.writer.shared.missed, rested);
                        slot += rested;
                    }
                    Err(end) => return end,
                }
                deadline_ns = self.first_ns + self.grid.offset_ns(slot);
            }
        }
        End::Planned
    }

    /// Counts one wake-up; answers how many deadlines it ran over.
    #[inline]
    fn note(&mut self, deadline_ns: i64, now_ns: i64) -> i64 {
        let shared: &Shared = &self.writer.shared;
        let lateness_ns = now_ns - deadline_ns;
        let counted = shared.counts.count(lateness_ns);
        shared.sum_ns.store(shared.sum_ns.load(Relaxed).wrapping_add(lateness_ns), Relaxed);
        if lateness_ns < shared.min_ns.load(Relaxed) {
            shared.min_ns.store(lateness_ns, Relaxed);
        }
        if lateness_ns > shared.max_ns.load(Relaxed) {
            shared.max_ns.store(lateness_ns, Relaxed);
            shared.max_at_ns.store((deadline_ns - self.first_ns) as u64, Relaxed);
        }
        if let Some(previous_ns) = self.previous_ns.replace(now_ns) {
            let jitter_ns = (now_ns - previous_ns - self.period_ns).unsigned_abs();
            if jitter_ns > shared.jitter_ns.load(Relaxed) {
                shared.jitter_ns.store(jitter_ns, Relaxed);
            }
        }
        self.second_max_ns = self.second_max_ns.max(lateness_ns);
        if lateness_ns <= self.threshold_ns && lateness_ns < self.period_ns && counted {
            return 0;
        }
        self.note_notable(deadline_ns, lateness_ns, counted)
    }

    /// The rare part of [`note`](Self::note): spikes, missed deadlines, values outside the histogram.
    #[cold]
    fn note_notable(&mut self, deadline_ns: i64, lateness_ns: i64, counted: bool) -> i64 {
        let shared: &Shared = &self.writer.shared;
        let missed = self.grid.periods_in(lateness_ns);
        add(&shared.missed, missed as u64);
        add(&shared.spikes, u64::from(lateness_ns > self.threshold_ns));
        add(&shared.outside, u64::from(!counted));
        let event = Event::Notable { lateness_ns, at_ns: (deadline_ns - self.first_ns) as u64 };
        if self.writer.events.push(event).is_err() {
            add(&shared.lost, 1);
        }
        missed
    }

    /// Freezes the kernel's trace, so that what led here is still in it.
    #[cold]
    fn freeze(&self) {
        if let Some(stop_on) = &self.stop_on {
            // Should it fail, the trace goes on for some ms, and is long enough for that.
            let _ = (&*stop_on.freeze).write(b"0");
        }
    }

    /// Reports the second that ended, and asks the guard; answers how many deadlines to rest over.
    #[cold]
    fn end_second(&mut self, deadline_ns: i64, stage: &Stage, heartbeat: &Heartbeat) -> Result<u64, End> {
        let at_ns = (self.second_end_ns - self.first_ns) as u64;
        // A full queue keeps the maximum for the next second.
        if self.writer.events.push(Event::SecondEnded { at_ns, max_ns: self.second_max_ns }).is_ok() {
            self.second_max_ns = i64::MIN;
        }
        let seconds = (deadline_ns - self.second_end_ns) / SECOND_NS + 1;
        self.second_end_ns += seconds * SECOND_NS;
        if !self.is_at_home(stage) {
            return Err(End::CpuGone);
        }
        self.tell_in_band(stage)?;
        match self.guard.judge((seconds * SECOND_NS) as u64, stage.usage(), self.wake_ups, heartbeat) {
            Advice::Continue => Ok(0),
            Advice::Stop => Err(End::Starved),
            Advice::Rest => {
                let skipped = ((REST_NS + self.period_ns - 1) / self.period_ns) as u64;
                add(&self.writer.shared.rests, 1);
                self.previous_ns = None;
                Ok(skipped)
            }
        }
    }
}

#[cfg(test)]
mod tests;
