//! The cost of tracing: wake-ups with the trace alternately off and on, measured after the run and without its loads.

use std::{ops::RangeInclusive, time::Duration};

use blame::Watch;
use machine::Shield;
use probes::{
    guard::Heartbeat,
    timer::{Settings, Timer},
};
use record::{BlameCost, Histogram};

use crate::probe::with_shield;

/// Number of pairs of an untraced and a traced stretch.
const PAIRS: u32 = 6;
/// Length of a stretch, ns.
const STRETCH_NS: u64 = 20_000_000;
/// Period of the compared wake-ups, ns: long enough for a thread to sleep, and short enough for a meaningful median of
/// one stretch.
const PERIOD_NS: RangeInclusive<u64> = 20_000..=1_000_000;
/// Time to the first deadline, ns.
const LEAD_NS: i64 = 1_000_000;

/// Measures one thread with these settings, with the trace alternately off and on; `None` if it cannot be measured.
pub fn measure(watch: &mut Watch, settings: &Settings, shield: Option<&Shield>) -> Option<BlameCost> {
    let period_ns = settings.period_ns.clamp(*PERIOD_NS.start(), *PERIOD_NS.end());
    let samples = STRETCH_NS / period_ns;
    let settings =
        Settings { period_ns, samples: Some(samples), threshold_ns: i64::MAX, stop_on: None, ..settings.clone() };
    let heartbeat = Heartbeat::start().ok()?;
    let prepare = || with_shield(shield, settings.cpu, || Timer::prepare(&settings, heartbeat.clone())).ok()?.ok();
    let mut timers = (0..2 * PAIRS).map(|_| prepare()).collect::<Option<Vec<_>>>()?;
    // Once for all threads, because the kernel takes milliseconds to change a filter.
    watch.filter_by_threads(&timers.iter().map(|timer| timer.grant().thread_id).collect::<Vec<_>>());
    let (mut off, mut on) = (Histogram::default(), Histogram::default());
    for pair in timers.chunks_exact_mut(2) {
        watch.set_on(false);
        off.merge(&lateness(&mut pair[0]));
        watch.set_on(true);
        on.merge(&lateness(&mut pair[1]));
    }
    Some(BlameCost { samples: on.total().min(off.total()), off_ns: off.percentile(50.0)?, on_ns: on.percentile(50.0)? })
}

/// Measures the lateness of one stretch.
fn lateness(timer: &mut Timer) -> Histogram {
    timer.start(timer.settings().clock.now_ns() + LEAD_NS, i64::MAX / 2);
    timer.wait_for_end(Duration::from_nanos(20 * STRETCH_NS));
    timer.stop();
    timer.collect();
    timer.series("").raw
}
