//! Calibrates the wake-up offset of a talker on this machine.

use std::borrow::Cow;

use analysis::format_ns;
use machine::Root;
use probes::stream::talker;
use record::{Calibration, Caveat, Record, Series, State};

use super::{Progress, measured};
use crate::{
    error::RunError,
    on_spike::OnSpike,
    plan::{Length, NicPlan, Plan},
    probe::{
        Definition, Probe, TimerProbe,
        stream::{StreamError, StreamProbe, WakeupOffset},
    },
};

/// Returns the plan with the calibrated offset, and the calibration. It measures the wake-ups of the talker with the
/// loads of the first phase, but without frames. `watch` gets the progress of the calibration and the run together.
pub(super) fn calibrated<'a>(
    plan: &'a Plan,
    root: &Root,
    watch: &mut dyn FnMut(&Record, &Progress),
) -> Result<(Cow<'a, Plan>, Option<Calibration>), RunError> {
    let (Probe::Stream(stream), Some(calibration_ns)) = (&plan.probe, plan.calibration_ns()) else {
        return Ok((Cow::Borrowed(plan), None));
    };
    let run_ns = plan.total_ns().map(|total_ns| total_ns.saturating_sub(calibration_ns));
    let mut watch = |record: &Record, progress: &Progress| watch(record, &progress.clone().before(run_ns));
    let record = measured(&wake_ups(plan, calibration_ns), root, &mut watch)?;
    if record.state != State::Complete {
        return Err(RunError::NotCalibrated);
    }
    // All threads of the talker get the offset of the one that needs the longest.
    let each = record.series.iter().map(|wake_ups| calibrate(stream, wake_ups, root)).collect::<Result<Vec<_>, _>>()?;
    let (offset_ns, calibration) =
        each.into_iter().max_by_key(|(offset_ns, _)| *offset_ns).ok_or(RunError::NotCalibrated)?;
    let probe = StreamProbe { offset: WakeupOffset::Given(offset_ns), ..(**stream).clone() };
    Ok((Cow::Owned(Plan { probe: Probe::Stream(Box::new(probe)), ..plan.clone() }), Some(calibration)))
}

/// Chooses the offset of a talker with these wake-ups. Returns it in ns, with the calibration.
fn calibrate(stream: &StreamProbe, wake_ups: &Series, root: &Root) -> Result<(u64, Calibration), StreamError> {
    // The offset must leave the thread with the shortest period time to sleep.
    let period_ns = wake_ups.period_ns.min(stream.period_ns());
    let wake_ups = &Series { period_ns, ..wake_ups.clone() };
    let found = analysis::stream::calibrate(wake_ups, talker::tolerance_ns(period_ns), stream.sending_ns());
    let offset_ns = stream.offset.calibrated_ns(&found, stream.handover_ns(root)?, period_ns);
    Ok((offset_ns, Calibration { is_knee: stream.offset == WakeupOffset::Knee, ..found }))
}

/// The plan of a run that measures only the wake-ups of the talker.
fn wake_ups(plan: &Plan, calibration_ns: u64) -> Plan {
    let mut plan = Plan {
        probe: Probe::Timer(TimerProbe::default()),
        blame: blame::BlameMode::Off,
        stop_on: None,
        on_spike: OnSpike::default(),
        timerlat: false,
        profiles: Vec::new(),
        limit_ns: None,
        until_decided: Vec::new(),
        // Settings of the interface restart the link of many cards, once for each time that they change.
        nic: NicPlan::default(),
        record_path: None,
        ..plan.clone()
    };
    plan.phases.truncate(1);
    for phase in &mut plan.phases {
        phase.length = Length::Duration(calibration_ns);
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
