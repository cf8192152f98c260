//! The cores that schedule the measuring threads of a run.

use std::{fmt, str::FromStr};

use probes::timer::Core;

/// The core, or both of them, that schedules the measuring threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Cores {
    /// Linux.
    #[default]
    Linux,
    /// The EVL core (Xenomai 4), out-of-band: Linux cannot delay the threads.
    Evl,
    /// Both: on each CPU one thread of Linux and one of the EVL core, half a period later.
    Both,
}

/// A text that is not a [`Cores`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown core `{0}`: use linux, evl or both")]
pub struct UnknownCore(String);

impl Cores {
    /// True if threads of the EVL core measure.
    #[must_use]
    pub fn use_evl(self) -> bool {
        self != Self::Linux
    }

    /// The threads on each CPU in the order in which they are created: the core, and the role of one of several threads.
    #[must_use]
    pub fn threads(self) -> &'static [(Core, Option<&'static str>)] {
        match self {
            Self::Linux => &[(Core::Linux, None)],
            Self::Evl => &[(Core::Evl, None)],
            Self::Both => &[(Core::Linux, Some(record::IN_BAND)), (Core::Evl, Some(record::OUT_OF_BAND))],
        }
    }

    /// The core of threads that have a name and a CPU of their own, which one core schedules.
    #[must_use]
    pub fn of_named_threads(self) -> Core {
        if self.use_evl() { Core::Evl } else { Core::Linux }
    }
}

impl FromStr for Cores {
    type Err = UnknownCore;

    fn from_str(text: &str) -> Result<Self, UnknownCore> {
        match text {
            "linux" => Ok(Self::Linux),
            record::EVL => Ok(Self::Evl),
            record::BOTH_CORES => Ok(Self::Both),
            _ => Err(UnknownCore(text.to_owned())),
        }
    }
}

impl fmt::Display for Cores {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Linux => "linux",
            Self::Evl => record::EVL,
            Self::Both => record::BOTH_CORES,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_parse_as_displayed() {
        for cores in [Cores::Linux, Cores::Evl, Cores::Both] {
            assert_eq!(cores.to_string().parse(), Ok(cores));
        }
        let error = "xenomai".parse::<Cores>().unwrap_err().to_string();
        assert_eq!(error, "unknown core `xenomai`: use linux, evl or both");
    }
}
