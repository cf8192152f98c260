//! Interrupts from outside: devices of the kernel that report an event with its time.
//!
//! | module | device |
//! |---|---|
//! | [`gpio`] | lines of GPIO chips (`/dev/gpiochipN`, version 2 of the interface) |
//! | [`hpet`] | timers of the HPET, a timer chip of PCs whose counter can be read (`/dev/hpet`) |
//! | [`pps`] | sources of a pulse per second (`/dev/ppsN`) |
//! | `request` | ioctl requests |

pub mod gpio;
pub mod hpet;
pub mod pps;
mod request;
