//! `punctual measure udp`, `punctual measure ping` and `punctual measure round-trip`.

use campaign::{
    Cores, Length, Plan, Probe,
    probe::{
        Definition, PlacementContext, RoundTripProbe, choose_cpu, quiet_cpus,
        round_trip::{Address, AddressError, MacAddress, Peer},
    },
};
use machine::{Root, usable_cpus};
use probes::round_trip::Frames;
use record::Record;
use sys::udp::Stamps;

use super::Results;
use crate::{
    cli::{Ping, RoundTrip, RoundTripOptions, Udp},
    exit::Usage,
    output,
};

pub fn udp(options: &Udp) -> anyhow::Result<u8> {
    measure(&options.shared, to_echo(options)?)
}

pub fn ping(options: &Ping) -> anyhow::Result<u8> {
    measure(&options.shared, to_device(options)?)
}

pub fn mirror(options: &RoundTrip) -> anyhow::Result<u8> {
    measure(&options.shared, to_mirror(options)?)
}

/// The probe of `measure udp`, with its peer.
pub fn to_echo(options: &Udp) -> anyhow::Result<RoundTripProbe> {
    let peer = options.peer.as_deref().map_or(Ok(Peer::Own), |text| resolve(text).map(Peer::Echo))?;
    let &Udp { allow_fragments, echo_policy, echo_cpu, .. } = options;
    let xdp = options.transport.xdp()?;
    Ok(RoundTripProbe { peer, allow_fragments, echo_policy, echo_cpu, xdp, ..RoundTripProbe::default() })
}

/// The probe of `measure ping`, with its peer.
pub fn to_device(options: &Ping) -> anyhow::Result<RoundTripProbe> {
    options.peer.resolve()?;
    let (peer, allow_fragments) = (Peer::Device(options.peer.clone()), options.allow_fragments);
    Ok(RoundTripProbe { peer, allow_fragments, ..RoundTripProbe::default() })
}

/// The probe of `measure round-trip`, with its peer.
pub fn to_mirror(options: &RoundTrip) -> anyhow::Result<RoundTripProbe> {
    let &RoundTrip { ethertype, vlan: vlan_id, priority, .. } = options;
    let frames = Frames { ethertype, vlan_id, priority };
    let peer = match (&options.interface, options.to) {
        (Some(interface), Some(MacAddress(to))) => Peer::Mirror { interface: interface.clone(), to, frames },
        _ => Peer::OwnMirror(frames),
    };
    let classes = options.classes.iter().map(|spec| spec.with(frames, options.shared.size)).collect();
    let &RoundTrip { echo_policy, echo_cpu, .. } = options;
    let xdp = options.transport.xdp()?;
    Ok(RoundTripProbe { peer, classes, echo_policy, echo_cpu, xdp, ..RoundTripProbe::default() })
}

fn measure(options: &RoundTripOptions, with_peer: RoundTripProbe) -> anyhow::Result<u8> {
    let ready = Ready::prepare(options, with_peer)?;
    let record = output::measure(&ready.plan()?, options.common.output)?;
    ready.deliver(record)
}

/// A checked measurement of round trips.
pub struct Ready<'a> {
    options: &'a RoundTripOptions,
    results: Results<'a>,
    others: Vec<(String, Record)>,
    /// The probe.
    pub probe: RoundTripProbe,
}

impl<'a> Ready<'a> {
    /// Checks the options before anything is opened. `with_peer` contains the peer, or the settings of the echo thread.
    pub fn prepare(options: &'a RoundTripOptions, with_peer: RoundTripProbe) -> anyhow::Result<Self> {
        let probe = RoundTripProbe {
            period_ns: options.period,
            payload_bytes: options.size,
            timeout_ns: options.timeout,
            max_rate: options.max_rate,
            receive_policy: options.receive_policy,
            wait: options.wait(),
            stamps: match options.stamps {
                Some(which) => which.into(),
                // AF_XDP has none.
                None if with_peer.xdp.is_some() => Stamps::None,
                None => Stamps::default(),
            },
            ..with_peer
        };
        probe.check().map_err(|error| Usage(error.to_string()))?;
        let results = Results::prepare(&options.common)?;
        let others = output::find_references(&options.against)?;
        output::find_profiles(&options.profiles)?;
        Ok(Self { options, results, others, probe })
    }

    /// The plan, with a CPU for each thread.
    pub fn plan(&self) -> anyhow::Result<Plan> {
        let options = self.options;
        let root = Root::system();
        let usable = usable_cpus(&root, None)?;
        let shield = options.placement.shield.as_ref();
        let isolated = quiet_cpus(&root, shield);
        let send = choose_cpu(&root, options.cpu, shield, Cores::Linux)?;
        let receive = options.receive_cpu.unwrap_or(send);
        let mut probe = self.probe.clone();
        let named = [send, receive].into_iter().chain(probe.echo_cpu).collect();
        probe.place(named, &PlacementContext { usable: &usable, isolated: &isolated, policy: Some(options.policy) });
        let of_classes = probe.classes.iter().filter_map(|class| class.cpu).collect::<Vec<_>>();
        let length = options.samples.map_or_else(|| super::length(&options.common), Length::Samples);
        let phase = super::phase(&options.common, probe.period_ns(), length, probe.threads(options.policy));
        Ok(Plan {
            cpus: Some([send, receive].into_iter().chain(of_classes).collect()),
            shield: options.placement.shield.clone(),
            policy: options.policy,
            threshold_ns: options.threshold,
            profiles: options.profiles.clone(),
            until_decided: super::until_decided(options.until_decided, &options.profiles)?,
            nic: options.nic.plan(),
            ..super::plan(&options.common, &self.results.files, Probe::RoundTrip(Box::new(probe)), vec![phase])?
        })
    }

    /// Judges, writes and prints the record, and returns the exit status.
    pub fn deliver(&self, mut record: Record) -> anyhow::Result<u8> {
        output::judge(&mut record, &self.options.profiles)?;
        output::compare_with(&mut record, &self.others);
        self.results.deliver(&record, |style, width| report::terminal::summary(&record, style, width))?;
        Ok(output::status(&record))
    }
}

/// Parses and resolves the address of the peer.
fn resolve(text: &str) -> anyhow::Result<Address> {
    let address: Address = text.parse().map_err(|error: AddressError| Usage(error.to_string()))?;
    Ok(address.resolve()?.into())
}
