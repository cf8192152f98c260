//! Delay variation between two clocks that are not synchronised: how much longer each frame took than the fastest one
//! around the same time.
//!
//! The time from a reading of one clock to a reading of another includes an unknown constant and their drift. Both are
//! removed per window with the line below all points that is nearest to them: the edge of the lower convex hull at the
//! mean time (S. Moon, P. Skelly, D. Towsley, "Estimation and Removal of Clock Skew from Network Delay Measurements",
//! INFOCOM 1999). The drift changes with temperature, so one line is not enough for a long run.

use record::Histogram;

/// The longest window, ns.
pub const WINDOW_NS: i64 = 10_000_000_000;
/// A window shorter than this is too short to estimate the drift, ns; the drift of the window before is used.
const SHORT_NS: i64 = 1_000_000_000;
/// Largest number of frames in a window: 16 MiB.
const FRAMES: usize = 1 << 20;

/// Delays between two clocks.
#[derive(Debug, Clone, Default)]
pub struct Variation {
    /// Time and delay of the first frame of the window. All others are relative to it, so that nothing overflows.
    origin: (i64, i64),
    /// Time and delay of each frame.
    points: Vec<(i64, i64)>,
    slope: Option<f64>,
    /// Sums of slope times length, and of lengths, of all windows with an estimated slope.
    drifted: (f64, f64),
    /// Additional time of each frame compared with the fastest, ns.
    pub longer: Histogram,
}

impl Variation {
    /// Adds a frame sent at `sent_ns` of one clock and received at `received_ns` of the other.
    pub fn add(&mut self, sent_ns: i64, received_ns: i64) {
        let delay_ns = received_ns.wrapping_sub(sent_ns);
        if self.points.is_empty() {
            self.origin = (sent_ns, delay_ns);
        }
        let point = (sent_ns.wrapping_sub(self.origin.0), delay_ns.wrapping_sub(self.origin.1));
        if point.0 >= WINDOW_NS || self.points.len() >= FRAMES {
            self.close();
            return self.add(sent_ns, received_ns);
        }
        self.points.push(point);
    }

    /// Ends the window. Must be called at the end, and when the talker restarts.
    pub fn close(&mut self) {
        let mut points = std::mem::take(&mut self.points);
        // Frames may have arrived out of order.
        points.sort_unstable();
        let (Some(first), Some(last)) = (points.first(), points.last()) else { return };
        let length_ns = last.0 - first.0;
        let line = match self.slope.filter(|_| length_ns < SHORT_NS) {
            Some(slope) => Line::below(&points, slope),
            None => Line::along(&points),
        };
        if length_ns >= SHORT_NS {
            self.slope = Some(line.slope);
            self.drifted.0 += line.slope * length_ns as f64;
            self.drifted.1 += length_ns as f64;
        }
        #[expect(clippy::cast_possible_truncation, reason = "a delay in ns; saturates")]
        points.iter().for_each(|&point| self.longer.record(line.above(point).round() as i64));
    }

    /// Rate of the second clock relative to the first, minus 1, parts per billion; 0 until a window was long enough.
    #[expect(clippy::cast_possible_truncation, reason = "far below 2^63; saturates")]
    pub fn drift_ppb(&self) -> i64 {
        if self.drifted.1 > 0.0 { (self.drifted.0 / self.drifted.1 * 1e9).round() as i64 } else { 0 }
    }
}

/// A line below points.
#[derive(Debug, Clone, Copy)]
struct Line {
    through: (i64, i64),
    slope: f64,
}

impl Line {
    /// The edge of the lower convex hull at the mean time of `points`, which must be sorted and not empty.
    fn along(points: &[(i64, i64)]) -> Self {
        let mean = points.iter().map(|point| i128::from(point.0)).sum::<i128>() / points.len() as i128;
        let hull = lower_hull(points);
        let after = hull.iter().position(|point| i128::from(point.0) >= mean).unwrap_or_default().max(1);
        match hull.get(after) {
            Some(&end) => {
                let begin = hull[after - 1];
                Self { through: begin, slope: (end.1 - begin.1) as f64 / (end.0 - begin.0) as f64 }
            }
            None => Self { through: hull[0], slope: 0.0 },
        }
    }

    /// The highest line with this slope below all `points`, which must not be empty.
    fn below(points: &[(i64, i64)], slope: f64) -> Self {
        let flat = Self { through: points[0], slope };
        let lowest = points.iter().min_by(|a, b| flat.above(**a).total_cmp(&flat.above(**b)));
        Self { through: lowest.copied().unwrap_or(points[0]), slope }
    }

    /// Distance of a point above the line.
    fn above(&self, point: (i64, i64)) -> f64 {
        (point.1 - self.through.1) as f64 - self.slope * (point.0 - self.through.0) as f64
    }
}

/// The lower convex hull of sorted points, from left to right, with each time once.
fn lower_hull(points: &[(i64, i64)]) -> Vec<(i64, i64)> {
    let mut hull: Vec<(i64, i64)> = Vec::new();
    for &point in points {
        if hull.last().is_some_and(|last| last.0 == point.0) {
            // The points are sorted, so the lower one came first.
            continue;
        }
        while let [.., before, last] = hull[..] {
            let turn = i128::from(last.0 - before.0) * i128::from(point.1 - before.1)
                - i128::from(last.1 - before.1) * i128::from(point.0 - before.0);
            if turn > 0 {
                break;
            }
            hull.pop();
        }
        hull.push(point);
    }
    hull
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The delays of frames every 125 us for `seconds`, with clocks that drift by `ppm`; `delay_ns` returns each delay.
    #[expect(clippy::cast_possible_truncation, reason = "at most some seconds in ns")]
    fn delays(seconds: i64, ppm: f64, delay_ns: impl Fn(i64) -> i64) -> Variation {
        let mut variation = Variation::default();
        for n in 0..seconds * 8_000 {
            let sent_ns = 77_000_000_000 + n * 125_000;
            let drifted_ns = (n as f64 * 125_000.0 * ppm / 1e6).round() as i64;
            variation.add(sent_ns, sent_ns + 1_000_000_000_000 + drifted_ns + delay_ns(n));
        }
        variation.close();
        variation
    }

    #[test]
    fn finds_delays_with_drifting_clocks() {
        for ppm in [0.0, 35.0, -120.0] {
            // Every tenth frame is the fastest; each 100th is 400 us late.
            let delay_ns = |n: i64| 20_000 + (n % 10) * 3_000 + if n % 100 == 7 { 400_000 } else { 0 };
            let variation = delays(25, ppm, delay_ns);
            let longer = &variation.longer;
            assert_eq!(longer.total(), 25 * 8_000);
            assert!((variation.drift_ppb() as f64 - ppm * 1e3).abs() < 20.0, "{ppm}: {}", variation.drift_ppb());
            // Only rounding to ns and to buckets of three digits is lost.
            let near = |percent: f64, ns: i64| {
                let found = longer.percentile(percent).unwrap();
                assert!((found - ns).abs() <= 30, "{ppm} ppm, p{percent}: {found} instead of {ns}");
            };
            near(5.0, 0);
            near(95.0, 27_000);
            assert_eq!(longer.count_above(300_000), 25 * 80);
            assert!(longer.percentile(100.0).unwrap() - 421_000 < 500);
        }
    }

    #[test]
    fn a_short_last_window_uses_the_drift_of_the_window_before() {
        // In the last half second the delay grows, which a drift estimated from it would hide.
        let delay_ns = |n: i64| if n < 80_000 { 1_000 } else { 1_000 + (n - 80_000) };
        let mut variation = delays(10, 50.0, delay_ns);
        for n in 80_000..84_000 {
            let sent_ns = 77_000_000_000 + n * 125_000;
            variation.add(sent_ns, sent_ns + 1_000_000_000_000 + n * 125_000 / 20_000 + delay_ns(n));
        }
        variation.close();
        assert_eq!(variation.longer.total(), 84_000);
        assert!((3_990..=4_010).contains(&variation.longer.percentile(100.0).unwrap()));
    }

    #[test]
    fn handles_few_frames_and_extreme_clocks() {
        let mut variation = Variation::default();
        variation.close();
        assert_eq!((variation.longer.total(), variation.drift_ppb()), (0, 0));
        for (sent_ns, received_ns) in [(i64::MAX, i64::MIN), (i64::MIN, i64::MAX), (0, 0), (0, 0)] {
            variation.add(sent_ns, received_ns);
            variation.close();
        }
        assert_eq!(variation.longer.total(), 4);
    }

    proptest! {
        #[test]
        fn no_frame_is_faster_than_the_fastest(
            delays_ns in prop::collection::vec(0..50_000_000i64, 1..200),
            ppm in -200..200i64,
            period_ns in 1..200_000_000i64,
        ) {
            let mut variation = Variation::default();
            for (n, delay_ns) in (0..).zip(&delays_ns) {
                let sent_ns = n * period_ns;
                variation.add(sent_ns, sent_ns + sent_ns / 1_000_000 * ppm + delay_ns);
            }
            variation.close();
            prop_assert_eq!(variation.longer.total(), delays_ns.len() as u64);
            prop_assert!(variation.longer.iter().all(|(ns, _)| ns >= 0));
        }
    }
}
