//! The folder of an instance: made, removed, and cleaned up after runs that could not.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU32, Ordering},
    thread,
    time::Duration,
};

use rustix::io::Errno;

use super::{error::TraceError, tracefs::Tracefs};

/// An instance's folder, removed when dropped.
#[derive(Debug)]
pub(crate) struct Folder {
    /// The whole that it is part of.
    pub tracefs: Tracefs,
    /// Itself: it has the same files as the whole.
    pub at: Tracefs,
    pub path: PathBuf,
}

const PREFIX: &str = "punctual-";

/// Instances of this process so far; each has a name of its own.
static CREATED: AtomicU32 = AtomicU32::new(0);

impl Folder {
    /// Makes `instances/punctual-PID-STARTTIME-NUMBER`.
    pub(crate) fn create(tracefs: &Tracefs) -> Result<Self, TraceError> {
        let pid = std::process::id();
        let started = start_time(pid).ok_or_else(|| TraceError::Missing { what: "/proc/self/stat".to_owned() })?;
        let number = CREATED.fetch_add(1, Ordering::Relaxed);
        let path = tracefs.path(format!("instances/{PREFIX}{pid}-{started}-{number}"));
        fs::create_dir(&path).map_err(|error| TraceError::of("instances", error))?;
        Ok(Self { tracefs: tracefs.clone(), at: Tracefs::at(&path), path })
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Someone may still have a part of it open; a later run removes what stays then.
        let _ = remove(&self.path);
    }
}

/// The kernel refuses to remove an instance while anyone has a file of it open.
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

/// Removes the instances of earlier runs that could not do it themselves; those of living processes stay.
/// How many were removed.
pub fn remove_leftovers(tracefs: &Tracefs) -> usize {
    let names = tracefs.list("instances");
    let left = names.iter().filter(|name| owner(name).is_some_and(|(pid, started)| start_time(pid) != Some(started)));
    left.filter(|name| remove(&tracefs.path(format!("instances/{name}"))).is_ok()).count()
}

/// Process and its start time in the name of an instance of ours.
fn owner(name: &str) -> Option<(u32, u64)> {
    let mut parts = name.strip_prefix(PREFIX)?.split('-');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

/// When a process started, in clock ticks since boot; with it, a process id that is used again can be told apart.
fn start_time(pid: u32) -> Option<u64> {
    start_time_in(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// The command's name, in brackets, may hold anything. A zombie has ended, whether its parent looks or not.
fn start_time_in(stat: &str) -> Option<u64> {
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    let state = fields.next()?;
    if matches!(state, "Z" | "X") { None } else { fields.nth(18)?.parse().ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instance_names_its_process_and_when_that_began() {
        assert_eq!(owner("punctual-4711-1295680-0"), Some((4711, 1_295_680)));
        assert_eq!(owner("punctual-4711"), None);
        assert_eq!(owner("someone-4711-1295680"), None);
    }

    #[test]
    fn brackets_in_a_command_do_no_harm() {
        let fields: Vec<String> = (3..=52).map(|number: u32| number.to_string()).collect();
        assert_eq!(start_time_in(&format!("4711 (a) b) {}", fields.join(" "))), Some(22));
        assert_eq!(start_time_in(&format!("4711 (a) b) Z {}", fields[1..].join(" "))), None);
        assert!(start_time(std::process::id()).is_some());
    }

    #[test]
    fn only_instances_of_the_dead_are_removed() {
        let copy = tempfile::tempdir().unwrap();
        let tracefs = Tracefs::at(copy.path());
        let own = start_time(std::process::id()).unwrap();
        let alive = format!("punctual-{}-{own}-7", std::process::id());
        let reused = format!("punctual-{}-{}-0", std::process::id(), own + 1);
        for name in [alive.as_str(), reused.as_str(), "punctual-0-1-0", "others"] {
            fs::create_dir_all(copy.path().join("instances").join(name)).unwrap();
        }
        assert_eq!(remove_leftovers(&tracefs), 2);
        assert_eq!(tracefs.list("instances"), ["others", alive.as_str()]);
    }
}
