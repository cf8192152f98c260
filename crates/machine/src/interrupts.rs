//! Device interrupts per CPU.

mod queues;

use std::{
    collections::BTreeMap,
    thread,
    time::{Duration, Instant},
};

use self::queues::Queue;
use crate::{CpuList, Root, Unreadable, kernel::version};

/// Device interrupts that each CPU has served since boot, from `/proc/interrupts`.
///
/// Numbered lines belong to devices; the other lines belong to the kernel (timer ticks, inter-processor interrupts). Numbered
/// ones of a single CPU, such as the timers of ARM and Xen, are excluded.
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
        for (_, rest) in numbered(text) {
            let words: Vec<&str> = rest.split_whitespace().collect();
            if is_per_cpu(&handlers(words.get(cpus.len()..).unwrap_or_default())) {
                continue;
            }
            for (cpu, count) in cpus.iter().zip(words) {
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

/// Interrupts a second from one device above which a board is busy with them. A Raspberry Pi with a sound card on USB has
/// about 300; one with a faulty driver had 5000.
pub(crate) const STORM_PER_SECOND: f64 = 2000.0;

/// The default counting time.
const SHORT: Duration = Duration::from_millis(200);
/// The counting time if there are many interrupts. A longer time is divided into parts of at most this length.
const PART: Duration = Duration::from_secs(1);
/// The short time decides only below this share of the limit, because a burst can begin or end in it.
const SUSPICIOUS: f64 = 0.25;

/// Numbered interrupts that are counted for some time.
#[derive(Debug, Clone)]
pub struct InterruptWatch {
    readings: Vec<Counts>,
}

/// The counts of all numbered interrupts at one time, from `/proc/stat`.
#[derive(Debug, Clone)]
struct Counts {
    at: Instant,
    /// By number.
    counts: Vec<u64>,
}

/// The number of interrupts in a time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Counted {
    pub count: u64,
    pub time_s: f64,
}

impl InterruptWatch {
    /// Begins to count; `None` if the counts cannot be read.
    #[must_use]
    pub fn begin(root: &Root) -> Option<Self> {
        Some(Self { readings: vec![Counts::read(root)?] })
    }

    /// Counts until `window` has passed since the beginning: each second of it, because a burst is lost in a long average.
    /// Without `window` it is 0.2 s, or 1 s if a device then has so many interrupts that 0.2 s do not decide.
    pub fn finish(&mut self, root: &Root, window: Option<Duration>) {
        match window {
            Some(window) => {
                let parts = u32::try_from(window.as_nanos().div_ceil(PART.as_nanos())).unwrap_or(u32::MAX).max(1);
                for part in 1..=parts {
                    self.read_after(root, window / parts * part);
                }
            }
            None => {
                self.read_after(root, SHORT);
                if self.is_suspicious(root) {
                    self.readings.truncate(1);
                    self.read_after(root, PART);
                }
            }
        }
    }

    fn read_after(&mut self, root: &Root, since_begin: Duration) {
        if let Some(first) = self.readings.first() {
            thread::sleep(since_begin.saturating_sub(first.at.elapsed()));
        }
        self.readings.extend(Counts::read(root));
    }

    fn is_suspicious(&self, root: &Root) -> bool {
        let numbers = self.readings.first().map_or(0, |first| first.counts.len());
        let is_of_cpu = |number: u32| {
            let actions = root.not_kept().read(&format!("sys/kernel/irq/{number}/actions"));
            actions.is_some_and(|actions| is_per_cpu(&actions))
        };
        (0..u32::try_from(numbers).unwrap_or(0))
            .filter_map(|number| Some((number, self.busiest(number)?)))
            .any(|(number, counted)| counted.per_second() >= STORM_PER_SECOND * SUSPICIOUS && !is_of_cpu(number))
    }

    /// The busiest part of the time for this interrupt; `None` if it was not counted, e.g. because its device was set up
    /// meanwhile.
    pub(crate) fn busiest(&self, number: u32) -> Option<Counted> {
        let number = usize::try_from(number).ok()?;
        let parts = self.readings.windows(2).filter_map(|pair| {
            let (before, after) = (&pair[0], &pair[1]);
            let count = after.counts.get(number)?.checked_sub(*before.counts.get(number)?)?;
            Some(Counted { count, time_s: after.at.checked_duration_since(before.at)?.as_secs_f64() })
        });
        parts.max_by(|one, other| one.per_second().total_cmp(&other.per_second()))
    }

    /// The number of parts of the time with a rate of their own.
    pub(crate) fn parts(&self) -> usize {
        self.readings.len().saturating_sub(1)
    }
}

impl Counts {
    fn read(root: &Root) -> Option<Self> {
        let at = Instant::now();
        // Each time anew.
        let stat = root.not_kept().read("proc/stat")?;
        let all = stat.lines().find_map(|line| line.strip_prefix("intr "))?;
        // The first count is that of all interrupts.
        let counts = all.split(' ').skip(1).map(str::parse).collect::<Result<_, _>>().ok()?;
        Some(Self { at, counts })
    }
}

impl Counted {
    pub(crate) fn per_second(self) -> f64 {
        self.count as f64 / self.time_s
    }

    /// The rates a second between which the true one is with 95 % confidence, if the interrupts are independent: the limits
    /// of a Poisson mean by Wilson and Hilferty, PNAS 17 (1931), 684.
    pub(crate) fn interval_per_second(self) -> (f64, f64) {
        const Z: f64 = 1.96;
        let limit = |count: f64, z: f64| count * (1.0 - 1.0 / (9.0 * count) + z / (3.0 * count.sqrt())).powi(3);
        let lower = if self.count == 0 { 0.0 } else { limit(self.count as f64, -Z) };
        (lower / self.time_s, limit(self.count as f64 + 1.0, Z) / self.time_s)
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

/// The CPUs of an interrupt's file, and who can change them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Mover {
    /// Root, by the file.
    User,
    /// Its driver manages it: it is that of a queue of a disk or its controller, and arrives only for I/O that these CPUs have
    /// started.
    Queue(CpuList),
    /// Nobody.
    Nobody,
}

/// The interrupts of each CPU in guests of Xen, without its number (arch/x86/xen/smp.c, smp_pv.c, spinlock.c and time.c).
const OF_XEN_CPU: [&str; 8] = ["timer", "resched", "callfunc", "callfuncsingle", "irqwork", "spinlock", "debug", "pmu"];

/// True for the interrupts of timers, performance counters, tracing and virtualisation on ARM and RISC-V, and for those of the
/// CPUs in guests of Xen and Hyper-V: they have numbers, but belong to one CPU each, and the kernel refuses to move them.
pub(crate) fn is_per_cpu(handlers: &str) -> bool {
    const OTHERS: [&str; 6] = ["vgic", "riscv-pmu", "arm_spe_pmu", "arm_trbe", "events", "Hyper-V VMbus"];
    let name = handlers.trim_end_matches(|c: char| c.is_ascii_digit());
    handlers.ends_with("timer")
        || handlers.contains("arm-pmu")
        || OTHERS.contains(&handlers)
        || name != handlers && OF_XEN_CPU.contains(&name)
}

/// The file of the CPUs of an interrupt.
pub(crate) fn affinity_file(number: u32) -> String {
    format!("proc/irq/{number}/smp_affinity_list")
}

/// The CPUs at which an interrupt arrives now; empty if it has not been started yet.
///
/// # Errors
/// The errors of [`Root::parsed`]: older kernels do not have the file.
pub(crate) fn effective(root: &Root, number: u32) -> Result<CpuList, Unreadable> {
    root.parsed(&effective_file(number), |text| text.parse().ok())
}

/// The file of [`effective`].
pub(crate) fn effective_file(number: u32) -> String {
    format!("proc/irq/{number}/effective_affinity_list")
}

/// Returns who can change the CPUs of an interrupt with these handlers.
///
/// Only debugfs shows which interrupts a driver manages (`IRQD_AFFINITY_MANAGED`). Since Linux 6.13 the file has no right to be
/// written then. Before, the name is a sign.
pub(crate) fn mover(root: &Root, number: u32, handlers: &str) -> Mover {
    let path = affinity_file(number);
    let release = version(&root.read("proc/sys/kernel/osrelease").unwrap_or_default());
    let is_fixed = root.is_fixed(&path);
    // Copies of a machine may have lost the rights.
    let may_be_managed = is_fixed || !(root.is_system() && release >= Some((6, 13)));
    let kind = if may_be_managed { queues::kind(root, number, handlers, release) } else { Queue::No };
    match kind {
        Queue::Managed if let Some(cpus) = root.read(&path).and_then(|list| list.parse().ok()) => Mover::Queue(cpus),
        Queue::Pinned => Mover::Nobody,
        Queue::Managed | Queue::No if is_fixed => Mover::Nobody,
        Queue::Managed | Queue::No => Mover::User,
    }
}

/// True if the queue of a disk or its controller is for these CPUs and others: then the kernel can direct it to the others
/// (`isolcpus=managed_irq`).
pub(crate) fn has_shared_queue(root: &Root, cpus: &CpuList) -> bool {
    let devices = devices(root).unwrap_or_default();
    devices.iter().any(|irq| match mover(root, irq.number, &irq.handlers) {
        Mover::Queue(own) => !own.intersection(cpus).is_empty() && !own.difference(cpus).is_empty(),
        Mover::User | Mover::Nobody => false,
    })
}

/// The text of `/proc/interrupts`, whose heading names the CPUs.
///
/// # Errors
/// The errors of [`Root::parsed`].
pub(crate) fn table(root: &Root) -> Result<String, Unreadable> {
    root.text_if("proc/interrupts", |text| !cpus(text).is_empty())
}

/// All numbered interrupts, also timers; `None` if they cannot be read.
pub(crate) fn devices(root: &Root) -> Option<Vec<DeviceInterrupt>> {
    // The text has megabytes on a large machine: it is not copied.
    root.parsed("proc/interrupts", devices_of).ok()
}

fn devices_of(text: &str) -> Option<Vec<DeviceInterrupt>> {
    let columns = Some(cpus(text).len()).filter(|&columns| columns > 0)?;
    let device = |(number, rest): (u32, &str)| {
        let words: Vec<&str> = rest.split_whitespace().collect();
        let count = words.iter().take(columns).filter_map(|count| count.parse::<u64>().ok()).sum();
        DeviceInterrupt { number, count, handlers: handlers(words.get(columns..).unwrap_or_default()) }
    };
    Some(numbered(text).map(device).collect())
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

    fn watch(parts: &[(&[u64], u64)]) -> InterruptWatch {
        let begin = Instant::now();
        let reading = |(counts, at_ms): &(&[u64], u64)| Counts {
            at: begin + Duration::from_millis(*at_ms),
            counts: counts.to_vec(),
        };
        InterruptWatch { readings: parts.iter().map(reading).collect() }
    }

    #[test]
    fn the_busiest_part_counts() {
        let watched = watch(&[(&[0, 90, 100], 0), (&[0, 95, 5100], 1000), (&[0, 80, 5100, 7], 2000)]);
        assert_eq!((watched.busiest(2), watched.parts()), (Some(Counted { count: 5000, time_s: 1.0 }), 2));
        assert_eq!(watched.busiest(1), Some(Counted { count: 5, time_s: 1.0 }), "then another one has this number");
        assert_eq!((watched.busiest(3), watched.busiest(9)), (None, None), "set up meanwhile; does not exist");
        assert_eq!(watch(&[(&[1], 0)]).busiest(0), None);
    }

    #[test]
    fn the_interval_of_a_count_is_that_of_a_poisson_mean() {
        // Garwood's exact limits: 0 to 3.689, 5.491 to 16.959 (rounded to 5.49, 16.96), 81.36 to 121.63.
        for (count, lower, upper) in [(0, 0.0, 3.689), (10, 4.795, 18.39), (100, 81.36, 121.63)] {
            let (low, high) = Counted { count, time_s: 0.5 }.interval_per_second();
            assert!((low - lower * 2.0).abs() < 0.2 && (high - upper * 2.0).abs() < 0.2, "{count}: {low} {high}");
        }
    }

    #[test]
    fn only_many_interrupts_are_counted_for_longer() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::at(folder.path());
        let put = |path: &str, text: &str| {
            std::fs::create_dir_all(root.path(path).parent().unwrap()).unwrap();
            std::fs::write(root.path(path), text).unwrap();
        };
        put("sys/kernel/irq/1/actions", "arch_timer\n");
        assert!(!watch(&[(&[0, 0, 0], 0), (&[0, 9000, 99], 200)]).is_suspicious(&root), "a timer, and 495 a second");
        assert!(watch(&[(&[0, 0, 0], 0), (&[0, 0, 101], 200)]).is_suspicious(&root));
        assert!(InterruptWatch::begin(&root).is_none());
        put("proc/stat", "cpu  1 2 3\nintr 190 0 90 100\nctxt 7\n");
        let mut watched = InterruptWatch::begin(&root).unwrap();
        watched.finish(&root, None);
        assert_eq!((watched.parts(), watched.busiest(2).unwrap().count), (1, 0));
        watched.readings.truncate(1);
        watched.finish(&root, Some(Duration::from_millis(1100)));
        assert_eq!(watched.parts(), 2, "of 0.55 s each");
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
    fn interrupts_of_a_single_cpu_are_not_those_of_devices() {
        const XEN: &str = "           CPU0       CPU1\n \
             16:      90000          0  xen-percpu    -virq      timer0\n \
             17:       8000          0  xen-percpu    -ipi       resched0\n \
             23:          0       7000  xen-percpu    -ipi       callfuncsingle1\n \
             24:         50         60     GICv3  18 Edge     Hyper-V VMbus\n \
             30:          4          5   xen-dyn    -event     blkif\n";
        assert_eq!(Interrupts::parse(XEN).0, [(0, 4), (1, 5)].into());
        for name in ["timer1", "resched12", "spinlock0", "pmu3", "arch_timer", "riscv-timer", "vgic", "arm_spe_pmu"] {
            assert!(is_per_cpu(name), "{name}");
        }
        for name in ["eth0", "blkif", "debug", "callfunc", "nvme0q1", "timers", "rtc0"] {
            assert!(!is_per_cpu(name), "{name}");
        }
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
