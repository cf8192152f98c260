//! Why a run could not be made.

use blame::{DatError, TimerlatError, TraceError};
use machine::{
    CpuError, ShieldError,
    ends::EndsError,
    nic::{NoStamps, WayError},
};
use probes::{timer::TimerError, udp::UdpError};
use record::file::FileError;
use sys::evl::EvlError;

use crate::{AudioError, PlanError, StreamError, process::ProgramError, udp::AddressError};

/// Why a run could not be made.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The plan cannot be followed.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// CPUs cannot be shielded.
    #[error(transparent)]
    Shield(#[from] ShieldError),
    /// A CPU cannot be measured.
    #[error(transparent)]
    Cpu(#[from] CpuError),
    /// A load could not be started.
    #[error(transparent)]
    Load(#[from] loads::LoadError),
    /// The EVL core was asked for, and is not to be had.
    #[error(transparent)]
    Evl(#[from] EvlError),
    /// A measuring thread could not be made.
    #[error(transparent)]
    Timer(#[from] TimerError),
    /// Round trips cannot be measured.
    #[error(transparent)]
    Udp(#[from] UdpError),
    /// No interface leads to the peer.
    #[error(transparent)]
    Way(#[from] WayError),
    /// The peer cannot be found.
    #[error(transparent)]
    Peer(#[from] AddressError),
    /// The network card's stamps were asked for, and are not to be had.
    #[error(transparent)]
    Stamps(#[from] NoStamps),
    /// A stream can be neither sent nor received.
    #[error(transparent)]
    Stream(#[from] StreamError),
    /// Nothing can be played through what was asked for.
    #[error(transparent)]
    Audio(#[from] AudioError),
    /// There are no two ends within this machine.
    #[error(transparent)]
    Ends(#[from] EndsError),
    /// The kernel's trace was asked for, and is not to be had.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The program cannot be watched.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// What threads do cannot be seen.
    #[error("what a program's threads do is seen in the kernel's trace alone: {0}")]
    Unseen(String),
    /// The kernel's timerlat tracer was asked for, and is not to be had.
    #[error(transparent)]
    Timerlat(#[from] TimerlatError),
    /// The trace could not be kept.
    #[error("{0}; choose another place with --stop-trace FILE")]
    KeepTrace(#[from] DatError),
    /// Stopping on a spike needs the trace, which is not on.
    #[error("--stop-on keeps the kernel's trace, and there is none: {0}")]
    NothingToStop(String),
    /// The record could not be written.
    #[error("{0}; choose another place with --record FILE, or do without it with --no-record")]
    Record(#[from] FileError),
    /// The user ended the run before the first frame.
    #[error("ended while the wake-up offset was looked for: give one, as 8us, to begin at once")]
    NotCalibrated,
    /// The user ended the run twice: nothing is kept.
    #[error("interrupted twice: the run was discarded")]
    Discarded,
}
