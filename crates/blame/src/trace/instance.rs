//! A private instance of the kernel's trace: rings of its own, and nothing of the global trace touched.
//!
//! | module | holds |
//! |---|---|
//! | `settings` | which CPUs are traced, in rings of which size |
//! | `events` | what is traced, and of which threads |
//! | `per_cpu` | the ring of one CPU |

mod events;
mod per_cpu;
mod settings;

use std::{fs::File, os::unix::fs::FileExt, path::Path};

use sys::clock::Clock;

pub use self::settings::Settings;
use self::{
    events::{enable_events, follow, run_timerlat},
    per_cpu::Ring,
    settings::{set_up, traced_cpus},
};
use super::{
    decode::{Decoder, Kernel},
    error::TraceError,
    folder::Folder,
    format::PageLayout,
    ring::Drained,
    symbols::{Symbols, strings},
    tracefs::Tracefs,
    wanted::{OF_THREADS, WANTED},
};
use crate::event::{Event, Names};

/// A private instance of the kernel's trace, gone when this is dropped. Each CPU's ring overwrites its oldest events.
#[derive(Debug)]
pub struct Instance {
    // The descriptors in here are closed before the folder is removed, which comes last.
    pub(super) rings: Vec<Ring>,
    switch: File,
    pub(super) events: Vec<String>,
    pub(super) decoder: Decoder,
    pub(super) layout: PageLayout,
    pub(super) page: Vec<u8>,
    /// Since when it is off, ns.
    off_since_ns: Option<u64>,
    pub(super) folder: Folder,
}

impl Instance {
    /// Creates an instance; it traces from now on.
    ///
    /// # Errors
    /// The kernel refuses it, has no such CPU, or has not enough memory. Nothing stays behind then.
    pub fn create(tracefs: &Tracefs, settings: &Settings<'_>) -> Result<Self, TraceError> {
        let wanted = WANTED.iter().filter(|wanted| settings.deep || !wanted.deep);
        Self::tracing(tracefs, settings, |folder, decoder| enable_events(folder, wanted, decoder))
    }

    /// Creates an instance that traces what these threads are at, and those that they make, and nothing else.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub fn of_threads(tracefs: &Tracefs, settings: &Settings<'_>, thread_ids: &[u32]) -> Result<Self, TraceError> {
        Self::tracing(tracefs, settings, |folder, decoder| {
            folder.at.write("options/event-fork", "1")?;
            follow(folder, thread_ids)?;
            enable_events(folder, OF_THREADS.iter(), decoder)
        })
    }

    /// Creates an instance that runs the kernel's timerlat tracer, and traces what that tells and nothing else.
    ///
    /// # Errors
    /// As [`create`](Self::create); [`TraceError::Busy`] where the kernel's osnoise tracer runs.
    pub fn of_timerlat(tracefs: &Tracefs, settings: &Settings<'_>) -> Result<Self, TraceError> {
        Self::tracing(tracefs, settings, run_timerlat)
    }

    fn tracing(
        tracefs: &Tracefs,
        settings: &Settings<'_>,
        turn_on: impl FnOnce(&Folder, &mut Decoder) -> Result<Vec<String>, TraceError>,
    ) -> Result<Self, TraceError> {
        let folder = Folder::create(tracefs)?;
        let cpus = traced_cpus(&folder, settings)?;
        set_up(&folder, settings, &cpus)?;
        let layout = page_layout(&folder)?;
        let code_start = if settings.deep { Symbols::of_this_kernel().code_start() } else { 0 };
        let strings = strings(&tracefs.read("printk_formats").unwrap_or_default());
        let mut decoder = Decoder::new(Kernel { code_start, strings });
        let events = turn_on(&folder, &mut decoder)?;
        let pages = |cpu| (settings.kb_of(cpu) as usize * 1024).div_ceil(layout.size).max(2);
        let rings = cpus.iter().map(|&cpu| Ring::open(&folder, cpu, pages(cpu))).collect::<Result<_, _>>()?;
        let switch = folder.at.open_for_writing("tracing_on").map_err(|error| TraceError::of("tracing_on", error))?;
        let page = vec![0; layout.size];
        let off_since_ns = Some(0);
        let mut instance = Self { rings, switch, events, decoder, layout, page, off_since_ns, folder };
        instance.set_on(true)?;
        Ok(instance)
    }

    /// Where its files are.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.folder.path
    }

    /// The events that are traced, as `system:name`.
    #[must_use]
    pub fn events_on(&self) -> &[String] {
        &self.events
    }

    /// The CPUs that are traced, in ascending order.
    pub fn cpus(&self) -> impl ExactSizeIterator<Item = u32> + '_ {
        self.rings.iter().map(|ring| ring.progress.cpu)
    }

    /// Turns the trace on or off. What was traced stays in the rings.
    ///
    /// # Errors
    /// The kernel refuses it.
    pub fn set_on(&mut self, on: bool) -> Result<(), TraceError> {
        let refused = |error| TraceError::of("tracing_on", error);
        let off_ns = now_ns();
        self.switch.write_all_at(if on { b"1" } else { b"0" }, 0).map_err(refused)?;
        match (on, self.off_since_ns) {
            (true, Some(from_ns)) => {
                let to_ns = now_ns();
                self.rings.iter_mut().for_each(|ring| ring.was_off(from_ns, to_ns));
                self.off_since_ns = None;
            }
            (false, None) => self.off_since_ns = Some(off_ns),
            _ => {}
        }
        Ok(())
    }

    /// Another handle on the switch, to freeze the trace from any thread: write `0`. Without [`set_on`](Self::set_on),
    /// nothing here tells how long the trace was off. The instance cannot be removed before the handle is dropped.
    ///
    /// # Errors
    /// No more descriptors.
    pub fn switch(&self) -> Result<File, TraceError> {
        self.switch.try_clone().map_err(|error| TraceError::of("tracing_on", error))
    }

    /// Takes everything out of a CPU's ring that is there now, oldest first, and appends it to `events`.
    ///
    /// # Errors
    /// The CPU is not traced, or the kernel refuses to read.
    pub fn drain(&mut self, cpu: u32, events: &mut Vec<Event>) -> Result<Drained, TraceError> {
        let ring = self.rings.iter_mut().find(|ring| ring.progress.cpu == cpu).ok_or(TraceError::NoCpu { cpu })?;
        ring.drain(&mut self.page, &self.layout, &mut self.decoder, events)
    }

    /// The names in the events that this drained.
    #[must_use]
    pub fn names(&self) -> &Names {
        self.decoder.names()
    }

    /// Name of the kernel's function at an address; `None` where the kernel hides it.
    #[must_use]
    pub fn symbol(&self, address: u64) -> Option<&str> {
        Symbols::of_this_kernel().name(address)
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // Removed or not, it costs nothing from now on.
        let _ = self.set_on(false);
    }
}

/// The layout of this instance's pages; older kernels describe it for all instances together.
fn page_layout(folder: &Folder) -> Result<PageLayout, TraceError> {
    let text = folder.at.read("events/header_page").or_else(|_| folder.tracefs.read("events/header_page"))?;
    PageLayout::parse(&text).ok_or_else(|| TraceError::Format { what: "events/header_page".to_owned() })
}

fn now_ns() -> u64 {
    Clock::Monotonic.now_ns().unsigned_abs()
}
