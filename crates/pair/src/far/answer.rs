//! Answers datagrams for round trip measurements.

use std::{io, net::SocketAddr, path::PathBuf};

use campaign::{
    AnswerPlan, Answering, SELF_EXE,
    probe::{best_cpu, round_trip::Xdp},
};
use machine::{CpuList, Root};
use probes::round_trip::EchoSettings;
use record::FarAsked;
use sys::{signal, udp::DatagramSocket};

use super::common::{self, Failure, TICK};
use crate::{
    channel::Channel,
    protocol::{EchoTask, Results, ToFar, ToNear},
};

/// Answers datagrams until the near end ends the measurement.
pub fn answer(channel: &Channel<ToFar>, ask: &EchoTask, asked: &FarAsked) -> Result<Results, Failure> {
    let plan = plan(ask, asked)?;
    let mut answering = Answering::start(bind(ask.bind)?, &plan, &Root::system())?;
    let refused = answering.record().validity.reasons.clone();
    channel.send(&ToNear::Ready { address: Some(answering.address()), refused });
    loop {
        answering.check();
        match channel.receive(TICK)? {
            Some(ToFar::End { .. }) => break,
            _ if signal::termination_requests() > 0 => {
                let signal = signal::ending_signal().unwrap_or_else(|| "a lost connection".to_owned());
                return Err(format!("{signal} ended it: run again").into());
            }
            _ => {}
        }
    }
    let (record, answered) = answering.finish();
    Ok(Results { record, answered: Some(answered), clocks: None })
}

fn plan(ask: &EchoTask, asked: &FarAsked) -> Result<AnswerPlan, Failure> {
    let shield: Option<CpuList> = asked.shield.as_deref().map(str::parse).transpose()?;
    // With a shield, the answering thread needs a fixed CPU inside it.
    let shielded_cpu = || shield.as_ref().and_then(|shield| best_cpu(shield, shield));
    Ok(AnswerPlan {
        settings: EchoSettings { cpu: asked.cpu.or_else(shielded_cpu), policy: asked.policy.parse()? },
        loads: asked.loads.iter().map(|load| load.parse()).collect::<Result<_, _>>()?,
        load_cpus: asked.load_cpus.as_deref().map(str::parse).transpose()?,
        hold_cpu_awake: asked.hold_cpu_awake,
        nic: common::nic(asked)?,
        xdp: asked.transport.as_deref().map(|mode| xdp(mode, asked.queue)).transpose()?,
        asking: ask.asking,
        executable: PathBuf::from(SELF_EXE),
        shield,
    })
}

fn xdp(mode: &str, queue: Option<u32>) -> Result<Xdp, String> {
    Ok(Xdp { mode: mode.parse()?, queue: queue.unwrap_or_default() })
}

/// Binds the requested port, or another one if it is in use.
fn bind(address: SocketAddr) -> Result<DatagramSocket, String> {
    let bound = DatagramSocket::bind(address).or_else(|error| match error.kind() {
        io::ErrorKind::AddrInUse => DatagramSocket::bind(SocketAddr::new(address.ip(), 0)),
        _ => Err(error),
    });
    bound.map_err(|error| format!("cannot answer on {address} ({error}): give an address of this machine with --to"))
}
