//! Playing with JACK: its server's real-time thread plays, in periods of its length, from and to other clients' ports.
//!
//! | module | holds |
//! |---|---|
//! | `peer` | whom we are connected to |
//! | `session` | a client that plays, from outside |
//! | `work` | what the server's threads do for it |

mod peer;
mod session;
mod work;

use sys::jack::{Client, Direction, JackError};

pub use self::peer::{Peer, PortError};
pub(crate) use self::session::Session;

/// How clients see us.
const NAME: &str = "punctual";

/// What a server has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// Its sample rate, Hz.
    pub rate_hz: u32,
    /// Frames of its periods.
    pub period_frames: u32,
    /// Ports of its card to capture from.
    pub captures: Vec<String>,
    /// Ports of its card to play to.
    pub plays: Vec<String>,
}

/// What the server has that runs.
///
/// # Errors
/// [`JackError`].
pub fn offer() -> Result<Offer, JackError> {
    let client = Client::open(NAME, None)?;
    let ports = |direction| client.ports(direction, true);
    let (captures, plays) = (ports(Direction::Output), ports(Direction::Input));
    Ok(Offer { rate_hz: client.rate_hz(), period_frames: client.period_frames(), captures, plays })
}

/// A client of a server that runs, which knows its ports, and plays nothing yet.
#[derive(Debug)]
pub struct Jack {
    client: Client,
    /// From where to where.
    wires: Vec<(String, String)>,
    cpu: Option<u32>,
}

impl Jack {
    /// Joins the server. Its input is to be connected to the port of `capture` at the place `input`, counted from 0, its outputs to
    /// the first two of `playback`; its thread is to run on `cpu`, or anywhere.
    ///
    /// # Errors
    /// [`PortError`].
    pub fn open(capture: &Peer, playback: &Peer, input: usize, cpu: Option<u32>) -> Result<Self, PortError> {
        let client = Client::open(NAME, None)?;
        let [own_input, left, right] = client.own_ports();
        let sources = capture.among(&client, Direction::Output)?;
        let source = match sources.get(input) {
            None if *capture != Peer::Nobody => {
                return Err(PortError::Few { there: sources.len(), wanted: capture.to_string() });
            }
            source => source.map(|source| (source.clone(), own_input)),
        };
        let sides = [left, right].into_iter().zip(playback.among(&client, Direction::Input)?);
        let wires = source.into_iter().chain(sides).collect();
        Ok(Self { client, wires, cpu })
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

    /// The CPU that its thread is to run on.
    #[must_use]
    pub fn cpu(&self) -> Option<u32> {
        self.cpu
    }
}
