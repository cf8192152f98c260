//! Offloads: they help throughput, but delay single frames.

use record::Finding;

use super::{Check, CheckContext, judged};
use crate::findings::{Explain, not_applicable, ok, warn};

const FEATURES: &str = "ethtool -k";

/// An offload: its finding, the kernel's name, the option of `ethtool -K`, and the texts.
struct Offload {
    id: &'static str,
    feature: &'static str,
    option: &'static str,
    on: &'static str,
    off: &'static str,
    why: &'static str,
}

pub(super) const CHECKS: &[Check] = &[gro, lro, tso, vlan_filter, vlan_tag, xdp];

fn gro(context: &CheckContext) -> Finding {
    Offload {
        id: "nic.offload.gro",
        feature: "rx-gro",
        option: "gro",
        on: "received packets are joined (GRO)",
        off: "received packets are not joined (GRO off)",
        why: "TCP and UDP packets may wait for others to be joined with; frames without IP are not delayed.",
    }
    .should_be_off(context)
}

fn lro(context: &CheckContext) -> Finding {
    Offload {
        id: "nic.offload.lro",
        feature: "rx-lro",
        option: "lro",
        on: "the NIC joins received packets (LRO)",
        off: "the NIC joins no received packets (LRO off)",
        why: "TCP packets wait in the NIC for others to be joined with.",
    }
    .should_be_off(context)
}

fn tso(context: &CheckContext) -> Finding {
    Offload {
        id: "nic.offload.tso",
        feature: "tx-tcp-segmentation",
        option: "tso",
        on: "the NIC splits long TCP segments (TSO)",
        off: "the NIC does not split TCP segments (TSO off)",
        why: "A segment of 64 KiB of another program takes half a millisecond at 1 Gbit/s, and frames in the same queue wait.",
    }
    .should_be_off(context)
}

fn vlan_filter(context: &CheckContext) -> Finding {
    Offload {
        id: "nic.offload.vlan_filter",
        feature: "rx-vlan-filter",
        option: "rx-vlan-filter",
        on: "the NIC drops frames of unknown VLANs",
        off: "frames of all VLANs arrive",
        why: "A stream with a VLAN tag does not arrive unless a VLAN interface with its id exists.",
    }
    .should_be_off(context)
}

fn vlan_tag(context: &CheckContext) -> Finding {
    Offload {
        id: "nic.offload.vlan_tag",
        feature: "rx-vlan-hw-parse",
        option: "rxvlan",
        on: "the NIC strips VLAN tags from received frames",
        off: "received frames keep their VLAN tags",
        why: "A listener on AF_XDP does not see the tag, so it cannot check priority and VLAN.",
    }
    .should_be_off(context)
}

impl Offload {
    fn should_be_off(&self, context: &CheckContext) -> Finding {
        judged(|| {
            let features = context.known(self.id, "offloads", &context.nic.features, FEATURES)?;
            let has = |list: &[String]| list.iter().any(|name| name == self.feature);
            if !has(&features.active) {
                return Ok(ok(self.id, self.off, context.evidence(FEATURES, &format!("{}: off", self.feature))));
            }
            let is_fixed = has(&features.fixed);
            let read = format!("{}: on{}", self.feature, if is_fixed { " [fixed]" } else { "" });
            let remedy = if is_fixed {
                "use another NIC if this matters: this one cannot change it".to_owned()
            } else {
                context.remedy("ethtool -K", &format!("{} off", self.option))
            };
            Ok(warn(self.id, self.on, context.evidence(FEATURES, &read)).because(self.why, remedy))
        })
    }
}

fn xdp(context: &CheckContext) -> Finding {
    const ID: &str = "nic.xdp";
    const COMMAND: &str = "netdev DEV_GET";
    judged(|| {
        let xdp = context.known(ID, "XDP", &context.nic.xdp, COMMAND)?;
        let yes = |is: bool| if is { "yes" } else { "no" };
        let read = format!(
            "native {}, zero copy {}, stamps received frames {}, sent frames {}, launch time {}",
            yes(xdp.has_native),
            yes(xdp.has_zero_copy),
            yes(xdp.stamps_received),
            yes(xdp.stamps_sent),
            yes(xdp.has_launch_time),
        );
        let read = context.evidence(COMMAND, &read);
        Ok(match (xdp.has_zero_copy, xdp.has_native) {
            (true, _) => ok(ID, "AF_XDP reaches the NIC without a copy", read),
            (false, true) => not_applicable(ID, "AF_XDP copies each frame here", read),
            (false, false) => {
                not_applicable(ID, "AF_XDP receives frames only after the kernel has allocated buffers for them", read)
            }
        })
    })
}
