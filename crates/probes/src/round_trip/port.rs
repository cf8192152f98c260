//! The socket of a traffic class at the near end: one of the kernel's network stack, or AF_XDP. The sending and the
//! receiving thread have one half each.

use std::{io, net::SocketAddr, sync::Arc};

use sys::{
    packet::Poll,
    udp::{DatagramSocket, Received, Report, Sender, Stamps},
    xdp::{XdpReceiver, XdpSender},
};

/// The socket of a traffic class.
#[derive(Debug)]
pub enum Port {
    /// A socket of the kernel's network stack.
    Socket(DatagramSocket),
    /// AF_XDP, which bypasses the network stack and has no timestamps of the kernel.
    Xdp(Box<XdpPort>),
}

/// The path from the interface to a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PortKind {
    /// The kernel's network stack, which removes headers and VLAN tags.
    Socket,
    /// AF_XDP: messages are whole frames.
    Xdp,
}

/// Both directions of a queue.
#[derive(Debug)]
pub struct XdpPort {
    /// Sends whole frames.
    pub sender: XdpSender,
    /// Receives the frames of this class only, each with its VLAN tag.
    pub receiver: XdpReceiver,
    /// Copy mode and hook for the record, e.g. `xdp copy native`.
    pub mode: String,
    /// Notes for the record.
    pub notes: Vec<String>,
    /// A socket that keeps other programs from using the port of the datagrams; `None` for Ethernet frames. It receives
    /// nothing but the ICMP errors that the datagrams cause.
    pub reserved: Option<DatagramSocket>,
}

/// The half of the sending thread.
#[derive(Debug)]
pub(super) enum SendPort {
    Socket(Arc<DatagramSocket>),
    Xdp(Box<XdpSender>),
}

/// The half of the receiving thread.
#[derive(Debug)]
pub(super) enum ReceivePort {
    Socket(Arc<DatagramSocket>),
    Xdp { receiver: Box<XdpReceiver>, reserved: Option<DatagramSocket> },
}

impl Port {
    pub(super) fn kind(&self) -> PortKind {
        match self {
            Self::Socket(_) => PortKind::Socket,
            Self::Xdp(_) => PortKind::Xdp,
        }
    }

    /// The bound address; `None` for Ethernet frames.
    ///
    /// # Errors
    /// The kernel's error; none is expected.
    pub fn local_address(&self) -> io::Result<Option<SocketAddr>> {
        match self {
            Self::Socket(socket) => socket.local_address().map(Some),
            Self::Xdp(port) => port.reserved.as_ref().map(DatagramSocket::local_address).transpose(),
        }
    }

    pub(super) fn split(self) -> (SendPort, ReceivePort) {
        match self {
            Self::Socket(socket) => {
                let socket = Arc::new(socket);
                (SendPort::Socket(socket.clone()), ReceivePort::Socket(socket))
            }
            Self::Xdp(port) => {
                let XdpPort { sender, receiver, reserved, .. } = *port;
                (SendPort::Xdp(Box::new(sender)), ReceivePort::Xdp { receiver: Box::new(receiver), reserved })
            }
        }
    }

    /// Copy mode and hook of AF_XDP, `None` for a socket; and notes for the record.
    #[must_use]
    pub fn to_record(&self) -> (Option<String>, Vec<String>) {
        match self {
            Self::Socket(_) => (None, Vec::new()),
            Self::Xdp(port) => (Some(port.mode.clone()), port.notes.clone()),
        }
    }
}

impl SendPort {
    /// Sends a message: what follows the headers that the kernel writes.
    ///
    /// # Errors
    /// The errors of [`DatagramSocket::send`] and [`XdpSender::send`].
    #[inline]
    pub fn send(&mut self, message: &[u8]) -> io::Result<()> {
        match self {
            Self::Socket(socket) => socket.send(message),
            Self::Xdp(sender) => sender.send(message),
        }
    }

    /// Restarts the numbers of timestamps; returns false without timestamps of sent messages.
    pub fn restart_numbering(&self) -> bool {
        match self {
            Self::Socket(socket) => socket.set_stamps(Stamps::All).is_ok(),
            Self::Xdp(_) => false,
        }
    }

    /// The kernel's socket; `None` for AF_XDP.
    pub fn socket(&self) -> Option<&Arc<DatagramSocket>> {
        match self {
            Self::Socket(socket) => Some(socket),
            Self::Xdp(_) => None,
        }
    }
}

impl ReceivePort {
    /// Receives a message from the peer; `None` if none came in time. If `wait` is false, does not wait.
    ///
    /// # Errors
    /// The errors of [`DatagramSocket::receive`] and [`XdpReceiver::receive`].
    #[inline]
    pub fn receive(&mut self, buffer: &mut [u8], wait: bool) -> io::Result<Option<Received>> {
        match self {
            // The socket is connected, so all datagrams come from the peer.
            Self::Socket(socket) => socket.receive(buffer, &mut Sender::default(), wait),
            Self::Xdp { receiver, reserved } => {
                let poll = if wait { Poll::Sleep } else { Poll::Spin };
                match receiver.receive(buffer, poll)? {
                    Some(frame) => {
                        Ok(Some(Received { len: frame.length, stamp_ns: None, card_ns: None, tci: frame.tci }))
                    }
                    None if wait => reserved.as_ref().map_or(Ok(None), |socket| socket.error().map(|()| None)),
                    None => Ok(None),
                }
            }
        }
    }

    /// The next message of the error queue; `None` if there is none.
    ///
    /// # Errors
    /// The errors of [`DatagramSocket::report`].
    #[inline]
    pub fn report(&self) -> io::Result<Option<Report>> {
        match self {
            Self::Socket(socket) => socket.report(),
            Self::Xdp { .. } => Ok(None),
        }
    }
}
