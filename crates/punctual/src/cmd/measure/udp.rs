//! `punctual measure udp`.

use campaign::{
    Length, Peer, PhasePlan, Plan, Probe, ThreadPlan, UdpPlan, threads,
    udp::{Address, AddressError, echo_cpu},
};
use machine::{CpuList, Root, isolated_cpus, usable_cpus};
use probes::udp::EchoSettings;
use record::Record;
use sys::udp::ONE_FRAME;

use super::Results;
use crate::{
    cli::{Asking, Udp},
    exit::Usage,
    output,
};

pub fn run(options: &Udp) -> anyhow::Result<u8> {
    let ready = Ready::prepare(&options.how)?;
    let plan = ready.plan(peer(options, &ready.places)?)?;
    let record = output::measure(&plan, options.how.common.talk)?;
    ready.deliver(record)
}

/// Round trips that are ready to run.
pub struct Ready<'a> {
    how: &'a Asking,
    results: Results<'a>,
    others: Vec<(String, Record)>,
    places: Places,
}

/// Where the threads of the asking end are.
struct Places {
    usable: CpuList,
    quiet: CpuList,
    send: u32,
    receive: u32,
}

impl<'a> Ready<'a> {
    /// Checks all that can be refused before anything is opened.
    pub fn prepare(how: &'a Asking) -> anyhow::Result<Self> {
        check(how)?;
        let results = Results::prepare(&how.common)?;
        let others = output::find_references(&how.against)?;
        output::find_profiles(&how.profiles)?;
        let root = Root::system();
        let usable = usable_cpus(&root, None)?;
        let quiet = how.placement.shield.clone().unwrap_or_else(|| isolated_cpus(&root));
        let send = how.cpu.or_else(|| threads::best_cpu(&usable, &quiet)).unwrap_or_default();
        let receive = how.receive_cpu.unwrap_or(send);
        Ok(Self { how, results, others, places: Places { usable, quiet, send, receive } })
    }

    /// What is to run, with this peer.
    pub fn plan(&self, peer: Peer) -> anyhow::Result<Plan> {
        let (how, &Places { send, receive, .. }) = (self.how, &self.places);
        let loads = super::loads(&how.common);
        let sender = ThreadPlan { role: "sender".to_owned(), cpu: send, policy: how.policy, period_ns: how.period };
        let phase = PhasePlan {
            name: super::phase_name(&loads),
            period_ns: how.period,
            length: how.samples.map_or_else(|| super::length(&how.common), Length::Samples),
            loads,
            threads: vec![sender],
        };
        let udp = UdpPlan {
            peer,
            payload_bytes: how.size,
            timeout_ns: how.timeout,
            cpu: receive,
            policy: how.receive_policy,
            wait: how.wait(),
            stamps: how.stamps.into(),
            allow_fragments: how.allow_fragments,
        };
        Ok(Plan {
            probe: Probe::Udp(Box::new(udp)),
            cpus: Some([send, receive].into_iter().collect()),
            shield: how.placement.shield.clone(),
            policy: how.policy,
            threshold_ns: how.threshold,
            profiles: how.profiles.clone(),
            nic: how.nic.plan(),
            ..super::plan(&how.common, &self.results.kept, vec![phase])?
        })
    }

    /// Judges what was seen, and hands it to the user; answers the exit status.
    pub fn deliver(&self, mut record: Record) -> anyhow::Result<u8> {
        output::judge(&mut record, &self.how.profiles)?;
        output::lay_beside(&mut record, &self.others);
        self.results.deliver(&record, |style, width| report::terminal::summary(&record, style, width))?;
        Ok(output::status(&record))
    }
}

/// What can be refused before anything is opened.
fn check(how: &Asking) -> Result<(), Usage> {
    if how.size > ONE_FRAME && !how.allow_fragments {
        let text = format!(
            "{} bytes do not fit into one Ethernet frame: use --size {ONE_FRAME} or less, or --allow-fragments",
            how.size
        );
        return Err(Usage(text));
    }
    if how.max_rate.saturating_mul(how.period) < 1_000_000_000 {
        let rate = 1_000_000_000_u64.div_ceil(how.period);
        let text = format!(
            "a datagram every {} ns is more than {} a second: use a longer --period, or ask for it with --max-rate {rate}",
            how.period, how.max_rate
        );
        return Err(Usage(text));
    }
    Ok(())
}

/// Who answers.
fn peer(options: &Udp, places: &Places) -> anyhow::Result<Peer> {
    let Places { usable, quiet, send, receive } = places;
    Ok(match &options.peer {
        Some(peer) => Peer::At(find(peer)?),
        None => {
            let taken: CpuList = [*send, *receive].into_iter().collect();
            let cpu = options.echo_cpu.or_else(|| echo_cpu(usable, quiet, &taken));
            Peer::Own(EchoSettings { cpu: cpu.or(Some(*send)), policy: options.echo_policy })
        }
    })
}

/// The peer, found before anything is opened.
fn find(text: &str) -> anyhow::Result<Address> {
    let address: Address = text.parse().map_err(|error: AddressError| Usage(error.to_string()))?;
    Ok(address.resolve()?.into())
}
