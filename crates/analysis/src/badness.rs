//! The badness of a run, computed from the figures that suit the measurement, and the one rule for whether one of several
//! candidates is the best: the pairs of CPUs of a matrix, and the columns of a campaign.

use std::cmp::Ordering;

use record::{Measured, RoleResult, ScenarioResult};

/// A time below this counts as this, in periods: smaller differences do not matter to a thread with this period.
pub(crate) const LEAST_PERIODS: f64 = 0.01;

/// The badness of a run, compared field by field in this order. A missing frame or a missed deadline is worse than any
/// late one.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Badness {
    /// True if the late frames of a capture are not known. Such a run is not the best one, and no other one beats it.
    pub unknown: bool,
    /// Deadlines, answers, interrupts, datagrams and frames that never came, as a share of all, 0 to 1.
    pub lost: f64,
    /// Late frames or xruns, as a share of all, 0 to 1.
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
        let absent = role.absent();
        let lost = share(absent, role.samples.saturating_add(absent));
        let max_ns = role.max_ns.unwrap_or(0) as f64;
        let periods = max_ns / role.period_ns.max(1) as f64;
        match role.measured {
            Measured::Lateness => Self { lost, periods, ..Self::default() },
            Measured::Gap => Self { periods, ..Self::default() },
            Measured::RoundTrip | Measured::SendLateness | Measured::Response => {
                let late = share(role.late.unwrap_or(0), role.samples);
                Self { lost, late, periods, unknown: false }
            }
            // Lost periods are a consequence of xruns.
            Measured::Completion => {
                Self { late: share(role.late.unwrap_or(0), role.samples), periods, ..Self::default() }
            }
            Measured::FrameGap | Measured::Spacing => {
                let late = share(role.late.unwrap_or(0), role.samples);
                let unknown = role.measured == Measured::Spacing && role.late.is_none();
                let periods = (periods - 1.0).max(0.0);
                Self { lost, periods, late, unknown }
            }
        }
    }

    /// The badness of a run with the largest time of `role`, its main one, in ns: runs of different periods are compared by
    /// that.
    #[must_use]
    pub fn by_time(result: &ScenarioResult, role: &RoleResult) -> Self {
        let periods = Self::of_role(role).periods * role.period_ns.max(1) as f64;
        Self { periods, ..Self::of(result) }
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
        let by_loss = || self.lost.total_cmp(&other.lost);
        self.unknown
            .cmp(&other.unknown)
            .then_with(by_loss)
            .then_with(by_late)
            .then_with(|| self.periods.total_cmp(&other.periods))
    }

    /// The worse of two.
    #[must_use]
    pub fn worse(self, other: Self) -> Self {
        if other.compare(&self).is_gt() { other } else { self }
    }

    /// The worst of several rounds.
    pub(crate) fn worst(rounds: &[Self]) -> Self {
        rounds.iter().copied().fold(Self::default(), Self::worse)
    }
}

/// True if each of our rounds was better than all of theirs. False with one round each, because chance could decide.
pub(crate) fn beats(ours: &[Badness], theirs: &[Badness]) -> bool {
    let worst = Badness::worst(ours);
    let is_known = !worst.unknown && !Badness::worst(theirs).unknown;
    is_known && ours.len() > 1 && theirs.len() > 1 && theirs.iter().all(|bad| bad.compare(&worst).is_gt())
}

/// The candidates that may be the best, as indices of their rounds: the one whose worst round is least bad, then those that
/// it does not beat, from the least bad to the worst. A single one is the best; several are undecided.
pub(crate) fn contenders(candidates: &[&[Badness]]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..candidates.len()).collect();
    order.sort_by(|&a, &b| Badness::worst(candidates[a]).compare(&Badness::worst(candidates[b])));
    let Some(&least) = order.first() else { return order };
    order.retain(|&other| other == least || !beats(candidates[least], candidates[other]));
    order
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
    fn a_capture_whose_lateness_is_not_known_is_neither_best_nor_beaten() {
        let capture = |late, lost, missed| {
            Badness::of_role(&RoleResult { late, lost: Some(lost), ..role(Measured::Spacing, 99, missed, 1_100) })
        };
        let (clean, bad, unknown) = (capture(Some(0), 0, 0), capture(Some(9), 9, 0), capture(None, 0, 0));
        assert_eq!(contenders(&[&[clean, clean], &[bad, bad]]), [0]);
        assert_eq!(contenders(&[&[unknown, unknown], &[bad, bad]]), [1, 0]);
        assert_eq!(contenders(&[&[unknown, unknown], &[clean, clean], &[bad, bad]]), [1, 0]);
        assert!(capture(Some(0), 0, 5).compare(&capture(Some(50), 0, 0)).is_gt(), "slots without a frame");
    }

    #[test]
    fn lost_interrupts_count_before_lateness() {
        let of = |lost, max_ns| {
            let role = role(Measured::Lateness, 99, 0, max_ns);
            Badness::of_role(&RoleResult { lost: Some(lost), ..role })
        };
        assert!(of(1, 10).compare(&of(0, 900)).is_gt());
    }

    #[test]
    fn missed_deadlines_count_before_lateness() {
        let bad = |missed, max_ns| Badness::of_role(&role(Measured::Lateness, 100 - missed, missed, max_ns));
        assert_eq!(bad(5, 5_000), Badness { lost: 0.05, periods: 5.0, ..Badness::default() });
        assert!(bad(2, 2_000).compare(&bad(1, 9_000)).is_gt());
    }

    #[test]
    fn one_candidate_is_the_best_only_if_it_beats_all_others() {
        let rounds = |periods: &[f64]| -> Vec<Badness> {
            periods.iter().map(|&periods| Badness { periods, ..Badness::default() }).collect()
        };
        let of = |all: &[&[f64]]| {
            let all: Vec<Vec<Badness>> = all.iter().map(|periods| rounds(periods)).collect();
            contenders(&all.iter().map(Vec::as_slice).collect::<Vec<_>>())
        };
        assert_eq!(of(&[&[3.0, 4.0], &[1.0, 2.0], &[5.0, 9.0]]), [1]);
        // The second worst is beaten, but not the worst, whose best round is good.
        assert_eq!(of(&[&[1.0, 2.0], &[3.0, 4.0], &[1.5, 9.0]]), [0, 2]);
        assert_eq!(of(&[&[2.0], &[1.0]]), [1, 0], "one round each");
        assert!(of(&[]).is_empty());
    }
}
