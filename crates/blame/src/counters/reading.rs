//! The values of all counters at one time. Values that cannot be read are absent.

use std::{collections::HashMap, fs::File, os::unix::fs::FileExt};

use machine::Root;
use record::{Cause, CauseKind};

/// Unit of `/proc/stat`, ns: `USER_HZ` is 100 on all supported architectures.
const TICK_NS: u64 = 10_000_000;
/// Register with the number of system management interrupts since reset: Intel SDM volume 4, MSR_SMI_COUNT.
const MSR_SMI_COUNT: u64 = 0x34;

/// The source of the events that a row of `/proc/interrupts` or `/proc/softirqs` counts.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum EventSource {
    /// The interrupt of a device, which has a number, or of the CPU itself.
    Interrupt {
        /// Interrupt number of a device.
        number: Option<u32>,
        /// Name of the device's handler, or description of the CPU's interrupt.
        name: String,
    },
    /// A softirq.
    Softirq {
        /// The kernel's name.
        name: String,
    },
}

impl EventSource {
    /// The source as a cause.
    #[must_use]
    pub fn cause(&self) -> Cause {
        match self {
            Self::Interrupt { number, name } => {
                Cause { number: *number, ..Cause::new(CauseKind::Interrupt, name.as_str()) }
            }
            Self::Softirq { name } => Cause::new(CauseKind::Softirq, name.as_str()),
        }
    }
}

/// The counters of one CPU and of its measuring thread.
#[derive(Debug, Clone, Default)]
pub struct Reading {
    /// Time of the reading, ns on CLOCK_MONOTONIC.
    pub at_ns: u64,
    /// Interrupts and softirqs since boot.
    pub events: HashMap<EventSource, u64>,
    /// Time stolen by the hypervisor since boot, ns.
    pub steal_ns: Option<u64>,
    /// System management interrupts since reset; only on Intel CPUs with the `msr` module.
    pub smi: Option<u64>,
    /// Page faults of the measuring thread.
    pub faults: Option<u64>,
    /// Time that the measuring thread was ready without running, ns.
    pub waited_ns: Option<u64>,
}

impl Reading {
    /// Reads all counters.
    #[must_use]
    pub fn now(root: &Root, cpu: u32, thread_id: u32, at_ns: u64) -> Self {
        let task = format!("proc/self/task/{thread_id}");
        let mut events = HashMap::new();
        interrupts(&root.read("proc/interrupts").unwrap_or_default(), cpu, &mut events);
        softirqs(&root.read("proc/softirqs").unwrap_or_default(), cpu, &mut events);
        Self {
            at_ns,
            events,
            steal_ns: root.read("proc/stat").and_then(|text| steal_ns(&text, cpu)),
            smi: smi(root, cpu),
            faults: root.read(&format!("{task}/stat")).and_then(|text| faults(&text)),
            waited_ns: root.read(&format!("{task}/schedstat")).and_then(|text| text.split(' ').nth(1)?.parse().ok()),
        }
    }

    /// The events since an earlier reading, with their number. The timer interrupt is excluded, because the probe
    /// causes it.
    #[must_use]
    pub fn events_since(&self, before: &Self) -> Vec<(EventSource, u64)> {
        let rise = |(source, &count): (&EventSource, &u64)| {
            let rise = count.checked_sub(before.events.get(source).copied().unwrap_or(0))?;
            (rise > 0).then(|| (source.clone(), rise))
        };
        self.events.iter().filter_map(rise).collect()
    }
}

/// Parses rows of `/proc/interrupts`: `NUMBER: count... chip [hwirq] name` or `ABC: count... words`.
fn interrupts(text: &str, cpu: u32, events: &mut HashMap<EventSource, u64>) {
    let mut lines = text.lines();
    let Some(columns) = lines.next().map(|head| head.split_whitespace().collect::<Vec<_>>()) else { return };
    let Some(column) = columns.iter().position(|name| *name == format!("CPU{cpu}")) else { return };
    for line in lines {
        let Some((label, rest)) = line.split_once(':') else { continue };
        let words: Vec<&str> = rest.split_whitespace().collect();
        let Some(count) = words.get(column).and_then(|word| word.parse().ok()) else { continue };
        let (label, said) = (label.trim(), words.get(columns.len()..).unwrap_or_default());
        let number = label.parse().ok();
        let name = match (number, said.last()) {
            (Some(_), Some(name)) => (*name).to_owned(),
            (Some(_), None) => label.to_owned(),
            // The CPU's timer interrupt occurs at each wake-up of the probe.
            (None, _) if label == "LOC" || said.join(" ").contains("arch_timer") => continue,
            (None, _) => said.join(" ").to_ascii_lowercase(),
        };
        events.insert(EventSource::Interrupt { number, name }, count);
    }
}

fn softirqs(text: &str, cpu: u32, events: &mut HashMap<EventSource, u64>) {
    let mut lines = text.lines();
    let column = lines.next().and_then(|head| head.split_whitespace().position(|name| name == format!("CPU{cpu}")));
    let Some(column) = column else { return };
    for line in lines {
        let Some((name, counts)) = line.split_once(':') else { continue };
        let Some(count) = counts.split_whitespace().nth(column).and_then(|word| word.parse().ok()) else { continue };
        events.insert(EventSource::Softirq { name: name.trim().to_owned() }, count);
    }
}

/// Parses the eighth number of the line `cpuN user nice system idle iowait irq softirq steal ...`.
fn steal_ns(text: &str, cpu: u32) -> Option<u64> {
    let name = format!("cpu{cpu} ");
    let line = text.lines().find(|line| line.starts_with(&name))?;
    let ticks: u64 = line.split_whitespace().nth(8)?.parse().ok()?;
    ticks.checked_mul(TICK_NS)
}

fn smi(root: &Root, cpu: u32) -> Option<u64> {
    let mut bytes = [0; 8];
    let file = File::open(root.path(&format!("dev/cpu/{cpu}/msr"))).ok()?;
    file.read_exact_at(&mut bytes, MSR_SMI_COUNT).ok()?;
    Some(u64::from_le_bytes(bytes))
}

/// Minor and major faults: fields 10 and 12 of a `stat` line (proc_pid_stat(5)), counted after the name in parentheses.
fn faults(text: &str) -> Option<u64> {
    let (_, rest) = text.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
    field(10)?.checked_add(field(12)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERRUPTS: &str = "           CPU0       CPU1
  1:          5          9   IO-APIC   1-edge      i8042
 27:        100        200   PCI-MSI 524288-edge   eth0-rx-0
 29:          1          2
LOC:    1000000    2000000   Local timer interrupts
RES:         33         44   Rescheduling interrupts
ERR:          0
MIS:          0";

    #[test]
    fn parses_numbers_and_names_of_interrupts() {
        let mut events = HashMap::new();
        interrupts(INTERRUPTS, 1, &mut events);
        let expected = [
            (None, "rescheduling interrupts", 44),
            (Some(1), "i8042", 9),
            (Some(27), "eth0-rx-0", 200),
            (Some(29), "29", 2),
        ];
        let source =
            |(number, name, count): (_, &str, _)| (EventSource::Interrupt { number, name: name.to_owned() }, count);
        assert_eq!(events, HashMap::from(expected.map(source)));
        events.clear();
        interrupts(INTERRUPTS, 7, &mut events);
        assert!(events.is_empty(), "a missing CPU");
    }

    #[test]
    fn parses_the_other_files() {
        assert_eq!(steal_ns("cpu  1 2 3 4 5 6 7 8 9 10\ncpu1 1 2 3 4 5 6 7 578 0 0\n", 1), Some(5_780_000_000));
        assert_eq!(faults("42 (a b) c) S 1 42 42 0 -1 4194304 90 0 3 0 1 2"), Some(93));
        let mut events = HashMap::new();
        softirqs("      CPU0 CPU1\n NET_RX:  3  9\n", 1, &mut events);
        assert_eq!(events, HashMap::from([(EventSource::Softirq { name: "NET_RX".to_owned() }, 9)]));
    }

    #[test]
    fn reads_this_machine() {
        let reading = Reading::now(&Root::system(), 0, std::process::id(), 1);
        assert!(reading.events.len() > 5 && reading.faults.is_some_and(|faults| faults > 0), "{reading:?}");
    }
}
