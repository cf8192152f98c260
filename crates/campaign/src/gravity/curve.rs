//! The curve of lateness against gravity of a user thread, and the choice of a gravity.

use serde::Serialize;

use super::CalibrationError;

/// Step between two gravities, ns; that of latmus.
pub const USER_STEP_NS: u64 = 500;
/// Wake-ups for each gravity; those of latmus with a period of 1 ms.
const WAKE_UPS: u64 = 500;
/// Measurements without gravity that find the largest useful one.
const WARM_UPS: usize = 4;
/// Steps beyond the largest useful gravity, to show where early wake-ups begin.
const STEPS_BEYOND: u64 = 2;
/// Largest gravity that is tried, ns. A core that needs longer has another problem.
const GRAVITY_MAX_NS: u64 = 50_000;
/// Wake-ups that verify a gravity.
pub(super) const VERIFIED_WAKE_UPS: u64 = 2_000;

/// The lateness of wake-ups with one gravity.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Step {
    /// The gravity, ns.
    pub gravity_ns: u64,
    /// Number of wake-ups; absent if it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub samples: Option<u64>,
    /// Wake-ups before their deadline; absent if they were not counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub early: Option<u64>,
    /// Smallest lateness, ns; negative if a wake-up was early.
    pub min_ns: i64,
    /// Mean lateness, ns. The kernel counts an early wake-up as 0.
    pub mean_ns: f64,
    /// Largest lateness, ns; absent if it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_ns: Option<i64>,
}

impl Step {
    /// True if a wake-up was early.
    #[must_use]
    pub fn is_early(&self) -> bool {
        self.min_ns < 0
    }

    /// The time that the core needed for the fastest wake-up, ns; with a larger gravity, it is early.
    fn fastest_ns(&self) -> u64 {
        self.gravity_ns.saturating_add_signed(self.min_ns)
    }
}

/// Measures the wake-ups of a user thread.
pub(super) trait Bench {
    /// Sets the gravity of user threads, ns.
    fn set(&mut self, user_ns: u64) -> Result<(), CalibrationError>;
    /// Measures with the gravity in force.
    fn measure(&mut self, wake_ups: u64) -> Result<Step, CalibrationError>;
}

/// Finds the largest gravity, in whole steps, that does not make the fastest wake-up early. Returns it with the curve.
///
/// A rare fast wake-up may be missing from the curve: [`lower_until_none_is_early`] verifies the result.
pub(super) fn calibrate_user(bench: &mut impl Bench) -> Result<(u64, Vec<Step>), CalibrationError> {
    bench.set(0)?;
    let mut without_gravity = Vec::new();
    for _ in 0..WARM_UPS {
        without_gravity.push(bench.measure(WAKE_UPS)?.min_ns);
    }
    // Anticipating by more than the fastest wake-up makes that one early.
    let fastest_ns = without_gravity.into_iter().min().unwrap_or(0);
    let Ok(useful_ns) = u64::try_from(fastest_ns) else {
        return Err(CalibrationError::EarlyWithoutGravity(fastest_ns.unsigned_abs()));
    };
    let last_ns = (useful_ns + STEPS_BEYOND * USER_STEP_NS).min(GRAVITY_MAX_NS);
    let mut curve: Vec<Step> = Vec::new();
    let mut gravity_ns = 0;
    while gravity_ns <= last_ns && curve.last().is_none_or(|step| !step.is_early()) {
        bench.set(gravity_ns)?;
        curve.push(Step { gravity_ns, ..bench.measure(WAKE_UPS)? });
        gravity_ns += USER_STEP_NS;
    }
    let fastest_ns = curve.iter().map(Step::fastest_ns).fold(useful_ns, u64::min);
    Ok((in_steps(fastest_ns), curve))
}

/// Lowers a gravity of user threads until none of [`VERIFIED_WAKE_UPS`] is early, and sets it.
pub(super) fn lower_until_none_is_early(bench: &mut impl Bench, from_ns: u64) -> Result<u64, CalibrationError> {
    let mut user_ns = from_ns;
    loop {
        bench.set(user_ns)?;
        let step = Step { gravity_ns: user_ns, ..bench.measure(VERIFIED_WAKE_UPS)? };
        if user_ns == 0 || !step.is_early() {
            return Ok(user_ns);
        }
        user_ns = in_steps(step.fastest_ns());
    }
}

/// The largest gravity in whole steps that is at most `ns`.
fn in_steps(ns: u64) -> u64 {
    (ns / USER_STEP_NS * USER_STEP_NS).min(GRAVITY_MAX_NS)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A core that needs at least `least_ns` to reach a thread, and `rare_ns` once in 1000 wake-ups.
    struct Fake {
        least_ns: i64,
        rare_ns: i64,
        gravity_ns: u64,
        wake_ups: u64,
    }

    impl Bench for Fake {
        fn set(&mut self, user_ns: u64) -> Result<(), CalibrationError> {
            self.gravity_ns = user_ns;
            Ok(())
        }

        fn measure(&mut self, wake_ups: u64) -> Result<Step, CalibrationError> {
            let mut late = Vec::new();
            for _ in 0..wake_ups {
                self.wake_ups += 1;
                // Most measurements of a step miss it.
                let needed_ns = if self.wake_ups % 5000 == 4999 { self.rare_ns } else { self.least_ns };
                late.push(needed_ns + (self.wake_ups % 7).cast_signed() * 10 - self.gravity_ns.cast_signed());
            }
            let early = late.iter().filter(|late| **late < 0).count() as u64;
            let mean_ns = late.iter().sum::<i64>() as f64 / late.len() as f64;
            let (min_ns, max_ns) = (late.iter().min().copied().unwrap_or(0), late.iter().max().copied());
            Ok(Step {
                gravity_ns: self.gravity_ns,
                samples: Some(wake_ups),
                early: Some(early),
                min_ns,
                mean_ns,
                max_ns,
            })
        }
    }

    fn calibrated(least_ns: i64, rare_ns: i64) -> Result<(u64, Vec<Step>), CalibrationError> {
        let mut bench = Fake { least_ns, rare_ns, gravity_ns: 9, wake_ups: 0 };
        let (found_ns, curve) = calibrate_user(&mut bench)?;
        let verified_ns = lower_until_none_is_early(&mut bench, found_ns)?;
        assert_eq!(bench.gravity_ns, verified_ns, "it stays in force");
        Ok((verified_ns, curve))
    }

    #[test]
    fn chooses_the_largest_gravity_without_an_early_wake_up() {
        let (found_ns, curve) = calibrated(2_700, 2_700).unwrap();
        assert_eq!(found_ns, 2_500);
        let gravities: Vec<u64> = curve.iter().map(|step| step.gravity_ns).collect();
        assert_eq!(gravities, [0, 500, 1000, 1500, 2000, 2500, 3000], "one step shows early wake-ups");
        assert!(curve.last().is_some_and(|step| step.is_early() && step.early == Some(500)));
        assert!(curve.windows(2).all(|pair| pair[0].mean_ns > pair[1].mean_ns));
    }

    #[test]
    fn a_rare_fast_wake_up_lowers_the_choice() {
        assert_eq!(calibrated(2_700, 1_600).unwrap().0, 1_500);
    }

    #[test]
    fn a_core_faster_than_a_step_needs_no_gravity() {
        assert_eq!(calibrated(300, 300).unwrap().0, 0);
    }

    #[test]
    fn early_wake_ups_without_gravity_are_an_error() {
        let error = calibrated(-50, -50).unwrap_err().to_string();
        assert!(error.starts_with("a thread woke 50 ns before its deadline without gravity"), "{error}");
    }

    #[test]
    fn a_slow_core_is_not_tried_without_end() {
        let (found_ns, curve) = calibrated(900_000, 900_000).unwrap();
        assert_eq!((found_ns, curve.len()), (50_000, 101));
    }
}
