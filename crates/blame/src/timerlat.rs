//! Runs the kernel's timerlat tracer at the same time as the probe. The tracer measures the latency of a timer
//! interrupt, and of the thread that this interrupt wakes, from inside the kernel.
//!
//! It runs in a private trace instance. Its period and CPUs are settings of the whole machine, so they are used as they
//! are.

mod cycles;
mod setup;

use std::{collections::BTreeMap, mem};

use machine::{CpuList, Root};
use record::{Granted, Series, Spike};

use crate::{
    Event, MeasuredThread,
    trace::{Instance, Settings, Tracefs, remove_leftovers},
};
use cycles::{Cycles, Traced};

pub use setup::{Setup, TimerlatError};

/// Ring of one CPU, KiB: half a second at the tracer's shortest period, 100 us.
const RING_KIB: u32 = 512;

/// The running tracer; stops on drop.
#[derive(Debug)]
pub struct Timerlat {
    root: Root,
    setup: Setup,
    instance: Instance,
    cpus: BTreeMap<u32, MeasuredCpu>,
}

/// Data of one measured CPU.
#[derive(Debug, Default)]
struct MeasuredCpu {
    thread: Option<Thread>,
    cycles: Cycles,
    /// Spikes of the last collection, in order of time, which the caller may explain.
    fresh: Vec<Spike>,
    /// Events read but not handled yet.
    events: Vec<Event>,
}

/// The tracer's thread on a CPU.
#[derive(Debug, Clone)]
struct Thread {
    pid: u32,
    /// Priority as the kernel counts.
    priority: i32,
    /// Policy in the form of the options: `fifo:95`.
    policy: String,
}

impl Timerlat {
    /// Starts the tracer for these CPUs.
    ///
    /// # Errors
    /// The kernel has no timerlat tracer, or the tracer is configured unsuitably or in use.
    pub fn start(root: &Root, cpus: &CpuList) -> Result<Self, TimerlatError> {
        let tracefs = Tracefs::open()?;
        let _ = remove_leftovers(&tracefs);
        let setup = Setup::read(&tracefs, cpus)?;
        let measured: Vec<u32> = cpus.iter().collect();
        let settings = Settings { cpus: &measured, buffer_kb_per_cpu: RING_KIB, ..Settings::default() };
        let instance = Instance::for_timerlat(&tracefs, &settings).map_err(TimerlatError::starting)?;
        let mut measured_cpus: BTreeMap<u32, MeasuredCpu> =
            cpus.iter().map(|cpu| (cpu, MeasuredCpu::default())).collect();
        for (cpu, thread) in Thread::all(root) {
            if let Some(measured) = measured_cpus.get_mut(&cpu) {
                measured.thread = Some(thread);
            }
        }
        Ok(Self { root: root.clone(), setup, instance, cpus: measured_cpus })
    }

    /// The tracer's settings for the whole machine.
    #[must_use]
    pub fn setup(&self) -> &Setup {
        &self.setup
    }

    /// Drops all figures and starts anew. From now on, a thread later than `threshold_ns` is a spike.
    pub fn begin(&mut self, threshold_ns: i64) {
        for (&cpu, measured) in &mut self.cpus {
            // If the ring cannot be read, there are no samples; the same below.
            let _ = self.instance.drain(cpu, &mut measured.events);
            measured.events.clear();
            measured.fresh.clear();
            measured.cycles = Cycles::new(self.setup.period_ns, threshold_ns);
        }
    }

    /// Collects the samples since the last call. Call it about 25 times a second.
    pub fn collect(&mut self) {
        for (&cpu, measured) in &mut self.cpus {
            let _ = self.instance.drain(cpu, &mut measured.events);
            measured.handle_events(&self.root);
        }
    }

    /// The tracer's threads, as far as they are known.
    pub fn measured_threads(&self) -> impl Iterator<Item = MeasuredThread> + '_ {
        self.cpus.iter().filter_map(|(&cpu, measured)| measured.measured_thread(cpu))
    }

    /// The spikes of the last [`collect`](Self::collect), by thread, with its first deadline in ns on CLOCK_MONOTONIC.
    /// The next collection keeps them with the explanations that the caller added.
    pub fn fresh_spikes(&mut self) -> impl Iterator<Item = (MeasuredThread, u64, &mut [Spike])> {
        self.cpus.iter_mut().filter_map(|(&cpu, measured)| {
            let measured_thread = measured.measured_thread(cpu)?;
            Some((measured_thread, measured.cycles.first_deadline_ns()?, measured.fresh.as_mut_slice()))
        })
    }

    /// The figures so far: for each CPU the series of the interrupt and that of the thread.
    #[must_use]
    pub fn series(&self, phase: &str) -> Vec<Series> {
        let series = |(&cpu, measured): (&u32, &MeasuredCpu)| {
            let granted = Granted {
                policy: measured.thread.as_ref().map(|thread| thread.policy.clone()).unwrap_or_default(),
                cpus: cpu.to_string(),
                // Kernel memory is never swapped out.
                memory_locked: true,
                ..Granted::default()
            };
            [Traced::Irq, Traced::Thread].map(|traced| Series {
                phase: phase.to_owned(),
                cpu: Some(cpu),
                granted: match traced {
                    Traced::Irq => Granted { policy: "interrupt".to_owned(), ..granted.clone() },
                    Traced::Thread => granted.clone(),
                },
                ..measured.cycles.series(traced, &measured.fresh)
            })
        };
        self.cpus.iter().flat_map(series).collect()
    }
}

impl MeasuredCpu {
    fn handle_events(&mut self, root: &Root) {
        mem::take(&mut self.fresh).into_iter().for_each(|spike| self.cycles.keep(spike));
        for event in mem::take(&mut self.events) {
            let Some(thread) = self.cycles.handle_event(&event, &mut self.fresh) else { continue };
            if self.thread.as_ref().is_none_or(|known| known.pid != thread) {
                self.thread = Some(Thread::of(root, thread));
            }
        }
    }

    fn measured_thread(&self, cpu: u32) -> Option<MeasuredThread> {
        self.thread.as_ref().map(|thread| MeasuredThread {
            pid: thread.pid,
            priority: thread.priority,
            cpu,
            spins: false,
            awaits_device: false,
            slack_ns: 0,
            has_quota: false,
        })
    }
}

impl Thread {
    /// The tracer's threads, by CPU. A process in a container may not see them before their first sample.
    fn all(root: &Root) -> impl Iterator<Item = (u32, Self)> {
        let pids = root.list("proc").into_iter().filter_map(|name| name.parse::<u32>().ok());
        pids.filter_map(|pid| {
            let cpu = root.read(&format!("proc/{pid}/comm"))?.strip_prefix("timerlat/")?.parse().ok()?;
            Some((cpu, Self::of(root, pid)))
        })
    }

    /// Reads the thread's current priority. Source: proc(5), fields 40 and 41 of `/proc/PID/stat`.
    fn of(root: &Root, pid: u32) -> Self {
        let stat = root.read(&format!("proc/{pid}/stat")).unwrap_or_default();
        let fields: Vec<i32> = stat.rsplit_once(')').map_or_else(Vec::new, |(_, fields)| {
            fields.split_ascii_whitespace().skip(1).map(|field| field.parse().unwrap_or(0)).collect()
        });
        let field = |number: usize| fields.get(number - 4).copied().unwrap_or(0);
        let (real_time, policy) = (field(40), field(41));
        let (priority, policy) = match policy {
            1 => (99 - real_time, format!("fifo:{real_time}")),
            2 => (99 - real_time, format!("rr:{real_time}")),
            6 => (-1, "deadline".to_owned()),
            0 => (120, "other".to_owned()),
            other => (120, format!("policy {other}")),
        };
        Self { pid, priority, policy }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_policy_of_a_thread() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::at(folder.path());
        // From Linux 6.12. Only the real-time priority and the policy matter here.
        let stat = |real_time, policy| {
            let before = "2129920 0 0 0 0 0 0 0 0 -96 0 1 0 36742 0 0 18446744073709551615 0 0 0 0 0 0 0 2147483647 0 1 0 0 -1 0";
            format!("88 (timerlat/0) S 2 0 0 0 -1 {before} {real_time} {policy} 0 0 0 0 0 0 0 0 0 0 0\n")
        };
        std::fs::create_dir_all(root.path("proc/88")).unwrap();
        let found = |real_time, policy| {
            std::fs::write(root.path("proc/88/stat"), stat(real_time, policy)).unwrap();
            let Thread { priority, policy, .. } = Thread::of(&root, 88);
            (priority, policy)
        };
        assert_eq!(found(95, 1), (4, "fifo:95".to_owned()));
        assert_eq!(found(1, 2), (98, "rr:1".to_owned()));
        assert_eq!(found(0, 0), (120, "other".to_owned()));
        assert_eq!(Thread::of(&root, 89).policy, "other", "a missing thread");

        for (pid, comm) in [(88, "timerlat/0"), (90, "timerlat/12"), (91, "timerlat"), (92, "bash")] {
            std::fs::create_dir_all(root.path(&format!("proc/{pid}"))).unwrap();
            std::fs::write(root.path(&format!("proc/{pid}/comm")), format!("{comm}\n")).unwrap();
        }
        let found: Vec<_> = Thread::all(&root).map(|(cpu, thread)| (cpu, thread.pid)).collect();
        assert_eq!(found, [(0, 88), (12, 90)]);
    }
}
