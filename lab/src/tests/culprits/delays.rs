//! Makes delays of irregular length at irregular times, and checks the record against them.

use std::{
    fs,
    io::Write,
    ops::Range,
    path::PathBuf,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use record::{Culprit, Evidence, Record, Spike};
use rustix::process::{Pid, Signal, kill_process};
use sys::{
    clock::Clock,
    sched::{self, Policy},
    usage::thread_cpu_time_ns,
};

use super::tally::{Tally, is_right_time};
use crate::inside::recorded;

/// Period of the probe, ns.
pub const PERIOD_NS: i64 = 1_000_000;
/// Number of delays per test. Not every one makes a wake-up later than the threshold.
pub const DELAYS: usize = 260;
/// Lateness above which a delay must be found, ns. A deadline near the end of a delay is hardly late.
pub const RELEVANT_NS: i64 = 150_000;
/// The command file of `lab/module`.
pub const HOLD: &str = "/dev/hold";

/// A delay, ns on CLOCK_MONOTONIC.
#[derive(Debug, Clone, Default)]
pub struct Delay {
    pub begin_ns: i64,
    pub end_ns: i64,
    /// Times at which something else had the CPU, if known.
    pub gaps: Vec<Range<i64>>,
    /// CPU time that the thread used from its last reading of the clock, the end, until it slept and woke again, ns.
    pub ran_on_ns: u64,
}

impl Delay {
    /// A delay without gaps.
    pub fn new(begin_ns: i64, end_ns: i64) -> Self {
        Self { begin_ns, end_ns, ..Self::default() }
    }

    /// Parses a line of the module's log: kind, begin, end, CPU, number of gaps, and begin and end of each gap.
    pub fn of_log(line: &str, kind: &str) -> Result<Self> {
        let mut fields = line.split_ascii_whitespace();
        ensure!(fields.next() == Some(kind), "not a {kind} hold: {line}");
        let numbers = fields.map(str::parse).collect::<Result<Vec<i64>, _>>()?;
        let [begin_ns, end_ns, _cpu, count, gaps @ ..] = &numbers[..] else { bail!("not a hold: {line}") };
        ensure!(i64::try_from(gaps.len())? == 2 * count, "more gaps than the log keeps: {line}");
        let gaps = gaps.chunks_exact(2).map(|gap| gap[0]..gap[1]).collect();
        Ok(Self { begin_ns: *begin_ns, end_ns: *end_ns, gaps, ran_on_ns: 0 })
    }

    /// The time that the delay had the CPU between two times, ns; at most 0 without overlap.
    fn between(&self, from_ns: i64, to_ns: i64) -> i64 {
        let both = |range: &Range<i64>| range.end.min(to_ns) - range.start.max(from_ns);
        let away_ns: i64 = self.gaps.iter().map(|gap| both(gap).max(0)).sum();
        both(&(self.begin_ns..self.end_ns)) - away_ns
    }
}

/// A generator of pseudo-random numbers that are the same in every run.
pub struct Dice(u64);

impl Dice {
    pub fn new() -> Self {
        Self(0x9e37_79b9_7f4a_7c15)
    }

    /// A number in `range`.
    pub fn roll(&mut self, range: Range<i64>) -> i64 {
        // xorshift64 (Marsaglia 2003).
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        range.start + (self.0 % (range.end - range.start).cast_unsigned()).cast_signed()
    }
}

/// A running measurement with tracing.
pub struct Measuring {
    child: Child,
    name: &'static str,
}

impl Measuring {
    /// Starts it with a period of 1 ms and more arguments, and waits until it measures.
    pub fn start(name: &'static str, more: &str) -> Result<Self> {
        Self::start_every("1ms", name, more)
    }

    /// Starts it with another period.
    pub fn start_every(period: &str, name: &'static str, more: &str) -> Result<Self> {
        Self::start_probe("timer --cpus 0", period, name, more)
    }

    /// Starts another probe, which measures one thread on CPU 0.
    pub fn start_probe(probe: &str, period: &str, name: &'static str, more: &str) -> Result<Self> {
        let arguments = format!("measure {probe} --quiet --endless --period {period} --blame --record {name} {more}");
        let child = Command::new(guest::initramfs::PUNCTUAL)
            .args(arguments.split_whitespace())
            .stdout(Stdio::null())
            .spawn()
            .context("cannot start punctual")?;
        let measuring = Self { child, name };
        let begin = Instant::now();
        while !measuring.has_its_thread() {
            ensure!(begin.elapsed() < Duration::from_secs(60), "punctual did not start measuring");
            thread::sleep(Duration::from_millis(100));
        }
        thread::sleep(Duration::from_millis(500));
        Ok(measuring)
    }

    /// True if the measuring thread exists.
    fn has_its_thread(&self) -> bool {
        self.task().is_some()
    }

    /// The folder of the measuring thread in /proc.
    fn task(&self) -> Option<PathBuf> {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.pid())).ok()?;
        // Threads can end meanwhile.
        let comm = |task: &PathBuf| fs::read_to_string(task.join("comm")).unwrap_or_default();
        tasks
            .flatten()
            .map(|task| task.path())
            .find(|task| ["timer/0", "interrupt/0", "interrupt"].contains(&comm(task).trim()))
    }

    /// Waits until the measuring thread has slept and woken again, and returns the time, ns on CLOCK_MONOTONIC.
    pub fn a_wake_up_ns(&self) -> Result<i64> {
        let status = self.task().context("the measuring thread has ended")?.join("status");
        let sleeps = || -> Result<Option<String>> {
            let text = fs::read_to_string(&status)?;
            Ok(text.lines().find(|line| line.starts_with("voluntary_ctxt_switches")).map(str::to_owned))
        };
        let before = sleeps()?.context("no count of context switches")?;
        while sleeps()?.as_ref() == Some(&before) {}
        Ok(Clock::Monotonic.now_ns())
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        signal_to(self.pid(), signal)
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Ends it and reads its record.
    pub fn end(self) -> Result<Record> {
        self.end_with(0)
    }

    /// Ends it, checks its exit status, and reads its record.
    pub fn end_with(mut self, expected: i32) -> Result<Record> {
        thread::sleep(Duration::from_millis(100));
        self.signal(Signal::INT)?;
        let status = self.child.wait()?;
        ensure!(status.code() == Some(expected), "punctual ended with {status}");
        recorded(self.name)
    }
}

/// Sends a signal.
pub fn signal_to(pid: u32, signal: Signal) -> Result<()> {
    let pid = Pid::from_raw(pid.cast_signed()).context("no process")?;
    Ok(kill_process(pid, signal)?)
}

/// Lets the kernel module hold the CPU at irregular times, on request of a normal thread named `holder`.
pub fn hold(command: &'static str) -> Result<Vec<Delay>> {
    fs::read_to_string(HOLD).context("cannot read /dev/hold")?;
    let mut device = fs::OpenOptions::new().write(true).open(HOLD)?;
    at_irregular_times("holder", Policy::Other, move |length_ns| {
        device.write_all(format!("{command} {length_ns}").as_bytes()).context("cannot write to /dev/hold")?;
        let requested = Instant::now();
        while requested.elapsed() < Duration::from_secs(1) {
            // One line per hold.
            let log = fs::read_to_string(HOLD)?;
            if !log.is_empty() {
                return Delay::of_log(&log, command);
            }
            thread::sleep(Duration::from_millis(1));
        }
        bail!("no log of a {command} hold")
    })
}

/// Runs `delay` at irregular times, [`DELAYS`] times, on a thread with this name and policy.
pub fn at_irregular_times(
    name: &str,
    policy: Policy,
    mut delay: impl FnMut(i64) -> Result<Delay> + Send + 'static,
) -> Result<Vec<Delay>> {
    let work = move || -> Result<Vec<Delay>> {
        sched::set_policy(policy)?;
        let mut dice = Dice::new();
        let mut delays = vec![Delay::default(); DELAYS];
        // A page fault would make a delay longer than recorded.
        sys::memory::lock_current_memory()?;
        let sleep = |roll: &mut Dice| {
            let ended_ns = thread_cpu_time_ns();
            thread::sleep(Duration::from_nanos(roll.roll(7_000_000..29_000_000).cast_unsigned()));
            thread_cpu_time_ns() - ended_ns
        };
        sleep(&mut dice);
        for slot in &mut delays {
            *slot = delay(dice.roll(1_200_000..3_500_000))?;
            slot.ran_on_ns = sleep(&mut dice);
        }
        Ok(delays)
    };
    match thread::Builder::new().name(name.to_owned()).spawn(work)?.join() {
        Ok(delays) => delays,
        Err(_) => bail!("{name} panicked"),
    }
}

/// If two readings of the clock are further apart, something else had the CPU, ns.
const GAP_NS: i64 = 5_000;

/// Keeps the CPU busy for this time, and stores the gaps in `gaps`, which is empty.
pub fn spin(length_ns: i64, mut gaps: Vec<Range<i64>>) -> Delay {
    let begin_ns = Clock::Monotonic.now_ns();
    let mut end_ns = begin_ns;
    while end_ns < begin_ns + length_ns {
        let now_ns = Clock::Monotonic.now_ns();
        if now_ns - end_ns > GAP_NS {
            gaps.push(end_ns..now_ns);
        }
        end_ns = now_ns;
    }
    Delay { begin_ns, end_ns, gaps, ran_on_ns: 0 }
}

/// The expected explanation of each delay.
pub struct Expected<'a> {
    pub is: &'a dyn Fn(&Culprit) -> bool,
    /// True if the culprit's time is the whole delay.
    pub timed: bool,
}

/// Checks the record against the delays: at least 99 % are explained correctly.
pub fn judge(record: &Record, delays: &[Delay], expected: &Expected) -> Result<()> {
    // The exit status was checked: only a stopped probe may make the run invalid.
    let mut others = record.validity.reasons.iter().filter(|reason| reason.id != "punctual.stopped");
    ensure!(others.next().is_none(), "not valid: {:?}", record.validity.reasons);
    let series = record.series.first().context("no series")?;
    let mut tally = Tally::default();
    for delay in delays {
        let first_ns = series.first_deadline_ns;
        let deadline_ns = ((delay.begin_ns - first_ns).div_euclid(PERIOD_NS) + 1) * PERIOD_NS;
        if delay.end_ns - first_ns - deadline_ns < RELEVANT_NS {
            continue;
        }
        // The probe may have been late from the previous deadline already, and a delay may be logged after the probe
        // woke up.
        let late_by = |spike: &&Spike| {
            let at_ns = first_ns + spike.at_ns.cast_signed();
            delay.between(at_ns, at_ns + spike.lateness_ns)
        };
        let longest = series.spikes.iter().max_by_key(late_by).filter(|spike| late_by(spike) > 0);
        let Some(spike) = longest else {
            tally.wrong(format!("no spike for {delay:?}"));
            continue;
        };
        adds_up(spike)?;
        let first = spike.culprits.first().context("a spike without culprits")?;
        let true_ns = late_by(&spike);
        if !(expected.is)(first) || spike.evidence != Evidence::Trace {
            tally.wrong(format!("{:?} {:?} of {} us", spike.evidence, spike.culprits, spike.lateness_ns / 1000));
        } else if expected.timed && !is_right_time(first.ns, true_ns..=true_ns.saturating_add_unsigned(delay.ran_on_ns))
        {
            tally.wrong(format!("{} ns instead of {true_ns}: {:?} {delay:?}", first.ns, spike.culprits));
        } else {
            tally.right();
        }
    }
    let ran_on_ns = delays.iter().map(|delay| delay.ran_on_ns);
    println!("  {} spikes in all; threads ran on for at most {:?} ns", series.spikes_total, ran_on_ns.max());
    tally.judge(99)
}

/// Checks that the culprits' times add up to the lateness, within 1 us.
pub fn adds_up(spike: &Spike) -> Result<()> {
    let sum: u64 = spike.culprits.iter().map(|culprit| culprit.ns).sum();
    ensure!(sum.abs_diff(spike.lateness_ns.cast_unsigned()) <= 1_000, "{sum} of {spike:?}");
    Ok(())
}
