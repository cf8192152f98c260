//! Interrupts from outside: the source, whose clock stamped each one, and where the time until the wake-up went.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Extra, Times, count::is_zero};

/// Name of the probe, and role of its thread.
pub const INTERRUPT: &str = "interrupt";

/// The figures of interrupts. The values of the series are the times from each interrupt to the wake-up of the thread.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Interrupts {
    /// The source, as on the command line: `hpet`, `gpio:gpiochip0/17`, `ptp:ptp0/SDP0`, `counter:counter0/capture`,
    /// `iio:device0/TRIGGER`, `pps:pps0`, `evdev:event3`, `rtc:rtc0`, `uio:uio0`.
    pub source: String,
    /// The device in words: driver, line.
    pub device: String,
    /// The clock that gave the time of each interrupt.
    pub zero: Zero,
    /// Resolution of that time, ns; absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolution_ns: Option<u64>,
    /// Largest error of that time on CLOCK_MONOTONIC, ns: half of the time between two readings of the clock around one of
    /// the other clock. Median of all interrupts; absent if no conversion was necessary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uncertainty_ns: Option<u64>,
    /// The same of the interrupt whose time is known least; a verdict uses it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_uncertainty_ns: Option<u64>,
    /// The output line that made the edges, with the wire to the input; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driven_by: Option<String>,
    /// Interrupts that were lost: pulses that were not read in time, or edges for which the kernel's buffer was full. HPET
    /// interrupts that became one are `missed`. An input device counts one each time that the kernel dropped packets, whose
    /// number it does not say. PTP clocks, counters and industrial I/O have only `overruns`.
    pub lost: u64,
    /// Number of times that the kernel's queue of events was full, so that an unknown number of interrupts was lost. With
    /// `zero` `trace`, the number of interrupts whose handler the trace does not contain, so that their time is not known.
    pub overruns: u64,
    /// Edges of the output line without an interrupt.
    pub unanswered: u64,
    /// Edges that were not made, because their time had passed before: the thread that makes them or the output line was late.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub skipped: u64,
    /// Interrupts without an edge of the output line.
    pub spurious: u64,
    /// Interrupts after the end of the measurement, which the thread answered until the outside judge had ended. They are
    /// not in the series. Absent without a judge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_end: Option<u64>,
    /// From the interrupt to the kernel's stamp in its handler; absent if one of them is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to_kernel: Option<Times>,
    /// From the kernel's stamp to the wake-up of the thread; absent without such a stamp.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to_thread: Option<Times>,
    /// Fields that a newer version wrote.
    #[serde(flatten)]
    pub extra: Extra,
}

/// The begin of all times of an interrupt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Zero {
    /// A counter of the device, which ran on while the interrupt was on its way.
    Counter,
    /// The clock, read before the line was set that is wired to the source.
    Edge,
    /// The kernel's interrupt handler, so that the time until it ran is not included.
    #[default]
    Handler,
    /// The kernel's trace of its interrupt handlers, at the begin of the handler, for a device without a stamp.
    Trace,
}

impl Zero {
    /// True if the time until the handler ran is not included.
    #[must_use]
    pub fn is_in_kernel(self) -> bool {
        match self {
            Self::Counter | Self::Edge => false,
            Self::Handler | Self::Trace => true,
        }
    }
}

impl Interrupts {
    /// True if the time between two interrupts is at least the period of the series: we or a judge make them, or they are
    /// pulses of a clock. Others can come faster than expected.
    #[must_use]
    pub fn has_period(&self) -> bool {
        self.driven_by.is_some() || self.after_end.is_some() || self.source.starts_with("pps:")
    }

    /// Largest error of the time of an interrupt, ns: that of its conversion and its resolution. `None` if clocks were
    /// converted, but the largest error of that is not known.
    #[must_use]
    pub fn largest_error_ns(&self) -> Option<u64> {
        if self.max_uncertainty_ns < self.uncertainty_ns {
            return None;
        }
        Some(self.max_uncertainty_ns.unwrap_or(0).saturating_add(self.resolution_ns.unwrap_or(0)))
    }
}

impl Zero {
    /// The begin of the times, in words.
    #[must_use]
    pub fn in_words(self) -> &'static str {
        match self {
            Self::Counter => "the device's counter",
            Self::Edge => "the clock reading before the output line was set",
            Self::Handler => "the kernel's interrupt handler",
            Self::Trace => "the kernel's interrupt handler, as its trace stamped it",
        }
    }
}
