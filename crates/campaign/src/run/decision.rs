//! Ends a run as soon as its verdict is decided.

use std::time::{Duration, Instant};

use analysis::Profile;
use record::{Outcome, Record};

/// Time between two looks. The evidence holds however often one looks.
const EVERY: Duration = Duration::from_secs(1);

/// Judges the profiles once a second during a run.
pub(super) struct Decision<'a> {
    profiles: &'a [Profile],
    looked: Instant,
    /// The further time without a stall until all profiles are decided, ns; `None` before the first look.
    pub left_ns: Option<u64>,
}

impl<'a> Decision<'a> {
    /// Without `profiles` there is nothing to decide.
    pub fn on(profiles: &'a [Profile]) -> Self {
        Self { profiles, looked: Instant::now(), left_ns: None }
    }

    /// True if it is time to look.
    pub fn is_due(&self) -> bool {
        !self.profiles.is_empty() && self.looked.elapsed() >= EVERY
    }

    /// True if the verdict is decided: a profile failed, the run is invalid, or all profiles passed.
    pub fn look(&mut self, record: &Record) -> bool {
        self.looked = Instant::now();
        let outcomes: Vec<Outcome> =
            self.profiles.iter().map(|profile| analysis::judge(record, profile).outcome).collect();
        self.left_ns = self.profiles.iter().filter_map(|profile| analysis::time_to_pass_ns(record, profile)).max();
        outcomes.iter().any(|outcome| matches!(outcome, Outcome::Fail | Outcome::Invalid))
            || outcomes.iter().all(|outcome| *outcome == Outcome::Pass)
    }
}
