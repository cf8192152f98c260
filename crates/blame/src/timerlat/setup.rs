//! The tracer's settings. They apply to the whole machine: they are read, never written.

use machine::CpuList;

use crate::trace::{TraceError, Tracefs};

/// Usual location of the tracer's files, for commands to paste.
const FILES: &str = "/sys/kernel/tracing/osnoise";

/// The tracer's settings for the whole machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setup {
    /// Time between two deadlines, ns.
    pub period_ns: u64,
    /// The CPUs that the tracer measures.
    pub cpus: CpuList,
}

/// Reason why the kernel's timerlat tracer cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TimerlatError {
    /// The kernel was built without it.
    #[error(
        "this kernel has no timerlat tracer: measure without --timerlat, or boot a kernel with CONFIG_TIMERLAT_TRACER, \
         e.g. a real-time kernel of Debian 12"
    )]
    Absent,
    /// It does not measure all requested CPUs.
    #[error("timerlat is configured without {}: allow it there with `echo {all} | sudo tee {FILES}/cpus`", left_out.in_words())]
    LeftOut {
        /// The requested CPUs that it does not measure.
        left_out: CpuList,
        /// The CPUs that it must measure.
        all: CpuList,
    },
    /// It stops at the first latency above a threshold.
    #[error(
        "timerlat is configured to stop at a latency of {us} us: turn that off with `echo 0 | sudo tee {FILES}/{file}`"
    )]
    Stops {
        /// The file with the threshold.
        file: &'static str,
        /// The threshold, us.
        us: u64,
    },
    /// It waits for threads of a program instead of starting its own.
    #[error(
        "timerlat is configured without threads of its own: turn them on with `echo OSNOISE_WORKLOAD | \
         sudo tee {FILES}/options`"
    )]
    NoThreads,
    /// The osnoise tracer is running, which shares code and settings with timerlat.
    #[error(
        "the kernel's osnoise tracer is running, and timerlat cannot run at the same time: end the tracer that `sudo grep -rl osnoise \
         --include=current_tracer /sys/kernel/tracing` finds"
    )]
    Busy,
    /// The kernel's trace cannot be used.
    #[error(transparent)]
    Trace(#[from] TraceError),
}

impl TimerlatError {
    /// Converts an error of starting the tracer.
    pub(super) fn starting(error: TraceError) -> Self {
        match error {
            TraceError::Busy { part } if part == "current_tracer" => Self::Busy,
            error => Self::Trace(error),
        }
    }
}

impl Setup {
    /// Reads the settings.
    ///
    /// # Errors
    /// The kernel has no timerlat tracer, or its settings are unsuitable for these CPUs.
    pub fn read(tracefs: &Tracefs, measured: &CpuList) -> Result<Self, TimerlatError> {
        let tracers = tracefs.read("available_tracers")?;
        if !tracers.split_ascii_whitespace().any(|tracer| tracer == "timerlat") {
            return Err(TimerlatError::Absent);
        }
        let read = |file: &str| tracefs.read(format!("osnoise/{file}")).map(|text| text.trim().to_owned());
        let number = |file: &str| -> Result<u64, TraceError> {
            let not_a_number = |_| TraceError::Format { part: format!("osnoise/{file}") };
            read(file)?.parse().map_err(not_a_number)
        };
        let cpus: CpuList =
            read("cpus")?.parse().map_err(|_| TraceError::Format { part: "osnoise/cpus".to_owned() })?;
        let left_out = measured.difference(&cpus);
        if !left_out.is_empty() {
            return Err(TimerlatError::LeftOut { left_out, all: cpus.union(measured) });
        }
        for file in ["stop_tracing_us", "stop_tracing_total_us"] {
            if let us @ 1.. = number(file)? {
                return Err(TimerlatError::Stops { file, us });
            }
        }
        // Kernels without this file always start threads.
        if read("options").is_ok_and(|options| options.contains("NO_OSNOISE_WORKLOAD")) {
            return Err(TimerlatError::NoThreads);
        }
        Ok(Self { period_ns: number("timerlat_period_us")?.max(1).saturating_mul(1000), cpus })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Reads the settings of a kernel with the tracer, with some files changed.
    fn read(changed: &[(&str, &str)], measured: &str) -> Result<Setup, String> {
        let copy = tempfile::tempdir().unwrap();
        fs::create_dir(copy.path().join("osnoise")).unwrap();
        let files = [
            ("available_tracers", "timerlat osnoise hwlat blk function_graph wakeup function nop\n"),
            ("osnoise/cpus", "0-3\n"),
            ("osnoise/stop_tracing_us", "0\n"),
            ("osnoise/stop_tracing_total_us", "0\n"),
            ("osnoise/timerlat_period_us", "1000\n"),
            ("osnoise/options", "NO_DEFAULTS OSNOISE_WORKLOAD NO_PANIC_ON_STOP\n"),
        ];
        for (file, text) in files.iter().chain(changed) {
            fs::write(copy.path().join(file), text).unwrap();
        }
        Setup::read(&Tracefs::at(copy.path()), &measured.parse().unwrap()).map_err(|error| error.to_string())
    }

    #[test]
    fn reads_the_settings() {
        assert_eq!(read(&[], "1-2"), Ok(Setup { period_ns: 1_000_000, cpus: (0..4).collect() }));
        let found = read(&[("osnoise/timerlat_period_us", "250\n")], "0-3").unwrap();
        assert_eq!(found.period_ns, 250_000);
    }

    #[test]
    fn errors_contain_the_command_that_helps() {
        for (file, text, expected) in [
            ("available_tracers", "blk function nop\n", "this kernel has no timerlat tracer: "),
            ("osnoise/cpus", "0\n", "configured without CPUs 1-2: allow it there with `echo 0-2 | sudo tee "),
            ("osnoise/stop_tracing_us", "50\n", "latency of 50 us: turn that off with `echo 0 | sudo tee "),
            ("osnoise/stop_tracing_total_us", "70\n", "/sys/kernel/tracing/osnoise/stop_tracing_total_us`"),
            ("osnoise/options", "NO_OSNOISE_WORKLOAD\n", "echo OSNOISE_WORKLOAD | sudo tee "),
            ("osnoise/timerlat_period_us", "soon\n", "osnoise/timerlat_period_us"),
        ] {
            let found = read(&[(file, text)], "1-2").unwrap_err();
            assert!(found.contains(expected), "{found}");
        }
    }

    #[test]
    fn a_busy_tracer_means_that_osnoise_is_running() {
        let busy = |part: &str| TimerlatError::starting(TraceError::Busy { part: part.to_owned() });
        assert!(matches!(busy("current_tracer"), TimerlatError::Busy));
        assert!(matches!(busy("instances"), TimerlatError::Trace(_)));
    }
}
