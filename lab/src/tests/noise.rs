//! A thread that never sleeps finds each known gap once, with length, culprit and total.

use std::{fs, ops::Range};

use anyhow::{Context, Result, ensure};
use record::{CauseKind, Evidence, Noise, Series, Spike};

use super::culprits::delays::{Delay, Dice, HOLD, adds_up};
use crate::inside::{expect, median, punctual, recorded, write};

const HOLD_NS: i64 = 100_000;
/// The module can queue only a limited number of holds.
const HOLDS: usize = 240;
/// The holds start when the probe is certainly measuring, and end before it stops.
const HOLDS_NS: Range<i64> = 12_000_000_000..19_500_000_000;
const DURATION_S: i64 = 22;
const PERIOD_NS: i64 = 100_000_000;
/// With one CPU, the rest is for punctual's other threads; otherwise the kernel would throttle the probe.
const RUNTIME_NS: i64 = 60_000_000;
/// The probe starts late by at most this after its pause, and measures at most this much longer than requested, ns.
const EDGE_NS: i64 = 2_000_000;
/// Kernel ticks and interrupt overhead are shorter than this.
const THRESHOLD_NS: i64 = 80_000;
/// Allowed error of a measured gap of 100 us.
const TOLERANCE_NS: i64 = 2_000;
/// Minimum percentage of the holds during measuring time that must be found.
const FOUND_PERCENT: usize = 97;
/// A tick can coincide with a hold; at least this percentage must be undisturbed.
const UNDISTURBED_PERCENT: usize = 90;

/// Interrupt handlers of 100 us at irregular times.
pub fn finds_known_gaps() -> Result<()> {
    fs::read_to_string(HOLD).context("cannot read /dev/hold")?;
    let mut dice = Dice::new();
    for _ in 0..HOLDS {
        write(HOLD, &format!("after {} hardirq {HOLD_NS}", dice.roll(HOLDS_NS)))?;
    }
    let options = format!(
        "--cpus 0 --policy fifo:80 --runtime {RUNTIME_NS}ns --threshold {THRESHOLD_NS}ns --duration {DURATION_S}s --blame"
    );
    expect(0, &punctual(&format!("measure noise --quiet --record noise {options}"))?)?;
    let record = recorded("noise")?;
    let log = fs::read_to_string(HOLD)?;
    let holds = log.lines().map(|line| Delay::of_log(line, "hardirq")).collect::<Result<Vec<_>>>()?;
    ensure!(holds.len() == HOLDS, "only {} of {HOLDS} holds", holds.len());
    let series = record.series.first().context("no series")?;
    let noise = series.kind.noise().context("no series of the noise probe")?;
    ensure!(series.granted.policy == "fifo:80" && series.cpu_checks > 100, "{:?}", series.granted);
    let seen: Vec<&Delay> = holds.iter().filter(|hold| is_observed(series, hold)).collect();
    ensure!(seen.len() > HOLDS / 3, "only {} holds while the probe measured", seen.len());
    let found = seen.iter().map(|hold| find(series, hold)).collect::<Result<Vec<_>>>()?;
    let observed = seen.len();
    let (seen, gaps): (Vec<&Delay>, Vec<&Spike>) =
        seen.into_iter().zip(found).filter_map(|(hold, gap)| Some((hold, gap?))).unzip();
    // Occasionally the kernel gives normal threads their share just when the probe should start.
    ensure!(gaps.len() * 100 >= observed * FOUND_PERCENT, "only {} of {observed} found", gaps.len());
    check_lengths(&seen, &gaps)?;
    check_culprits(&seen, &gaps)?;
    check_totals(series, noise, &holds)
}

/// True if the probe was certainly measuring during and around a hold, and nothing else interrupted the hold.
fn is_observed(series: &Series, hold: &Delay) -> bool {
    let since_ns = hold.begin_ns - series.first_deadline_ns;
    let in_run = (0..DURATION_S * 1_000_000_000).contains(&since_ns);
    in_run && (EDGE_NS..RUNTIME_NS - EDGE_NS).contains(&(since_ns % PERIOD_NS)) && hold.gaps.is_empty()
}

/// The single gap around a hold.
fn find<'a>(series: &'a Series, hold: &Delay) -> Result<Option<&'a Spike>> {
    let around = |spike: &&Spike| {
        let begin_ns = series.first_deadline_ns + spike.at_ns.cast_signed();
        // Both use the same clock; one microsecond for reading it.
        begin_ns <= hold.begin_ns + 1_000 && begin_ns + spike.lateness_ns >= hold.end_ns - 1_000
    };
    let found: Vec<&Spike> = series.spikes.iter().filter(around).collect();
    ensure!(found.len() <= 1, "{} gaps contain {hold:?}: {found:?}", found.len());
    Ok(found.first().copied())
}

/// Each gap is as long as its hold plus the overhead of entering and leaving the handler, which is constant.
fn check_lengths(holds: &[&Delay], gaps: &[&Spike]) -> Result<()> {
    let overheads: Vec<i64> =
        holds.iter().zip(gaps).map(|(hold, gap)| gap.lateness_ns - (hold.end_ns - hold.begin_ns)).collect();
    let overhead_ns = median(&overheads);
    ensure!((0..HOLD_NS / 2).contains(&overhead_ns), "the interrupt overhead is {overhead_ns} ns");
    let same = overheads.iter().filter(|&&ns| (ns - overhead_ns).abs() <= TOLERANCE_NS).count();
    println!("overhead {overhead_ns} ns, {same} of {} within {TOLERANCE_NS} ns", overheads.len());
    ensure!(
        same * 100 >= overheads.len() * UNDISTURBED_PERCENT,
        "only {same} of {} with the correct length: {overheads:?}",
        overheads.len()
    );
    Ok(())
}

/// The handler is named with its time.
fn check_culprits(holds: &[&Delay], gaps: &[&Spike]) -> Result<()> {
    let mut same = 0;
    for (hold, gap) in holds.iter().zip(gaps) {
        adds_up(gap)?;
        let first = gap.culprits.first().context("a gap without culprits")?;
        let named = first.cause.kind == CauseKind::Interrupt && first.cause.name == "hold-source";
        ensure!(named && gap.evidence == Evidence::Trace, "{:?} {:?}", gap.evidence, gap.culprits);
        // The trace events of the handler are slightly outside the times that it records itself.
        let error_ns = first.ns.cast_signed() - (hold.end_ns - hold.begin_ns);
        same += usize::from((0..=3 * TOLERANCE_NS).contains(&error_ns));
    }
    ensure!(same * 100 >= gaps.len() * UNDISTURBED_PERCENT, "only {same} of {} with the correct time", gaps.len());
    Ok(())
}

/// The lost time equals the holds plus the overhead of each, and every gap is a hold.
fn check_totals(series: &Series, noise: &Noise, holds: &[Delay]) -> Result<()> {
    let gaps_ns: i64 = series.spikes.iter().map(|gap| gap.lateness_ns).sum();
    let lost_ns = noise.lost_ns.cast_signed();
    let floors_ns = series.samples.cast_signed() * series.floor_ns.cast_signed();
    ensure!(lost_ns == gaps_ns - floors_ns, "lost {lost_ns}, gaps {gaps_ns} without {floors_ns} of the loop itself");
    let in_gaps = |hold: &&Delay| find(series, hold).is_ok_and(|gap| gap.is_some());
    let held_ns: i64 = holds.iter().filter(in_gaps).map(|hold| hold.end_ns - hold.begin_ns).sum();
    let overhead_ns = lost_ns - held_ns;
    // Coinciding ticks make some of the overheads longer.
    let max_ns = series.samples.cast_signed() * HOLD_NS / 2;
    ensure!((0..max_ns).contains(&overhead_ns), "lost {lost_ns}, held {held_ns}");
    let observed_ns = noise.observed_ns.cast_signed();
    let periods = DURATION_S * 1_000_000_000 / PERIOD_NS;
    ensure!(
        (periods * (RUNTIME_NS - EDGE_NS)..periods * (RUNTIME_NS + EDGE_NS)).contains(&observed_ns),
        "measured for {observed_ns} ns in {periods} periods"
    );
    println!("counter {}, floor {} ns, lost {lost_ns}, held {held_ns} ns", noise.counter, series.floor_ns);
    ensure!(series.notes.is_empty(), "{:?}", series.notes);
    Ok(())
}
