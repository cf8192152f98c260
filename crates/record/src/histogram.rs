//! Sparse histograms and their percentiles.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::layout;

/// Counts by value with 3 significant digits and no upper limit. Negative values are early wake-ups.
///
/// In JSON: the counts from bucket number `first` on, as `HistogramJson` describes. A bucket's value is its value
/// farthest from zero.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "HistogramJson", into = "HistogramJson")]
#[schemars(with = "HistogramJson")]
pub struct Histogram {
    counts: BTreeMap<i64, u64>,
    total: u64,
}

/// The JSON form of a histogram: `first` and `counts`, or `buckets` in records of versions up to 0.2.
///
/// Neighbouring buckets are often both in use, and a count alone takes half the space of a value and a count.
#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Histogram")]
struct HistogramJson {
    /// Number of the first bucket in use. Bucket 0 contains the value 0, and each ns up to 2047 has a bucket of its
    /// own. Above that, each power of two has 1024 buckets of equal width. Buckets of negative values have negative
    /// numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    first: Option<i64>,
    /// The counts of this bucket and of those behind it, in ascending order. A negative number -N means N empty
    /// buckets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    counts: Option<Vec<i64>>,
    /// `[value_ns, count]`, ascending; a bucket's value is its value farthest from zero. Versions up to 0.2 wrote this
    /// instead of `counts`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    buckets: Option<Vec<(i64, u64)>>,
}

/// An error in the JSON of a histogram.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
enum HistogramError {
    #[error("a histogram has neither `counts` nor `buckets`")]
    Missing,
    #[error("a histogram has more than 2^64 counts")]
    TooManyCounts,
    #[error("a histogram has counts beyond its last bucket, that of 2^63 - 1 ns")]
    BeyondLastBucket,
}

/// The rank of a percentile among `total` values, from 1 to `total`: the number of values that it is not below, rounded up.
///
/// `percent` is 0 to 100. It counts in whole hundred-millionths, because 99.9 is no binary fraction, and a product with it
/// would be above a whole number.
#[must_use]
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most 100 %, and a rank of 0 to total")]
pub fn rank(total: u64, percent: f64) -> u64 {
    const PARTS: u128 = 100_000_000;
    let parts = (percent.clamp(0.0, 100.0) * PARTS as f64).round() as u128;
    let rank = (u128::from(total) * parts).div_ceil(100 * PARTS) as u64;
    rank.clamp(1, total.max(1))
}

impl Histogram {
    /// Counts one value.
    pub fn record(&mut self, value_ns: i64) {
        self.add(value_ns, 1);
    }

    /// Counts one value `count` times.
    pub fn add(&mut self, value_ns: i64, count: u64) {
        if count > 0 {
            *self.counts.entry(bucket_of(value_ns)).or_default() += count;
            self.total += count;
        }
    }

    /// Builds a histogram from buckets in ascending order, each named by its value farthest from zero. Much faster than
    /// adding them one by one.
    #[must_use]
    pub fn from_buckets(buckets: impl Iterator<Item = (i64, u64)>) -> Self {
        let counts: BTreeMap<i64, u64> = buckets.filter(|&(_, count)| count > 0).collect();
        let total = counts.values().sum();
        Self { counts, total }
    }

    /// Adds the counts of another histogram.
    pub fn merge(&mut self, other: &Self) {
        if self.is_empty() {
            return self.clone_from(other);
        }
        // Most buckets are in both, and both are in order.
        let mut own = self.counts.iter_mut().peekable();
        let mut new = Vec::new();
        for (value_ns, count) in other.iter() {
            while own.next_if(|(own_ns, _)| **own_ns < value_ns).is_some() {}
            match own.peek_mut() {
                Some((own_ns, own_count)) if **own_ns == value_ns => **own_count += count,
                _ => new.push((value_ns, count)),
            }
        }
        self.counts.extend(new);
        self.total += other.total;
    }

    /// Returns the same counts in buckets at most a sixteenth of their value wide, for records with very many series.
    #[must_use]
    pub fn coarse(&self) -> Self {
        self.in_wider_buckets(4)
    }

    /// Returns the same counts in buckets at most `1 / 2^bits` of their value wide; `bits` is 0 to 10. Each bucket is
    /// named by its value farthest from zero.
    #[must_use]
    pub fn in_wider_buckets(&self, bits: u32) -> Self {
        let mut wider: Vec<(i64, u64)> = Vec::new();
        for (value_ns, count) in self.iter() {
            let size = value_ns.unsigned_abs();
            let dropped_bits = size.checked_ilog2().unwrap_or(0).saturating_sub(bits);
            let highest = (size | ((1 << dropped_bits) - 1)).min(i64::MAX as u64);
            let value_ns = value_ns.signum() * highest.cast_signed();
            match wider.last_mut() {
                Some((last_ns, counted)) if *last_ns == value_ns => *counted += count,
                _ => wider.push((value_ns, count)),
            }
        }
        Self::from_buckets(wider.into_iter())
    }

    /// Number of counted values.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.total
    }

    /// True if no value was counted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.total == 0
    }

    /// Iterates over the non-empty buckets in ascending order: value in ns, count.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (i64, u64)> + '_ {
        self.counts.iter().map(|(&v, &c)| (v, c))
    }

    /// An upper bound for the width of the cells that the values come from, ns: the smallest distance of two neighbouring
    /// values, plus the width of the bucket of the larger one, by which the distance can be too short. `None` with fewer than
    /// two values.
    #[must_use]
    pub fn cell_width_ns(&self) -> Option<i64> {
        let width = |value_ns: i64| {
            let index = layout::index_of(value_ns.unsigned_abs());
            (layout::highest_in(index) - layout::lowest_in(index)).cast_signed() + 1
        };
        let neighbours = self.counts.keys().zip(self.counts.keys().skip(1));
        neighbours.map(|(low, high)| (high - low).saturating_add(width((*high).max(-low)))).min()
    }

    /// Returns the smallest value that at least `percent` % of the counts do not exceed; `None` if empty.
    ///
    /// `percent` is 0 to 100; 50 is the median. The result is never below the exact percentile, and above it by less
    /// than a thousandth.
    #[must_use]
    pub fn percentile(&self, percent: f64) -> Option<i64> {
        self.percentile_among(self.total, percent)
    }

    /// The percentile of `total` values, of which the largest ones may be missing here; `None` if it is one of those.
    #[must_use]
    pub fn percentile_among(&self, total: u64, percent: f64) -> Option<i64> {
        self.nth(rank(total, percent))
    }

    /// The value of this rank: 1 is the smallest one. `None` if there are fewer values.
    #[must_use]
    pub fn nth(&self, rank: u64) -> Option<i64> {
        let mut seen = 0;
        self.iter()
            .find(|&(_, count)| {
                seen += count;
                seen >= rank
            })
            .map(|(value_ns, _)| value_ns)
    }

    /// The same, `None` if it must be the largest value, so that it says nothing of its own.
    #[must_use]
    pub fn percentile_below_max(&self, percent: f64) -> Option<i64> {
        self.percentile_below_max_among(self.total, percent)
    }

    /// [`Self::percentile_among`], `None` if it must be the largest of the `total` values.
    #[must_use]
    pub fn percentile_below_max_among(&self, total: u64, percent: f64) -> Option<i64> {
        self.percentile_among(total, percent).filter(|_| rank(total, percent) < total)
    }

    /// Number of counted values above `limit_ns`, with the precision of the buckets: a bucket that contains the limit
    /// counts as above it.
    #[must_use]
    pub fn count_above(&self, limit_ns: i64) -> u64 {
        self.counts.range(limit_ns.saturating_add(1)..).map(|(_, &count)| count).sum()
    }

    /// Counts a wake-up that was `lateness_ns` late and the deadlines that it omitted: L, L-T, L-2T, … down to 0.
    ///
    /// The cost grows with the number of buckets in between, not with the number of deadlines.
    pub fn record_with_omitted(&mut self, lateness_ns: i64, period_ns: u64) {
        self.add_with_omitted(lateness_ns, period_ns, 1);
    }

    /// Removes up to `count` values of a bucket.
    fn take_away(&mut self, bucket_ns: i64, count: u64) {
        if let Some(counted) = self.counts.get_mut(&bucket_ns) {
            let taken = count.min(*counted);
            *counted -= taken;
            self.total -= taken;
            if *counted == 0 {
                self.counts.remove(&bucket_ns);
            }
        }
    }

    fn add_with_omitted(&mut self, lateness_ns: i64, period_ns: u64, times: u64) {
        self.add(lateness_ns, times);
        if times == 0 {
            return;
        }
        let Ok(mut rest) = u64::try_from(lateness_ns) else { return };
        if period_ns == 0 {
            return;
        }
        while rest >= period_ns {
            rest -= period_ns;
            let lowest = layout::lowest_in(layout::index_of(rest));
            let in_bucket = (rest - lowest) / period_ns;
            self.add(rest.cast_signed(), (in_bucket + 1) * times);
            rest -= in_bucket * period_ns;
        }
    }

    /// Returns the histogram corrected for coordinated omission: each late wake-up also counts for the deadlines that
    /// it omitted.
    ///
    /// `exact_ns` contains the exact lateness of wake-ups in `self` that were at least a period late, as far as known;
    /// for the others their bucket's value is used. The total is that of `self` plus the missed deadlines.
    #[must_use]
    pub fn corrected(&self, exact_ns: &[i64], period_ns: u64) -> Self {
        let mut correction = Correction::new(period_ns);
        exact_ns.iter().for_each(|&lateness_ns| correction.late(lateness_ns));
        correction.of(self)
    }
}

/// Builds a corrected histogram while wake-ups still arrive, in bounded memory.
#[derive(Debug, Clone, Default)]
pub struct Correction {
    period_ns: u64,
    /// Late wake-ups with known exact lateness, as counted in the raw histogram.
    known: Histogram,
    /// The same wake-ups with the deadlines that they omitted.
    expanded: Histogram,
}

impl Correction {
    /// Creates a correction for deadlines `period_ns` apart.
    #[must_use]
    pub fn new(period_ns: u64) -> Self {
        Self { period_ns, ..Self::default() }
    }

    /// Adds the exact lateness of a wake-up that is, or will be, in the raw histogram.
    pub fn late(&mut self, lateness_ns: i64) {
        self.known.record(lateness_ns);
        self.expanded.record_with_omitted(lateness_ns, self.period_ns);
    }

    /// Returns the corrected form of `raw`. Wake-ups that were not added are expanded from their bucket's value. Those
    /// in the bucket that contains the period omitted no deadline, because all late ones were added.
    #[must_use]
    pub fn of(&self, raw: &Histogram) -> Histogram {
        let mut corrected = raw.clone();
        self.known.iter().for_each(|(lateness_ns, count)| corrected.take_away(lateness_ns, count));
        // Also those buckets below the period whose highest value is above it.
        let period_ns = i64::try_from(self.period_ns).unwrap_or(i64::MAX);
        for (&lateness_ns, &count) in raw.counts.range(period_ns.max(1)..) {
            let unknown = count.saturating_sub(self.known.counts.get(&lateness_ns).copied().unwrap_or(0));
            if layout::lowest_in(layout::index_of(lateness_ns.unsigned_abs())) >= self.period_ns {
                corrected.take_away(lateness_ns, unknown);
                corrected.add_with_omitted(lateness_ns, self.period_ns, unknown);
            }
        }
        corrected.merge(&self.expanded);
        corrected
    }
}

/// Returns the value that names the bucket of `value_ns`: its value farthest from zero.
fn bucket_of(value_ns: i64) -> i64 {
    let highest = layout::highest_in(layout::index_of(value_ns.unsigned_abs().min(i64::MAX as u64))).cast_signed();
    if value_ns < 0 { -highest } else { highest }
}

/// Returns the number of the bucket of `value_ns`; negative for a negative value.
#[expect(clippy::cast_possible_wrap, reason = "below 2^16, see `layout::index_of`")]
fn number_of(value_ns: i64) -> i64 {
    let index = layout::index_of(value_ns.unsigned_abs().min(i64::MAX as u64)) as i64;
    if value_ns < 0 { -index } else { index }
}

/// Returns the value that names a bucket; `None` if there is no bucket with this number.
fn value_of(number: i64) -> Option<i64> {
    if number.unsigned_abs() > number_of(i64::MAX).unsigned_abs() {
        return None;
    }
    let highest = layout::highest_in(usize::try_from(number.unsigned_abs()).ok()?).cast_signed();
    Some(if number < 0 { -highest } else { highest })
}

impl TryFrom<HistogramJson> for Histogram {
    type Error = HistogramError;

    fn try_from(wire: HistogramJson) -> Result<Self, HistogramError> {
        let mut total: u64 = 0;
        // The counts of a record can be damaged.
        let mut count_in = |count: u64| -> Result<(), HistogramError> {
            total = total.checked_add(count).ok_or(HistogramError::TooManyCounts)?;
            Ok(())
        };
        if let Some(buckets) = wire.buckets {
            let mut histogram = Self::default();
            for (value_ns, count) in buckets {
                count_in(count)?;
                histogram.add(value_ns, count);
            }
            return Ok(histogram);
        }
        let mut ascending = Vec::new();
        let mut number = wire.first.unwrap_or(0);
        for count in wire.counts.ok_or(HistogramError::Missing)? {
            let step = match u64::try_from(count) {
                Ok(count) => {
                    let value_ns = value_of(number).ok_or(HistogramError::BeyondLastBucket)?;
                    count_in(count)?;
                    ascending.push((value_ns, count));
                    1
                }
                Err(_) => count.checked_neg().ok_or(HistogramError::BeyondLastBucket)?,
            };
            number = number.checked_add(step).ok_or(HistogramError::BeyondLastBucket)?;
        }
        Ok(Self::from_buckets(ascending.into_iter()))
    }
}

impl From<Histogram> for HistogramJson {
    fn from(histogram: Histogram) -> Self {
        let first = histogram.counts.first_key_value().map_or(0, |(&value_ns, _)| number_of(value_ns));
        let (mut counts, mut next) = (Vec::new(), first);
        for (value_ns, count) in histogram.iter() {
            let number = number_of(value_ns);
            if number > next {
                counts.push(next - number);
            }
            let Ok(count) = i64::try_from(count) else {
                // No run counts that far, but no count may be changed silently.
                let buckets = Some(histogram.iter().collect());
                return Self { first: None, counts: None, buckets };
            };
            counts.push(count);
            next = number + 1;
        }
        Self { first: Some(first), counts: Some(counts), buckets: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(values: &[i64]) -> Histogram {
        let mut h = Histogram::default();
        values.iter().for_each(|&v| h.record(v));
        h
    }

    #[test]
    fn merged_counts_are_those_of_both() {
        let of = |values: &[(i64, u64)]| {
            let mut histogram = Histogram::default();
            values.iter().for_each(|&(value_ns, count)| histogram.add(value_ns, count));
            histogram
        };
        let (a, b) = ([(-70, 1), (5, 2), (900_000, 3)], [(-80, 1), (-70, 4), (6, 5), (900_000, 6), (7_000_000, 7)]);
        let mut merged = of(&a);
        merged.merge(&of(&b));
        assert_eq!(merged, of(&[a.as_slice(), &b].concat()));
        merged.merge(&Histogram::default());
        assert_eq!(merged.total(), 29);
    }

    #[test]
    fn the_width_of_cells_is_never_too_small() {
        let of = |cells: &[i64]| {
            let mut histogram = Histogram::default();
            cells.iter().for_each(|value_ns| histogram.add(*value_ns, 1));
            histogram.cell_width_ns()
        };
        assert_eq!((of(&[]), of(&[5_000]), of(&[100, 101])), (None, None, Some(2)));
        for (first_us, widest) in [(3, 1_010), (60, 1_080), (100, 1_200), (300, 1_600), (900, 2_100)] {
            for us in [1, 3, 10] {
                let cells: Vec<i64> = (0..40).map(|cell| (first_us + cell * us) * 1_000).collect();
                let width = of(&cells).unwrap();
                assert!((us * 1_000..us * widest).contains(&width), "{first_us} us, cells of {us} us: {width} ns");
                let early: Vec<i64> = cells.iter().map(|value_ns| -value_ns).collect();
                assert!(of(&early).unwrap() >= us * 1_000, "early ones");
            }
        }
    }

    #[test]
    fn a_stall_of_one_second_counts_for_a_thousand_deadlines() {
        let mut raw = of(&[]);
        raw.add(5_000, 3000);
        raw.record(1_000_400_000);
        let corrected = raw.corrected(&[1_000_400_000], 1_000_000);
        assert_eq!(corrected.total(), 3001 + 1000);
        assert_eq!(raw.percentile(99.0), Some(bucket_of(5_000)));
        assert!(corrected.percentile(99.0) > Some(900_000_000));
    }

    #[test]
    fn a_wake_up_just_before_the_next_deadline_omits_none() {
        let raw = of(&[199_950, 200_010]);
        assert_eq!(raw.iter().count(), 1, "both are in one bucket");
        assert_eq!(raw.corrected(&[200_010], 200_000).total(), 2 + 1);
    }

    #[test]
    fn a_percentile_has_a_whole_rank() {
        for (total, percent, expected) in [
            (20_000, 99.9, 19_980),
            (20_000, 99.0, 19_800),
            (1_000_000, 99.9999, 999_999),
            (10, 99.9, 10),
            (0, 50.0, 1),
        ] {
            assert_eq!(rank(total, percent), expected, "{percent} % of {total}");
        }
        assert_eq!(rank(u64::MAX, 100.0), u64::MAX);
        let mut late = Histogram::default();
        late.add(1_000, 19_980);
        late.add(2_000_000, 20);
        assert_eq!((late.percentile(99.9), late.percentile(99.91)), (Some(1_000), Some(bucket_of(2_000_000))));
        assert_eq!((late.percentile_below_max(99.99).is_some(), late.percentile_below_max(99.999)), (true, None));
    }

    #[test]
    fn keeps_negative_values() {
        let h = of(&[-500, -3, 0, 7]);
        assert_eq!(h.iter().map(|(v, _)| v).collect::<Vec<_>>(), [-500, -3, 0, 7]);
        assert_eq!(h.corrected(&[], 10).total(), 4);
    }

    #[test]
    fn an_empty_histogram_has_no_percentile() {
        assert_eq!(Histogram::default().percentile(50.0), None);
    }

    fn read(json: &str) -> Result<Histogram, String> {
        serde_json::from_str(json).map_err(|error| error.to_string())
    }

    #[test]
    fn writes_counts_of_neighbouring_buckets_in_a_row() {
        let json = serde_json::to_string(&of(&[-2, -2, 0, 1, 1, 1, 5, 2048])).unwrap();
        assert_eq!(json, r#"{"first":-2,"counts":[2,-1,1,3,-3,1,-2042,1]}"#);
        assert_eq!(serde_json::to_string(&of(&[])).unwrap(), r#"{"first":0,"counts":[]}"#);
    }

    #[test]
    fn reads_the_buckets_of_older_versions() {
        let older = read(r#"{"buckets":[[-2,2],[0,1],[1,3],[5,1],[2049,1]]}"#).unwrap();
        assert_eq!(older, of(&[-2, -2, 0, 1, 1, 1, 5, 2048]));
        assert_eq!(read(r#"{"buckets":[]}"#).unwrap(), of(&[]));
    }

    #[test]
    fn refuses_counts_that_cannot_be_real() {
        for (json, problem) in [
            ("{}", "neither `counts` nor `buckets`"),
            (r#"{"first":99999,"counts":[1]}"#, "beyond its last bucket"),
            (r#"{"first":-99999,"counts":[1]}"#, "beyond its last bucket"),
            (r#"{"first":9223372036854775807,"counts":[-9223372036854775807,1]}"#, "beyond its last bucket"),
            (r#"{"first":0,"counts":[-9223372036854775808,1]}"#, "beyond its last bucket"),
            (r#"{"first":0,"counts":[9223372036854775807,9223372036854775807,2]}"#, "more than 2^64"),
            (r#"{"buckets":[[1,18446744073709551615],[2,1]]}"#, "more than 2^64"),
        ] {
            let error = read(json).unwrap_err();
            assert!(error.contains(problem), "{json}: {error}");
        }
    }

    proptest! {
        #[test]
        fn json_round_trip(
            values in prop::collection::vec((any::<i64>(), 0..64_u32, 1..1_u64 << 57), 0..100),
            last in any::<u64>(),
        ) {
            let mut h = Histogram::default();
            values.iter().for_each(|&(value, bits, count)| h.add((value >> bits).max(-i64::MAX), count));
            h.add(1 << 40, last.saturating_sub(h.total()));
            let json = serde_json::to_string(&h).unwrap();
            prop_assert_eq!(serde_json::from_str::<Histogram>(&json).unwrap(), h);
        }

        #[test]
        fn percentiles_agree_with_hdrhistogram(values in prop::collection::vec(0..10_000_000_000i64, 1..500), p in 0.0..100.0f64) {
            let h = of(&values);
            let mut peer = hdrhistogram::Histogram::<u64>::new_with_bounds(1, 20_000_000_000, 3).unwrap();
            values.iter().for_each(|&v| peer.record(v.cast_unsigned()).unwrap());
            prop_assert_eq!(h.percentile(p).unwrap().cast_unsigned(), peer.value_at_percentile(p));
        }

        #[test]
        fn coarse_buckets_keep_all_counts_and_never_lower_a_percentile(
            values in prop::collection::vec(-20_000_000..10_000_000_000i64, 1..300),
            p in 0.0..100.0f64,
        ) {
            let (fine, coarse) = (of(&values), of(&values).coarse());
            prop_assert_eq!(coarse.total(), fine.total());
            prop_assert!(coarse.coarse() == coarse);
            let (exact, rounded) = (fine.percentile(p).unwrap(), coarse.percentile(p).unwrap());
            prop_assert!(exact.abs() <= rounded.abs() && rounded.abs() <= exact.abs() + exact.abs() / 16);
        }

        #[test]
        fn correction_counts_every_deadline(values in prop::collection::vec(0..50_000_000i64, 0..50), period in 10_000..5_000_000u64) {
            let missed: u64 = values.iter().map(|&v| v.cast_unsigned() / period).sum();
            prop_assert_eq!(of(&values).corrected(&values, period).total(), values.len() as u64 + missed);
        }

        #[test]
        fn correction_equals_the_plain_loop(lateness in 0..100_000_000i64, period in 20_000..5_000_000u64) {
            let mut plain = Histogram::default();
            let mut rest = lateness;
            while rest >= 0 {
                plain.record(rest);
                rest -= period.cast_signed();
            }
            prop_assert_eq!(of(&[lateness]).corrected(&[lateness], period), plain);
        }
    }
}
