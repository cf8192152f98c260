//! What can keep a load from starting or going on.

use std::{io, path::PathBuf};

use machine::CpuList;

use crate::units::show_size;

/// Why a load cannot start or go on; each message is one sentence with its remedy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The CPUs named cannot be used.
    #[error("load `{load}` cannot use the CPUs asked for: {reason}")]
    Cpus {
        /// The load as asked for.
        load: String,
        /// The reason with its remedy.
        #[source]
        reason: machine::CpuError,
    },
    /// The kernel did not put a thread on its CPU.
    #[error("the kernel did not put a load on CPUs {asked} ({reason}): name CPUs that `taskset -cp $$` shows")]
    Affinity {
        /// CPUs asked for.
        asked: CpuList,
        /// What it answered or granted.
        reason: String,
    },
    /// `idle` beside another load.
    #[error("load `idle` means that nothing runs beside the probe: leave it out, or the others")]
    IdleBesideOthers,
    /// The child process could not be started.
    #[error("cannot start a worker for load `{load}` from {}: {reason}", exe.display())]
    Spawn {
        /// The load as asked for.
        load: String,
        /// The program.
        exe: PathBuf,
        /// What the kernel answered.
        #[source]
        reason: io::Error,
    },
    /// What the worker said itself.
    #[error("{0}")]
    Worker(String),
    /// The worker was not ready in time.
    #[error("load `{load}` was not ready within {seconds} s: the machine may be starved, try fewer loads")]
    NotReady {
        /// The load as asked for.
        load: String,
        /// How long it was given.
        seconds: u64,
    },
    /// Not enough memory for the buffers.
    #[error("load `{load}` needs {} of memory but may use {}: give it a smaller size, as {load}:size=1M", show_size(*.needed), show_size(*.usable))]
    Memory {
        /// The load's name.
        load: &'static str,
        /// Bytes needed in all.
        needed: u64,
        /// Bytes that it may use.
        usable: u64,
    },
    /// A priority was refused.
    #[error(
        "load `timer` may not run at SCHED_FIFO priority {priority} ({reason}): start as root, or `sudo setcap cap_sys_nice,cap_ipc_lock+ep {}`", program.display()
    )]
    Priority {
        /// The priority asked for.
        priority: u8,
        /// What the kernel answered.
        reason: io::Error,
        /// This program.
        program: PathBuf,
    },
    /// The folder of the disk load cannot be used.
    #[error("load `disk` cannot use {}: {reason}; name another folder, as disk:dir=/var/tmp", dir.display())]
    Disk {
        /// The folder.
        dir: PathBuf,
        /// Why not.
        reason: String,
    },
    /// The network or the interface cannot be used.
    #[error("load `net` cannot send: {reason}")]
    Net {
        /// Why not, with the remedy.
        reason: String,
    },
    /// Another program cannot be used.
    #[error("load `{load}` cannot run {program}: {reason}")]
    Program {
        /// The load's name.
        load: &'static str,
        /// The program.
        program: &'static str,
        /// Why not, with the remedy.
        reason: String,
    },
    /// The kernel refused something that it normally grants.
    #[error("load `{load}`: the kernel refused {what}: {reason}")]
    Kernel {
        /// The load's name.
        load: &'static str,
        /// What was asked of it.
        what: &'static str,
        /// What it answered.
        #[source]
        reason: io::Error,
    },
}

impl LoadError {
    /// For `map_err`: the kernel refused `what`.
    pub(crate) fn kernel<E: Into<io::Error>>(load: &'static str, what: &'static str) -> impl Fn(E) -> Self {
        move |reason| Self::Kernel { load, what, reason: reason.into() }
    }
}
