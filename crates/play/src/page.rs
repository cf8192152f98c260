//! The web page: a small server on loopback, for one desk.
//!
//! It answers this machine alone. A page of another site, which a browser here may have open, can send requests too, so all of them
//! must name this server as their host (which a name that was bent to point here does not), and what changes something must come as
//! JSON (which such a page may not send unasked).
//!
//! | module | holds |
//! |---|---|
//! | `workers` | the threads that answer |
//! | `waiting` | the connections that they wait for, and who makes room |
//! | `timed_stream` | a connection that is waited for only so long |
//! | `request` | a request as it comes |
//! | `router` | what it asks for, and whether it may |
//! | `answer` | what is answered |

mod answer;
mod request;
mod router;
mod timed_stream;
mod waiting;
mod workers;

use std::{
    io::{self, Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpListener},
    sync::Arc,
};

use serde::Deserialize;
use serde_json::Value;
use thiserror::Error;

use self::{router::Router, workers::Workers};

/// What the page shows and turns. Everything here is called by several threads.
pub trait Desk: Send + Sync {
    /// All that can be chosen and set, and what is.
    fn state(&self) -> Value;
    /// Meters and the like, as they are now.
    fn live(&self) -> Value;
    /// Sets a parameter; answers the version of the state since.
    ///
    /// # Errors
    /// What is wrong, in a sentence.
    fn set(&self, name: &str, value: f32) -> Result<u64, String>;
    /// Plays another file of the library in this place; nothing, where `None`.
    ///
    /// # Errors
    /// What is wrong, in a sentence.
    fn choose(&self, place: Place, file: Option<&str>) -> Result<(), String>;
    /// Keeps what plays as a preset of this name; answers what its file is called.
    ///
    /// # Errors
    /// What is wrong, in a sentence.
    fn save(&self, name: &str) -> Result<String, String>;
}

/// What a file is chosen for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Place {
    /// Everything.
    Preset,
    /// The first model.
    Model1,
    /// The second model.
    Model2,
    /// The cabinet.
    Cabinet,
}

/// Reads one request to the server at an address, and answers it; what [`Page::serve`] does with each connection.
///
/// # Errors
/// When the answer cannot be sent.
pub fn reply(address: SocketAddr, stream: &mut (impl Read + Write), desk: &dyn Desk) -> io::Result<()> {
    Router::new(address).route(stream).answer(desk).send(stream)
}

/// Why there is no page.
#[derive(Debug, Error)]
#[error("cannot serve at port {port} of this machine: {source}; choose another by --port")]
pub struct PageError {
    port: u16,
    source: io::Error,
}

/// A page that is ready to be served.
pub struct Page {
    listener: TcpListener,
    address: SocketAddr,
}

impl Page {
    /// Takes a port of loopback; any free one for 0.
    ///
    /// # Errors
    /// [`PageError`].
    pub fn open(port: u16) -> Result<Self, PageError> {
        let wrong = |source| PageError { port, source };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(wrong)?;
        let address = listener.local_addr().map_err(wrong)?;
        Ok(Self { listener, address })
    }

    /// Where a browser finds it.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// Serves from now on, by threads that end with the process.
    ///
    /// # Errors
    /// When the system has no room for the threads.
    pub fn serve(self, desk: Arc<dyn Desk>) -> io::Result<()> {
        Workers::new(self.listener, Router::new(self.address), desk).begin()
    }
}
