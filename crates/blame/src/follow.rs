//! Follows the threads of a program in the kernel's trace: reads the rings repeatedly and delivers the events of all
//! CPUs in order of time.

use std::{collections::BTreeMap, mem, path::Path, thread};

use crate::{
    Event, EventKind, Process,
    marks::Mark,
    time::now_ns,
    trace::{Gap, Instance, Settings, THREAD_EVENTS, TraceError, Tracefs, ring_kib},
};

/// Events younger than this are delivered later, ns: another CPU may be delayed while it writes an older event.
const HOLD_NS: u64 = 20_000_000;
/// Ring of one CPU for the reports of monitors, KiB. A report takes about 50 bytes, so this holds those of 40 ms in which
/// real-time threads of the whole machine sleep 2000 times on one CPU.
const REPORTS_KIB: u32 = 128;

/// Follows the threads of a program.
#[derive(Debug)]
pub struct Follower {
    instance: Instance,
    /// The reports of the kernel's monitors; `None` if they are not traced.
    reports: Option<Instance>,
    lost_reports: u64,
    /// Events held back until those of the other CPUs are read, oldest first.
    held: Vec<Event>,
    gaps: Vec<Gap>,
    /// When each CPU was last read, ns.
    read_ns: BTreeMap<u32, u64>,
    delivered: u64,
    /// The events up to this time are delivered, ns on CLOCK_MONOTONIC.
    delivered_until_ns: u64,
    lost: u64,
    has_gaps: bool,
    /// The executions of programs that were read since the last call of [`take_execs`](Self::take_execs).
    execs: Vec<Exec>,
}

/// A process executed a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exec {
    /// Id of the process.
    pub pid: u32,
    /// When, ns on CLOCK_MONOTONIC.
    pub at_ns: u64,
}

impl Follower {
    /// Starts tracing these threads and the threads that they will create.
    ///
    /// # Errors
    /// See [`Instance::create`].
    pub fn start(thread_ids: &[u32]) -> Result<Self, TraceError> {
        let cpus = thread::available_parallelism().map_or(1, usize::from);
        let settings = Settings { buffer_kb_per_cpu: ring_kib(cpus), ..Settings::default() };
        let instance = Instance::for_threads(&Tracefs::open()?, &settings, thread_ids)?;
        Ok(Self {
            instance,
            reports: None,
            lost_reports: 0,
            held: Vec::new(),
            gaps: Vec::new(),
            read_ns: BTreeMap::new(),
            delivered: 0,
            delivered_until_ns: now_ns(),
            lost: 0,
            has_gaps: false,
            execs: Vec::new(),
        })
    }

    /// Also traces these threads.
    ///
    /// # Errors
    /// The kernel refuses it.
    pub fn follow(&self, thread_ids: &[u32]) -> Result<(), TraceError> {
        self.instance.follow(thread_ids)
    }

    /// Also traces the reports of the kernel's runtime verification monitors.
    ///
    /// # Errors
    /// See [`Instance::create`].
    pub fn trace_reports(&mut self) -> Result<(), TraceError> {
        let settings = Settings { buffer_kb_per_cpu: REPORTS_KIB, ..Settings::default() };
        self.reports = Some(Instance::for_monitors(&Tracefs::open()?, &settings)?);
        Ok(())
    }

    /// Also traces these marks in a file.
    ///
    /// # Errors
    /// See [`Instance::add_marks`].
    pub fn add_marks(&mut self, file: &Path, marks: &[Mark]) -> Result<(), TraceError> {
        self.instance.add_marks(file, marks)
    }

    /// The setting of the trace that another program has changed, see [`Instance::disturbed`].
    #[must_use]
    pub fn disturbed(&self) -> Option<&'static str> {
        self.instance.disturbed()
    }

    /// Delivers the events up to shortly before now.
    ///
    /// # Errors
    /// The rings cannot be read.
    pub fn read(&mut self, process: &mut Process) -> Result<(), TraceError> {
        let now_ns = now_ns();
        self.drain()?;
        self.deliver(process, now_ns.saturating_sub(HOLD_NS));
        Ok(())
    }

    /// Stops tracing, and delivers all remaining events.
    ///
    /// # Errors
    /// The rings cannot be read.
    pub fn finish(&mut self, process: &mut Process) -> Result<(), TraceError> {
        self.instance.set_on(false)?;
        self.reports.as_mut().map_or(Ok(()), |reports| reports.set_on(false))?;
        self.drain()?;
        self.deliver(process, u64::MAX);
        Ok(())
    }

    fn drain(&mut self) -> Result<(), TraceError> {
        let cpus: Vec<u32> = self.instance.cpus().collect();
        for cpu in cpus {
            let (now_ns, held) = (now_ns(), self.held.len());
            let drained = self.instance.drain(cpu, &mut self.held)?;
            let execs = self.held[held..].iter().filter(|event| event.kind == EventKind::Exec);
            self.execs.extend(execs.map(|&Event { pid, at_ns, .. }| Exec { pid, at_ns }));
            self.lost += drained.lost_events;
            let read_ns = self.read_ns.insert(cpu, now_ns);
            // At the first reading, the gap before the start of tracing is ignored.
            let missing = drained.gaps.iter().filter(|gap| gap.from_ns > 0 || gap.lost > 0);
            // A gap starts at the previous reading at the earliest.
            self.gaps.extend(missing.map(|gap| Gap { from_ns: gap.from_ns.max(read_ns.unwrap_or(0)), ..*gap }));
            self.has_gaps |= !self.gaps.is_empty();
        }
        self.drain_reports()
    }

    /// Reads the reports of monitors. If some are lost, the times of the threads are still complete.
    fn drain_reports(&mut self) -> Result<(), TraceError> {
        let Some(reports) = &mut self.reports else { return Ok(()) };
        let cpus: Vec<u32> = reports.cpus().collect();
        for cpu in cpus {
            self.lost_reports += reports.drain(cpu, &mut self.held)?.lost_events;
        }
        Ok(())
    }

    fn deliver(&mut self, process: &mut Process, until_ns: u64) {
        self.delivered_until_ns = until_ns.min(now_ns());
        self.held.sort_by_key(|event| event.at_ns);
        let ready = self.held.partition_point(|event| event.at_ns <= until_ns);
        let mut gaps = mem::take(&mut self.gaps);
        gaps.sort_by_key(|gap| gap.from_ns);
        let later = gaps.split_off(gaps.partition_point(|gap| gap.from_ns <= until_ns));
        let mut gaps = gaps.into_iter().peekable();
        for event in self.held.drain(..ready) {
            self.delivered += u64::from(!matches!(event.kind, EventKind::MonitorReport { .. }));
            while let Some(gap) = gaps.next_if(|gap| gap.from_ns < event.at_ns) {
                process.lost(gap.from_ns, gap.to_ns);
            }
            process.handle_event(&event);
        }
        gaps.for_each(|gap| process.lost(gap.from_ns, gap.to_ns));
        self.gaps = later;
    }

    /// The time up to which all events are delivered, ns on CLOCK_MONOTONIC.
    #[must_use]
    pub fn delivered_until_ns(&self) -> u64 {
        self.delivered_until_ns
    }

    /// Takes the executions of programs up to the last reading, also those whose events are not delivered yet.
    pub fn take_execs(&mut self) -> Vec<Exec> {
        mem::take(&mut self.execs)
    }

    /// The enabled events, in the form `system:name`.
    #[must_use]
    pub fn events_on(&self) -> &[String] {
        self.instance.events_on()
    }

    /// True if the events show the system calls that can wait.
    #[must_use]
    pub fn sees_calls(&self) -> bool {
        let is_on = |event: &str| self.events_on().iter().any(|on| on == event);
        is_on("raw_syscalls:sys_enter") && is_on("raw_syscalls:sys_exit")
    }

    /// The events that this kernel does not have, in the form `system:name`.
    #[must_use]
    pub fn missing_events(&self) -> Vec<String> {
        let wanted = THREAD_EVENTS.iter().map(|event| format!("{}:{}", event.system, event.name));
        wanted.filter(|event| !self.events_on().contains(event)).collect()
    }

    /// Number of events of the program delivered so far, without the reports of monitors.
    #[must_use]
    pub fn delivered_events(&self) -> u64 {
        self.delivered
    }

    /// Number of reports of monitors that the kernel overwrote before they were read.
    #[must_use]
    pub fn lost_reports(&self) -> u64 {
        self.lost_reports
    }

    /// True if any events are missing.
    #[must_use]
    pub fn has_gaps(&self) -> bool {
        self.has_gaps
    }

    /// Number of events that the kernel overwrote before they were read, as far as it is known.
    #[must_use]
    pub fn lost_events(&self) -> u64 {
        self.lost
    }
}
