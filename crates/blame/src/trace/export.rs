//! Writes a frozen instance to a trace file.

use std::{collections::BTreeMap, path::Path};

use super::{
    dat::{Contents, DatError},
    error::TraceError,
    instance::Instance,
    ring::Drained,
    symbols::KernelSymbols,
};
use crate::event::{Comm, Event, EventKind, Task};

impl Instance {
    /// Keeps the pages that are drained from now on, up to the size of the ring, so that [`write_dat`](Self::write_dat)
    /// can write them.
    pub fn keep_drained(&mut self) {
        self.rings.iter_mut().for_each(|ring| ring.kept = Some(Default::default()));
    }

    /// Writes the kept pages and the content of the rings to a trace file for trace-cmd and KernelShark, and empties
    /// the rings. Freeze the trace first, so that all CPUs end at the same time.
    ///
    /// # Errors
    /// The rings cannot be read, or the file cannot be written.
    pub fn write_dat(&mut self, path: &Path) -> Result<(), DatError> {
        let contents = self.contents()?;
        contents.write(path).map_err(|source| DatError::Unwritable { path: path.to_owned(), source })
    }

    fn contents(&mut self) -> Result<Contents, TraceError> {
        let mut events = Vec::new();
        let pages = self.take_pages(&mut events)?;
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
        Ok(Contents {
            page_size,
            header_page: own_or_all("events/header_page")?,
            header_event: own_or_all("events/header_event")?,
            ftrace_formats: formats("ftrace", &mut self.folder.files.list("events/ftrace").iter().map(String::as_str))?,
            formats: by_system
                .into_iter()
                .map(|(system, names)| Ok((system.to_owned(), formats(system, &mut names.into_iter())?)))
                .collect::<Result<_, TraceError>>()?,
            kallsyms: KernelSymbols::lock().text().to_owned(),
            printk_formats: all.read("printk_formats").unwrap_or_default(),
            threads: threads(&events),
            clocks: self.folder.files.read("trace_clock")?,
            uname: uname(),
            pages,
        })
    }

    /// Moves all kept pages and those in the rings to the result, by CPU, and decodes their events.
    fn take_pages(&mut self, events: &mut Vec<Event>) -> Result<BTreeMap<u32, Vec<u8>>, TraceError> {
        let mut pages = BTreeMap::new();
        let layout = self.layout;
        for ring in &mut self.rings {
            let mut taken: Vec<u8> = ring.kept.take().into_iter().flatten().flatten().collect();
            while let Some(page) = ring.next_page(&mut self.page)? {
                taken.extend_from_slice(page);
                taken.resize(taken.len().next_multiple_of(layout.size), 0);
            }
            for page in taken.chunks(layout.size) {
                ring.progress.read(page, &layout, &mut self.decoder, events, &mut Drained::default());
            }
            pages.insert(ring.progress.cpu, taken);
        }
        Ok(pages)
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
