//! The interrupts of a device that a program waits for: their numbers, from handlers that have appeared since the program
//! opened it, or from the device's place in sysfs.

use std::{collections::BTreeSet, fs, path::Path};

use crate::{Root, nic::Thread, tasks};

const IRQ: &str = "proc/irq";

/// The handlers of all interrupts: number and name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Handlers(BTreeSet<(u32, String)>);

impl Handlers {
    /// Reads the present handlers; none if they cannot be read.
    #[must_use]
    pub fn read(root: &Root) -> Self {
        let numbers = root.list(IRQ).into_iter().filter_map(|name| name.parse::<u32>().ok());
        let of = |number: u32| {
            let folder = format!("{IRQ}/{number}");
            let names = root.list(&folder).into_iter().filter(|name| root.path(&format!("{folder}/{name}")).is_dir());
            names.map(|name| (number, name)).collect::<Vec<_>>()
        };
        Self(numbers.flat_map(of).collect())
    }

    /// The interrupts that got a handler since `earlier` whose name passes `is_own`.
    #[must_use]
    pub fn since(&self, earlier: &Self, is_own: impl Fn(&str) -> bool) -> Vec<u32> {
        let new = self.0.difference(&earlier.0).filter(|(_, name)| is_own(name));
        new.map(|&(number, _)| number).collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// The number of handlers of an interrupt.
    #[must_use]
    pub fn count(&self, number: u32) -> usize {
        self.0.iter().filter(|(of, _)| *of == number).count()
    }

    /// The interrupts with a handler of this name.
    #[must_use]
    pub fn named(&self, name: &str) -> Vec<u32> {
        self.0.iter().filter(|(_, handler)| handler == name).map(|&(number, _)| number).collect()
    }

    /// The interrupts of the device with this folder in sysfs: those of the first device on the way up to the root of all
    /// devices that has message-signalled interrupts, a file `irq`, or handlers with its name or that of its driver.
    #[must_use]
    pub fn of_device(&self, root: &Root, folder: &str) -> Vec<u32> {
        let Ok(path) = fs::canonicalize(root.path(folder)) else { return Vec::new() };
        let top = fs::canonicalize(root.path("sys/devices")).unwrap_or_default();
        let devices = path.ancestors().take_while(|device| device.starts_with(&top) && *device != top);
        devices.map(|device| self.at(device)).find(|found| !found.is_empty()).unwrap_or_default()
    }

    /// The interrupts of the device at a path in the file system.
    fn at(&self, device: &Path) -> Vec<u32> {
        let messages = || {
            let files = fs::read_dir(device.join("msi_irqs")).into_iter().flatten().flatten();
            let mut numbers: Vec<u32> = files.filter_map(|file| file.file_name().to_str()?.parse().ok()).collect();
            numbers.sort_unstable();
            numbers
        };
        let line = || {
            let number = fs::read_to_string(device.join("irq")).ok().and_then(|text| text.trim().parse::<u32>().ok());
            number.filter(|&number| number > 0).into_iter().collect()
        };
        let of_name = |name: Option<&Path>| {
            name.and_then(|path| path.file_name()?.to_str()).map(|name| self.named(name)).unwrap_or_default()
        };
        let driver = fs::read_link(device.join("driver")).ok();
        let ways: [&dyn Fn() -> Vec<u32>; 4] =
            [&messages, &line, &|| of_name(Some(device)), &|| of_name(driver.as_deref())];
        ways.into_iter().map(|way| way()).find(|found| !found.is_empty()).unwrap_or_default()
    }
}

/// The threads of interrupts.
pub(crate) fn threads(root: &Root, interrupts: &[u32]) -> Vec<Thread> {
    let serves = |name: &str| {
        let number = name.strip_prefix("irq/").and_then(|rest| rest.split_once('-')?.0.parse().ok());
        number.is_some_and(|number| interrupts.contains(&number))
    };
    let own = tasks::processes(root).into_iter().filter(|(_, name)| serves(name));
    own.filter_map(|(id, _)| Thread::of(root, id)).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn interrupts_are_found_by_handler_and_by_device() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::at(folder.path());
        let make = |path: &str| fs::create_dir_all(root.path(path)).unwrap();
        make("proc/irq/1/i8042");
        make("proc/irq/12/i8042");
        make("proc/irq/40/48300100.ecap");
        let before = Handlers::read(&root);
        make("proc/irq/55/punctual");
        make("proc/irq/56/eth0");
        let after = Handlers::read(&root);
        assert_eq!(after.since(&before, |name| name == "punctual"), [55]);
        assert_eq!(after.since(&before, |_| true), [55, 56]);
        assert!(after.since(&after, |_| true).is_empty());

        make("sys/devices/platform/i8042/serio0/input/input0/event0");
        make("sys/bus/platform/drivers/i8042");
        make("sys/class/input");
        symlink(root.path("sys/bus/platform/drivers/i8042"), root.path("sys/devices/platform/i8042/driver")).unwrap();
        let device = root.path("sys/devices/platform/i8042/serio0/input/input0/event0");
        symlink(device, root.path("sys/class/input/event0")).unwrap();
        assert_eq!(after.of_device(&root, "sys/class/input/event0"), [1, 12]);
        make("sys/devices/platform/48300100.ecap/counter0");
        assert_eq!(after.of_device(&root, "sys/devices/platform/48300100.ecap/counter0"), [40]);
        make("sys/devices/pci0000:00/0000:00:03.0/msi_irqs");
        make("sys/devices/pci0000:00/0000:00:03.0/ptp/ptp0");
        fs::write(root.path("sys/devices/pci0000:00/0000:00:03.0/irq"), "11\n").unwrap();
        assert_eq!(after.of_device(&root, "sys/devices/pci0000:00/0000:00:03.0/ptp/ptp0"), [11]);
        for number in ["131", "130"] {
            fs::write(root.path(&format!("sys/devices/pci0000:00/0000:00:03.0/msi_irqs/{number}")), "msix\n").unwrap();
        }
        assert_eq!(after.of_device(&root, "sys/devices/pci0000:00/0000:00:03.0/ptp/ptp0"), [130, 131]);
        make("sys/devices/virtual/input/input5");
        assert!(after.of_device(&root, "sys/devices/virtual/input/input5").is_empty(), "a device of no hardware");
        assert!(after.of_device(&root, "sys/class/input/event9").is_empty());
    }
}
