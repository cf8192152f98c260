//! Devices that only count their interrupts, whose times come from the kernel's trace of its handlers.

use std::{
    fmt, io,
    path::{Path, PathBuf},
    str::FromStr,
};

use machine::{Root, online_cpus};
use sys::interrupt::{
    counted::{RealTimeClock, UserDevice},
    handler::Handlers,
};

use super::{
    devices::{numbered, with_name},
    source::{SourceError, SourceName},
};

/// Number of the trace event at the begin of each interrupt handler.
const EVENT: &str = "events/irq/irq_handler_entry/id";
/// Places of tracefs.
const TRACEFS: [&str; 2] = ["sys/kernel/tracing", "sys/kernel/debug/tracing"];

/// A UIO device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UioDevice {
    /// The device: `uio0`.
    pub device: String,
    /// True if another program enables its interrupt again, and serves the device.
    pub listens: bool,
}

impl FromStr for UioDevice {
    type Err = SourceError;

    fn from_str(text: &str) -> Result<Self, SourceError> {
        let (device, listens) = text.strip_suffix("/listen").map_or((text, false), |device| (device, true));
        numbered(device, "uio").map(|device| Self { device, listens }).ok_or_else(|| {
            SourceError::new(format!("`{text}` is no UIO device: write uio:N or uio:N/listen, e.g. uio:0/listen"))
        })
    }
}

impl fmt::Display for UioDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.device, if self.listens { "/listen" } else { "" })
    }
}

impl UioDevice {
    /// Opens the device. Returns also its name in words.
    pub(super) fn open(&self, root: &Root) -> Result<(UserDevice, String), SourceError> {
        let path = PathBuf::from("/dev").join(&self.device);
        let device = UserDevice::open(&path, !self.listens).map_err(|error| {
            let remedy = match error.kind() {
                io::ErrorKind::NotFound => "see `punctual measure interrupt --list`; its driver must be loaded",
                io::ErrorKind::PermissionDenied => "run as root",
                _ => "it has no interrupt: choose another device",
            };
            SourceError::new(format!("cannot use {}: {error}; {remedy}", path.display()))
        })?;
        Ok((device, with_name(root, &self.device, &format!("sys/class/uio/{}/name", self.device))))
    }
}

/// Opens a real-time clock, and starts its interrupts.
pub(super) fn open_clock(root: &Root, name: &str) -> Result<RealTimeClock, SourceError> {
    if has_polled_alarm(root, name) {
        return Err(SourceError::new(format!(
            "cannot use {name}: the kernel replaces its interrupts by a timer of the HPET, 64 a second, and their time is \
             not that of the clock: choose the source hpet, or boot with hpet=disable"
        )));
    }
    let path = Path::new("/dev").join(name);
    RealTimeClock::open(&path).map_err(|error| {
        let remedy = match error.kind() {
            io::ErrorKind::NotFound => "see `punctual measure interrupt --list`",
            io::ErrorKind::PermissionDenied => "run as root",
            io::ErrorKind::ResourceBusy => "another program uses it: end that",
            _ => "its driver makes no interrupts, or the clock has none: choose another source",
        };
        SourceError::new(format!("cannot use {}: {error}; {remedy}", path.display()))
    })
}

/// True if the kernel asks a clock of a PC at each interrupt of a HPET timer instead (`hpet_rtc_interrupt`).
pub(super) fn has_polled_alarm(root: &Root, name: &str) -> bool {
    let state = root.read("proc/driver/rtc").unwrap_or_default();
    let is_emulated = |line: &str| {
        line.split_once(':').is_some_and(|(key, value)| (key.trim(), value.trim()) == ("HPET_emulated", "yes"))
    };
    let is_of_pc = root.read(&format!("sys/class/rtc/{name}/name")).is_some_and(|name| name.starts_with("rtc_cmos"));
    is_of_pc && state.lines().any(is_emulated)
}

/// Begins to stamp the handler of the only interrupt of an open source.
pub(super) fn handlers(root: &Root, source: &SourceName) -> Result<Handlers, SourceError> {
    let refused = |why: String| SourceError::new(format!("cannot use {source}: {why}"));
    let now = machine::Handlers::read(root);
    let number = match source.interrupts(root, &now)[..] {
        [number] => number,
        [] => {
            return Err(refused("its interrupt is not known, as with a driver that asks the device regularly".into()));
        }
        ref several => return Err(refused(format!("it has {} interrupts, not one", several.len()))),
    };
    if now.count(number) > 1 {
        let remedy = "so its handler runs for other devices, too: see /proc/interrupts, and move it to another slot";
        return Err(refused(format!("it shares the interrupt {number}, {remedy}")));
    }
    let event =
        TRACEFS.iter().find_map(|folder| root.number::<u64>(&format!("{folder}/{EVENT}"))).ok_or_else(|| {
            refused(
            "the device stamps no interrupts, and the kernel's trace cannot be read: run as root, and mount it with \
             `sudo mount -t tracefs nodev /sys/kernel/tracing`"
                .to_owned(),
        )
        })?;
    Handlers::open(event, number, online_cpus(root).iter()).map_err(|error| {
        let remedy = "run as root; the kernel needs CONFIG_PERF_EVENTS";
        refused(format!("its interrupts cannot be traced: {error}; {remedy}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_needs_one_interrupt_of_its_own_and_the_trace() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::at(folder.path());
        let write = |path: &str, text: &str| {
            let path = root.path(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let error = || handlers(&root, &"uio:0".parse().unwrap()).map(drop).unwrap_err().to_string();
        write("sys/class/uio/uio0/name", "user\n");
        assert!(error().starts_with("cannot use uio:uio0: its interrupt is not known"), "{}", error());
        write("proc/irq/6/user/x", "");
        assert!(error().contains("mount it with `sudo mount -t tracefs"), "{}", error());
        write("proc/irq/6/other/x", "");
        assert!(error().contains("it shares the interrupt 6"), "{}", error());
        write("proc/irq/9/user/x", "");
        assert!(error().contains("it has 2 interrupts, not one"), "{}", error());
    }

    #[test]
    fn a_clock_whose_interrupts_come_from_the_hpet_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::at(folder.path());
        std::fs::create_dir_all(root.path("proc/driver")).unwrap();
        std::fs::create_dir_all(root.path("sys/class/rtc/rtc0")).unwrap();
        std::fs::write(root.path("sys/class/rtc/rtc0/name"), "rtc_cmos 00:04\n").unwrap();
        for (state, is_polled) in [("yes", true), ("no", false)] {
            std::fs::write(root.path("proc/driver/rtc"), format!("update_IRQ\t: no\nHPET_emulated\t: {state}\n"))
                .unwrap();
            assert_eq!(has_polled_alarm(&root, "rtc0"), is_polled);
        }
        assert!(open_clock(&root, "rtc77").unwrap_err().to_string().contains("cannot use /dev/rtc77"));
    }
}
