//! Network interfaces of the current namespace: reads their state, creates veth pairs and configures them.

use std::{
    io,
    net::{IpAddr, Ipv4Addr},
    os::fd::{AsFd, AsRawFd},
};

use crate::{
    native::{u16_at, u32_at},
    netlink::{Attributes, CREATE, EXCLUSIVE, Message, REPLACE, Request, Socket},
};

// Numbers from if_link.h, if_addr.h, neighbour.h, rtnetlink.h, netlink.h and veth.h.
const RTM_NEWLINK: u16 = 16;
const RTM_GETLINK: u16 = 18;
const RTM_NEWADDR: u16 = 20;
const RTM_NEWROUTE: u16 = 24;
const RTM_GETROUTE: u16 = 26;
const RTM_NEWNEIGH: u16 = 28;
const RTM_GETNEIGH: u16 = 30;

const IFLA_ADDRESS: u16 = 1;
const IFLA_IFNAME: u16 = 3;
const IFLA_MTU: u16 = 4;
const IFLA_OPERSTATE: u16 = 16;
const IFLA_LINKINFO: u16 = 18;
const IFLA_AF_SPEC: u16 = 26;
const IFLA_NET_NS_FD: u16 = 28;
const IFLA_CARRIER: u16 = 33;
const IFLA_CARRIER_UP_COUNT: u16 = 47;
const IFLA_INFO_KIND: u16 = 1;
const IFLA_INFO_DATA: u16 = 2;
const VETH_INFO_PEER: u16 = 1;
const IFLA_INET6_ADDR_GEN_MODE: u16 = 8;
const ADDR_GEN_MODE_NONE: u8 = 1;
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
const RTA_DST: u16 = 1;
const RTA_OIF: u16 = 4;
const RTA_GATEWAY: u16 = 5;
const NDA_DST: u16 = 1;
const NDA_LLADDR: u16 = 2;
/// The states of a neighbour entry with a usable address: reachable, stale, delay, probe, noarp and permanent.
const NUD_VALID: u16 = 0x02 | 0x04 | 0x08 | 0x10 | 0x40 | NUD_PERMANENT;
const NUD_PERMANENT: u16 = 0x80;
const NTF_USE: u8 = 0x01;

const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;
const UP: u32 = 1;
const OPERSTATE_UP: u8 = 6;

/// Length of `ifinfomsg`, bytes: family u8, padding u8, hardware u16, index i32, flags u32, flag mask u32.
const INFO: usize = 16;

/// Length of `rtmsg`, bytes.
const ROUTE: usize = 12;
/// Length of `ndmsg`, bytes.
const NEIGHBOUR: usize = 12;

/// A network interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// The interface index in its namespace.
    pub index: u32,
    /// The interface name.
    pub name: String,
    /// The hardware type, e.g. ARPHRD_ETHER (1) or ARPHRD_LOOPBACK (772).
    pub hardware: u16,
    /// The Ethernet address, if there is one.
    pub mac: Option<[u8; 6]>,
    /// The MTU: the largest payload of a frame, bytes.
    pub mtu: Option<u32>,
    /// True if the interface is administratively up (IFF_UP).
    pub is_up: bool,
    /// True if frames pass: the interface is up, has a carrier, and its queue is started.
    pub is_operational: bool,
    /// True if there is a carrier; `None` on old kernels.
    pub has_carrier: Option<bool>,
    /// Number of times that the carrier appeared since the interface was created; `None` before Linux 4.16.
    pub carrier_ups: Option<u32>,
    /// The kind of a virtual interface, e.g. `veth`; `None` for a hardware device.
    pub kind: Option<String>,
}

/// The interfaces of the namespace in which the socket was opened.
#[derive(Debug)]
pub struct Links(Socket);

impl Links {
    /// Opens the netlink socket.
    ///
    /// # Errors
    /// The kernel's error, as for all methods below.
    pub fn open() -> io::Result<Self> {
        Ok(Self(Socket::route()?))
    }

    /// Finds the interface of this name.
    ///
    /// # Errors
    /// ENODEV if there is no such interface; otherwise the kernel's error.
    pub fn find(&mut self, name: &str) -> io::Result<Link> {
        let answer = self.0.ask(&Self::question(name))?;
        let link = answer.messages()?.first().and_then(Link::read);
        link.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "the kernel's answer contains no interface"))
    }

    /// The request that [`find`](Self::find) sends. [`Link::read`] reads the answer.
    #[must_use]
    pub fn question(name: &str) -> Request {
        Request::get(RTM_GETLINK).header(&info(0, false)).text(IFLA_IFNAME, name)
    }

    /// The interface on the route to an address.
    ///
    /// # Errors
    /// ENETUNREACH if there is no route; otherwise the kernel's error.
    pub fn towards(&mut self, address: IpAddr) -> io::Result<Link> {
        self.next_hop(address).map(|(link, _)| link)
    }

    /// The interface on the route to an address, and the address of the next machine on it: a router, or the machine
    /// itself.
    ///
    /// # Errors
    /// ENETUNREACH if there is no route; otherwise the kernel's error.
    pub fn next_hop(&mut self, address: IpAddr) -> io::Result<(Link, IpAddr)> {
        let missing = || io::Error::new(io::ErrorKind::InvalidData, "the kernel's answer contains no interface");
        let (family, bytes) = family_and_bytes(address);
        let bits = if address.is_ipv4() { 32 } else { 128 };
        // rtmsg: family, length of the destination in bits, and ten bytes that are not used here.
        let mut header = [0; ROUTE];
        (header[0], header[1]) = (family, bits);
        let answer = self.0.ask(&Request::get(RTM_GETROUTE).header(&header).bytes_of(RTA_DST, &bytes))?;
        let messages = answer.messages()?;
        let route = messages.first().filter(|message| message.kind == RTM_NEWROUTE).ok_or_else(missing)?;
        let (_, attributes): (&[u8; ROUTE], Attributes) = route.with_header().map_err(|_| missing())?;
        let index = attributes.u32(RTA_OIF).ok_or_else(missing)?;
        let router = match address {
            IpAddr::V4(_) => array::<4>(&attributes, RTA_GATEWAY).map(IpAddr::from),
            IpAddr::V6(_) => array::<16>(&attributes, RTA_GATEWAY).map(IpAddr::from),
        };
        let answer = self.0.ask(&Request::get(RTM_GETLINK).header(&info(index, false)))?;
        let link = answer.messages()?.first().and_then(Link::read).ok_or_else(missing)?;
        Ok((link, router.unwrap_or(address)))
    }

    /// The Ethernet address of a neighbour, as the kernel knows it; `None` if it does not.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn neighbour(&mut self, index: u32, address: IpAddr) -> io::Result<Option<[u8; 6]>> {
        let (family, bytes) = family_and_bytes(address);
        let request = Request::get(RTM_GETNEIGH).header(&neighbour(family, index, 0, 0)).bytes_of(NDA_DST, &bytes);
        let answer = self.0.ask(&request)?;
        let messages = match answer.messages().map_err(io::Error::from) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            messages => messages?,
        };
        let Some(message) = messages.first().filter(|message| message.kind == RTM_NEWNEIGH) else { return Ok(None) };
        let (header, attributes): (&[u8; NEIGHBOUR], Attributes) =
            message.with_header().map_err(|_| io::ErrorKind::InvalidData)?;
        let is_valid = u16_at(header, 8).is_some_and(|state| state & NUD_VALID != 0);
        Ok(array(&attributes, NDA_LLADDR).filter(|_| is_valid))
    }

    /// Lets the kernel find the Ethernet address of a neighbour, as it does before it sends a packet there.
    /// [`neighbour`](Self::neighbour) returns it when the neighbour has answered.
    ///
    /// # Errors
    /// EPERM without CAP_NET_ADMIN; otherwise the kernel's error.
    pub fn find_neighbour(&mut self, index: u32, address: IpAddr) -> io::Result<()> {
        let (family, bytes) = family_and_bytes(address);
        let header = neighbour(family, index, 0, NTF_USE);
        self.change(&Request::change(RTM_NEWNEIGH, CREATE).header(&header).bytes_of(NDA_DST, &bytes))
    }

    /// Brings an interface up (IFF_UP).
    ///
    /// # Errors
    /// The kernel's error.
    pub fn set_up(&mut self, name: &str) -> io::Result<()> {
        self.change(&Request::change(RTM_NEWLINK, 0).header(&info(0, true)).text(IFLA_IFNAME, name))
    }

    /// Moves an interface to another namespace. There it is down and has no address.
    ///
    /// # Errors
    /// EPERM without CAP_NET_ADMIN, EINVAL if the interface cannot leave its namespace; otherwise the kernel's error.
    pub fn move_to(&mut self, name: &str, namespace: &impl AsFd) -> io::Result<()> {
        let fd = namespace.as_fd().as_raw_fd().cast_unsigned();
        let header = info(0, false);
        self.change(&Request::change(RTM_NEWLINK, 0).header(&header).text(IFLA_IFNAME, name).u32(IFLA_NET_NS_FD, fd))
    }

    /// Creates a connected veth pair: `near` in this namespace, `far` in another. Both are down.
    ///
    /// # Errors
    /// EEXIST if a name is in use, ERANGE if it is too long, EPERM without CAP_NET_ADMIN, EOPNOTSUPP if the kernel has
    /// no veth driver; otherwise the kernel's error.
    pub fn veth_pair(&mut self, near: &str, far: &str, far_namespace: &impl AsFd) -> io::Result<()> {
        let far_fd = far_namespace.as_fd().as_raw_fd().cast_unsigned();
        let peer = |peer: Request| peer.header(&info(0, false)).text(IFLA_IFNAME, far).u32(IFLA_NET_NS_FD, far_fd);
        let request = Request::change(RTM_NEWLINK, CREATE | EXCLUSIVE)
            .header(&info(0, false))
            .text(IFLA_IFNAME, near)
            .nested(IFLA_LINKINFO, |kind| {
                kind.text(IFLA_INFO_KIND, "veth").nested(IFLA_INFO_DATA, |data| data.nested(VETH_INFO_PEER, peer))
            });
        self.change(&request)
    }

    /// Disables IPv6 addresses on an interface, so that it sends no router solicitations and joins no groups. Call this
    /// before the interface is brought up.
    ///
    /// # Errors
    /// The kernel's error. A kernel without IPv6 is not an error.
    pub fn without_ipv6(&mut self, index: u32) -> io::Result<()> {
        let no_address = |v6: Request| v6.u8(IFLA_INET6_ADDR_GEN_MODE, ADDR_GEN_MODE_NONE);
        let request = Request::change(RTM_NEWLINK, 0)
            .header(&info(index, false))
            .nested(IFLA_AF_SPEC, |families| families.nested(AF_INET6.into(), no_address));
        match self.change(&request) {
            Err(error) if error.raw_os_error() == Some(libc::EAFNOSUPPORT) => Ok(()),
            done => done,
        }
    }

    /// Adds an address with a prefix of `prefix` bits to an interface.
    ///
    /// # Errors
    /// EEXIST if the interface already has the address; otherwise the kernel's error.
    pub fn add_address(&mut self, index: u32, address: Ipv4Addr, prefix: u8) -> io::Result<()> {
        // ifaddrmsg: family, length of the prefix, flags, scope; index.
        let mut header = vec![AF_INET, prefix, 0, 0];
        header.extend(index.to_ne_bytes());
        let request = Request::change(RTM_NEWADDR, CREATE | EXCLUSIVE)
            .header(&header)
            .bytes_of(IFA_LOCAL, &address.octets())
            .bytes_of(IFA_ADDRESS, &address.octets());
        self.change(&request)
    }

    /// Adds a permanent neighbour entry, so that no address resolution is needed.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn add_neighbour(&mut self, index: u32, address: Ipv4Addr, mac: [u8; 6]) -> io::Result<()> {
        let header = neighbour(AF_INET, index, NUD_PERMANENT, 0);
        let request = Request::change(RTM_NEWNEIGH, CREATE | REPLACE)
            .header(&header)
            .bytes_of(NDA_DST, &address.octets())
            .bytes_of(NDA_LLADDR, &mac);
        self.change(&request)
    }

    fn change(&mut self, request: &Request) -> io::Result<()> {
        self.0.ask(request)?.messages()?;
        Ok(())
    }
}

/// An attribute of `N` bytes.
fn array<const N: usize>(attributes: &Attributes, kind: u16) -> Option<[u8; N]> {
    attributes.bytes(kind)?.try_into().ok()
}

fn family_and_bytes(address: IpAddr) -> (u8, Vec<u8>) {
    match address {
        IpAddr::V4(address) => (AF_INET, address.octets().to_vec()),
        IpAddr::V6(address) => (AF_INET6, address.octets().to_vec()),
    }
}

/// `ndmsg`: family, three bytes of padding; index; state; flags and type.
fn neighbour(family: u8, index: u32, state: u16, flags: u8) -> [u8; NEIGHBOUR] {
    let ([a, b, c, d], [low, high]) = (index.to_ne_bytes(), state.to_ne_bytes());
    [family, 0, 0, 0, a, b, c, d, low, high, flags, 0]
}

/// Creates a connected veth pair: `near` in the namespace of the calling thread, `far` in another.
///
/// # Errors
/// The errors of [`Links::veth_pair`].
pub fn veth_pair(near: &str, far: &str, far_namespace: &impl AsFd) -> io::Result<()> {
    Links::open()?.veth_pair(near, far, far_namespace)
}

fn info(index: u32, set_up: bool) -> [u8; INFO] {
    let mut header = [0; INFO];
    header[4..8].copy_from_slice(&index.to_ne_bytes());
    if set_up {
        header[8..12].copy_from_slice(&UP.to_ne_bytes());
        header[12..16].copy_from_slice(&UP.to_ne_bytes());
    }
    header
}

impl Link {
    /// Reads the answer to [`Links::question`]; `None` if it is malformed.
    #[must_use]
    pub fn read(message: &Message) -> Option<Self> {
        let (header, attributes): (&[u8; INFO], Attributes) =
            message.with_header().ok().filter(|_| message.kind == RTM_NEWLINK)?;
        Some(Self {
            index: u32_at(header, 4)?,
            name: attributes.text(IFLA_IFNAME)?,
            hardware: u16_at(header, 2)?,
            mac: attributes.bytes(IFLA_ADDRESS).and_then(|mac| mac.try_into().ok()),
            mtu: attributes.u32(IFLA_MTU),
            is_up: u32_at(header, 8)? & UP != 0,
            is_operational: attributes.u8(IFLA_OPERSTATE) == Some(OPERSTATE_UP),
            has_carrier: attributes.flag(IFLA_CARRIER),
            carrier_ups: attributes.u32(IFLA_CARRIER_UP_COUNT),
            kind: attributes.nested(IFLA_LINKINFO).and_then(|info| info.text(IFLA_INFO_KIND)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_loopback_and_rejects_unknown_names() {
        let mut links = Links::open().unwrap();
        let lo = links.find("lo").unwrap();
        assert_eq!((lo.name.as_str(), lo.hardware, lo.mac), ("lo", 772, Some([0; 6])));
        assert_eq!(links.find("no-such-if0").unwrap_err().raw_os_error(), Some(libc::ENODEV));
        assert!(links.find("a-name-far-too-long-for-an-interface").is_err());
    }

    #[test]
    fn routes_to_localhost_over_the_loopback() {
        let mut links = Links::open().unwrap();
        assert_eq!(links.towards([127, 0, 0, 1].into()).unwrap().name, "lo");
    }
}
