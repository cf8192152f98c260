//! The measuring loop. It does not allocate, lock, print or enter the kernel, except to sleep.

use std::sync::atomic::Ordering::Relaxed;

use sys::{
    counter::{Counter, Cycles, Nanoseconds, Ticks},
    usage::ThreadUsage,
};

use super::{
    scale::{Anchor, Scale},
    settings::{FLOORS, Spin},
};
use crate::{
    guard::{Advice, Guard, Heartbeat},
    timer::{
        backend::ThreadBackend,
        settings::{End, Settings},
        shared::{Event, Shared, Writer, add},
    },
};

const SECOND_NS: i64 = 1_000_000_000;
/// Readings between two checks of the clock, about 0.1 ms.
const BLOCK: u64 = 8192;

/// The state of the loop.
pub struct Spinning {
    spin: Spin,
    pinned_to: Option<u32>,
    period_ns: i64,
    first_ns: i64,
    end_ns: i64,
    periods_left: u64,
    periods: u64,
    threshold_ns: u64,
    floor_ns: u64,
    writer: Writer,
    second_max_ns: i64,
    second_end_ns: i64,
    guard: Guard,
}

/// The time that a period was observed, ns on CLOCK_MONOTONIC.
struct Observed {
    first_ns: i64,
    end_ns: i64,
}

impl Spinning {
    pub fn new(
        settings: &Settings,
        spin: Spin,
        floor_ns: u64,
        pinned_to: Option<u32>,
        writer: Writer,
        first_ns: i64,
        end_ns: i64,
    ) -> Self {
        let threshold_ns = settings.threshold_ns.unsigned_abs().max(FLOORS * floor_ns);
        writer.shared.noise.threshold_ns.store(threshold_ns, Relaxed);
        Self {
            spin,
            pinned_to,
            period_ns: settings.period_ns.cast_signed(),
            first_ns,
            end_ns,
            periods_left: settings.samples.unwrap_or(u64::MAX),
            periods: 0,
            threshold_ns,
            floor_ns,
            writer,
            second_max_ns: i64::MIN,
            second_end_ns: first_ns + SECOND_NS,
            guard: Guard::default(),
        }
    }

    /// Observes and sleeps in turn until the end.
    pub fn run(&mut self, backend: &ThreadBackend, heartbeat: &Heartbeat) -> End {
        let mut begin_ns = self.first_ns;
        let end = loop {
            if begin_ns >= self.end_ns || self.periods_left == 0 {
                break End::Planned;
            }
            // Its sleep is not observed.
            self.writer.shared.pending.clear();
            if backend.sleep_until(begin_ns).is_err() {
                break End::ClockFailed;
            }
            if self.writer.shared.is_stopped() {
                break End::Planned;
            }
            let until_ns = begin_ns.saturating_add_unsigned(self.spin.runtime_ns).min(self.end_ns);
            let Observed { first_ns, end_ns: now_ns } = match self.spin.counter {
                Counter::Cycles => self.observe::<Cycles>(until_ns),
                Counter::Clock => self.observe::<Nanoseconds>(until_ns),
            };
            let latest_start_ns = &self.writer.shared.noise.latest_start_ns;
            let late_ns = (first_ns - begin_ns).max(0).cast_unsigned();
            latest_start_ns.store(latest_start_ns.load(Relaxed).max(late_ns), Relaxed);
            self.periods_left -= 1;
            self.periods += 1;
            if !self.writer.shared.on_pinned_cpu(self.pinned_to, backend.cpu()) {
                break End::LeftCpu;
            }
            if now_ns >= self.second_end_ns && self.end_second(now_ns, heartbeat) == Advice::Stop {
                break End::Starved;
            }
            // Periods that have passed completely are skipped.
            begin_ns += ((now_ns - begin_ns) / self.period_ns).max(0) * self.period_ns;
            if begin_ns < until_ns {
                begin_ns += self.period_ns;
            }
        };
        self.writer.shared.pending.clear();
        self.report_second(self.second_end_ns);
        end
    }

    /// Observes until `until_ns`.
    fn observe<T: Ticks>(&mut self, until_ns: i64) -> Observed {
        let scale = self.spin.scale;
        let threshold = scale.ticks(self.threshold_ns);
        let begin = Anchor::closest::<T>();
        let mut anchor = begin;
        let first = T::now();
        let mut last = first;
        let (mut iterations, mut noting) = (0, 0);
        let end = loop {
            for _ in 0..BLOCK {
                let now = T::now();
                if now.wrapping_sub(last) > threshold {
                    self.note(scale, anchor, last, now);
                    last = T::now();
                    noting += last.wrapping_sub(now);
                } else {
                    last = now;
                }
            }
            iterations += BLOCK;
            let now = Anchor::now::<T>();
            self.writer.shared.pending.set(now.ns);
            if now.ns >= until_ns || self.writer.shared.is_stopped() {
                break now;
            }
            // The gap may be between the two readings of this pair. The loop detects it anyway, because it compares
            // with its last reading.
            if now.is_within(threshold) {
                anchor = now;
            }
        };
        let noise = &self.writer.shared.noise;
        add(&noise.iterations, iterations);
        add(&noise.observed_ns, scale.ns(last.wrapping_sub(first).wrapping_sub(noting)));
        add(&noise.unsteady, u64::from(!scale.is_steady(begin, end)));
        Observed { first_ns: begin.ns, end_ns: end.ns }
    }

    /// Counts a gap between two readings. The time that this takes is not observed.
    #[cold]
    #[inline(never)]
    fn note(&mut self, scale: Scale, anchor: Anchor, last: u64, now: u64) {
        let ticks = now.wrapping_sub(last);
        // A CPU may read its counter a few ticks out of order.
        if ticks.cast_signed() <= 0 || scale.ns(ticks) <= self.threshold_ns {
            return;
        }
        let shared: &Shared = &self.writer.shared;
        if shared.is_stopped() && shared.pending.take().is_none() {
            // The reader has counted this gap.
            return;
        }
        let length_ns = scale.ns(ticks).cast_signed();
        let at_ns = (scale.at(anchor, last) - self.first_ns).max(0).cast_unsigned();
        add(&shared.noise.lost_ns, length_ns.cast_unsigned().saturating_sub(self.floor_ns));
        add(&shared.spikes, 1);
        add(&shared.outside, u64::from(!shared.counts.count(length_ns)));
        shared.sum_ns.store(shared.sum_ns.load(Relaxed).wrapping_add(length_ns), Relaxed);
        if length_ns < shared.min_ns.load(Relaxed) {
            shared.min_ns.store(length_ns, Relaxed);
        }
        if length_ns > shared.max_ns.load(Relaxed) {
            shared.max_ns.store(length_ns, Relaxed);
            shared.max_at_ns.store(at_ns, Relaxed);
        }
        self.second_max_ns = self.second_max_ns.max(length_ns);
        if self.writer.events.push(Event::Notable { lateness_ns: length_ns, at_ns }).is_err() {
            add(&self.writer.shared.lost, 1);
        }
    }

    /// Reports the last second and consults the guard. A pause is not needed, because the loop sleeps in each period.
    fn end_second(&mut self, now_ns: i64, heartbeat: &Heartbeat) -> Advice {
        let seconds = (now_ns - self.second_end_ns) / SECOND_NS + 1;
        self.report_second(self.second_end_ns);
        self.second_end_ns += seconds * SECOND_NS;
        self.guard.judge((seconds * SECOND_NS).cast_unsigned(), ThreadUsage::so_far(), self.periods, heartbeat)
    }

    /// Reports the longest gap of the second that ended at `end_ns`, if it had one. If the queue is full, the gap is
    /// kept for the next second.
    fn report_second(&mut self, end_ns: i64) {
        if self.second_max_ns == i64::MIN {
            return;
        }
        let event = Event::SecondEnded { at_ns: (end_ns - self.first_ns).cast_unsigned(), max_ns: self.second_max_ns };
        if self.writer.events.push(event).is_ok() {
            self.second_max_ns = i64::MIN;
        }
    }
}

#[cfg(test)]
mod tests;
