//! Pulses per second at the parallel port of QEMU. The end of a strobe is a pulse at ACK, which `pps_parport` stamps in its
//! handler: on PREEMPT_RT, that is a thread.

use std::{
    fs::{File, OpenOptions},
    os::unix::fs::FileExt,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use record::{CauseKind, Record, Zero};
use sys::{clock::Clock, sched, sched::Policy};

use super::interrupts;
use crate::inside::{expect, punctual, recorded, start};

/// The control register of the first parallel port, with the bits of its interrupt, of selection and of no reset.
const CONTROL: u64 = 0x37a;
const IDLE: u8 = 0x1c;
const STROBE: u8 = 0x1d;
/// Time between two pulses. The kernel takes any.
pub(super) const PERIOD: Duration = Duration::from_millis(10);

/// Makes pulses until it is dropped.
pub(super) struct Pulses {
    shall_end: Arc<AtomicBool>,
    made: Arc<AtomicU64>,
    thread: Option<JoinHandle<Result<()>>>,
}

impl Pulses {
    /// Starts the thread.
    pub(super) fn start(period: Duration) -> Result<Self> {
        let port = OpenOptions::new().read(true).write(true).open("/dev/port").context("cannot open /dev/port")?;
        let (shall_end, made) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (ends, counts) = (Arc::clone(&shall_end), Arc::clone(&made));
        let thread = thread::spawn(move || {
            // Above everything that the tests run, so that the pulses come in time.
            sched::set_policy(Policy::Fifo(98))?;
            while !ends.load(Relaxed) {
                thread::sleep(period);
                pulse(&port)?;
                counts.fetch_add(1, Relaxed);
            }
            Ok(())
        });
        Ok(Self { shall_end, made, thread: Some(thread) })
    }

    /// The pulses so far.
    pub(super) fn made(&self) -> u64 {
        self.made.load(Relaxed)
    }

    /// Stops.
    pub(super) fn end(mut self) -> Result<()> {
        self.shall_end.store(true, Relaxed);
        self.thread.take().context("it runs")?.join().ok().context("the thread of the pulses panicked")?
    }
}

impl Drop for Pulses {
    fn drop(&mut self) {
        self.shall_end.store(true, Relaxed);
    }
}

fn pulse(port: &File) -> Result<()> {
    for control in [STROBE, IDLE] {
        port.write_all_at(&[control], CONTROL)?;
    }
    Ok(())
}

const PROBE: &str = "measure interrupt --source pps:pps0 --cpu 0 --period 10ms --duration 3s --quiet";

fn measured(name: &str, more: &str) -> Result<Record> {
    expect(0, &punctual(&format!("{PROBE} --record {name} {more}"))?)?;
    recorded(name)
}

/// Each pulse is one interrupt, whose time begins at the stamp of the handler.
pub fn begin_at_the_stamp_of_their_handler() -> Result<()> {
    let list = expect(0, &punctual("measure interrupt --list")?)?;
    ensure!(list.lines().any(|line| line.starts_with("pps:pps0")), "{list}");
    let pulses = Pulses::start(PERIOD)?;
    let record = measured("pulses", "")?;
    pulses.end()?;
    ensure!(record.validity.valid, "{:?}", record.validity.reasons);
    let (series, figures) = interrupts(&record)?;
    ensure!(figures.zero == Zero::Handler && figures.lost == 0, "{figures:?}");
    // The thread of the pulses sleeps 10 ms after each.
    ensure!((280..=301).contains(&series.samples), "{} pulses", series.samples);
    ensure!(series.min_ns > Some(0), "{:?}", series.min_ns);
    Ok(())
}

/// Length of the delays.
const DELAY_NS: i64 = 4_000_000;

/// Measures while a thread of this priority takes the CPU for 4 ms at a time, from a pulse on.
fn disturbed(name: &str, intruder: u8, more: &str) -> Result<Record> {
    let run = start(&format!("{PROBE} --policy fifo:80 --record {name} {more}"))?;
    let pulses = Pulses::start(PERIOD)?;
    let thread = thread::Builder::new().name("intruder".to_owned()).spawn(move || -> Result<()> {
        sched::set_policy(Policy::Fifo(intruder))?;
        for _ in 0..50 {
            thread::sleep(Duration::from_millis(37));
            let end_ns = Clock::Monotonic.now_ns() + DELAY_NS;
            while Clock::Monotonic.now_ns() < end_ns {}
        }
        Ok(())
    })?;
    let output = run.wait_with_output()?;
    thread.join().ok().context("the intruder panicked")??;
    pulses.end()?;
    expect(0, &output)?;
    recorded(name)
}

/// A thread above the probe delays the way from the stamp to the probe, and is named. A thread above the handler's
/// thread, but below the probe, delays the stamp: the times do not contain that, and the answer says so.
pub fn a_thread_delays_the_program() -> Result<()> {
    let late = disturbed("pulses-late", 90, "--irq-priority 95")?;
    ensure!(late.validity.valid, "{:?}", late.validity.reasons);
    let (series, _) = interrupts(&late)?;
    let range = DELAY_NS / 2..DELAY_NS * 3 / 2;
    ensure!(series.max_ns.is_some_and(|ns| range.contains(&ns)), "{:?}", series.max_ns);
    let spikes: Vec<_> = series.spikes.iter().filter(|spike| spike.lateness_ns > DELAY_NS / 4).collect();
    ensure!(spikes.len() >= 5, "{} spikes", spikes.len());
    for spike in &spikes {
        let culprit = spike.culprits.iter().max_by_key(|culprit| culprit.ns).context("a spike without a culprit")?;
        let is_intruder = culprit.cause.kind == CauseKind::Thread && culprit.cause.name == "intruder";
        ensure!(is_intruder, "{spike:?}");
        ensure!(culprit.ns.cast_signed().abs_diff(spike.lateness_ns) < 500_000, "{spike:?}");
    }
    let hidden = disturbed("pulses-hidden", 60, "")?;
    let (series, figures) = interrupts(&hidden)?;
    ensure!(series.max_ns < Some(DELAY_NS / 4), "{:?}", series.max_ns);
    ensure!(figures.zero == Zero::Handler && figures.to_kernel.is_none(), "{figures:?}");
    Ok(())
}
