//! `punctual capture`.

use std::{path::PathBuf, str::FromStr};

use clap::Args;

use super::{Talk, period};

/// Options of `capture`.
#[derive(Debug, Args)]
pub struct Capture {
    /// The capture: a pcap or pcapng file of Ethernet.
    pub file: PathBuf,
    /// The AVTP stream with this id, as 30:64:3e:54:ee:01:0001 [default: the busiest].
    #[arg(long, value_name = "ID", conflicts_with_all = ["ethertype", "udp"])]
    pub stream: Option<StreamId>,
    /// Frames on this VLAN.
    #[arg(long, value_name = "ID", value_parser = clap::value_parser!(u16).range(0..=4095))]
    pub vlan: Option<u16>,
    /// Frames from this address.
    #[arg(long, value_name = "MAC")]
    pub source: Option<MacAddress>,
    /// Frames to this address.
    #[arg(long, value_name = "MAC")]
    pub destination: Option<MacAddress>,
    /// All frames of this EtherType instead of AVTP's, as 0x88f7.
    #[arg(long, value_name = "TYPE", value_parser = ethertype, conflicts_with = "udp")]
    pub ethertype: Option<u16>,
    /// UDP (IPv4) to this port instead of AVTP.
    #[arg(long, value_name = "PORT")]
    pub udp: Option<u16>,
    /// Frames seen on this interface of a pcapng file, counted from 0.
    #[arg(long, value_name = "N")]
    pub interface: Option<u32>,
    /// Time from frame to frame [default: 125us for priority 3, 250us for priority 2, else the median interval].
    #[arg(long, value_name = "TIME", value_parser = period)]
    pub period: Option<u64>,
    /// Bandwidth reserved for the stream, as 7296kbit [default: its longest frame once a period].
    #[arg(long, value_name = "RATE")]
    pub idle_slope: Option<Rate>,
    /// Speed of the link.
    #[arg(long, value_name = "RATE", default_value = "1Gbit")]
    pub link_speed: Rate,
    /// A use whose limits decide the verdict, by name or as a TOML file; can be repeated. `punctual profiles` lists them.
    #[arg(long = "profile", value_name = "NAME|FILE")]
    pub profiles: Vec<String>,
    /// Keep the record there.
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
    /// Write the result there too, in the format of the extension: json, csv, hgrm or html; can be repeated.
    #[arg(long = "export", value_name = "FILE")]
    pub exports: Vec<PathBuf>,
    /// How to talk.
    #[command(flatten)]
    pub talk: Talk,
}

/// A stream id: 16 hexadecimal digits, with or without separators, or 0x and up to 16.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamId(pub u64);

/// An Ethernet address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MacAddress(pub [u8; 6]);

/// Bits a second, more than 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate(pub u64);

/// The hexadecimal digits of `text`, where it has `count` besides separators.
fn digits(text: &str, count: usize) -> Option<u64> {
    let digits: String = text.chars().filter(|c| !":-.".contains(*c)).collect();
    (digits.len() == count).then(|| u64::from_str_radix(&digits, 16).ok())?
}

impl FromStr for StreamId {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = text.strip_prefix("0x").and_then(|digits| u64::from_str_radix(digits, 16).ok());
        let id = number.or_else(|| digits(text, 16));
        id.map(Self).ok_or_else(|| "write 16 hexadecimal digits, as 30:64:3e:54:ee:01:0001".to_owned())
    }
}

impl FromStr for MacAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let address = digits(text, 12).ok_or_else(|| "write six bytes, as 91:e0:f0:00:fe:01".to_owned())?;
        let [_, _, mac @ ..] = address.to_be_bytes();
        Ok(Self(mac))
    }
}

impl FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim_end_matches("/s").trim_end_matches("ps");
        let (number, scale) = [("Gbit", 1e9), ("Mbit", 1e6), ("kbit", 1e3), ("bit", 1.0)]
            .into_iter()
            .find_map(|(unit, scale)| Some((text.strip_suffix(unit)?, scale)))
            .ok_or_else(|| "write a number with bit, kbit, Mbit or Gbit, as 7296kbit".to_owned())?;
        let rate = number.trim().parse::<f64>().map_or(0.0, |number| number * scale);
        if (1.0..=1e15).contains(&rate) {
            Ok(Self(rate.round() as u64))
        } else {
            Err("must be 1bit to 1000000Gbit".into())
        }
    }
}

fn ethertype(text: &str) -> Result<u16, String> {
    let number = text.strip_prefix("0x").map(|digits| u16::from_str_radix(digits, 16));
    number.and_then(Result::ok).filter(|number| *number >= 0x600).ok_or_else(|| "write 0x0600 to 0xffff".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_addresses_and_rates_are_read() {
        let id = Ok(StreamId(0x3064_3e54_ee01_0001));
        for text in ["30:64:3e:54:ee:01:0001", "30:64:3e:54:ee:01:00:01", "0x30643e54ee010001", "30643e54ee010001"] {
            assert_eq!(text.parse(), id);
        }
        assert!("30:64".parse::<StreamId>().is_err() && "0xg".parse::<StreamId>().is_err());
        assert_eq!("91:E0:f0-00:fe:01".parse(), Ok(MacAddress([0x91, 0xe0, 0xf0, 0, 0xfe, 1])));
        assert!("91:e0:f0:00:fe".parse::<MacAddress>().is_err());
        assert_eq!("7296kbit".parse(), Ok(Rate(7_296_000)));
        assert_eq!("2.5 Gbit/s".parse(), Ok(Rate(2_500_000_000)));
        assert!("0bit".parse::<Rate>().is_err() && "12".parse::<Rate>().is_err() && "NaNbit".parse::<Rate>().is_err());
        assert_eq!(ethertype("0x88f7"), Ok(0x88f7));
        assert!(ethertype("100").is_err() && ethertype("0x5dc").is_err());
    }
}
