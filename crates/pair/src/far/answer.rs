//! The answering end of round trips.

use std::{io, net::SocketAddr, path::PathBuf};

use campaign::{AnswerPlan, Answering, SELF_EXE, probe::best_cpu};
use machine::{CpuList, Root};
use probes::udp::EchoSettings;
use record::FarAsked;
use sys::{signal, udp::DatagramSocket};

use super::common::{self, Failure, TICK};
use crate::{
    channel::Channel,
    protocol::{AskEcho, Saw, ToFar, ToNear},
};

/// Answers datagrams until the near end has ended.
pub fn answer(channel: &Channel<ToFar>, ask: &AskEcho, asked: &FarAsked) -> Result<Saw, Failure> {
    let plan = plan(ask, asked)?;
    let answering = Answering::start(bind(ask.bind)?, &plan, &Root::system())?;
    let refused = answering.record().validity.reasons.clone();
    channel.say(&ToNear::Ready { address: Some(answering.address()), refused });
    loop {
        match channel.hear(TICK)? {
            Some(ToFar::End { .. }) => break,
            _ if signal::termination_requests() > 0 => return Err("it was ended by a signal".into()),
            _ => {}
        }
    }
    let (record, answered) = answering.finish();
    Ok(Saw { record, answered: Some(answered), clocks: None })
}

fn plan(ask: &AskEcho, asked: &FarAsked) -> Result<AnswerPlan, Failure> {
    let shield: Option<CpuList> = asked.shield.as_deref().map(str::parse).transpose()?;
    // One that wanders would wander about the shield.
    let quiet = || shield.as_ref().and_then(|shield| best_cpu(shield, shield));
    Ok(AnswerPlan {
        settings: EchoSettings { cpu: asked.cpu.or_else(quiet), policy: asked.policy.parse()? },
        loads: asked.loads.iter().map(|load| load.parse()).collect::<Result<_, _>>()?,
        load_cpus: asked.load_cpus.as_deref().map(str::parse).transpose()?,
        hold_cpu_awake: asked.hold_cpu_awake,
        nic: common::nic(asked)?,
        asking: ask.asking,
        executable: PathBuf::from(SELF_EXE),
        shield,
    })
}

/// The port asked for, or another where it is taken.
fn bind(asked: SocketAddr) -> Result<DatagramSocket, String> {
    let bound = DatagramSocket::bind(asked).or_else(|error| match error.kind() {
        io::ErrorKind::AddrInUse => DatagramSocket::bind(SocketAddr::new(asked.ip(), 0)),
        _ => Err(error),
    });
    bound.map_err(|error| format!("cannot answer on {asked} ({error}): name an address of this machine with --to"))
}
