//! `punctual pod`: OpenShift's latency tests, with the variables that they read.

use std::{env, ffi::OsString, thread, time::Duration};

use analysis::{float::to_u64, format_duration, format_ns};
use clap::Parser;
use machine::{CpuList, Root, usable_cpus};
use record::{Obstacle, Outcome, Record, Series, grouped};

use super::measure;
use crate::{
    cli::{self, Cli, Command, LatencyTest, Measure, Pod},
    exit::Usage,
};

/// The largest number in a variable.
const NUMBER_MAX: u64 = i32::MAX as u64;
/// The runtime of OpenShift's tests, seconds.
const RUNTIME_S: u64 = 300;
/// Events that remain possible at 95 % if none was observed.
const POSSIBLE_EVENTS: f64 = 3.0;

pub fn run(options: &Pod) -> anyhow::Result<u8> {
    let variables = Variables::read(options.test, |name| env::var(name).ok())?;
    if !variables.is_wanted {
        say!("nothing was measured, because LATENCY_TEST_RUN is false");
        return Ok(Outcome::Inconclusive.exit_status());
    }
    let cpus = options.test.cpus(&usable_cpus(&Root::system(), None)?, variables.cpus)?;
    let measurement = options.test.measurement(&cpus, variables.runtime_s, &options.options)?;
    let runtime = format_duration(variables.runtime_s.saturating_mul(1_000_000_000));
    let not_judged = format!("neither MAXIMUM_LATENCY nor {} is set", options.test.limit_variable());
    let judged = match variables.limit_us {
        Some(limit_us) => format!("the latency must be below {limit_us} us"),
        None => format!("not judged, because {not_judged}"),
    };
    say!("{} runs for {runtime} (LATENCY_TEST_RUNTIME); {judged}", options.test.name());
    wait(variables.delay_s)?;
    let (record, status) = match &measurement {
        Measure::Timer(options) => measure::timer::measure(options)?,
        Measure::Noise(options) => measure::noise::measure(options)?,
        other => unreachable!("no test is {other:?}"),
    };
    let Some(limit_us) = variables.limit_us else {
        say!("not judged, because {not_judged}");
        return Ok(status);
    };
    let (outcome, reason) = judge(&record, limit_us);
    say!("{} {}: {reason}", outcome.name(), options.test.name());
    Ok(if outcome == Outcome::Pass { status } else { outcome.exit_status() })
}

/// The variables of OpenShift's latency tests.
#[derive(Debug, PartialEq, Eq)]
struct Variables {
    is_wanted: bool,
    delay_s: u64,
    runtime_s: u64,
    /// The number of CPUs of the pod that are used; all by default.
    cpus: Option<u64>,
    /// The latency that must not be reached, us.
    limit_us: Option<u64>,
}

impl Variables {
    fn read(test: LatencyTest, value: impl Fn(&str) -> Option<String>) -> Result<Self, Usage> {
        let value = |name: &str| value(name).filter(|text| !text.is_empty());
        let number = |name: &str, unit: &str, least: u64| match value(name) {
            None => Ok(None),
            Some(text) => match text.parse() {
                Ok(number) if (least..=NUMBER_MAX).contains(&number) => Ok(Some(number)),
                _ => Err(Usage(format!("{name} must be a number of {unit}, {least} to {NUMBER_MAX} (got {text:?})"))),
            },
        };
        let is_wanted = match value("LATENCY_TEST_RUN").as_deref() {
            // The values of Go's ParseBool.
            None | Some("1" | "t" | "T" | "true" | "TRUE" | "True") => true,
            Some("0" | "f" | "F" | "false" | "FALSE" | "False") => false,
            Some(text) => return Err(Usage(format!("LATENCY_TEST_RUN must be true or false (got {text:?})"))),
        };
        let of_all = number("MAXIMUM_LATENCY", "microseconds", 1)?;
        Ok(Self {
            is_wanted,
            delay_s: number("LATENCY_TEST_DELAY", "seconds", 0)?.unwrap_or(0),
            runtime_s: number("LATENCY_TEST_RUNTIME", "seconds", 1)?.unwrap_or(RUNTIME_S),
            cpus: number("LATENCY_TEST_CPUS", "CPUs", 1)?,
            limit_us: number(test.limit_variable(), "microseconds", 1)?.or(of_all),
        })
    }
}

impl LatencyTest {
    fn name(self) -> &'static str {
        match self {
            Self::Cyclictest => "cyclictest",
            Self::Oslat => "oslat",
        }
    }

    fn limit_variable(self) -> &'static str {
        match self {
            Self::Cyclictest => "CYCLICTEST_MAXIMUM_LATENCY",
            Self::Oslat => "OSLAT_MAXIMUM_LATENCY",
        }
    }

    /// The CPUs to measure: those of the pod without the first, which is left to the other threads of punctual, as
    /// OpenShift's tests do. If there is only one, cyclictest measures it.
    fn cpus(self, usable: &CpuList, wanted: Option<u64>) -> Result<CpuList, Usage> {
        let count = match wanted.map(|wanted| usize::try_from(wanted).unwrap_or(usize::MAX)) {
            Some(wanted) if wanted > usable.len() => {
                let have = usable.in_words();
                return Err(Usage(format!(
                    "LATENCY_TEST_CPUS is {wanted}, but this pod may only use {have}: request {wanted} CPUs in its resources"
                )));
            }
            wanted => wanted.unwrap_or(usable.len()),
        };
        match (self, count) {
            (Self::Oslat, 0 | 1) => Err(Usage(
                "oslat needs 2 CPUs, one to measure and one for the other threads of punctual: give the pod 2 CPUs"
                    .to_owned(),
            )),
            (_, 0 | 1) => Ok(usable.iter().take(1).collect()),
            _ => Ok(usable.iter().take(count).skip(1).collect()),
        }
    }

    /// The measurement with further options of the user.
    fn measurement(self, cpus: &CpuList, runtime_s: u64, options: &[String]) -> Result<Measure, Usage> {
        let probe: &[&str] = match self {
            Self::Cyclictest => &["timer"],
            Self::Oslat => &["noise", "--policy", "fifo:1"],
        };
        let (cpus, duration) = (cpus.to_string(), format!("{runtime_s}s"));
        let words = ["punctual", "measure"].into_iter().chain(probe.iter().copied());
        let words = words.chain(["--cpus", &cpus, "--duration", &duration]).chain(options.iter().map(String::as_str));
        let words: Vec<OsString> = words.map(OsString::from).collect();
        match Cli::try_parse_from(&words) {
            Ok(Cli { command: Some(Command::Measure(measurement)), .. }) => Ok(measurement),
            Ok(_) => unreachable!("the words name a measurement"),
            Err(error) => {
                Err(Usage(format!("{} (in the options behind {})", cli::message(&error, &words), self.name())))
            }
        }
    }
}

/// Waits before the test, so that the CPU manager of the node can move other pods away.
fn wait(seconds: u64) -> anyhow::Result<()> {
    const STEP: Duration = Duration::from_millis(100);
    if seconds == 0 {
        return Ok(());
    }
    say!("waiting for {seconds} s (LATENCY_TEST_DELAY)");
    // The first process of a container ignores a signal for which it has no handler.
    sys::signal::count_termination()?;
    for _ in 0..seconds * 10 {
        if sys::signal::termination_requests() > 0 {
            return Err(campaign::RunError::Discarded.into());
        }
        thread::sleep(STEP);
    }
    Ok(())
}

/// The outcome for a limit that no latency may reach, with its reason.
fn judge(record: &Record, limit_us: u64) -> (Outcome, String) {
    let limit_ns = i64::try_from(limit_us * 1000).unwrap_or(i64::MAX);
    let limit = format!("the limit of {}", format_ns(limit_ns));
    let obstacle = record.obstacle();
    if let Some(invalid @ Obstacle::Invalid(_)) = &obstacle {
        return (Outcome::Invalid, format!("{invalid}, so the run does not show whether {limit} holds"));
    }
    let Some((worst, worst_ns)) = worst(record) else {
        return (Outcome::Inconclusive, "nothing was measured".to_owned());
    };
    let unmeasured = record.probe_series().find(|series| latency(series).is_none());
    let worst = format!("the largest latency was {} ({})", format_ns(worst_ns), worst.place());
    if worst_ns >= limit_ns {
        return (Outcome::Fail, format!("{worst}, not below {limit}"));
    }
    if let Some(obstacle) = obstacle {
        return (Outcome::Inconclusive, format!("{obstacle}; {worst}"));
    }
    if let Some(series) = unmeasured {
        return (Outcome::Inconclusive, format!("nothing was measured on {}; {worst}", series.place()));
    }
    let measured_ns: u64 = record.phases.iter().map(|phase| phase.duration_ns).sum();
    let per_hour = POSSIBLE_EVENTS * 3600e9 / measured_ns.max(1) as f64;
    let per_hour = match per_hour {
        ..10.0 => ((per_hour * 10.0).ceil() / 10.0).to_string(),
        _ => grouped(to_u64(per_hour.ceil())),
    };
    (Outcome::Pass, format!("{worst}, below {limit}; at 95 %, fewer than {per_hour} an hour reach it on each CPU"))
}

/// The series with the largest latency.
fn worst(record: &Record) -> Option<(&Series, i64)> {
    record.probe_series().filter_map(|series| Some((series, latency(series)?))).max_by_key(|&(_, ns)| ns)
}

/// The largest latency of a series, ns; 0 for one without any gap, and `None` if nothing was measured.
fn latency(series: &Series) -> Option<i64> {
    let is_observed = series.kind.noise().is_some_and(|noise| noise.observed_ns > 0);
    series.max_ns.or_else(|| is_observed.then_some(0))
}

#[cfg(test)]
mod tests {
    use record::{Phase, Reason};

    use super::*;

    fn read(test: LatencyTest, set: &[(&str, &str)]) -> Result<Variables, String> {
        let value = |name: &str| set.iter().find(|(set, _)| *set == name).map(|(_, value)| (*value).to_owned());
        Variables::read(test, value).map_err(|error| error.0)
    }

    #[test]
    fn variables_have_the_defaults_of_openshift() {
        let defaults = Variables { is_wanted: true, delay_s: 0, runtime_s: 300, cpus: None, limit_us: None };
        assert_eq!(read(LatencyTest::Oslat, &[]), Ok(defaults));
        let set = [
            ("LATENCY_TEST_RUN", "true"),
            ("LATENCY_TEST_DELAY", "20"),
            ("LATENCY_TEST_RUNTIME", "600"),
            ("LATENCY_TEST_CPUS", "7"),
            ("MAXIMUM_LATENCY", "20"),
            ("OSLAT_MAXIMUM_LATENCY", "30"),
        ];
        let expected = Variables { is_wanted: true, delay_s: 20, runtime_s: 600, cpus: Some(7), limit_us: Some(20) };
        assert_eq!(read(LatencyTest::Cyclictest, &set).as_ref(), Ok(&expected));
        assert_eq!(read(LatencyTest::Oslat, &set), Ok(Variables { limit_us: Some(30), ..expected }));
    }

    #[test]
    fn a_wrong_variable_is_named_with_its_limits() {
        for (name, text, expected) in [
            ("LATENCY_TEST_RUNTIME", "10m", "must be a number of seconds, 1 to 2147483647 (got \"10m\")"),
            ("LATENCY_TEST_RUNTIME", "0", "1 to"),
            ("LATENCY_TEST_DELAY", "-1", "a number of seconds, 0 to"),
            ("LATENCY_TEST_CPUS", "2147483648", "a number of CPUs"),
            ("MAXIMUM_LATENCY", "0", "a number of microseconds, 1 to"),
            ("LATENCY_TEST_RUN", "yes", "true or false"),
        ] {
            let error = read(LatencyTest::Cyclictest, &[(name, text)]).unwrap_err();
            assert!(error.starts_with(name) && error.contains(expected), "{error}");
        }
        // Another test has this one.
        assert!(read(LatencyTest::Cyclictest, &[("OSLAT_MAXIMUM_LATENCY", "none")]).is_ok());
    }

    #[test]
    fn the_first_cpu_is_left_to_the_other_threads() {
        let cpus = |test: LatencyTest, usable: &str, wanted| {
            let cpus = test.cpus(&usable.parse().unwrap(), wanted);
            cpus.map(|cpus| cpus.to_string()).map_err(|error| error.0)
        };
        assert_eq!(cpus(LatencyTest::Cyclictest, "2-5", None).as_deref(), Ok("3-5"));
        assert_eq!(cpus(LatencyTest::Oslat, "2-5", Some(2)).as_deref(), Ok("3"));
        assert_eq!(cpus(LatencyTest::Cyclictest, "2-5", Some(1)).as_deref(), Ok("2"));
        assert!(cpus(LatencyTest::Oslat, "2", None).unwrap_err().contains("needs 2 CPUs"));
        assert!(cpus(LatencyTest::Cyclictest, "2-5", Some(5)).unwrap_err().contains("may only use CPUs 2-5"));
    }

    #[test]
    fn further_options_are_those_of_the_measurement() {
        let options = |words: &str| {
            let options: Vec<String> = words.split(' ').map(str::to_owned).collect();
            LatencyTest::Cyclictest.measurement(&"1".parse().unwrap(), 60, &options)
        };
        let Ok(Measure::Timer(timer)) = options("--load cpu --no-record") else { panic!("not accepted") };
        assert_eq!((timer.common.duration, timer.common.record.no_record), (Some(60_000_000_000), true));
        let error = options("--lod cpu").unwrap_err().0;
        assert_eq!(error, "unexpected argument '--lod' found (in the options behind cyclictest)");
    }

    /// A run of 600 s whose largest latency is 17 us.
    fn measured() -> Record {
        let (mut record, duration_ns) = (Record::default(), 600_000_000_000);
        record.state = record::State::Complete;
        record.validity.valid = true;
        record.phases = vec![Phase { duration_ns, planned_ns: Some(duration_ns), ..Phase::default() }];
        let mut series = Series { cpu: Some(3), samples: 600_000, period_ns: 1_000_000, ..Series::default() };
        series.max_ns = Some(17_000);
        series.raw.add(17_000, 600_000);
        record.series = vec![series];
        record
    }

    #[test]
    fn a_latency_as_large_as_the_limit_fails() {
        assert_eq!(judge(&measured(), 17).0, Outcome::Fail);
        let (outcome, reason) = judge(&measured(), 18);
        assert_eq!(outcome, Outcome::Pass);
        assert!(reason.contains("was 17 us (CPU 3)") && reason.contains("fewer than 18 an hour"), "{reason}");
    }

    #[test]
    fn only_a_valid_and_complete_run_passes() {
        let mut invalid = measured();
        invalid.validity.valid = false;
        invalid.validity.reasons = vec![Reason { text: "no real-time priority".to_owned(), ..Reason::default() }];
        assert_eq!(judge(&invalid, 18).0, Outcome::Invalid);
        let mut partial = measured();
        partial.state = record::State::Interrupted;
        assert_eq!(judge(&partial, 18).0, Outcome::Inconclusive);
        assert_eq!(judge(&partial, 17).0, Outcome::Fail);
        let mut idle = measured();
        idle.series.push(Series { cpu: Some(4), ..Series::default() });
        let (outcome, reason) = judge(&idle, 18);
        assert!(outcome == Outcome::Inconclusive && reason.starts_with("nothing was measured on CPU 4"), "{reason}");
        let mut empty = measured();
        empty.series.clear();
        assert_eq!(judge(&empty, 18).0, Outcome::Inconclusive);
    }
}
