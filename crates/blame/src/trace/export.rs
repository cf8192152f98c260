//! Writes the trace of an instance to a file.

use std::{collections::BTreeMap, fs, path::Path};

use super::{
    dat::{DatError, Snapshot},
    error::TraceError,
    instance::Instance,
    ring::{Drained, PageReader},
};
use crate::event::{Comm, Event, EventKind, Task};

impl Instance {
    /// Keeps the pages that are drained from now on, up to the size of the ring, so that they can be written to a file.
    pub fn keep_drained(&mut self) {
        self.rings.iter_mut().for_each(|ring| ring.kept = Some(Default::default()));
    }

    /// Drains the rings, and writes the kept pages to a trace file for trace-cmd and KernelShark. Freeze the trace first,
    /// so that all CPUs end at the same time.
    ///
    /// # Errors
    /// The rings cannot be read, or the file cannot be written.
    pub fn write_dat(&mut self, path: &Path) -> Result<(), DatError> {
        for cpu in self.cpus().collect::<Vec<_>>() {
            self.drain(cpu, &mut Vec::new())?;
        }
        self.snapshot()?.write(path)
    }

    /// Copies the kept pages as the content of a trace file.
    ///
    /// # Errors
    /// The kernel's descriptions of its events cannot be read.
    pub fn snapshot(&mut self) -> Result<Snapshot, TraceError> {
        let (pages, threads) = self.kept_pages();
        let formats = |system: &str, names: &mut dyn Iterator<Item = &str>| -> Result<Vec<String>, TraceError> {
            names.map(|name| self.folder.files.read(format!("events/{system}/{name}/format"))).collect()
        };
        let mut by_system: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (system, name) in self.events.iter().filter_map(|event| event.split_once(':')) {
            by_system.entry(system).or_default().push(name);
        }
        let all = &self.folder.tracefs;
        let too_large = |_| TraceError::Format { part: "events/header_page".to_owned() };
        let page_size = u32::try_from(self.layout.size).map_err(too_large)?;
        let own_or_all = |part: &str| self.folder.files.read(part).or_else(|_| all.read(part));
        Ok(Snapshot {
            page_size,
            header_page: own_or_all("events/header_page")?,
            header_event: own_or_all("events/header_event")?,
            ftrace_formats: formats("ftrace", &mut self.folder.files.list("events/ftrace").iter().map(String::as_str))?,
            formats: by_system
                .into_iter()
                .map(|(system, names)| Ok((system.to_owned(), formats(system, &mut names.into_iter())?)))
                .collect::<Result<_, TraceError>>()?,
            kallsyms: fs::read_to_string("/proc/kallsyms").unwrap_or_default(),
            printk_formats: all.read("printk_formats").unwrap_or_default(),
            threads,
            clocks: self.folder.files.read("trace_clock")?,
            uname: uname(),
            pages,
        })
    }

    /// Copies the kept pages, by CPU, and the names of the threads in their events.
    fn kept_pages(&mut self) -> (BTreeMap<u32, Vec<u8>>, BTreeMap<u32, Comm>) {
        let (mut pages, mut events) = (BTreeMap::new(), Vec::new());
        for ring in &self.rings {
            let kept = || ring.kept.iter().flatten();
            let mut reader = PageReader::new(ring.progress.cpu);
            for page in kept() {
                reader.read(page, &self.layout, &mut self.decoder, &mut events, &mut Drained::default());
            }
            pages.insert(ring.progress.cpu, kept().flatten().copied().collect());
        }
        (pages, threads(&events))
    }
}

/// Names of the threads in the events.
fn threads(events: &[Event]) -> BTreeMap<u32, Comm> {
    let tasks = |event: &Event| match event.kind {
        EventKind::Switch { from, to, .. } => [Some(from), Some(to)],
        EventKind::Waking { task, .. } => [Some(task), None],
        _ => [None, None],
    };
    let named = events.iter().flat_map(tasks).flatten().map(|Task { pid, comm, .. }| (pid, comm));
    // The idle threads of all CPUs have id 0; readers know their name.
    named.filter(|&(pid, _)| pid != 0).collect()
}

/// The output of `uname -snrm`.
fn uname() -> String {
    let uname = rustix::system::uname();
    let parts = [uname.sysname(), uname.nodename(), uname.release(), uname.machine()];
    parts.map(|part| part.to_string_lossy()).join(" ")
}
