//! Errors of a run.

use blame::{DatError, TimerlatError, TraceError};
use machine::{
    CpuError, ShieldError,
    nic::{NoStamps, RouteError},
    tune,
};
use probes::{round_trip::RoundTripError, timer::TimerError};
use record::file::FileError;
use sys::evl::EvlError;

use crate::{
    on_spike::OnSpikeError,
    probe::{PlanError, PrepareError, stream::StreamError},
    shielded::StartError,
};

/// The reasons why a run fails.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The plan cannot be followed.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// This machine does not have a setting that was named, or the setting does not take its value.
    #[error("--setting {0}")]
    Setting(#[from] tune::PlanError),
    /// No setting can be changed now.
    #[error(transparent)]
    Tune(#[from] tune::TuneError),
    /// CPUs cannot be shielded.
    #[error(transparent)]
    Shield(#[from] ShieldError),
    /// A CPU cannot be measured.
    #[error(transparent)]
    Cpu(#[from] CpuError),
    /// A load could not be started.
    #[error(transparent)]
    Load(#[from] loads::LoadError),
    /// The EVL core was requested, but is not available.
    #[error(transparent)]
    Evl(#[from] EvlError),
    /// A measuring thread could not be created.
    #[error(transparent)]
    Timer(#[from] TimerError),
    /// The probe could not be prepared.
    #[error(transparent)]
    Prepare(PrepareError),
    /// The interface of a stream cannot carry it.
    #[error(transparent)]
    Stream(#[from] StreamError),
    /// The answering thread cannot be created.
    #[error(transparent)]
    RoundTrip(#[from] RoundTripError),
    /// No route leads to the peer.
    #[error(transparent)]
    Route(#[from] RouteError),
    /// Hardware timestamps were requested, but are not available.
    #[error(transparent)]
    Stamps(#[from] NoStamps),
    /// The kernel's trace was requested, but is not available.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The program cannot be watched.
    #[error(transparent)]
    Program(Box<dyn std::error::Error + Send + Sync>),
    /// The threads of a program cannot be watched.
    #[error("watching a program needs the kernel's trace: {0}")]
    Unseen(String),
    /// The kernel's timerlat tracer was requested, but is not available.
    #[error(transparent)]
    Timerlat(#[from] TimerlatError),
    /// The trace could not be written.
    #[error("{0}; choose another file with --stop-trace FILE")]
    KeepTrace(#[from] DatError),
    /// An option needs the trace, which is off.
    #[error("--stop-on and --on-spike trace need the kernel's trace, which is off: {0}")]
    NoTrace(String),
    /// The record could not be written.
    #[error("{0}, or use --no-record")]
    Record(#[from] FileError),
    /// The trace at the end of the run could not be written.
    #[error("--stop-trace: {0}")]
    StopTrace(FileError),
    /// An action at a spike could not be carried out.
    #[error(transparent)]
    OnSpike(#[from] OnSpikeError),
    /// The user ended the run before the first frame.
    #[error("interrupted during calibration; pass --wakeup-offset, e.g. 8us, to skip it")]
    NotCalibrated,
    /// The user ended the run twice, so nothing is kept.
    #[error("interrupted twice: the run was discarded")]
    Discarded,
}

impl From<PrepareError> for RunError {
    /// Keeps a contradiction in the plan as `Plan`, because that is a wrong command line.
    fn from(error: PrepareError) -> Self {
        error.downcast::<PlanError>().map_or_else(Self::Prepare, |error| Self::Plan(*error))
    }
}

impl From<StartError> for RunError {
    fn from(error: StartError) -> Self {
        match error {
            StartError::Load(error) => Self::Load(error),
            StartError::Shield(error) => Self::Shield(error),
        }
    }
}
