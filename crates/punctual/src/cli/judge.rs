//! Options of `judge`.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use ::judge::{JudgeAddress, address::LATMON_PORT};
use clap::{Args, Subcommand};

/// A command about an outside judge.
#[derive(Debug, Subcommand)]
pub enum Judge {
    /// Let latmus of an EVL machine measure with the judge of punctual.
    ///
    /// Looks like a board that runs latmon: latmus connects, and sets the period. Its protocol has no password. A question
    /// without an answer and a lost result are overruns for latmus, which has no other word for them; this command prints both
    /// at the end of each run. Runs until Ctrl-C.
    ///
    /// Examples:
    ///   punctual judge serve /dev/ttyACM0
    ///   punctual judge serve /dev/ttyUSB0,115200 --bind 192.0.2.1
    #[command(verbatim_doc_comment)]
    Serve(JudgeServe),
}

/// Options of `judge serve`.
#[derive(Debug, Args)]
pub struct JudgeServe {
    /// The serial line of the judge.
    ///
    /// `,BAUD` after it sets another speed than 1 Mbit/s, such as /dev/ttyUSB0,115200.
    #[arg(value_name = "LINE", value_parser = serial)]
    pub line: JudgeAddress,
    /// Listen on this address.
    ///
    /// An address of this machine, with the port 2306 or another one. Everybody who reaches this port can start and end runs. latmus always uses the port 2306.
    #[arg(long, value_name = "ADDR[:PORT]", default_value = "127.0.0.1", value_parser = bind)]
    pub bind: SocketAddr,
}

fn serial(text: &str) -> Result<JudgeAddress, String> {
    match text.parse::<JudgeAddress>() {
        Ok(address @ JudgeAddress::Serial { .. }) => Ok(address),
        Ok(JudgeAddress::Latmon { .. }) | Err(_) => {
            Err("must be a serial line, e.g. /dev/ttyACM0 or /dev/ttyUSB0,115200".to_owned())
        }
    }
}

fn bind(text: &str) -> Result<SocketAddr, String> {
    let alone = || text.parse::<IpAddr>().map(|address| SocketAddr::new(address, LATMON_PORT));
    text.parse().or_else(|_| alone()).map_err(|_| {
        let all = Ipv4Addr::UNSPECIFIED;
        format!(
            "must be an IP address of this machine, e.g. 192.168.1.5 or 192.168.1.5:{LATMON_PORT}, or {all} for all"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_needs_no_port() {
        assert_eq!(bind("192.0.2.1").unwrap().to_string(), "192.0.2.1:2306");
        assert_eq!(bind("[::1]:99").unwrap().to_string(), "[::1]:99");
        assert!(bind("evl").unwrap_err().contains("or 0.0.0.0 for all"));
        assert!(serial("board:2306").is_err() && serial("/dev/ttyACM0").is_ok());
    }
}
