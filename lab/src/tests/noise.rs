//! Gaps of known length are found by a thread that never sleeps, each once, with length, culprit and sum.

use std::{fs, ops::Range};

use anyhow::{Context, Result, ensure};
use record::{CauseKind, Evidence, Noise, Series, Spike};

use super::culprits::delays::{Delay, Dice, HOLD, adds_up};
use crate::inside::{expect, median, punctual, recorded, write};

const HOLD_NS: i64 = 100_000;
/// What waits in the module at a time is bounded.
const HOLDS: usize = 240;
/// They begin when the probe surely looks, and end before it does.
const HOLDS_NS: Range<i64> = 12_000_000_000..19_500_000_000;
const DURATION_S: i64 = 22;
const PERIOD_NS: i64 = 100_000_000;
/// With one CPU, the rest is for all that punctual does besides: else the kernel takes the CPU for it.
const RUNTIME_NS: i64 = 60_000_000;
/// The probe is back from its rest after this, and looks for at most this much longer than asked, ns.
const EDGE_NS: i64 = 2_000_000;
/// The kernel's ticks and the way into a handler and out again stay below.
const THRESHOLD_NS: i64 = 80_000;
/// What is measured of a gap of 100 us may be wrong by this.
const TOLERANCE_NS: i64 = 2_000;
/// Of what came while the probe was to look, so many per cent must be found.
const FOUND_PERCENT: usize = 97;
/// A tick may come at the same time as a hold; of so many per cent none does.
const UNDISTURBED_PERCENT: usize = 90;

/// Interrupt handlers of 100 us at irregular times.
pub fn known_gaps_are_found() -> Result<()> {
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
    ensure!(holds.len() == HOLDS, "{} of {HOLDS} were held", holds.len());
    let series = record.series.first().context("no series")?;
    let noise = series.kind.noise().context("no series of the noise probe")?;
    ensure!(series.granted.policy == "fifo:80" && series.cpu_checks > 100, "{:?}", series.granted);
    let seen: Vec<&Delay> = holds.iter().filter(|hold| is_looked_at(series, hold)).collect();
    ensure!(seen.len() > HOLDS / 3, "only {} holds while the probe looked", seen.len());
    let found = seen.iter().map(|hold| find(series, hold)).collect::<Result<Vec<_>>>()?;
    let looked_at = seen.len();
    let (seen, gaps): (Vec<&Delay>, Vec<&Spike>) =
        seen.into_iter().zip(found).filter_map(|(hold, gap)| Some((hold, gap?))).unzip();
    // Now and then the kernel gives ordinary threads their share just when the probe is to begin.
    ensure!(gaps.len() * 100 >= looked_at * FOUND_PERCENT, "{} of {looked_at} were found", gaps.len());
    lengths(&seen, &gaps)?;
    culprits(&seen, &gaps)?;
    sums(series, noise, &holds)
}

/// Whether the probe surely looked all the time of a hold and some around it, and nothing else came within.
fn is_looked_at(series: &Series, hold: &Delay) -> bool {
    let since_ns = hold.begin_ns - series.first_deadline_ns;
    let in_run = (0..DURATION_S * 1_000_000_000).contains(&since_ns);
    in_run && (EDGE_NS..RUNTIME_NS - EDGE_NS).contains(&(since_ns % PERIOD_NS)) && hold.gaps.is_empty()
}

/// The one gap around a hold.
fn find<'a>(series: &'a Series, hold: &Delay) -> Result<Option<&'a Spike>> {
    let around = |spike: &&Spike| {
        let begin_ns = series.first_deadline_ns + spike.at_ns as i64;
        // The two clocks are one; a microsecond for reading them.
        begin_ns <= hold.begin_ns + 1_000 && begin_ns + spike.lateness_ns >= hold.end_ns - 1_000
    };
    let found: Vec<&Spike> = series.spikes.iter().filter(around).collect();
    ensure!(found.len() <= 1, "{hold:?} is in {} gaps: {found:?}", found.len());
    Ok(found.first().copied())
}

/// Each gap is as long as its hold and the way into the handler and out of it, which is always the same.
fn lengths(holds: &[&Delay], gaps: &[&Spike]) -> Result<()> {
    let ways: Vec<i64> =
        holds.iter().zip(gaps).map(|(hold, gap)| gap.lateness_ns - (hold.end_ns - hold.begin_ns)).collect();
    let way_ns = median(&ways);
    ensure!((0..HOLD_NS / 2).contains(&way_ns), "the way into the handler and out again took {way_ns} ns");
    let same = ways.iter().filter(|&&ns| (ns - way_ns).abs() <= TOLERANCE_NS).count();
    println!("way {way_ns} ns, {same} of {} within {TOLERANCE_NS} ns", ways.len());
    ensure!(same * 100 >= ways.len() * UNDISTURBED_PERCENT, "{same} of {} as long as they were: {ways:?}", ways.len());
    Ok(())
}

/// The handler is named, with its time.
fn culprits(holds: &[&Delay], gaps: &[&Spike]) -> Result<()> {
    let mut same = 0;
    for (hold, gap) in holds.iter().zip(gaps) {
        adds_up(gap)?;
        let first = gap.culprits.first().context("a gap without culprits")?;
        let named = first.cause.kind == CauseKind::Interrupt && first.cause.name == "hold-source";
        ensure!(named && gap.evidence == Evidence::Trace, "{:?} {:?}", gap.evidence, gap.culprits);
        // The events that tell of the handler lie a little outside what it tells of itself.
        let error_ns = first.ns as i64 - (hold.end_ns - hold.begin_ns);
        same += usize::from((0..=3 * TOLERANCE_NS).contains(&error_ns));
    }
    ensure!(same * 100 >= gaps.len() * UNDISTURBED_PERCENT, "{same} of {} with their time", gaps.len());
    Ok(())
}

/// What was lost is what was held, and the way in and out of each; and nothing but holds is a gap.
fn sums(series: &Series, noise: &Noise, holds: &[Delay]) -> Result<()> {
    let gaps_ns: i64 = series.spikes.iter().map(|gap| gap.lateness_ns).sum();
    let lost_ns = noise.lost_ns as i64;
    let floors_ns = series.samples as i64 * series.floor_ns as i64;
    ensure!(lost_ns == gaps_ns - floors_ns, "lost {lost_ns}, gaps {gaps_ns} without {floors_ns} of the loop itself");
    let in_gaps = |hold: &&Delay| find(series, hold).is_ok_and(|gap| gap.is_some());
    let held_ns: i64 = holds.iter().filter(in_gaps).map(|hold| hold.end_ns - hold.begin_ns).sum();
    let ways_ns = lost_ns - held_ns;
    // Ticks that coincide make some of the ways longer.
    let most_ns = series.samples as i64 * HOLD_NS / 2;
    ensure!((0..most_ns).contains(&ways_ns), "lost {lost_ns}, held {held_ns}");
    let observed_ns = noise.observed_ns as i64;
    let periods = DURATION_S * 1_000_000_000 / PERIOD_NS;
    ensure!(
        (periods * (RUNTIME_NS - EDGE_NS)..periods * (RUNTIME_NS + EDGE_NS)).contains(&observed_ns),
        "looked for {observed_ns} ns in {periods} periods"
    );
    println!("counter {}, floor {} ns, lost {lost_ns}, held {held_ns} ns", noise.counter, series.floor_ns);
    ensure!(series.notes.is_empty(), "{:?}", series.notes);
    Ok(())
}
