//! Device interrupts per CPU.

use std::{
    collections::BTreeMap,
    thread,
    time::{Duration, Instant},
};

use crate::{CpuList, Root};

/// Device interrupts that each CPU has served since boot, from `/proc/interrupts`.
///
/// Numbered lines belong to devices; the other lines belong to the kernel (timer ticks, inter-processor interrupts). A
/// numbered timer, as on ARM, is excluded because it wakes the measured threads.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Interrupts(BTreeMap<u32, u64>);

impl Interrupts {
    /// Reads the current counts; empty if they cannot be read.
    #[must_use]
    pub fn read(root: &Root) -> Self {
        Self::parse(&root.read("proc/interrupts").unwrap_or_default())
    }

    fn parse(text: &str) -> Self {
        let cpus = cpus(text);
        let mut counts: BTreeMap<u32, u64> = cpus.iter().map(|&cpu| (cpu, 0)).collect();
        for (_, rest) in numbered(text).filter(|(_, rest)| !rest.trim_end().ends_with("timer")) {
            for (cpu, count) in cpus.iter().zip(rest.split_whitespace()) {
                *counts.entry(*cpu).or_default() += count.parse::<u64>().unwrap_or(0);
            }
        }
        Self(counts)
    }

    /// Interrupts that `cpu` has served since `earlier`; `None` if a count is unknown.
    #[must_use]
    pub fn since(&self, earlier: &Self, cpu: u32) -> Option<u64> {
        self.0.get(&cpu)?.checked_sub(*earlier.0.get(&cpu)?)
    }
}

/// The number of times that each numbered interrupt has occurred on these CPUs since boot, from `/proc/interrupts`.
pub(crate) fn counts_on(root: &Root, on: &CpuList) -> BTreeMap<u32, u64> {
    let text = root.read("proc/interrupts").unwrap_or_default();
    let cpus = cpus(&text);
    let count = |rest: &str| {
        let counts = cpus.iter().zip(rest.split_whitespace()).filter(|(cpu, _)| on.contains(**cpu));
        counts.filter_map(|(_, count)| count.parse::<u64>().ok()).sum()
    };
    numbered(&text).map(|(number, rest)| (number, count(rest))).collect()
}

/// The counts of all numbered interrupts at one time, from `/proc/stat`: a later reading of `/proc/interrupts` then shows the
/// rate of each.
#[derive(Debug, Clone)]
pub struct EarlierInterrupts {
    at: Instant,
    /// By number.
    counts: Vec<u64>,
}

impl EarlierInterrupts {
    /// Reads the counts; `None` if they cannot be read.
    #[must_use]
    pub fn read(root: &Root) -> Option<Self> {
        let at = Instant::now();
        let stat = root.read("proc/stat")?;
        let all = stat.lines().find_map(|line| line.strip_prefix("intr "))?;
        // The first count is that of all interrupts.
        let counts = all.split(' ').skip(1).map(str::parse).collect::<Result<_, _>>().ok()?;
        Some(Self { at, counts })
    }

    /// Waits until `length` has passed since they were read.
    pub fn wait(&self, length: Duration) {
        thread::sleep(length.saturating_sub(self.at.elapsed()));
    }

    /// The interrupts of this number until `count` was read at `at`, and the time between, s.
    pub(crate) fn until(&self, number: u32, count: u64, at: Instant) -> Option<(u64, f64)> {
        let earlier = self.counts.get(usize::try_from(number).ok()?)?;
        Some((count.checked_sub(*earlier)?, at.checked_duration_since(self.at)?.as_secs_f64()))
    }
}

/// An interrupt of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DeviceInterrupt {
    pub number: u32,
    /// Times that it has occurred since boot, on all CPUs.
    pub count: u64,
    /// The names of its handlers: `xhci_hcd:usb1, snd_hda_intel`; empty if none is installed.
    pub handlers: String,
}

/// All numbered interrupts, also timers; `None` if they cannot be read.
pub(crate) fn devices(root: &Root) -> Option<Vec<DeviceInterrupt>> {
    let text = root.read("proc/interrupts")?;
    let columns = cpus(&text).len();
    let device = |(number, rest): (u32, &str)| {
        let words: Vec<&str> = rest.split_whitespace().collect();
        let count = words.iter().take(columns).filter_map(|count| count.parse::<u64>().ok()).sum();
        DeviceInterrupt { number, count, handlers: handlers(words.get(columns..).unwrap_or_default()) }
    };
    Some(numbered(&text).map(device).collect())
}

/// The handlers at the end of a line, after the words of the interrupt controller: its name, then `2-edge` (x86),
/// `30 Level` or `14` (other controllers), or `-event` (Xen).
fn handlers(words: &[&str]) -> String {
    let is_number = |word: &str| word.bytes().all(|byte| byte.is_ascii_digit());
    let is_trigger = |word: &&str| ["edge", "level", "none"].contains(&word.to_ascii_lowercase().as_str());
    let start = words.iter().enumerate().skip(1).find_map(|(at, word)| {
        let number_and_trigger = word.split_once('-').is_some_and(|(number, _)| is_number(number));
        match word {
            word if is_number(word) => Some(at + 1 + usize::from(words.get(at + 1).is_some_and(is_trigger))),
            _ if number_and_trigger => Some(at + 1),
            _ => None,
        }
    });
    words.get(start.unwrap_or(words.len())..).unwrap_or_default().join(" ")
}

/// The CPUs of the columns, from the heading.
fn cpus(text: &str) -> Vec<u32> {
    let heading = text.lines().next().unwrap_or_default();
    heading.split_whitespace().filter_map(|cpu| cpu.strip_prefix("CPU")?.parse().ok()).collect()
}

/// The lines of numbered interrupts: the number, and the text after the colon.
fn numbered(text: &str) -> impl Iterator<Item = (u32, &str)> {
    text.lines().skip(1).filter_map(|line| {
        let (number, rest) = line.split_once(':')?;
        Some((number.trim().parse().ok()?, rest))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interrupts_since_a_reading_of_the_counts() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::at(folder.path());
        std::fs::create_dir(root.path("proc")).unwrap();
        std::fs::write(root.path("proc/stat"), "cpu  1 2 3\nintr 190 0 90 100\nctxt 7\n").unwrap();
        let earlier = EarlierInterrupts::read(&root).unwrap();
        let later = earlier.at + Duration::from_millis(500);
        assert_eq!(earlier.until(2, 1100, later), Some((1000, 0.5)));
        assert_eq!(earlier.until(2, 99, later), None, "another interrupt has this number now");
        assert_eq!(earlier.until(3, 5, later), None, "it was set up meanwhile");
        std::fs::write(root.path("proc/stat"), "cpu  1 2 3\n").unwrap();
        assert!(EarlierInterrupts::read(&root).is_none());
    }

    const X86: &str = "           CPU0       CPU1\n  \
         4:         10          0   IO-APIC   4-edge      ttyS0\n \
         24:          5         70   PCI-MSI 65536-edge      virtio0-input.0\n\
         LOC:      99999      88888   Local timer interrupts\n\
         ERR:          3\n";
    const ARM: &str = "           CPU0       CPU2\n \
         11:       4711       4712     GICv3  27 Level     arch_timer\n \
         14:          7          1     GICv3  79 Edge      eth0\n\
         IPI0:        12         13  Rescheduling interrupts\n";

    #[test]
    fn counts_only_device_interrupts() {
        assert_eq!(Interrupts::parse(X86).0, [(0, 15), (1, 70)].into());
        assert_eq!(Interrupts::parse(ARM).0, [(0, 7), (2, 1)].into());
        assert_eq!(Interrupts::parse(""), Interrupts::default());
    }

    #[test]
    fn handlers_follow_the_words_of_any_controller() {
        for (line, expected) in [
            ("IO-APIC 4-edge ttyS0", "ttyS0"),
            ("IR-PCI-MSI-0000:00:02.0 0-edge i915", "i915"),
            ("IO-APIC 16-fasteoi snd_hda_intel:card1, xhci_hcd:usb1", "snd_hda_intel:card1, xhci_hcd:usb1"),
            ("GICv2 189 Level eth0", "eth0"),
            ("ARMCTRL-level 42 Edge", ""),
            ("ARMCTRL-level 42 Edge mmc0", "mmc0"),
            ("INTC1055:00 14 ELAN0001:00", "ELAN0001:00"),
            ("xen-dyn -event eth0", "eth0"),
            ("xen-pirq -msi nvme0q1", "nvme0q1"),
            ("PCI-MSI 65536-edge virtio0-input.0", "virtio0-input.0"),
            ("", ""),
        ] {
            assert_eq!(handlers(&line.split_whitespace().collect::<Vec<_>>()), expected, "{line}");
        }
    }

    #[test]
    fn difference_of_unknown_counts_is_unknown() {
        let (before, after) = (Interrupts::parse(X86), Interrupts::parse(&X86.replace("70", "95")));
        assert_eq!([0, 1, 2].map(|cpu| after.since(&before, cpu)), [Some(0), Some(25), None]);
        assert_eq!(before.since(&after, 1), None, "counts never decrease");
    }
}
