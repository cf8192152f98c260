//! The web page: a small HTTP server.
//!
//! By default it listens on the loopback interface. At another address, every request must contain the random token of
//! the link. Pages of other sites that are open in a browser of the same network can send requests, too. Therefore every
//! request must name this server as its host, which fails for a foreign name that resolves to its address; and requests
//! that change something must have a content type that such a page may not send without permission.
//!
//! | module | contents |
//! |---|---|
//! | `backend` | the interface of the program that the page shows |
//! | `access` | the token, and the names of this machine |
//! | `workers` | the threads that serve connections |
//! | `pending` | the connections that a thread waits for, at most a fixed number |
//! | `timed_stream` | a connection with a deadline |
//! | `request` | parsing of requests |
//! | `router` | checks of requests, and the action that each asks for |
//! | `response` | responses |

mod access;
mod backend;
mod pending;
mod request;
mod response;
mod router;
mod timed_stream;
mod workers;

use std::{
    io::{self, Read, Write},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, UdpSocket},
    path::{Path, PathBuf},
    sync::Arc,
};

use thiserror::Error;

pub use self::{
    access::Access,
    backend::{Act, Backend, Side, Slot, Upload, UploadError},
};
use self::{router::Router, workers::Workers};

/// Reads one request that arrived at `address`, and writes the response. [`Page::serve`] does this for each
/// connection.
///
/// # Errors
/// If the response cannot be written.
pub fn reply(
    address: SocketAddr,
    access: &Access,
    stream: &mut (impl Read + Write),
    backend: &dyn Backend,
) -> io::Result<()> {
    Router::new(address, access).route(stream).respond(backend).send(stream)
}

/// The page cannot be served.
#[derive(Debug, Error)]
pub enum PageError {
    /// The port cannot be opened.
    #[error("cannot serve at port {port} of {address}: {source}; choose another port with --port{}", hint(source))]
    Open {
        /// The address.
        address: IpAddr,
        /// The port.
        port: u16,
        /// The kernel's error.
        source: io::Error,
    },
    /// The kernel has no random numbers for a token.
    #[error("cannot create a token for the page: {0}; serve it without --bind")]
    Token(#[source] io::Error),
    /// The file with the token cannot be used.
    #[error("cannot use the token in {}: {source}", path.display())]
    TokenFile {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
}

/// The remedy if the address belongs to no interface.
fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrNotAvailable => ", or an address of this machine with --bind: `ip address` lists them",
        _ => "",
    }
}

/// A page with its open port, not yet served.
pub struct Page {
    listener: TcpListener,
    address: SocketAddr,
    access: Access,
}

impl Page {
    /// Opens a port of an address of this machine; 0 for any free one. Requests need the token of the file, which is
    /// created if it does not exist, or a new one unless the address is a loopback address.
    ///
    /// # Errors
    /// [`PageError`].
    pub fn open(address: IpAddr, port: u16, token_file: Option<&Path>) -> Result<Self, PageError> {
        let error = |source| PageError::Open { address, port, source };
        let access = Access::for_address(address, token_file).map_err(|source| match token_file {
            Some(path) => PageError::TokenFile { path: path.to_owned(), source },
            None => PageError::Token(source),
        })?;
        let listener = TcpListener::bind((address, port)).map_err(error)?;
        let address = listener.local_addr().map_err(error)?;
        Ok(Self { listener, address, access })
    }

    /// The address to open in a browser, with the token.
    #[must_use]
    pub fn url(&self) -> String {
        let port = self.address.port();
        let host = match self.address.ip() {
            // Browsers cannot open the wildcard address.
            ip if ip.is_unspecified() => match outgoing_address(ip.is_ipv6()) {
                Some(ip) => SocketAddr::new(ip, port).to_string(),
                None => format!("{}:{port}", self.access.names.first().map_or("localhost", String::as_str)),
            },
            ip => SocketAddr::new(ip, port).to_string(),
        };
        match &self.access.token {
            None => format!("http://{host}/"),
            Some(token) => format!("http://{host}/?token={}", token.as_str()),
        }
    }

    /// True if other machines can reach the page.
    #[must_use]
    pub fn is_public(&self) -> bool {
        !self.address.ip().to_canonical().is_loopback()
    }

    /// Starts the threads that serve the page until the process ends.
    ///
    /// # Errors
    /// If the system cannot create the threads.
    pub fn serve(self, backend: Arc<dyn Backend>) -> io::Result<()> {
        Workers::new(self.listener, self.access, backend).start()
    }
}

/// The address of this machine on the way to other networks; `None` without such a way.
fn outgoing_address(may_be_ipv6: bool) -> Option<IpAddr> {
    // Connecting a UDP socket sends nothing: the kernel only chooses the route. The addresses are reserved for
    // documentation (RFC 5737, RFC 3849).
    let via = |own: IpAddr, to: IpAddr| {
        let socket = UdpSocket::bind((own, 0)).ok()?;
        socket.connect((to, 9)).ok()?;
        Some(socket.local_addr().ok()?.ip())
    };
    let ipv4 = via(Ipv4Addr::UNSPECIFIED.into(), Ipv4Addr::new(192, 0, 2, 1).into());
    let ipv6 = || via(Ipv6Addr::UNSPECIFIED.into(), Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1).into());
    ipv4.or_else(|| if may_be_ipv6 { ipv6() } else { None })
}
