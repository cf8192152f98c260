//! Calibrates the wake-up offset of a talker on this machine.

use std::borrow::Cow;

use analysis::format_ns;
use machine::Root;
use record::{Calibration, Caveat, Record, State};

use super::{Progress, measured};
use crate::{
    error::RunError,
    on_spike::OnSpike,
    plan::{Length, Plan},
    probe::{
        Probe, TimerProbe,
        stream::{WakeupOffset, offset::CALIBRATION_NS},
    },
};

/// Returns the plan with the calibrated offset, and the calibration. It measures the wake-ups of the talker with the
/// loads of the first phase, but without frames.
pub(super) fn calibrated<'a>(
    plan: &'a Plan,
    root: &Root,
    watch: &mut dyn FnMut(&Record, &Progress),
) -> Result<(Cow<'a, Plan>, Option<Calibration>), RunError> {
    if !plan.calibrates() {
        return Ok((Cow::Borrowed(plan), None));
    }
    let mut plan = plan.clone();
    let record = measured(&wake_ups(&plan), root, watch)?;
    let calibration =
        record.series.first().filter(|_| record.state == State::Complete).map(analysis::stream::calibrate);
    let calibration = calibration.ok_or(RunError::NotCalibrated)?;
    if let Probe::Stream(stream) = &mut plan.probe {
        stream.offset = WakeupOffset::Given(calibration.wanted_ns);
    }
    Ok((Cow::Owned(plan), Some(calibration)))
}

/// The plan of a run that measures only the wake-ups of the talker.
fn wake_ups(plan: &Plan) -> Plan {
    let mut plan = Plan {
        probe: Probe::Timer(TimerProbe::default()),
        blame: blame::BlameMode::Off,
        stop_on: None,
        on_spike: OnSpike::default(),
        timerlat: false,
        profiles: Vec::new(),
        record_path: None,
        ..plan.clone()
    };
    plan.phases.truncate(1);
    for phase in &mut plan.phases {
        phase.length = Length::Duration(CALIBRATION_NS);
        record::CALIBRATION.clone_into(&mut phase.name);
    }
    plan
}

/// Adds the calibration to the record of a stream, and the figures that are computed from the whole record.
pub(super) fn add(record: &mut Record, calibration: Option<&Calibration>) {
    for series in &mut record.series {
        if let Some(talker) = series.kind.talker_mut() {
            talker.calibration = calibration.cloned();
        }
    }
    if let Some(calibration) = calibration.filter(|calibration| !calibration.fits) {
        let text = format!(
            "the wake-up offset is too short for the latest wake-up before the run ({}), because the period is too short: \
             frames can be late",
            format_ns(calibration.max_ns)
        );
        record.caveats.push(Caveat { kind: "offset".to_owned(), text });
    }
    analysis::stream::fill(record);
}
