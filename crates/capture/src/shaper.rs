//! Checks a stream against its reserved bandwidth with the credit of a credit-based shaper, IEEE Std 802.1Q 8.6.8.2.
//!
//! The credit rises with the idle slope while nothing is sent, and falls with the send slope during a frame. A frame
//! may start only if the credit is not negative. The waiting time of a frame is not visible on the wire, so the credit
//! may always rise to the maximum caused by interfering frames (Annex L): one of other traffic, and for class B also those
//! of class A. A frame that starts too early is counted, and the credit is reset so that it counts once.

use record::saturating::Saturating;

use crate::convert::signed;

/// The longest interfering frame with FCS, preamble and gap, bytes.
const INTERFERENCE_BYTES: f64 = 1542.0;
/// The part of the link that classes A and B together can reserve, IEEE Std 802.1Q, 34.3.1 (deltaBandwidth).
const RESERVED_MOST: f64 = 0.75;

/// An ideal shaper. Rates in bit/s, credit in bits.
pub(crate) struct Shaper {
    idle_slope: f64,
    link: f64,
    /// The time of a bit on the link, s.
    bit_s: f64,
    max_credit: f64,
    /// Negative credit that is tolerated because of the timestamp resolution.
    slack: f64,
    credit: f64,
    free_ns: i64,
    pub(crate) violations: u64,
    pub(crate) lowest: f64,
}

impl Shaper {
    /// A shaper with rates `idle_slope` and `link` for timestamps with an error of up to `slack_ns`. `after_class_a` is true
    /// for a stream of class B.
    pub(crate) fn new(idle_slope: f64, link: u64, slack_ns: u64, after_class_a: bool) -> Self {
        let (link, slack) = (link as f64, slack_ns as f64 * 1e-9 * idle_slope);
        let frame_bits = INTERFERENCE_BYTES * 8.0;
        // While another frame is sent, class A gains credit; then it sends until that is used up, and one more frame. Its
        // own idle slope is not known: it is what class B leaves.
        let class_a = (RESERVED_MOST * link - idle_slope).max(0.0);
        let blocked_s =
            if after_class_a { frame_bits / (link - class_a) + frame_bits / link } else { frame_bits / link };
        let max_credit = idle_slope * blocked_s;
        Self {
            idle_slope,
            link,
            bit_s: link.recip(),
            max_credit,
            slack,
            credit: 0.0,
            free_ns: i64::MIN,
            violations: 0,
            lowest: 0.0,
        }
    }

    /// Starts again at the next frame.
    pub(crate) fn restart(&mut self) {
        (self.credit, self.free_ns) = (0.0, i64::MIN);
    }

    /// Adds a frame of `wire_bytes` that starts at `at_ns`.
    #[inline]
    pub(crate) fn add(&mut self, at_ns: i64, wire_bytes: usize) {
        let waited_ns = at_ns.minus(self.free_ns);
        let credit = self.credit + waited_ns as f64 * 1e-9 * self.idle_slope;
        self.credit = if credit < self.max_credit { credit } else { self.max_credit };
        if self.credit < -self.slack {
            self.violations += 1;
            self.lowest = self.lowest.min(self.credit);
            self.credit = 0.0;
        }
        let bits = signed(wire_bytes) as f64 * 8.0;
        let duration_s = bits * self.bit_s;
        self.credit -= (self.link - self.idle_slope) * duration_s;
        #[expect(clippy::cast_possible_truncation, reason = "rounded down; the cast saturates")]
        let duration_ns = (duration_s * 1e9) as i64;
        self.free_ns = at_ns.plus(duration_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Frames of 84 bytes, without a pause, until the first that is too early.
    fn burst(after_class_a: bool) -> u64 {
        let mut shaper = Shaper::new(10e6, 100_000_000, 0, after_class_a);
        let frame_ns = 84 * 8 * 10;
        (0..)
            .find(|n| {
                shaper.add(1_000_000 + n * frame_ns, 84);
                shaper.violations > 0
            })
            .unwrap()
            .cast_unsigned()
    }

    #[test]
    fn class_b_may_also_have_waited_for_class_a() {
        // A frame uses 90 % of its 672 bits. One frame of 1542 bytes gives 10 % of 12,336 bits, three frames; with class A
        // at 65 Mbit/s the wait is 352 us + 123 us, which gives 4758 bits, eight frames.
        assert_eq!([burst(false), burst(true)], [3, 8]);
    }
}
