//! How the tracer is set up. These files hold for the whole machine: they are read, never written.

use machine::CpuList;

use crate::trace::{TraceError, Tracefs};

/// Where the tracer's files are on most machines, for commands to paste.
const FILES: &str = "/sys/kernel/tracing/osnoise";

/// How the tracer is set up, for the whole machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setup {
    /// Time between two of its deadlines, ns.
    pub period_ns: u64,
    /// The CPUs that it runs on.
    pub cpus: CpuList,
}

/// Why the kernel's timerlat tracer cannot be used, with the remedy.
#[derive(Debug, thiserror::Error)]
pub enum TimerlatError {
    /// The kernel was built without it.
    #[error(
        "this kernel has no timerlat tracer: measure without --timerlat, or boot one that is built with \
         CONFIG_TIMERLAT_TRACER, as the real-time kernels of Debian 12 are"
    )]
    Absent,
    /// It leaves out measured CPUs.
    #[error("timerlat is kept from {}: allow it there with `echo {all} | sudo tee {FILES}/cpus`", left_out.in_words())]
    LeftOut {
        /// The measured CPUs that it does not run on.
        left_out: CpuList,
        /// The CPUs that it would have to run on.
        all: CpuList,
    },
    /// It ends with the first latency above a bound.
    #[error(
        "timerlat is set to stop at the first latency of {us} us: let it go on with `echo 0 | sudo tee {FILES}/{file}`"
    )]
    Stops {
        /// The file that says so.
        file: &'static str,
        /// The bound, us.
        us: u64,
    },
    /// It waits for threads of a program.
    #[error(
        "timerlat is set to trace threads of a program instead of its own: let it have its own with `echo OSNOISE_WORKLOAD | \
         sudo tee {FILES}/options`"
    )]
    NoThreads,
    /// The other tracer that shares its parts runs.
    #[error(
        "the kernel's osnoise tracer is running, and timerlat cannot run beside it: end the one that `sudo grep -rl osnoise \
         --include=current_tracer /sys/kernel/tracing` names"
    )]
    Busy,
    /// The kernel's trace cannot be used.
    #[error(transparent)]
    Trace(#[from] TraceError),
}

impl TimerlatError {
    /// What the answer to the attempt to start the tracer means.
    pub(super) fn starting(error: TraceError) -> Self {
        match error {
            TraceError::Busy { part } if part == "current_tracer" => Self::Busy,
            error => Self::Trace(error),
        }
    }
}

impl Setup {
    /// Reads it.
    ///
    /// # Errors
    /// The tracer is not there, or set up in a way that cannot serve to measure these CPUs.
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
        // Kernels without this file have no threads but its own.
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

    /// The files of a kernel that has the tracer, with some changed.
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
    fn the_tracer_is_taken_as_it_is() {
        assert_eq!(read(&[], "1-2"), Ok(Setup { period_ns: 1_000_000, cpus: (0..4).collect() }));
        let told = read(&[("osnoise/timerlat_period_us", "250\n")], "0-3").unwrap();
        assert_eq!(told.period_ns, 250_000);
    }

    #[test]
    fn what_cannot_serve_is_told_with_the_command_that_helps() {
        for (file, text, expected) in [
            ("available_tracers", "blk function nop\n", "this kernel has no timerlat tracer: "),
            ("osnoise/cpus", "0\n", "kept from CPUs 1-2: allow it there with `echo 0-2 | sudo tee "),
            ("osnoise/stop_tracing_us", "50\n", "latency of 50 us: let it go on with `echo 0 | sudo tee "),
            ("osnoise/stop_tracing_total_us", "70\n", "/sys/kernel/tracing/osnoise/stop_tracing_total_us`"),
            ("osnoise/options", "NO_OSNOISE_WORKLOAD\n", "echo OSNOISE_WORKLOAD | sudo tee "),
            ("osnoise/timerlat_period_us", "soon\n", "osnoise/timerlat_period_us"),
        ] {
            let told = read(&[(file, text)], "1-2").unwrap_err();
            assert!(told.contains(expected), "{told}");
        }
    }

    #[test]
    fn only_a_busy_tracer_is_osnoise() {
        let busy = |part: &str| TimerlatError::starting(TraceError::Busy { part: part.to_owned() });
        assert!(matches!(busy("current_tracer"), TimerlatError::Busy));
        assert!(matches!(busy("instances"), TimerlatError::Trace(_)));
    }
}
