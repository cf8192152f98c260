//! What is said of a spike, beside what `rtla timerlat` says of the same one.
//!
//! rtla runs the kernel's timerlat tracer and stops at the first latency above a threshold; then it prints its own
//! analysis. Meanwhile we trace the same CPU, and explain the same wake-up of timerlat's thread.

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

/// Latency at which rtla stops, us.
const STOP_US: u64 = 400;
/// Spikes of each cause.
const SPIKES: usize = 2;
/// How long a spike may be waited for.
const PATIENCE: Duration = Duration::from_secs(30);

/// A delay that the kernel makes, and what must be said of it.
struct Made {
    /// The commands of `lab/module` for one of this length, ns.
    commands: fn(i64) -> Vec<String>,
    /// How long after a deadline of timerlat it is set off; at any time without.
    phase_ns: Option<i64>,
    /// Priority of timerlat's thread: 95, or one below an interrupt's thread.
    priority: u8,
    /// What rtla calls it.
    theirs: fn(&Part) -> bool,
    /// What we call it.
    ours: fn(&Cause) -> bool,
}

const MADE: [Made; 5] = [
    Made {
        commands: |ns| vec![format!("irqs {ns}")],
        phase_ns: None,
        priority: 95,
        theirs: |part| *part == Part::HandlerDelay,
        ours: |cause| cause.kind == CauseKind::LateInterrupt && cause.name == "holder",
    },
    Made {
        commands: |ns| vec![format!("preempt {ns}")],
        phase_ns: None,
        priority: 95,
        theirs: |part| *part == Part::Blocking("holder".to_owned()),
        ours: |cause| {
            cause.kind == CauseKind::Thread && cause.name == "holder" && cause.why == Some(Why::PreemptionOff)
        },
    },
    // A handler that is at work at the deadline: rtla never names it, and tells of it ("previous IRQ interference") only
    // where no other interrupt comes before its trace is stopped, since it remembers the last one alone.
    Made {
        commands: |ns| vec![format!("hardirq {ns}")],
        phase_ns: None,
        priority: 95,
        theirs: |part| matches!(part, Part::EarlierInterrupt | Part::HandlerDelay),
        ours: |cause| cause.kind == CauseKind::Interrupt && cause.name == "hold-source",
    },
    // A handler after the timer's, while the thread waits for preemption: that one is named.
    Made {
        commands: |ns| vec![format!("after 500000 hardirq {ns}"), format!("preempt {}", ns + 400_000)],
        phase_ns: Some(650_000),
        priority: 95,
        theirs: |part| *part == Part::Interrupt("hold-source".to_owned()),
        ours: |cause| cause.kind == CauseKind::Interrupt && cause.name == "hold-source",
    },
    // The thread that has the CPU when the timer fires is called blocking, whatever its priority.
    Made {
        commands: |ns| vec![format!("thread {ns}")],
        phase_ns: None,
        priority: 40,
        theirs: |part| matches!(part, Part::Blocking(name) | Part::Thread(name) if name.starts_with("irq/7-hold")),
        ours: |cause| {
            cause.kind == CauseKind::Thread
                && cause.name.starts_with("irq/7-hold")
                && cause.why == Some(Why::HigherPriority)
        },
    },
];

/// Both name the same cause with the same time.
pub fn with_rtla() -> Result<()> {
    // Of this name, since it writes to the module.
    let holder = thread::Builder::new().name("holder".to_owned()).spawn(compare_all)?;
    holder.join().ok().context("the holder panicked")?
}

fn compare_all() -> Result<()> {
    // rtla reads the names of all functions each time it starts, which takes seconds here; without them, nothing is missing.
    mount_bind("/dev/null", "/proc/kallsyms")?;
    let tracefs = Tracefs::open()?;
    let settings = Settings { cpus: &[0], buffer_kb_per_cpu: 8_192, ..Settings::default() };
    let mut trace = Instance::create(&tracefs, &settings)?;
    // What the tracer tells: rtla sets it as it needs it.
    let mut timerlat = Instance::for_timerlat(&tracefs, &settings)?;
    let mut dice = Dice::new();
    let mut wrong = Vec::new();
    for made in &MADE {
        for _ in 0..SPIKES {
            let (theirs, ours) = one_spike(made, &mut trace, &mut timerlat, &mut dice)?;
            if let Err(error) = compare(made, &theirs, &ours) {
                wrong.push(format!("{error:#}"));
            }
        }
    }
    println!("  {} of {} agree", MADE.len() * SPIKES - wrong.len(), MADE.len() * SPIKES);
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

fn compare(made: &Made, theirs: &Analysis, ours: &Explanation) -> Result<()> {
    let (part, their_ns) = theirs.largest();
    let culprit = ours.culprits.first().context("no culprit")?;
    ensure!(ours.evidence == Evidence::Trace, "evidence is {:?}", ours.evidence);
    ensure!((made.theirs)(&part), "rtla says {part:?} in {theirs:?}, we {:?}", ours.culprits);
    ensure!((made.ours)(&culprit.cause), "we say {:?}, rtla {theirs:?}", ours.culprits);
    ensure!(is_close(culprit.ns, their_ns), "we say {:?}, rtla {theirs:?}", ours.culprits);
    let lateness_ns = ours.culprits.iter().map(|culprit| culprit.ns).sum();
    ensure!(is_close(lateness_ns, theirs.total_ns), "{lateness_ns} ns in all, rtla {theirs:?}");
    Ok(())
}

/// Within 5 % and 5 us.
fn is_close(ours_ns: u64, theirs_ns: u64) -> bool {
    ours_ns.abs_diff(theirs_ns) <= theirs_ns / 20 + 5_000
}

/// One latency above the threshold, in rtla's words and in ours.
fn one_spike(
    made: &Made,
    trace: &mut Instance,
    timerlat: &mut Instance,
    dice: &mut Dice,
) -> Result<(Analysis, Explanation)> {
    let mut rtla = start(made.priority)?;
    // At the threshold, the kernel turns off every trace of the tracer; it may have done so before rtla began.
    timerlat.set_on(false)?;
    timerlat.set_on(true)?;
    let (mut events, mut samples) = (Vec::new(), Vec::new());
    trace.drain(0, &mut events)?;
    timerlat.drain(0, &mut samples)?;
    events.clear();
    samples.clear();
    let told = delay_until_it_stops(&mut rtla, made, &mut samples, timerlat, dice)?;
    let theirs = Analysis::parse(&told)?;
    let drained = trace.drain(0, &mut events)?;
    timerlat.drain(0, &mut samples)?;
    let known_since_ns = drained.gaps.iter().map(|gap| gap.to_ns).max().unwrap_or(0);
    let (waiter, wake) = late_wake_up(&samples, made.priority).context("timerlat's thread was not late")?;
    let symbol = |address| trace.symbol(address).map(str::to_owned);
    let ours = explain(&events, trace.names(), &symbol, &waiter, wake, Some(known_since_ns));
    Ok((theirs, ours))
}

/// Starts rtla, and waits until it measures.
fn start(priority: u8) -> Result<Child> {
    // The analysis is on wherever a threshold is given.
    let arguments = format!("timerlat top -k -q -c 0 -p 1000 -P f:{priority} -T {STOP_US}");
    let mut rtla = Command::new("rtla").args(arguments.split(' ')).stdout(Stdio::piped()).spawn()?;
    let begin = Instant::now();
    // It turns both of its traces on when all is set.
    let is_on =
        |name: &str| read(&format!("/sys/kernel/tracing/instances/{name}/tracing_on")).is_ok_and(|on| on == "1");
    while !(is_on("timerlat_top") && is_on("timerlat_aa")) {
        ensure!(rtla.try_wait()?.is_none() && begin.elapsed() < PATIENCE, "rtla does not measure");
        thread::sleep(Duration::from_millis(50));
    }
    Ok(rtla)
}

/// Makes delays until rtla has stopped; what it printed. A delay that begins just after a deadline does not reach the next.
fn delay_until_it_stops(
    rtla: &mut Child,
    made: &Made,
    samples: &mut Vec<Event>,
    timerlat: &mut Instance,
    dice: &mut Dice,
) -> Result<String> {
    // Above everything ordinary, so that a delay begins when it is due.
    sched::set_policy(Policy::Fifo(30))?;
    let begin = Instant::now();
    let sleeper = Sleeper::new(Clock::Monotonic, Wait::Nanosleep)?;
    while rtla.try_wait()?.is_none() {
        ensure!(begin.elapsed() < PATIENCE, "rtla does not stop");
        thread::sleep(Duration::from_nanos(dice.roll(150_000_000..200_000_000) as u64));
        if let Some(phase_ns) = made.phase_ns {
            timerlat.drain(0, samples)?;
            let passed = (Clock::Monotonic.now_ns() - last_deadline_ns(samples)).div_euclid(PERIOD_NS);
            sleeper.sleep_until(last_deadline_ns(samples) + (passed + 10) * PERIOD_NS + phase_ns)?;
        }
        for command in (made.commands)(dice.roll(700_000..1_900_000)) {
            write(HOLD, &command)?;
        }
    }
    sched::set_policy(Policy::Other)?;
    let mut told = String::new();
    rtla.stdout.as_mut().context("nothing is piped")?.read_to_string(&mut told)?;
    Ok(told)
}

/// A deadline of timerlat, by the last sample of its interrupt: its time less the latency in it.
fn last_deadline_ns(samples: &[Event]) -> i64 {
    samples.iter().rev().find_map(deadline_ns).unwrap_or(0) as i64
}

fn deadline_ns(sample: &Event) -> Option<u64> {
    match sample.kind {
        EventKind::Timerlat { context: 0, latency_ns, .. } => Some(sample.at_ns - latency_ns),
        _ => None,
    }
}

/// The last wake-up of timerlat's thread above the threshold: there the kernel stopped.
fn late_wake_up(samples: &[Event], priority: u8) -> Option<(MeasuredThread, WakeUp)> {
    let late = |sample: &Event| match sample.kind {
        EventKind::Timerlat { context: 1, latency_ns, .. } if latency_ns >= STOP_US * 1_000 => Some(latency_ns),
        _ => None,
    };
    let last = samples.iter().rposition(|sample| late(sample).is_some())?;
    let deadline_ns = samples[..last].iter().rev().find_map(deadline_ns)?;
    let waiter = MeasuredThread { pid: samples[last].pid, priority: 99 - i32::from(priority), cpu: 0, spins: false };
    Some((waiter, WakeUp { deadline_ns, woke_ns: deadline_ns + late(&samples[last])?, work: Default::default() }))
}
