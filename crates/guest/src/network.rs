//! Network cards and the links between them. There is no link to the host.

use std::{
    io,
    os::fd::{AsRawFd, OwnedFd},
    sync::Arc,
};

use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

/// A network card.
#[derive(Debug, Clone)]
pub struct Card {
    /// The emulated model.
    pub model: Model,
    /// The link of the card.
    pub link: Link,
}

/// A model of a network card.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Model {
    /// Intel 82574L: a common chip with interrupt moderation, rings and EEE registers.
    E1000e,
    /// The paravirtualised card.
    Virtio,
}

/// A network link of a card.
#[derive(Debug, Clone)]
pub enum Link {
    /// A link inside the guest with this number; its other end is another card.
    Internal(usize),
    /// A link to another guest: a socket and the side, 1 or 2.
    Peer(Arc<OwnedFd>, u8),
}

impl Model {
    /// The kernel module with its driver.
    #[must_use]
    pub fn driver(self) -> &'static str {
        match self {
            Self::E1000e => "e1000e",
            Self::Virtio => "virtio_net",
        }
    }

    fn device(self) -> &'static str {
        match self {
            Self::E1000e => "e1000e",
            Self::Virtio => "virtio-net-pci",
        }
    }
}

impl Link {
    /// Creates both ends of a link between two guests.
    ///
    /// # Errors
    /// If the kernel cannot create the sockets.
    pub fn pair() -> io::Result<[Self; 2]> {
        // Without CLOEXEC, so that QEMU inherits the socket. One datagram is one frame.
        let (one, other) = socketpair(AddressFamily::UNIX, SocketType::DGRAM, SocketFlags::empty(), None)?;
        Ok([Self::Peer(Arc::new(one), 1), Self::Peer(Arc::new(other), 2)])
    }
}

/// The QEMU arguments for these cards.
pub(crate) fn arguments(cards: &[Card]) -> Vec<String> {
    let one = |(index, card): (usize, &Card)| {
        let (end, side) = match &card.link {
            Link::Internal(number) => (format!("hubport,id=card{index},hubid={number}"), 0),
            Link::Peer(end, side) => (format!("socket,id=card{index},fd={}", end.as_raw_fd()), *side),
        };
        // Cards of two guests must have different addresses.
        let device = format!("{},netdev=card{index},mac=02:00:00:00:{side:02x}:{index:02x}", card.model.device());
        // Without a ROM, because nothing boots from the card and the ROM's package may be missing.
        ["-netdev".to_owned(), end, "-device".to_owned(), format!("{device},romfile=")]
    };
    cards.iter().enumerate().flat_map(one).collect()
}

#[cfg(test)]
mod tests {
    use rustix::net::{RecvFlags, SendFlags, recv, send};

    use super::*;

    #[test]
    fn cards_on_one_link_have_different_addresses() {
        let cards = [0, 0].map(|number| Card { model: Model::E1000e, link: Link::Internal(number) });
        let line = arguments(&cards).join(" ");
        assert_eq!(
            line,
            "-netdev hubport,id=card0,hubid=0 -device e1000e,netdev=card0,mac=02:00:00:00:00:00,romfile= \
             -netdev hubport,id=card1,hubid=0 -device e1000e,netdev=card1,mac=02:00:00:00:00:01,romfile="
        );
    }

    #[test]
    fn frames_between_guests_are_datagrams() {
        let [one, other] = Link::pair().unwrap();
        let socket = |link: &Link| match link {
            Link::Peer(end, _) => Arc::clone(end),
            Link::Internal(_) => panic!("expected a link between guests"),
        };
        send(socket(&one), b"frame", SendFlags::empty()).unwrap();
        let mut frame = [0; 16];
        assert_eq!(recv(socket(&other), &mut frame, RecvFlags::empty()).unwrap().0, 5);
        let device = |link: &Link| arguments(&[Card { model: Model::Virtio, link: link.clone() }])[3].clone();
        assert_eq!(device(&one), "virtio-net-pci,netdev=card0,mac=02:00:00:00:01:00,romfile=");
        assert_eq!(device(&other), "virtio-net-pci,netdev=card0,mac=02:00:00:00:02:00,romfile=");
    }
}
