//! A client of a JACK server that is not yet playing.

use sys::jack::{Client, Direction};

use super::{
    NAME,
    peer::{Peer, PortError},
};

/// A client of a running JACK server that is not yet playing.
#[derive(Debug)]
pub struct JackClient {
    pub(super) client: Client,
    /// Connections to make, each from a source to a destination port.
    pub(super) connections: Vec<(String, String)>,
    pub(super) cpu: Option<u32>,
}

impl JackClient {
    /// Registers with the server and finds the ports to connect: our input to the port number `input` (from 0) of
    /// `capture`, our outputs to the first two ports of `playback`. The server's thread will be pinned to `cpu`, if
    /// given.
    ///
    /// # Errors
    /// [`PortError`].
    pub fn open(capture: &Peer, playback: &Peer, input: usize, cpu: Option<u32>) -> Result<Self, PortError> {
        let client = Client::open(NAME, None)?;
        let [own_input, left, right] = client.own_ports();
        let sources = capture.ports(&client, Direction::Output)?;
        let source = match sources.get(input) {
            None if *capture != Peer::Unconnected => {
                return Err(PortError::TooFew { count: sources.len(), wanted: capture.to_string() });
            }
            source => source.map(|source| (source.clone(), own_input)),
        };
        let outputs = [left, right].into_iter().zip(playback.ports(&client, Direction::Input)?);
        let connections = source.into_iter().chain(outputs).collect();
        Ok(Self { client, connections, cpu })
    }

    /// The server's sample rate, Hz.
    #[must_use]
    pub fn rate_hz(&self) -> u32 {
        self.client.rate_hz()
    }

    /// Frames of the server's periods.
    #[must_use]
    pub fn period_frames(&self) -> u32 {
        self.client.period_frames()
    }

    /// The CPU to pin the server's thread to.
    #[must_use]
    pub fn cpu(&self) -> Option<u32> {
        self.cpu
    }
}
