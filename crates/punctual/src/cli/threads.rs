//! Options of `measure threads`, and how a thread is written.

use std::str::FromStr;

use analysis::format_exact;
use campaign::probe::{Definition, ThreadsProbe, TimerProbe, threads::ThreadAsk};
use clap::Args;
use machine::CpuList;
use sys::sched::Policy;

use super::{Common, Placement, WakeUps, duration, duration_or_zero, period};

/// Options of `measure threads`.
#[derive(Debug, Args)]
pub struct Threads {
    /// A periodic thread: its name and period, and where it matters its CPU and policy, as `base=25us,cpu=2,policy=fifo:95`;
    /// can be repeated. Without a CPU it takes the last isolated one, or the last; without a policy fifo:90, and the less
    /// the longer its period [default: base=25us and servo=1ms].
    #[arg(long = "thread", value_name = "NAME=PERIOD[,cpu=N][,policy=POLICY]")]
    pub named: Vec<ThreadSpec>,
    /// So many threads alike instead, spread over the CPUs.
    #[arg(long, value_name = "N", conflicts_with = "named", group = "spread", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub threads: Option<u32>,
    /// Time between two deadlines of the threads alike.
    #[arg(long, value_name = "TIME", value_parser = period, requires = "threads", default_value = format_exact(TimerProbe::default().period_ns))]
    pub period: u64,
    /// Policy of the threads alike: fifo:1-99, rr:1-99, deadline:RUNTIME/DEADLINE/PERIOD or other.
    #[arg(long, requires = "threads", default_value_t = ThreadsProbe::default().policy(None))]
    pub policy: Policy,
    /// CPUs for the threads alike, or those that a matrix pairs [default: every online CPU].
    #[arg(long, value_name = "LIST", requires = "spread")]
    pub cpus: Option<CpuList>,
    /// Shift between the grids of the threads, one after the other.
    #[arg(long, value_name = "TIME", value_parser = duration_or_zero, default_value = "0ns")]
    pub offset: u64,
    /// Put two threads on each pair of CPUs, at rest and beside CPU hogs (`cpu:shell`, or each --load) on the CPUs that are
    /// not isolated, and recommend a pair.
    #[arg(long, group = "spread", conflicts_with_all = ["threads", "duration", "endless", "stop_on", "offset"])]
    pub matrix: bool,
    /// How long each cell of the matrix takes, all rounds together [default: so that the whole takes two minutes].
    #[arg(long, value_name = "TIME", value_parser = duration, requires = "matrix")]
    pub cell_duration: Option<u64>,
    /// How often each cell is measured: only rounds can tell a difference from chance [default: 3].
    #[arg(long, value_name = "N", requires = "matrix", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub rounds: Option<u32>,
    /// Tables of the matrix to show besides jitter: lateness, missed.
    #[arg(long, value_name = "WHAT", value_delimiter = ',', requires = "matrix")]
    pub show: Vec<super::Tables>,
    /// Where things run.
    #[command(flatten)]
    pub placement: Placement,
    /// What each measurement of wake-ups has.
    #[command(flatten)]
    pub wake_ups: WakeUps,
    /// What every measurement has.
    #[command(flatten)]
    pub common: Common,
}

/// A thread as it is written: `base=25us,cpu=2,policy=fifo:95`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadSpec(pub ThreadAsk);

const EXAMPLE: &str = "write it as base=25us,cpu=2,policy=fifo:95";

impl FromStr for ThreadSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut parts = text.split(',');
        let (role, period_ns) = named_period(parts.next().unwrap_or_default())?;
        let mut ask = ThreadAsk { role, period_ns, cpu: None, policy: None };
        for part in parts {
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            let twice = match key {
                "cpu" => ask.cpu.replace(cpu(value)?).is_some(),
                "policy" => ask.policy.replace(value.parse::<Policy>().map_err(|error| error.to_string())?).is_some(),
                _ => return Err(format!("`{key}` says nothing about a thread: use cpu=N or policy=POLICY")),
            };
            if twice {
                return Err(format!("`{key}` is there twice: leave one out"));
            }
        }
        Ok(Self(ask))
    }
}

fn named_period(text: &str) -> Result<(String, u64), String> {
    let (name, time) = text.split_once('=').ok_or_else(|| format!("`{text}` has no period: {EXAMPLE}"))?;
    let in_order = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
    if name.is_empty() || name.len() > 32 || !name.chars().all(in_order) || name == "timer" {
        return Err(format!(
            "`{name}` cannot name a thread: use letters, digits, - and _, 32 at most, other than `timer`"
        ));
    }
    Ok((name.to_owned(), period(time)?))
}

fn cpu(value: &str) -> Result<u32, String> {
    let number = value.parse().ok().filter(|&cpu| cpu <= machine::cpulist::MAX_CPU);
    number.ok_or_else(|| format!("`{value}` is no CPU: {EXAMPLE}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_a_name_a_period_and_what_else_matters() {
        let read = |text: &str| text.parse::<ThreadSpec>().unwrap().0;
        let ask = ThreadAsk { role: "base".to_owned(), period_ns: 25_000, cpu: None, policy: None };
        assert_eq!(read("base=25us"), ask);
        let placed = ThreadAsk { cpu: Some(2), policy: Some(Policy::Fifo(95)), ..ask };
        assert_eq!(read("base=25us,policy=fifo:95,cpu=2"), placed);
    }

    #[test]
    fn what_is_wrong_is_said_with_what_is_right() {
        for (text, sentence) in [
            ("", "`` has no period: write it as base=25us,cpu=2,policy=fifo:95"),
            ("base", "`base` has no period"),
            ("=1ms", "`` cannot name a thread"),
            ("timer=1ms", "`timer` cannot name a thread"),
            ("a/b=1ms", "`a/b` cannot name a thread: use letters"),
            ("base=0s", "must be longer than 0 and at most 1h"),
            ("base=25", "25us"),
            ("base=25us,prio=95", "`prio` says nothing about a thread: use cpu=N or policy=POLICY"),
            ("base=25us,cpu", "`` is no CPU"),
            ("base=25us,cpu=9999", "`9999` is no CPU"),
            ("base=25us,cpu=1,cpu=2", "`cpu` is there twice"),
            ("base=25us,policy=fast", "unknown policy `fast`"),
            ("base=25us,", "`` says nothing about a thread"),
        ] {
            let error = text.parse::<ThreadSpec>().unwrap_err();
            assert!(error.contains(sentence), "{text}: {error}");
        }
    }
}
