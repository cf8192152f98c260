//! Cost of blame: punctual with and without the trace, and cyclictest with and without the same events enabled.

use anyhow::{Context, Result};
use blame::{Instance, Settings, Tracefs};
use record::Histogram;

use crate::{
    costs::Costs,
    cyclictest::{self, Buckets},
    punctual::Punctual,
    rounds::{Pair, alternate},
    row::{Row, Unit},
    scenario::{Length, PERIOD_US, Scenario},
};

/// Upper limit for the median lateness with blame, as a multiple of that without.
const LATENESS_LIMIT: f64 = 1.25;
/// Upper limit for the CPU time a cycle with blame, as a multiple of that without.
const CPU_TIME_LIMIT: f64 = 1.5;
/// The same ring size as in punctual.
const RING_KB: u32 = 4096;

/// Wake-ups of the short and the long run for CPU time. What happens once per run, e.g. reading the kernel's symbols,
/// is in both and cancels out.
const LENGTHS: [u64; 2] = [2000, 8000];

/// Approximate duration, s.
pub fn seconds(rounds: usize, cycles: u64) -> u64 {
    let (lateness, cpu_time) = (cycles * 2 / 1000, LENGTHS.iter().sum::<u64>() * 2 / 1000);
    rounds as u64 * (lateness * 2 + cpu_time) + peer_rounds(rounds) as u64 * cpu_time
}

/// cyclictest's figures have no target, so they need fewer rounds.
fn peer_rounds(rounds: usize) -> usize {
    rounds.div_ceil(2)
}

/// Measures the rows: `rounds` pairs, with `cycles` wake-ups for lateness and two lengths for CPU time.
pub fn measure(punctual: &Punctual, scenario: &Scenario, rounds: usize, cycles: u64) -> Result<Vec<Row>> {
    let with_blame = punctual.with_blame();
    let lasting = |cycles| Scenario { period_us: PERIOD_US, ..scenario.lasting(Length::Cycles(cycles)) };
    let (one, two) = (lasting(cycles), LENGTHS.map(lasting));
    let median = |lateness: &Histogram| lateness.percentile(50.0).map_or(f64::NAN, |late_ns| late_ns as f64);
    let own = |punctual: &Punctual| Ok(median(&punctual.measure(&one)?.lateness));
    let peer = || Ok(median(&cyclictest::measure(&one, Buckets::Nanoseconds)?.lateness));
    let lateness = alternate(rounds, || own(&with_blame), || own(punctual))?;
    let cpu_time = alternate(
        rounds,
        || Ok(Costs::of_punctual(&with_blame, &two)?.a_cycle_ns()),
        || Ok(Costs::of_punctual(punctual, &two)?.a_cycle_ns()),
    )?;
    let peer_lateness = alternate(rounds, || traced(scenario, peer), peer)?;
    let peer_cpu_time = alternate(
        peer_rounds(rounds),
        || traced(scenario, || Ok(Costs::of_cyclictest(&two)?.a_cycle_ns())),
        || Ok(Costs::of_cyclictest(&two)?.a_cycle_ns()),
    )?;
    let row = |name, pairs: Vec<Pair<f64, f64>>| Row::compared(name, Unit::Time, pairs);
    Ok(vec![
        row("median lateness, blame on : off", lateness).with_target(LATENESS_LIMIT),
        row("  cyclictest, events on : off", peer_lateness),
        row("CPU time a cycle, blame on : off", cpu_time).with_target(CPU_TIME_LIMIT),
        row("  cyclictest, events on : off", peer_cpu_time).with_remark(
            "in the rows of blame, both columns are the same program, with and without the trace".to_owned(),
        ),
    ])
}

/// Calls `run` while the measured CPU is traced as in punctual.
fn traced<T>(scenario: &Scenario, run: impl Fn() -> Result<T>) -> Result<T> {
    let tracefs = Tracefs::open()?;
    let settings = Settings { cpus: &[scenario.cpu], deep: false, buffer_kb_per_cpu: RING_KB, others_kb_per_cpu: 512 };
    let _tracing = Instance::create(&tracefs, &settings).context("cannot trace")?;
    run()
}
