//! Interrupts from outside: the way to the thread is measured from the right instant, and what delays it is named.

pub mod costs;
pub mod counted;
pub mod counters;
pub mod irqs;
pub mod pair;
pub mod parport;
pub mod pulses;
pub mod removed;
pub mod samples;
pub mod serial;

use std::{fs, io::Read, os::unix::fs::OpenOptionsExt, path::Path, thread, time::Duration};

use anyhow::{Context, Result, ensure};
use judge::simulated::{Outcome, SimulatedBoard};
use record::{CauseKind, Culprit, Interrupts, Record, Series, Why, Zero};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::OFlags,
    mount::{MountFlags, mount},
};
use sys::{
    clock::Clock,
    interrupt::gpio::{Active, Chip},
    sched::Policy,
};

use super::culprits::delays::{DELAYS, Expected, Measuring, at_irregular_times, hold, judge, spin};
use crate::inside::{expect, punctual, read, recorded, start, wait_until, write};

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
    judge(&measuring.end()?, &delays, &Expected { is: &is, timed: true })
}

/// More interrupts than the CPU can serve become fewer, which is counted. Others still run.
pub fn a_storm_is_counted_and_bounded() -> Result<()> {
    let run = start("measure interrupt --source hpet --cpu 0 --period 10us --duration 2s --quiet --record storm")?;
    let others = thread::spawn(|| {
        let end_ns = Clock::Monotonic.now_ns() + 2_000_000_000;
        let mut turns = 0;
        while Clock::Monotonic.now_ns() < end_ns {
            thread::sleep(Duration::from_millis(10));
            turns += 1;
        }
        turns
    });
    let output = run.wait_with_output()?;
    let turns: u32 = others.join().ok().context("the other thread panicked")?;
    let record = recorded("storm")?;
    let (series, figures) = interrupts(&record)
        .with_context(|| format!("{} {}", output.status, String::from_utf8_lossy(&output.stderr)))?;
    ensure!(turns > 10, "an ordinary thread ran {turns} times in 2 s");
    let (served, missed) = (series.samples, series.missed);
    // 100,000 a second, for 2 s or until the guard ends the run.
    ensure!(missed > served && served + missed < 210_000, "{served} served, {missed} missed, {figures:?}");
    ensure!(output.status.success() || !record.validity.reasons.is_empty(), "{:?}", output.status);
    // The latest wake-up is kept although others come faster than they can be recorded.
    let worst = series.spikes.iter().max_by_key(|spike| spike.lateness_ns).context("no spikes")?;
    ensure!(!worst.culprits.is_empty(), "the latest wake-up has no cause");
    ensure!(Some(worst.lateness_ns) == series.max_ns, "{} of {:?}", worst.lateness_ns, series.max_ns);
    // The kernel takes 50 ms from real-time threads that use 950 ms of a second, which a fast machine does not reach. The
    // interrupt is masked until its thread has run, so it can be late for most of that time.
    let is_throttled = worst.lateness_ns > 40_000_000;
    let names_it = worst.culprits.iter().any(|culprit| culprit.cause.kind == CauseKind::Throttled);
    ensure!(!is_throttled || names_it, "{} {:?}", worst.lateness_ns, worst.culprits);
    Ok(())
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
    // The parts may contain an interrupt more, which came just before the end.
    ensure!((whole - parts).abs() < whole / 1000.0, "{whole} ns, but its parts take {parts} ns");
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
    // One after the last interrupt has no time.
    ensure!(figures.unanswered - series.losses.total() <= 1, "{:?} {figures:?}", series.losses);
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
    let same = punctual("measure interrupt --source gpio:0/in0 --drive 0/in0 --duration 300ms --no-record")?;
    expect(64, &same)?;
    let same = String::from_utf8_lossy(&same.stderr);
    ensure!(same.contains("--source and --drive name the same line"), "{same}");
    // The same line by its number.
    let used = error("--source gpio:0/in0 --drive 0/2")?;
    ensure!(
        used.contains("cannot use the line gpiochip0/2 as an output") && used.contains("punctual uses it"),
        "{used}"
    );
    let no_chip = error("--source gpio:5/1")?;
    ensure!(no_chip.contains("this machine has gpiochip0"), "{no_chip}");
    Ok(())
}

/// Time that an edge of the module `lines` takes to the other end of the wire, ns.
const WIRE_NS: u32 = 2_000_000;

/// A judge of software that asks on one wire of the first GPIO chip, and is answered on the other one. Each seventh
/// question is missing.
pub fn judge_of_lines() -> Result<SimulatedBoard> {
    let chip = Chip::open(Path::new("/dev/gpiochip0"))?;
    let (question, mut answer) = (chip.drive(0, Active::High)?, chip.watch(3, Active::High)?);
    let mut ask = move |number: u32| -> Result<Outcome> {
        if number.is_multiple_of(7) {
            return Ok(Outcome::Miss);
        }
        let asked_ns = Clock::Monotonic.now_ns();
        question.set(true)?;
        let timeout = Timespec { tv_sec: 1, tv_nsec: 0 };
        let is_answered = poll(&mut [PollFd::new(&answer, PollFlags::IN)], Some(&timeout))? > 0;
        question.set(false)?;
        if !is_answered {
            return Ok(Outcome::Miss);
        }
        let after_ns = answer.read()?.stamp_ns - asked_ns;
        Ok(Outcome::Answer(u32::try_from(after_ns / 8)?))
    };
    fs::create_dir_all("/dev/pts")?;
    // It may be mounted.
    let _ = mount("devpts", "/dev/pts", "devpts", MountFlags::empty(), None);
    Ok(SimulatedBoard::start(move |number| ask(number).unwrap_or(Outcome::Unplug))?)
}

/// Checks the record of a run with the judge of software: both wires took their time, and no question is unknown. Judge and
/// thread begin and end within `apart` questions of each other.
fn has_the_whole_way(record: &Record, apart: u64) -> Result<()> {
    ensure!(record.validity.valid, "{:?}", record.validity.reasons);
    let [thread, of_judge] = &record.series[..] else { anyhow::bail!("{} series", record.series.len()) };
    let responses = of_judge.kind.responses().context("no responses")?;
    ensure!(responses.complete && responses.answered > 100, "{responses:?}");
    let missed = responses.questions / 7;
    ensure!(responses.missed == missed && responses.unknown() + responses.spurious == 0, "{responses:?}");
    let fastest_ns = of_judge.min_ns.context("no answer")?;
    ensure!(fastest_ns >= 2 * i64::from(WIRE_NS), "{fastest_ns} ns, but both wires take longer");
    // The rest is the way from interrupt to thread, and the answer.
    ensure!(of_judge.mean_ns.is_some_and(|ns| ns < 2.2 * f64::from(WIRE_NS)), "{:?}", of_judge.mean_ns);
    ensure!(thread.samples.abs_diff(responses.answered) <= apart, "{} {responses:?}", thread.samples);
    let figures = thread.kind.interrupts().context("no interrupts")?;
    ensure!(figures.lost == 0 && figures.zero == Zero::Handler, "{figures:?}");
    Ok(())
}

/// The judge sees the way over both wires and through the machine.
pub fn an_outside_judge_measures_the_whole_way() -> Result<()> {
    set("delay_ns", WIRE_NS)?;
    let board = judge_of_lines()?;
    let arguments = "measure interrupt --source gpio:0/in0 --answer 0/out1 --cpu 0 --period 10ms --duration 4s --quiet";
    let run = punctual(&format!("{arguments} --judge {} --record judged", board.path()))?;
    set("delay_ns", 20_000)?;
    let printed = expect(0, &run)?;
    ensure!(printed.contains("after a question of the outside judge /dev/pts/"), "{printed}");
    has_the_whole_way(&recorded("judged")?, 1)
}

/// Parameter file of the module `events`.
fn of_events(parameter: &str) -> String {
    format!("/sys/module/events/parameters/{parameter}")
}

/// Sets parameters of the module `events` during a function.
fn with_events<T>(parameters: &[(&str, &str)], run: impl FnOnce() -> Result<T>) -> Result<T> {
    let before: Vec<String> = parameters.iter().map(|(name, _)| read(&of_events(name))).collect::<Result<_>>()?;
    parameters.iter().try_for_each(|(name, value)| write(&of_events(name), value))?;
    let result = run();
    parameters.iter().zip(&before).try_for_each(|((name, _), value)| write(&of_events(name), value))?;
    result
}

/// The name of the input device of the module `events`: `event0`.
fn input_device() -> Result<String> {
    let mut devices =
        fs::read_dir("/sys/class/input")?.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let is_ours = |name: &String| {
        name.starts_with("event")
            && read(&format!("/sys/class/input/{name}/device/name")).is_ok_and(|name| name == "events")
    };
    devices.find(is_ours).context("no input device of the module `events`")
}

/// Measures a source of the module `events`, which reports every 10 ms.
fn events_of(source: &str, name: &str, more: &str) -> Result<Record> {
    let arguments = "--cpu 0 --period 10ms --duration 3s --quiet";
    expect(0, &punctual(&format!("measure interrupt --source {source} {arguments} --record {name} {more}"))?)?;
    recorded(name)
}

/// Checks that all times contain a delay of this length, and little more.
fn contain(series: &Series, delay_ns: i64) -> Result<()> {
    let (min_ns, mean_ns) = (series.min_ns.unwrap_or_default(), series.mean_ns.unwrap_or_default());
    ensure!(min_ns >= delay_ns, "{min_ns} ns for a delay of {delay_ns} ns");
    ensure!(mean_ns < delay_ns as f64 * 1.1, "{mean_ns} ns for a delay of {delay_ns} ns");
    Ok(())
}

/// Time from the stamps of the module `events` to its reports, ns.
const DELAY_NS: i64 = 2_000_000;
const DELAY: (&str, &str) = ("delay_ns", "2000000");

/// The times of an input device begin at the stamp that its driver took, and each packet is one interrupt.
pub fn packets_of_an_input_device_begin_at_their_stamp() -> Result<()> {
    let device = input_device()?;
    let list = expect(0, &punctual("measure interrupt --list")?)?;
    ensure!(list.contains(&format!("evdev:{device}")) && list.contains(&format!("{device}, events")), "{list}");
    let record = with_events(&[DELAY], || events_of(&format!("evdev:{device}"), "evdev", ""))?;
    ensure!(record.validity.valid, "{:?}", record.validity.reasons);
    let (series, figures) = interrupts(&record)?;
    ensure!(figures.zero == Zero::Handler && figures.resolution_ns == Some(1000), "{figures:?}");
    ensure!(figures.device == format!("{device}, events"), "{figures:?}");
    ensure!(series.samples.abs_diff(300) <= 3 && figures.lost == 0, "{} interrupts, {figures:?}", series.samples);
    contain(series, DELAY_NS)
}

/// A thread that runs too rarely loses packets. The kernel says so, but not how many.
pub fn dropped_packets_are_reported() -> Result<()> {
    let source = format!("evdev:{}", input_device()?);
    // The thread of normal priority reads only after all packets of a burst.
    let (record, made) = with_events(&[("burst", "100"), ("period_ns", "100000000")], || {
        let record = events_of(&source, "dropped", "--policy other")?;
        Ok((record, read(&of_events("made"))?.parse::<u64>()?))
    })?;
    let (series, figures) = interrupts(&record)?;
    ensure!(figures.lost >= 25 && series.samples + figures.lost <= made, "{} of {made}, {figures:?}", series.samples);
    let is_reported =
        record.caveats.iter().any(|caveat| caveat.text.contains("does not say how many interrupts it lost"));
    ensure!(is_reported, "{:?}", record.caveats);
    Ok(())
}

/// The kernel does not say that the queue of a PTP clock was full. Stamps that were read in time cause no caveat, even if
/// each call reads as many as it can.
pub fn a_full_queue_of_stamps_is_reported() -> Result<()> {
    let stamps = |burst: &str| {
        let parameters = [("burst", burst), ("period_ns", "100000000")];
        with_events(&parameters, || events_of("ptp:0/P0", &format!("stamps-{burst}"), "--policy other"))
    };
    let is_reported = |record: &Record| {
        record.caveats.iter().any(|caveat| caveat.text.contains("does not say how many interrupts it lost"))
    };
    let full = stamps("200")?;
    ensure!(is_reported(&full), "{:?}", full.caveats);
    let (series, _) = interrupts(&full)?;
    // The kernel keeps 127 of the 200 stamps of each burst.
    ensure!((20 * 127..=31 * 127).contains(&series.samples), "{} stamps", series.samples);
    let complete = stamps("30")?;
    ensure!(!is_reported(&complete), "{:?}", complete.caveats);
    let (series, _) = interrupts(&complete)?;
    ensure!((20 * 30..=31 * 30).contains(&series.samples), "{} stamps", series.samples);
    Ok(())
}

/// Length of an event of an input device.
const EVENT: usize = 24;

/// Repetitions of a held key, which a timer of the kernel makes, are no interrupts.
pub fn repetitions_of_a_key_are_no_interrupts() -> Result<()> {
    let device = input_device()?;
    let (silent, events) = with_events(&[("limit", "1")], || {
        // The module presses the key once, 10 ms after this.
        let path = format!("/dev/input/{device}");
        let mut other =
            fs::OpenOptions::new().read(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed()).open(path)?;
        wait_until("the key is pressed", || Ok(read(&of_events("made"))? == "1"))?;
        let mut run = start(&format!("measure interrupt --source evdev:{device} --duration 2s --no-record"))?;
        let (mut events, mut buffer) = (Vec::new(), [0; EVENT * 64]);
        while run.try_wait()?.is_none() {
            // There may be no events.
            let length = other.read(&mut buffer).unwrap_or(0);
            events.extend_from_slice(&buffer[..length]);
            thread::sleep(Duration::from_millis(100));
        }
        Ok((run.wait_with_output()?, events))
    })?;
    let is_repetition = |event: &[u8]| event[16..18] == 1_u16.to_ne_bytes() && event[20..24] == 2_i32.to_ne_bytes();
    let repetitions = events.chunks_exact(EVENT).filter(|event| is_repetition(event)).count();
    ensure!(repetitions > 10, "{repetitions} repetitions in {} bytes: {events:?}", events.len());
    let out = expect(4, &silent)?;
    ensure!(out.contains(&format!("o interrupt came from evdev:{device}")), "{out}");
    Ok(())
}

/// The times of a PTP clock's pin begin at the clock's stamp, so that they contain a delay of the interrupt, too.
pub fn a_clock_stamps_its_pin_independent_of_the_kernel() -> Result<()> {
    let list = expect(0, &punctual("measure interrupt --list")?)?;
    ensure!(list.contains("ptp:ptp0/P0") && list.contains("ptp0, events"), "{list}");
    let record = with_events(&[DELAY], || events_of("ptp:0/P0", "ptp", ""))?;
    ensure!(record.validity.valid, "{:?}", record.validity.reasons);
    let (series, figures) = interrupts(&record)?;
    ensure!(figures.zero == Zero::Counter && figures.uncertainty_ns.is_some(), "{figures:?}");
    ensure!(figures.device == "ptp0, events, pin P0 of channel 0, rising edges", "{figures:?}");
    ensure!(series.samples.abs_diff(300) <= 3 && figures.lost == 0, "{} interrupts, {figures:?}", series.samples);
    contain(series, DELAY_NS)?;
    let undisturbed_ns = series.max_ns.unwrap_or(i64::MAX);
    let disturbed = with_events(&[DELAY], || {
        let run = start("measure interrupt --source ptp:0/P0 --cpu 0 --duration 3s --quiet --record ptp-irqs")?;
        // Sections with interrupts off at other times of the period of 10 ms.
        for _ in 0..40 {
            thread::sleep(Duration::from_millis(63));
            write("/dev/hold", "irqs 8000000")?;
        }
        expect(0, &run.wait_with_output()?)?;
        recorded("ptp-irqs")
    })?;
    let (series, _) = interrupts(&disturbed)?;
    let disturbed_ns = series.max_ns.unwrap_or_default();
    let (least_ns, most_ns) = (undisturbed_ns + 4_000_000, undisturbed_ns + 9_000_000);
    ensure!((least_ns..most_ns).contains(&disturbed_ns), "{disturbed_ns} ns, undisturbed {undisturbed_ns} ns");
    Ok(())
}

/// A pin gets its function back. A pin with another function is left alone.
pub fn pins_are_put_back() -> Result<()> {
    let pin = |name: &str| read(&format!("/sys/class/ptp/ptp0/pins/{name}"));
    let before = [pin("P0")?, pin("P1")?];
    ensure!(before == ["0 0", "2 0"], "{before:?}");
    let record = with_events(&[("all_edges", "Y")], || {
        let run = start("measure interrupt --source ptp:0/P0 --duration 2s --quiet --record edges")?;
        wait_until("the pin is an input", || Ok(pin("P0")? == "1 0"))?;
        expect(0, &run.wait_with_output()?)?;
        recorded("edges")
    })?;
    let (_, figures) = interrupts(&record)?;
    ensure!(figures.device.ends_with("rising and falling edges"), "{figures:?}");
    let output = punctual("measure interrupt --source ptp:0/P1 --duration 300ms --no-record")?;
    expect(1, &output)?;
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(error.contains("the pin ptp0/P1 has another function"), "{error}");
    let after = [pin("P0")?, pin("P1")?];
    ensure!(after == before, "{after:?} instead of {before:?}");
    Ok(())
}

/// Errors for missing devices.
pub fn unusable_devices_are_reported() -> Result<()> {
    for (source, remedy) in [
        ("evdev:77", "punctual measure interrupt --list"),
        ("ptp:7", "this machine has ptp0"),
        ("ptp:0/P7", "choose one of ptp0/P0, ptp0/P1"),
        ("ptp:0", "ptp0 has several pins: choose one of ptp0/P0, ptp0/P1"),
        ("counter:0/index", "this machine has no /dev/counter*"),
    ] {
        let output = punctual(&format!("measure interrupt --source {source} --duration 300ms --no-record"))?;
        expect(1, &output)?;
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure!(error.contains(remedy), "{source}: {error}");
    }
    Ok(())
}
