//! A private instance of the kernel's trace: rings of its own, and nothing of the global trace touched.

use std::{
    collections::VecDeque,
    fs::{File, OpenOptions},
    io::{ErrorKind, Read},
    mem,
    os::unix::fs::{FileExt, OpenOptionsExt},
    path::Path,
};

use machine::{CpuList, Root};
use rustix::{fs::OFlags, io::Errno};
use sys::clock::Clock;

use super::{
    decode::{Decoder, Kernel},
    error::TraceError,
    folder::Folder,
    format::{Format, PageLayout},
    ring::{Drained, Gap, Progress},
    symbols::{Symbols, strings},
    tracefs::Tracefs,
    wanted::{OF_THREADS, WANTED, Wanted},
};
use crate::event::{Event, Names};

/// What to trace.
#[derive(Debug, Clone, Copy, Default)]
pub struct Settings<'a> {
    /// The CPUs; none stands for all.
    pub cpus: &'a [u32],
    /// Also every section that turns interrupts or preemption off, where the kernel tells them.
    pub deep: bool,
    /// Size of the ring of each of these CPUs, KB; at least two pages are used.
    pub buffer_kb_per_cpu: u32,
    /// Size of the ring of each other CPU, KB; 0 to leave them untraced.
    pub others_kb_per_cpu: u32,
}

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

impl Settings<'_> {
    /// Size of a CPU's ring, KB; 0 when it is not traced.
    fn kb_of(&self, cpu: u32) -> u32 {
        let asked = self.cpus.is_empty() || self.cpus.contains(&cpu);
        if asked { self.buffer_kb_per_cpu } else { self.others_kb_per_cpu }
    }
}

/// The ring of one CPU.
#[derive(Debug)]
pub(super) struct Ring {
    pages: File,
    stats: File,
    pub(super) progress: Progress,
    /// A time in which nothing was traced, not yet told.
    untold: Option<Gap>,
    /// Drained pages that are kept for a file.
    pub(super) kept: Option<VecDeque<Box<[u8]>>>,
    /// Pages of the ring.
    size: usize,
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

    /// Traces these threads too, where it traces some alone.
    ///
    /// # Errors
    /// The kernel refuses it.
    pub fn follow(&self, thread_ids: &[u32]) -> Result<(), TraceError> {
        follow(&self.folder, thread_ids)
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

    /// Traces the page faults and wake-ups of these threads alone: those of others say nothing, and fill the rings.
    ///
    /// # Errors
    /// The kernel refuses a filter.
    pub fn only_of(&self, thread_ids: &[u32]) -> Result<(), TraceError> {
        self.only_faults_of(thread_ids)?;
        self.filter("sched:sched_waking", "pid", thread_ids)
    }

    /// Traces the page faults of these threads alone.
    ///
    /// # Errors
    /// The kernel refuses a filter.
    pub fn only_faults_of(&self, thread_ids: &[u32]) -> Result<(), TraceError> {
        self.filter("exceptions:", "common_pid", thread_ids)
    }

    /// Filters events whose names begin like this: one of their fields must be one of these numbers.
    fn filter(&self, events: &str, field: &str, numbers: &[u32]) -> Result<(), TraceError> {
        let terms: Vec<String> = numbers.iter().map(|number| format!("{field} == {number}")).collect();
        self.events.iter().filter(|event| event.starts_with(events)).try_for_each(|event| {
            self.folder.at.write(format!("events/{}/filter", event.replace(':', "/")), &terms.join(" || "))
        })
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
        let mut drained = Drained { lost_events: 0, gaps: ring.untold.take().into_iter().collect() };
        // What is written meanwhile is left for the next time: a CPU may be faster than we are.
        let until_ns = now_ns();
        while ring.progress.read_to_ns < until_ns {
            let Some(page) = ring.next_page(&mut self.page)? else { break };
            ring.progress.read(page, &self.layout, &mut self.decoder, events, &mut drained);
            if let Some(kept) = &mut ring.kept {
                kept.drain(..(kept.len() + 1).saturating_sub(ring.size));
                kept.push_back(self.page.as_slice().into());
            }
        }
        if mem::take(&mut ring.progress.uncounted) {
            ring.count_losses(&mut drained);
        }
        Ok(drained)
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

impl Ring {
    fn open(folder: &Folder, cpu: u32, size: usize) -> Result<Self, TraceError> {
        let open = |name: &str| {
            let part = format!("per_cpu/cpu{cpu}/{name}");
            let flags = OFlags::NONBLOCK.bits() as i32;
            let file = OpenOptions::new().read(true).custom_flags(flags).open(folder.at.path(&part));
            file.map_err(|error| TraceError::of(part, error))
        };
        let (pages, stats) = (open("trace_pipe_raw")?, open("stats")?);
        Ok(Self { pages, stats, progress: Progress::new(cpu), untold: None, kept: None, size })
    }

    /// The next page, or what of it is written; `None` when the ring is empty.
    pub(super) fn next_page<'a>(&mut self, page: &'a mut [u8]) -> Result<Option<&'a [u8]>, TraceError> {
        loop {
            match self.pages.read(page) {
                Ok(0) => return Ok(None),
                Ok(length) => return Ok(Some(&page[..length])),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(TraceError::of("trace_pipe_raw", error)),
            }
        }
    }

    /// Where pages tell losses without their number, the kernel's own sum tells it.
    fn count_losses(&mut self, drained: &mut Drained) {
        let more = self.overwritten().saturating_sub(self.progress.lost);
        self.progress.lost += more;
        drained.lost_events += more;
        if let Some(last) = drained.gaps.last_mut() {
            last.lost += more;
        }
    }

    /// All events that the kernel overwrote in this ring.
    fn overwritten(&self) -> u64 {
        let mut text = [0; 1024];
        let length = self.stats.read_at(&mut text, 0).unwrap_or(0);
        let text = String::from_utf8_lossy(&text[..length]);
        let count = |key| text.lines().find_map(|line| line.strip_prefix(key)?.trim().parse::<u64>().ok());
        ["overrun:", "commit overrun:", "dropped events:"].into_iter().filter_map(count).sum()
    }

    fn was_off(&mut self, from_ns: u64, to_ns: u64) {
        let from_ns = self.untold.map_or(from_ns, |gap| gap.from_ns);
        self.untold = Some(Gap { from_ns, to_ns, lost: 0 });
    }
}

/// The CPUs that are to have a ring, sorted; those that are asked for must be online.
fn traced_cpus(folder: &Folder, settings: &Settings<'_>) -> Result<Vec<u32>, TraceError> {
    // There is a folder for every CPU that could ever be plugged in.
    let online = Root::system().read("sys/devices/system/cpu/online").and_then(|list| list.parse::<CpuList>().ok());
    let names = folder.at.list("per_cpu");
    let mut there: Vec<u32> = names.iter().filter_map(|name| name.strip_prefix("cpu")?.parse().ok()).collect();
    there.retain(|&cpu| online.as_ref().is_none_or(|online| online.contains(cpu)));
    there.sort_unstable();
    if settings.cpus.is_empty() {
        return Ok(there);
    }
    if let Some(&cpu) = settings.cpus.iter().find(|cpu| there.binary_search(cpu).is_err()) {
        return Err(TraceError::NoCpu { cpu });
    }
    there.retain(|&cpu| settings.kb_of(cpu) > 0);
    Ok(there)
}

/// Everything but the events, while the trace is off.
fn set_up(folder: &Folder, settings: &Settings<'_>, cpus: &[u32]) -> Result<(), TraceError> {
    let at = &folder.at;
    at.write("tracing_on", "0")?;
    at.write("trace_clock", "mono")?;
    at.write("options/overwrite", "1")?;
    let resize = |part: &str, kb: u32| {
        at.try_write(part, &kb.to_string()).map_err(|error| match Errno::from_io_error(&error) {
            Some(Errno::NOMEM) => TraceError::NoMemory { kb_per_cpu: kb },
            _ => TraceError::of(part, error),
        })
    };
    if settings.cpus.is_empty() {
        return resize("buffer_size_kb", settings.buffer_kb_per_cpu);
    }
    at.write("tracing_cpumask", &mask(cpus))?;
    resize("buffer_size_kb", 1)?;
    cpus.iter().try_for_each(|&cpu| resize(&format!("per_cpu/cpu{cpu}/buffer_size_kb"), settings.kb_of(cpu)))
}

/// CPUs as the kernel writes a mask: 32 bits a group, the highest first.
fn mask(cpus: &[u32]) -> String {
    let highest = cpus.iter().max().map_or(0, |cpu| cpu / 32);
    let group =
        |group: u32| cpus.iter().filter(|&cpu| cpu / 32 == group).fold(0_u32, |bits, cpu| bits | 1 << (cpu % 32));
    (0..=highest).rev().map(|index| format!("{:08x}", group(index))).collect::<Vec<_>>().join(",")
}

/// The layout of this instance's pages; older kernels describe it for all instances together.
fn page_layout(folder: &Folder) -> Result<PageLayout, TraceError> {
    let text = folder.at.read("events/header_page").or_else(|_| folder.tracefs.read("events/header_page"))?;
    PageLayout::parse(&text).ok_or_else(|| TraceError::Format { what: "events/header_page".to_owned() })
}

/// Adds threads to those that events are traced of. To truncate the file, as opening it for writing usually does, would
/// forget the others.
fn follow(folder: &Folder, thread_ids: &[u32]) -> Result<(), TraceError> {
    // The kernel takes a page at a time, and cuts a number at its end in two.
    thread_ids.chunks(256).try_for_each(|ids| {
        let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
        folder.at.write("set_event_pid", &ids.join(" "))
    })
}

/// Turns on what is wanted and there; the decoder learns it.
fn enable_events<'a>(
    folder: &Folder,
    wanted: impl Iterator<Item = &'a Wanted>,
    decoder: &mut Decoder,
) -> Result<Vec<String>, TraceError> {
    let mut on = Vec::new();
    for wanted in wanted {
        let existing = folder.at.list(Path::new("events").join(wanted.system));
        for name in wanted.names(&existing) {
            let part = format!("events/{}/{name}", wanted.system);
            let format = Format::parse(&folder.at.read(format!("{part}/format"))?);
            if format.is_some_and(|format| decoder.learn(wanted.system, &format)) {
                folder.at.write(format!("{part}/enable"), "1")?;
                on.push(format!("{}:{name}", wanted.system));
            }
        }
    }
    Ok(on)
}

/// Starts the tracer, which the kernel allows only as long as nobody has the rings open. It has no event that could be
/// turned on.
fn run_timerlat(folder: &Folder, decoder: &mut Decoder) -> Result<Vec<String>, TraceError> {
    const FORMAT: &str = "events/ftrace/timerlat/format";
    let text = folder.at.read(FORMAT).or_else(|_| folder.tracefs.read(FORMAT))?;
    if !Format::parse(&text).is_some_and(|format| decoder.learn("ftrace", &format)) {
        return Err(TraceError::Format { what: FORMAT.to_owned() });
    }
    folder.at.write("current_tracer", "timerlat")?;
    Ok(vec!["ftrace:timerlat".to_owned()])
}

fn now_ns() -> u64 {
    Clock::Monotonic.now_ns().unsigned_abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_has_the_highest_cpus_first() {
        assert_eq!(mask(&[0, 3]), "00000009");
        assert_eq!(mask(&[1, 33, 64]), "00000001,00000002,00000002");
    }
}
