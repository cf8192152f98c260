//! The folder of a trace instance, and the removal of folders that crashed runs left.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU32, Ordering},
    thread,
    time::Duration,
};

use machine::{Root, pid_namespace};
use record::PutBack;
use rustix::io::Errno;

use super::{error::TraceError, tracefs::Tracefs, uprobes};

/// An instance's folder, removed when dropped.
#[derive(Debug)]
pub(crate) struct Folder {
    /// The tracefs that contains the folder.
    pub tracefs: Tracefs,
    /// The folder, which has the same files as a tracefs.
    pub files: Tracefs,
    pub path: PathBuf,
    /// Its number among those of this process.
    pub number: u32,
}

const PREFIX: &str = "punctual-";

/// Number of instances created by this process, to give each its own name.
static CREATED: AtomicU32 = AtomicU32::new(0);

impl Folder {
    /// Creates `instances/punctual-PID-STARTTIME-NUMBER-NAMESPACE`.
    pub(crate) fn create(tracefs: &Tracefs) -> Result<Self, TraceError> {
        let pid = std::process::id();
        let started = start_time(pid).ok_or_else(|| TraceError::Missing { part: "/proc/self/stat".to_owned() })?;
        let number = CREATED.fetch_add(1, Ordering::Relaxed);
        let namespace = namespace().map_or_else(String::new, |id| format!("-{id}"));
        let path = tracefs.path(format!("instances/{PREFIX}{pid}-{started}-{number}{namespace}"));
        fs::create_dir(&path).map_err(|error| TraceError::of("instances", error))?;
        Ok(Self { tracefs: tracefs.clone(), files: Tracefs::at(&path), path, number })
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // If a file in it is still open, a later run removes the folder.
        let _ = remove(&self.path);
    }
}

/// Retries, because the kernel refuses to remove an instance while a file in it is open.
fn remove(path: &Path) -> io::Result<()> {
    const TRIES: u32 = 50;
    for _ in 1..TRIES {
        match fs::remove_dir(path) {
            Err(error) if Errno::from_io_error(&error) == Some(Errno::BUSY) => thread::sleep(Duration::from_millis(4)),
            done => return done,
        }
    }
    fs::remove_dir(path)
}

/// Removes the instances and probes of earlier runs whose process has ended. Returns the removed ones of each process, and the
/// refusals of the kernel.
///
/// Those of a run in another namespace of process ids are left alone, because it may still run.
pub fn remove_leftovers(tracefs: &Tracefs) -> BTreeMap<u32, PutBack> {
    let mut restored: BTreeMap<u32, PutBack> = BTreeMap::new();
    if !pid_namespace::is_that_of_proc(&Root::system()) {
        return restored;
    }
    for name in tracefs.list("instances") {
        let Some(owner) = name.strip_prefix(PREFIX).and_then(|rest| Owner::parse(rest.split('-'))) else { continue };
        if owner.may_run() {
            continue;
        }
        let put_back = restored.entry(owner.process).or_default();
        match remove(&tracefs.path(format!("instances/{name}"))) {
            Ok(()) => put_back.traces += 1,
            // Another process has removed it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => put_back.failed.push(format!("the trace instance {name}: {error}")),
        }
    }
    uprobes::remove_leftovers(tracefs, &mut restored);
    restored
}

/// The process in the name of an instance or of a group of probes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Owner {
    pub process: u32,
    started: u64,
    /// Its namespace of process ids; versions before 0.3 did not write it.
    namespace: Option<u64>,
}

impl Owner {
    /// Parses process id, start time, number and namespace.
    pub(super) fn parse<'a>(mut parts: impl Iterator<Item = &'a str>) -> Option<Self> {
        let (process, started) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        Some(Self { process, started, namespace: parts.nth(1).and_then(|id| id.parse().ok()) })
    }

    /// True if the process still runs, or if that is unknown, because it is in another namespace.
    pub(super) fn may_run(&self) -> bool {
        let is_here = self.namespace.is_none() || self.namespace == namespace();
        !is_here || start_time(self.process) == Some(self.started)
    }
}

/// The namespace of process ids of this process.
pub(super) fn namespace() -> Option<u64> {
    pid_namespace::own(&Root::system())
}

/// Start time of a process. It distinguishes processes that had the same id.
pub(super) fn start_time(pid: u32) -> Option<u64> {
    machine::start_ticks(&Root::system(), &pid.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_process_and_start_time_of_an_instance() {
        let owner =
            |rest: &str| Owner::parse(rest.split('-')).map(|owner| (owner.process, owner.started, owner.namespace));
        assert_eq!(owner("4711-1295680-0"), Some((4711, 1_295_680, None)));
        assert_eq!(owner("4711-1295680-0-17"), Some((4711, 1_295_680, Some(17))));
        assert_eq!(owner("4711"), None);
        let elsewhere = Owner { process: u32::MAX, started: 1, namespace: Some(17) };
        assert!(elsewhere.may_run() && !Owner { namespace: namespace(), ..elsewhere }.may_run());
    }

    #[test]
    fn removes_only_instances_of_ended_processes() {
        let copy = tempfile::tempdir().unwrap();
        let tracefs = Tracefs::at(copy.path());
        let own = start_time(std::process::id()).unwrap();
        let alive = format!("punctual-{}-{own}-7", std::process::id());
        let reused = format!("punctual-{}-{}-0", std::process::id(), own + 1);
        for name in [alive.as_str(), reused.as_str(), "punctual-0-1-0", "others"] {
            fs::create_dir_all(copy.path().join("instances").join(name)).unwrap();
        }
        let removed: Vec<(u32, u32)> =
            remove_leftovers(&tracefs).iter().map(|(&pid, back)| (pid, back.traces)).collect();
        assert_eq!(removed, [(0, 1), (std::process::id(), 1)]);
        assert_eq!(tracefs.list("instances"), ["others", alive.as_str()]);
    }
}
