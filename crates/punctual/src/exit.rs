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
            say!("punctual: {}", in_words(&error));
            ExitCode::from(status_of(&error))
        }
    }
}

/// What went wrong and why, each cause once: many tell theirs themselves.
fn in_words(error: &anyhow::Error) -> String {
    error.chain().map(ToString::to_string).fold(String::new(), |said, cause| match said.as_str() {
        "" => cause,
        said if said.contains(&cause) => said.to_owned(),
        said => format!("{said}: {cause}"),
    })
}

fn status_of(error: &anyhow::Error) -> u8 {
    if error.is::<Usage>() {
        return 64;
    }
    match error.downcast_ref() {
        _ if matches!(error.downcast_ref(), Some(CampaignFileError::Unknown { .. })) => 64,
        Some(RunError::Discarded) => 130,
        Some(RunError::Plan(_) | RunError::Load(LoadError::IdleWithOthers)) => 64,
        _ => 1,
    }
}
