//! The time line of a spike, cut at the deadline and at the wake-up, with rounded figures that add up.

use record::{Cause, Spike};

/// A part of a time line, entirely before or entirely after the deadline.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Part<'a> {
    /// Start, ns after the deadline.
    pub start_ns: i64,
    /// End, ns after the deadline.
    pub end_ns: i64,
    /// The cause that occupied the CPU.
    pub cause: &'a Cause,
}

impl Part<'_> {
    /// True if the part ended before the deadline and therefore does not count as lateness.
    pub fn is_before(&self) -> bool {
        self.end_ns <= 0
    }

    /// Length, ns.
    pub fn length_ns(&self) -> u64 {
        self.end_ns.abs_diff(self.start_ns)
    }
}

/// The parts of a spike's time line, in order.
pub(crate) fn parts(spike: &Spike) -> Vec<Part<'_>> {
    let mut parts = Vec::with_capacity(spike.timeline.len() + 1);
    for stretch in &spike.timeline {
        let end_ns = stretch.start_ns.saturating_add_unsigned(stretch.ns).min(spike.lateness_ns.max(0));
        let cut = 0.clamp(stretch.start_ns, end_ns.max(stretch.start_ns));
        for (start_ns, end_ns) in [(stretch.start_ns, cut), (cut, end_ns)] {
            if start_ns < end_ns {
                parts.push(Part { start_ns, end_ns, cause: &stretch.cause });
            }
        }
    }
    parts
}

/// The start of the drawing, ns after the deadline. Time before the deadline gets at most an eighth of the lateness.
pub(crate) fn drawn_from_ns(parts: &[Part], lateness_ns: i64) -> i64 {
    parts.iter().map(|part| part.start_ns).min().unwrap_or(0).min(0).max(-lateness_ns.max(1) / 8 - 1)
}

/// The lateness covered by the parts, ns.
pub(crate) fn sum_ns(parts: &[Part]) -> u64 {
    parts.iter().filter(|part| !part.is_before()).fold(0, |sum, part| sum.saturating_add(part.length_ns()))
}

/// The unit of a whole time line. Times are rounded where parts meet, so that the shown lengths add up.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Unit {
    /// `us`, `ms` or `s`.
    pub name: &'static str,
    step_ns: i64,
    decimals: u32,
}

impl Unit {
    /// The unit for a spike this late.
    pub fn of(lateness_ns: i64) -> Self {
        match lateness_ns {
            i64::MIN..10_000_000 => Self { name: "us", step_ns: 100, decimals: 1 },
            10_000_000..10_000_000_000 => Self { name: "ms", step_ns: 1_000, decimals: 3 },
            _ => Self { name: "s", step_ns: 1_000_000, decimals: 3 },
        }
    }

    /// A time without the unit.
    pub fn show(self, ns: i64) -> String {
        self.steps_as_text(self.steps(ns))
    }

    /// The length between two times, without the unit.
    pub fn length(self, start_ns: i64, end_ns: i64) -> String {
        self.steps_as_text(self.steps(end_ns) - self.steps(start_ns))
    }

    fn steps(self, ns: i64) -> i64 {
        (ns / self.step_ns) + (ns % self.step_ns) * 2 / self.step_ns
    }

    fn steps_as_text(self, steps: i64) -> String {
        let whole = 10u64.pow(self.decimals);
        let size = steps.unsigned_abs();
        let sign = if steps < 0 { "-" } else { "" };
        format!("{sign}{}.{:0decimals$}", size / whole, size % whole, decimals = self.decimals as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::{CauseKind, Stretch};

    fn spike(lateness_ns: i64, stretches: &[(i64, u64)]) -> Spike {
        let stretch = |&(start_ns, ns)| Stretch { start_ns, ns, cause: Cause::new(CauseKind::Thread, "x") };
        Spike { lateness_ns, timeline: stretches.iter().map(stretch).collect(), ..Spike::default() }
    }

    #[test]
    fn cuts_stretches_at_the_deadline_and_the_wake_up() {
        let spike = spike(100, &[(-50, 20), (-30, 70), (40, 500)]);
        let parts = parts(&spike);
        let spans: Vec<_> = parts.iter().map(|part| (part.start_ns, part.end_ns, part.is_before())).collect();
        assert_eq!(spans, [(-50, -30, true), (-30, 0, true), (0, 40, false), (40, 100, false)]);
        assert_eq!(sum_ns(&parts), 100);
    }

    #[test]
    fn accepts_odd_time_lines() {
        for lateness_ns in [i64::MIN, -5, 0, 7, i64::MAX] {
            let spike = spike(lateness_ns, &[(i64::MIN, u64::MAX), (0, 0), (i64::MAX, u64::MAX), (5, 1), (-9, 3)]);
            let parts = parts(&spike);
            assert!(parts.iter().all(|part| part.start_ns < part.end_ns), "{parts:?}");
            for part in parts {
                Unit::of(lateness_ns).length(part.start_ns, part.end_ns);
            }
        }
    }

    #[test]
    fn rounded_lengths_add_up() {
        let unit = Unit::of(412_000);
        let ends = [0, 3_149, 7_250, 391_049, 411_960];
        let read = |text: String| analysis::float::to_i64((text.parse::<f64>().unwrap() * 10.0).round());
        let sum: i64 = ends.windows(2).map(|pair| read(unit.length(pair[0], pair[1]))).sum();
        assert_eq!(sum, read(unit.show(411_960)));
        assert_eq!((unit.show(-12_040), unit.show(-40), unit.show(50)), ("-12.0".into(), "0.0".into(), "0.1".into()));
        assert_eq!(Unit::of(71_512_345).show(71_512_345), "71.512");
    }
}
