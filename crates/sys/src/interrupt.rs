//! Interrupts from outside: devices of the kernel that report an event with its time.
//!
//! | module | device |
//! |---|---|
//! | [`counted`] | real-time clocks and UIO devices, which only count (`/dev/rtcN`, `/dev/uioN`) |
//! | [`counter`] | devices of the counter subsystem (`/dev/counterN`) |
//! | [`evdev`] | input devices (`/dev/input/eventN`) |
//! | [`gpio`] | lines of GPIO chips (`/dev/gpiochipN`, version 2 of the interface) |
//! | [`handler`] | the times of an interrupt handler, from the trace |
//! | [`hpet`] | timers of the HPET, a timer chip of PCs whose counter can be read (`/dev/hpet`) |
//! | [`iio`] | buffers of industrial I/O devices (`/dev/iio:deviceN`) |
//! | [`parport`] | parallel ports (`/dev/parportN`) |
//! | [`pps`] | sources of a pulse per second (`/dev/ppsN`) |
//! | [`ptp`] | inputs of PTP hardware clocks, which stamp their edges (`/dev/ptpN`) |
//! | [`serial`] | control lines of serial ports (`/dev/ttyS0`) |
//! | `records` | buffers of events |
//! | `request` | ioctl requests |

pub mod counted;
pub mod counter;
pub mod evdev;
pub mod gpio;
pub mod handler;
pub mod hpet;
pub mod iio;
pub mod parport;
pub mod pps;
pub mod ptp;
mod records;
mod request;
pub mod serial;

/// A name of the kernel, which ends at the first zero.
fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}
