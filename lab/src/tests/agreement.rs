//! Compares our explanations of spikes with those of `rtla timerlat`.
//!
//! rtla runs the kernel's timerlat tracer, stops at the first latency above a threshold and prints its analysis.
//! Meanwhile we trace the same CPU and explain the same wake-up of timerlat's thread.

mod rtla;

use std::{
    io::Read,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use blame::{Event, EventKind, Explanation, Instance, MeasuredThread, Settings, Tracefs, WakeUp, explain};
use record::{Cause, CauseKind, Evidence, Why};
use rustix::mount::mount_bind;
use sys::{
    clock::{Clock, Sleeper, Wait},
    sched::{self, Policy},
};

use super::culprits::delays::{Dice, HOLD, PERIOD_NS};
use crate::inside::{read, write};
use rtla::{Analysis, Part};

/// The latency at which rtla stops, us.
const STOP_US: u64 = 400;
/// Number of spikes per cause.
const SPIKES: usize = 2;
/// Timeout for one spike.
const TIMEOUT: Duration = Duration::from_secs(30);

/// A delay made by the kernel module, and the expected explanations.
struct Delay {
    /// The commands for `lab/module` for a delay of this length, ns.
    commands: fn(i64) -> Vec<String>,
    /// Offset from a deadline of timerlat to the start of the delay; `None` for any time.
    phase_ns: Option<i64>,
    /// Priority of timerlat's thread: 95, or less than that of interrupt threads.
    priority: u8,
    /// Matches rtla's explanation.
    is_rtla_part: fn(&Part) -> bool,
    /// Matches our explanation.
    is_our_cause: fn(&Cause) -> bool,
}

const DELAYS: [Delay; 5] = [
    Delay {
        commands: |ns| vec![format!("irqs {ns}")],
        phase_ns: None,
        priority: 95,
        is_rtla_part: |part| *part == Part::HandlerDelay,
        is_our_cause: |cause| cause.kind == CauseKind::LateInterrupt && cause.name == "holder",
    },
    Delay {
        commands: |ns| vec![format!("preempt {ns}")],
        phase_ns: None,
        priority: 95,
        is_rtla_part: |part| *part == Part::Blocking("holder".to_owned()),
        is_our_cause: |cause| {
            cause.kind == CauseKind::Thread && cause.name == "holder" && cause.why == Some(Why::PreemptionOff)
        },
    },
    // A handler that is running at the deadline. rtla does not name it. It reports "previous IRQ interference" only if no
    // other interrupt occurs before tracing stops, because it remembers only the last interrupt. In the rare case that
    // the deadline falls between the command and the handler, rtla names the handler, as in the next case.
    Delay {
        commands: |ns| vec![format!("hardirq {ns}")],
        phase_ns: None,
        priority: 95,
        is_rtla_part: |part| is_hold_source(part) || matches!(part, Part::EarlierInterrupt | Part::HandlerDelay),
        is_our_cause: |cause| cause.kind == CauseKind::Interrupt && cause.name == "hold-source",
    },
    // A handler after the timer's, while the thread waits for preemption. rtla names this one.
    Delay {
        commands: |ns| vec![format!("after 500000 hardirq {ns}"), format!("preempt {}", ns + 400_000)],
        phase_ns: Some(650_000),
        priority: 95,
        is_rtla_part: is_hold_source,
        is_our_cause: |cause| cause.kind == CauseKind::Interrupt && cause.name == "hold-source",
    },
    // rtla calls the thread that has the CPU when the timer fires "blocking", regardless of its priority.
    Delay {
        commands: |ns| vec![format!("thread {ns}")],
        phase_ns: None,
        priority: 40,
        is_rtla_part: |part| matches!(part, Part::Blocking(name) | Part::Thread(name) if name.starts_with("irq/7-hold")),
        is_our_cause: |cause| {
            cause.kind == CauseKind::Thread
                && cause.name.starts_with("irq/7-hold")
                && cause.why == Some(Why::HigherPriority)
        },
    },
];

/// True if rtla names the handler of the delays.
fn is_hold_source(part: &Part) -> bool {
    *part == Part::Interrupt("hold-source".to_owned())
}

/// Both must name the same cause with the same time.
pub fn with_rtla() -> Result<()> {
    // The thread needs this name, because it writes to the module.
    let holder = thread::Builder::new().name("holder".to_owned()).spawn(compare_all)?;
    holder.join().ok().context("the holder panicked")?
}

fn compare_all() -> Result<()> {
    // rtla reads all function names at each start, which takes seconds here. They are not needed.
    mount_bind("/dev/null", "/proc/kallsyms")?;
    let tracefs = Tracefs::open()?;
    let settings = Settings { cpus: &[0], buffer_kb_per_cpu: 8_192, ..Settings::default() };
    let mut trace = Instance::create(&tracefs, &settings)?;
    // The output of the tracer; rtla configures the tracer.
    let mut timerlat = Instance::for_timerlat(&tracefs, &settings)?;
    let mut dice = Dice::new();
    let mut failures = Vec::new();
    for delay in &DELAYS {
        for _ in 0..SPIKES {
            let (rtla, ours) = one_spike(delay, &mut trace, &mut timerlat, &mut dice)?;
            if let Err(error) = compare(delay, &rtla, &ours) {
                failures.push(format!("{error:#}"));
            }
        }
    }
    println!("  {} of {} agree", DELAYS.len() * SPIKES - failures.len(), DELAYS.len() * SPIKES);
    ensure!(failures.is_empty(), "{}", failures.join("\n"));
    Ok(())
}

fn compare(delay: &Delay, rtla: &Analysis, ours: &Explanation) -> Result<()> {
    let (part, rtla_ns) = rtla.largest();
    let culprit = ours.culprits.first().context("no culprit")?;
    ensure!(ours.evidence == Evidence::Trace, "evidence is {:?}", ours.evidence);
    ensure!((delay.is_rtla_part)(&part), "rtla: {part:?} in {rtla:?}, ours: {:?}", ours.culprits);
    ensure!((delay.is_our_cause)(&culprit.cause), "ours: {:?}, rtla: {rtla:?}", ours.culprits);
    ensure!(is_close(culprit.ns, rtla_ns), "ours: {:?}, rtla: {rtla:?}", ours.culprits);
    let lateness_ns = ours.culprits.iter().map(|culprit| culprit.ns).sum();
    ensure!(is_close(lateness_ns, rtla.total_ns), "total {lateness_ns} ns, rtla: {rtla:?}");
    Ok(())
}

/// True if the times differ by at most 5 % plus 5 us.
fn is_close(ours_ns: u64, rtla_ns: u64) -> bool {
    ours_ns.abs_diff(rtla_ns) <= rtla_ns / 20 + 5_000
}

/// One latency above the threshold, as explained by rtla and by us.
fn one_spike(
    delay: &Delay,
    trace: &mut Instance,
    timerlat: &mut Instance,
    dice: &mut Dice,
) -> Result<(Analysis, Explanation)> {
    let mut rtla = start(delay.priority)?;
    // At the threshold the kernel turns off all traces of the tracer, possibly already before rtla started.
    timerlat.set_on(false)?;
    timerlat.set_on(true)?;
    let (mut events, mut samples) = (Vec::new(), Vec::new());
    trace.drain(0, &mut events)?;
    timerlat.drain(0, &mut samples)?;
    events.clear();
    samples.clear();
    let output = delay_until_it_stops(&mut rtla, delay, &mut samples, timerlat, dice)?;
    let analysis = Analysis::parse(&output)?;
    let drained = trace.drain(0, &mut events)?;
    timerlat.drain(0, &mut samples)?;
    let known_since_ns = drained.gaps.iter().map(|gap| gap.to_ns).max().unwrap_or(0);
    let (measured, wake) = late_wake_up(&samples, delay.priority).context("timerlat's thread was not late")?;
    let symbol = |address| trace.symbol(address);
    let ours = explain(&events, trace.names(), &symbol, &measured, wake, Some(known_since_ns));
    Ok((analysis, ours))
}

/// Starts rtla and waits until it measures.
fn start(priority: u8) -> Result<Child> {
    // With a threshold, the analysis is always enabled.
    let arguments = format!("timerlat top -k -q -c 0 -p 1000 -P f:{priority} -T {STOP_US}");
    let mut rtla = Command::new("rtla").args(arguments.split(' ')).stdout(Stdio::piped()).spawn()?;
    let begin = Instant::now();
    // rtla turns on both of its traces when everything is set up.
    let is_on =
        |name: &str| read(&format!("/sys/kernel/tracing/instances/{name}/tracing_on")).is_ok_and(|on| on == "1");
    while !(is_on("timerlat_top") && is_on("timerlat_aa")) {
        ensure!(rtla.try_wait()?.is_none() && begin.elapsed() < TIMEOUT, "rtla does not measure");
        thread::sleep(Duration::from_millis(50));
    }
    Ok(rtla)
}

/// Makes delays until rtla has stopped; returns its output. A delay that starts just after a deadline may not reach the
/// next one.
fn delay_until_it_stops(
    rtla: &mut Child,
    delay: &Delay,
    samples: &mut Vec<Event>,
    timerlat: &mut Instance,
    dice: &mut Dice,
) -> Result<String> {
    // Above normal threads, so that delays start on time.
    sched::set_policy(Policy::Fifo(30))?;
    let begin = Instant::now();
    let sleeper = Sleeper::new(Clock::Monotonic, Wait::Nanosleep)?;
    while rtla.try_wait()?.is_none() {
        ensure!(begin.elapsed() < TIMEOUT, "rtla does not stop");
        thread::sleep(Duration::from_nanos(dice.roll(150_000_000..200_000_000).cast_unsigned()));
        if let Some(phase_ns) = delay.phase_ns {
            timerlat.drain(0, samples)?;
            let passed = (Clock::Monotonic.now_ns() - last_deadline_ns(samples)).div_euclid(PERIOD_NS);
            sleeper.sleep_until(last_deadline_ns(samples) + (passed + 10) * PERIOD_NS + phase_ns)?;
        }
        for command in (delay.commands)(dice.roll(700_000..1_900_000)) {
            write(HOLD, &command)?;
        }
    }
    sched::set_policy(Policy::Other)?;
    let mut output = String::new();
    rtla.stdout.as_mut().context("stdout is not piped")?.read_to_string(&mut output)?;
    Ok(output)
}

/// The deadline of timerlat's last interrupt sample: its time minus its latency.
fn last_deadline_ns(samples: &[Event]) -> i64 {
    samples.iter().rev().find_map(deadline_ns).unwrap_or(0).cast_signed()
}

fn deadline_ns(sample: &Event) -> Option<u64> {
    match sample.kind {
        EventKind::Timerlat { context: 0, latency_ns, .. } => Some(sample.at_ns - latency_ns),
        _ => None,
    }
}

/// The last wake-up of timerlat's thread above the threshold, at which the kernel stopped tracing.
fn late_wake_up(samples: &[Event], priority: u8) -> Option<(MeasuredThread, WakeUp)> {
    let late = |sample: &Event| match sample.kind {
        EventKind::Timerlat { context: 1, latency_ns, .. } if latency_ns >= STOP_US * 1_000 => Some(latency_ns),
        _ => None,
    };
    let last = samples.iter().rposition(|sample| late(sample).is_some())?;
    let deadline_ns = samples[..last].iter().rev().find_map(deadline_ns)?;
    let measured = MeasuredThread {
        pid: samples[last].pid,
        priority: 99 - i32::from(priority),
        cpu: 0,
        spins: false,
        awaits_device: false,
        slack_ns: 0,
        has_quota: false,
    };
    Some((measured, WakeUp { deadline_ns, woke_ns: deadline_ns + late(&samples[last])?, work: Default::default() }))
}
