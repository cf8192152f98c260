//! What a network card stamps: one setting of the whole interface, which everybody who uses it shares.

use std::{
    io,
    net::{Ipv4Addr, UdpSocket},
    os::fd::AsRawFd,
};

/// Every frame that is to be stamped when it leaves: `tx_type`, HWTSTAMP_TX_ON.
pub const TX_ON: u32 = libc::HWTSTAMP_TX_ON;
/// Every frame that comes in: `rx_filter`, HWTSTAMP_FILTER_ALL.
pub const RX_ALL: u32 = libc::HWTSTAMP_FILTER_ALL;

/// What is stamped, by the kernel's numbers (net_tstamp.h).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamping {
    /// Which frames that leave.
    pub tx_type: u32,
    /// Which frames that come in.
    pub rx_filter: u32,
}

/// What an interface of the calling thread's namespace stamps now.
///
/// # Errors
/// ENODEV where there is none of this name, EOPNOTSUPP where its driver does not stamp, or cannot tell.
pub fn stamping(interface: &str) -> io::Result<Stamping> {
    ask(interface, libc::SIOCGHWTSTAMP, Stamping { tx_type: 0, rx_filter: 0 })
}

/// Sets what it stamps; answers what the driver made of that, which can be more.
///
/// # Errors
/// EPERM without CAP_NET_ADMIN, ERANGE where the card cannot, and as [`stamping`].
pub fn set_stamping(interface: &str, stamping: Stamping) -> io::Result<Stamping> {
    ask(interface, libc::SIOCSHWTSTAMP, stamping)
}

fn ask(interface: &str, what: libc::c_ulong, stamping: Stamping) -> io::Result<Stamping> {
    let Stamping { tx_type, rx_filter } = stamping;
    let mut config =
        libc::hwtstamp_config { flags: 0, tx_type: tx_type.cast_signed(), rx_filter: rx_filter.cast_signed() };
    // SAFETY: ifreq is plain old data, for which all zeroes is a valid value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if interface.len() >= request.ifr_name.len() {
        return Err(io::Error::from_raw_os_error(libc::ENODEV));
    }
    for (to, from) in request.ifr_name.iter_mut().zip(interface.bytes()) {
        *to = from as _;
    }
    request.ifr_ifru.ifru_data = (&raw mut config).cast();
    // Any socket serves; this one is never used.
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    // SAFETY: `request` is live, its name ends in a NUL, and its data points to `config`, which is live and of the type that
    // both requests read and write. The request's type differs between C libraries.
    if unsafe { libc::ioctl(socket.as_raw_fd(), what as _, &raw mut request) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(Stamping { tx_type: config.tx_type.cast_unsigned(), rx_filter: config.rx_filter.cast_unsigned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_stamps_nothing_and_a_stranger_is_not_there() {
        let refused = |name: &str| stamping(name).unwrap_err();
        assert_eq!(refused("lo").kind(), io::ErrorKind::Unsupported, "{}", refused("lo"));
        for name in ["no-such-if0", "a-name-far-too-long-for-an-interface"] {
            assert_eq!(refused(name).raw_os_error(), Some(libc::ENODEV));
        }
    }
}
