//! Conclusions from a number of cycles about cycles that were not measured.
//!
//! Late cycles come in stalls. Stalls are treated as rare independent events (Poisson). Bounds are one-sided, at 95 %
//! confidence.

use crate::{
    duration::{format_duration, format_ns},
    float::{to_i32, to_u64},
    rate::Rate,
    sequential,
};
use record::{counted, grouped};

const SECOND_NS: f64 = 1e9;
const MINUTE_NS: f64 = 60.0 * SECOND_NS;
const HOUR_NS: f64 = 60.0 * MINUTE_NS;
const DAY_NS: f64 = 24.0 * HOUR_NS;
const YEAR_NS: f64 = 365.25 * DAY_NS;

/// Time spans for rates of rare events.
const SPANS: [(&str, f64); 3] = [("an hour", HOUR_NS), ("a day", DAY_NS), ("a year", YEAR_NS)];

/// Shorter time spans for rates of frequent events, the longest first.
const SHORT_SPANS: [(&str, f64); 2] = [("a minute", MINUTE_NS), ("a second", SECOND_NS)];
/// Larger counts in a time span are given for the next shorter one.
const READABLE: f64 = 10_000.0;

/// Counts of stalls. A long stall counts several times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Grouped {
    /// Number of stalls; one that lasts longer than a second counts once for each second.
    pub total: u64,
    /// The same, with the square of the seconds of each.
    pub squares: u128,
    /// The seconds of the longest one.
    pub longest: u64,
}

impl Grouped {
    /// Stalls that count this often.
    #[must_use]
    pub fn of(sizes: impl IntoIterator<Item = u64>) -> Self {
        sizes.into_iter().fold(Self::default(), |all, size| Self {
            total: all.total.saturating_add(size),
            squares: all.squares.saturating_add(square(size)),
            longest: all.longest.max(size),
        })
    }

    /// The same stalls in a time with room for `most`: stalls of one second are left out.
    #[must_use]
    pub fn at_most(self, most: u64) -> Self {
        let total = self.total.min(most);
        let longest = self.longest.min(total);
        let squares = self.squares.saturating_sub((self.total - total).into());
        Self { total, squares: squares.clamp(square(longest), square(total)), longest }
    }

    /// The number of equally long stalls that the total is as uncertain as: `sum(size)^2 / sum(size^2)` (G. Bohm, G. Zech,
    /// "Statistics of weighted Poisson events and its applications", Nuclear Instruments and Methods A 748, 2014). From 1 to
    /// `total`; 0 without stalls.
    #[must_use]
    pub fn independent(&self) -> f64 {
        if self.total == 0 {
            return 0.0;
        }
        let total = self.total as f64;
        (total * total / self.squares as f64).clamp(1.0, total)
    }

    /// Upper bound of the mean number of stalls, at 95 %: 3 without one (the rule of three). If each counts once it is
    /// the exact bound, and larger if one counts several times.
    #[must_use]
    pub fn upper(&self) -> f64 {
        if self.total == 0 { 3.0 } else { self.scaled(poisson_upper) }
    }

    /// The bound `of` a number of equally long stalls, for these. Between two numbers it is interpolated. The bound of all is
    /// not smaller than that of the longest one, with the others as they were seen.
    fn scaled(&self, of: impl Fn(u64) -> f64) -> f64 {
        if self.total == 0 {
            return of(0);
        }
        let independent = self.independent();
        let below = to_u64(independent.floor());
        let (least, share) = (of(below), independent.fract());
        let equally_long = if share > 0.0 { least + share * (of(below + 1) - least) } else { least };
        let of_longest = of(1) * self.longest as f64 + (self.total - self.longest) as f64;
        (equally_long * self.total as f64 / independent).max(of_longest)
    }
}

fn square(size: u64) -> u128 {
    u128::from(size) * u128::from(size)
}

/// The late cycles of a series, and their stalls.
///
/// Bounds are about stalls only. A bound on late cycles would need the longest stall that can occur, which a run does not
/// show: rare long stalls cause most late cycles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Late {
    /// Late cycles of the use.
    pub cycles: u64,
    /// The largest possible number of stalls. A stall longer than a second counts as one for each second that it began.
    pub stalls: Grouped,
    /// The smallest possible number of stalls: the same, if the record contains the time of each late wake-up.
    pub stalls_at_least: u64,
}

impl Late {
    /// The number of stalls: `2 to 9 stalls` if it is a range, or the largest one if none is certain.
    pub(crate) fn stalls_in_words(&self) -> String {
        let most = counted(self.stalls.total, "stall");
        let is_range = self.stalls_at_least > 0 && self.stalls_at_least < self.stalls.total;
        if is_range { format!("{} to {most}", grouped(self.stalls_at_least)) } else { most }
    }
}

/// The cycles of a use that were measured, and those that were too late.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exposure {
    /// Measured cycles.
    pub cycles: u64,
    /// Cycles that were later than the limit.
    pub late: Late,
    /// Time between two cycles of the use, ns.
    pub period_ns: u64,
    /// Time that was measured, ns: more than that of the cycles if they were further apart than those of the use.
    pub lasted_ns: u64,
    /// True if the run ended itself, so that its bounds must hold at every moment.
    pub any_time: bool,
}

impl Exposure {
    /// The exposure of a use with a cycle of `period_ns`, from `deadlines` measured every `measured_ns`, in a run of fixed
    /// length.
    ///
    /// If deadlines are closer together than the use's cycles, they count only once per cycle of the use, so that
    /// measuring faster does not strengthen the statement beyond the measured time.
    #[must_use]
    pub fn of(deadlines: u64, late: Late, measured_ns: u64, period_ns: u64) -> Self {
        let cycles = if measured_ns >= period_ns {
            deadlines
        } else {
            let cycles = u128::from(deadlines) * u128::from(measured_ns) / u128::from(period_ns.max(1));
            u64::try_from(cycles).unwrap_or(u64::MAX).max(late.cycles.min(1))
        };
        // Late cycles within a second are one stall, and a longer stall counts once a second: more do not fit in the time.
        let seconds = u128::from(deadlines) * u128::from(measured_ns) / 1_000_000_000 + 1;
        let most = u64::try_from(seconds).unwrap_or(u64::MAX).max(late.stalls_at_least);
        let stalls = late.stalls.at_most(most);
        // A part of a cycle counts as one, so that the late ones can be one more than all.
        let late = Late { cycles: late.cycles.min(cycles), stalls, ..late };
        let lasted_ns = deadlines.saturating_mul(measured_ns).max(cycles.saturating_mul(period_ns));
        Self { cycles, late, period_ns, lasted_ns, any_time: false }
    }

    /// The covered time of the use, ns.
    #[must_use]
    pub fn time_ns(&self) -> f64 {
        self.cycles as f64 * self.period_ns as f64
    }

    /// The share of the measured time that is covered, above 0 and at most 1; 1 if nothing was measured.
    #[must_use]
    pub fn covered_share(&self) -> f64 {
        let (covered, lasted) = (self.time_ns(), self.lasted_ns as f64);
        if covered > 0.0 && covered < lasted { covered / lasted } else { 1.0 }
    }

    /// Upper bound of the share of cycles in which a stall begins, 0 to 1, at 95 %; 1 if nothing was measured.
    #[must_use]
    pub fn rate_below(&self) -> f64 {
        (self.stalls_upper() / self.cycles as f64).min(1.0)
    }

    /// Upper bound of the mean number of stalls in the covered time, at 95 %.
    #[must_use]
    pub fn stalls_upper(&self) -> f64 {
        let stalls = self.late.stalls;
        if self.any_time { stalls.scaled(sequential::enough_for_fewer) } else { stalls.upper() }
    }

    /// Upper bound of the number of stalls in `span_ns` of the use, at 95 %; infinite if nothing was measured.
    #[must_use]
    pub fn stalls_in(&self, span_ns: f64) -> f64 {
        self.stalls_upper() * span_ns / self.time_ns()
    }

    /// True if the rate of stalls is shown to be at most `tolerated`, at 95 %.
    #[must_use]
    pub fn shows(&self, tolerated: Rate) -> bool {
        self.stalls_upper() <= tolerated.in_ns(self.time_ns())
    }

    /// True if there were certainly as many stalls as `tolerated`, so that a longer run with the same rate of stalls does
    /// not show less.
    #[must_use]
    pub fn reaches(&self, tolerated: Rate) -> bool {
        self.late.stalls_at_least > 0 && self.late.stalls_at_least as f64 >= tolerated.in_ns(self.lasted_ns as f64)
    }

    /// True if there can have been as many of these stalls as `tolerated`.
    #[must_use]
    pub fn can_reach(&self, stalls: Grouped, tolerated: Rate) -> bool {
        stalls.total > 0 && stalls.total as f64 >= tolerated.in_ns(self.lasted_ns as f64)
    }

    /// True if there were more stalls than `tolerated`: more than that number in the measured time, or for a run that ended
    /// itself a rate that is shown to be higher, at 95 % for all of `series` together.
    #[must_use]
    pub fn exceeds(&self, tolerated: Rate, series: usize) -> bool {
        let expected = tolerated.in_ns(self.lasted_ns as f64);
        match self.any_time {
            false => self.late.stalls_at_least as f64 > expected,
            true => {
                sequential::evidence_of_more(self.late.stalls_at_least, expected) >= sequential::ENOUGH * series as f64
            }
        }
    }

    /// The further time without a stall after which [`shows`](Self::shows) holds, ns.
    #[must_use]
    pub fn time_left_ns(&self, tolerated: Rate) -> u64 {
        let needed_ns = tolerated.time_ns(self.stalls_upper());
        needed_ns.saturating_sub(to_u64(self.time_ns()))
    }

    /// The time after which [`shows`](Self::shows) holds if stalls stay as frequent as measured, ns; `None` if it holds, if
    /// they are not rarer than tolerated, or by so little that it takes more than 100 times the measured time.
    #[must_use]
    pub fn time_at_rate_ns(&self, tolerated: Rate) -> Option<f64> {
        let independent = self.late.stalls.independent();
        let size = if independent > 0.0 { self.late.stalls.total as f64 / independent } else { 1.0 };
        let allowed = tolerated.in_ns(self.time_ns()) / size;
        let bound =
            |stalls: u64| if self.any_time { sequential::enough_for_fewer(stalls) } else { poisson_upper(stalls) };
        let is_enough = |times: &f64| bound(to_u64((independent * times).ceil())) <= allowed * times;
        let times = std::iter::successors(Some(1.0), |times| Some(times * 1.05));
        let needed = times.take_while(|times| *times <= 100.0).find(is_enough);
        needed.filter(|times| *times > 1.0).map(|times| times * self.time_ns())
    }

    /// The conclusion as text: the bound, its meaning per hour, day or year, and the duration of runs for stronger
    /// statements.
    #[must_use]
    pub fn statement(&self, limit_ns: i64) -> String {
        let Self { cycles, late, .. } = *self;
        let (over, limit) = (late.cycles, format_ns(limit_ns));
        if cycles == 0 {
            return "no cycle was measured, so there is no conclusion".to_owned();
        }
        let all = grouped(cycles);
        let seen = if over == 0 {
            format!("none of {all} cycles later than {limit}")
        } else {
            // Of some results, it is not known whether they were late.
            let at_most = if late.stalls_at_least == 0 { "at most " } else { "" };
            format!("{at_most}{} of {all} cycles later than {limit}, in {}", grouped(over), late.stalls_in_words())
        };
        if self.rate_below() >= 1.0 {
            return format!("{seen}: every cycle may be late, at 95 %");
        }
        let bound = self.bound_per_span();
        if over == 0 { format!("{seen}: {bound}{}", self.longer_runs()) } else { format!("{seen}: {bound}") }
    }

    /// The bound in the shortest span of an hour, a day and a year with more than one stall, or a shorter one for frequent
    /// stalls: `at 95 % fewer than 1,080 stalls an hour`.
    #[must_use]
    pub fn bound_per_span(&self) -> String {
        if self.cycles == 0 {
            return "no bound on stalls".to_owned();
        }
        let shortest = SPANS.into_iter().find(|(_, span_ns)| self.stalls_in(*span_ns) > 1.0);
        let Some(mut span) = shortest else { return "at 95 % less than one stall a year".to_owned() };
        for shorter in SHORT_SPANS {
            if self.stalls_in(span.1) > READABLE {
                span = shorter;
            }
        }
        let (name, span_ns) = span;
        format!("at 95 % fewer than {} stalls {name}", grouped(to_u64(round_up(self.stalls_in(span_ns)))))
    }

    /// Run times without a stall that would bound the rate to less than one per span: three times the span.
    fn longer_runs(&self) -> String {
        let open = SPANS.iter().filter(|(_, span_ns)| self.stalls_in(*span_ns) > 1.0);
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

/// A bound with 3 significant digits, rounded up so that it stays a bound.
fn round_up(count: f64) -> f64 {
    let unit = 10f64.powi((to_i32(count.log10().floor()) - 2).max(0));
    // Rounding errors of floating point are no reason to round up.
    (count / unit - 1e-9).ceil() * unit
}

/// Above this count, [`poisson_upper`] uses the first terms of its expansion in the square root of the count.
const EXACT_UP_TO: u64 = 10_000;

/// The upper bound, at 95 %, of the mean number of events if `events` were counted (Poisson). About 3 for none.
///
/// It is exact up to 10 000 events, and at most 0.1 too large above (Cornish-Fisher expansion of the gamma distribution).
#[must_use]
pub fn poisson_upper(events: u64) -> f64 {
    let k = events as f64;
    if events > EXACT_UP_TO {
        // The quantile of the normal distribution at 95 %.
        let z = 1.644_854f64;
        return k + z * (k + 1.0).sqrt() + (z * z + 2.0) / 3.0 + 0.1;
    }
    // The bound is between the count and this generous normal estimate.
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

    /// Late cycles that are each a stall of their own.
    fn exposure(cycles: u64, over: u64, period_ns: u64) -> Exposure {
        let lasted_ns = cycles.saturating_mul(period_ns);
        Exposure { cycles, late: stalls(over, 1), period_ns, lasted_ns, any_time: false }
    }

    fn single(count: u64) -> Grouped {
        Grouped { total: count, squares: count.into(), longest: count.min(1) }
    }

    /// Stalls of `each` late cycles.
    fn stalls(count: u64, each: u64) -> Late {
        let counted = single(count);
        Late { cycles: count * each, stalls: counted, stalls_at_least: count }
    }

    #[test]
    fn a_bound_on_frequent_stalls_is_per_minute_or_second() {
        let bound = |cycles, over| exposure(cycles, over, 1_000_000).bound_per_span();
        assert_eq!(bound(2_000, 0), "at 95 % fewer than 5,400 stalls an hour");
        assert_eq!(bound(1_000, 0), "at 95 % fewer than 180 stalls a minute");
        assert!(bound(10_000, 3_000).ends_with(" stalls a second"), "{}", bound(10_000, 3_000));
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

    /// Between 5 % and slightly less remain above the bound.
    #[test]
    fn the_bound_is_right_for_large_counts() {
        for events in [EXACT_UP_TO, EXACT_UP_TO + 1, 1_000_000] {
            let bound = poisson_upper(events);
            let (below, at) = (poisson_at_most(events, bound - 0.2), poisson_at_most(events, bound));
            assert!(below > 0.05 && at < 0.05 + 1e-7, "{events}: {at} to {below}");
        }
    }

    #[test]
    fn follows_the_rule_of_three() {
        assert_eq!(exposure(30_000, 0, 1_000_000).rate_below(), 1e-4);
        assert_eq!(exposure(2, 0, 1_000_000).rate_below(), 1.0);
    }

    #[test]
    fn writes_statements() {
        let statement = |cycles, late| {
            Exposure { cycles, late, period_ns: 125_000, lasted_ns: 0, any_time: false }.statement(50_000)
        };
        assert_eq!(
            statement(80_000, stalls(0, 0)),
            "none of 80,000 cycles later than 50 us: at 95 % fewer than 1,080 stalls an hour; \
             3 h without one would mean less than one an hour, 3 years less than one a year"
        );
        assert_eq!(
            statement(90_000_000, stalls(0, 0)),
            "none of 90,000,000 cycles later than 50 us: at 95 % fewer than 24 stalls a day; \
             3 d without one would mean less than one a day, 3 years less than one a year"
        );
        assert_eq!(
            statement(80_000, stalls(1, 40)),
            "40 of 80,000 cycles later than 50 us, in 1 stall: at 95 % fewer than 1,710 stalls an hour"
        );
        assert_eq!(
            statement(80_000, Late { stalls: single(9), ..stalls(2, 40) }),
            "80 of 80,000 cycles later than 50 us, in 2 to 9 stalls: at 95 % fewer than 5,660 stalls an hour"
        );
        let all = "3 of 3 cycles later than 50 us, in 3 stalls: every cycle may be late, at 95 %";
        assert_eq!(statement(3, stalls(3, 1)), all);
        assert_eq!(statement(0, stalls(0, 0)), "no cycle was measured, so there is no conclusion");
    }

    #[test]
    fn groups_of_different_sizes_count_for_fewer() {
        let of = |sizes: &[u64]| {
            let stalls = Grouped::of(sizes.iter().copied());
            (stalls.total, stalls.independent())
        };
        assert_eq!(of(&[]), (0, 0.0));
        assert_eq!(of(&[7, 7, 7]), (21, 3.0));
        assert_eq!(of(&[10, 5, 5]), (20, 400.0 / 150.0));
        assert_eq!(of(&[u64::MAX, u64::MAX]).0, u64::MAX);
    }

    #[test]
    fn a_long_stall_and_single_ones_count_together() {
        let long = Grouped::of([10, 1, 1]);
        assert_eq!(long.at_most(11), Grouped::of([10, 1]));
        assert_eq!(long.at_most(5), Grouped::of([5]));
        // Between whole numbers of equally long stalls, too, one more makes the bound larger.
        for single in 0..50 {
            let bound = |single| Grouped::of([4].into_iter().chain((0..single).map(|_| 1))).upper();
            assert!(bound(single + 1) > bound(single), "{single}");
        }
    }

    /// A pseudo-random number in 0..1 (xorshift64*, S. Vigna, ACM Transactions on Mathematical Software 42, 2016).
    fn uniform(state: &mut u64) -> f64 {
        *state ^= *state >> 12;
        *state ^= *state << 25;
        *state ^= *state >> 27;
        (state.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A Poisson-distributed number: events before the sum of exponential intervals exceeds the mean.
    fn poisson(mean: f64, state: &mut u64) -> u64 {
        let mut time = 0.0;
        let mut events = 0;
        loop {
            time -= (1.0 - uniform(state)).ln();
            if time > mean {
                return events;
            }
            events += 1;
        }
    }

    /// The bound on stalls must contain the true rate in 95 % of runs, whatever the lengths of the stalls are, in seconds.
    #[test]
    fn the_bound_holds_for_stalls_of_unequal_length() {
        const RUNS: u32 = 4_000;
        /// A length from a number in 0..1.
        type Length = fn(f64) -> u64;
        let lengths: [(&str, Length); 6] = [
            ("1", |_| 1),
            ("20", |_| 20),
            ("1 to 1000, uniform", |u| to_u64(1.0 + 1000.0 * u)),
            ("1 to 1000, uniform logarithms", |u| to_u64(1000f64.powf(u))),
            ("a tenth 1000, else 1", |u| if u < 0.1 { 1000 } else { 1 }),
            ("Pareto, 1.5", |u| to_u64((1.0 - u).powf(-1.0 / 1.5))),
        ];
        let mut state = 0x9E37_79B9_7F4A_7C15;
        for mean in [1.0, 3.0, 10.0] {
            for (name, length) in lengths {
                let mut too_low = 0u32;
                for _ in 0..RUNS {
                    let count = poisson(mean, &mut state);
                    let stalls = Grouped::of((0..count).map(|_| length(uniform(&mut state))));
                    too_low += u32::from(stalls.upper() < mean);
                }
                let share = f64::from(too_low) / f64::from(RUNS);
                assert!(share < 0.06, "{mean} stalls of {name}: {share}");
            }
        }
    }

    /// A run that looks ten times in the mean time between two stalls must not find a false result more often.
    #[test]
    fn looking_at_every_moment_does_not_help() {
        const RUNS: u32 = 1_000;
        let mut state = 0x2545_F491_4F6C_DD1D;
        let (mut passed, mut failed, mut passed_by_fixed) = (0u32, 0u32, 0u32);
        let tolerated: Rate = "1 per second".parse().unwrap();
        for _ in 0..RUNS {
            // The true rate is exactly the tolerated one, so each conclusion is false.
            let mut interval_s = || -(1.0 - uniform(&mut state)).ln();
            let (mut count, mut next_s) = (0, interval_s());
            let mut found = [false; 3];
            for look in 1..300u64 {
                while next_s < look as f64 * 0.1 {
                    next_s += interval_s();
                    count += 1;
                }
                let fixed = exposure(look, count, 100_000_000);
                let any_time = Exposure { any_time: true, ..fixed };
                found[0] |= any_time.shows(tolerated);
                found[1] |= any_time.exceeds(tolerated, 1);
                found[2] |= fixed.shows(tolerated);
            }
            passed += u32::from(found[0]);
            failed += u32::from(found[1]);
            passed_by_fixed += u32::from(found[2]);
        }
        let share = |found: u32| f64::from(found) / f64::from(RUNS);
        assert!(share(passed) <= 0.06 && share(failed) <= 0.06, "{} passed, {} failed", share(passed), share(failed));
        assert!(share(passed_by_fixed) > 0.08, "the bound of a fixed length: {}", share(passed_by_fixed));
    }

    #[test]
    fn three_years_bound_the_rate_to_less_than_one_a_year() {
        let cycles = to_u64(3.0 * YEAR_NS / 1e6) + 1;
        let statement = exposure(cycles, 0, 1_000_000).statement(50_000);
        assert!(statement.ends_with("less than one stall a year"), "{statement}");
    }

    #[test]
    fn measuring_faster_does_not_add_exposure() {
        let of =
            |deadlines, measured_ns, period_ns| Exposure::of(deadlines, stalls(1, 2), measured_ns, period_ns).cycles;
        assert_eq!((of(75_000, 200_000, 1_000_000), of(1_000, 1_000_000, 125_000)), (15_000, 1_000));
        assert_eq!(of(1, 1_000, 1_000_000), 1, "a late cycle is a cycle");
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

        /// If a stall counts several times, the bound is not smaller than the exact one for its number.
        #[test]
        fn long_stalls_do_not_lower_the_bound(seconds in prop::collection::vec(1u64..10_000, 1..50)) {
            let bound = Grouped::of(seconds.iter().copied()).upper();
            prop_assert!(bound >= poisson_upper(seconds.len() as u64) * (1.0 - 1e-9), "{bound}");
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
