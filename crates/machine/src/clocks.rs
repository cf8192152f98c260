//! The clocks of this machine, their time sources and offsets. Everything is read; nothing is changed.

pub mod management;
mod ptp4l;
pub mod sync;
mod watch;

use std::io;

use record::{Ahead, Clocks, HardwareClock, KernelClock};
use sys::timekeeping;

pub use self::watch::ClockWatch;
use crate::{Root, tasks};

/// Programs that set clocks: linuxptp, chrony and NTP clients. The kernel truncates names to 15 characters.
const PROGRAMS: [&str; 6] = ["ptp4l", "phc2sys", "ts2phc", "chronyd", "ntpd", "systemd-timesyn"];
/// Readings of a hardware clock; the quickest one is used.
const READINGS: u32 = 25;

/// Reads all clocks of the machine; `None` if nothing is known about any. Takes a few milliseconds, or 0.3 s if a ptp4l
/// runs that does not answer.
#[must_use]
pub fn read(root: &Root) -> Option<Clocks> {
    let mut unknown = Vec::new();
    let mut note = |why| unknown.push(why);
    let ptp = ptp4l::read(root).map_err(&mut note).ok().flatten();
    let kernel = root.is_system().then(kernel).and_then(|clock| clock.map_err(&mut note).ok());
    let hardware = hardware(root, &mut note);
    let clocks = Clocks { kernel, ptp, hardware, programs: programs(root), looks: 1, unknown, broken: None };
    (clocks != Clocks { looks: 1, ..Clocks::default() }).then_some(clocks)
}

fn kernel() -> Result<KernelClock, String> {
    let state =
        timekeeping::kernel_clock().map_err(|error| format!("cannot read the state of the kernel's clock: {error}"))?;
    Ok(KernelClock {
        synchronised: state.synchronised,
        max_error_ns: state.max_error_us.saturating_mul(1000),
        expected_error_ns: state.expected_error_us.saturating_mul(1000),
        tai_offset_s: state.tai_offset_s,
    })
}

fn hardware(root: &Root, note: &mut impl FnMut(String)) -> Vec<HardwareClock> {
    let clock = |device: String| {
        let name = root.read(&format!("sys/class/ptp/{device}/clock_name"));
        let ahead = ahead(root, &device).map_err(&mut *note).ok();
        HardwareClock { device, name, ahead }
    };
    let is_clock = |name: &String| name.strip_prefix("ptp").is_some_and(|number| number.parse::<u32>().is_ok());
    root.list("sys/class/ptp").into_iter().filter(is_clock).map(clock).collect()
}

fn ahead(root: &Root, device: &str) -> Result<Ahead, String> {
    if !root.is_system() {
        return Err(format!("/dev/{device} of a recorded machine cannot be read"));
    }
    let readings =
        timekeeping::readings(&root.path(&format!("dev/{device}")), READINGS).map_err(|error| match error.kind() {
            io::ErrorKind::PermissionDenied => format!("no right to read /dev/{device}: run as root"),
            _ => format!("cannot compare /dev/{device} with the system clock: {error}"),
        })?;
    let quickest = readings.iter().min_by_key(|reading| reading.window_ns());
    let quickest = quickest.ok_or_else(|| format!("/dev/{device} gave no plausible reading"))?;
    Ok(Ahead::of(quickest.ahead_ns(), quickest.window_ns()))
}

fn programs(root: &Root) -> Vec<String> {
    let running = tasks::processes(root);
    let is_running = |name: &&str| running.iter().any(|(_, running)| running == name);
    PROGRAMS.into_iter().filter(is_running).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests;
