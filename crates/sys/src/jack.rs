//! A client of JACK (jack/jack.h, as JACK 1 and 2 and PipeWire have it): one input, two outputs.
//!
//! The library is the server's companion and loaded while running, so that a machine without it needs nothing, and what is
//! built does not depend on what the builder has installed.

mod callbacks;
mod client;
mod latency;
mod library;

pub use self::{
    callbacks::{Events, Period, Process},
    client::{Client, Direction},
};

/// Why JACK cannot be spoken to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JackError {
    /// A static program loads nothing.
    #[error(
        "this binary is static and cannot load JACK's library: build one that can by `make build` in punctual's sources, or stop the server and play on the card itself, as --device hw:0"
    )]
    Static,
    /// It is not there, or not for this processor.
    #[error("JACK's library cannot be loaded ({0}): install it, as `sudo apt-get install libjack-jackd2-0`")]
    NoLibrary(String),
    /// It lacks something.
    #[error("JACK's library has no {0}: install a newer one, as `sudo apt-get install libjack-jackd2-0`")]
    OldLibrary(&'static str),
    /// Nobody answers.
    #[error(
        "no JACK server answers: start one as this user, as `jackd -d alsa -d hw:0 -r 48000 -p 64`, or go through PipeWire by `pw-jack punctual ...`"
    )]
    NoServer,
    /// The server answers, and does not want us.
    #[error("JACK's server takes no further client (status {0:#x}): `jack_lsp` lists those it has")]
    Refused(i32),
    /// It has no room for our ports.
    #[error("JACK's server takes no further port: start it with more, as `jackd --port-max 512`")]
    Ports,
    /// We may not begin.
    #[error("JACK's server does not let us begin: restart it")]
    Activate,
    /// A port went meanwhile.
    #[error("JACK cannot connect {from} to {to}: does `jack_lsp` list both?")]
    Connect {
        /// The output.
        from: String,
        /// The input.
        to: String,
    },
}
