//! Network cards and the cables between them. None leads to the host or out of it.

use std::{
    io,
    os::fd::{AsRawFd, OwnedFd},
    sync::Arc,
};

use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

/// A network card.
#[derive(Debug, Clone)]
pub struct Card {
    /// What it looks like to the kernel.
    pub model: Model,
    /// What is plugged into it.
    pub link: Link,
}

/// A model of a network card.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Model {
    /// Intel 82574L: a chip as there were millions, with moderated interrupts, rings and EEE registers.
    E1000e,
    /// The card that hosts make up for their guests.
    Virtio,
}

/// What is plugged into a card.
#[derive(Debug, Clone)]
pub enum Link {
    /// The cable of this number within the guest; its other end is in another card.
    Internal(usize),
    /// A cable to another guest: its end, and which of the two that is.
    Peer(Arc<OwnedFd>, u8),
}

impl Model {
    /// The driver of the kernel for it, a module.
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
    /// Both ends of a cable between two guests.
    ///
    /// # Errors
    /// When the kernel has no sockets left.
    pub fn pair() -> io::Result<[Self; 2]> {
        // Emulators inherit it, hence no CLOEXEC. One datagram is one frame.
        let (one, other) = socketpair(AddressFamily::UNIX, SocketType::DGRAM, SocketFlags::empty(), None)?;
        Ok([Self::Peer(Arc::new(one), 1), Self::Peer(Arc::new(other), 2)])
    }
}

/// Arguments of the emulator for these cards.
pub(crate) fn arguments(cards: &[Card]) -> Vec<String> {
    let one = |(index, card): (usize, &Card)| {
        let (end, side) = match &card.link {
            Link::Internal(number) => (format!("hubport,id=card{index},hubid={number}"), 0),
            Link::Peer(end, side) => (format!("socket,id=card{index},fd={}", end.as_raw_fd()), *side),
        };
        // Two guests must not have the same addresses.
        let device = format!("{},netdev=card{index},mac=02:00:00:00:{side:02x}:{index:02x}", card.model.device());
        // Nobody boots over it, and the packages with the code for that may be missing.
        ["-netdev".to_owned(), end, "-device".to_owned(), format!("{device},romfile=")]
    };
    cards.iter().enumerate().flat_map(one).collect()
}

#[cfg(test)]
mod tests {
    use rustix::net::{RecvFlags, SendFlags, recv, send};

    use super::*;

    #[test]
    fn cards_on_one_cable_have_addresses_of_their_own() {
        let cards = [0, 0].map(|number| Card { model: Model::E1000e, link: Link::Internal(number) });
        let line = arguments(&cards).join(" ");
        assert_eq!(
            line,
            "-netdev hubport,id=card0,hubid=0 -device e1000e,netdev=card0,mac=02:00:00:00:00:00,romfile= \
             -netdev hubport,id=card1,hubid=0 -device e1000e,netdev=card1,mac=02:00:00:00:00:01,romfile="
        );
    }

    #[test]
    fn a_frame_between_guests_is_a_datagram() {
        let [one, other] = Link::pair().unwrap();
        let socket = |link: &Link| match link {
            Link::Peer(end, _) => Arc::clone(end),
            Link::Internal(_) => panic!("it is between them"),
        };
        send(socket(&one), b"frame", SendFlags::empty()).unwrap();
        let mut frame = [0; 16];
        assert_eq!(recv(socket(&other), &mut frame, RecvFlags::empty()).unwrap().0, 5);
        let device = |link: &Link| arguments(&[Card { model: Model::Virtio, link: link.clone() }])[3].clone();
        assert_eq!(device(&one), "virtio-net-pci,netdev=card0,mac=02:00:00:00:01:00,romfile=");
        assert_eq!(device(&other), "virtio-net-pci,netdev=card0,mac=02:00:00:00:02:00,romfile=");
    }
}
