//! A short description of an interface.

use record::grouped;

use super::Nic;

impl Nic {
    /// The most important facts, each with its name; empty if not known.
    #[must_use]
    pub fn in_words(&self) -> Vec<(&'static str, String)> {
        let mode = self.mode.known();
        let speed = mode.and_then(|mode| mode.speed_mbit).map(|mbit| format!("{mbit} Mbit/s"));
        let duplex =
            mode.and_then(|mode| mode.is_full_duplex).map(|full| if full { "full duplex" } else { "half duplex" });
        let mtu = self.mtu.map(|mtu| format!("MTU {mtu}"));
        let queues = self.channels.known().map(|queues| {
            let named = [("combined", queues.combined), ("receiving", queues.rx), ("sending", queues.tx)];
            join(named.map(|(name, count)| Some(format!("{} {name}", count.filter(|&count| count > 0)?))))
        });
        let rings = self.rings.known().and_then(|rings| {
            let [rx, tx] = [rings.rx?, rings.tx?].map(|frames| grouped(frames.into()));
            Some(format!("{rx} receiving, {tx} sending"))
        });
        let qdiscs = self.qdiscs.known().map(|all| join(all.iter().map(|qdisc| Some(qdisc.kind.clone()))));
        let clock = self.stamping.known().and_then(|stamping| {
            let name = self.clock().and_then(|clock| clock.name.as_ref());
            let name = name.map_or_else(String::new, |name| format!(" ({name})"));
            Some(format!("/dev/ptp{}{name}", stamping.phc?))
        });
        vec![
            ("driver", join([self.driver.clone(), self.mac.clone()])),
            ("link", join([speed, duplex.map(str::to_owned), mtu])),
            ("queues", join([queues])),
            ("rings", join([rings])),
            ("qdisc", join([qdiscs])),
            ("clock", join([clock])),
        ]
    }
}

fn join(parts: impl IntoIterator<Item = Option<String>>) -> String {
    parts.into_iter().flatten().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
}
