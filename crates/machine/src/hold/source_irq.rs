//! Changes the priority of the interrupt threads of a source and the CPU of its interrupts for a phase, and undoes it
//! afterwards, also after a crash.

use std::{io, rc::Rc};

use record::Setting;
use sys::sched::Policy;
use thiserror::Error;

use super::{SettingsWatch, ThreadPolicyError, thread_policies::ThreadPolicies};
use crate::{
    Root, device_irqs,
    journal::{Journal, JournalError, Purpose, Undo},
    nic::{Thread, sees_all_tasks},
    system_ops::SystemOps,
};

/// The requested settings of the interrupts of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct IrqSettings {
    /// Priority of its interrupt threads under SCHED_FIFO, 1 to 99; `None` leaves them as they are.
    pub priority: Option<u8>,
    /// CPU of its interrupts; `None` leaves them as they are.
    pub cpu: Option<u32>,
}

impl IrqSettings {
    /// True if nothing is set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Error: the interrupts of a source could not be set.
#[derive(Debug, Error)]
pub enum SourceIrqError {
    /// Their numbers are not known.
    #[error("the interrupt of {0} is not known: its device has none in sysfs and /proc/irq")]
    Unknown(String),
    /// The kernel has no interrupt threads, and interrupt handlers have no priority.
    #[error(
        "this kernel handles the interrupt of {0} without a thread, so it has no priority: boot with `threadirqs`, or use a PREEMPT_RT kernel"
    )]
    NotThreaded(String),
    /// Kernel threads are not visible.
    #[error("kernel threads are not visible: run as root and outside of a container")]
    Hidden,
    /// A policy could not be changed.
    #[error(transparent)]
    Policy(#[from] ThreadPolicyError),
    /// The journal could not be written.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The kernel refused another CPU.
    #[error("cannot move interrupt {number} to CPU {cpu} ({source}): {remedy}")]
    Cpu {
        /// Number of the interrupt.
        number: u32,
        /// The requested CPU.
        cpu: u32,
        /// The kernel's error.
        source: io::Error,
        /// Advice.
        remedy: &'static str,
    },
}

/// Changed settings, until released or dropped; after SIGKILL the journal undoes them.
#[derive(Debug)]
pub struct SourceIrqHold {
    journal: Journal,
    source: String,
    threads: Option<ThreadPolicies>,
    /// Files with the CPUs of the interrupts, and their contents before.
    files: Vec<(String, String)>,
    cpu: Option<u32>,
}

impl SourceIrqHold {
    /// Changes the settings of these interrupts of a source.
    ///
    /// # Errors
    /// [`SourceIrqError`]; nothing stays changed then.
    pub fn take(root: &Root, source: &str, interrupts: &[u32], settings: IrqSettings) -> Result<Self, SourceIrqError> {
        let ops: Rc<dyn SystemOps> = Rc::new(root.clone());
        Self::take_with(&ops, source, interrupts, settings)
    }

    fn take_with(
        ops: &Rc<dyn SystemOps>,
        source: &str,
        interrupts: &[u32],
        settings: IrqSettings,
    ) -> Result<Self, SourceIrqError> {
        if interrupts.is_empty() {
            return Err(SourceIrqError::Unknown(source.to_owned()));
        }
        let root = ops.root();
        let policies = |priority| -> Result<ThreadPolicies, SourceIrqError> {
            Ok(ThreadPolicies::of(served_by(root, source, interrupts)?, Policy::Fifo(priority))?)
        };
        let threads = settings.priority.map(policies).transpose()?;
        let files = match settings.cpu {
            Some(cpu) => affinities(root, interrupts, cpu)?,
            None => Vec::new(),
        };
        let mut journal = Journal::begin(Rc::clone(ops), Purpose::IrqPriority)?;
        let undo_file = |(path, before): &(String, String)| {
            Some(Undo::File { path: path.clone(), before: before.clone(), during: settings.cpu?.to_string() })
        };
        let of_threads = threads.iter().flat_map(|threads| threads.undo(root));
        journal.record(files.iter().filter_map(undo_file).chain(of_threads).collect::<Vec<_>>())?;
        // Dropped after an error, which undoes the changes.
        let hold = Self { journal, source: source.to_owned(), threads, files, cpu: settings.cpu };
        if let Some(cpu) = settings.cpu {
            hold.move_to(&**ops, cpu)?;
        }
        if let Some(threads) = &hold.threads {
            threads.apply(&**ops)?;
        }
        Ok(hold)
    }

    fn move_to(&self, ops: &dyn SystemOps, cpu: u32) -> Result<(), SourceIrqError> {
        for (path, _) in self.files.iter().filter(|(_, before)| *before != cpu.to_string()) {
            ops.write(path, &cpu.to_string()).map_err(|source| refused(path, cpu, source))?;
        }
        Ok(())
    }

    /// Begins to watch for changes by others.
    #[must_use]
    pub fn watch(&self) -> SettingsWatch {
        SettingsWatch::start(&self.journal)
    }

    /// Undoes all changes. Returns each setting with its values before, during and after.
    #[must_use]
    pub fn release(mut self) -> Vec<Setting> {
        self.journal.restore();
        let ops = self.journal.ops();
        let root = ops.root();
        let of_file = |(path, before): &(String, String)| {
            Some(Setting {
                name: format!("{} /{path}", self.source),
                before: before.clone(),
                during: self.cpu?.to_string(),
                after: root.read(path),
            })
        };
        let of_threads = self.threads.iter().flat_map(|threads| threads.settings(root, &self.source));
        self.files.iter().filter_map(of_file).chain(of_threads).collect()
    }
}

/// The threads of these interrupts; at least one.
fn served_by(root: &Root, source: &str, interrupts: &[u32]) -> Result<Vec<Thread>, SourceIrqError> {
    let threads = device_irqs::threads(root, interrupts);
    match (threads.is_empty(), sees_all_tasks(root)) {
        (false, _) => Ok(threads),
        (true, true) => Err(SourceIrqError::NotThreaded(source.to_owned())),
        (true, false) => Err(SourceIrqError::Hidden),
    }
}

/// The files with the CPUs of these interrupts, and their contents.
fn affinities(root: &Root, interrupts: &[u32], cpu: u32) -> Result<Vec<(String, String)>, SourceIrqError> {
    let file = |number: &u32| {
        let path = format!("proc/irq/{number}/smp_affinity_list");
        match root.try_read(&path) {
            Ok(before) => Ok((path, before)),
            Err(error) => Err(refused(&path, cpu, io::Error::other(error))),
        }
    };
    interrupts.iter().map(file).collect()
}

/// The error for the file of an interrupt that cannot be moved.
fn refused(path: &str, cpu: u32, source: io::Error) -> SourceIrqError {
    let number = path.split('/').nth(2).and_then(|number| number.parse().ok()).unwrap_or_default();
    let remedy = match source.kind() {
        io::ErrorKind::PermissionDenied => "run as root",
        io::ErrorKind::InvalidInput => "choose a CPU that is online",
        _ => "its controller or driver allows no other CPU; leave out --irq-cpu",
    };
    SourceIrqError::Cpu { number, cpu, source, remedy }
}

#[cfg(test)]
mod tests {
    use std::{cell::RefCell, fs};

    use super::*;
    use crate::journal;

    /// A machine with the interrupts 8 and 9 of a device. The kernel refuses to move the second one.
    #[derive(Debug)]
    struct Fake {
        _folder: tempfile::TempDir,
        root: Root,
        log: RefCell<Vec<String>>,
    }

    impl Fake {
        fn new() -> Rc<Self> {
            let folder = tempfile::tempdir().unwrap();
            let root = Root::at(folder.path());
            let write = |path: &str, text: &str| {
                let path = root.path(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            };
            write("proc/2/comm", "kthreadd\n");
            write("proc/irq/8/smp_affinity_list", "0-3\n");
            write("proc/irq/9/smp_affinity_list", "0-1\n");
            for (id, name) in [(301, "irq/8-punctual"), (302, "irq/80-other")] {
                write(&format!("proc/{id}/comm"), &format!("{name}\n"));
            }
            let fake = Rc::new(Self { _folder: folder, root, log: RefCell::default() });
            fake.schedule(301, "irq/8-punctual", 50);
            fake.schedule(302, "irq/80-other", 50);
            fake
        }

        fn schedule(&self, id: u32, name: &str, priority: u8) {
            let fields = "S 2 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 -51 0 1 0 180 0 0 18446744073709551615 0 0 0 0 0 0 0 \
                          2147483647 0 0 0 0 17 0";
            let text = format!("{id} ({name}) {fields} {priority} 1 0 0 0 0 0 0 0 0 0 0 0\n");
            fs::write(self.root.path(&format!("proc/{id}/stat")), text).unwrap();
        }

        fn state(&self) -> [String; 3] {
            let cpus = |number: u32| self.root.read(&format!("proc/irq/{number}/smp_affinity_list")).unwrap();
            [cpus(8), cpus(9), Thread::of(&self.root, 301).unwrap().scheduled()]
        }
    }

    impl SystemOps for Fake {
        fn root(&self) -> &Root {
            &self.root
        }

        fn write(&self, path: &str, text: &str) -> io::Result<()> {
            if path.contains("/9/") {
                return Err(io::Error::from_raw_os_error(5));
            }
            self.log.borrow_mut().push(format!("{path} {text}"));
            fs::write(self.root.path(path), text)
        }

        fn set_policy(&self, id: u32, policy: Policy) -> io::Result<()> {
            self.log.borrow_mut().push(format!("{id} {policy}"));
            self.schedule(id, "irq/8-punctual", policy.priority().unwrap_or_default());
            Ok(())
        }
    }

    fn take(
        fake: &Rc<Fake>,
        interrupts: &[u32],
        priority: Option<u8>,
        cpu: Option<u32>,
    ) -> Result<SourceIrqHold, SourceIrqError> {
        let ops: Rc<dyn SystemOps> = Rc::<Fake>::clone(fake);
        SourceIrqHold::take_with(&ops, "hpet", interrupts, IrqSettings { priority, cpu })
    }

    const INITIAL: [&str; 3] = ["0-3", "0-1", "fifo:50"];

    #[test]
    fn cpu_and_priority_are_restored() {
        let fake = Fake::new();
        let hold = take(&fake, &[8], Some(85), Some(2)).unwrap();
        assert_eq!(fake.state(), ["2", "0-1", "fifo:85"]);
        let settings = hold.release();
        assert_eq!(fake.state(), INITIAL);
        let words = |s: &Setting| format!("{}: {} {} {}", s.name, s.before, s.during, s.after.as_deref().unwrap());
        assert_eq!(
            settings.iter().map(words).collect::<Vec<_>>(),
            ["hpet /proc/irq/8/smp_affinity_list: 0-3 2 0-3", "hpet irq/8-punctual: fifo:50 fifo:85 fifo:50",]
        );
    }

    #[test]
    fn the_journal_restores_both_after_a_crash() {
        let fake = Fake::new();
        std::mem::forget(take(&fake, &[8], Some(85), Some(2)).unwrap());
        let restored = journal::restore_with(&*fake).unwrap();
        assert_eq!((restored.len(), restored[0].put_back.settings, restored[0].put_back.interrupts), (1, 1, 1));
        assert_eq!(fake.state(), INITIAL);
    }

    #[test]
    fn a_refused_change_leaves_nothing_changed() {
        let fake = Fake::new();
        let refused = take(&fake, &[8, 9], Some(85), Some(0)).unwrap_err().to_string();
        assert!(
            refused.starts_with("cannot move interrupt 9 to CPU 0") && refused.ends_with("leave out --irq-cpu"),
            "{refused}"
        );
        assert_eq!(fake.state(), INITIAL);
        let not_threaded = take(&fake, &[9], Some(85), None).unwrap_err().to_string();
        assert!(not_threaded.contains("handles the interrupt of hpet without a thread"), "{not_threaded}");
        let unknown = take(&fake, &[], None, Some(0)).unwrap_err().to_string();
        assert!(unknown.starts_with("the interrupt of hpet is not known"), "{unknown}");
        let unreadable = take(&fake, &[8, 77], None, Some(2)).unwrap_err().to_string();
        assert!(unreadable.starts_with("cannot move interrupt 77 to CPU 2 (it does not exist)"), "{unreadable}");
        assert_eq!(fake.state(), INITIAL);
        fs::remove_file(fake.root.path("proc/2/comm")).unwrap();
        assert!(matches!(take(&fake, &[9], Some(85), None), Err(SourceIrqError::Hidden)));
        assert!(journal::restore_with(&*fake).unwrap().is_empty());
    }
}
