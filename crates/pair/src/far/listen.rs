//! Listens to a stream at the far end.

use std::{path::PathBuf, time::Duration};

use campaign::{
    Cores, Length, PhasePlan, Plan, Probe, SELF_EXE,
    probe::{StreamProbe, choose_cpu, stream::StreamEnds},
};
use frames::Class;
use machine::{CpuList, Root};
use probes::{
    ReceiveWait,
    stream::{listener::NamedStream, remote::RemoteTalker},
};
use record::{FarAsked, Record};

use super::common::{self, Failure, TICK};
use crate::{
    channel::Channel,
    protocol::{ListenTask, NamedTask, Results, ToFar, ToNear},
};

/// Listens to a stream until its talker has ended.
pub fn listen(channel: &Channel<ToFar>, ask: &ListenTask, asked: &FarAsked) -> Result<Results, Failure> {
    let root = Root::system();
    let talker = RemoteTalker::new(ask.tie);
    let plan = plan(ask, asked, &root, talker.clone())?;
    let mut ready = false;
    let watch = &mut |record: &Record, _: &campaign::Progress| {
        if !ready {
            channel.send(&ToNear::Ready { address: None, refused: record.validity.reasons.clone() });
            ready = true;
        }
        if let Ok(Some(ToFar::End { sent })) = channel.receive(Duration::ZERO) {
            talker.end(sent);
        }
    };
    let record = campaign::run(&plan, &root, watch)?;
    Ok(Results { record, answered: None, clocks: Some(machine::clocks::read(&root).unwrap_or_default()) })
}

fn named(task: NamedTask) -> NamedStream {
    let NamedTask { name, stream_id, period_ns, transit_ns } = task;
    NamedStream { name, stream_id, period_ns, transit_ns }
}

fn plan(ask: &ListenTask, asked: &FarAsked, root: &Root, talker: RemoteTalker) -> Result<Plan, Failure> {
    let list = |text: &Option<String>| text.as_deref().map(str::parse::<CpuList>).transpose();
    let shield = list(&asked.shield)?;
    let cpu = choose_cpu(root, asked.cpu, shield.as_ref(), Cores::Linux)?;
    let stream = StreamProbe {
        ends: StreamEnds::Listen(ask.interface.clone()),
        class: if ask.class_b { Class::B } else { Class::A },
        period_ns: Some(ask.period_ns),
        stream_id: Some(ask.stream_id),
        heard: ask.named.iter().cloned().map(named).collect(),
        wait: ReceiveWait::of(ask.spin, ask.busy_poll_ns),
        xdp: asked.receive.as_deref().map(str::parse).transpose()?,
        talker_elsewhere: Some(talker),
        queue: asked.queue.unwrap_or_default(),
        listen_cpu: Some(cpu),
        ..StreamProbe::default()
    };
    let phase = PhasePlan {
        name: "listen".to_owned(),
        period_ns: ask.period_ns,
        length: Length::UntilStopped,
        loads: asked.loads.iter().map(|load| load.parse()).collect::<Result<_, _>>()?,
        threads: Vec::new(),
    };
    Ok(Plan {
        cpus: Some(CpuList::from_iter([cpu])),
        load_cpus: list(&asked.load_cpus)?,
        policy: asked.policy.parse()?,
        clock: ask.clock.parse()?,
        shield,
        hold_cpu_awake: asked.hold_cpu_awake,
        nic: common::nic(asked)?,
        // A listener has no deadlines that it could miss.
        blame: blame::BlameMode::Off,
        blame_cost: false,
        executable: PathBuf::from(SELF_EXE),
        watch_every: Some(TICK),
        ..Plan::new(Probe::Stream(Box::new(stream)), vec![phase])
    })
}
