//! The syntax of --traffic-class.

use std::str::FromStr;

use campaign::probe::round_trip::{PRIORITIES, TrafficClass, VLAN_IDS, parse_own_ethertype};
use probes::round_trip::Frames;
use sys::sched::Policy;

use super::{
    round_trip::size,
    threads::{cpu, named_period},
};

const EXAMPLE: &str = "write e.g. control=1ms,priority=5,ethertype=0x8892,size=128";

/// A traffic class, written as `control=1ms,priority=5`. Keys that are left out have the value of the measurement.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ClassSpec {
    name: String,
    period_ns: u64,
    priority: Option<u8>,
    vlan_id: Option<u16>,
    ethertype: Option<u16>,
    payload_bytes: Option<usize>,
    cpu: Option<u32>,
    policy: Option<Policy>,
}

impl ClassSpec {
    /// The complete class, with these values for keys that are left out.
    pub fn with(&self, common: Frames, payload_bytes: usize) -> TrafficClass {
        TrafficClass {
            name: self.name.clone(),
            period_ns: self.period_ns,
            frames: Frames {
                ethertype: self.ethertype.unwrap_or(common.ethertype),
                vlan_id: self.vlan_id.or(common.vlan_id),
                priority: self.priority.unwrap_or(common.priority),
            },
            payload_bytes: self.payload_bytes.unwrap_or(payload_bytes),
            send_policy: self.policy,
            cpu: self.cpu,
        }
    }
}

impl FromStr for ClassSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut parts = text.split(',');
        let (name, period_ns) = named_period(parts.next().unwrap_or_default(), "class", EXAMPLE)?;
        let mut spec = Self { name, period_ns, ..Self::default() };
        for part in parts {
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            let of_key = |error: String| format!("{key}={value}: {error}");
            let in_range = |range: std::ops::RangeInclusive<u64>| {
                let number = value.parse().ok().filter(|number| range.contains(number));
                number.ok_or_else(|| of_key(format!("must be {} to {}", range.start(), range.end())))
            };
            let is_duplicate = match key {
                "priority" => spec.priority.replace(narrow(in_range(PRIORITIES)?)).is_some(),
                "vlan" => spec.vlan_id.replace(narrow(in_range(VLAN_IDS)?)).is_some(),
                "ethertype" => spec.ethertype.replace(parse_own_ethertype(value).map_err(of_key)?).is_some(),
                "size" => spec.payload_bytes.replace(size(value).map_err(of_key)?).is_some(),
                "cpu" => spec.cpu.replace(cpu(value, EXAMPLE)?).is_some(),
                "policy" => {
                    spec.policy.replace(value.parse::<Policy>().map_err(|error| of_key(error.to_string()))?).is_some()
                }
                _ => return Err(format!("unknown key `{key}`: use priority, vlan, ethertype, size, cpu or policy")),
            };
            if is_duplicate {
                return Err(format!("`{key}` is given twice: leave one out"));
            }
        }
        Ok(spec)
    }
}

/// Converts a number that was checked against its range.
fn narrow<T: TryFrom<u64> + Default>(number: u64) -> T {
    T::try_from(number).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use campaign::probe::RoundTripProbe;

    use super::*;

    const COMMON: Frames = Frames { ethertype: 0x88b5, vlan_id: Some(7), priority: 1 };

    #[test]
    fn a_class_has_what_it_says_and_otherwise_what_all_have() {
        let parse =
            |text: &str| text.parse::<ClassSpec>().unwrap().with(COMMON, RoundTripProbe::default().payload_bytes);
        let class = TrafficClass {
            name: "control".to_owned(),
            period_ns: 500_000,
            frames: COMMON,
            payload_bytes: 64,
            send_policy: None,
            cpu: None,
        };
        assert_eq!(parse("control=500us"), class);
        let frames = Frames { ethertype: 0x8892, vlan_id: Some(0), priority: 0 };
        let special =
            TrafficClass { frames, payload_bytes: 128, send_policy: Some(Policy::Fifo(9)), cpu: Some(3), ..class };
        assert_eq!(parse("control=500us,size=128,policy=fifo:9,cpu=3,vlan=0,priority=0,ethertype=0x8892"), special);
    }

    #[test]
    fn errors_name_the_mistake_and_the_syntax() {
        for (text, sentence) in [
            ("", "`` has no period: write e.g. control=1ms,priority=5"),
            ("a b=1ms", "invalid class name `a b`: use 1 to 32 letters"),
            ("a=1", "1ms"),
            ("a=1ms,priority=8", "priority=8: must be 0 to 7"),
            ("a=1ms,priority", "priority=: must be 0 to 7"),
            ("a=1ms,vlan=4095", "vlan=4095: must be 0 to 4094"),
            ("a=1ms,ethertype=0x5ff", "ethertype=0x5ff: must be 0x0600 to 0xffff"),
            ("a=1ms,ethertype=0x8808", "PAUSE"),
            ("a=1ms,size=55", "size=55: must be 56 to"),
            ("a=1ms,cpu=x", "`x` is not a CPU number: write e.g. control=1ms"),
            ("a=1ms,policy=fast", "policy=fast: unknown policy `fast`"),
            ("a=1ms,prio=5", "unknown key `prio`: use priority, vlan"),
            ("a=1ms,priority=1,priority=2", "`priority` is given twice"),
        ] {
            let error = text.parse::<ClassSpec>().unwrap_err();
            assert!(error.contains(sentence), "{text}: {error}");
        }
    }
}
