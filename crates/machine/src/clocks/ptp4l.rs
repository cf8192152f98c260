//! Reads the state of a running ptp4l over its management socket. Nothing is changed.

use std::{
    io,
    os::{
        linux::net::SocketAddrExt,
        unix::net::{SocketAddr, UnixDatagram},
    },
    process,
    sync::atomic::{AtomicU32, Ordering},
    time::{Duration, Instant},
};

use record::{Ptp, PtpPort};

use super::management::{Address, Contents, DataSet, Identity, Response, state_name};
use crate::{Root, interface_name};

/// Version 4.0 and newer have a second socket, which all users may use.
const SOCKETS: [&str; 2] = ["var/run/ptp4lro", "var/run/ptp4l"];
/// The default domains of the profiles IEEE 1588, 802.1AS and AES67; ITU-T G.8265.1, G.8275.1, G.8275.2; SMPTE ST
/// 2059-2; IEEE C37.238. An instance answers only in its own domain.
const DOMAINS: [u8; 6] = [0, 4, 24, 44, 127, 254];
/// Time limit for answers, which normally take well under a millisecond.
const TIMEOUT: Duration = Duration::from_millis(300);
/// Longer than any answer to our requests, bytes.
const MAX_RESPONSE: usize = 1500;

/// Data sets of the clock; ptp4l sends one of each.
const CLOCK_DATA_SETS: [DataSet; 3] = [DataSet::Current, DataSet::Parent, DataSet::TimeProperties];
/// Data sets of the ports; ptp4l sends one of each per port.
const PORT_DATA_SETS: [DataSet; 2] = [DataSet::Port, DataSet::PortProperties];

/// Reads the state of ptp4l; `Ok(None)` if none runs.
///
/// # Errors
/// A sentence that says why the state could not be read.
pub(super) fn read(root: &Root) -> Result<Option<Ptp>, String> {
    for path in SOCKETS {
        match connect(root, path) {
            Ok(socket) => return Connection { socket, path }.read_state(root).map(Some),
            // A killed ptp4l leaves its socket behind.
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused) => {}
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                return Err(format!("no right to query ptp4l over /{path}: run as root"));
            }
            Err(error) => return Err(format!("cannot query ptp4l over /{path}: {error}")),
        }
    }
    Ok(None)
}

/// Connects to a socket of ptp4l. Ours needs an address for the responses; an abstract one leaves no file behind.
fn connect(root: &Root, path: &str) -> io::Result<UnixDatagram> {
    static SOCKETS_MADE: AtomicU32 = AtomicU32::new(0);
    let number = SOCKETS_MADE.fetch_add(1, Ordering::Relaxed);
    let socket =
        UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(format!("punctual.{}.{number}", process::id()))?)?;
    // A connected socket receives nothing from other senders.
    socket.connect(root.path(path))?;
    socket.set_write_timeout(Some(TIMEOUT))?;
    Ok(socket)
}

/// A socket connected to ptp4l.
struct Connection<'a> {
    socket: UnixDatagram,
    /// Path of ptp4l's socket, for errors.
    path: &'a str,
}

/// The PTP clock that answered.
struct FoundClock {
    address: Address,
    ports: u16,
    identity: Identity,
}

impl Connection<'_> {
    fn read_state(&self, root: &Root) -> Result<Ptp, String> {
        let clock = self.find_clock()?;
        let contents = self.request_data_sets(&clock)?;
        if let Some(missing) = CLOCK_DATA_SETS.iter().find(|set| !contents.iter().any(|read| read.0 == **set)) {
            return Err(format!("ptp4l did not send its {missing:?} data set over /{}", self.path));
        }
        let address = clock.address;
        let mut ptp = Ptp { domain: address.domain, is_gptp: address.is_gptp, ..Ptp::default() };
        for (_, contents) in contents {
            add(&mut ptp, contents, clock.identity, root);
        }
        Ok(ptp)
    }

    /// Sends a request to every known kind of instance, and returns the first that answers.
    fn find_clock(&self) -> Result<FoundClock, String> {
        let addresses = DOMAINS.iter().flat_map(|&domain| [false, true].map(|is_gptp| Address { domain, is_gptp }));
        for address in addresses {
            // If ptp4l accepts no more requests, it may still answer the first ones.
            if self.socket.send(&address.request(DataSet::Default)).is_err() {
                break;
            }
        }
        let mut clock = None;
        self.receive(|response| {
            if let Contents::Default { ports, identity } = response.contents {
                clock = Some(FoundClock { address: response.address, ports, identity });
            }
            clock.is_some()
        });
        clock.ok_or_else(|| self.no_answer())
    }

    /// Requests all data sets of a clock, and returns the ones received in time.
    fn request_data_sets(&self, clock: &FoundClock) -> Result<Vec<(DataSet, Contents)>, String> {
        for data_set in CLOCK_DATA_SETS.into_iter().chain(PORT_DATA_SETS) {
            self.socket.send(&clock.address.request(data_set)).map_err(|_| self.no_answer())?;
        }
        let mut missing = CLOCK_DATA_SETS.len() + PORT_DATA_SETS.len() * usize::from(clock.ports);
        let mut received = Vec::new();
        self.receive(|response| {
            if response.address == clock.address && response.data_set != DataSet::Default {
                missing = missing.saturating_sub(1);
                if response.contents != Contents::Refused {
                    received.push((response.data_set, response.contents));
                }
            }
            missing == 0
        });
        Ok(received)
    }

    /// Passes each response to `is_last`, until it returns true or the time limit ends.
    fn receive(&self, mut is_last: impl FnMut(Response) -> bool) {
        let end = Instant::now() + TIMEOUT;
        let mut buffer = [0; MAX_RESPONSE];
        loop {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() || self.socket.set_read_timeout(Some(left)).is_err() {
                return;
            }
            match self.socket.recv(&mut buffer) {
                Ok(length) if Response::read(&buffer[..length]).is_some_and(&mut is_last) => return,
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return,
            }
        }
    }

    fn no_answer(&self) -> String {
        format!("ptp4l did not answer over /{} in any of the domains {DOMAINS:?}", self.path)
    }
}

/// Adds the contents of one data set. `identity` is that of the clock.
fn add(ptp: &mut Ptp, contents: Contents, identity: Identity, root: &Root) {
    match contents {
        Contents::Current { steps, offset_ns, path_delay_ns } => {
            (ptp.steps, ptp.offset_ns) = (steps, offset_ns.unsigned_abs());
            ptp.path_delay_ns = delay(path_delay_ns).or(ptp.path_delay_ns);
        }
        Contents::Parent { grandmaster } => {
            (ptp.grandmaster, ptp.is_grandmaster) = (grandmaster.to_string(), grandmaster == identity);
        }
        Contents::TimeProperties { utc_offset_s, is_tai } => {
            (ptp.utc_offset_s, ptp.is_tai) = (utc_offset_s, is_tai);
        }
        Contents::Port { number, state, peer_delay_ns } => {
            let port = port(&mut ptp.ports, number);
            port.state = state_name(state);
            if port.state == "SLAVE" {
                ptp.path_delay_ns = ptp.path_delay_ns.or_else(|| delay(peer_delay_ns));
            }
        }
        Contents::PortProperties { number, stamps_in_hardware, interface } => {
            let port = port(&mut ptp.ports, number);
            port.stamps_in_hardware = Some(stamps_in_hardware);
            port.interface = Some(interface).filter(|name| interface_name::is_valid(name));
            port.clock = port.interface.as_ref().and_then(|name| clock_of(root, name));
        }
        Contents::Default { .. } | Contents::Refused => {}
    }
}

/// Converts a delay; 0 means that it was not measured.
fn delay(ns: i64) -> Option<u64> {
    (ns != 0).then(|| ns.unsigned_abs())
}

/// The port with this number, which is added if it is missing.
fn port(ports: &mut Vec<PtpPort>, number: u16) -> &mut PtpPort {
    let at = ports.iter().position(|port| port.number == number).unwrap_or_else(|| {
        ports.push(PtpPort { number, state: "of unknown state".to_owned(), ..PtpPort::default() });
        ports.len() - 1
    });
    &mut ports[at]
}

/// The clock of an interface; `None` unless it has exactly one.
fn clock_of(root: &Root, interface: &str) -> Option<String> {
    match root.list(&format!("sys/class/net/{interface}/device/ptp")).as_slice() {
        [clock] => Some(clock.clone()),
        _ => None,
    }
}
