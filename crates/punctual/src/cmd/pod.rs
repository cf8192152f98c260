//! `punctual pod`: OpenShift's latency tests, with the variables that they read.

use std::{env, ffi::OsString, thread, time::Duration};

use analysis::format_duration;
use clap::Parser;
use machine::{CpuList, Root, usable_cpus};
use record::Outcome;

use super::measure;
use crate::{
    cli::{self, Cli, Command, LatencyTest, Measure, Pod},
    exit::Usage,
};

/// The largest number in a variable.
const NUMBER_MAX: u64 = i32::MAX as u64;
/// The runtime of OpenShift's tests, seconds.
const RUNTIME_S: u64 = 300;

pub fn run(options: &Pod) -> anyhow::Result<u8> {
    let variables = Variables::read(options.test, |name| env::var(name).ok())?;
    if !variables.is_wanted {
        say!("nothing was measured, because LATENCY_TEST_RUN is false");
        return Ok(Outcome::Inconclusive.exit_status());
    }
    let cpus = options.test.cpus(&usable_cpus(&Root::system(), None)?, variables.cpus)?;
    let mut measurement = options.test.measurement(&cpus, variables.runtime_s, &options.options)?;
    let runtime = format_duration(variables.runtime_s.saturating_mul(1_000_000_000));
    let judged = match variables.limit_us {
        Some(limit_us) => format!("the latency must be below {limit_us} us"),
        None => format!("not judged, because neither MAXIMUM_LATENCY nor {} is set", options.test.limit_variable()),
    };
    say!("{} runs for {runtime} (LATENCY_TEST_RUNTIME); {judged}", options.test.name());
    wait(variables.delay_s)?;
    let common = match &mut measurement {
        Measure::Timer(options) => &mut options.common,
        Measure::Noise(options) => &mut options.common,
        other => unreachable!("no test is {other:?}"),
    };
    common.limit_ns = variables.limit_us.map(|limit_us| limit_us * 1000);
    measure::run(&measurement)
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
            Err(error) => Err(Usage(format!(
                "{} (in the options behind {})",
                cli::mistakes::sentence(&error, &words),
                self.name()
            ))),
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

#[cfg(test)]
mod tests {
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
        assert_eq!(error, "unexpected argument '--lod' found: use --load (in the options behind cyclictest)");
    }
}
