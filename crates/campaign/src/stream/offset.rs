//! How long before its slot a talker wakes: as asked for, or as long as this machine needs.

use std::{borrow::Cow, fmt, str::FromStr};

use machine::Root;
use record::{BlameMode, Calibration, Record, State};

use crate::{Length, Plan, Probe, Progress, RunError, run};

/// How long the wake-ups are measured that an offset is taken from, ns.
pub const CALIBRATION_NS: u64 = 5_000_000_000;

/// How long before its slot a talker wakes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WakeupOffset {
    /// So long, ns.
    Given(u64),
    /// As long as this machine needs: [`CALIBRATION_NS`] of wake-ups tell, before the first frame.
    Auto,
}

impl WakeupOffset {
    /// The offset, ns; 0 while it is not known yet.
    #[must_use]
    pub fn ns(self) -> u64 {
        match self {
            Self::Given(ns) => ns,
            Self::Auto => 0,
        }
    }
}

impl Default for WakeupOffset {
    fn default() -> Self {
        Self::Given(0)
    }
}

impl FromStr for WakeupOffset {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            _ => analysis::parse_ns(text).map(Self::Given).map_err(|error| format!("{error}, or auto")),
        }
    }
}

impl fmt::Display for WakeupOffset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Given(0) => f.write_str("0us"),
            Self::Given(ns) => f.write_str(&analysis::format_exact(*ns)),
            Self::Auto => f.write_str("auto"),
        }
    }
}

/// The plan with an offset that it leaves to this machine, and what that was taken from: the talker's own wake-ups, with
/// the loads of its first phase, and without frames.
pub(crate) fn settled<'a>(
    plan: &'a Plan,
    root: &Root,
    watch: &mut dyn FnMut(&Record, &Progress),
) -> Result<(Cow<'a, Plan>, Option<Calibration>), RunError> {
    if !plan.calibrates() {
        return Ok((Cow::Borrowed(plan), None));
    }
    let mut plan = plan.clone();
    let record = run(&wake_ups(&plan), root, watch)?;
    let calibration =
        record.series.first().filter(|_| record.state == State::Complete).map(analysis::stream::calibrate);
    let calibration = calibration.ok_or(RunError::NotCalibrated)?;
    if let Probe::Stream(stream) = &mut plan.probe
        && let Some(talk) = &mut stream.talk
    {
        talk.offset = WakeupOffset::Given(calibration.wanted_ns);
    }
    Ok((Cow::Owned(plan), Some(calibration)))
}

/// The talker without a stream.
fn wake_ups(plan: &Plan) -> Plan {
    let mut plan = Plan {
        probe: Probe::Timer,
        blame: blame::Asked::Only(BlameMode::Off),
        stop_on: None,
        timerlat: false,
        profiles: Vec::new(),
        record_path: None,
        ..plan.clone()
    };
    plan.phases.truncate(1);
    plan.phases.iter_mut().for_each(|phase| phase.length = Length::Duration(CALIBRATION_NS));
    plan
}

/// Adds to the record of a stream what follows from the whole of it.
pub(crate) fn tell(record: &mut Record, calibration: Option<&Calibration>) {
    for series in &mut record.series {
        if let Some(talker) = series.kind.talker_mut() {
            talker.calibration = calibration.cloned();
        }
    }
    analysis::stream::fill(record);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offset_is_a_time_or_the_machines_own() {
        assert_eq!(("8us".parse(), "auto".parse()), (Ok(WakeupOffset::Given(8_000)), Ok(WakeupOffset::Auto)));
        assert!("automatic".parse::<WakeupOffset>().is_err());
        for text in ["0us", "8us", "auto"] {
            assert_eq!(text.parse::<WakeupOffset>().unwrap().to_string(), text);
        }
    }
}
