//! The badness of a run, computed from the figures that suit the measurement.

use std::cmp::Ordering;

use record::{Measured, RoleResult, ScenarioResult};

/// A time below this counts as this, in periods: smaller differences do not matter to a thread with this period.
pub(super) const LEAST_PERIODS: f64 = 0.01;

/// The badness of a run, compared field by field in this order. A missing frame is worse than any late one.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Badness {
    /// Lost datagrams or frames and slots without one, as a share of all, 0 to 1; 0 for threads alone.
    pub lost: f64,
    /// Late packets or xruns, as a share of all, 0 to 1.
    pub late: f64,
    /// The largest time as a multiple of the period, or in ns without a period. For a listener or a capture, the excess
    /// of a gap over the period.
    pub periods: f64,
}

impl Badness {
    /// The badness of the worst role.
    #[must_use]
    pub fn of(result: &ScenarioResult) -> Self {
        result.roles.iter().map(Self::of_role).fold(Self::default(), Self::worse)
    }

    /// The badness of one role.
    #[must_use]
    pub fn of_role(role: &RoleResult) -> Self {
        let share = |count: u64, of: u64| count as f64 / of.max(1) as f64;
        let lost = role.lost.unwrap_or(0);
        let max_ns = role.max_ns.unwrap_or(0) as f64;
        let periods = max_ns / role.period_ns.max(1) as f64;
        match role.measured {
            // Missed deadlines are already included in the lateness.
            Measured::Lateness | Measured::Gap => Self { periods, ..Self::default() },
            Measured::RoundTrip | Measured::SendLateness => {
                let absent = lost + role.missed;
                let late = share(role.late.unwrap_or(0), role.samples);
                Self { lost: share(absent, role.samples + absent), late, periods }
            }
            // Lost periods are a consequence of xruns.
            Measured::Completion => {
                Self { late: share(role.late.unwrap_or(0), role.samples), periods, ..Self::default() }
            }
            Measured::FrameGap | Measured::Spacing => {
                let late = share(role.late.unwrap_or(0), role.samples);
                Self { lost: share(lost, role.samples + lost), periods: (periods - 1.0).max(0.0), late }
            }
        }
    }

    /// The same with the time as a multiple of `least`.
    #[must_use]
    pub fn relative_to(self, least: f64) -> Self {
        Self { periods: self.periods.max(LEAST_PERIODS) / least, ..self }
    }

    /// Returns `Greater` if `self` is worse.
    #[must_use]
    pub fn compare(&self, other: &Self) -> Ordering {
        let by_late = || self.late.total_cmp(&other.late);
        self.lost.total_cmp(&other.lost).then_with(by_late).then_with(|| self.periods.total_cmp(&other.periods))
    }

    /// The worse of two.
    #[must_use]
    pub fn worse(self, other: Self) -> Self {
        if other.compare(&self).is_gt() { other } else { self }
    }

    /// The better of two.
    #[must_use]
    pub fn better(self, other: Self) -> Self {
        if other.compare(&self).is_lt() { other } else { self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn role(measured: Measured, samples: u64, missed: u64, max_ns: i64) -> RoleResult {
        RoleResult { measured, samples, missed, max_ns: Some(max_ns), period_ns: 1_000, ..RoleResult::default() }
    }

    #[test]
    fn compares_losses_then_late_packets_then_times() {
        let trip = |lost, max_ns| {
            let role = RoleResult { lost: Some(lost), ..role(Measured::RoundTrip, 99, 0, max_ns) };
            Badness::of_role(&role)
        };
        assert!(trip(1, 100).compare(&trip(0, 900_000)).is_gt());
        assert!(trip(0, 100).compare(&trip(0, 90)).is_gt());
        assert_eq!(trip(1, 100).lost, 0.01);
        let sent = |missed, late, max_ns| {
            let role = RoleResult { late: Some(late), ..role(Measured::SendLateness, 99, missed, max_ns) };
            Badness::of_role(&role)
        };
        assert!(sent(1, 0, 10).compare(&sent(0, 50, 900)).is_gt());
        assert!(sent(0, 2, 10).compare(&sent(0, 1, 900)).is_gt());
        let received = RoleResult { lost: Some(0), ..role(Measured::FrameGap, 99, 0, 1_700) };
        assert_eq!(Badness::of_role(&received).periods, 0.7);
    }

    #[test]
    fn lateness_includes_missed_deadlines() {
        assert_eq!(
            Badness::of_role(&role(Measured::Lateness, 99, 5, 5_000)),
            Badness { periods: 5.0, ..Badness::default() }
        );
    }
}
