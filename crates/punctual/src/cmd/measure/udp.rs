//! `punctual measure udp`.

use campaign::{
    Length, Plan, Probe,
    probe::{
        Definition, Places, UdpProbe, best_cpu,
        udp::{Address, AddressError},
    },
};
use machine::{Root, isolated_cpus, usable_cpus};
use record::Record;

use super::Results;
use crate::{
    cli::{Asking, Udp},
    exit::Usage,
    output,
};

pub fn run(options: &Udp) -> anyhow::Result<u8> {
    let peer = options.peer.as_deref().map(find).transpose()?;
    let echo = UdpProbe { peer, echo_policy: options.echo_policy, echo_cpu: options.echo_cpu, ..UdpProbe::default() };
    let ready = Ready::prepare(&options.how, echo)?;
    let record = output::measure(&ready.plan()?, options.how.common.talk)?;
    ready.deliver(record)
}

/// Round trips that are ready to run.
pub struct Ready<'a> {
    how: &'a Asking,
    results: Results<'a>,
    others: Vec<(String, Record)>,
    /// What is measured.
    pub probe: UdpProbe,
}

impl<'a> Ready<'a> {
    /// Checks all that can be refused before anything is opened; `echo` says who answers.
    pub fn prepare(how: &'a Asking, echo: UdpProbe) -> anyhow::Result<Self> {
        let probe = UdpProbe {
            period_ns: how.period,
            payload_bytes: how.size,
            allow_fragments: how.allow_fragments,
            timeout_ns: how.timeout,
            max_rate: how.max_rate,
            receive_policy: how.receive_policy,
            wait: how.wait(),
            stamps: how.stamps.into(),
            ..echo
        };
        probe.check().map_err(|error| Usage(error.to_string()))?;
        let results = Results::prepare(&how.common)?;
        let others = output::find_references(&how.against)?;
        output::find_profiles(&how.profiles)?;
        Ok(Self { how, results, others, probe })
    }

    /// The plan, with each thread on its CPU.
    pub fn plan(&self) -> anyhow::Result<Plan> {
        let how = self.how;
        let root = Root::system();
        let usable = usable_cpus(&root, None)?;
        let isolated = how.placement.shield.clone().unwrap_or_else(|| isolated_cpus(&root));
        let send = how.cpu.or_else(|| best_cpu(&usable, &isolated)).unwrap_or_default();
        let receive = how.receive_cpu.unwrap_or(send);
        let mut probe = self.probe.clone();
        let named = [send, receive].into_iter().chain(probe.echo_cpu).collect();
        probe.place(named, &Places { usable: &usable, isolated: &isolated, policy: Some(how.policy) });
        let length = how.samples.map_or_else(|| super::length(&how.common), Length::Samples);
        let phase = super::phase(&how.common, how.period, length, probe.threads(how.policy));
        Ok(Plan {
            cpus: Some([send, receive].into_iter().collect()),
            shield: how.placement.shield.clone(),
            policy: how.policy,
            threshold_ns: how.threshold,
            profiles: how.profiles.clone(),
            nic: how.nic.plan(),
            ..super::plan(&how.common, &self.results.kept, Probe::Udp(Box::new(probe)), vec![phase])?
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

/// The peer, found before anything is opened.
fn find(text: &str) -> anyhow::Result<Address> {
    let address: Address = text.parse().map_err(|error: AddressError| Usage(error.to_string()))?;
    Ok(address.resolve()?.into())
}
