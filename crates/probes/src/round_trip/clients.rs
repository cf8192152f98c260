//! The near end of a run: its traffic classes, each with a sending and a receiving thread, and the peer if it is part of
//! this process.

use std::{
    hash::{BuildHasher, RandomState},
    io, process,
    sync::atomic::Ordering::Relaxed,
    time::{Duration, Instant},
};

use record::{Caveat, Reason, Series};

use super::{Carrier, Client, Echo, Port, RECEIVE_TIMEOUT, RoundTripError, Settings, headers::UdpPath};
use crate::probe_threads::{Overdue, ProbeThreads, ThreadInfo, Work};

/// The near end of round trips. Timer number n sends for class number n.
pub struct Clients {
    classes: Vec<Client>,
    /// The peer, if it is part of this process.
    echo: Option<Echo>,
}

impl Clients {
    /// Configures the socket of each traffic class, greets the peer, and starts the receiving threads. `echo` is the peer,
    /// if it is part of this process.
    ///
    /// # Errors
    /// [`RoundTripError`]. A peer that does not answer is not an error, because it may start later.
    pub fn prepare(classes: Vec<(Port, Settings)>, echo: Option<Echo>) -> Result<Self, RoundTripError> {
        #[expect(clippy::cast_possible_truncation, reason = "any 32 bits of the hash serve as a random number")]
        let run = RandomState::new().hash_one(process::id()) as u32;
        let prepare = |(port, settings)| Client::prepare(port, run, settings);
        let classes = classes.into_iter().map(prepare).collect::<Result<_, _>>()?;
        Ok(Self { classes, echo })
    }

    /// The reason why no frame of some classes came back from a mirror; `None` if some came of each.
    fn silent_mirror(&self) -> Option<Reason> {
        let is_ethernet = |client: &&Client| matches!(client.settings.carrier, Carrier::Ethernet { .. });
        let is_silent = |client: &&Client| client.is_silent() && client.all_late().is_none();
        let silent: Vec<&Client> = self.classes.iter().filter(is_ethernet).filter(is_silent).collect();
        let first = silent.first()?;
        let peer = first.settings.carrier;
        let error = silent.iter().map(|client| client.shared.sending.error.load(Relaxed)).find(|error| *error != 0);
        let why = error.map_or_else(String::new, |error| format!(": {}", io::Error::from_raw_os_error(error)));
        let text = if silent.len() == self.classes.len() {
            format!("no frame came back from {peer}{why}: start `punctual mirror` there")
        } else {
            let names: Vec<&str> = silent.iter().map(|client| client.settings.class.role.as_str()).collect();
            let names = names.join(", ");
            format!(
                "no frame of {names} came back from {peer}{why}: the mirror does not answer its EtherType, or it was lost"
            )
        };
        let mut ethertypes: Vec<u16> =
            self.classes.iter().filter_map(|client| client.settings.carrier.ethertype()).collect();
        ethertypes.sort_unstable();
        ethertypes.dedup();
        let options: String = ethertypes.iter().map(|ethertype| format!(" --ethertype 0x{ethertype:04x}")).collect();
        Some(Reason {
            id: "round-trip.silent".to_owned(),
            text,
            remedy: format!("punctual mirror IF{options}   # at {peer}"),
        })
    }
}

impl ProbeThreads for Clients {
    fn work(&mut self, index: usize) -> Option<Box<dyn Work>> {
        self.classes.get_mut(index).and_then(Client::work)
    }

    fn threads(&self) -> Vec<ThreadInfo<'_>> {
        let receivers = self.classes.iter().map(Client::thread_info);
        receivers.chain(self.echo.iter().map(Echo::thread_info)).collect()
    }

    fn collect(&mut self) {
        self.classes.iter_mut().for_each(Client::collect);
    }

    fn finish(&mut self) {
        let timeout = self.classes.iter().map(Client::longest_flight).max().unwrap_or_default();
        let began = Instant::now();
        while !self.classes.iter().all(Client::is_settled) && began.elapsed() < timeout {
            std::thread::sleep(Duration::from_millis(2));
            self.collect();
        }
        // Duplicate answers may still arrive.
        std::thread::sleep(RECEIVE_TIMEOUT);
        self.classes.iter().for_each(|client| client.shared.stop());
        self.classes.iter_mut().for_each(Client::join);
    }

    fn gone(&self) -> Option<String> {
        self.classes.iter().find_map(Client::gone)
    }

    fn count_overdue(&mut self, index: usize, overdue: Overdue) {
        if let Some(client) = self.classes.get_mut(index) {
            client.count_overdue(overdue);
        }
    }

    fn series(&self, phase: &str) -> Vec<Series> {
        self.classes.iter().map(|client| client.series(phase)).collect()
    }

    fn reasons(&self) -> Vec<Reason> {
        let silent = self.classes.iter().filter(|client| client.is_silent());
        let of_silent = |client: &Client| match client.settings.carrier {
            Carrier::Udp(peer) | Carrier::UdpFrames(UdpPath { peer, .. }) => Some(client.silent_echo(peer)),
            Carrier::Icmp { peer, .. } => Some(client.silent_device(peer)),
            Carrier::Ethernet { .. } => None,
        };
        let of_peer = silent.filter_map(|client| client.all_late().or_else(|| of_silent(client)));
        of_peer.chain(self.silent_mirror()).collect()
    }

    fn caveats(&self) -> Vec<Caveat> {
        let mut all: Vec<Caveat> = self.classes.iter().flat_map(Client::caveats).collect();
        // All classes have the same peer.
        all.dedup();
        all
    }
}
