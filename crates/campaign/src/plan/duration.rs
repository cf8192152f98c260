//! The planned duration of a run.

use super::{Plan, phase::PhasePlan};
use crate::probe::{Probe, stream::offset::calibration_ns};

impl Plan {
    /// Duration of all phases together, ns, with the calibration of a wake-up offset; `None` if a phase has no
    /// duration.
    #[must_use]
    pub fn total_ns(&self) -> Option<u64> {
        Some(self.phases_ns()?.saturating_add(self.calibration_ns().unwrap_or_default()))
    }

    /// Duration of all phases together, ns, without calibration; `None` if a phase has no duration.
    fn phases_ns(&self) -> Option<u64> {
        if self.searches() {
            let longest_ns = self.phases.iter().map(PhasePlan::duration_ns).max()??;
            return Some(longest_ns.saturating_mul(self.steps() as u64));
        }
        self.phases.iter().map(PhasePlan::duration_ns).sum()
    }

    /// Duration of the calibration of the wake-up offset before the run, ns; `None` without calibration.
    #[must_use]
    pub fn calibration_ns(&self) -> Option<u64> {
        self.calibrates().then(|| calibration_ns(self.phases_ns()))
    }

    /// Largest number of phases that are measured. A search halves its candidates in each step.
    #[must_use]
    pub fn steps(&self) -> usize {
        let phases = self.phases.len();
        if self.searches() { phases.checked_ilog2().map_or(0, |log| log as usize + 1) } else { phases }
    }

    /// True if the phases are candidates of a binary search for the smallest buffer, so that only some of them run.
    #[must_use]
    pub fn searches(&self) -> bool {
        matches!(&self.probe, Probe::Audio(audio) if audio.find)
    }

    /// True if the wake-up offset of a talker is calibrated before the run.
    #[must_use]
    pub fn calibrates(&self) -> bool {
        matches!(&self.probe, Probe::Stream(stream) if stream.calibrates())
    }
}

#[cfg(test)]
mod tests {
    use crate::plan::{
        Length,
        tests::{phase, plan},
    };

    #[test]
    fn the_total_is_unknown_if_a_phase_has_no_duration() {
        let two = [phase(1000, Length::Duration(5_000)), phase(1000, Length::Samples(7))];
        assert_eq!(plan(two.to_vec()).total_ns(), Some(12_000));
        assert_eq!(plan(vec![two[0].clone(), phase(1, Length::UntilStopped)]).total_ns(), None);
    }
}
