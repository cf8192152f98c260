//! The web page: a small HTTP server on the loopback interface.
//!
//! Pages of other sites that are open in a browser of this machine can send requests, too. Therefore every request must
//! name this server as its host, which fails for a foreign name that resolves to 127.0.0.1; and requests that change
//! something must be JSON, which such a page may not send without permission.
//!
//! | module | contents |
//! |---|---|
//! | `backend` | the interface of the program that the page shows |
//! | `workers` | the threads that serve connections |
//! | `pending` | the connections that a thread waits for, at most a fixed number |
//! | `timed_stream` | a connection with a deadline |
//! | `request` | parsing of requests |
//! | `router` | checks of requests, and the action that each asks for |
//! | `response` | responses |

mod backend;
mod pending;
mod request;
mod response;
mod router;
mod timed_stream;
mod workers;

use std::{
    io::{self, Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpListener},
    sync::Arc,
};

use thiserror::Error;

pub use self::backend::{Backend, Slot};
use self::{router::Router, workers::Workers};

/// Reads one request to the server at `address`, and writes the response. [`Page::serve`] does this for each
/// connection.
///
/// # Errors
/// If the response cannot be written.
pub fn reply(address: SocketAddr, stream: &mut (impl Read + Write), backend: &dyn Backend) -> io::Result<()> {
    Router::new(address).route(stream).respond(backend).send(stream)
}

/// The page cannot be served.
#[derive(Debug, Error)]
#[error("cannot serve at port {port} of 127.0.0.1: {source}; choose another port with --port")]
pub struct PageError {
    port: u16,
    source: io::Error,
}

/// A page with its open port, not yet served.
pub struct Page {
    listener: TcpListener,
    address: SocketAddr,
}

impl Page {
    /// Opens a port of 127.0.0.1; 0 for any free one.
    ///
    /// # Errors
    /// [`PageError`].
    pub fn open(port: u16) -> Result<Self, PageError> {
        let error = |source| PageError { port, source };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(error)?;
        let address = listener.local_addr().map_err(error)?;
        Ok(Self { listener, address })
    }

    /// The address to open in a browser.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// Starts the threads that serve the page until the process ends.
    ///
    /// # Errors
    /// If the system cannot create the threads.
    pub fn serve(self, backend: Arc<dyn Backend>) -> io::Result<()> {
        Workers::new(self.listener, Router::new(self.address), backend).start()
    }
}
