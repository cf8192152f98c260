//! `punctual measure udp`.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs};

use anyhow::{Context, anyhow};
use campaign::{Length, Peer, PhasePlan, Plan, Probe, ThreadPlan, UdpPlan, threads, udp::UDP_PORT};
use machine::{CpuList, Root, isolated_cpus, usable_cpus};
use probes::udp::{EchoSettings, Receive};
use sys::udp::ONE_FRAME;

use super::Results;
use crate::{cli::Udp, exit::Usage, output};

pub fn run(options: &Udp) -> anyhow::Result<u8> {
    let common = &options.common;
    check(options)?;
    let results = Results::prepare(common)?;
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
        ..super::plan(common, &results.kept, vec![phase])?
    };
    let mut record = output::measure(&plan, common.talk)?;
    output::judge(&mut record, &[])?;
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
        Some(peer) => Peer::At(resolve(peer)?),
        None => {
            let free = usable.difference(&taken);
            let others = Some(free.difference(&quiet)).filter(|others| !others.is_empty()).unwrap_or(free);
            let cpu = options.echo_cpu.or(others.first()).unwrap_or(send_cpu);
            Peer::Own(EchoSettings { cpu: Some(cpu), policy: options.echo_policy })
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

/// The address of `HOST[:PORT]`; an address of version 6 with a port stands in brackets.
fn resolve(text: &str) -> anyhow::Result<SocketAddr> {
    let (host, port) = match text.rsplit_once(':') {
        _ if text.parse::<IpAddr>().is_ok() => (text, UDP_PORT),
        Some((host, port)) => (host, port.parse().map_err(|_| bad_port(text))?),
        None => (text, UDP_PORT),
    };
    if port == 0 {
        return Err(bad_port(text).into());
    }
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let mut found = (host, port).to_socket_addrs().with_context(|| {
        format!("no machine is known as `{host}`: use its address, or check with `getent hosts {host}`")
    })?;
    found.next().ok_or_else(|| anyhow!("`{host}` has no address: use an address itself, as 192.0.2.1"))
}

fn bad_port(text: &str) -> Usage {
    Usage(format!(
        "`{text}` has no port of 1 to 65535 behind its colon: write HOST, HOST:{UDP_PORT} or [ADDRESS]:{UDP_PORT}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_and_ports_as_people_write_them() {
        for (text, expected) in [
            ("127.0.0.1", "127.0.0.1:7125"),
            ("127.0.0.1:9", "127.0.0.1:9"),
            ("::1", "[::1]:7125"),
            ("[::1]:9", "[::1]:9"),
        ] {
            assert_eq!(resolve(text).unwrap().to_string(), expected);
        }
        for text in ["127.0.0.1:0", "127.0.0.1:", "host:x", "host:65536"] {
            let error = resolve(text).unwrap_err();
            assert!(error.is::<Usage>() && error.to_string().contains("1 to 65535"), "{text}: {error}");
        }
    }
}
