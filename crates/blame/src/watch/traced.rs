//! Culprits from the kernel's trace: rings drained at a spike, the window around it cut out.

use std::{collections::BTreeMap, thread};

use record::{Cause, CauseKind, Evidence};
use rustix::system::sysinfo;

use super::window::{Window, around, of_another, signal_before};
use crate::{
    Explanation, Waiter, Wake, explain,
    trace::{Instance, Settings, Symbols, TraceError, Tracefs, remove_leftovers},
};

/// Ring of one CPU, KiB: at best several hundred ms of a busy CPU, since the reader is an ordinary thread that may be late.
const RING_KIB: std::ops::RangeInclusive<u64> = 1024..=4096;
/// The part of the memory that all rings together may take.
const MEMORY_SHARE: u64 = 64;
/// Ring of a CPU that is not measured, KiB: a thread there may wake or stop a measuring thread, and timers of isolated
/// CPUs run on others.
const OTHERS_KIB: u32 = 512;

/// The trace, and what was read of it.
#[derive(Debug)]
pub struct Traced {
    pub instance: Instance,
    /// By CPU.
    windows: BTreeMap<u32, Window>,
}

impl Traced {
    /// Begins to trace; removes what crashed runs have left behind.
    pub fn start(cpus: &[u32], deep: bool, keep: bool) -> Result<Self, TraceError> {
        let tracefs = Tracefs::open()?;
        remove_leftovers(&tracefs);
        // A kernel developer wants to see what the other CPUs did.
        let (cpus, count) = match keep {
            true => (&[][..], thread::available_parallelism().map_or(1, usize::from)),
            false => (cpus, cpus.len()),
        };
        let settings = Settings { cpus, deep, buffer_kb_per_cpu: ring_kib(count), others_kb_per_cpu: OTHERS_KIB };
        let mut instance = Instance::create(&tracefs, &settings)?;
        // Names of the kernel's functions are read before anything is measured: that takes 60 ms on a PC, and seconds on a
        // slow CPU, in which spikes would pile up.
        Symbols::of_this_kernel();
        if keep {
            instance.keep_drained();
        }
        Ok(Self { instance, windows: BTreeMap::new() })
    }

    /// Keeps events for these threads alone from now on. Each of them is then asked for its spikes.
    pub fn keep_for(&mut self, waiters: &[Waiter], now_ns: u64) {
        for waiter in waiters {
            self.windows.entry(waiter.cpu).or_default();
        }
        for (&cpu, window) in &mut self.windows {
            let of_cpu = waiters.iter().filter(|waiter| waiter.cpu == cpu);
            window.begin_round(&of_cpu.map(|waiter| waiter.pid).collect::<Vec<_>>(), now_ns);
        }
    }

    /// Takes in what the ring of a CPU holds.
    pub fn read(&mut self, cpu: u32) {
        let window = self.windows.entry(cpu).or_default();
        // A ring that cannot be read leaves its windows without events, which is what they then tell.
        if let Ok(drained) = self.instance.drain(cpu, &mut window.events) {
            window.gaps.extend(drained.gaps);
        }
        window.bound();
    }

    /// Explains a wake-up from what was read; looks at other CPUs where their events may tell what is missing.
    pub fn explain(&mut self, waiter: &Waiter, wake: Wake) -> Explanation {
        let explanation = self.explain_from(waiter, wake, false);
        let unknown_sender = |cause: &Cause| cause.kind == CauseKind::Stopped && cause.number.is_none();
        let nothing_open = !explanation.culprits.iter().any(|culprit| unknown_sender(&culprit.cause));
        if explanation.evidence == Evidence::Trace && nothing_open {
            return explanation;
        }
        // Another CPU may have woken or stopped the thread.
        let others: Vec<u32> = self.instance.cpus().filter(|&cpu| cpu != waiter.cpu).collect();
        others.into_iter().for_each(|cpu| self.read(cpu));
        self.explain_from(waiter, wake, true)
    }

    fn explain_from(&mut self, waiter: &Waiter, wake: Wake, with_others: bool) -> Explanation {
        let (instance, windows) = (&self.instance, &mut self.windows);
        let symbol = |address| instance.symbol(address).map(str::to_owned);
        let own = windows.entry(waiter.cpu).or_default();
        let complete_since_ns = Some(own.complete_since_ns(wake.end_ns()));
        own.count_lost(wake);
        let events = around(&own.events, waiter.pid, wake);
        if !with_others {
            return explain(events, instance.names(), &symbol, waiter, wake, complete_since_ns);
        }
        let from_ns = events.first().map_or(wake.deadline_ns, |event| event.at_ns);
        let mut all = events.to_vec();
        for (_, other) in windows.iter().filter(|&(&cpu, _)| cpu != waiter.cpu) {
            all.extend(signal_before(&other.events, from_ns));
            all.extend_from_slice(of_another(&other.events, waiter.pid, from_ns, wake.end_ns()));
        }
        all.sort_by_key(|event| event.at_ns);
        explain(&all, instance.names(), &symbol, waiter, wake, complete_since_ns)
    }

    /// Notes that the spikes of a thread are explained up to this moment: their events may go.
    pub fn explained(&mut self, waiter: &Waiter, end_ns: u64) {
        self.windows.entry(waiter.cpu).or_default().explained(waiter.pid, end_ns);
    }

    /// Events that were lost where a spike needed them.
    pub fn lost_events(&self) -> u64 {
        self.windows.values().map(|window| window.lost_events).sum()
    }
}

/// Size of a ring where so many CPUs have one, KiB, so that small machines keep their memory.
pub(crate) fn ring_kib(cpus: usize) -> u32 {
    let memory = sysinfo();
    let kib = memory.totalram as u64 * u64::from(memory.mem_unit) / 1024;
    (kib / MEMORY_SHARE / cpus.max(1) as u64).clamp(*RING_KIB.start(), *RING_KIB.end()) as u32
}
