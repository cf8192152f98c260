//! Culprits from the kernel's trace: rings drained at a spike, the window around it cut out.

use std::{collections::BTreeMap, thread};

use record::{Cause, CauseKind, Evidence};

use super::window::{Window, events_around, events_of_other_cpu, stop_signal_before};
use crate::{
    Explanation, MeasuredThread, WakeUp, explain,
    trace::{Instance, Settings, Symbols, TraceError, Tracefs, remove_leftovers, ring_kib},
};

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
    pub fn begin_round(&mut self, threads: &[MeasuredThread], now_ns: u64) {
        for measured in threads {
            self.windows.entry(measured.cpu).or_default();
        }
        for (&cpu, window) in &mut self.windows {
            let of_cpu = threads.iter().filter(|measured| measured.cpu == cpu);
            window.begin_round(&of_cpu.map(|measured| measured.pid).collect::<Vec<_>>(), now_ns);
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
    pub fn explain(&mut self, measured: &MeasuredThread, wake_up: WakeUp) -> Explanation {
        let explanation = self.explain_from(measured, wake_up, false);
        let unknown_sender = |cause: &Cause| cause.kind == CauseKind::Stopped && cause.number.is_none();
        let nothing_open = !explanation.culprits.iter().any(|culprit| unknown_sender(&culprit.cause));
        if explanation.evidence == Evidence::Trace && nothing_open {
            return explanation;
        }
        // Another CPU may have woken or stopped the thread.
        let others: Vec<u32> = self.instance.cpus().filter(|&cpu| cpu != measured.cpu).collect();
        others.into_iter().for_each(|cpu| self.read(cpu));
        self.explain_from(measured, wake_up, true)
    }

    fn explain_from(&mut self, measured: &MeasuredThread, wake_up: WakeUp, with_others: bool) -> Explanation {
        let (instance, windows) = (&self.instance, &mut self.windows);
        let symbol = |address| instance.symbol(address).map(str::to_owned);
        let own = windows.entry(measured.cpu).or_default();
        let complete_since_ns = Some(own.complete_since_ns(wake_up.end_ns()));
        own.count_lost(wake_up);
        let events = events_around(&own.events, measured.pid, wake_up);
        if !with_others {
            return explain(events, instance.names(), &symbol, measured, wake_up, complete_since_ns);
        }
        let from_ns = events.first().map_or(wake_up.deadline_ns, |event| event.at_ns);
        let mut all = events.to_vec();
        for (_, other) in windows.iter().filter(|&(&cpu, _)| cpu != measured.cpu) {
            all.extend(stop_signal_before(&other.events, from_ns));
            all.extend_from_slice(events_of_other_cpu(&other.events, measured.pid, from_ns, wake_up.end_ns()));
        }
        all.sort_by_key(|event| event.at_ns);
        explain(&all, instance.names(), &symbol, measured, wake_up, complete_since_ns)
    }

    /// Notes that the spikes of a thread are explained up to this moment: their events may go.
    pub fn explained(&mut self, measured: &MeasuredThread, end_ns: u64) {
        self.windows.entry(measured.cpu).or_default().explained(measured.pid, end_ns);
    }

    /// Events that were lost where a spike needed them.
    pub fn lost_events(&self) -> u64 {
        self.windows.values().map(|window| window.lost_events).sum()
    }
}
