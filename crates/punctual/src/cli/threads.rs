//! Options of `measure threads`, and the syntax of --thread.

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
    /// Add this thread [default: base=25us and servo=1ms].
    ///
    /// Repeatable. An example is base=25us,cpu=2,policy=fifo:95. The default threads share one CPU. The default CPU is the last isolated one, or the last. The default
    /// policy is fifo:90 for the shortest period, and a lower priority for each longer one.
    #[arg(long = "thread", value_name = "NAME=PERIOD[,cpu=N][,policy=POLICY]")]
    pub named: Vec<ThreadSpec>,
    /// Measure N identical threads, spread over the CPUs.
    #[arg(long, value_name = "N", conflicts_with = "named", group = "spread", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub threads: Option<u32>,
    /// With --threads, use this period.
    #[arg(long, value_name = "TIME", value_parser = period, requires = "threads", conflicts_with_all = ["named", "matrix"], default_value = format_exact(TimerProbe::default().period_ns))]
    pub period: u64,
    /// fifo:N, rr:N, deadline:R/D/P, other.
    ///
    /// The policy of --threads. The priority N is 1 to 99. The times of deadline:RUNTIME/DEADLINE/PERIOD are durations, e.g. 50us.
    #[arg(long, requires = "threads", conflicts_with_all = ["named", "matrix"], default_value_t = ThreadsProbe::default().policy(None))]
    pub policy: Policy,
    /// Use these CPUs [default: all online].
    ///
    /// With --threads or --matrix.
    #[arg(long, value_name = "LIST", requires = "spread")]
    pub cpus: Option<CpuList>,
    /// Shift deadlines from thread to thread.
    #[arg(long, value_name = "TIME", value_parser = duration_or_zero, default_value = "0ns")]
    pub offset: u64,
    /// Measure on each pair of CPUs, and recommend a pair.
    ///
    /// It measures two threads at rest and under load. The load is `cpu:shell`, or each --load, on the CPUs that are not isolated.
    #[arg(long, group = "spread", conflicts_with_all = ["threads", "duration", "endless", "stop_on", "offset"])]
    pub matrix: bool,
    /// Measure each pair for this long [default: 2m / pairs].
    ///
    /// All rounds together; by default the whole matrix takes two minutes.
    #[arg(long, value_name = "TIME", value_parser = duration, requires = "matrix", conflicts_with_all = ["threads", "duration", "endless", "stop_on", "offset"])]
    pub cell_duration: Option<u64>,
    /// Rounds of the pairs [default: 3], or of all threads.
    ///
    /// With --matrix, rounds distinguish differences from chance. Otherwise, each round has a record, in the folder that
    /// --record names; --against is then judged as by `punctual compare`, with intervals.
    #[arg(long, value_name = "N", conflicts_with = "endless", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub rounds: Option<u32>,
    /// Also show these tables of the matrix: lateness, missed.
    #[arg(long, value_name = "WHAT", value_delimiter = ',', requires = "matrix", conflicts_with_all = ["threads", "duration", "endless", "stop_on", "offset"])]
    pub show: Vec<super::Tables>,
    /// Measure the cost of the trace, after the run.
    ///
    /// It compares wake-ups with the trace off and on, which takes half a second.
    #[arg(long)]
    pub blame_cost: bool,
    /// Placement of threads.
    #[command(flatten)]
    pub placement: Placement,
    /// Options of measurements with deadlines.
    #[command(flatten)]
    pub wake_ups: WakeUps,
    /// Options of all measurements.
    #[command(flatten)]
    pub common: Common,
}

/// A thread, written as `base=25us,cpu=2,policy=fifo:95`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadSpec(pub ThreadAsk);

const EXAMPLE: &str = "write e.g. base=25us,cpu=2,policy=fifo:95";

impl FromStr for ThreadSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut parts = text.split(',');
        let (role, period_ns) = named_period(parts.next().unwrap_or_default(), "thread", EXAMPLE)?;
        let mut ask = ThreadAsk { role, period_ns, cpu: None, policy: None };
        for part in parts {
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            let is_duplicate = match key {
                "cpu" => ask.cpu.replace(cpu(value, EXAMPLE)?).is_some(),
                "policy" => ask.policy.replace(value.parse::<Policy>().map_err(|error| error.to_string())?).is_some(),
                _ => return Err(format!("unknown key `{key}`: use cpu=N or policy=POLICY")),
            };
            if is_duplicate {
                return Err(format!("`{key}` is given twice: leave one out"));
            }
        }
        Ok(Self(ask))
    }
}

/// Parses NAME=PERIOD of a `what`.
pub(super) fn named_period(text: &str, what: &str, example: &str) -> Result<(String, u64), String> {
    let (name, time) = text.split_once('=').ok_or_else(|| format!("`{text}` has no period: {example}"))?;
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
    if name.is_empty() || name.len() > 32 || !name.chars().all(is_allowed) || name == "timer" {
        return Err(format!("invalid {what} name `{name}`: use 1 to 32 letters, digits, - and _, but not `timer`"));
    }
    Ok((name.to_owned(), period(time)?))
}

/// Parses the number of a CPU.
pub(super) fn cpu(value: &str, example: &str) -> Result<u32, String> {
    let number = value.parse().ok().filter(|&cpu| cpu <= machine::cpulist::MAX_CPU);
    number.ok_or_else(|| format!("`{value}` is not a CPU number: {example}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_name_period_cpu_and_policy() {
        let parse = |text: &str| text.parse::<ThreadSpec>().unwrap().0;
        let ask = ThreadAsk { role: "base".to_owned(), period_ns: 25_000, cpu: None, policy: None };
        assert_eq!(parse("base=25us"), ask);
        let placed = ThreadAsk { cpu: Some(2), policy: Some(Policy::Fifo(95)), ..ask };
        assert_eq!(parse("base=25us,policy=fifo:95,cpu=2"), placed);
    }

    #[test]
    fn errors_name_the_mistake_and_the_syntax() {
        for (text, sentence) in [
            ("", "`` has no period: write e.g. base=25us,cpu=2,policy=fifo:95"),
            ("base", "`base` has no period"),
            ("=1ms", "invalid thread name ``"),
            ("timer=1ms", "invalid thread name `timer`"),
            ("a/b=1ms", "invalid thread name `a/b`: use 1 to 32 letters"),
            ("base=0s", "must be 1us to 1h"),
            ("base=25", "25us"),
            ("base=25us,prio=95", "unknown key `prio`: use cpu=N or policy=POLICY"),
            ("base=25us,cpu", "`` is not a CPU number"),
            ("base=25us,cpu=9999", "`9999` is not a CPU number"),
            ("base=25us,cpu=1,cpu=2", "`cpu` is given twice"),
            ("base=25us,policy=fast", "unknown policy `fast`"),
            ("base=25us,", "unknown key ``"),
        ] {
            let error = text.parse::<ThreadSpec>().unwrap_err();
            assert!(error.contains(sentence), "{text}: {error}");
        }
    }
}
