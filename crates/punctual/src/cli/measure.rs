//! `punctual measure`: one struct of options a probe.

use clap::{Args, Subcommand};
use machine::CpuList;
use sys::sched::Policy;

use super::{Common, WakeUps, duration_or_zero, period};

/// What to measure.
#[derive(Debug, Subcommand)]
pub enum Measure {
    /// How late a thread wakes that sleeps until a deadline: what cyclictest measures.
    ///
    /// Examples:
    ///   punctual measure timer --duration 1m
    ///   punctual measure timer --cpus 2-3 --period 250us --load cache --load switch:10us
    ///   punctual measure timer --profile avb-class-a --duration 1h
    #[command(verbatim_doc_comment)]
    Timer(Box<Timer>),
}

/// Options of `measure timer`.
#[derive(Debug, Args)]
pub struct Timer {
    /// CPUs to measure, as the kernel writes a list (0,2-3); every online CPU if not given, isolated ones included.
    #[arg(long, value_name = "LIST")]
    pub cpus: Option<CpuList>,
    /// Time between two deadlines [default: that of the profile, or 1ms].
    #[arg(long, value_name = "TIME", value_parser = period)]
    pub period: Option<u64>,
    /// Measure so many wake-ups a CPU.
    #[arg(long, value_name = "N", conflicts_with_all = ["duration", "endless"], value_parser = clap::value_parser!(u64).range(1..))]
    pub samples: Option<u64>,
    /// fifo:1-99, rr:1-99, deadline:RUNTIME/DEADLINE/PERIOD or other.
    #[arg(long, default_value = "fifo:90")]
    pub policy: Policy,
    /// Shift between the grids of neighbouring CPUs.
    #[arg(long, value_name = "TIME", value_parser = duration_or_zero, default_value = "0ns")]
    pub offset: u64,
    /// What each measurement of wake-ups has.
    #[command(flatten)]
    pub wake_ups: WakeUps,
    /// What every measurement has.
    #[command(flatten)]
    pub common: Common,
}
