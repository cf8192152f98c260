//! Errors of a judge.

use std::io;

/// A judge cannot be used, or was lost during a run.
#[derive(Debug, thiserror::Error)]
pub enum JudgeError {
    /// The serial line cannot be opened.
    #[error("cannot open the judge at {path}: {source}; {}", of_line(source))]
    Line {
        /// The device.
        path: String,
        /// The error of the kernel.
        source: io::Error,
    },
    /// The serial line can be opened, but does not have this speed or is no serial line.
    #[error("cannot set {path} to {baud} bit/s: {source}; name a serial line such as /dev/ttyUSB0, or another speed")]
    Speed {
        /// The device.
        path: String,
        /// The requested speed, bit/s.
        baud: u32,
        /// The error of the kernel.
        source: io::Error,
    },
    /// The kernel writes its messages to the line.
    #[error(
        "the kernel uses {path} as a console: choose another line, or remove its `console=` from the boot parameters"
    )]
    Console {
        /// The device.
        path: String,
    },
    /// The other end does not answer commands.
    #[error("no judge answers at {judge}: check its power and its wires (TX to RX), and its speed, e.g. {path},115200")]
    Silent {
        /// The judge.
        judge: String,
        /// The device without a speed.
        path: String,
    },
    /// The judge speaks another version of the protocol.
    #[error("the judge at {judge} answered `{reply}`, but version 1 is needed: flash the judge of this version")]
    Version {
        /// The judge.
        judge: String,
        /// Its reply to `version`.
        reply: String,
    },
    /// The other end answers, but not with a version.
    #[error(
        "{judge} answered `version` with {}: it needs more than 1 s for a reply, or another program uses the line; \
         end other programs, and reset the judge",
        in_words(reply)
    )]
    NoVersion {
        /// The judge.
        judge: String,
        /// Its reply, which may be that to another command.
        reply: String,
    },
    /// The judge refused a command.
    #[error("the judge at {judge} refused `{command}`: {reply}; {}", of_refusal(reply))]
    Refused {
        /// The judge.
        judge: String,
        /// The command.
        command: String,
        /// Its reply.
        reply: String,
    },
    /// The judge runs with other settings than requested.
    #[error(
        "the judge at {judge} has other settings than requested: `{actual}` instead of `{requested}`; reset the judge"
    )]
    Settings {
        /// The judge.
        judge: String,
        /// Its settings.
        actual: String,
        /// The requested settings.
        requested: String,
    },
    /// No connection with latmon.
    #[error(
        "cannot reach latmon at {judge}: {source}; check its address, and that its board is on and in this network"
    )]
    Unreachable {
        /// The judge.
        judge: String,
        /// The error of the kernel or of the name service.
        source: io::Error,
    },
    /// The judge was lost during a run.
    #[error("the judge at {judge} is gone: {why}")]
    Gone {
        /// The judge.
        judge: String,
        /// The reason.
        why: String,
    },
    /// The judge sent something that contradicts its protocol.
    #[error("the judge at {judge} sent {what}")]
    Protocol {
        /// The judge.
        judge: String,
        /// The contradiction.
        what: String,
    },
    /// No thread can be created.
    #[error("cannot create the thread that reads the judge: {0}; close other programs")]
    Thread(#[source] io::Error),
}

fn in_words(reply: &str) -> String {
    if reply.is_empty() { "an empty reply".to_owned() } else { format!("`{reply}`") }
}

fn of_line(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound => "connect the judge; `ls /dev/ttyACM* /dev/ttyUSB*` lists serial lines",
        io::ErrorKind::PermissionDenied => "run as root, or join the group of the file, such as `dialout`",
        io::ErrorKind::ResourceBusy => "end the program that uses the line, such as a terminal",
        _ => "name a serial line, such as /dev/ttyUSB0",
    }
}

fn of_refusal(reply: &str) -> &'static str {
    match reply {
        reply if reply.contains("running") => "a run is in progress: wait, or reset the judge",
        reply if reply.contains("CRC") => "the line is disturbed: use a shorter cable or a lower speed",
        _ => "choose another period",
    }
}
