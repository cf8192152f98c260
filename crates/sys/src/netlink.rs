//! Netlink: queries and changes the kernel's network configuration without calling external programs.
//!
//! [`Request`] encodes; [`Answer`] and [`Attributes`] decode. Both are plain bytes, so a stored answer can be decoded
//! on another machine with the same byte order. Layouts and numbers are those of the kernel headers `netlink.h`,
//! `genetlink.h` and `rtnetlink.h`.

mod answer;
mod attributes;
mod error;
mod request;

use std::{
    io,
    os::fd::{AsRawFd, OwnedFd},
    time::Duration,
};

use rustix::net::{
    AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with,
    sockopt::{Timeout, set_socket_timeout},
};

pub use answer::{Answer, Message};
pub use attributes::{Attribute, Attributes};
pub use error::AnswerError;
pub use request::{CREATE, EXCLUSIVE, REPLACE, Request};

use crate::convert;

/// Maximum wait for an answer, which normally takes microseconds.
const PATIENCE: Duration = Duration::from_secs(10);
/// Maximum number of requests for a dump. It is repeated if the listed objects change while it is read.
const TRIES: usize = 5;

/// The control family, which resolves the names of generic families.
const GENL_ID_CTRL: u16 = 16;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;

/// A netlink socket of the network namespace that the opening thread was in.
#[derive(Debug)]
pub struct Socket {
    fd: OwnedFd,
    sequence: u32,
}

impl Socket {
    /// Opens a socket for links, addresses, neighbours and queueing disciplines.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn route() -> io::Result<Self> {
        // Protocol 0 is NETLINK_ROUTE.
        Self::open(None)
    }

    /// Opens a socket for generic families such as `ethtool` and `netdev`.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn generic() -> io::Result<Self> {
        Self::open(Some(netlink::GENERIC))
    }

    fn open(protocol: Option<Protocol>) -> io::Result<Self> {
        let fd = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, protocol)?;
        set_socket_timeout(&fd, Timeout::Recv, Some(PATIENCE))?;
        // Kernels before 4.12 have neither option. Their errors then have no message and repeat the whole request.
        let _ = (enable(&fd, libc::NETLINK_EXT_ACK), enable(&fd, libc::NETLINK_CAP_ACK));
        Ok(Self { fd, sequence: 0 })
    }

    /// Sends a request and waits for the complete answer. A refusal is also an answer, not an error.
    ///
    /// # Errors
    /// The kernel's error when sending or receiving; `TimedOut` if nothing arrives for ten seconds.
    pub fn ask(&mut self, request: &Request) -> io::Result<Answer> {
        for _ in 1..TRIES {
            let answer = self.ask_once(request)?;
            if !answer.was_interrupted() {
                return Ok(answer);
            }
        }
        self.ask_once(request)
    }

    fn ask_once(&mut self, request: &Request) -> io::Result<Answer> {
        self.sequence = self.sequence.wrapping_add(1);
        send(&self.fd, &request.bytes(self.sequence), SendFlags::empty())?;
        let mut answer = Answer::default();
        let mut datagram = vec![0; 1 << 16];
        while !answer.is_whole() {
            let (taken, length) = match recv(&self.fd, datagram.as_mut_slice(), RecvFlags::TRUNC) {
                Err(rustix::io::Errno::INTR) => continue,
                Err(rustix::io::Errno::AGAIN) => return Err(io::ErrorKind::TimedOut.into()),
                received => received?,
            };
            if length > taken {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "the kernel's answer is larger than 64 KiB"));
            }
            answer.extend(&datagram[..taken], self.sequence);
        }
        Ok(answer)
    }

    /// The number of a generic family.
    ///
    /// # Errors
    /// ENOENT if this kernel has no family of that name; otherwise the kernel's error.
    pub fn family(&mut self, name: &str) -> io::Result<u16> {
        let request = Request::generic(GENL_ID_CTRL, CTRL_CMD_GETFAMILY).text(CTRL_ATTR_FAMILY_NAME, name);
        let answer = self.ask(&request)?;
        let id = answer.messages()?.first().and_then(|message| message.generic().ok()?.1.u16(CTRL_ATTR_FAMILY_ID));
        id.ok_or_else(|| AnswerError::Malformed.into())
    }
}

fn enable(fd: &OwnedFd, option: i32) -> io::Result<()> {
    let on: i32 = 1;
    // SAFETY: the option value is a live i32 of the given length; the kernel only reads it.
    let answer = unsafe {
        libc::setsockopt(fd.as_raw_fd(), libc::SOL_NETLINK, option, (&raw const on).cast(), convert::size::<i32>())
    };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resolves_known_families_and_rejects_others() {
        let mut socket = Socket::generic().unwrap();
        assert!(socket.family("nlctrl").unwrap() == GENL_ID_CTRL);
        let refused = socket.family("no such family").unwrap_err();
        assert_eq!(refused.raw_os_error(), Some(libc::ENOENT), "{refused}");
    }

    #[test]
    fn a_dump_is_complete() {
        // RTM_GETLINK for all links; the header is an ifinfomsg.
        let request = Request::dump(18).header(&[0; 16]);
        let answer = Socket::route().unwrap().ask(&request).unwrap();
        let names: Vec<String> = answer
            .messages()
            .unwrap()
            .iter()
            .filter_map(|link| Attributes::read(link.payload.get(16..)?).ok()?.text(3))
            .collect();
        assert!(names.iter().any(|name| name == "lo"), "{names:?}");
    }

    #[test]
    fn a_refusal_has_an_error_number() {
        // The link kind does not exist, so the kernel refuses the request.
        let request =
            Request::change(16, CREATE | EXCLUSIVE).header(&[0; 16]).nested(18, |info| info.text(1, "nonsense"));
        let refused = Socket::route().unwrap().ask(&request).unwrap();
        let error = refused.messages().unwrap_err();
        assert!(matches!(error, AnswerError::Refused { errno: libc::EOPNOTSUPP | libc::EPERM, .. }), "{error}");
    }
}
