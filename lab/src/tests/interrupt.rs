//! Interrupts from outside: the way to the thread is measured from the right instant, and what delays it is named.

use anyhow::{Context, Result, ensure};
use record::{CauseKind, Culprit, Interrupts, Record, Series, Why, Zero};
use sys::sched::Policy;

use super::culprits::delays::{DELAYS, Expected, Measuring, at_irregular_times, hold, judge, judge_most, spin};
use crate::inside::{expect, punctual, read, recorded, write};

/// Period of the HPET's interrupt: that of the delays' probe.
const HPET: &str = "interrupt --source hpet --cpu 0";

/// The figures of the only series.
fn interrupts(record: &Record) -> Result<(&Series, &Interrupts)> {
    let [series] = &record.series[..] else { anyhow::bail!("{} series", record.series.len()) };
    Ok((series, series.kind.interrupts().context("no interrupts")?))
}

/// The HPET is listed, each of its interrupts is counted, and their times begin at its counter.
pub fn the_hpet_counts_each_interrupt() -> Result<()> {
    let list = expect(0, &punctual("measure interrupt --list")?)?;
    ensure!(list.lines().any(|line| line.starts_with("hpet ")), "{list}");
    let arguments = "measure interrupt --source hpet --quiet --duration 2s --record hpet --export hpet.html";
    expect(0, &punctual(arguments)?)?;
    let record = recorded("hpet")?;
    ensure!(record.validity.valid, "{:?}", record.validity.reasons);
    let (series, figures) = interrupts(&record)?;
    ensure!(figures.zero == Zero::Counter && figures.resolution_ns == Some(10), "{figures:?}");
    ensure!(series.samples.abs_diff(2000) <= 2 && figures.lost == 0, "{} interrupts, {figures:?}", series.samples);
    ensure!(series.early == 0 && series.min_ns > Some(0), "{:?}", series.min_ns);
    Ok(())
}

/// A section with interrupts off delays the handler. The kernel's own clocks do not show that; the HPET's counter does.
pub fn interrupts_off_delay_the_hpet() -> Result<()> {
    let measuring = Measuring::start_probe(HPET, "1ms", "hpet-irqs", "--policy fifo:80")?;
    let delays = hold("irqs")?;
    let is = |culprit: &Culprit| culprit.cause.kind == CauseKind::LateInterrupt && culprit.cause.name == "holder";
    judge(&measuring.end()?, &delays, &Expected { is: &is, timed: true })
}

/// Another interrupt's handler.
pub fn a_handler_delays_the_hpet() -> Result<()> {
    let measuring = Measuring::start_probe(HPET, "1ms", "hpet-hardirq", "--policy fifo:80")?;
    let delays = hold("hardirq")?;
    let is = |culprit: &Culprit| culprit.cause.kind == CauseKind::Interrupt && culprit.cause.name == "hold-source";
    judge(&measuring.end()?, &delays, &Expected { is: &is, timed: true })
}

/// A thread of higher priority.
pub fn a_thread_delays_the_hpet() -> Result<()> {
    let measuring = Measuring::start_probe(HPET, "1ms", "hpet-thread", "--policy fifo:80")?;
    let mut spaces: Vec<_> = std::iter::repeat_with(|| Vec::with_capacity(8)).take(DELAYS).collect();
    let delays = at_irregular_times("intruder", Policy::Fifo(90), move |length_ns| {
        Ok(spin(length_ns, spaces.pop().context("more delays than planned")?))
    })?;
    let is = |culprit: &Culprit| {
        culprit.cause.kind == CauseKind::Thread
            && culprit.cause.name == "intruder"
            && culprit.cause.why == Some(Why::HigherPriority)
    };
    // Several expiries of a delay become one interrupt, whose spike belongs to the first: up to 2 % are explained wrongly.
    judge_most(&measuring.end()?, &delays, &Expected { is: &is, timed: true }, 97)
}

/// Sets a parameter of the module `lines`.
fn set(parameter: &str, value: u32) -> Result<()> {
    write(&format!("/sys/module/lines/parameters/{parameter}"), &value.to_string())
}

/// Reads a counter of the module `lines`.
fn counted(parameter: &str) -> Result<u64> {
    Ok(read(&format!("/sys/module/lines/parameters/{parameter}"))?.parse()?)
}

/// Measures a line that another line of the module drives.
fn driven(name: &str, more: &str) -> Result<Record> {
    let arguments = format!(
        "measure interrupt --source gpio:0/in0 --drive 0/out0 --cpu 0 --period 10ms --duration 4s --quiet --record {name}"
    );
    expect(0, &punctual(&format!("{arguments} {more}"))?)?;
    recorded(name)
}

/// An edge of the output line takes a known time to the input line: that is the way to the kernel, no more of it.
pub fn the_way_of_an_edge_is_split() -> Result<()> {
    const WIRE_NS: u32 = 2_000_000;
    set("delay_ns", WIRE_NS)?;
    let record = driven("wire", "")?;
    set("delay_ns", 20_000)?;
    ensure!(record.validity.valid, "{:?}", record.validity.reasons);
    let (series, figures) = interrupts(&record)?;
    ensure!(figures.zero == Zero::Edge && figures.device.contains("in0"), "{figures:?}");
    ensure!(
        series.samples.abs_diff(400) <= 3 && figures.lost + figures.spurious + figures.unanswered == 0,
        "{figures:?}"
    );
    let to_kernel = figures.to_kernel.as_ref().context("no way to the kernel")?;
    let to_thread = figures.to_thread.as_ref().context("no way to the thread")?;
    ensure!(
        to_kernel.min_ns >= WIRE_NS.into() && to_kernel.mean_ns < f64::from(WIRE_NS) * 1.1,
        "{to_kernel:?} for a wire of {WIRE_NS} ns"
    );
    ensure!(to_thread.max_ns < i64::from(WIRE_NS) / 2, "{to_thread:?}");
    let (whole, parts) = (series.mean_ns.unwrap_or_default(), to_kernel.mean_ns + to_thread.mean_ns);
    ensure!((whole - parts).abs() < 2.0, "{whole} ns, but its parts take {parts} ns");
    Ok(())
}

/// Edges without an interrupt and interrupts without an edge are counted exactly, and move no other.
pub fn lost_and_spurious_edges_are_counted() -> Result<()> {
    set("lose_every", 7)?;
    set("bounce_every", 11)?;
    let before = [counted("lost")?, counted("bounced")?];
    let record = driven("bounce", "")?;
    let after = [counted("lost")?, counted("bounced")?];
    set("lose_every", 0)?;
    set("bounce_every", 0)?;
    let (series, figures) = interrupts(&record)?;
    let [lost, bounced] = [after[0] - before[0], after[1] - before[1]];
    ensure!(lost > 40 && bounced > 25, "{lost} lost, {bounced} bounced");
    // The last edge may come after the end of the measurement. The kernel may merge a repetition with its interrupt.
    let few = |counted: u64, all: u64| counted <= all && all - counted <= 3;
    let repeated = (1..=bounced).contains(&figures.spurious);
    ensure!(few(figures.unanswered, lost) && repeated, "{lost} {bounced} {figures:?}");
    ensure!((series.samples + figures.unanswered).abs_diff(400) <= 3, "{} {figures:?}", series.samples);
    ensure!(series.max_ns < Some(5_000_000), "an edge was taken for that of another period: {:?}", series.max_ns);
    Ok(())
}

/// Errors for a silent line, a line in use and a missing line.
pub fn unusable_lines_are_reported() -> Result<()> {
    let silent = punctual("measure interrupt --source gpio:0/in1 --duration 300ms --no-record")?;
    let out = expect(4, &silent)?;
    ensure!(out.contains("o interrupt came from gpio:gpiochip0/in1") && out.contains("--drive LINE"), "{out}");
    let error = |arguments: &str| -> Result<String> {
        let output = punctual(&format!("measure interrupt {arguments} --duration 300ms --no-record"))?;
        expect(1, &output)?;
        Ok(String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let missing = error("--source gpio:0/77")?;
    ensure!(missing.contains("no line gpiochip0/77: see `gpioinfo`"), "{missing}");
    let used = error("--source gpio:0/in0 --drive 0/in0")?;
    ensure!(used.contains("cannot use the line gpiochip0/in0") && used.contains("punctual uses it"), "{used}");
    let no_chip = error("--source gpio:5/1")?;
    ensure!(no_chip.contains("this machine has gpiochip0"), "{no_chip}");
    Ok(())
}
