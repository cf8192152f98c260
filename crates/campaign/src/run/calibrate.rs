//! Calibrates the wake-up offset of a talker on this machine.

use std::borrow::Cow;

use analysis::format_ns;
use machine::{Root, ordinary_percent};
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
/// loads of the first phase: on an interface without frames, between our own two namespaces with them. `watch` gets the
/// progress of the calibration and the run together.
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
    let record = measured(&wake_ups(plan, stream, calibration_ns), root, &mut watch)?;
    if record.state != State::Complete {
        return Err(RunError::NotCalibrated);
    }
    // All threads of the talker get the offset of the one that needs the longest.
    let wake_ups = record.series.iter().filter(|series| series.kind.listener().is_none());
    let each = wake_ups.map(|wake_ups| calibrate(stream, wake_ups, root)).collect::<Result<Vec<_>, _>>()?;
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
    let most_ns = analysis::stream::longest_calibrated_ns(period_ns, own_ns(stream, wake_ups), ordinary_percent(root));
    let found = analysis::stream::calibrate(wake_ups, talker::tolerance_ns(period_ns), most_ns);
    let offset_ns = stream.offset.calibrated_ns(&found, stream.handover_ns(root)?, period_ns);
    Ok((offset_ns, Calibration { is_knee: stream.offset == WakeupOffset::Knee, ..found }))
}

/// CPU time that the talker needs in each period apart from spinning, ns: measured with these wake-ups, as far as they
/// send.
fn own_ns(stream: &StreamProbe, wake_ups: &Series) -> u64 {
    let measured_ns = wake_ups.cpu_time_ns.and_then(|used_ns| used_ns.checked_div(wake_ups.samples));
    let sends = wake_ups.kind.talker().is_some();
    match measured_ns {
        Some(measured_ns) if sends => measured_ns,
        Some(_) | None => measured_ns.unwrap_or_default().saturating_add(stream.sending_ns()),
    }
}

/// The probe whose wake-ups are measured. Nobody else sees the frames between our own two namespaces, so these are sent
/// as in the run, and the time to send them is measured, too. With launch times the talker does not spin.
fn calibrating(stream: &StreamProbe) -> Probe {
    if stream.interface().is_some() || stream.mode.keeps_slots() {
        return Probe::Timer(TimerProbe::default());
    }
    Probe::Stream(Box::new(StreamProbe {
        offset: WakeupOffset::Given(0),
        stamps: None,
        maap: false,
        require_sync_ns: None,
        capture: None,
        ..stream.clone()
    }))
}

/// The plan of a run that measures only the wake-ups of the talker `stream`.
fn wake_ups(plan: &Plan, stream: &StreamProbe, calibration_ns: u64) -> Plan {
    let mut plan = Plan {
        probe: calibrating(stream),
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
            "the wake-up offset is too short for the latest wake-up before the run ({}), because a longer one \
             would not leave the CPU enough time for sending and for other threads: frames can be late",
            format_ns(calibration.max_ns)
        );
        record.caveats.push(Caveat { kind: "offset".to_owned(), text });
    }
    analysis::stream::fill(record);
}

#[cfg(test)]
mod tests {
    use probes::stream::transmit::TransmitMode;
    use record::{SeriesKind, Stream, Talker};

    use super::*;
    use crate::probe::stream::StreamEnds;

    #[test]
    fn frames_are_sent_before_the_run_only_where_nobody_else_sees_them() {
        let sends = |stream: StreamProbe| match calibrating(&stream) {
            Probe::Stream(probe) => {
                assert_eq!((probe.offset, probe.capture, probe.maap), (WakeupOffset::Given(0), None, false));
                true
            }
            _ => false,
        };
        let own = || StreamProbe { further_streams: 3, maap: true, ..StreamProbe::default() };
        assert!(sends(own()));
        assert!(!sends(StreamProbe { mode: TransmitMode::Txtime, ..own() }));
        assert!(!sends(StreamProbe { ends: StreamEnds::Talk("eth0".to_owned()), ..own() }));
    }

    #[test]
    fn the_offset_leaves_the_cpu_time_that_sending_takes() {
        let stream = StreamProbe { further_streams: 1, ..StreamProbe::default() };
        let talker = || SeriesKind::Stream(Stream::Talker(Box::<Talker>::default()));
        let wake_ups = |kind, cpu_time_ns| {
            let mut series = Series { kind, cpu_time_ns, period_ns: 125_000, samples: 1_000, ..Series::default() };
            series.max_ns = Some(120_000);
            series.raw.add(99_000, 999);
            series.raw.add(120_000, 1);
            series
        };
        let own = |kind, cpu_time_ns| own_ns(&stream, &wake_ups(kind, cpu_time_ns));
        assert_eq!(own(talker(), Some(25_000_000)), 25_000, "measured with frames");
        assert_eq!(own(SeriesKind::WakeUps, Some(5_000_000)), 5_000 + 15_000 + 3_000, "measured without frames");
        assert_eq!((own(SeriesKind::WakeUps, None), own(talker(), None)), (18_000, 18_000), "not measured");
        let folder = tempfile::tempdir().unwrap();
        let root = Root::at(folder.path());
        let chosen = |used_ns| calibrate(&stream, &wake_ups(talker(), Some(used_ns)), &root).unwrap().0;
        assert!(chosen(25_000_000) <= 81_250 && chosen(200_000_000) == 0, "85 % of the period with sending");
    }
}
