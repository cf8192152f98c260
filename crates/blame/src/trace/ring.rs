//! The pages of one CPU in their order: events, and where they are missing.

use std::mem;

use super::{
    decode::Decoder,
    format::PageLayout,
    page::{Lost, Page},
};
use crate::event::Event;

/// What was found in a ring.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Drained {
    /// Events that the kernel overwrote or dropped before they could be read.
    pub lost_events: u64,
    /// Where they are missing, oldest first.
    pub gaps: Vec<Gap>,
}

/// A time in which events may be missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    /// The last event before it, or when the trace was turned off, ns on CLOCK_MONOTONIC; 0 before the first.
    pub from_ns: u64,
    /// The first event after it, or when the trace was turned on, ns on CLOCK_MONOTONIC.
    pub to_ns: u64,
    /// How many are missing, as far as that was told.
    pub lost: u64,
}

impl Drained {
    /// Whether every event between these times (ns on CLOCK_MONOTONIC) is there.
    #[must_use]
    pub fn is_whole(&self, from_ns: u64, to_ns: u64) -> bool {
        !self.gaps.iter().any(|gap| gap.from_ns < to_ns && from_ns < gap.to_ns)
    }
}

/// How far a CPU's pages were read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Progress {
    pub cpu: u32,
    /// The time of the last event, ns.
    pub read_to_ns: u64,
    /// Events lost so far, as far as pages told.
    pub lost: u64,
    /// Whether a page told a loss, but not how many events.
    pub uncounted: bool,
    /// Whether the page before could not be read to its end.
    broken: bool,
}

impl Progress {
    pub(crate) fn new(cpu: u32) -> Self {
        Self { cpu, read_to_ns: 0, lost: 0, uncounted: false, broken: false }
    }

    /// Reads the next page. What cannot be true is told as a loss by the page after it.
    pub(crate) fn read(
        &mut self,
        bytes: &[u8],
        layout: &PageLayout,
        decoder: &mut Decoder,
        events: &mut Vec<Event>,
        drained: &mut Drained,
    ) {
        let Some(page) = Page::parse(bytes, layout) else {
            self.broken = true;
            return;
        };
        let mut records = page.records();
        let lost = if mem::take(&mut self.broken) && page.lost() == Lost::Nothing { Lost::Some } else { page.lost() };
        if lost != Lost::Nothing {
            let first_ns = records.clone().next().map_or(page.start_ns(), |record| record.at_ns);
            self.missing(lost, first_ns, drained);
        }
        let cpu = self.cpu;
        for record in &mut records {
            events.extend(decoder.event(cpu, record.at_ns, record.data));
        }
        self.read_to_ns = self.read_to_ns.max(records.at_ns());
        self.broken = records.is_broken();
    }

    fn missing(&mut self, lost: Lost, to_ns: u64, drained: &mut Drained) {
        let lost = match lost {
            Lost::Nothing => return,
            Lost::Count(count) => count,
            Lost::Some => {
                self.uncounted = true;
                0
            }
        };
        self.lost = self.lost.saturating_add(lost);
        drained.lost_events = drained.lost_events.saturating_add(lost);
        drained.gaps.push(Gap { from_ns: self.read_to_ns.min(to_ns), to_ns, lost });
    }
}
