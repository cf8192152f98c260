//! A JACK client (jack/jack.h of JACK 1, JACK 2 and PipeWire) with one input and two outputs.
//!
//! The library is loaded at run time. Machines without JACK need nothing, and the build does not depend on installed
//! headers.

mod callbacks;
mod client;
mod latency;
mod library;

pub use self::{
    callbacks::{Events, Period, Process},
    client::{Client, Direction},
};

/// Why JACK cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JackError {
    /// A static program cannot load libraries.
    #[error(
        "this static binary cannot load JACK's library: build a dynamic one with `make build`, or stop the server and use the card directly, e.g. --device hw:0"
    )]
    Static,
    /// The library is missing, or is for another architecture.
    #[error("JACK's library cannot be loaded ({0}): install it, e.g. `sudo apt-get install libjack-jackd2-0`")]
    NoLibrary(String),
    /// The library lacks a function.
    #[error("JACK's library has no {0}: install a newer one, e.g. `sudo apt-get install libjack-jackd2-0`")]
    OldLibrary(&'static str),
    /// No server is running.
    #[error(
        "no JACK server answers: start one as this user, e.g. `jackd -d alsa -d hw:0 -r 48000 -p 64`, or use PipeWire with `pw-jack punctual ...`"
    )]
    NoServer,
    /// The server refused the client.
    #[error("JACK's server refused the client (status {0:#x}): `jack_lsp` lists its clients")]
    Refused(i32),
    /// The server has no free ports.
    #[error("JACK's server has no free port: start it with more, e.g. `jackd --port-max 512`")]
    Ports,
    /// The server refused to activate the client.
    #[error("JACK's server refused to activate the client: restart the server")]
    Activate,
    /// The ports cannot be connected, e.g. because one has gone.
    #[error("JACK cannot connect {from} to {to}: check that `jack_lsp` lists both")]
    Connect {
        /// The output port.
        from: String,
        /// The input port.
        to: String,
    },
}
