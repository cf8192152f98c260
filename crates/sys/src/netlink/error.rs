//! Errors in the kernel's answers.

use std::io;

use thiserror::Error;

/// Why an answer has no messages.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum AnswerError {
    /// The kernel refused the request.
    #[error("{}", describe(*errno, reason))]
    Refused {
        /// The error number, e.g. EOPNOTSUPP.
        errno: i32,
        /// The kernel's error message; often empty.
        reason: String,
    },
    /// The bytes are not a complete netlink answer in this byte order.
    #[error("the netlink answer is truncated or malformed")]
    Malformed,
}

fn describe(errno: i32, reason: &str) -> String {
    let error = io::Error::from_raw_os_error(errno);
    if reason.is_empty() { error.to_string() } else { format!("{reason} ({error})") }
}

impl From<AnswerError> for io::Error {
    /// Keeps the kernel's error number if there is no message, otherwise the message.
    fn from(error: AnswerError) -> Self {
        match &error {
            AnswerError::Refused { errno, reason } if reason.is_empty() => Self::from_raw_os_error(*errno),
            AnswerError::Refused { errno, .. } => Self::new(Self::from_raw_os_error(*errno).kind(), error),
            AnswerError::Malformed => Self::new(io::ErrorKind::InvalidData, error),
        }
    }
}
