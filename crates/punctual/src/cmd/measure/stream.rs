//! `punctual measure stream`.

use std::path::Path;

use campaign::{
    Cores, Length, Plan, PlanError, Probe,
    probe::{
        Definition, PlacementContext, StreamProbe, choose_cpu, quiet_cpus,
        stream::{CaptureTo, ListedStream, SYNC_TIMEOUT, StreamEnds, WakeupOffset},
    },
};
use machine::{CpuList, Root, usable_cpus};
use probes::stream::transmit::TransmitMode;
use record::Record;
use sys::{clock::Clock, sched::Policy};

use super::Results;
use crate::{
    cli::{SentStampsChoice, Stream, StreamOptions, StreamSide, Streams},
    exit::Usage,
    output,
};

pub fn run(options: &Stream) -> anyhow::Result<u8> {
    check(options)?;
    if let Some(path) = &options.capture {
        record::file::check_writable(path)?;
    }
    let ready = Ready::prepare(&options.shared, stream(options))?;
    let record = output::measure(&ready.plan, options.shared.common.output)?;
    let status = ready.deliver(record)?;
    if let Some(path) = options.capture.as_ref().filter(|_| !options.shared.common.output.quiet) {
        say!("capture {}", path.display());
    }
    Ok(status)
}

/// The plan of these options for equal rounds: all of them have the same wake-up offset.
pub fn plan_of_rounds(options: &Stream) -> anyhow::Result<Plan> {
    check(options)?;
    let probe = stream(options);
    if probe.talks() && !matches!(options.shared.wakeup_offset, Some(WakeupOffset::Given(_))) {
        return Err(Usage(
            "each round would find another wake-up offset: give one for all, e.g. --wakeup-offset 0us".to_owned(),
        )
        .into());
    }
    if options.capture.is_some() {
        return Err(Usage("each round would replace the capture: leave out --capture".to_owned()).into());
    }
    if options.shared.maap {
        return Err(Usage("each round would claim other addresses: leave out --maap".to_owned()).into());
    }
    Ok(Ready::prepare(&options.shared, probe)?.plan)
}

/// Checks combinations of options.
fn check(options: &Stream) -> Result<(), Usage> {
    if let Some(error) = options.option_of_other_end() {
        return Err(Usage(error));
    }
    if options.shared.busy_poll.is_some() && options.xdp().is_some() {
        return Err(Usage("--busy-poll needs --receive socket: use --spin with xdp".to_owned()));
    }
    if options.queue.is_some() && !options.uses_xdp() {
        return Err(Usage("--queue needs xdp: leave it out, or add --mode xdp or --receive xdp".to_owned()));
    }
    Ok(())
}

/// A checked measurement of a stream.
pub struct Ready<'a> {
    options: &'a StreamOptions,
    results: Results<'a>,
    others: Vec<(String, Record)>,
    /// The plan of the measurement.
    pub plan: Plan,
}

impl<'a> Ready<'a> {
    /// Checks the options before anything is opened. `stream` contains the ends on this machine.
    pub fn prepare(options: &'a StreamOptions, stream: StreamProbe) -> anyhow::Result<Self> {
        if matches!(options.policy, Policy::Deadline { .. }) {
            return Err(Usage(PlanError::StreamDeadline.to_string()).into());
        }
        let (common, wake_ups) = (&options.common, &options.wake_ups);
        let results = Results::prepare(common)?;
        let others = output::find_references(&wake_ups.against)?;
        output::find_profiles(&wake_ups.profiles)?;
        let plan = plan(options, stream, &results)?;
        campaign::check(&plan, &Root::system())?;
        if let Some(limit_ns) = sync_limit_ns(&plan).filter(|_| !common.output.quiet) {
            let limit = analysis::format_unsigned_ns(limit_ns);
            say!("sync    waiting up to {} s until the clock is within {limit} of PTP time", SYNC_TIMEOUT.as_secs());
        }
        if let Some(calibration_ns) = plan.calibration_ns().filter(|_| !common.output.quiet) {
            let length = analysis::format_unsigned_ns(calibration_ns);
            say!("offset  measuring {length} of wake-ups first, to choose a wake-up offset for this machine");
        }
        if options.maap && !common.output.quiet {
            say!("maap    claiming the destination addresses first, which takes about 2 s");
        }
        Ok(Self { options, results, others, plan })
    }

    /// Judges, writes and prints the record, and returns the exit status.
    pub fn deliver(&self, mut record: Record) -> anyhow::Result<u8> {
        let wake_ups = &self.options.wake_ups;
        output::judge(&mut record, &wake_ups.profiles)?;
        output::compare_with(&mut record, &self.others);
        self.results.deliver(&record, |style, width| report::terminal::summary(&record, style, width))?;
        wake_ups.status(&record, &self.results)
    }
}

/// The largest offset from PTP time that the plan requires, ns.
fn sync_limit_ns(plan: &Plan) -> Option<u64> {
    if let Probe::Stream(stream) = &plan.probe { stream.require_sync_ns } else { None }
}

/// Reads a file of streams.
fn listed(path: &Path, options: &StreamOptions) -> anyhow::Result<Vec<ListedStream>> {
    let name = path.display();
    let of_file = [
        ("period", options.period.is_some()),
        ("class", options.class.is_some()),
        ("format", options.format.is_some()),
    ];
    if let Some((key, _)) = of_file.iter().find(|(_, is_given)| *is_given) {
        return Err(Usage(format!("--{key} does not apply to the streams of {name}: write `{key}` there")).into());
    }
    Ok(campaign::file::read_streams(path).map_err(|error| Usage(error.to_string()))?)
}

fn plan(options: &StreamOptions, stream: StreamProbe, results: &Results) -> anyhow::Result<Plan> {
    let common = &options.common;
    let (further_streams, listed) = match &options.streams {
        None => (0, Vec::new()),
        Some(Streams::Number(streams)) => (streams - 1, Vec::new()),
        Some(Streams::File(path)) => (0, listed(path, options)?),
    };
    let mut stream = StreamProbe {
        class: options.class.unwrap_or_default().into(),
        period_ns: options.period,
        format: options.format.unwrap_or_default().into(),
        offset: options.wakeup_offset.unwrap_or_default(),
        mode: options.mode.map(TransmitMode::from).unwrap_or_default(),
        unique_id: options.unique_id.unwrap_or_default(),
        stamps: options.stamps.and_then(SentStampsChoice::requested),
        maap: options.maap,
        further_streams,
        listed,
        wait: options.wait(),
        ..stream
    };
    let cpus: CpuList = place(options, &mut stream)?.into_iter().collect();
    let length = match stream.ends {
        // A listener without a duration stops when the talker stops.
        StreamEnds::Listen(_) if common.duration.is_none() => Length::UntilStopped,
        StreamEnds::Listen(_) | StreamEnds::Talk(_) | StreamEnds::Both => super::length(common),
    };
    let phase = super::phase(common, stream.period_ns(), length, stream.threads(options.policy));
    // Launch times and PTP time are on CLOCK_TAI, which is the default then.
    let on_tai = stream.mode == TransmitMode::Txtime || stream.require_sync_ns.is_some();
    let clock = if on_tai { Clock::Tai } else { Clock::Monotonic };
    let probe = Probe::Stream(Box::new(stream));
    Ok(Plan {
        cpus: Some(cpus),
        shield: options.placement.shield.clone(),
        policy: options.policy,
        nic: options.nic.plan(),
        ..options.wake_ups.apply(Plan { clock, ..super::plan(common, &results.files, probe, vec![phase])? })?
    })
}

/// Assigns each end a CPU, the requested or the best one, and returns these CPUs.
fn place(options: &StreamOptions, stream: &mut StreamProbe) -> anyhow::Result<Vec<u32>> {
    let root = Root::system();
    let shield = options.placement.shield.as_ref();
    let one = |cpu: u32| CpuList::from_iter([cpu]);
    let isolated = quiet_cpus(&root, shield);
    let first = choose_cpu(&root, options.cpu, shield, Cores::Linux)?;
    let usable = usable_cpus(&root, stream.listen_cpu.map(one).as_ref())?;
    let named = [first].into_iter().chain(stream.listen_cpu).collect();
    Ok(stream.place(named, &PlacementContext { usable: &usable, isolated: &isolated, policy: Some(options.policy) }))
}

/// The probe for the ends on this machine.
fn stream(options: &Stream) -> StreamProbe {
    let interface = options.interface.clone().unwrap_or_default();
    StreamProbe {
        ends: match options.side {
            Some(StreamSide::Talk) => StreamEnds::Talk(interface),
            Some(StreamSide::Listen) => StreamEnds::Listen(interface),
            None => StreamEnds::Both,
        },
        stream_id: options.stream_id,
        require_sync_ns: options.require_sync,
        xdp: options.xdp(),
        queue: options.queue.unwrap_or_default(),
        capture: options.capture.clone().map(CaptureTo::File),
        listen_cpu: options.listen_cpu,
        ..StreamProbe::default()
    }
}
