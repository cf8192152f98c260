//! Hardware timestamping of a network interface. The setting is shared by all users of the interface.

use std::{
    io,
    net::{Ipv4Addr, UdpSocket},
    os::fd::AsRawFd,
};

/// `tx_type` that enables timestamps of sent frames: HWTSTAMP_TX_ON.
pub const TX_ON: u32 = libc::HWTSTAMP_TX_ON;
/// `rx_filter` that stamps every received frame: HWTSTAMP_FILTER_ALL.
pub const RX_ALL: u32 = libc::HWTSTAMP_FILTER_ALL;

/// The timestamping configuration, with the kernel's numbers (net_tstamp.h).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamping {
    /// The kind of timestamps for sent frames.
    pub tx_type: u32,
    /// The received frames that get a timestamp.
    pub rx_filter: u32,
}

/// Reads the configuration of an interface in the network namespace of the calling thread.
///
/// # Errors
/// ENODEV if there is no such interface, EOPNOTSUPP if its driver has no timestamps or cannot report the setting.
pub fn stamping(interface: &str) -> io::Result<Stamping> {
    request(interface, libc::SIOCGHWTSTAMP, Stamping { tx_type: 0, rx_filter: 0 })
}

/// Sets the configuration. Returns what the driver actually set, which can include more frames.
///
/// # Errors
/// EPERM without CAP_NET_ADMIN, ERANGE if the card cannot do it; otherwise the errors of [`stamping`].
pub fn set_stamping(interface: &str, stamping: Stamping) -> io::Result<Stamping> {
    request(interface, libc::SIOCSHWTSTAMP, stamping)
}

fn request(interface: &str, code: libc::c_ulong, stamping: Stamping) -> io::Result<Stamping> {
    let Stamping { tx_type, rx_filter } = stamping;
    let mut config =
        libc::hwtstamp_config { flags: 0, tx_type: tx_type.cast_signed(), rx_filter: rx_filter.cast_signed() };
    // SAFETY: ifreq is plain old data, so all zeroes is a valid value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if interface.len() >= request.ifr_name.len() {
        return Err(io::Error::from_raw_os_error(libc::ENODEV));
    }
    for (to, from) in request.ifr_name.iter_mut().zip(interface.bytes()) {
        *to = libc::c_char::from_ne_bytes([from]);
    }
    request.ifr_ifru.ifru_data = (&raw mut config).cast();
    // The ioctl needs some socket; its kind does not matter.
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    // SAFETY: `request` is live, its name ends in NUL, and its data points to the live `config`, which has the
    // type of both requests.
    if unsafe { libc::ioctl(socket.as_raw_fd(), code as _, &raw mut request) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(Stamping { tx_type: config.tx_type.cast_unsigned(), rx_filter: config.rx_filter.cast_unsigned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejects_the_loopback_and_unknown_interfaces() {
        let refused = |name: &str| stamping(name).unwrap_err();
        assert_eq!(refused("lo").kind(), io::ErrorKind::Unsupported, "{}", refused("lo"));
        for name in ["no-such-if0", "a-name-far-too-long-for-an-interface"] {
            assert_eq!(refused(name).raw_os_error(), Some(libc::ENODEV));
        }
    }
}
