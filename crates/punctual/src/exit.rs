//! What the process says with its exit status: 0 pass or done, 1 error, 2 limit exceeded, 3 inconclusive, 4 invalid,
//! 64 usage, 130 interrupted before any result.

use std::process::ExitCode;

use campaign::{CampaignFileError, RunError};
use loads::LoadError;

/// A command line that cannot be followed.
#[derive(Debug)]
pub struct Usage(pub String);

impl std::fmt::Display for Usage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

/// Says what went wrong, in one line, and turns the outcome into an exit status.
pub fn code(outcome: anyhow::Result<u8>) -> ExitCode {
    match outcome {
        Ok(status) => ExitCode::from(status),
        Err(error) => {
            eprintln!("punctual: {error:#}");
            ExitCode::from(status_of(&error))
        }
    }
}

fn status_of(error: &anyhow::Error) -> u8 {
    if error.is::<Usage>() {
        return 64;
    }
    match error.downcast_ref() {
        _ if matches!(error.downcast_ref(), Some(CampaignFileError::Unknown { .. })) => 64,
        Some(RunError::Discarded) => 130,
        Some(RunError::Plan(_) | RunError::Load(LoadError::IdleBesideOthers)) => 64,
        _ => 1,
    }
}
