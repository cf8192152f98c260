//! Reads the pages of one CPU in order and notes the gaps between their events.

use std::mem;

use super::{
    decode::Decoder,
    format::PageLayout,
    page::{Lost, Page},
};
use crate::event::Event;

/// The losses found while draining a ring.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Drained {
    /// Number of events that the kernel overwrote or dropped before they were read.
    pub lost_events: u64,
    /// The gaps, oldest first.
    pub gaps: Vec<Gap>,
}

/// A time span in which events may be missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    /// The last event before the gap, or when tracing was turned off, ns on CLOCK_MONOTONIC; 0 if there is none.
    pub from_ns: u64,
    /// The first event after the gap, or when tracing was turned on, ns on CLOCK_MONOTONIC.
    pub to_ns: u64,
    /// Number of missing events, if known, else 0.
    pub lost: u64,
}

impl Drained {
    /// True if no event is missing between these times (ns on CLOCK_MONOTONIC).
    #[must_use]
    pub fn is_complete(&self, from_ns: u64, to_ns: u64) -> bool {
        !self.gaps.iter().any(|gap| gap.from_ns < to_ns && from_ns < gap.to_ns)
    }
}

/// Reads the pages of one CPU.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PageReader {
    pub cpu: u32,
    /// Time of the last event, ns.
    pub read_to_ns: u64,
    /// Sum of the losses that pages counted.
    pub lost: u64,
    /// True if a page had a loss without a count.
    pub uncounted: bool,
    /// True if the previous page had an invalid record.
    broken: bool,
}

impl PageReader {
    pub(crate) fn new(cpu: u32) -> Self {
        Self { cpu, read_to_ns: 0, lost: 0, uncounted: false, broken: false }
    }

    /// Reads the next page. An invalid record or page counts as a loss before the page that follows it.
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
            self.note_loss(lost, first_ns, drained);
        }
        let cpu = self.cpu;
        for record in &mut records {
            events.extend(decoder.decode(cpu, record.at_ns, record.data));
        }
        self.read_to_ns = self.read_to_ns.max(records.at_ns());
        self.broken = records.is_broken();
    }

    fn note_loss(&mut self, lost: Lost, to_ns: u64, drained: &mut Drained) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::{
        format::Format,
        page::builder::{LAYOUT, long, page},
    };

    const SOFTIRQ: &str = "name: softirq_entry\nID: 7\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\
        \tfield:unsigned int vec;\toffset:8;\tsize:4;\tsigned:0;\n";

    fn softirq(delta: u64) -> Vec<u8> {
        long(delta, &[7, 0, 0, 0, 42, 0, 0, 0, 3, 0, 0, 0])
    }

    /// Reads pages one after the other.
    fn drained_of(pages: &[Vec<u8>]) -> (Vec<u64>, Drained, PageReader) {
        let mut decoder = Decoder::default();
        assert!(decoder.add_format("irq", &Format::parse(SOFTIRQ).unwrap()));
        let (mut events, mut drained, mut progress) = (Vec::new(), Drained::default(), PageReader::new(1));
        for page in pages {
            progress.read(page, &LAYOUT, &mut decoder, &mut events, &mut drained);
        }
        (events.iter().map(|event| event.at_ns).collect(), drained, progress)
    }

    fn with_flags(mut page: Vec<u8>, flags: u64, count: u64) -> Vec<u8> {
        let commit = u64::from_le_bytes(*page[8..].first_chunk().unwrap());
        page[8..16].copy_from_slice(&(commit | flags).to_le_bytes());
        let end = 16 + usize::try_from(commit).unwrap();
        page[end..end + 8].copy_from_slice(&count.to_le_bytes());
        page
    }

    #[test]
    fn pages_without_losses_are_complete() {
        let pages = [page(100, &[softirq(0), softirq(5)]), page(200, &[softirq(1)])];
        let (times, drained, progress) = drained_of(&pages);
        assert_eq!((times, progress.read_to_ns), (vec![100, 105, 201], 201));
        assert_eq!(drained, Drained::default());
        assert!(drained.is_complete(0, 1000));
    }

    #[test]
    fn a_gap_ends_at_the_events_around_it() {
        let lossy = with_flags(page(300, &[softirq(7)]), 3 << 30, 12);
        let (_, drained, progress) = drained_of(&[page(100, &[softirq(5)]), lossy]);
        assert_eq!(drained, Drained { lost_events: 12, gaps: vec![Gap { from_ns: 105, to_ns: 307, lost: 12 }] });
        assert!(!progress.uncounted);
        assert!(drained.is_complete(0, 105) && drained.is_complete(307, 400) && !drained.is_complete(200, 201));
        assert!(!drained.is_complete(0, 400));
    }

    #[test]
    fn reports_a_loss_without_a_count() {
        let (_, drained, progress) = drained_of(&[with_flags(page(300, &[softirq(7)]), 1 << 31, 0)]);
        assert_eq!(drained, Drained { lost_events: 0, gaps: vec![Gap { from_ns: 0, to_ns: 307, lost: 0 }] });
        assert!(progress.uncounted);
    }

    #[test]
    fn an_invalid_record_or_page_is_a_gap() {
        let broken = page(100, &[softirq(5), vec![0xff; 3]]);
        let (times, drained, progress) = drained_of(&[broken, page(300, &[softirq(7)])]);
        assert_eq!(times, [105, 307]);
        assert_eq!(drained.gaps, [Gap { from_ns: 105, to_ns: 307, lost: 0 }]);
        assert!(progress.uncounted);
        let (_, drained, _) = drained_of(&[vec![1, 2, 3], page(300, &[softirq(7)])]);
        assert_eq!(drained.gaps, [Gap { from_ns: 0, to_ns: 307, lost: 0 }]);
    }
}
