//! The measuring thread. Its loop does not allocate, lock, print or call anything unnecessary.

mod follow;

use std::{
    io::Write,
    sync::{atomic::Ordering::Relaxed, mpsc},
};

use sys::{alloc_guard::without_allocation, clock::Clock, evl::Waker, usage::thread_cpu_time_ns};

use super::{
    backend::ThreadBackend,
    grid::Grid,
    settings::{End, Settings, StopOn, TimerError},
    shared::{Event, Shared, Writer, add},
};
use crate::{
    guard::{Advice, Guard, Heartbeat, PAUSE_NS},
    noise::spin::Spinning,
    probe_threads::{Pacer, Wake, Work},
    setup::{Grant, floor_ns, set_up},
};

const SECOND_NS: i64 = 1_000_000_000;
/// Longest time to the first deadline if the start message arrived too late for the planned one, ns.
const LATE_LEAD_NS: i64 = 10 * 1_000_000;
/// Wake-ups between two checks of the thread's CPU; it is also checked once a second.
const CPU_CHECKED_EVERY: u64 = 1000;

/// A thread that waits for its start.
pub struct Ready {
    pub grant: Grant,
    /// Ends a wait of the thread; `None` if a signal does.
    pub waker: Option<Waker>,
}

/// The main function of the thread: set up, report the granted settings, wait for the start, measure.
pub fn run(
    settings: &Settings,
    work: Option<Box<dyn Work>>,
    writer: Writer,
    heartbeat: &Heartbeat,
    ready_sender: &mpsc::Sender<Result<Ready, TimerError>>,
    wait_for_start: &mpsc::Receiver<(i64, i64)>,
) {
    let granted = set_up(settings.cpu, settings.policy, || {
        settings.spin.map_or_else(|| floor_ns(settings.clock), |spin| spin.floor_ns())
    })
    .map_err(|_| TimerError::Wait(settings.clock, settings.wait))
    .and_then(|grant| {
        let backend = ThreadBackend::attach(settings)?;
        let waker = backend.waker().map_err(TimerError::Spawn)?;
        Ok((Grant { evl_level: backend.evl_level(), ..grant }, backend, waker))
    });
    let (grant, mut backend, waker) = match granted {
        Ok(granted) => granted,
        // The other side waits for this message, so sending cannot fail; the same applies below.
        Err(error) => return drop(ready_sender.send(Err(error))),
    };
    let pinned_to = settings.cpu.filter(|_| grant.pin_refused.is_none());
    let floor_ns = grant.floor_ns;
    let _ = ready_sender.send(Ok(Ready { grant, waker }));
    let Ok((first_ns, end_ns)) = wait_for_start.recv() else { return };
    let shared = writer.shared.clone();
    // Deadlines that passed before the start message arrived do not count. The grid is shifted by whole periods, but by
    // at most a short time, so that a long period does not delay the start.
    let period_ns = settings.period_ns.cast_signed();
    let behind_ns = settings.clock.now_ns() - first_ns;
    let late_ns =
        if behind_ns < 0 { 0 } else { ((behind_ns / period_ns + 1) * period_ns).min(behind_ns + LATE_LEAD_NS) };
    let (first_ns, end_ns) = (first_ns + late_ns, end_ns.saturating_add(late_ns));
    shared.first_deadline_ns.store(first_ns, Relaxed);
    let cpu_before_ns = thread_cpu_time_ns();
    let end = match settings.spin {
        None => {
            let mut measuring = Measuring::new(settings, work, pinned_to, writer, first_ns, end_ns);
            without_allocation(|| measuring.run(&mut backend, heartbeat))
        }
        Some(spin) => {
            let mut spinning = Spinning::new(settings, spin, floor_ns, pinned_to, writer, first_ns, end_ns);
            without_allocation(|| spinning.run(&backend, heartbeat))
        }
    };
    if backend.evl_level().is_none() {
        // Only this thread sets it.
        let _ = shared.cpu_time_ns.set(thread_cpu_time_ns().saturating_sub(cpu_before_ns));
        shared.at_end.read();
    }
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
            period_ns: settings.period_ns.cast_signed(),
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

    fn run(&mut self, backend: &mut ThreadBackend, heartbeat: &Heartbeat) -> End {
        // The start of the work makes calls of Linux, which do not count.
        let started = self.work.as_mut().map_or(Ok(Pacer::Clock), |work| work.start());
        if backend.begin().is_err() {
            return End::ClockFailed;
        }
        let ended = match started {
            Ok(Pacer::Clock) => self.measure(backend, heartbeat),
            Ok(pacer) => self.follow(backend, heartbeat, pacer == Pacer::Periodic),
            Err(_) => End::PacerFailed,
        };
        // No further deadline can be late.
        self.writer.shared.pending.clear();
        let end = match ended {
            End::Planned if !self.on_pinned_cpu(backend) => End::LeftCpu,
            end => end,
        };
        if self.report_in_band(backend).is_err() {
            return End::ClockFailed;
        }
        if end == End::StoppedOn {
            self.freeze();
        }
        // Reports the maximum of the last, incomplete second. This fails only if the queue is full.
        if let Some(last_ns) = self.previous_ns.filter(|_| self.second_max_ns > i64::MIN) {
            let at_ns = (last_ns - self.second_max_ns.max(0) - self.first_ns).max(0).cast_unsigned() + 1;
            let _ = self.writer.events.push(Event::SecondEnded { at_ns, max_ns: self.second_max_ns });
        }
        end
    }

    /// True if the thread is on its own CPU.
    fn on_pinned_cpu(&self, backend: &ThreadBackend) -> bool {
        self.writer.shared.on_pinned_cpu(self.pinned_to, backend.cpu())
    }

    /// Reports the switches to in-band scheduling.
    fn report_in_band(&self, backend: &ThreadBackend) -> Result<(), End> {
        let in_band = backend.in_band().map_err(|_| End::ClockFailed)?;
        self.writer.shared.in_band.store(in_band.into(), Relaxed);
        Ok(())
    }

    fn measure(&mut self, backend: &ThreadBackend, heartbeat: &Heartbeat) -> End {
        let mut slot = 0;
        let mut deadline_ns = self.first_ns;
        while deadline_ns <= self.end_ns && self.samples_left > 0 {
            self.writer.shared.pending.set(deadline_ns);
            if backend.sleep_until(deadline_ns).is_err() {
                return End::ClockFailed;
            }
            let now_ns = self.clock.now_ns();
            let stopped = self.writer.shared.is_stopped();
            if stopped && self.writer.shared.pending.take().is_none() {
                break;
            }
            let missed = self.note(deadline_ns, now_ns);
            let wake = Wake { slot, deadline_ns, woke_ns: now_ns };
            slot += missed.cast_unsigned() + 1;
            deadline_ns = self.first_ns + self.grid.offset_ns(slot);
            // The thread may also be delayed in its work.
            self.writer.shared.pending.set(deadline_ns);
            if let Some(work) = &mut self.work {
                work.at(wake);
            }
            self.samples_left -= 1;
            self.wake_ups += 1;
            if self.samples_left.is_multiple_of(CPU_CHECKED_EVERY) && !self.on_pinned_cpu(backend) {
                return End::LeftCpu;
            }
            if self.stop_on.as_ref().is_some_and(|stop_on| wake.lateness_ns() > stop_on.lateness_ns) {
                return End::StoppedOn;
            }
            if stopped {
                break;
            }
            if deadline_ns >= self.second_end_ns {
                match self.end_second(deadline_ns, backend, heartbeat) {
                    Ok(skipped) => {
                        add(&self.writer.shared.missed, skipped);
                        slot += skipped;
                    }
                    Err(end) => return end,
                }
                deadline_ns = self.first_ns + self.grid.offset_ns(slot);
            }
        }
        End::Planned
    }

    /// Counts one wake-up; returns the number of missed deadlines.
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
            shared.max_at_ns.store((deadline_ns - self.first_ns).cast_unsigned(), Relaxed);
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

    /// The rare part of [`note`](Self::note): spikes, missed deadlines, values out of the histogram's range.
    #[cold]
    fn note_notable(&mut self, deadline_ns: i64, lateness_ns: i64, counted: bool) -> i64 {
        let shared: &Shared = &self.writer.shared;
        let missed = self.grid.periods_in(lateness_ns);
        add(&shared.missed, missed.cast_unsigned());
        add(&shared.spikes, u64::from(lateness_ns > self.threshold_ns));
        add(&shared.outside, u64::from(!counted));
        let event = Event::Notable { lateness_ns, at_ns: (deadline_ns - self.first_ns).cast_unsigned() };
        if self.writer.events.push(event).is_err() {
            add(&shared.lost, 1);
        }
        missed
    }

    /// Freezes the kernel trace, so that it still contains the cause of the lateness.
    #[cold]
    fn freeze(&self) {
        if let Some(stop_on) = &self.stop_on {
            // If this fails, the trace continues for some ms; it is long enough for that.
            let _ = (&*stop_on.freeze).write(b"0");
        }
    }

    /// Reports the last second and consults the guard; returns the number of deadlines to skip for a pause.
    #[cold]
    fn end_second(&mut self, deadline_ns: i64, backend: &ThreadBackend, heartbeat: &Heartbeat) -> Result<u64, End> {
        let at_ns = (self.second_end_ns - self.first_ns).cast_unsigned();
        // Without a wake-up the second has no maximum. If the queue is full, it is kept for the next second.
        let has_maximum = self.second_max_ns > i64::MIN;
        if has_maximum && self.writer.events.push(Event::SecondEnded { at_ns, max_ns: self.second_max_ns }).is_ok() {
            self.second_max_ns = i64::MIN;
        }
        let seconds = (deadline_ns - self.second_end_ns) / SECOND_NS + 1;
        self.second_end_ns += seconds * SECOND_NS;
        if !self.on_pinned_cpu(backend) {
            return Err(End::LeftCpu);
        }
        self.report_in_band(backend)?;
        match self.guard.judge((seconds * SECOND_NS).cast_unsigned(), backend.usage(), self.wake_ups, heartbeat) {
            Advice::Continue => Ok(0),
            Advice::Stop => Err(End::Starved),
            Advice::Pause => {
                let skipped = ((PAUSE_NS + self.period_ns - 1) / self.period_ns).cast_unsigned();
                add(&self.writer.shared.pauses, 1);
                self.previous_ns = None;
                Ok(skipped)
            }
        }
    }
}

#[cfg(test)]
mod tests;
