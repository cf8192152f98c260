//! Probes of the kernel at instructions of programs (uprobes).

use std::{collections::BTreeMap, io, path::Path};

use record::PutBack;

use super::{
    error::TraceError,
    folder::{Owner, namespace, start_time},
    tracefs::Tracefs,
};
use crate::marks::Mark;

const FILE: &str = "uprobe_events";
const PREFIX: &str = "punctual_";

/// The probes of one trace, removed when dropped. The trace must not use them any more then.
#[derive(Debug)]
pub(crate) struct Uprobes {
    tracefs: Tracefs,
    /// The system of their events. It contains process id and start time of this process.
    group: String,
    names: Vec<String>,
}

impl Uprobes {
    /// Prepares probes for the trace with this number.
    pub fn new(tracefs: &Tracefs, number: u32) -> Self {
        let pid = std::process::id();
        let started = start_time(pid).unwrap_or_default();
        let namespace = namespace().map_or_else(String::new, |id| format!("_{id}"));
        let group = format!("{PREFIX}{pid}_{started}_{number}{namespace}");
        Self { tracefs: tracefs.clone(), group, names: Vec::new() }
    }

    /// Adds a probe at a mark in a file; returns the system and the name of its event.
    pub fn add(&mut self, file: &Path, mark: &Mark) -> Result<(&str, &str), TraceError> {
        let event = if mark.begins { "cycle_begin" } else { "cycle_end" };
        let (group, name) = (&self.group, format!("{event}_{}", self.names.len()));
        let semaphore = mark.semaphore.map_or_else(String::new, |offset| format!("({offset:#x})"));
        let probe = format!("p:{group}/{name} {}:{:#x}{semaphore}", file.display(), mark.offset);
        self.tracefs.write(FILE, &probe)?;
        self.names.push(name);
        Ok((group, &self.names[self.names.len() - 1]))
    }
}

impl Drop for Uprobes {
    fn drop(&mut self) {
        for name in &self.names {
            // If the kernel refuses it, a later run removes the probe.
            let _ = remove(&self.tracefs, &self.group, name);
        }
    }
}

fn remove(tracefs: &Tracefs, group: &str, name: &str) -> io::Result<()> {
    tracefs.try_write(FILE, &format!("-:{group}/{name}"))
}

/// Removes the probes of earlier runs if their process has ended, and counts them in the entry of that process.
pub(crate) fn remove_leftovers(tracefs: &Tracefs, restored: &mut BTreeMap<u32, PutBack>) {
    for group in tracefs.list("events") {
        let Some(owner) = group.strip_prefix(PREFIX).and_then(|rest| Owner::parse(rest.split('_'))) else { continue };
        if owner.may_run() {
            continue;
        }
        let put_back = restored.entry(owner.process).or_default();
        let names = tracefs.list(format!("events/{group}"));
        for name in names.iter().filter(|name| name.starts_with("cycle_")) {
            match remove(tracefs, &group, name) {
                Ok(()) => put_back.probes += 1,
                // Another process has removed it.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => put_back.failed.push(format!("the trace probe {group}/{name}: {error}")),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn adds_a_probe_by_file_and_offset() {
        let copy = tempfile::tempdir().unwrap();
        let written = || fs::read_to_string(copy.path().join(FILE)).unwrap();
        fs::write(copy.path().join(FILE), "").unwrap();
        let mut probes = Uprobes::new(&Tracefs::at(copy.path()), 7);
        let group = probes.group.clone();
        let file = Path::new("/proc/7/map_files/1000-2000");
        let mark = Mark { begins: true, offset: 0x1160, semaphore: None };
        assert_eq!(probes.add(file, &mark).unwrap().1, "cycle_begin_0");
        assert_eq!(written(), format!("p:{group}/cycle_begin_0 /proc/7/map_files/1000-2000:0x1160"));
        let mark = Mark { begins: false, offset: 0x20, semaphore: Some(0x30) };
        fs::write(copy.path().join(FILE), "").unwrap();
        assert_eq!(probes.add(file, &mark).unwrap().1, "cycle_end_1");
        assert_eq!(written(), format!("p:{group}/cycle_end_1 /proc/7/map_files/1000-2000:0x20(0x30)"));
        let owner = Owner::parse(group.strip_prefix(PREFIX).unwrap().split('_')).unwrap();
        assert!(owner.may_run() && owner.process == std::process::id());
    }

    #[test]
    fn removes_only_probes_of_ended_processes() {
        let copy = tempfile::tempdir().unwrap();
        let own = start_time(std::process::id()).unwrap();
        let alive = format!("punctual_{}_{own}_0", std::process::id());
        for name in [&format!("{alive}/cycle_end_0"), "punctual_0_1_0/cycle_begin_3", "punctual/cycle_begin_3", "sched"]
        {
            fs::create_dir_all(copy.path().join("events").join(name)).unwrap();
        }
        fs::write(copy.path().join(FILE), "").unwrap();
        let mut removed = BTreeMap::new();
        remove_leftovers(&Tracefs::at(copy.path()), &mut removed);
        assert_eq!(removed.iter().map(|(&pid, back)| (pid, back.probes)).collect::<Vec<_>>(), [(0, 1)]);
        assert_eq!(fs::read_to_string(copy.path().join(FILE)).unwrap(), "-:punctual_0_1_0/cycle_begin_3");
    }
}
