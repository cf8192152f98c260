//! Devices that only count their interrupts, whose times come from the trace of the kernel's handler.

use std::{
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use record::{CauseKind, Culprit, Record, Why, Zero};
use sys::sched::Policy;

use super::interrupts;
use crate::{
    inside::{expect, punctual, read, recorded, start, write},
    tests::culprits::delays::{DELAYS, Expected, Measuring, at_irregular_times, judge, spin},
};

/// A parameter file of the module `user`.
fn of_user(parameter: &str) -> String {
    format!("/sys/module/user/parameters/{parameter}")
}

/// Measures the UIO device.
fn measured(source: &str, name: &str) -> Result<Record> {
    let arguments = "--cpu 0 --period 10ms --duration 3s --quiet";
    expect(0, &punctual(&format!("measure interrupt --source {source} {arguments} --record {name}"))?)?;
    recorded(name)
}

/// A real-time clock makes an interrupt each second.
pub fn a_clock_has_an_interrupt_each_second() -> Result<()> {
    let list = expect(0, &punctual("measure interrupt --list")?)?;
    ensure!(list.contains("rtc:rtc0") && list.contains("rtc0, rtc_cmos"), "{list}");
    let (before, begin) = (interrupts_of_line("rtc0")?, Instant::now());
    expect(0, &punctual("measure interrupt --source rtc:0 --cpu 0 --duration 6s --quiet --record clock")?)?;
    let made = interrupts_of_line("rtc0")? - before;
    let seconds = begin.elapsed().as_secs();
    let record = recorded("clock")?;
    ensure!(record.validity.valid, "{:?}", record.validity.reasons);
    let (series, figures) = interrupts(&record)?;
    ensure!(figures.zero == Zero::Trace && figures.resolution_ns == Some(1), "{figures:?}");
    ensure!(series.period_ns == 1_000_000_000 && figures.lost + figures.overruns == 0, "{figures:?}");
    // Others can come before the measurement and after it, one each second.
    let is_each = (5..=7).contains(&series.samples) && (series.samples..=seconds + 1).contains(&made);
    ensure!(is_each, "{made} in {seconds} s, {}", series.samples);
    ensure!(series.early == 0 && series.max_ns < Some(500_000_000), "{:?}", series.max_ns);
    let used = start("measure interrupt --source rtc:0 --cpu 0 --duration 4s --no-record --quiet")?;
    thread::sleep(Duration::from_secs(2));
    let second = punctual("measure interrupt --source rtc:0 --duration 1s --no-record")?;
    expect(1, &second)?;
    let error = String::from_utf8_lossy(&second.stderr).into_owned();
    ensure!(error.contains("cannot use /dev/rtc0") && error.contains("another program uses it"), "{error}");
    expect(0, &used.wait_with_output()?)?;
    Ok(())
}

/// The count of the interrupt with this handler, in `/proc/interrupts` of one CPU.
fn interrupts_of_line(handler: &str) -> Result<u64> {
    let all = read("/proc/interrupts")?;
    let line = all.lines().find(|line| line.ends_with(handler)).with_context(|| all.clone())?;
    Ok(line.split_whitespace().nth(1).context("no count")?.parse()?)
}

/// Each interrupt of a UIO device is counted, also if the device waits until it is enabled again.
pub fn each_interrupt_of_a_user_device_has_its_time() -> Result<()> {
    for waits in ["N", "Y"] {
        write(&of_user("waits"), waits)?;
        let before: u64 = read(&of_user("made"))?.parse()?;
        let record = measured("uio:0", &format!("uio-{waits}"))?;
        let made = read(&of_user("made"))?.parse::<u64>()? - before;
        ensure!(record.validity.valid, "{:?}", record.validity.reasons);
        let (series, figures) = interrupts(&record)?;
        ensure!(figures.zero == Zero::Trace && figures.device == "uio0, user", "{figures:?}");
        ensure!(figures.lost + figures.overruns == 0, "{figures:?} {:?}", record.caveats);
        // Without waiting, others come before and after the measurement.
        ensure!(series.samples.abs_diff(300) <= 3 && made >= series.samples, "{made} {}", series.samples);
        ensure!(series.early == 0 && series.max_ns < Some(10_000_000), "{:?}", series.max_ns);
    }
    // Nobody enables it again.
    thread::sleep(Duration::from_millis(30));
    let silent = punctual("measure interrupt --source uio:0/listen --duration 300ms --no-record")?;
    let out = expect(4, &silent)?;
    write(&of_user("waits"), "N")?;
    ensure!(out.contains("o interrupt came from uio:uio0/listen") && out.contains("without `/listen`"), "{out}");
    let listening = measured("uio:0/listen", "listening")?;
    let (series, figures) = interrupts(&listening)?;
    ensure!(series.samples.abs_diff(300) <= 3 && figures.lost == 0, "{} {figures:?}", series.samples);
    Ok(())
}

/// A thread of higher priority delays the program, not the handler.
pub fn a_thread_delays_the_program() -> Result<()> {
    write(&of_user("period_ns"), "1000000")?;
    let measuring =
        Measuring::start_probe("interrupt --source uio:0 --cpu 0", "1ms", "uio-thread", "--policy fifo:80")?;
    let mut spaces: Vec<_> = std::iter::repeat_with(|| Vec::with_capacity(8)).take(DELAYS).collect();
    let delays = at_irregular_times("intruder", Policy::Fifo(90), move |length_ns| {
        Ok(spin(length_ns, spaces.pop().context("more delays than planned")?))
    })?;
    write(&of_user("period_ns"), "10000000")?;
    let is = |culprit: &Culprit| {
        culprit.cause.kind == CauseKind::Thread
            && culprit.cause.name == "intruder"
            && culprit.cause.why == Some(Why::HigherPriority)
    };
    judge(&measuring.end()?, &delays, &Expected { is: &is, timed: true })
}
