//! The ring of one CPU: its pages, and the kernel's counts of lost events.

use std::{
    collections::VecDeque,
    fs::{File, OpenOptions},
    io::{ErrorKind, Read},
    mem,
    os::unix::fs::{FileExt, OpenOptionsExt},
};

use rustix::fs::OFlags;

use crate::{
    event::Event,
    time::now_ns,
    trace::{
        decode::Decoder,
        error::TraceError,
        folder::Folder,
        format::PageLayout,
        ring::{Drained, Gap, PageReader},
    },
};

/// The ring of one CPU.
#[derive(Debug)]
pub(crate) struct Ring {
    pages: File,
    stats: File,
    pub progress: PageReader,
    /// A time span without tracing that was not reported yet.
    pending_gap: Option<Gap>,
    /// Drained pages, kept for a file.
    pub kept: Option<VecDeque<Box<[u8]>>>,
    /// Size of the ring, pages.
    size: usize,
}

impl Ring {
    pub(super) fn open(folder: &Folder, cpu: u32, size: usize) -> Result<Self, TraceError> {
        let open = |name: &str| {
            let part = format!("per_cpu/cpu{cpu}/{name}");
            let flags = OFlags::NONBLOCK.bits().cast_signed();
            let file = OpenOptions::new().read(true).custom_flags(flags).open(folder.files.path(&part));
            file.map_err(|error| TraceError::of(part, error))
        };
        let (pages, stats) = (open("trace_pipe_raw")?, open("stats")?);
        Ok(Self { pages, stats, progress: PageReader::new(cpu), pending_gap: None, kept: None, size })
    }

    /// Appends all current events to `events`, reading one `page` at a time.
    pub(super) fn drain(
        &mut self,
        page: &mut [u8],
        layout: &PageLayout,
        decoder: &mut Decoder,
        events: &mut Vec<Event>,
    ) -> Result<Drained, TraceError> {
        let mut drained = Drained { lost_events: 0, gaps: self.pending_gap.take().into_iter().collect() };
        // Stops at events newer than this call, because the CPU may write faster than this reads.
        let until_ns = now_ns();
        while self.progress.read_to_ns < until_ns {
            let Some(bytes) = self.next_page(page)? else { break };
            self.progress.read(bytes, layout, decoder, events, &mut drained);
            if let Some(kept) = &mut self.kept {
                kept.drain(..(kept.len() + 1).saturating_sub(self.size));
                kept.push_back((&*page).into());
            }
        }
        if mem::take(&mut self.progress.uncounted) {
            self.count_losses(&mut drained);
        }
        Ok(drained)
    }

    /// Reads the next page, which may be partly filled; `None` if the ring is empty.
    pub fn next_page<'a>(&mut self, page: &'a mut [u8]) -> Result<Option<&'a [u8]>, TraceError> {
        loop {
            match self.pages.read(page) {
                Ok(0) => return Ok(None),
                Ok(length) => return Ok(Some(&page[..length])),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(TraceError::of("trace_pipe_raw", error)),
            }
        }
    }

    /// Takes the number of lost events from the kernel's statistics, because pages had losses without a count.
    fn count_losses(&mut self, drained: &mut Drained) {
        let more = self.overwritten().saturating_sub(self.progress.lost);
        self.progress.lost += more;
        drained.lost_events += more;
        if let Some(last) = drained.gaps.last_mut() {
            last.lost += more;
        }
    }

    /// Number of events that the kernel has lost in this ring.
    fn overwritten(&self) -> u64 {
        let mut text = [0; 1024];
        let length = self.stats.read_at(&mut text, 0).unwrap_or(0);
        let text = String::from_utf8_lossy(&text[..length]);
        let count = |key| text.lines().find_map(|line| line.strip_prefix(key)?.trim().parse::<u64>().ok());
        ["overrun:", "commit overrun:", "dropped events:"].into_iter().filter_map(count).sum()
    }

    pub(super) fn note_off(&mut self, from_ns: u64, to_ns: u64) {
        let from_ns = self.pending_gap.map_or(from_ns, |gap| gap.from_ns);
        self.pending_gap = Some(Gap { from_ns, to_ns, lost: 0 });
    }
}
