//! Culprits without a trace: compares counters before and after a spike. They are read about 25 times a second.
//!
//! Counters do not show when something happened between two readings. Therefore the whole lateness is given to the
//! likeliest cause, and the evidence is [`Evidence::Counters`].
//!
//! | module | contents |
//! |---|---|
//! | `reading` | the values of all counters at one time |

mod reading;

use std::collections::{HashMap, VecDeque};

use machine::Root;
use record::{Cause, CauseKind, Culprit, Evidence};

use crate::Explanation;
pub use reading::{EventSource, Reading};

/// Name of a thread that counters show but do not name.
pub(crate) const UNKNOWN: &str = "unknown";
/// Number of readings kept. Spikes are explained soon after they happen, but the caller may be delayed.
const MAX_READINGS: usize = 64;
/// Minimum excess of a count over its usual value, in standard deviations of a random count.
const MIN_SCORE: f64 = 5.0;
/// Limit for the rate of one interval when the usual rate is updated, as a multiple of the usual rate.
const STORM_FACTOR: f64 = 4.0;
/// Weight of the newest interval in the usual rate.
const NEWEST_WEIGHT: f64 = 0.05;

/// The counters of one measured CPU and of its measuring thread.
#[derive(Debug)]
pub struct Counters {
    root: Root,
    cpu: u32,
    thread_id: u32,
    readings: VecDeque<Reading>,
    /// Usual events per second.
    usual: HashMap<EventSource, f64>,
}

impl Counters {
    /// Creates counters for a CPU and its measuring thread.
    #[must_use]
    pub fn start(root: &Root, cpu: u32, thread_id: u32) -> Self {
        Self { root: root.clone(), cpu, thread_id, readings: VecDeque::new(), usual: HashMap::new() }
    }

    /// Id of the measuring thread.
    #[must_use]
    pub fn thread_id(&self) -> u32 {
        self.thread_id
    }

    /// Reads the counters. Call it about 25 times a second. `now_ns` is CLOCK_MONOTONIC.
    pub fn read(&mut self, now_ns: u64) {
        self.add(Reading::now(&self.root, self.cpu, self.thread_id, now_ns));
    }

    fn add(&mut self, reading: Reading) {
        if let Some(before) = self.readings.back() {
            let seconds = reading.at_ns.saturating_sub(before.at_ns) as f64 / 1e9;
            for (source, count) in reading.events_since(before) {
                let rate = if seconds > 0.0 { count as f64 / seconds } else { continue };
                let usual = self.usual.entry(source).or_insert(rate);
                // A storm must not raise the usual rate much in one interval.
                *usual += (rate.min(*usual * STORM_FACTOR) - *usual) * NEWEST_WEIGHT;
            }
        }
        self.readings.push_back(reading);
        if self.readings.len() > MAX_READINGS {
            self.readings.pop_front();
        }
    }

    /// Finds the likeliest cause of a spike from `deadline_ns` to `woke_ns`, on CLOCK_MONOTONIC.
    #[must_use]
    pub fn explain(&self, deadline_ns: u64, woke_ns: u64) -> Explanation {
        let before = self.readings.iter().rev().find(|reading| reading.at_ns <= deadline_ns).or(self.readings.front());
        let after = self.readings.iter().find(|reading| reading.at_ns >= woke_ns).or(self.readings.back());
        let lateness_ns = woke_ns.saturating_sub(deadline_ns);
        let cause = match (before, after) {
            (Some(before), Some(after)) => self.suspect(before, after, lateness_ns),
            _ => Cause::default(),
        };
        Explanation {
            culprits: vec![Culprit { cause, ns: lateness_ns }],
            timeline: Vec::new(),
            evidence: Evidence::Counters,
        }
    }

    /// Checks causes in the order of their certainty.
    fn suspect(&self, before: &Reading, after: &Reading, lateness_ns: u64) -> Cause {
        let rise = |of: fn(&Reading) -> Option<u64>| of(after).zip(of(before)).map_or(0, |(a, b)| a.saturating_sub(b));
        let cause_with = |kind, detail: String| Cause { detail, ..Cause::new(kind, "") };
        let smi = rise(|reading| reading.smi);
        if smi > 0 {
            return cause_with(CauseKind::Firmware, format!("{smi} system management interrupts around the spike"));
        }
        let stolen_ns = rise(|reading| reading.steal_ns);
        if stolen_ns >= lateness_ns / 2 && stolen_ns > 0 {
            return cause_with(CauseKind::Stolen, format!("{} ms stolen around the spike", stolen_ns / 1_000_000));
        }
        let faults = rise(|reading| reading.faults);
        if faults > 0 {
            return cause_with(CauseKind::PageFault, format!("{faults} around the spike"));
        }
        if let Some(unusual_event) = self.unusual_event(before, after) {
            return unusual_event;
        }
        let waited_ns = rise(|reading| reading.waited_ns);
        if waited_ns >= lateness_ns / 2 && waited_ns > 0 {
            let detail = format!("the thread was ready and waited {} us for its CPU", waited_ns / 1000);
            return Cause { detail, ..Cause::new(CauseKind::Thread, UNKNOWN) };
        }
        Cause::default()
    }

    /// The interrupt or softirq that occurred much more often than usual.
    fn unusual_event(&self, before: &Reading, after: &Reading) -> Option<Cause> {
        let seconds = after.at_ns.saturating_sub(before.at_ns) as f64 / 1e9;
        let score = |source: &EventSource, count: u64| {
            let expected = self.usual.get(source).copied().unwrap_or(0.0) * seconds;
            (count as f64 - expected) / (expected + 4.0).sqrt()
        };
        let (source, count) = after
            .events_since(before)
            .into_iter()
            .filter(|(source, count)| score(source, *count) > MIN_SCORE)
            .max_by(|a, b| score(&a.0, a.1).total_cmp(&score(&b.0, b.1)))?;
        let expected = self.usual.get(&source).copied().unwrap_or(0.0) * seconds;
        let detail = format!("{count} times around the spike, usually {expected:.0}");
        Some(Cause { detail, ..source.cause() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Counters that rise evenly, read every 40 ms.
    fn quiet(readings: u64) -> Counters {
        let mut counters = Counters::start(&Root::at("/nonexistent"), 1, 42);
        for i in 0..readings {
            counters.add(reading(i, i * 4, 0));
        }
        counters
    }

    fn reading(i: u64, eth: u64, waited_ns: u64) -> Reading {
        let eth0 = EventSource::Interrupt { number: Some(17), name: "eth0".to_owned() };
        let events = [(eth0, eth), (EventSource::Softirq { name: "NET_RX".to_owned() }, i * 3)].into();
        Reading {
            at_ns: i * 40 * MS,
            events,
            steal_ns: Some(0),
            smi: None,
            faults: Some(7),
            waited_ns: Some(waited_ns),
        }
    }

    fn cause(counters: &Counters) -> Cause {
        let explanation = counters.explain(30 * 40 * MS - 2 * MS, 30 * 40 * MS - MS);
        assert_eq!(explanation.evidence, Evidence::Counters);
        assert_eq!(explanation.culprits[0].ns, MS, "the cause gets the whole lateness");
        explanation.culprits[0].cause.clone()
    }

    #[test]
    fn names_an_interrupt_storm() {
        let mut counters = quiet(30);
        counters.add(reading(30, 29 * 4 + 900, 0));
        let cause = cause(&counters);
        assert_eq!((cause.kind, cause.name.as_str(), cause.number), (CauseKind::Interrupt, "eth0", Some(17)));
        assert_eq!(cause.detail, "900 times around the spike, usually 5");
    }

    #[test]
    fn a_usual_rate_is_unexplained() {
        let mut counters = quiet(30);
        counters.add(reading(30, 30 * 4, 0));
        assert_eq!(cause(&counters).kind, CauseKind::Unexplained);
    }

    #[test]
    fn prefers_firmware_then_stolen_time() {
        let mut counters = quiet(30);
        let stolen = Reading { steal_ns: Some(10 * MS), ..reading(30, 29 * 4 + 900, 0) };
        counters.add(stolen.clone());
        assert_eq!(cause(&counters).kind, CauseKind::Stolen);
        let mut counters = quiet(29);
        counters.add(Reading { smi: Some(3), ..reading(29, 29 * 4, 0) });
        counters.add(Reading { smi: Some(4), ..stolen });
        assert_eq!(cause(&counters).kind, CauseKind::Firmware);
    }

    #[test]
    fn names_page_faults_and_waiting() {
        let mut counters = quiet(30);
        counters.add(Reading { faults: Some(9), ..reading(30, 120, 0) });
        assert_eq!(cause(&counters).kind, CauseKind::PageFault);
        let mut counters = quiet(30);
        counters.add(reading(30, 120, 900_000));
        assert_eq!(cause(&counters).detail, "the thread was ready and waited 900 us for its CPU");
    }
}
