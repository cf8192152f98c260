//! Wake-up latencies of one thread, and those of them that are to be explained.

use std::collections::BTreeMap;

use record::{Histogram, Maxima, Series, Spike, Worst};

use super::selection::RunConfig;

/// The wake-ups of one thread.
#[derive(Debug, Clone, Default)]
pub(super) struct WakeUps {
    raw: Histogram,
    maxima: Maxima,
    sum_ns: u128,
    min_ns: u64,
    /// With when the thread was woken, ns after the run began.
    max: Option<(u64, u64)>,
    spikes: u64,
    /// By the CPU that the thread woke on: spikes that are not explained yet.
    pub fresh: BTreeMap<u32, Vec<Spike>>,
    worst: Worst,
}

impl WakeUps {
    /// Notes that the thread was woken at `woken_ns` on CLOCK_MONOTONIC, and had `cpu` after `latency_ns`.
    pub fn note(&mut self, woken_ns: u64, latency_ns: u64, cpu: u32, config: &RunConfig) {
        let (at_ns, signed_ns) = (woken_ns.saturating_sub(config.start_ns), signed(latency_ns));
        self.raw.record(signed_ns);
        self.maxima.take_in(at_ns, signed_ns);
        self.sum_ns += u128::from(latency_ns);
        self.min_ns = if self.max.is_none() { latency_ns } else { self.min_ns.min(latency_ns) };
        if self.max.is_none_or(|(max_ns, _)| latency_ns > max_ns) {
            self.max = Some((latency_ns, at_ns));
        }
        if latency_ns > config.threshold_ns {
            self.spikes += 1;
            let spike = Spike { lateness_ns: signed_ns, at_ns, ..Spike::default() };
            self.fresh.entry(cpu).or_default().push(spike);
        }
    }

    /// Spikes that were fresh are so no more.
    pub fn keep_fresh(&mut self) {
        for spike in self.fresh.values_mut().flat_map(|spikes| spikes.drain(..)) {
            self.worst.take_in(spike);
        }
    }

    /// What a series holds of wake-ups.
    pub fn series(&self) -> Series {
        let samples = self.raw.total();
        let fresh: Vec<Spike> = self.fresh.values().flatten().cloned().collect();
        Series {
            samples,
            min_ns: self.max.map(|_| signed(self.min_ns)),
            mean_ns: self.max.map(|_| self.sum_ns as f64 / samples as f64),
            max_ns: self.max.map(|(max_ns, _)| signed(max_ns)),
            max_at_ns: self.max.map(|(_, at_ns)| at_ns),
            raw: self.raw.clone(),
            // Nobody waits for a wake-up that the thread did not ask for: there is none to be made up for.
            corrected: self.raw.clone(),
            maxima: self.maxima.clone(),
            spikes_total: self.spikes,
            spikes: self.worst.with(&fresh),
            ..Series::default()
        }
    }
}

fn signed(ns: u64) -> i64 {
    i64::try_from(ns).unwrap_or(i64::MAX)
}
