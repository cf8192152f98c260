//! The periods of a `LinuxCNC` configuration that a measurement of its two threads permits.
//!
//! Sources, in the `LinuxCNC` repository (August 2026): `docs/src/install/latency-test.adoc` for the limits of max jitter,
//! `stepconf.py` (`minperiod`) for the shortest base period and for the timing of a drive, and
//! `docs/src/motion/tweaking-steppers.adoc` for the shortest period to start with.

use record::Record;

/// Largest max jitter of the base thread with which steps can be generated in software, ns.
pub const BASE_JITTER_MAX_NS: u64 = 50_000;
/// Largest max jitter with which a hardware card gives acceptable results, ns.
pub const SERVO_JITTER_MAX_NS: u64 = 500_000;
/// Step time and step space of a drive as `StepConf` presets them, 5 us each, and the 5 us that it adds to reset a step
/// pulse within the same period.
const STEP_TIMING_NS: u64 = 15_000;
/// Shortest base period to start with, ns: a shorter one can leave no time for anything else.
const BASE_PERIOD_MIN_NS: u64 = 25_000;

/// The periods for an INI file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Periods {
    /// Max jitter of the base thread: largest |interval - period|, ns.
    pub base_jitter_ns: u64,
    /// `BASE_PERIOD`, ns; `None` if the jitter permits no steps in software.
    pub base_ns: Option<u64>,
    /// Max jitter of the servo thread, ns.
    pub servo_jitter_ns: u64,
    /// `SERVO_PERIOD`, ns: the measured one; `None` if the jitter permits no acceptable results.
    pub servo_ns: Option<u64>,
}

/// The periods that a run permits, or the recommended pair of a matrix under all its loads; `None` unless threads called
/// `base` and `servo` were measured as requested.
#[must_use]
pub fn periods(record: &Record) -> Option<Periods> {
    if record.scenario.probe != "threads" || record.obstacle().is_some() {
        return None;
    }
    let of_role = |role: &str| {
        if record.cells.is_empty() {
            let measured = record.probe_series().filter(|series| series.role == role && series.samples > 1);
            return measured.map(|series| (series.jitter_ns, series.period_ns)).max();
        }
        let pair = record.recommended_pair()?;
        let cells = record.cells.iter().filter(|cell| cell.pair() == pair && cell.invalid.is_none());
        let measured = cells.flat_map(|cell| &cell.threads).filter(|thread| thread.role == role && thread.samples > 1);
        measured.map(|thread| (thread.jitter_ns, thread.period_ns)).max()
    };
    let ((base_jitter_ns, _), (servo_jitter_ns, servo_period_ns)) = (of_role("base")?, of_role("servo")?);
    let base_ns = || (base_jitter_ns + STEP_TIMING_NS).next_multiple_of(1000).max(BASE_PERIOD_MIN_NS);
    Some(Periods {
        base_jitter_ns,
        base_ns: (base_jitter_ns <= BASE_JITTER_MAX_NS).then(base_ns),
        servo_jitter_ns,
        servo_ns: (servo_jitter_ns <= SERVO_JITTER_MAX_NS).then_some(servo_period_ns),
    })
}

#[cfg(test)]
mod tests {
    use record::{Cell, CellThread, Phase, Recommendation, Scenario, Series, State, Validity};

    use super::*;

    fn record(base_jitter_ns: u64, servo_jitter_ns: u64) -> Record {
        let series = |role: &str, period_ns, jitter_ns| {
            let mut series = Series { role: role.into(), period_ns, jitter_ns, samples: 2, ..Series::default() };
            series.raw.add(1000, 2);
            series.corrected = series.raw.clone();
            (series.min_ns, series.mean_ns, series.max_ns) = (Some(1000), Some(1000.0), Some(1000));
            series
        };
        Record {
            state: State::Complete,
            scenario: Scenario { probe: "threads".into(), ..Scenario::default() },
            phases: vec![Phase { duration_ns: 10_000_000, ..Phase::default() }],
            series: vec![series("base", 25_000, base_jitter_ns), series("servo", 1_000_000, servo_jitter_ns)],
            validity: Validity { valid: true, reasons: Vec::new() },
            ..Record::default()
        }
    }

    #[test]
    fn the_base_period_is_the_jitter_and_the_timing_of_a_drive() {
        let both = |base, servo| periods(&record(base, servo)).map(|periods| (periods.base_ns, periods.servo_ns));
        assert_eq!(both(9_075, 20_000), Some((Some(25_000), Some(1_000_000))));
        assert_eq!(both(17_300, 500_000), Some((Some(33_000), Some(1_000_000))));
        assert_eq!(both(50_000, 500_001), Some((Some(65_000), None)));
        assert_eq!(both(50_001, 0), Some((None, Some(1_000_000))));
    }

    #[test]
    fn a_matrix_permits_the_periods_of_its_recommended_pair() {
        let thread = |role: &str, cpu, period_ns, jitter_ns| CellThread {
            role: role.into(),
            cpu,
            period_ns,
            jitter_ns,
            samples: 2,
            ..CellThread::default()
        };
        let cell = |load: &str, servo_cpu, base_jitter_ns| Cell {
            load: load.into(),
            threads: vec![thread("base", 0, 25_000, base_jitter_ns), thread("servo", servo_cpu, 1_000_000, 9_000)],
            ..Cell::default()
        };
        let mut matrix = record(1, 1);
        matrix.cells = vec![cell("noload", 0, 80_000), cell("noload", 1, 10_000), cell("cpu", 1, 20_500)];
        assert_eq!(periods(&matrix), None, "no pair is recommended");
        matrix.recommendation = Some(Recommendation { pair: matrix.cells[1].pair(), ..Recommendation::default() });
        let periods = periods(&matrix).unwrap();
        assert_eq!((periods.base_jitter_ns, periods.base_ns), (20_500, Some(36_000)));
    }

    #[test]
    fn only_a_valid_run_of_both_threads_permits_periods() {
        let mut invalid = record(1_000, 1_000);
        invalid.validity.valid = false;
        let mut alone = record(1_000, 1_000);
        alone.series.pop();
        let mut interrupted = record(1_000, 1_000);
        interrupted.state = State::Interrupted;
        interrupted.phases[0].planned_ns = Some(3_600_000_000_000);
        for record in [invalid, alone, interrupted] {
            assert_eq!(periods(&record), None);
        }
    }
}
