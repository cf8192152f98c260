//! The loads, one file each, and the table that names them for the help text and the documentation.

use machine::CpuList;

use crate::{Load, LoadError, worker::Meter};

mod cache;
mod cpu;
mod disk;
mod irq;
mod memory;
mod net;
mod shell;
mod stress_ng;
mod switch;
mod timer;

/// One load as a user sees it.
#[derive(Debug, Clone, Copy)]
pub struct Kind {
    /// Name, as written before the colon.
    pub name: &'static str,
    /// What it does, in one line.
    pub description: &'static str,
    /// Its options as written, with what each means.
    pub options: &'static [(&'static str, &'static str)],
}

/// Every load, in the order of the help text.
pub const KINDS: &[Kind] = &[
    Kind { name: "idle", description: "nothing, said explicitly", options: &[] },
    Kind {
        name: "cpu",
        description: "busy integer and floating-point arithmetic, one thread a CPU",
        options: &[("shell", "the classic hog instead: a shell loop that echoes to /dev/null")],
    },
    Kind {
        name: "cache",
        description: "streams that wipe every cache level",
        options: &[("size=BYTES", "buffer of each thread, 64K to 64G (default: twice the largest cache)")],
    },
    Kind {
        name: "memory",
        description: "map, touch and unmap memory",
        options: &[("size=BYTES", "memory mapped at a time by each thread, 64K to 64G (default 16M)")],
    },
    Kind {
        name: "switch",
        description: "context switches between two busy threads on each CPU",
        options: &[("TIME", "time between two switches, 10us to 1s (default 200us)")],
    },
    Kind {
        name: "timer",
        description: "a cyclic real-time thread on each CPU, below the priority of the probe",
        options: &[
            ("PRIO or prio=PRIO", "SCHED_FIFO priority, 1 to 98 (default 49)"),
            ("period=TIME", "time between two wake-ups, 50us to 1s (default 1ms)"),
        ],
    },
    Kind {
        name: "disk",
        description: "writes with fsync into one unlinked file of bounded size a CPU",
        options: &[
            ("dir=FOLDER", "where, on a disk (default /var/tmp)"),
            ("size=BYTES", "space used in all, 1M to 1T (default 64M)"),
        ],
    },
    Kind {
        name: "net",
        description: "UDP flood on loopback, or frames on a named Ethernet interface",
        options: &[
            ("if=NAME", "send raw frames (EtherType 0x88B5) on this interface instead of loopback"),
            ("rate=N", "frames a second in all, 1 to 1000000, with `if` (default 10000)"),
        ],
    },
    Kind { name: "irq", description: "timer interrupts and inter-processor interrupts", options: &[] },
    Kind {
        name: "stress-ng",
        description: "stress-ng with your arguments, where it is installed",
        options: &[("ARGUMENTS", "everything after the colon, split at spaces: `stress-ng:--cpu 2 --vm 1`")],
    },
];

/// What a worker is to do, all of it known to be possible.
pub(crate) struct Plan {
    /// What one operation is.
    pub unit: String,
    /// What keeps the load from running fully.
    pub note: Option<String>,
    /// One thread each.
    pub jobs: Vec<Job>,
}

/// The work of one thread, done until its meter says to stop.
pub(crate) struct Job {
    pub cpus: CpuList,
    pub work: Work,
}

pub(crate) type Work = Box<dyn FnOnce(&Meter) -> Result<(), LoadError> + Send>;

impl Job {
    fn on(cpu: u32, work: impl FnOnce(&Meter) -> Result<(), LoadError> + Send + 'static) -> Self {
        Self { cpus: std::iter::once(cpu).collect(), work: Box::new(work) }
    }
}

impl Plan {
    fn new(unit: &str, jobs: Vec<Job>) -> Self {
        Self { unit: unit.to_owned(), note: None, jobs }
    }

    /// The same work on each CPU.
    fn each_cpu<W>(unit: &str, cpus: &CpuList, work: W) -> Self
    where
        W: Fn(&Meter) -> Result<(), LoadError> + Clone + Send + 'static,
    {
        Self::new(unit, cpus.iter().map(|cpu| Job::on(cpu, work.clone())).collect())
    }
}

/// Prepares `load` for `cpus`; what it needs and cannot have is an error here, before anything runs.
pub(crate) fn plan(load: &Load, cpus: &CpuList) -> Result<Plan, LoadError> {
    match load {
        Load::Idle => Ok(Plan::new("nothing", Vec::new())),
        Load::Cpu { shell: false } => Ok(cpu::plan(cpus)),
        Load::Cpu { shell: true } => shell::plan(cpus),
        Load::Cache { size } => cache::plan(*size, cpus),
        Load::Memory { size } => memory::plan(*size, cpus),
        Load::Switch { interval_ns } => Ok(switch::plan(*interval_ns, cpus)),
        Load::Timer { priority, period_ns } => timer::plan(*priority, *period_ns, cpus),
        Load::Disk { dir, size } => disk::plan(dir.as_deref(), *size, cpus),
        Load::Net { interface: None, .. } => net::loopback(cpus),
        Load::Net { interface: Some(interface), rate } => net::frames(interface, *rate, cpus),
        Load::Irq => irq::plan(cpus),
        Load::StressNg { arguments } => stress_ng::plan(arguments, cpus),
    }
}

impl Load {
    /// Whether it takes all the CPU time that it can get.
    pub(crate) fn is_busy(&self) -> bool {
        match self {
            Self::Cpu { .. } | Self::Cache { .. } | Self::Memory { .. } | Self::Switch { .. } => true,
            Self::Net { interface, .. } => interface.is_none(),
            Self::Idle | Self::Timer { .. } | Self::Disk { .. } | Self::Irq | Self::StressNg { .. } => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::KINDS;

    #[test]
    fn the_documentation_names_every_load_and_option() {
        let page = include_str!("../../../../docs/loads.md");
        for kind in KINDS {
            assert!(page.contains(&format!("\n| `{}` |", kind.name)), "{}", kind.name);
            for (option, _) in kind.options {
                assert!(page.contains(&format!("`{option}`")), "{} {option}", kind.name);
            }
        }
    }
}
