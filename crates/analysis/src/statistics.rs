//! Conclusions from a number of cycles about cycles that were not measured.
//!
//! Late cycles are treated as rare independent events (Poisson). Bounds are one-sided, at 95 % confidence.

use crate::{
    duration::{format_duration, format_ns},
    float::{to_i32, to_u64},
};

const SECOND_NS: f64 = 1e9;
const HOUR_NS: f64 = 3600.0 * SECOND_NS;
const DAY_NS: f64 = 24.0 * HOUR_NS;
const YEAR_NS: f64 = 365.25 * DAY_NS;

/// Time spans for rates of rare events.
const SPANS: [(&str, f64); 3] = [("an hour", HOUR_NS), ("a day", DAY_NS), ("a year", YEAR_NS)];

/// The cycles of a use that were measured, and those that were too late.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exposure {
    /// Measured cycles.
    pub cycles: u64,
    /// Cycles that were later than the limit.
    pub over: u64,
    /// Time between two cycles of the use, ns.
    pub period_ns: u64,
}

impl Exposure {
    /// The exposure of a use with a cycle of `period_ns`, from `deadlines` measured every `measured_ns`, `over` of
    /// which were too late.
    ///
    /// One long stall delays many consecutive wake-ups. If deadlines are closer together than the use's cycles, they
    /// count only once per cycle of the use, so that measuring faster does not strengthen the statement beyond the
    /// measured time.
    #[must_use]
    pub fn of(deadlines: u64, over: u64, measured_ns: u64, period_ns: u64) -> Self {
        if measured_ns >= period_ns {
            return Self { cycles: deadlines, over, period_ns };
        }
        let share = |count: u64| u128::from(count) * u128::from(measured_ns);
        let cycles = saturated(share(deadlines) / u128::from(period_ns));
        let over = saturated(share(over).div_ceil(u128::from(period_ns)));
        Self { cycles: cycles.max(over.min(1)), over, period_ns }
    }

    /// Upper bound of the share of late cycles, 0 to 1, at 95 %; 1 if nothing was measured.
    ///
    /// Without a late cycle in n, this is the rule of three: 3/n.
    #[must_use]
    pub fn rate_below(&self) -> f64 {
        (self.events_below() / self.cycles as f64).min(1.0)
    }

    fn events_below(&self) -> f64 {
        if self.over == 0 { 3.0 } else { poisson_upper(self.over) }
    }

    /// Upper bound of the number of late cycles in `span_ns` of the use, at 95 %.
    fn in_span(&self, span_ns: f64) -> f64 {
        self.rate_below() * span_ns / self.period_ns as f64
    }

    /// The conclusion as text: the bound, its meaning per hour, day or year, and the duration of runs for stronger
    /// statements.
    #[must_use]
    pub fn statement(&self, limit_ns: i64) -> String {
        let Self { cycles, over, .. } = *self;
        let limit = format_ns(limit_ns);
        match over {
            _ if cycles == 0 => "no cycle was measured, so there is no conclusion".to_owned(),
            _ if self.rate_below() >= 1.0 => {
                format!("{over} of {cycles} cycles later than {limit}: every cycle may be late, at 95 %")
            }
            0 => {
                let (bound, more) = (self.bound_per_span(), self.longer_runs());
                format!("none of {cycles} cycles later than {limit}: rate < 3/{cycles} at 95 %, {bound}{more}")
            }
            _ => {
                let (events, bound) = (self.events_below(), self.bound_per_span());
                format!("{over} of {cycles} cycles later than {limit}: rate < {events:.1}/{cycles} at 95 %, {bound}")
            }
        }
    }

    fn bound_per_span(&self) -> String {
        let shortest = SPANS.into_iter().find(|(_, span_ns)| self.in_span(*span_ns) >= 1.0);
        match shortest {
            Some((name, span_ns)) => format!("fewer than {} {name}", round_up(self.in_span(span_ns))),
            None => "less than one a year".to_owned(),
        }
    }

    /// Run times without a late cycle that would bound the rate to less than one per span: three times the span.
    fn longer_runs(&self) -> String {
        let open = SPANS.iter().filter(|(_, span_ns)| self.in_span(*span_ns) > 1.0);
        let open: Vec<_> = open.map(|(name, span_ns)| (format_duration(to_u64(3.0 * span_ns)), *name)).collect();
        match &open[..] {
            [] => String::new(),
            [(only, name)] => format!("; {only} without one would mean less than one {name}"),
            [(next, name), .., (last, last_name)] => {
                format!("; {next} without one would mean less than one {name}, {last} less than one {last_name}")
            }
        }
    }
}

/// `count`, or the largest value if it does not fit.
fn saturated(count: u128) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

/// A bound with 3 significant digits, rounded up so that it stays a bound.
fn round_up(count: f64) -> f64 {
    let unit = 10f64.powi((to_i32(count.log10().floor()) - 2).max(0));
    // Rounding errors of floating point are no reason to round up.
    (count / unit - 1e-9).ceil() * unit
}

/// The exact upper bound, at 95 %, of the mean number of events if `events` were counted (Poisson). About 3 for none.
#[must_use]
pub fn poisson_upper(events: u64) -> f64 {
    // The bound is between the count and this generous normal estimate.
    let k = events as f64;
    let (mut low, mut high) = (k, k + 3.0 * k.sqrt() + 4.0);
    while high - low > high * 1e-12 {
        let middle = f64::midpoint(low, high);
        if middle <= low || middle >= high {
            break;
        }
        if poisson_at_most(events, middle) > 0.05 { low = middle } else { high = middle }
    }
    f64::midpoint(low, high)
}

/// The probability of at most `events` if the mean is `mean`, which must be at least `events`.
fn poisson_at_most(events: u64, mean: f64) -> f64 {
    let k = events as f64;
    let largest = (k * mean.ln() - mean - ln_factorial(events)).exp();
    let (mut sum, mut term) = (0.0, 1.0);
    for below in 0..=events {
        sum += term;
        term *= (k - below as f64) / mean;
        if term < sum * 1e-16 {
            break;
        }
    }
    largest * sum
}

/// ln(n!), exact below 20, by Stirling's series above.
fn ln_factorial(n: u64) -> f64 {
    if n < 20 {
        return (2..=n).map(|i| (i as f64).ln()).sum();
    }
    let n = n as f64;
    let series = 1.0 / (12.0 * n) - 1.0 / (360.0 * n.powi(3)) + 1.0 / (1260.0 * n.powi(5));
    n * n.ln() - n + 0.5 * (std::f64::consts::TAU * n).ln() + series
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn exposure(cycles: u64, over: u64, period_ns: u64) -> Exposure {
        Exposure { cycles, over, period_ns }
    }

    /// Gehrels, Astrophysical Journal 303 (1986), table 1, confidence level 0.95.
    #[test]
    fn the_bound_matches_published_values() {
        for (events, published) in [
            (0, 2.996),
            (1, 4.744),
            (2, 6.296),
            (3, 7.754),
            (4, 9.154),
            (5, 10.51),
            (10, 16.96),
            (20, 29.06),
            (50, 63.29),
            (100, 118.1),
        ] {
            let bound = poisson_upper(events);
            assert!((bound - published).abs() < published * 5e-4, "{events}: {bound}, published {published}");
        }
    }

    /// For large counts the exact bound approaches k + 1.645 sqrt(k) + (1.645^2 + 2) / 3.
    #[test]
    fn the_bound_is_right_for_large_counts() {
        for events in [10_000u64, 1_000_000] {
            let k = events as f64;
            let expected = k + 1.644_854 * (k + 1.0).sqrt() + (1.644_854f64.powi(2) + 2.0) / 3.0;
            let bound = poisson_upper(events);
            assert!((bound - expected).abs() < 1.0, "{events}: {bound}, expected {expected}");
        }
    }

    #[test]
    fn follows_the_rule_of_three() {
        assert_eq!(exposure(30_000, 0, 1_000_000).rate_below(), 1e-4);
        assert_eq!(exposure(2, 0, 1_000_000).rate_below(), 1.0);
    }

    #[test]
    fn writes_statements() {
        let period_ns = 125_000;
        assert_eq!(
            exposure(80_000, 0, period_ns).statement(50_000),
            "none of 80000 cycles later than 50 us: rate < 3/80000 at 95 %, fewer than 1080 an hour; \
             3 h without one would mean less than one an hour, 3 years less than one a year"
        );
        assert_eq!(
            exposure(90_000_000, 0, period_ns).statement(50_000),
            "none of 90000000 cycles later than 50 us: rate < 3/90000000 at 95 %, fewer than 24 a day; \
             3 d without one would mean less than one a day, 3 years less than one a year"
        );
        assert_eq!(
            exposure(80_000, 1, period_ns).statement(50_000),
            "1 of 80000 cycles later than 50 us: rate < 4.7/80000 at 95 %, fewer than 1710 an hour"
        );
        assert_eq!(
            exposure(3, 3, period_ns).statement(50_000),
            "3 of 3 cycles later than 50 us: every cycle may be late, at 95 %"
        );
        assert_eq!(exposure(0, 0, period_ns).statement(50_000), "no cycle was measured, so there is no conclusion");
    }

    #[test]
    fn three_years_bound_the_rate_to_less_than_one_a_year() {
        let cycles = to_u64(3.0 * YEAR_NS / 1e6) + 1;
        let statement = exposure(cycles, 0, 1_000_000).statement(50_000);
        assert!(statement.ends_with("less than one a year"), "{statement}");
    }

    #[test]
    fn measuring_faster_does_not_add_exposure() {
        assert_eq!(Exposure::of(75_000, 5, 200_000, 1_000_000), exposure(15_000, 1, 1_000_000));
        assert_eq!(Exposure::of(75_000, 6, 200_000, 1_000_000), exposure(15_000, 2, 1_000_000));
        assert_eq!(Exposure::of(1_000, 2, 1_000_000, 125_000), exposure(1_000, 2, 125_000));
    }

    proptest! {
        #[test]
        fn more_clean_cycles_lower_the_bound(cycles in 3u64..1_000_000_000, more in 1u64..1_000_000) {
            prop_assert!(exposure(cycles + more, 0, 1).rate_below() < exposure(cycles, 0, 1).rate_below());
        }

        #[test]
        fn the_bound_is_above_the_measured_rate(over in 0u64..100_000, clean in 1u64..1_000_000) {
            let seen = exposure(over + clean, over, 1);
            prop_assert!(seen.rate_below() > over as f64 / (over + clean) as f64);
        }

        #[test]
        fn at_the_bound_five_percent_remain(events in 0u64..5_000) {
            let remaining = poisson_at_most(events, poisson_upper(events));
            prop_assert!((remaining - 0.05).abs() < 1e-7, "{remaining}");
        }

        #[test]
        fn statements_never_exclude_late_cycles(cycles in 0u64..u64::MAX / 2, over in 0u64..1_000, period_ns in 1u64..1_000_000_000) {
            let statement = exposure(cycles.max(over), over, period_ns).statement(1);
            prop_assert!(!statement.contains("never") && statement.is_ascii());
        }
    }
}
