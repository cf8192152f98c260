//! How bad a run was, by what fits what was measured.

use std::cmp::Ordering;

use record::{Measured, RoleResult, ScenarioResult};

/// How bad a run was: the first that differs decides. What never came is worse than what came late, however late.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Badness {
    /// Datagrams or frames that never came, and slots in which none was sent; a share of all, 0 to 1. 0 for threads alone.
    pub lost: f64,
    /// Late packets or xruns, a share of all, 0 to 1.
    pub late: f64,
    /// The largest time as a multiple of the period, or in ns where there is none; of a listener or a capture what a gap was
    /// longer than the period.
    pub periods: f64,
}

impl Badness {
    /// That of the worst role.
    #[must_use]
    pub fn of(result: &ScenarioResult) -> Self {
        result.roles.iter().map(Self::of_role).fold(Self::default(), Self::worse)
    }

    /// That of one role.
    #[must_use]
    pub fn of_role(role: &RoleResult) -> Self {
        let share = |count: u64, of: u64| count as f64 / of.max(1) as f64;
        let lost = role.lost.unwrap_or(0);
        let max_ns = role.max_ns.unwrap_or(0) as f64;
        let periods = max_ns / role.period_ns.max(1) as f64;
        match role.measured {
            // Deadlines that were missed are in the lateness already.
            Measured::Lateness | Measured::Gap => Self { periods, ..Self::default() },
            Measured::RoundTrip | Measured::SendLateness => {
                let absent = lost + role.missed;
                let late = share(role.late.unwrap_or(0), role.samples);
                Self { lost: share(absent, role.samples + absent), late, periods }
            }
            // What is lost follows from xruns.
            Measured::Completion => {
                Self { late: share(role.late.unwrap_or(0), role.samples), periods, ..Self::default() }
            }
            Measured::FrameGap | Measured::Spacing => {
                let late = share(role.late.unwrap_or(0), role.samples);
                Self { lost: share(lost, role.samples + lost), periods: (periods - 1.0).max(0.0), late }
            }
        }
    }

    /// `Greater` when this is the worse.
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
    fn losses_come_first_then_late_packets_then_the_largest_time() {
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
        let came = RoleResult { lost: Some(0), ..role(Measured::FrameGap, 99, 0, 1_700) };
        assert_eq!(Badness::of_role(&came).periods, 0.7);
    }

    #[test]
    fn missed_deadlines_of_threads_are_in_their_lateness() {
        assert_eq!(
            Badness::of_role(&role(Measured::Lateness, 99, 5, 5_000)),
            Badness { periods: 5.0, ..Badness::default() }
        );
    }
}
