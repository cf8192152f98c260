//! Rate, period and card ports of a JACK server.

use sys::jack::{Client, Direction, JackError};

use super::NAME;

/// Rate, period and card ports of a JACK server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// Sample rate, Hz.
    pub rate_hz: u32,
    /// Frames of a period.
    pub period_frames: u32,
    /// Ports of the server's card to capture from.
    pub captures: Vec<String>,
    /// Ports of the server's card to play to.
    pub plays: Vec<String>,
}

/// Queries the running server.
///
/// # Errors
/// [`JackError`].
pub fn offer() -> Result<Offer, JackError> {
    let client = Client::open(NAME, None)?;
    let ports = |direction| client.ports(direction, true);
    let (captures, plays) = (ports(Direction::Output), ports(Direction::Input));
    Ok(Offer { rate_hz: client.rate_hz(), period_frames: client.period_frames(), captures, plays })
}
