//! Whether a stream keeps to its reserved bandwidth: the credit of a credit-based shaper, IEEE Std 802.1Q 8.6.8.2.
//!
//! The credit rises with the idle slope while nothing is sent and falls with the send slope during a frame. A frame may
//! begin while it is not negative. How long a frame waited cannot be seen on the wire, so the credit may always rise to
//! what waiting for one frame of full length gives (Annex L); a frame that began too early is counted, and its debt is
//! forgiven, so that it is counted once.

/// The longest frame with check sequence, preamble and gap, bytes: what a frame may have to wait for.
const INTERFERENCE_BYTES: f64 = 1542.0;

/// A shaper as it should be. Rates in bits a second, credit in bits.
pub(crate) struct Shaper {
    idle_slope: f64,
    link: f64,
    /// So much less than no credit is still none: what the stamps cannot tell.
    slack: f64,
    credit: f64,
    free_ns: i64,
    pub(crate) violations: u64,
    pub(crate) lowest: f64,
}

impl Shaper {
    /// A shaper of `idle_slope` and `link` bits a second for stamps that are right within `slack_ns`.
    pub(crate) fn new(idle_slope: f64, link: u64, slack_ns: u64) -> Self {
        let slack = slack_ns as f64 * 1e-9 * idle_slope;
        Self { idle_slope, link: link as f64, slack, credit: 0.0, free_ns: i64::MIN, violations: 0, lowest: 0.0 }
    }

    /// Takes in a frame that takes `wire_bytes` and begins at `at_ns`.
    #[inline]
    pub(crate) fn take_in(&mut self, at_ns: i64, wire_bytes: u64) {
        let most = INTERFERENCE_BYTES * 8.0 * self.idle_slope / self.link;
        let waited_ns = at_ns.saturating_sub(self.free_ns);
        self.credit = (self.credit + waited_ns as f64 * 1e-9 * self.idle_slope).min(most);
        if self.credit < -self.slack {
            self.violations += 1;
            self.lowest = self.lowest.min(self.credit);
            self.credit = 0.0;
        }
        let bits = wire_bytes as f64 * 8.0;
        let takes = bits / self.link;
        self.credit -= (self.link - self.idle_slope) * takes;
        self.free_ns = at_ns.saturating_add((takes * 1e9) as i64);
    }
}
