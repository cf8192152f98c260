//! Options of `measure process`.

use std::{ffi::OsString, str::FromStr};

use blame::Pattern;
use clap::Args;

use super::{Common, duration, period};

/// Options of `measure process`.
#[derive(Debug, Args)]
pub struct Process {
    /// The program that runs already, by the id of its process or of any of its threads.
    #[arg(conflicts_with = "run", value_parser = clap::value_parser!(u32).range(1..))]
    pub pid: Option<u32>,
    /// Only threads of this name, of names that begin like this (`worker*`), or of this id; can be repeated.
    #[arg(long = "thread", value_name = "NAME")]
    pub threads: Vec<Pattern>,
    /// How often each thread is to run, or those of this name: a cycle that takes longer, or does not come, has missed its
    /// deadline; can be repeated.
    #[arg(long = "period", value_name = "[NAME=]TIME")]
    pub periods: Vec<PeriodOf>,
    /// Wake-up latency above which a wake-up is a spike, to be explained.
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "100us")]
    pub threshold: u64,
    /// Exit with status 2 if any thread waited longer for a CPU once it was woken.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub max_latency: Option<u64>,
    /// Exit with status 2 if more deadlines were missed, of all threads together.
    #[arg(long, value_name = "N", requires = "periods")]
    pub max_missed: Option<u64>,
    /// What every measurement has.
    #[command(flatten)]
    pub common: Common,
    /// A command to run and to watch from its begin, with its arguments; until it ends, or for --duration.
    #[arg(id = "run", value_name = "COMMAND", last = true)]
    pub command: Vec<OsString>,
}

/// A period, and the threads that have it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeriodOf {
    /// `None` for all that no other period names.
    pub threads: Option<Pattern>,
    /// ns.
    pub period_ns: u64,
}

impl FromStr for PeriodOf {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (threads, time) = match text.rsplit_once('=') {
            Some(("", _)) => {
                return Err("the name is missing: write it as servo=1ms, or 1ms for all threads".to_owned());
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
    fn a_period_is_for_all_threads_or_for_those_of_a_name() {
        let of = |text: &str| text.parse::<PeriodOf>();
        assert_eq!(of("1ms"), Ok(PeriodOf { threads: None, period_ns: 1_000_000 }));
        assert_eq!(of("a=b=25us"), Ok(PeriodOf { threads: "a=b".parse().ok(), period_ns: 25_000 }));
        for wrong in ["", "0ms", "servo=", "=1ms", "servo=0"] {
            assert!(of(wrong).is_err(), "{wrong}");
        }
    }
}
