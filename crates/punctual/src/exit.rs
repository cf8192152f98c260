//! Exit statuses: 0 pass or done, 1 error, 2 limit exceeded, 3 inconclusive, 4 invalid, 64 usage, 130 interrupted
//! before any result.

use std::process::ExitCode;

use campaign::{CampaignFileError, RunError};
use loads::LoadError;

use crate::output;

/// The exit status of an error.
pub const FAILED: u8 = 1;
/// The exit status of a run that was interrupted before it had any result.
pub const INTERRUPTED: u8 = 130;
/// The exit status of a wrong command line.
pub const USAGE: u8 = 64;

/// An error in the command line.
#[derive(Debug)]
pub struct Usage(pub String);

impl std::fmt::Display for Usage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

/// Prints an error in one line, and returns the exit status.
pub fn code(outcome: anyhow::Result<u8>) -> ExitCode {
    match outcome {
        Ok(status) => ExitCode::from(status),
        Err(error) => {
            let (message, status) = (message(&error), status_of(&error));
            say!("error: {message}");
            output::print_json_error(&message, status);
            ExitCode::from(status)
        }
    }
}

/// The error and its causes. A cause that the message already contains is not repeated.
pub fn message(error: &anyhow::Error) -> String {
    error.chain().map(ToString::to_string).fold(String::new(), |text, cause| match text.as_str() {
        "" => cause,
        text if text.contains(&cause) => text.to_owned(),
        text => format!("{text}: {cause}"),
    })
}

fn status_of(error: &anyhow::Error) -> u8 {
    if error.is::<Usage>() {
        return USAGE;
    }
    match error.downcast_ref() {
        _ if matches!(error.downcast_ref(), Some(CampaignFileError::Unknown { .. })) => USAGE,
        Some(RunError::Discarded) => INTERRUPTED,
        Some(RunError::Plan(_) | RunError::Setting(_) | RunError::Load(LoadError::IdleWithOthers)) => USAGE,
        _ => FAILED,
    }
}
