//! The wake-up latencies of one thread, and their spikes.

use std::collections::BTreeMap;

use record::{Histogram, Maxima, Series, Spike, Worst};

use super::selection::RunConfig;
use crate::time::signed_ns;

/// The wake-ups of one thread.
#[derive(Debug, Clone, Default)]
pub(super) struct WakeUps {
    raw: Histogram,
    maxima: Maxima,
    sum_ns: u128,
    min_ns: u64,
    /// Largest latency, ns, and when the thread was woken, ns after the start of the run.
    max: Option<(u64, u64)>,
    spikes: u64,
    /// New spikes, which are not explained yet, by the CPU that the thread woke on.
    pub fresh: BTreeMap<u32, Vec<Spike>>,
    worst: Worst,
}

impl WakeUps {
    /// Adds a wake-up at `woken_ns` on CLOCK_MONOTONIC after which the thread had `cpu` `latency_ns` later.
    pub fn note(&mut self, woken_ns: u64, latency_ns: u64, cpu: u32, config: &RunConfig) {
        let (at_ns, signed_ns) = (woken_ns.saturating_sub(config.start_ns), signed_ns(latency_ns));
        self.raw.record(signed_ns);
        self.maxima.add(at_ns, signed_ns);
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

    /// The largest latency, ns; 0 without wake-ups.
    pub fn max_ns(&self) -> u64 {
        self.max.map_or(0, |(max_ns, _)| max_ns)
    }

    /// Moves the new spikes to the kept ones.
    pub fn keep_fresh(&mut self) {
        for spike in self.fresh.values_mut().flat_map(|spikes| spikes.drain(..)) {
            self.worst.add(spike);
        }
    }

    /// The fields of a series that come from wake-ups.
    pub fn series(&self) -> Series {
        let samples = self.raw.total();
        let fresh: Vec<Spike> = self.fresh.values().flatten().cloned().collect();
        Series {
            samples,
            min_ns: self.max.map(|_| signed_ns(self.min_ns)),
            mean_ns: self.max.map(|_| self.sum_ns as f64 / samples as f64),
            max_ns: self.max.map(|(max_ns, _)| signed_ns(max_ns)),
            max_at_ns: self.max.map(|(_, at_ns)| at_ns),
            raw: self.raw.clone(),
            // No correction: the thread asks for its wake-ups, so no expected wake-up is missing.
            corrected: self.raw.clone(),
            maxima: self.maxima.clone(),
            spikes_total: self.spikes,
            spikes: self.worst.with(&fresh),
            ..Series::default()
        }
    }
}
