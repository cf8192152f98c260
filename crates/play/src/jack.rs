//! Playing as a client of a JACK server: the server's real-time thread plays, with the server's rate and period,
//! between the ports of other clients.
//!
//! | module | contents |
//! |---|---|
//! | `peer` | the clients or ports to connect to |
//! | `offer` | rate, period and card ports of a server |
//! | `client` | a client that is not yet playing |
//! | `session` | a client that plays, seen from other threads |
//! | `process` | the callbacks that run on the server's threads |

mod client;
mod offer;
mod peer;
mod process;
mod session;

/// Name of our JACK client.
const NAME: &str = "punctual";

pub(crate) use self::session::Session;
pub use self::{
    client::JackClient,
    offer::{Offer, offer},
    peer::{Peer, PortError},
};
