//! `punctual judge`.

use std::net::SocketAddr;

use ::judge::{
    JudgeAddress, JudgeError,
    address::LATMON_PORT,
    board::Board,
    latmon_server::{Event, LatmonServer, Totals},
    settings::{Level, Settings},
};
use analysis::format_unsigned_ns;
use anyhow::Context;
use record::{counted, grouped};
use sys::signal;

use crate::cli::{Judge, JudgeServe};

/// The period of the judge before latmus requests one, ns.
const PERIOD_NS: u64 = 1_000_000;

pub fn run(what: &Judge) -> anyhow::Result<u8> {
    match what {
        Judge::Serve(options) => serve(options),
    }
}

fn serve(options: &JudgeServe) -> anyhow::Result<u8> {
    signal::count_termination().context("cannot watch for Ctrl-C")?;
    let board = open(&options.line)?;
    let mut server = LatmonServer::bind(options.bind, board)
        .with_context(|| format!("cannot listen on {}: choose another address with --bind", options.bind))?;
    announce(server.address()?);
    server.serve(&|| signal::termination_requests() > 0, &mut |event| report(&event))?;
    Ok(0)
}

/// Opens the judge, and sets the levels of its pins, so that they are idle before latmus connects.
fn open(line: &JudgeAddress) -> Result<Board, JudgeError> {
    let JudgeAddress::Serial { path, baud } = line else { unreachable!("the argument accepts only serial lines") };
    let mut board = Board::open(path, *baud, &line.to_string())?;
    if let Some(settings) = Settings::with_period(PERIOD_NS, Level::Low) {
        board.configure(&settings)?;
    }
    Ok(board)
}

fn announce(address: SocketAddr) {
    say!("listening on {address} for latmus; stop with Ctrl-C");
    let host = if address.ip().is_unspecified() { "HOST".to_owned() } else { address.ip().to_string() };
    say!(
        "        latmus --oob-gpio={host} --gpio-in=gpiochip0,QUESTION,falling-edge --gpio-out=gpiochip0,ANSWER --plot=FILE"
    );
    if address.port() != LATMON_PORT {
        say!("note: latmus connects only to the port {LATMON_PORT}, so this port needs another client");
    }
    if !address.ip().is_loopback() {
        say!(
            "note: everybody who reaches {address} can start and end runs, because latmus has no password: use a network that you trust"
        );
    }
}

fn report(event: &Event) {
    match event {
        Event::Connected(address) => say!("latmus connected from {address}"),
        Event::Started { period_us } => say!("run started: a question every {period_us} us"),
        Event::Ended(totals) => say!("run ended: {}", summarize(totals)),
        Event::Refused(why) => say!("client disconnected: {why}"),
        Event::Left => say!("latmus has disconnected"),
    }
}

/// The counts of a run. latmus cannot show all of them.
fn summarize(totals: &Totals) -> String {
    let Totals { answered, missed, lost, spurious, clamped, max_ns } = *totals;
    let mut text = counted(answered, "answer");
    if answered > 0 {
        text += &format!(", at most {}", format_unsigned_ns(max_ns));
    }
    text += &format!("; {} without an answer", grouped(missed));
    for (count, item, what) in [
        (lost, "result", "lost on the serial line"),
        (spurious, "edge", "that answered no question"),
        (clamped, "answer", "beyond the last cell of the histogram"),
    ] {
        if count > 0 {
            text += &format!("; {} {what}", counted(count, item));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_names_what_latmus_cannot_show() {
        let totals = Totals { answered: 9_990, missed: 7, lost: 3, spurious: 0, clamped: 1, max_ns: 85_208 };
        assert_eq!(
            summarize(&totals),
            "9,990 answers, at most 85.2 us; 7 without an answer; 3 results lost on the serial line; 1 answer beyond the \
             last cell of the histogram"
        );
        assert_eq!(summarize(&Totals::default()), "0 answers; 0 without an answer");
    }
}
