//! A private trace instance with its own rings, which leaves the global trace unchanged.
//!
//! | module | contents |
//! |---|---|
//! | `settings` | traced CPUs and the sizes of their rings |
//! | `events` | enables events and filters |
//! | `per_cpu` | the ring of one CPU |

mod events;
mod per_cpu;
mod settings;

use std::{fs::File, os::unix::fs::FileExt, path::Path};

use machine::Root;

pub use self::settings::Settings;
pub(crate) use self::settings::ring_kib;
use self::{
    events::{enable_events, enable_mark, filter, filter_calls, follow, run_timerlat},
    per_cpu::Ring,
    settings::{configure, traced_cpus},
};
use super::{
    decode::{Decoder, KernelInfo},
    error::TraceError,
    folder::Folder,
    format::PageLayout,
    namespaces,
    ring::Drained,
    selectors::{LATENCY_EVENTS, MONITOR_EVENTS, THREAD_EVENTS},
    symbols::{KernelSymbols, strings},
    tracefs::Tracefs,
    uprobes::Uprobes,
};
use crate::{
    event::{Event, Names},
    marks::Mark,
    time::now_ns,
};

/// A private trace instance, removed on drop. The ring of each CPU overwrites its oldest events.
#[derive(Debug)]
pub struct Instance {
    // Fields are dropped in order: all files must be closed before the folder is removed.
    pub(super) rings: Vec<Ring>,
    tracing_on: File,
    pub(super) events: Vec<String>,
    /// The traced CPUs, as the kernel writes them.
    cpu_mask: String,
    pub(super) decoder: Decoder,
    pub(super) layout: PageLayout,
    pub(super) page: Vec<u8>,
    /// When tracing was turned off, ns; `None` while it is on.
    off_since_ns: Option<u64>,
    pub(super) folder: Folder,
    /// Must be dropped after the folder, which uses them.
    marks: Uprobes,
}

impl Instance {
    /// Creates an instance and starts tracing.
    ///
    /// # Errors
    /// The kernel refuses it, has no such CPU, or lacks memory. Nothing is left behind.
    pub fn create(tracefs: &Tracefs, settings: &Settings<'_>) -> Result<Self, TraceError> {
        let wanted = LATENCY_EVENTS.iter().filter(|wanted| settings.deep || !wanted.deep);
        Self::tracing(tracefs, settings, |folder, decoder| enable_events(folder, wanted, decoder))
    }

    /// Creates an instance that traces only the scheduling and the waits of these threads and of the threads that they
    /// create.
    ///
    /// # Errors
    /// See [`create`](Self::create).
    pub fn for_threads(tracefs: &Tracefs, settings: &Settings<'_>, thread_ids: &[u32]) -> Result<Self, TraceError> {
        Self::tracing(tracefs, settings, |folder, decoder| {
            folder.files.write("options/event-fork", "1")?;
            follow(folder, thread_ids)?;
            filter_calls(folder)?;
            decoder.set_timers(KernelSymbols::lock().timers());
            enable_events(folder, THREAD_EVENTS.iter(), decoder)
        })
    }

    /// Creates an instance that traces only the reports of the kernel's runtime verification monitors, about all
    /// threads: some monitors report from an interrupt, or from the thread that wakes another one.
    ///
    /// # Errors
    /// See [`create`](Self::create).
    pub fn for_monitors(tracefs: &Tracefs, settings: &Settings<'_>) -> Result<Self, TraceError> {
        Self::tracing(tracefs, settings, |folder, decoder| enable_events(folder, MONITOR_EVENTS.iter(), decoder))
    }

    /// Creates an instance that runs the kernel's timerlat tracer and traces only its samples.
    ///
    /// # Errors
    /// See [`create`](Self::create); [`TraceError::Busy`] if the kernel's osnoise tracer is running.
    pub fn for_timerlat(tracefs: &Tracefs, settings: &Settings<'_>) -> Result<Self, TraceError> {
        Self::tracing(tracefs, settings, run_timerlat)
    }

    fn tracing(
        tracefs: &Tracefs,
        settings: &Settings<'_>,
        turn_on: impl FnOnce(&Folder, &mut Decoder) -> Result<Vec<String>, TraceError>,
    ) -> Result<Self, TraceError> {
        namespaces::check(&Root::system())?;
        let folder = Folder::create(tracefs)?;
        let cpus = traced_cpus(&folder, settings)?;
        configure(&folder, settings, &cpus)?;
        let layout = page_layout(&folder)?;
        let code_start = if settings.deep { KernelSymbols::lock().code_start() } else { 0 };
        let strings = strings(&tracefs.read("printk_formats").unwrap_or_default());
        let mut decoder = Decoder::new(KernelInfo { code_start, strings, ..KernelInfo::default() });
        let events = turn_on(&folder, &mut decoder)?;
        let pages = |cpu| (settings.kb_of(cpu) as usize * 1024).div_ceil(layout.size).max(2);
        let rings = cpus.iter().map(|&cpu| Ring::open(&folder, cpu, pages(cpu))).collect::<Result<_, _>>()?;
        let tracing_on =
            folder.files.open_for_writing("tracing_on").map_err(|error| TraceError::of("tracing_on", error))?;
        let page = vec![0; layout.size];
        let off_since_ns = Some(0);
        let marks = Uprobes::new(tracefs, folder.number);
        let cpu_mask = folder.files.read("tracing_cpumask").unwrap_or_default();
        let mut instance =
            Self { rings, tracing_on, events, cpu_mask, decoder, layout, page, off_since_ns, folder, marks };
        instance.set_on(true)?;
        Ok(instance)
    }

    /// Path of the instance's folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.folder.path
    }

    /// The enabled events, in the form `system:name`.
    #[must_use]
    pub fn events_on(&self) -> &[String] {
        &self.events
    }

    /// The setting of the trace that another program has changed; `None` if all are in force, or cannot be read. Needs
    /// some reads of files.
    #[must_use]
    pub fn disturbed(&self) -> Option<&'static str> {
        let read = |part| self.folder.files.read(part).ok();
        let is_on = read("tracing_on")?.trim() == "1";
        let (enabled, cpu_mask) = (read("set_event")?, read("tracing_cpumask")?);
        let is_enabled = |event: &String| enabled.lines().any(|line| line == event);
        // Switches are never filtered here, only by other programs.
        const SWITCH_FILTER: &str = "events/sched/sched_switch/filter";
        let is_filtered = !["none", ""].contains(&read(SWITCH_FILTER).unwrap_or_default().trim());
        match () {
            () if is_on == self.off_since_ns.is_some() => Some("tracing_on"),
            () if cpu_mask != self.cpu_mask => Some("tracing_cpumask"),
            () if !self.events.iter().all(is_enabled) => Some("set_event"),
            () if is_filtered => Some(SWITCH_FILTER),
            () => None,
        }
    }

    /// The traced CPUs, in ascending order.
    pub fn cpus(&self) -> impl ExactSizeIterator<Item = u32> + '_ {
        self.rings.iter().map(|ring| ring.progress.cpu)
    }

    /// Turns tracing on or off. The rings keep their events.
    ///
    /// # Errors
    /// The kernel refuses it.
    pub fn set_on(&mut self, on: bool) -> Result<(), TraceError> {
        let refused = |error| TraceError::of("tracing_on", error);
        let off_ns = now_ns();
        self.tracing_on.write_all_at(if on { b"1" } else { b"0" }, 0).map_err(refused)?;
        match (on, self.off_since_ns) {
            (true, Some(from_ns)) => {
                let to_ns = now_ns();
                self.rings.iter_mut().for_each(|ring| ring.note_off(from_ns, to_ns));
                self.off_since_ns = None;
            }
            (false, None) => self.off_since_ns = Some(off_ns),
            _ => {}
        }
        Ok(())
    }

    /// Returns another handle of `tracing_on`: any thread can write `0` to it to freeze the trace. Unlike
    /// [`set_on`](Self::set_on), this records no gap. The instance cannot be removed until the handle is closed.
    ///
    /// # Errors
    /// The process has too many open files.
    pub fn tracing_on_file(&self) -> Result<File, TraceError> {
        self.tracing_on.try_clone().map_err(|error| TraceError::of("tracing_on", error))
    }

    /// Moves all events from a CPU's ring to the end of `events`, oldest first.
    ///
    /// # Errors
    /// The CPU is not traced, or the kernel refuses to read.
    pub fn drain(&mut self, cpu: u32, events: &mut Vec<Event>) -> Result<Drained, TraceError> {
        let ring = self.rings.iter_mut().find(|ring| ring.progress.cpu == cpu).ok_or(TraceError::NoCpu { cpu })?;
        ring.drain(&mut self.page, &self.layout, &mut self.decoder, events)
    }

    /// Also traces these threads, if only some threads are traced.
    ///
    /// # Errors
    /// The kernel refuses it.
    pub fn follow(&self, thread_ids: &[u32]) -> Result<(), TraceError> {
        follow(&self.folder, thread_ids)
    }

    /// Also traces these marks in a file.
    ///
    /// # Errors
    /// The kernel cannot place probes in programs, or refuses one.
    pub fn add_marks(&mut self, file: &Path, marks: &[Mark]) -> Result<(), TraceError> {
        for mark in marks {
            let (group, name) = self.marks.add(file, mark)?;
            enable_mark(&self.folder, group, name, &mut self.decoder)?;
        }
        Ok(())
    }

    /// Traces only the page faults and wake-ups of these threads: those of other threads fill the rings and explain
    /// nothing.
    ///
    /// # Errors
    /// The kernel refuses a filter.
    pub fn filter_by_threads(&self, thread_ids: &[u32]) -> Result<(), TraceError> {
        self.filter_page_faults(thread_ids)?;
        filter(&self.folder, &self.events, "sched:sched_waking", "pid", thread_ids)
    }

    /// Traces only the page faults of these threads.
    ///
    /// # Errors
    /// The kernel refuses a filter.
    pub fn filter_page_faults(&self, thread_ids: &[u32]) -> Result<(), TraceError> {
        filter(&self.folder, &self.events, "exceptions:", "common_pid", thread_ids)
    }

    /// The names in the drained events.
    #[must_use]
    pub fn names(&self) -> &Names {
        self.decoder.names()
    }

    /// Name of the kernel function at an address; `None` if the kernel hides addresses.
    #[must_use]
    pub fn symbol(&self, address: u64) -> Option<String> {
        KernelSymbols::lock().name(address).map(str::to_owned)
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // If the folder cannot be removed, at least it causes no more overhead.
        let _ = self.set_on(false);
        KernelSymbols::save();
    }
}

/// The page layout of this instance. Older kernels have one description for all instances.
fn page_layout(folder: &Folder) -> Result<PageLayout, TraceError> {
    let text = folder.files.read("events/header_page").or_else(|_| folder.tracefs.read("events/header_page"))?;
    PageLayout::parse(&text).ok_or_else(|| TraceError::Format { part: "events/header_page".to_owned() })
}
