//! `punctual measure stream`.

use anyhow::Context;
use campaign::{Length, ListenPlan, PhasePlan, Plan, Probe, StreamPlan, TalkPlan, ThreadPlan, TransmitMode, threads};
use machine::{CpuList, Root, isolated_cpus, usable_cpus};
use record::{Calibration, Record};
use sys::sched::Policy;

use super::Results;
use crate::{
    cli::{Stream, StreamOffset, StreamSide},
    exit::Usage,
    output,
};

/// How long the wake-ups are measured that a wake-up offset is taken from, ns.
const CALIBRATION_NS: u64 = 5_000_000_000;

pub fn run(options: &Stream) -> anyhow::Result<u8> {
    let (common, wake_ups) = (&options.common, &options.wake_ups);
    check(options)?;
    let results = Results::prepare(common)?;
    let others = output::find_references(&wake_ups.against)?;
    output::find_profiles(&wake_ups.profiles)?;
    let mut stream = stream(options)?;
    let loads = super::loads(common);
    let period_ns = options.period.unwrap_or_else(|| stream.class.interval_ns());
    let talker =
        |talk: &TalkPlan| ThreadPlan { role: "talker".to_owned(), cpu: talk.cpu, policy: options.policy, period_ns };
    let phase = PhasePlan {
        name: super::phase_name(&loads),
        period_ns,
        length: match stream.talk {
            // It ends with the talker.
            None if common.duration.is_none() => Length::UntilStopped,
            _ => super::length(common),
        },
        loads,
        threads: stream.talk.iter().map(talker).collect(),
    };
    let cpus = stream.talk.iter().map(|talk| talk.cpu).chain(stream.listen.iter().map(|listen| listen.cpu));
    let mut plan = Plan {
        cpus: Some(cpus.collect()),
        shield: options.placement.shield.clone(),
        policy: options.policy,
        ..wake_ups.apply(super::plan(common, &results.kept, vec![phase])?)
    };
    // Before some seconds are spent on wake-ups.
    stream.check(&Root::system(), period_ns)?;
    let calibration = match (&mut stream.talk, options.wakeup_offset) {
        (Some(talk), Some(StreamOffset::Auto)) => {
            let calibration = calibrate(&plan, options)?;
            talk.offset_ns = calibration.wanted_ns;
            Some(calibration)
        }
        _ => None,
    };
    // What woke too late for its slot is what is to be explained.
    let offset_ns = stream.talk.as_ref().map_or(0, |talk| talk.offset_ns);
    plan.threshold_ns =
        wake_ups.threshold.or_else(|| (offset_ns > 0).then_some(offset_ns + (period_ns / 100).max(1_000)));
    plan.probe = Probe::Stream(Box::new(stream));
    let mut record = output::measure(&plan, common.talk)?;
    tell(&mut record, calibration.as_ref());
    output::judge(&mut record, &wake_ups.profiles)?;
    output::lay_beside(&mut record, &others);
    results.deliver(&record, |style, width| report::terminal::summary(&record, style, width))?;
    wake_ups.status(&record, &results)
}

/// What can be refused before anything is opened.
fn check(options: &Stream) -> Result<(), Usage> {
    if let Some(useless) = options.useless() {
        return Err(Usage(useless));
    }
    if matches!(options.policy, Policy::Deadline { .. }) {
        let text =
            "both ends are pinned to their CPUs, which the kernel refuses to deadline threads: use --policy fifo:90";
        return Err(Usage(text.to_owned()));
    }
    Ok(())
}

/// The stream as it is asked for, each end on its CPU.
fn stream(options: &Stream) -> anyhow::Result<StreamPlan> {
    let root = Root::system();
    let shield = options.placement.shield.as_ref();
    let one = |cpu: u32| CpuList::from_iter([cpu]);
    let usable = usable_cpus(&root, options.cpu.map(one).as_ref().or(shield))?;
    let quiet = shield.cloned().unwrap_or_else(|| isolated_cpus(&root));
    let cpu = threads::best_cpu(&usable, &quiet).context("there is no CPU to measure on")?;
    let talk = TalkPlan {
        cpu,
        offset_ns: match options.wakeup_offset {
            Some(StreamOffset::Given(offset_ns)) => offset_ns,
            Some(StreamOffset::Auto) | None => 0,
        },
        mode: options.mode.map(TransmitMode::from).unwrap_or_default(),
        unique_id: options.unique_id.unwrap_or_default(),
    };
    let listen_cpu = if options.own { listen_cpu(options, &root, cpu)? } else { cpu };
    let listen = ListenPlan { cpu: listen_cpu, stream_id: options.stream_id, wait: options.wait() };
    Ok(StreamPlan {
        interface: options.interface.clone(),
        class: options.class.into(),
        format: options.format.into(),
        talk: (options.side != Some(StreamSide::Listen)).then_some(talk),
        listen: (options.side != Some(StreamSide::Talk)).then_some(listen),
        nic: options.nic.clone().unwrap_or_default(),
    })
}

/// With both ends here, the listener is on another CPU than the talker where there is one.
fn listen_cpu(options: &Stream, root: &Root, talk_cpu: u32) -> anyhow::Result<u32> {
    let asked = options.listen_cpu.map(|cpu| CpuList::from_iter([cpu]));
    let usable = usable_cpus(root, asked.as_ref())?;
    let mut others = usable.iter().filter(|&cpu| cpu != talk_cpu || asked.is_some());
    Ok(others.next_back().unwrap_or(talk_cpu))
}

/// Measures the wake-ups of the talker alone, and takes the offset from them.
fn calibrate(plan: &Plan, options: &Stream) -> anyhow::Result<Calibration> {
    let talk = options.common.talk;
    if !talk.quiet {
        eprintln!("offset  5 s of wake-ups tell which one this machine needs");
    }
    let mut plan = Plan {
        blame: blame::Asked::Only(record::BlameMode::Off),
        stop_on: None,
        timerlat: false,
        profiles: Vec::new(),
        record_path: None,
        ..plan.clone()
    };
    plan.phases.iter_mut().for_each(|phase| phase.length = Length::Duration(CALIBRATION_NS));
    let record = output::measure(&plan, talk)?;
    let series = record.series.first().context("no wake-up was measured")?;
    Ok(analysis::stream::calibrate(series))
}

/// Adds what follows from the run to its record.
fn tell(record: &mut Record, calibration: Option<&Calibration>) {
    for series in &mut record.series {
        if let Some(record::Stream::Talker(talker)) = &mut series.stream {
            talker.calibration = calibration.cloned();
        }
    }
    analysis::stream::fill(record);
}
