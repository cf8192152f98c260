//! Enables the kernel's runtime verification monitors for real-time threads during a run (Documentation/trace/rv).

use std::{io, rc::Rc};

use record::{Monitor, MonitorUse, Setting};

use crate::{
    Root,
    journal::{Journal, JournalError, Purpose, Undo},
    system_ops::SystemOps,
};

/// The folder of the monitors. A tracefs that is mounted elsewhere is not used, because the journal needs a path that is
/// valid after the process was killed.
const FOLDER: &str = "sys/kernel/tracing/rv";
/// The reactor that does nothing.
const NO_REACTION: &str = "nop";

/// Monitors that watch all real-time threads of the machine, until released or dropped. Those that somebody else has
/// enabled are used and left as they are; after SIGKILL the journal disables the others.
#[derive(Debug)]
pub struct MonitorHold {
    root: Root,
    monitors: Vec<Held>,
    /// `None` if nothing was changed.
    journal: Option<Journal>,
}

/// One monitor.
#[derive(Debug)]
struct Held {
    monitor: Monitor,
    /// The file that enables it.
    path: String,
    /// True if this run enabled it.
    is_changed: bool,
    /// The reason why it does not watch; empty if it does.
    problem: String,
}

impl MonitorHold {
    /// Enables the monitors that this kernel has. A monitor that cannot be used stays as it is, with the reason in
    /// [`monitors`](Self::monitors).
    #[must_use]
    pub fn take(root: &Root) -> Self {
        let ops: Rc<dyn SystemOps> = Rc::new(root.clone());
        Self::take_with(&ops)
    }

    fn take_with(ops: &Rc<dyn SystemOps>) -> Self {
        let root = ops.root().clone();
        let mut monitors = available(&root);
        if root.read(&format!("{FOLDER}/monitoring_on")).as_deref() == Some("0") {
            let problem = format!("it is turned off with /{FOLDER}/monitoring_on");
            monitors.iter_mut().for_each(|held| held.problem.clone_from(&problem));
        } else {
            monitors.iter_mut().for_each(|held| held.is_changed = held.needs_change(&root));
        }
        let journal = enable(ops, &mut monitors).unwrap_or_else(|error| {
            for held in monitors.iter_mut().filter(|held| held.is_changed) {
                (held.is_changed, held.problem) = (false, error.to_string());
            }
            None
        });
        Self { root, monitors, journal }
    }

    /// The monitors that the kernel has.
    #[must_use]
    pub fn monitors(&self) -> Vec<MonitorUse> {
        let to_record = |held: &Held| MonitorUse { monitor: held.monitor, problem: held.problem.clone() };
        self.monitors.iter().map(to_record).collect()
    }

    /// Notes the monitors that somebody else has disabled since. Call it at the end of the run.
    pub fn check(&mut self) {
        for held in self.monitors.iter_mut().filter(|held| held.problem.is_empty()) {
            if !held.is_on(&self.root) {
                "it was disabled during the run".clone_into(&mut held.problem);
            }
        }
    }

    /// Disables the monitors that this run enabled. Returns the setting of each before, during and after.
    #[must_use]
    pub fn release(self) -> Vec<Setting> {
        let Self { root, monitors, journal } = self;
        if let Some(mut journal) = journal {
            journal.restore();
        }
        let setting = |held: &Held| Setting {
            name: format!("/{}", held.path),
            before: "0".to_owned(),
            during: "1".to_owned(),
            after: root.read(&held.path),
        };
        monitors.iter().filter(|held| held.is_changed).map(setting).collect()
    }
}

/// Enables the monitors to change, after an entry in the journal.
fn enable(ops: &Rc<dyn SystemOps>, monitors: &mut [Held]) -> Result<Option<Journal>, JournalError> {
    if !monitors.iter().any(|held| held.is_changed) {
        return Ok(None);
    }
    let mut journal = Journal::begin(Rc::clone(ops), Purpose::Monitors)?;
    journal.record(monitors.iter().filter(|held| held.is_changed).map(Held::undo))?;
    for held in monitors.iter_mut().filter(|held| held.is_changed) {
        if let Err(error) = ops.write(&held.path, "1") {
            (held.is_changed, held.problem) = (false, refusal(&error));
        }
    }
    Ok(Some(journal))
}

/// The reason why the kernel refused to enable a monitor.
fn refusal(error: &io::Error) -> String {
    match error.kind() {
        // Each enabled monitor needs one of CONFIG_RV_PER_TASK_MONITORS slots.
        io::ErrorKind::ResourceBusy => "too many other monitors are enabled".to_owned(),
        _ => format!("the kernel refused to enable it ({error})"),
    }
}

/// The monitors for real-time threads that the kernel has. Its list has one line each, `NAME` or `CONTAINER:NAME`.
fn available(root: &Root) -> Vec<Held> {
    let list = root.read(&format!("{FOLDER}/available_monitors")).unwrap_or_default();
    let held = |line: &str| {
        let name = line.rsplit(':').next()?;
        let path = format!("{FOLDER}/monitors/{}/enable", line.replace(':', "/"));
        Some(Held { monitor: Monitor::of_name(name)?, path, is_changed: false, problem: String::new() })
    };
    let mut monitors: Vec<Held> = list.lines().filter_map(held).collect();
    monitors.sort_by_key(|held| held.monitor);
    monitors
}

impl Held {
    fn undo(&self) -> Undo {
        Undo::File { path: self.path.clone(), before: "0".to_owned(), during: "1".to_owned() }
    }

    fn is_on(&self, root: &Root) -> bool {
        root.read(&self.path).as_deref() == Some("1")
    }

    /// True if it is disabled and can be enabled. A monitor with another reactor than `nop` is not enabled: its reports
    /// could stop the machine.
    fn needs_change(&mut self, root: &Root) -> bool {
        if self.is_on(root) {
            return false;
        }
        let reactors = root.read(&self.path.replace("/enable", "/reactors")).unwrap_or_default();
        let chosen = reactors.lines().find_map(|line| line.trim().strip_prefix('[')?.strip_suffix(']'));
        let reactor = chosen.filter(|&reactor| reactor != NO_REACTION);
        if let Some(reactor) = reactor {
            self.problem = format!("it has the reactor {reactor}, not {NO_REACTION}");
        }
        reactor.is_none()
    }
}

#[cfg(test)]
mod tests;
