//! Options of `measure process`.

use std::{ffi::OsString, str::FromStr};

use blame::Pattern;
use clap::Args;

use super::{Common, duration, period};

/// Options of `measure process`.
#[derive(Debug, Args)]
pub struct Process {
    /// ID of a running program or of one of its threads.
    #[arg(conflicts_with = "run", value_parser = clap::value_parser!(u32).range(1..))]
    pub pid: Option<u32>,
    /// Measure threads by name, `PREFIX*` or ID; repeatable.
    #[arg(long = "thread", value_name = "NAME")]
    pub threads: Vec<Pattern>,
    /// Expect this period of all or of NAME; repeatable.
    ///
    /// Missed deadlines are counted: a cycle misses its deadline if it takes longer than the period, or does not start.
    #[arg(long = "period", value_name = "[NAME=]TIME")]
    pub periods: Vec<PeriodOf>,
    /// Count later wake-ups as spikes.
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "100us")]
    pub threshold: u64,
    /// Judge by the limits of this profile; repeatable.
    ///
    /// A name (`punctual profiles` lists them) or a TOML file. Each selected thread must wait for a CPU at most the
    /// limit of the profile after a wake-up, and each of its cycles must end within the period of the profile.
    #[arg(long = "profile", value_name = "NAME|FILE")]
    pub profiles: Vec<String>,
    /// Exit with status 2 if a wake-up latency is above this.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub max_latency: Option<u64>,
    /// Exit with status 2 if more deadlines are missed.
    ///
    /// The deadlines of all threads count together.
    #[arg(long, value_name = "N", requires = "periods")]
    pub max_missed: Option<u64>,
    /// Exit with status 2 if a cycle takes longer than this.
    ///
    /// A cycle lasts from its release to its completion.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub max_response: Option<u64>,
    /// Also enable the kernel's runtime verification monitors.
    ///
    /// They slow every thread of the machine. Their reports are named with the broken rules. Without them, punctual
    /// checks the same rules itself.
    #[arg(long)]
    pub monitors: bool,
    /// Options of all measurements.
    #[command(flatten)]
    pub common: Common,
    /// Command to measure until it ends or for --duration.
    #[arg(id = "run", value_name = "COMMAND", last = true)]
    pub command: Vec<OsString>,
}

/// A period, and the threads that it applies to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeriodOf {
    /// Measure threads of this name, prefix (`worker*`) or ID; repeatable.
    pub threads: Option<Pattern>,
    /// ns.
    pub period_ns: u64,
}

impl FromStr for PeriodOf {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (threads, time) = match text.rsplit_once('=') {
            Some(("", _)) => {
                return Err("the thread name is missing: write e.g. servo=1ms, or 1ms for all threads".to_owned());
            }
            Some((name, time)) => (name.parse().ok(), time),
            None => (None, text),
        };
        Ok(Self { threads, period_ns: period(time)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_a_period_with_and_without_a_thread_name() {
        let parse = |text: &str| text.parse::<PeriodOf>();
        assert_eq!(parse("1ms"), Ok(PeriodOf { threads: None, period_ns: 1_000_000 }));
        assert_eq!(parse("a=b=25us"), Ok(PeriodOf { threads: "a=b".parse().ok(), period_ns: 25_000 }));
        for wrong in ["", "0ms", "servo=", "=1ms", "servo=0"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
