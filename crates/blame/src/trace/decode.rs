//! Decodes a record of the trace ring into an [`Event`].
//!
//! Field names and types are those of include/trace/events/*.h, arch/x86/include/asm/trace/ and
//! kernel/trace/trace_entries.h of Linux.

mod fields;

/// System of the events at marks, whose group has another name in each run.
pub const MARKS: &str = "punctual";

use std::collections::HashMap;

use super::format::{Format, U32Field};
use crate::event::{Event, Names};
use fields::Fields;

/// Decodes records by the format descriptions of one kernel.
#[derive(Debug, Clone, Default)]
pub struct Decoder {
    /// Indexed by event id.
    layouts: Vec<Option<Layout>>,
    names: Names,
    kernel: KernelInfo,
}

/// Facts about the traced kernel that its format descriptions do not contain.
#[derive(Debug, Clone, Default)]
pub struct KernelInfo {
    /// Address of the kernel's first instruction (`_stext`); `irq_disable` and its relatives store offsets from it.
    pub code_start: u64,
    /// Strings by address, for events that store only the address of a string.
    pub strings: HashMap<u64, String>,
    /// The timers whose starts are decoded.
    pub timers: TimerCallbacks,
}

/// Addresses of the callbacks of timers, to skip other timers; `None` if they are hidden.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TimerCallbacks {
    /// The one that ends a sleep (`hrtimer_wakeup`).
    pub sleep: Option<u64>,
    /// The one of a timerfd (`timerfd_tmrproc`).
    pub fd: Option<u64>,
}

/// Positions of an event's fields in its record.
#[derive(Debug, Clone)]
struct Layout {
    pid: U32Field,
    fields: Fields,
}

impl Decoder {
    /// A decoder without event formats.
    #[must_use]
    pub fn new(kernel: KernelInfo) -> Self {
        Self { kernel, ..Self::default() }
    }

    /// Skips the starts of timers with another callback, for formats that are added later.
    pub fn set_timers(&mut self, callbacks: TimerCallbacks) {
        self.kernel.timers = callbacks;
    }

    /// Adds the format of one event. Returns false if the event is unknown or lacks a needed field.
    pub fn add_format(&mut self, system: &str, format: &Format) -> bool {
        let Some(layout) = self.layout(system, format) else { return false };
        let id = usize::from(format.id);
        if self.layouts.len() <= id {
            self.layouts.resize(id + 1, None);
        }
        self.layouts[id] = Some(layout);
        true
    }

    fn layout(&mut self, system: &str, format: &Format) -> Option<Layout> {
        let pid = format.field("common_pid")?.as_u32()?;
        Some(Layout { pid, fields: Fields::of(system, format, &self.kernel, &mut self.names)? })
    }

    /// The names in the decoded events.
    #[must_use]
    pub fn names(&self) -> &Names {
        &self.names
    }

    /// Decodes a record; `None` if its event has no known format or the record is too short.
    #[inline]
    pub fn decode(&mut self, cpu: u32, at_ns: u64, record: &[u8]) -> Option<Event> {
        let id = u16::from_le_bytes(*record.first_chunk()?);
        let layout = self.layouts.get(usize::from(id))?.as_ref()?;
        let pid = layout.pid.get(record)?;
        Some(Event { at_ns, cpu, pid, kind: layout.fields.decode(record, &mut self.names)? })
    }
}

#[cfg(test)]
mod tests;
