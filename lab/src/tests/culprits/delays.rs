//! Delays of irregular length at irregular times, and the record held against them.

use std::{
    fs,
    io::Write,
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
};

use crate::inside::recorded;

const PERIOD_NS: i64 = 1_000_000;
/// Delays a test; not every one puts a deadline off by more than the threshold.
const DELAYS: usize = 260;
/// Delays that must have been looked for.
const WANTED: usize = 200;
/// Lateness above which a delay must be found, ns. A deadline that lies near the end of a delay is hardly late.
const LOOKED_FOR_NS: i64 = 150_000;

/// A delay, ns on CLOCK_MONOTONIC.
#[derive(Debug, Clone, Copy)]
pub struct Delay {
    pub begin_ns: i64,
    pub end_ns: i64,
}

/// Numbers that are irregular and the same in every run.
struct Dice(u64);

impl Dice {
    fn new() -> Self {
        Self(0x9e37_79b9_7f4a_7c15)
    }

    /// A number from `range`.
    fn roll(&mut self, range: std::ops::Range<i64>) -> i64 {
        // xorshift64 (Marsaglia 2003).
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        range.start + (self.0 % (range.end - range.start) as u64) as i64
    }
}

/// `punctual measure timer` with its trace, under way.
pub struct Measuring {
    child: Child,
    name: &'static str,
}

impl Measuring {
    /// Starts it, with more arguments, and waits until it measures.
    pub fn start(name: &'static str, more: &str) -> Result<Self> {
        let arguments = format!("measure timer --quiet --endless --cpus 0 --period 1ms --blame --record {name} {more}");
        let child = Command::new(lab::initramfs::PUNCTUAL)
            .args(arguments.split_whitespace())
            .stdout(Stdio::null())
            .spawn()
            .context("cannot start punctual")?;
        thread::sleep(Duration::from_millis(1500));
        Ok(Self { child, name })
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        signal_to(self.pid(), signal)
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Ends it; its record.
    pub fn end(mut self) -> Result<Record> {
        thread::sleep(Duration::from_millis(100));
        self.signal(Signal::INT)?;
        let status = self.child.wait()?;
        ensure!(status.code() == Some(0), "punctual ended with {status}");
        recorded(self.name)
    }
}

/// Sends a signal.
pub fn signal_to(pid: u32, signal: Signal) -> Result<()> {
    let pid = Pid::from_raw(pid as i32).context("no process")?;
    Ok(kill_process(pid, signal)?)
}

/// Has the kernel hold the CPU at irregular times, from an ordinary thread named `holder`: see `lab/module`.
pub fn hold(command: &'static str) -> Result<Vec<Delay>> {
    const HOLD: &str = "/dev/hold";
    fs::read_to_string(HOLD).context("cannot read /dev/hold")?;
    let mut device = fs::OpenOptions::new().write(true).open(HOLD)?;
    at_irregular_times("holder", Policy::Other, move |length_ns| {
        device.write_all(format!("{command} {length_ns}").as_bytes()).context("cannot write to /dev/hold")?;
        let asked = Instant::now();
        while asked.elapsed() < Duration::from_secs(1) {
            // One line a hold: kind, begin, end, CPU.
            let log = fs::read_to_string(HOLD)?;
            let fields: Vec<&str> = log.split_whitespace().collect();
            if let [_, begin, end, _] = fields[..] {
                return Ok(Delay { begin_ns: begin.parse()?, end_ns: end.parse()? });
            }
            ensure!(log.is_empty(), "not one hold: {log}");
            thread::sleep(Duration::from_millis(1));
        }
        bail!("{command} was not held")
    })
}

/// A thread of this name and policy that does something at irregular times, [`DELAYS`] times.
pub fn at_irregular_times(
    name: &str,
    policy: Policy,
    mut delay: impl FnMut(i64) -> Result<Delay> + Send + 'static,
) -> Result<Vec<Delay>> {
    let work = move || -> Result<Vec<Delay>> {
        sched::set_policy(policy)?;
        let mut dice = Dice::new();
        (0..DELAYS)
            .map(|_| {
                thread::sleep(Duration::from_nanos(dice.roll(7_000_000..29_000_000) as u64));
                delay(dice.roll(1_200_000..3_500_000))
            })
            .collect()
    };
    match thread::Builder::new().name(name.to_owned()).spawn(work)?.join() {
        Ok(delays) => delays,
        Err(_) => bail!("{name} panicked"),
    }
}

/// Keeps the CPU until so many ns have passed.
pub fn spin(length_ns: i64) -> Delay {
    let begin_ns = Clock::Monotonic.now_ns();
    let mut end_ns = begin_ns;
    while end_ns < begin_ns + length_ns {
        end_ns = Clock::Monotonic.now_ns();
    }
    Delay { begin_ns, end_ns }
}

/// What must be said of each delay.
pub struct Expected<'a> {
    pub is: &'a dyn Fn(&Culprit) -> bool,
    /// Whether the culprit's time is that of the delay, and not only a part of it.
    pub timed: bool,
}

/// Holds the record against the delays.
pub fn judge(record: &Record, delays: &[Delay], expected: &Expected) -> Result<()> {
    ensure!(record.validity.valid, "not valid: {:?}", record.validity.reasons);
    let series = record.series.first().context("no series")?;
    let (mut looked_for, mut right) = (0, 0);
    let mut wrong = Vec::new();
    for delay in delays {
        let (begin_ns, end_ns) = (delay.begin_ns - series.first_deadline_ns, delay.end_ns - series.first_deadline_ns);
        let deadline_ns = (begin_ns.div_euclid(PERIOD_NS) + 1) * PERIOD_NS;
        if end_ns - deadline_ns < LOOKED_FOR_NS {
            continue;
        }
        looked_for += 1;
        // The probe may still have been on its way from the deadline before.
        let over = |spike: &&Spike| (spike.at_ns as i64) < end_ns && spike.at_ns as i64 + spike.lateness_ns >= end_ns;
        let Some(spike) = series.spikes.iter().find(over) else {
            wrong.push(format!("no spike for {begin_ns} to {end_ns}"));
            continue;
        };
        adds_up(spike)?;
        let first = spike.culprits.first().context("a spike without culprits")?;
        let true_ns = end_ns - begin_ns.max(spike.at_ns as i64);
        let off_ns = (first.ns as i64 - true_ns).abs();
        if !(expected.is)(first) || spike.evidence != Evidence::Trace {
            wrong.push(format!("{:?} {:?} of {} us", spike.evidence, spike.culprits, spike.lateness_ns / 1000));
        } else if expected.timed && off_ns > true_ns / 20 + 2_000 {
            wrong.push(format!("{} ns instead of {true_ns}: {:?}", first.ns, spike.culprits));
        } else {
            right += 1;
        }
    }
    println!("  {right} of {looked_for} right; {} spikes in all", series.spikes_total);
    ensure!(looked_for >= WANTED, "only {looked_for} delays put a deadline off");
    ensure!(
        right * 100 >= looked_for * 99,
        "{right} of {looked_for} right, for example:\n{}",
        wrong[..wrong.len().min(4)].join("\n")
    );
    Ok(())
}

/// Whether the shares add up to the lateness, within 1 us.
pub fn adds_up(spike: &Spike) -> Result<()> {
    let sum: u64 = spike.culprits.iter().map(|culprit| culprit.ns).sum();
    ensure!(sum.abs_diff(spike.lateness_ns as u64) <= 1_000, "{sum} of {spike:?}");
    Ok(())
}
