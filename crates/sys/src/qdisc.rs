//! Sets the queueing discipline of an interface.

use std::io;

use crate::netlink::{CREATE, REPLACE, Request, Socket};

// Numbers from rtnetlink.h, netlink.h and pkt_sched.h.
const RTM_NEWQDISC: u16 = 36;
/// Attribute: the name of the discipline.
pub const TCA_KIND: u16 = 1;
/// Attribute: the parameters of the discipline.
pub const TCA_OPTIONS: u16 = 2;
const TCA_ETF_PARMS: u16 = 1;
/// The parent of an interface's root discipline.
pub const ROOT: u32 = u32::MAX;

/// Installs the ETF discipline on the interface with this index, in the namespace of the calling thread. ETF holds each
/// frame until `delta_ns` before its launch time on CLOCK_TAI and drops frames without a launch time.
///
/// # Errors
/// ENOENT if the kernel has no ETF, EPERM without CAP_NET_ADMIN; otherwise the kernel's error.
pub fn install_etf(index: u32, delta_ns: u32) -> io::Result<()> {
    Socket::route()?.ask(&request(index, delta_ns))?.messages()?;
    Ok(())
}

fn request(index: u32, delta_ns: u32) -> Request {
    // tcmsg: family and padding; index; handle (0: the kernel chooses it); parent; info.
    let header = [0, index, 0, ROOT, 0].map(u32::to_ne_bytes).concat();
    // tc_etf_qopt: delta, clockid, flags.
    let parameters = [delta_ns, libc::CLOCK_TAI.cast_unsigned(), 0].map(u32::to_ne_bytes).concat();
    Request::change(RTM_NEWQDISC, CREATE | REPLACE)
        .header(&header)
        .text(TCA_KIND, "etf")
        .nested(TCA_OPTIONS, |options| options.bytes_of(TCA_ETF_PARMS, &parameters))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_decodes_the_request() {
        // There is no interface with this index, but a missing permission is reported first.
        let refused = install_etf(i32::MAX.cast_unsigned(), 50_000).unwrap_err();
        assert!(matches!(refused.raw_os_error(), Some(libc::ENODEV | libc::EPERM)), "{refused}");
    }
}
