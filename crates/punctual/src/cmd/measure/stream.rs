//! `punctual measure stream`.

use anyhow::Context;
use campaign::{
    Length, ListenPlan, PhasePlan, Plan, PlanError, Probe, StreamPlan, TalkPlan, ThreadPlan, TransmitMode,
    WakeupOffset, threads,
};
use machine::{CpuList, Root, isolated_cpus, usable_cpus};
use sys::{clock::Clock, sched::Policy};

use super::Results;
use crate::{
    cli::{Stream, StreamMode, StreamSide},
    exit::Usage,
    output,
};

pub fn run(options: &Stream) -> anyhow::Result<u8> {
    let (common, wake_ups) = (&options.common, &options.wake_ups);
    check(options)?;
    let results = Results::prepare(common)?;
    let others = output::find_references(&wake_ups.against)?;
    output::find_profiles(&wake_ups.profiles)?;
    let stream = stream(options)?;
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
    let plan = Plan {
        cpus: Some(cpus.collect()),
        probe: Probe::Stream(Box::new(stream)),
        shield: options.placement.shield.clone(),
        policy: options.policy,
        ..wake_ups.apply(Plan { clock: clock(options), ..super::plan(common, &results.kept, vec![phase])? })
    };
    if options.wakeup_offset == Some(WakeupOffset::Auto) && !common.talk.quiet {
        eprintln!("offset  5 s of wake-ups tell which one this machine needs");
    }
    let mut record = output::measure(&plan, common.talk)?;
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
    if options.busy_poll.is_some() && options.xdp().is_some() {
        return Err(Usage(
            "--busy-poll is for --receive socket: with xdp use --spin, which looks at the ring".to_owned(),
        ));
    }
    if options.queue.is_some() && options.xdp().is_none() {
        return Err(Usage("--queue is for xdp: leave it out, or add --receive xdp".to_owned()));
    }
    if matches!(options.policy, Policy::Deadline { .. }) {
        return Err(Usage(PlanError::StreamDeadline.to_string()));
    }
    Ok(())
}

/// The clock of the slots, where none is asked for.
fn clock(options: &Stream) -> Clock {
    if options.mode == Some(StreamMode::Txtime) { Clock::Tai } else { Clock::Monotonic }
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
        offset: options.wakeup_offset.unwrap_or_default(),
        mode: options.mode.map(TransmitMode::from).unwrap_or_default(),
        unique_id: options.unique_id.unwrap_or_default(),
    };
    let listen_cpu = if options.own { listen_cpu(options, &root, cpu)? } else { cpu };
    let listen = ListenPlan { cpu: listen_cpu, stream_id: options.stream_id, wait: options.wait(), xdp: options.xdp() };
    Ok(StreamPlan {
        interface: options.interface.clone(),
        class: options.class.into(),
        format: options.format.into(),
        talk: (options.side != Some(StreamSide::Listen)).then_some(talk),
        listen: (options.side != Some(StreamSide::Talk)).then_some(listen),
        queue: options.queue.unwrap_or_default(),
        nic: options.nic.clone().unwrap_or_default(),
    })
}

/// With both ends here, the listener is on another CPU than the talker where there is one.
fn listen_cpu(options: &Stream, root: &Root, talk_cpu: u32) -> anyhow::Result<u32> {
    let asked = options.listen_cpu.map(|cpu| CpuList::from_iter([cpu]));
    let usable = usable_cpus(root, asked.as_ref())?;
    Ok(options.listen_cpu.unwrap_or_else(|| campaign::stream::listen_cpu(&usable, talk_cpu)))
}
