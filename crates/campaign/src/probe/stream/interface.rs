//! Checks that an interface can carry a stream.

use frames::{Mac, ethernet, wire_bytes};
use machine::Root;

use super::error::{LINK_PERCENT, StreamError};

/// Hardware type of Ethernet.
const ARPHRD_ETHER: u32 = 1;
/// Flag of an interface that is up.
const IFF_UP: u32 = 1;

/// A wired interface that is up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    pub name: String,
    pub mac: Mac,
    /// Largest payload, bytes.
    mtu: u64,
    /// Speed of the link, Mbit/s; `None` if it has none, like a virtual interface.
    link_mbit: Option<u64>,
}

impl Interface {
    /// Reads an interface. Fails if it cannot carry a stream.
    pub fn read(root: &Root, name: &str) -> Result<Self, StreamError> {
        let no_such = || StreamError::NoSuchInterface(name.to_owned());
        let at = |file: &str| format!("sys/class/net/{name}/{file}");
        if name.is_empty() || name.contains('/') || name.starts_with('.') {
            return Err(no_such());
        }
        let kind: u32 = root.number(&at("type")).ok_or_else(no_such)?;
        if root.exists(&at("wireless")) || root.exists(&at("phy80211")) {
            return Err(StreamError::Wireless(name.to_owned()));
        }
        let mac = root.read(&at("address")).as_deref().and_then(parse_mac).filter(|_| kind == ARPHRD_ETHER);
        let mac = mac.ok_or_else(|| StreamError::NotEthernet(name.to_owned()))?;
        let flags = root.read(&at("flags")).unwrap_or_default();
        let flags = u32::from_str_radix(flags.trim().trim_start_matches("0x"), 16).unwrap_or_default();
        if flags & IFF_UP == 0 {
            return Err(StreamError::Down(name.to_owned()));
        }
        Ok(Self {
            name: name.to_owned(),
            mac,
            mtu: root.number(&at("mtu")).ok_or_else(no_such)?,
            link_mbit: link_mbit(root, name),
        })
    }

    /// Checks that the interface can carry all these frames: the length of each, bytes, and the time between two of them,
    /// ns.
    pub fn carries(&self, frames: &[(usize, u64)]) -> Result<(), StreamError> {
        let longest = frames.iter().map(|(frame_bytes, _)| *frame_bytes).max().unwrap_or_default();
        let needed = longest.saturating_sub(ethernet::HEADER + ethernet::TAG) as u64;
        if needed > self.mtu {
            return Err(StreamError::Mtu { interface: self.name.clone(), mtu: self.mtu, needed });
        }
        // In bit/s, because kbit/s would be rounded before the sum.
        let bps = |&(frame_bytes, period_ns): &(usize, u64)| {
            wire_bytes(frame_bytes) as u64 * 8 * 1_000_000_000 / period_ns.max(1)
        };
        let needed_kbit = frames.iter().map(bps).sum::<u64>() / 1000;
        match self.link_mbit {
            Some(link_mbit) if needed_kbit > link_mbit.saturating_mul(10 * LINK_PERCENT) => {
                Err(StreamError::Bandwidth { interface: self.name.clone(), needed_kbit, link_mbit })
            }
            _ => Ok(()),
        }
    }
}

/// Speed of the link of an interface, bit/s; `None` if it has none.
pub fn link_bps(root: &Root, name: &str) -> Option<u64> {
    Some(link_mbit(root, name)?.saturating_mul(1_000_000))
}

fn link_mbit(root: &Root, name: &str) -> Option<u64> {
    // -1 if the speed is not known.
    let mbit: i64 = root.number(&format!("sys/class/net/{name}/speed"))?;
    mbit.try_into().ok().filter(|&mbit| mbit > 0)
}

fn parse_mac(text: &str) -> Option<Mac> {
    let parts: Vec<u8> =
        text.trim().split(':').map(|part| u8::from_str_radix(part, 16)).collect::<Result<_, _>>().ok()?;
    parts.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads the interface `eth0` from a machine with these files.
    fn read(files: &[(&str, &str)]) -> Result<Interface, StreamError> {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path().join("sys/class/net/eth0");
        std::fs::create_dir_all(&at).unwrap();
        for (name, text) in files {
            std::fs::write(at.join(name), text).unwrap();
        }
        Interface::read(&Root::at(folder.path()), "eth0")
    }

    const WIRED: [(&str, &str); 5] = [
        ("type", "1\n"),
        ("address", "02:00:00:00:00:0a\n"),
        ("flags", "0x1003\n"),
        ("mtu", "1500\n"),
        ("speed", "100\n"),
    ];

    fn with(name: &'static str, text: &'static str) -> Vec<(&'static str, &'static str)> {
        WIRED.into_iter().filter(|(known, _)| *known != name).chain([(name, text)]).collect()
    }

    #[test]
    fn reads_a_wired_interface() {
        let found = read(&WIRED).unwrap();
        assert_eq!((found.mac, found.link_mbit), ([2, 0, 0, 0, 0, 10], Some(100)));
        assert_eq!(read(&with("speed", "-1\n")).unwrap().link_mbit, None);
    }

    #[test]
    fn refuses_unsuitable_interfaces_with_a_remedy() {
        let error = |files: &[(&str, &str)]| read(files).unwrap_err().to_string();
        assert!(error(&[]).contains("there is no interface eth0"));
        assert!(error(&with("phy80211", "")).contains("wireless"));
        assert!(error(&with("type", "772\n")).contains("not an Ethernet interface"));
        assert!(error(&with("flags", "0x1002\n")).contains("sudo ip link set eth0 up"));
        let strange = Interface::read(&Root::system(), "../eth0").unwrap_err().to_string();
        assert!(strange.contains("there is no interface"), "{strange}");
    }

    #[test]
    fn limits_a_stream_to_its_share_of_the_link() {
        let found = read(&WIRED).unwrap();
        assert!(found.carries(&[(90, 125_000); 1]).is_ok(), "7.3 of 100 Mbit/s");
        let error = found.carries(&[(90, 12_000); 1]).unwrap_err().to_string();
        assert!(error.contains("76000 kbit/s") && error.contains("75 % of the 100 Mbit/s of eth0"), "{error}");
        assert!(found.carries(&[(90, 12_200); 1]).is_ok());
        assert!(found.carries(&[(90, 125_000); 10]).is_ok(), "73 Mbit/s");
        assert!(found.carries(&[(90, 125_000); 11]).unwrap_err().to_string().contains("80256 kbit/s"));
        let small = read(&with("mtu", "68\n")).unwrap().carries(&[(90, 125_000); 1]).unwrap_err().to_string();
        assert!(small.contains("frames of 72 bytes exceed the MTU of eth0 (68 bytes)"), "{small}");
    }
}
