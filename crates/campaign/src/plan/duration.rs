//! How long a run takes, as far as its plan says.

use super::{PhasePlan, Plan, Probe};
use crate::{WakeupOffset, audio::search, stream::offset::CALIBRATION_NS};

impl Plan {
    /// How long all phases take together, ns, with the time to find a wake-up offset; `None` when no duration ends them.
    #[must_use]
    pub fn total_ns(&self) -> Option<u64> {
        if matches!(&self.probe, Probe::Audio(audio) if audio.find) {
            let longest_ns = self.phases.iter().map(PhasePlan::duration_ns).max()??;
            return Some(longest_ns.saturating_mul(self.steps() as u64));
        }
        let phases_ns: u64 = self.phases.iter().map(PhasePlan::duration_ns).sum::<Option<u64>>()?;
        Some(phases_ns.saturating_add(if self.calibrates() { CALIBRATION_NS } else { 0 }))
    }

    /// How many phases are measured, at most.
    #[must_use]
    pub fn steps(&self) -> usize {
        match &self.probe {
            Probe::Audio(audio) if audio.find => search::steps(self.phases.len()),
            _ => self.phases.len(),
        }
    }

    /// Whether a talker's wake-up offset is to be found first.
    #[must_use]
    pub fn calibrates(&self) -> bool {
        let Probe::Stream(stream) = &self.probe else { return false };
        stream.talk.as_ref().is_some_and(|talk| talk.offset == WakeupOffset::Auto)
    }
}

#[cfg(test)]
mod tests {
    use crate::plan::{
        Length,
        tests::{phase, plan},
    };

    #[test]
    fn the_whole_time_is_known_unless_the_user_ends_it() {
        let two = [phase(1000, Length::Duration(5_000)), phase(1000, Length::Samples(7))];
        assert_eq!(plan(two.to_vec()).total_ns(), Some(12_000));
        assert_eq!(plan(vec![two[0].clone(), phase(1, Length::UntilStopped)]).total_ns(), None);
    }
}
