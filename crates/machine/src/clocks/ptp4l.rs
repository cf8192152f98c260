//! Asking a running ptp4l, over its socket for management: questions alone, nothing is set.

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

use super::management::{Address, Answer, DataSet, Told, state_name};
use crate::{Root, nic};

/// Newer versions (4.0) have a second socket, which everybody may ask.
const SOCKETS: [&str; 2] = ["var/run/ptp4lro", "var/run/ptp4l"];
/// Those that profiles begin with: IEEE 1588, 802.1AS and AES67; ITU-T G.8265.1, G.8275.1, G.8275.2; SMPTE ST 2059-2;
/// IEEE C37.238. An instance answers in its own alone.
const DOMAINS: [u8; 6] = [0, 4, 24, 44, 127, 254];
/// It answers in well under a millisecond where it gets to run.
const PATIENCE: Duration = Duration::from_millis(300);
/// Longer than any answer to our questions.
const LONGEST: usize = 1500;

/// What ptp4l tells; `Ok(None)` where none runs.
///
/// # Errors
/// A sentence that says why it does not tell.
pub(super) fn ask(root: &Root) -> Result<Option<Ptp>, String> {
    for path in SOCKETS {
        let failed = |error: &io::Error| format!("ptp4l cannot be asked over /{path}: {error}");
        match connect(root, path) {
            Ok(socket) => return conversation(&socket, root, path),
            // An end without a program behind it is what a ptp4l that was killed leaves.
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused) => {}
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                return Err(format!("ptp4l may not be asked over /{path}: run as root"));
            }
            Err(error) => return Err(failed(&error)),
        }
    }
    Ok(None)
}

/// It answers to an address, so we need one: an abstract one leaves nothing behind.
fn connect(root: &Root, path: &str) -> io::Result<UnixDatagram> {
    static SOCKETS_MADE: AtomicU32 = AtomicU32::new(0);
    let number = SOCKETS_MADE.fetch_add(1, Ordering::Relaxed);
    let socket =
        UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(format!("punctual.{}.{number}", process::id()))?)?;
    // From now on the kernel takes nothing from others.
    socket.connect(root.path(path))?;
    socket.set_write_timeout(Some(PATIENCE))?;
    Ok(socket)
}

fn conversation(socket: &UnixDatagram, root: &Root, path: &str) -> Result<Option<Ptp>, String> {
    let everywhere = DOMAINS.iter().flat_map(|&domain| [false, true].map(|is_gptp| Address { domain, is_gptp }));
    let silent = || format!("ptp4l did not answer over /{path}, in none of the domains {DOMAINS:?}");
    for address in everywhere {
        // Where it has stopped taking them, it may still answer the first.
        if socket.send(&address.question(DataSet::Default)).is_err() {
            break;
        }
    }
    let mut clock = None;
    listen(socket, |answer| {
        if let Told::Default { ports, identity } = answer.told {
            clock = Some((answer.address, ports, identity));
        }
        clock.is_some()
    });
    let (address, port_count, identity) = clock.ok_or_else(silent)?;

    let once = [DataSet::Current, DataSet::Parent, DataSet::TimeProperties];
    let of_ports = [DataSet::Port, DataSet::PortProperties];
    for about in once.into_iter().chain(of_ports) {
        socket.send(&address.question(about)).map_err(|_| silent())?;
    }
    let mut missing = once.len() + of_ports.len() * usize::from(port_count);
    let mut answers = Vec::new();
    listen(socket, |answer| {
        if answer.address == address && answer.about != DataSet::Default {
            answers.push(answer.told);
            missing = missing.saturating_sub(1);
        }
        missing == 0
    });
    let mut ptp = Ptp { domain: address.domain, is_gptp: address.is_gptp, ..Ptp::default() };
    let mut rest = once.to_vec();
    for told in answers {
        match told {
            Told::Current { steps, offset_ns, path_delay_ns } => {
                rest.retain(|&about| about != DataSet::Current);
                (ptp.steps, ptp.offset_ns) = (steps, offset_ns.unsigned_abs());
                ptp.path_delay_ns = delay(path_delay_ns).or(ptp.path_delay_ns);
            }
            Told::Parent { grandmaster } => {
                rest.retain(|&about| about != DataSet::Parent);
                (ptp.grandmaster, ptp.is_grandmaster) = (grandmaster.to_string(), grandmaster == identity);
            }
            Told::TimeProperties { utc_offset_s, is_tai } => {
                rest.retain(|&about| about != DataSet::TimeProperties);
                (ptp.utc_offset_s, ptp.is_tai) = (utc_offset_s, is_tai);
            }
            Told::Port { number, state, peer_delay_ns } => {
                let port = port(&mut ptp.ports, number);
                port.state = state_name(state);
                if port.state == "SLAVE" {
                    ptp.path_delay_ns = ptp.path_delay_ns.or_else(|| delay(peer_delay_ns));
                }
            }
            Told::PortProperties { number, stamps_in_hardware, interface } => {
                let port = port(&mut ptp.ports, number);
                port.stamps_in_hardware = Some(stamps_in_hardware);
                port.interface = Some(interface).filter(|name| nic::is_name(name));
                port.clock = port.interface.as_ref().and_then(|name| clock_of(root, name));
            }
            Told::Default { .. } | Told::Refused => {}
        }
    }
    match rest.first() {
        Some(about) => Err(format!("ptp4l did not tell its {about:?} data set over /{path}")),
        None => Ok(Some(ptp)),
    }
}

/// Takes in answers until `take` has what it wants, or patience ends.
fn listen(socket: &UnixDatagram, mut take: impl FnMut(Answer) -> bool) {
    let end = Instant::now() + PATIENCE;
    let mut buffer = [0; LONGEST];
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() || socket.set_read_timeout(Some(left)).is_err() {
            return;
        }
        match socket.recv(&mut buffer) {
            Ok(length) if Answer::read(&buffer[..length]).is_some_and(&mut take) => return,
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}

/// 0 stands for a delay that was not measured.
fn delay(ns: i64) -> Option<u64> {
    (ns != 0).then(|| ns.unsigned_abs())
}

/// The port of this number, which is made where there is none.
fn port(ports: &mut Vec<PtpPort>, number: u16) -> &mut PtpPort {
    let at = ports.iter().position(|port| port.number == number).unwrap_or_else(|| {
        ports.push(PtpPort { number, state: "of unknown state".to_owned(), ..PtpPort::default() });
        ports.len() - 1
    });
    &mut ports[at]
}

/// The clock of an interface, where there is one and no more.
fn clock_of(root: &Root, interface: &str) -> Option<String> {
    match root.list(&format!("sys/class/net/{interface}/device/ptp")).as_slice() {
        [clock] => Some(clock.clone()),
        _ => None,
    }
}
