//! `--timerlat`: the figures of the kernel's tracer, and their agreement with our explanations.

use std::{
    fs::{self, File},
    io::Read,
    path::Path,
    thread,
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use record::{CauseKind, Evidence, Histogram, Record, Series, Spike, Split, TIMERLAT_IRQ, TIMERLAT_THREAD};
use rustix::process::Signal;

use super::culprits::{
    delays::{Delay, Measuring, RELEVANT_NS, adds_up, hold},
    tally::Tally,
};
use crate::inside::{expect, measure, punctual, write};

const TRACING: &str = "/sys/kernel/tracing";

/// The content of a tracing file. The kernel refuses to read some of them in small parts.
fn read(path: &str) -> Result<String> {
    let mut file = File::open(path).with_context(|| format!("cannot open {path}"))?;
    let (mut bytes, mut piece) = (Vec::new(), vec![0; 1 << 16]);
    loop {
        match file.read(&mut piece).with_context(|| format!("cannot read {path}"))? {
            0 => return Ok(String::from_utf8_lossy(&bytes).trim().to_owned()),
            length => bytes.extend_from_slice(&piece[..length]),
        }
    }
}

fn series<'a>(record: &'a Record, role: &str) -> Result<&'a Series> {
    record.series.iter().find(|series| series.role == role).with_context(|| format!("no series {role}"))
}

/// One cycle as printed by the tracer.
#[derive(Debug, Default, Clone, Copy)]
struct Cycle {
    irq_ns: Option<i64>,
    thread_ns: i64,
    deadline_us: i64,
}

/// A second tracing instance sees the same cycles; its text output has the same latencies.
pub fn agrees_with_the_tracer() -> Result<()> {
    let instance = format!("{TRACING}/instances/peer");
    fs::create_dir(&instance)?;
    write(&format!("{instance}/trace_clock"), "mono")?;
    write(&format!("{instance}/buffer_size_kb"), "4096")?;
    write(&format!("{instance}/current_tracer"), "timerlat")?;
    let record = measure(0, "timerlat", "--cpus 0 --timerlat --duration 4s --blame=off")?;
    write(&format!("{instance}/tracing_on"), "0")?;
    let text = read(&format!("{instance}/trace"))?;
    fs::remove_dir(&instance)?;

    let (irq, thread) = (series(&record, TIMERLAT_IRQ)?, series(&record, TIMERLAT_THREAD)?);
    let first_us = thread.first_deadline_ns / 1000;
    let peer: Vec<Cycle> = cycles(&text).into_iter().filter(|cycle| cycle.deadline_us >= first_us - 100).collect();
    let count = usize::try_from(thread.samples)?;
    ensure!(count > 3_500 && irq.samples == thread.samples, "{} and {count} samples in 4 s", irq.samples);
    ensure!(peer.len() >= count, "{} cycles in the second instance, {count} in the record", peer.len());
    let irqs = peer[..count].iter().map(|cycle| cycle.irq_ns.context("a cycle without its interrupt"));
    check_same(irq, &irqs.collect::<Result<Vec<_>>>()?)?;
    check_same(thread, &peer[..count].iter().map(|cycle| cycle.thread_ns).collect::<Vec<_>>())?;

    let median = |series: &Series| series.raw.percentile(50.0);
    ensure!(median(irq) < median(thread), "interrupt {:?}, thread {:?}", median(irq), median(thread));
    ensure!(thread.granted.policy == "fifo:95" && thread.period_ns == 1_000_000, "{:?}", thread.granted);
    ensure!(
        record.scenario.timerlat && record.caveats.iter().any(|caveat| caveat.kind == "timerlat"),
        "the caveat is missing"
    );
    ensure!(record.probe_series().count() == 1, "{} series of the probe", record.probe_series().count());
    Ok(())
}

/// Checks that a series consists of these latencies.
fn check_same(series: &Series, latencies: &[i64]) -> Result<()> {
    let mut histogram = Histogram::default();
    latencies.iter().for_each(|&ns| histogram.record(ns));
    ensure!(series.raw == histogram, "{}: histograms differ: {:?} and {histogram:?}", series.role, series.raw);
    let (min, max) = (latencies.iter().copied().min(), latencies.iter().copied().max());
    ensure!((series.min_ns, series.max_ns) == (min, max), "{}: {min:?} to {max:?}, {series:?}", series.role);
    let mean_ns = latencies.iter().sum::<i64>() as f64 / latencies.len() as f64;
    ensure!(series.mean_ns.is_some_and(|ours| (ours - mean_ns).abs() < 1e-6), "{}: mean {mean_ns}", series.role);
    Ok(())
}

/// The complete cycles in lines such as `<idle>-0 [000] d.h2. 27.000101: #3012 context    irq timer_latency     11672
/// ns`.
fn cycles(text: &str) -> Vec<Cycle> {
    let mut all = Vec::new();
    let mut irq = None;
    for line in text.lines() {
        let Some((before, latency)) = line.split_once(" timer_latency ") else { continue };
        let words: Vec<&str> = before.split_whitespace().collect();
        let (Some(&context), Some(number)) = (words.last(), words.len().checked_sub(3)) else { continue };
        let latency_ns: i64 = latency.split_whitespace().next().and_then(|ns| ns.parse().ok()).unwrap_or(-1);
        let stamp = words[number - 1].trim_end_matches(':').replace('.', "");
        if context == "irq" {
            irq = Some((words[number], latency_ns));
        } else if let Ok(stamp_us) = stamp.parse::<i64>() {
            let irq_ns = irq.take().filter(|&(cycle, _)| cycle == words[number]).map(|(_, ns)| ns);
            all.push(Cycle { irq_ns, thread_ns: latency_ns, deadline_us: stamp_us - latency_ns / 1000 });
        }
    }
    all
}

/// With interrupts off, the interrupt is late and nothing is added after it.
pub fn interrupts_off() -> Result<()> {
    judge("timerlat-irqs", "irqs", |split, late_ns| close(split.irq_ns, late_ns) && close(split.thread_ns, late_ns))
}

/// With preemption off, the interrupt is on time and the thread is late.
pub fn preemption_off() -> Result<()> {
    judge("timerlat-preempt", "preempt", |split, late_ns| {
        split.irq_ns < RELEVANT_NS as u64 / 5 && close(split.thread_ns, late_ns)
    })
}

/// True if the kernel measured the lateness that the hold caused, plus the latency from the hold's end to the thread.
fn close(seen_ns: u64, late_ns: i64) -> bool {
    const LATENCY_NS: i64 = 80_000;
    (-5_000..=late_ns / 20 + LATENCY_NS).contains(&(seen_ns.cast_signed() - late_ns))
}

/// True if two times agree within 5 % plus 5 us.
fn agree(ours_ns: u64, kernels_ns: u64) -> bool {
    ours_ns.abs_diff(kernels_ns) <= kernels_ns / 20 + 5_000
}

/// Lets the module hold the CPU at irregular times. Checks the split of each late thread against the holds, and our
/// explanations against the split.
fn judge(name: &'static str, command: &'static str, is_right: fn(&Split, i64) -> bool) -> Result<()> {
    // With the tracer's period of 1 ms, the probe's timer could always expire in the tracer's interrupt. Its time would
    // then belong to both another cause and the normal latency.
    let measuring = Measuring::start_every("1370us", name, "--timerlat --policy fifo:80")?;
    let delays = hold(command)?;
    let record = measuring.end()?;
    let usual_irq_ns = series(&record, TIMERLAT_IRQ)?.raw.percentile(50.0).context("no samples")?.cast_unsigned();
    let series = series(&record, TIMERLAT_THREAD)?;
    let (mut splits, mut explanations) = (Tally::default(), Tally::default());
    for delay in &delays {
        let Some((spike, late_ns)) = late_by(series, delay) else { continue };
        let split = spike.split.context("a spike without the kernel's split")?;
        adds_up(spike)?;
        if is_right(&split, late_ns) {
            splits.right();
        } else {
            splits.wrong(format!("{split:?} instead of {late_ns} ns"));
        }
        // A record has the time lines of the worst spikes only.
        if spike.timeline.is_empty() {
            continue;
        }
        let to_irq_ns = explained_until_ns(spike, split.irq_ns) + usual_irq_ns;
        let rest_ns = spike.lateness_ns.cast_unsigned().saturating_sub(to_irq_ns);
        let agrees = agree(to_irq_ns, split.irq_ns) && agree(rest_ns, split.thread_ns - split.irq_ns);
        if agrees && spike.evidence == Evidence::Trace {
            explanations.right();
        } else {
            explanations.wrong(format!("{to_irq_ns} ns to the interrupt, {rest_ns} after it: {spike:?}"));
        }
    }
    splits.judge(99).context("the kernel's split")?;
    explanations.judge(99).context("our explanation")
}

/// The spike of a hold and the lateness caused by it; `None` if the hold hardly affected a deadline.
fn late_by<'a>(series: &'a Series, delay: &Delay) -> Option<(&'a Spike, i64)> {
    let late_ns = |spike: &Spike| {
        let deadline_ns = series.first_deadline_ns + spike.at_ns.cast_signed();
        if deadline_ns < delay.begin_ns { 0 } else { delay.end_ns - deadline_ns }
    };
    let late = series.spikes.iter().map(|spike| (spike, late_ns(spike)));
    late.max_by_key(|&(_, late_ns)| late_ns).filter(|&(_, late_ns)| late_ns >= RELEVANT_NS)
}

/// The time until which our time line names other causes before the tracer read the clock in its timer interrupt, ns
/// after the deadline: the start of that interrupt, or the end of the last earlier timer in it. From there on it is the
/// kernel's constant latency.
fn explained_until_ns(spike: &Spike, irq_ns: u64) -> u64 {
    let is_due = |kind| matches!(kind, CauseKind::LateInterrupt | CauseKind::IdleExit | CauseKind::Interrupt);
    let late: Vec<_> = spike.timeline.iter().filter(|stretch| stretch.start_ns >= 0).collect();
    let taken = late.iter().take_while(|stretch| is_due(stretch.cause.kind)).count();
    let in_interrupt = late[taken..].iter().take_while(|stretch| stretch.start_ns < irq_ns.cast_signed());
    let timers = in_interrupt.filter(|stretch| stretch.cause.kind == CauseKind::Timer);
    late[..taken].iter().chain(timers).last().map_or(0, |stretch| stretch.start_ns.cast_unsigned() + stretch.ns)
}

/// After the end of a run, and after the run that follows a killed one, nothing of the tracer remains and the global
/// settings are restored.
pub fn leaves_nothing_behind() -> Result<()> {
    let before = global_state()?;
    let own = || -> Result<Vec<String>> {
        let names =
            fs::read_dir(format!("{TRACING}/instances"))?.map(|entry| Ok(entry?.file_name().into_string().ok()));
        let names: Vec<Option<String>> = names.collect::<Result<_>>()?;
        Ok(names.into_iter().flatten().filter(|name| name.starts_with("punctual-")).collect())
    };
    let measuring = Measuring::start("killed", "--timerlat")?;
    ensure!(own()?.len() == 2 && has_threads()?, "timerlat is not running: {:?}", own()?);
    measuring.signal(Signal::KILL)?;
    thread::sleep(Duration::from_millis(300));
    ensure!(!own()?.is_empty(), "there is nothing to clean up");
    measure(0, "cleaned", "--cpus 0 --samples 100")?;
    ensure!(own()?.is_empty() && !has_threads()?, "left behind: {:?}", own()?);
    measure(0, "ended", "--cpus 0 --samples 100 --timerlat")?;
    ensure!(own()?.is_empty() && !has_threads()?, "left behind: {:?}", own()?);
    let after = global_state()?;
    ensure!(before == after, "before: {before:?}, after: {after:?}");
    Ok(())
}

fn has_threads() -> Result<bool> {
    let mut found = false;
    for entry in fs::read_dir("/proc")? {
        let comm = fs::read_to_string(entry?.path().join("comm")).unwrap_or_default();
        found |= comm.starts_with("timerlat/");
    }
    Ok(found)
}

/// Settings that apply to the whole machine.
fn global_state() -> Result<Vec<(String, String)>> {
    let mut files: Vec<String> =
        ["current_tracer", "tracing_on", "trace_clock", "tracing_cpumask", "buffer_size_kb", "set_event"]
            .map(str::to_owned)
            .to_vec();
    for entry in fs::read_dir(Path::new(TRACING).join("osnoise"))? {
        files.push(format!("osnoise/{}", entry?.file_name().to_string_lossy()));
    }
    files.retain(|file| Path::new(TRACING).join(file).is_file());
    files.into_iter().map(|file| Ok((file.clone(), read(&format!("{TRACING}/{file}"))?))).collect()
}

/// If the tracer is unavailable, one sentence gives the reason and the remedy before the measurement.
pub fn explains_why_timerlat_is_unavailable() -> Result<()> {
    let refused_with = |expected: &str| -> Result<()> {
        let output = punctual("measure timer --quiet --cpus 0 --samples 10 --timerlat --record refused")?;
        expect(1, &output)?;
        let stderr = String::from_utf8_lossy(&output.stderr);
        ensure!(stderr.trim_end().lines().count() == 1 && stderr.contains(expected), "{stderr}");
        ensure!(!Path::new("refused.punctual.json").exists(), "there is a record");
        Ok(())
    };
    write(&format!("{TRACING}/osnoise/stop_tracing_us"), "50")?;
    let stops = refused_with("echo 0 | tee /sys/kernel/tracing/osnoise/stop_tracing_us");
    write(&format!("{TRACING}/osnoise/stop_tracing_us"), "0")?;
    stops?;
    write(&format!("{TRACING}/current_tracer"), "osnoise")?;
    let busy = refused_with("the kernel's osnoise tracer is running");
    write(&format!("{TRACING}/current_tracer"), "nop")?;
    busy
}

/// A CPU excluded from the tracer is named with the command that allows it. Afterwards both CPUs are measured.
pub fn on_two_cpus() -> Result<()> {
    let cpus = format!("{TRACING}/osnoise/cpus");
    let before = read(&cpus)?;
    write(&cpus, "0")?;
    let refused = punctual("measure timer --quiet --cpus 0-1 --samples 10 --timerlat --no-record")?;
    expect(1, &refused)?;
    let stderr = String::from_utf8_lossy(&refused.stderr);
    // The guest has no sudo.
    ensure!(stderr.contains("configured without CPU 1: allow it there with `echo 0-1 | tee "), "stderr: {stderr}");
    write(&cpus, "0-1")?;
    let record = measure(0, "two", "--cpus 0-1 --duration 2s --timerlat --threshold 50us")?;
    write(&cpus, &before)?;
    let of = |cpu, role: &str| record.series.iter().find(|series| series.cpu == Some(cpu) && series.role == role);
    for (cpu, role) in [(0, TIMERLAT_IRQ), (0, TIMERLAT_THREAD), (1, TIMERLAT_IRQ), (1, TIMERLAT_THREAD)] {
        let samples = of(cpu, role).context("a series is missing")?.samples;
        ensure!(samples > 100, "{samples} samples of {role} on CPU {cpu}");
    }
    ensure!(record.series.len() == 6, "{} series", record.series.len());
    // If many spikes occur at once, some are not explained.
    let spikes = record.series.iter().flat_map(|series| &series.spikes);
    spikes.filter(|spike| !spike.culprits.is_empty()).try_for_each(adds_up)
}

/// A kernel without the tracer.
pub fn is_absent() -> Result<()> {
    let refused = punctual("measure timer --quiet --samples 10 --timerlat --no-record")?;
    expect(1, &refused)?;
    let stderr = String::from_utf8_lossy(&refused.stderr);
    ensure!(stderr.contains("this kernel has no timerlat tracer"), "stderr: {stderr}");
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn parses_the_tracers_text() {
        let text = "# tracer: timerlat\n#                  ||||  /     delay\n\
                    \x20         <idle>-0       [000] d.h1.    27.000101: #1     context    irq timer_latency      1672 ns\n\
                    \x20      timerlat/0-88      [000] .....    27.000110: #1     context thread timer_latency     10100 ns\n\
                    \x20      timerlat/0-88      [000] .....    27.001110: #2     context thread timer_latency     10200 ns\n";
        let cycles = super::cycles(text);
        assert_eq!(cycles.len(), 2);
        assert_eq!((cycles[0].irq_ns, cycles[0].thread_ns, cycles[0].deadline_us), (Some(1672), 10100, 27_000_100));
        assert_eq!((cycles[1].irq_ns, cycles[1].thread_ns), (None, 10200));
    }
}
