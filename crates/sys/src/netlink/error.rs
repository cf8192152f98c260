//! Errors in the kernel's answers.

use std::io;

use thiserror::Error;

/// Why an answer holds nothing.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum AnswerError {
    /// The kernel refused.
    #[error("{}", in_words(*errno, reason))]
    Refused {
        /// The error's number, as EOPNOTSUPP.
        errno: i32,
        /// What the kernel said about it; often empty.
        reason: String,
    },
    /// The bytes are no answer of a kernel with this byte order.
    #[error("the answer is cut short or not netlink")]
    Malformed,
}

fn in_words(errno: i32, reason: &str) -> String {
    let error = io::Error::from_raw_os_error(errno);
    if reason.is_empty() { error.to_string() } else { format!("{reason} ({error})") }
}

impl From<AnswerError> for io::Error {
    /// With the kernel's number where it gave no words; else with its words.
    fn from(error: AnswerError) -> Self {
        match &error {
            AnswerError::Refused { errno, reason } if reason.is_empty() => Self::from_raw_os_error(*errno),
            AnswerError::Refused { errno, .. } => Self::new(Self::from_raw_os_error(*errno).kind(), error),
            AnswerError::Malformed => Self::new(io::ErrorKind::InvalidData, error),
        }
    }
}
