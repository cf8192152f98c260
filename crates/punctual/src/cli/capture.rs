//! Options of `capture`.

use std::{path::PathBuf, str::FromStr};

use campaign::probe::{
    round_trip::{MacAddress, parse_ethertype},
    stream::parse_stream_id,
};
use clap::Args;

use super::{Extent, OutputOptions, period};

/// Options of `capture`.
#[derive(Debug, Args)]
pub struct Capture {
    /// Capture file: pcap or pcapng with Ethernet frames.
    pub file: PathBuf,
    /// Analyse this stream [default: that with most frames].
    ///
    /// 16 hexadecimal digits, e.g. 30:64:3e:54:ee:01:0001.
    #[arg(long, value_name = "ID", value_parser = parse_stream_id, conflicts_with_all = ["ethertype", "udp"])]
    pub stream_id: Option<u64>,
    /// Analyse the stream with this number in the list.
    ///
    /// --full prints the list, from 1. With other options that select frames, it is the list that they leave.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub stream: Option<u32>,
    /// Analyse only frames of this VLAN.
    #[arg(long, value_name = "ID", value_parser = clap::value_parser!(u16).range(0..=4095))]
    pub vlan: Option<u16>,
    /// Analyse only frames from this address.
    #[arg(long, value_name = "MAC")]
    pub source: Option<MacAddress>,
    /// Analyse only frames to this address.
    #[arg(long, value_name = "MAC")]
    pub destination: Option<MacAddress>,
    /// Analyse all frames of this EtherType, e.g. 0x88f7.
    #[arg(long, value_name = "TYPE", value_parser = parse_ethertype, conflicts_with = "udp")]
    pub ethertype: Option<u16>,
    /// Analyse UDP datagrams to this port.
    #[arg(long, value_name = "PORT")]
    pub udp: Option<u16>,
    /// Analyse frames of this interface of a pcapng file.
    #[arg(long, value_name = "IF")]
    pub interface: Option<String>,
    /// Use this stream period [default: from its priority].
    ///
    /// 125us for priority 3, 250us for priority 2, otherwise the median interval.
    #[arg(long, value_name = "TIME", value_parser = period)]
    pub period: Option<u64>,
    /// Check the shaping for this bandwidth, e.g. 7296kbit.
    ///
    /// The default is the longest frame once a period.
    #[arg(long, value_name = "RATE")]
    pub idle_slope: Option<Rate>,
    /// Use this link speed.
    #[arg(long, value_name = "RATE", default_value = "1Gbit")]
    pub link_speed: Rate,
    /// Tie the capture's stamps to this clock.
    ///
    /// gptp: the clock of the network (TAI), such as that of a network card that ptp4l adjusts. utc: a system clock that
    /// follows it, 37 s behind. Without it, only the variation of the presentation times is known.
    #[arg(long, value_name = "CLOCK")]
    pub clock: Option<TiedClock>,
    /// Judge by the limits of this profile; repeatable.
    ///
    /// A name (`punctual profiles` lists them) or a TOML file.
    #[arg(long = "profile", value_name = "NAME|FILE")]
    pub profiles: Vec<String>,
    /// Name the record and report [default: no record].
    ///
    /// They are FILE.punctual.json and FILE.punctual.html.
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
    /// Also write FILE; its suffix is the format; repeatable.
    ///
    /// json, csv, hgrm, hlog, html, md, xml (JUnit), lava, prom, sarif or tex; `-` prints JSON on standard output.
    #[arg(long = "export", value_name = "FILE")]
    pub exports: Vec<PathBuf>,
    /// Output on the terminal.
    #[command(flatten)]
    pub output: OutputOptions,
    /// The extent of the printed result.
    #[command(flatten)]
    pub extent: Extent,
}

/// A clock of a capture that is tied to that of the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum TiedClock {
    /// That of gPTP, which is TAI.
    Gptp,
    /// UTC of a clock that follows gPTP.
    Utc,
}

/// A data rate, bit/s; at least 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate(pub u64);

impl FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim_end_matches("/s").trim_end_matches("ps");
        let number = [("Gbit", 1e9), ("Mbit", 1e6), ("kbit", 1e3), ("bit", 1.0)]
            .into_iter()
            .find_map(|(unit, scale)| Some((text.strip_suffix(unit)?, scale)))
            .and_then(|(number, scale)| Some((number.trim().parse::<f64>().ok()?, scale)));
        let (number, scale) =
            number.ok_or_else(|| "must be a number with bit, kbit, Mbit or Gbit, e.g. 7296kbit".to_owned())?;
        let rate = number * scale;
        if (1.0..=1e15).contains(&rate) {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range is checked above")]
            let bps = rate.round() as u64;
            Ok(Self(bps))
        } else {
            Err("must be 1bit to 1000000Gbit".into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_addresses_and_rates() {
        assert_eq!("91:E0:f0-00:fe:01".parse(), Ok(MacAddress([0x91, 0xe0, 0xf0, 0, 0xfe, 1])));
        assert!("91:e0:f0:00:fe".parse::<MacAddress>().is_err());
        assert_eq!("7296kbit".parse(), Ok(Rate(7_296_000)));
        assert_eq!("2.5 Gbit/s".parse(), Ok(Rate(2_500_000_000)));
        assert!("20mbit".parse::<Rate>().is_err_and(|error| error.contains("kbit, Mbit or Gbit")));
        assert!("0bit".parse::<Rate>().is_err() && "12".parse::<Rate>().is_err() && "NaNbit".parse::<Rate>().is_err());
        assert_eq!(parse_ethertype("0x88f7"), Ok(0x88f7));
        assert!(parse_ethertype("100").is_err() && parse_ethertype("0x5dc").is_err());
    }
}
