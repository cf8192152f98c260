//! Checks a stream against its reserved bandwidth with the credit of a credit-based shaper, IEEE Std 802.1Q 8.6.8.2.
//!
//! The credit rises with the idle slope while nothing is sent, and falls with the send slope during a frame. A frame
//! may start only if the credit is not negative. The waiting time of a frame is not visible on the wire, so the credit
//! may always rise to the maximum caused by one interfering frame (Annex L). A frame that starts too early is counted,
//! and the credit is reset so that it counts once.

/// The longest interfering frame with FCS, preamble and gap, bytes.
const INTERFERENCE_BYTES: f64 = 1542.0;

/// An ideal shaper. Rates in bit/s, credit in bits.
pub(crate) struct Shaper {
    idle_slope: f64,
    link: f64,
    /// Negative credit that is tolerated because of the timestamp resolution.
    slack: f64,
    credit: f64,
    free_ns: i64,
    pub(crate) violations: u64,
    pub(crate) lowest: f64,
}

impl Shaper {
    /// A shaper with rates `idle_slope` and `link` for timestamps with an error of up to `slack_ns`.
    pub(crate) fn new(idle_slope: f64, link: u64, slack_ns: u64) -> Self {
        let slack = slack_ns as f64 * 1e-9 * idle_slope;
        Self { idle_slope, link: link as f64, slack, credit: 0.0, free_ns: i64::MIN, violations: 0, lowest: 0.0 }
    }

    /// Adds a frame of `wire_bytes` that starts at `at_ns`.
    #[inline]
    pub(crate) fn add(&mut self, at_ns: i64, wire_bytes: u64) {
        let max_credit = INTERFERENCE_BYTES * 8.0 * self.idle_slope / self.link;
        let waited_ns = at_ns.saturating_sub(self.free_ns);
        self.credit = (self.credit + waited_ns as f64 * 1e-9 * self.idle_slope).min(max_credit);
        if self.credit < -self.slack {
            self.violations += 1;
            self.lowest = self.lowest.min(self.credit);
            self.credit = 0.0;
        }
        let bits = wire_bytes as f64 * 8.0;
        let duration_s = bits / self.link;
        self.credit -= (self.link - self.idle_slope) * duration_s;
        #[expect(clippy::cast_possible_truncation, reason = "rounded down; the cast saturates")]
        let duration_ns = (duration_s * 1e9) as i64;
        self.free_ns = at_ns.saturating_add(duration_ns);
    }
}
