//! `punctual measure udp`.

use campaign::{
    Length, Peer, PhasePlan, Plan, Probe, ThreadPlan, UdpPlan, threads,
    udp::{Address, AddressError, echo_cpu},
};
use machine::{CpuList, Root, isolated_cpus, usable_cpus};
use probes::udp::{EchoSettings, Receive};
use sys::udp::ONE_FRAME;

use super::Results;
use crate::{cli::Udp, exit::Usage, output};

pub fn run(options: &Udp) -> anyhow::Result<u8> {
    let common = &options.common;
    check(options)?;
    let results = Results::prepare(common)?;
    let others = output::find_references(&options.against)?;
    output::find_profiles(&options.profiles)?;
    let (send_cpu, receive_cpu, udp) = placed(options)?;
    let loads = super::loads(common);
    let phase = PhasePlan {
        name: super::phase_name(&loads),
        period_ns: options.period,
        length: options.samples.map_or_else(|| super::length(common), Length::Samples),
        loads,
        threads: vec![ThreadPlan {
            role: "sender".to_owned(),
            cpu: send_cpu,
            policy: options.policy,
            period_ns: options.period,
        }],
    };
    let plan = Plan {
        probe: Probe::Udp(Box::new(udp)),
        cpus: Some([send_cpu, receive_cpu].into_iter().collect()),
        shield: options.placement.shield.clone(),
        policy: options.policy,
        threshold_ns: options.threshold,
        profiles: options.profiles.clone(),
        ..super::plan(common, &results.kept, vec![phase])?
    };
    let mut record = output::measure(&plan, common.talk)?;
    output::judge(&mut record, &options.profiles)?;
    output::lay_beside(&mut record, &others);
    results.deliver(&record, |style, width| report::terminal::summary(&record, style, width))?;
    Ok(output::status(&record))
}

/// What can be refused before anything is opened.
fn check(options: &Udp) -> Result<(), Usage> {
    if options.size > ONE_FRAME && !options.allow_fragments {
        let text = format!(
            "{} bytes do not fit into one Ethernet frame: use --size {ONE_FRAME} or less, or --allow-fragments",
            options.size
        );
        return Err(Usage(text));
    }
    if options.max_rate.saturating_mul(options.period) < 1_000_000_000 {
        let rate = 1_000_000_000_u64.div_ceil(options.period);
        let text = format!(
            "a datagram every {} ns is more than {} a second: use a longer --period, or ask for it with --max-rate {rate}",
            options.period, options.max_rate
        );
        return Err(Usage(text));
    }
    Ok(())
}

/// The CPUs of the sending and of the receiving thread, and the rest of what is asked for.
fn placed(options: &Udp) -> anyhow::Result<(u32, u32, UdpPlan)> {
    let root = Root::system();
    let usable = usable_cpus(&root, None)?;
    let quiet = options.placement.shield.clone().unwrap_or_else(|| isolated_cpus(&root));
    let send_cpu = options.cpu.or_else(|| threads::best_cpu(&usable, &quiet)).unwrap_or_default();
    let receive_cpu = options.receive_cpu.unwrap_or(send_cpu);
    let taken: CpuList = [send_cpu, receive_cpu].into_iter().collect();
    let peer = match &options.peer {
        Some(peer) => Peer::At(find(peer)?),
        None => {
            let cpu = options.echo_cpu.or_else(|| echo_cpu(&usable, &quiet, &taken));
            Peer::Own(EchoSettings { cpu: cpu.or(Some(send_cpu)), policy: options.echo_policy })
        }
    };
    let udp = UdpPlan {
        peer,
        payload_bytes: options.size,
        timeout_ns: options.timeout,
        cpu: receive_cpu,
        policy: options.receive_policy,
        receive: options.busy_poll.map_or(options.receive, Receive::BusyPoll),
        stamps: options.stamps.into(),
        allow_fragments: options.allow_fragments,
    };
    Ok((send_cpu, receive_cpu, udp))
}

/// The peer, found before anything is opened.
fn find(text: &str) -> anyhow::Result<Address> {
    let address: Address = text.parse().map_err(|error: AddressError| Usage(error.to_string()))?;
    Ok(address.resolve()?.into())
}
