//! Work that driver and NIC take over, which helps throughput and holds single frames back.

use record::Finding;

use super::{Check, judged};
use crate::findings::{Explain, not_applicable, ok, warn};

const FEATURES: &str = "ethtool -k";

/// An offload: its finding, the kernel's name for it, what `ethtool -K` calls it, and what it means.
struct Offload {
    id: &'static str,
    feature: &'static str,
    option: &'static str,
    on: &'static str,
    off: &'static str,
    why: &'static str,
}

pub(super) fn gro(check: &Check) -> Finding {
    Offload {
        id: "nic.offload.gro",
        feature: "rx-gro",
        option: "gro",
        on: "received packets are joined (GRO)",
        off: "received packets are not joined (GRO off)",
        why: "TCP and UDP packets can wait for others that they are joined with; frames that are not IP pass by.",
    }
    .should_be_off(check)
}

pub(super) fn lro(check: &Check) -> Finding {
    Offload {
        id: "nic.offload.lro",
        feature: "rx-lro",
        option: "lro",
        on: "the NIC joins received packets (LRO)",
        off: "the NIC joins no received packets (LRO off)",
        why: "TCP packets wait in the NIC for others that they are joined with.",
    }
    .should_be_off(check)
}

pub(super) fn tso(check: &Check) -> Finding {
    Offload {
        id: "nic.offload.tso",
        feature: "tx-tcp-segmentation",
        option: "tso",
        on: "the NIC cuts long TCP segments (TSO)",
        off: "the NIC gets no long TCP segments to cut (TSO off)",
        why: "A segment of 64 KiB that another program sends takes half a millisecond at 1 Gbit/s, and a frame in the same queue waits.",
    }
    .should_be_off(check)
}

pub(super) fn vlan_filter(check: &Check) -> Finding {
    Offload {
        id: "nic.offload.vlan_filter",
        feature: "rx-vlan-filter",
        option: "rx-vlan-filter",
        on: "the NIC drops frames of VLANs that nobody has joined",
        off: "frames of all VLANs arrive",
        why: "A stream with a VLAN tag does not arrive where no VLAN interface of that number exists.",
    }
    .should_be_off(check)
}

pub(super) fn vlan_tag(check: &Check) -> Finding {
    Offload {
        id: "nic.offload.vlan_tag",
        feature: "rx-vlan-hw-parse",
        option: "rxvlan",
        on: "the NIC takes VLAN tags off received frames",
        off: "received frames keep their VLAN tags",
        why: "A listener on AF_XDP does not see the tag, so that it can check neither priority nor VLAN.",
    }
    .should_be_off(check)
}

impl Offload {
    fn should_be_off(&self, check: &Check) -> Finding {
        judged(|| {
            let features = check.known(self.id, "offloads", &check.nic.features, FEATURES)?;
            let has = |list: &[String]| list.iter().any(|name| name == self.feature);
            if !has(&features.active) {
                return Ok(ok(self.id, self.off, check.evidence(FEATURES, &format!("{}: off", self.feature))));
            }
            let is_fixed = has(&features.fixed);
            let read = format!("{}: on{}", self.feature, if is_fixed { " [fixed]" } else { "" });
            let remedy = if is_fixed {
                "use another NIC where that matters: this one cannot be told otherwise".to_owned()
            } else {
                check.remedy("ethtool -K", &format!("{} off", self.option))
            };
            Ok(warn(self.id, self.on, check.evidence(FEATURES, &read)).because(self.why, remedy))
        })
    }
}

pub(super) fn xdp(check: &Check) -> Finding {
    const ID: &str = "nic.xdp";
    const COMMAND: &str = "netdev DEV_GET";
    judged(|| {
        let xdp = check.known(ID, "XDP", &check.nic.xdp, COMMAND)?;
        let yes = |is: bool| if is { "yes" } else { "no" };
        let read = format!(
            "native {}, zero copy {}, stamps received frames {}, sent frames {}, launch time {}",
            yes(xdp.has_native),
            yes(xdp.has_zero_copy),
            yes(xdp.stamps_received),
            yes(xdp.stamps_sent),
            yes(xdp.has_launch_time),
        );
        let read = check.evidence(COMMAND, &read);
        Ok(match (xdp.has_zero_copy, xdp.has_native) {
            (true, _) => ok(ID, "AF_XDP reaches the NIC without a copy", read),
            (false, true) => not_applicable(ID, "AF_XDP copies each frame here", read),
            (false, false) => not_applicable(ID, "AF_XDP gets frames after the kernel has made buffers for them", read),
        })
    })
}
