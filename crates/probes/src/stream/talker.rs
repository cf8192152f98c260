//! The talker: at each deadline, spin until the slot starts, then send its frame.
//!
//! A talker of several streams sends one frame of each in every slot, all with one system call if the mode has one. Their
//! lateness is the same; the figures are those of the first stream, and each of the others has its own counts.

use record::{counted, grouped};
use std::{
    io,
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicI32, AtomicI64, AtomicU64, Ordering::Relaxed},
    },
    thread,
    time::Duration,
};

use frames::{Frame, Payload, Stream, maap::Addresses};
use sys::{clock::Clock, packet::BATCH};

use super::{
    identity,
    reports::Reports,
    transmit::{Transmit, TransmitMode},
};
use crate::{
    counts::Counts,
    probe_threads::{Wake, Work},
    timer::shared::add,
};

/// The settings of a talker. Its deadlines are `offset_ns` before its slots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TalkerSettings {
    /// The streams, at least one and at most [`BATCH`].
    pub streams: Vec<Stream>,
    /// Names of the streams from a file, in the same order; empty for streams without names.
    pub names: Vec<String>,
    /// Number that identifies the run.
    pub run: u32,
    /// Network interface that sends the frames.
    pub interface: String,
    /// Transmission mode.
    pub mode: TransmitMode,
    /// True if the listener is part of this run, at the other end of a virtual Ethernet pair.
    pub own_listener: bool,
    /// Time between two slots, ns.
    pub period_ns: u64,
    /// Wake-up offset: time from wake-up to slot, ns.
    pub offset_ns: u64,
    /// Time from the slot to the presentation time, ns.
    pub transit_ns: u64,
    /// Clock of the deadlines.
    pub clock: Clock,
}

impl TalkerSettings {
    /// Time between the launch times of two frames of a slot, ns: with launch times, the frames are spread evenly over the
    /// period.
    fn spacing_ns(&self) -> i64 {
        let streams = i64::try_from(self.streams.len()).unwrap_or(1).max(1);
        if self.mode.keeps_slots() { self.period_ns.cast_signed() / streams } else { 0 }
    }

    /// [`tolerance_ns`] of this talker.
    #[must_use]
    pub fn tolerance_ns(&self) -> u64 {
        tolerance_ns(self.period_ns)
    }
}

/// A frame sent later than its slot by more than this is late, ns: 1 % of the period, at least 1 us.
#[must_use]
pub fn tolerance_ns(period_ns: u64) -> u64 {
    (period_ns / 100).max(1_000)
}

/// Length of a frame of the stream, without FCS, bytes.
fn frame_bytes(stream: &Stream) -> u64 {
    frames::template::length(stream.format, stream.channels, stream.samples) as u64
}

/// Counters that only the measuring thread writes.
#[derive(Debug, Default)]
struct Shared {
    send: Counts,
    outside: AtomicU64,
    frames: AtomicU64,
    late: AtomicU64,
    late_packets: AtomicU64,
    missed_slots: AtomicU64,
    refused: AtomicU64,
    refusal: AtomicI32,
    /// Refusals since the last frame, and the number of frames before them.
    refused_in_a_row: AtomicU64,
    frames_before_refusal: AtomicU64,
    max_delta_ns: AtomicI64,
    max_delta_at_ns: AtomicU64,
    max_interval_error_ns: AtomicU64,
    window_violations: AtomicU64,
    uncertain: AtomicU64,
    /// The streams after the first.
    others: Box<[OtherStream]>,
}

/// Counters of a stream after the first.
#[derive(Debug, Default)]
struct OtherStream {
    frames: AtomicU64,
    refused: AtomicU64,
}

/// Time for the last frames to leave and for their reports to arrive.
const LAST_REPORTS: Duration = Duration::from_millis(20);
/// If the kernel refused all frames of at least this time and number of slots before the end, the interface is gone.
const GONE_NS: u64 = 1_000_000_000;
const GONE_SLOTS: u64 = 3;

/// The work of the measuring thread at each deadline.
#[derive(Debug)]
pub struct Talk<T> {
    sender: T,
    /// One frame for each stream.
    frames: Box<[Frame]>,
    /// Time between the launch times of two frames of a slot, ns.
    spacing_ns: i64,
    run: u32,
    period_ns: i64,
    offset_ns: i64,
    transit_ns: u64,
    tolerance_ns: i64,
    clock: Clock,
    /// True while the clock is not synchronised; `None` if that is not watched.
    is_uncertain: Option<Arc<AtomicBool>>,
    /// The claimed destination addresses; `None` if they cannot change.
    destinations: Option<Destinations>,
    /// True if the thread waits for the slot before it sends.
    waits: bool,
    shared: Arc<Shared>,
    /// The last slot that is over: a frame was sent, refused or skipped in it.
    slots_over: i64,
    left_ns: Option<i64>,
}

/// Destination addresses that can change during the run, because another device claims them.
#[derive(Debug)]
struct Destinations {
    /// The first address, written by an ordinary thread.
    first: Arc<AtomicU64>,
    /// The first address in the frames.
    current: u64,
    /// The place of each stream's address after the first one; `None` for a given address.
    places: Box<[Option<u16>]>,
}

impl Destinations {
    /// Sets the addresses of the frames if they have changed.
    #[inline]
    fn patch(&mut self, frames: &mut [Frame]) {
        let first = self.first.load(Relaxed);
        if first == self.current {
            return;
        }
        self.current = first;
        let addresses = Addresses { first, count: 1 };
        for (frame, place) in frames.iter_mut().zip(&*self.places) {
            if let Some(place) = *place {
                frame.patch_destination(addresses.at(place));
            }
        }
    }
}

/// The ordinary threads' side of a talker.
#[derive(Debug)]
pub struct Talker {
    settings: TalkerSettings,
    zero_copy: Option<bool>,
    shared: Arc<Shared>,
    reports: Option<Reports>,
    /// True if the record contains the number of uncertain presentation times.
    watches_sync: bool,
    /// Slots that had passed without a frame when the thread was stopped.
    pub(super) overdue_slots: u64,
}

impl Talker {
    /// Creates a talker and the work for its measuring thread, with all memory that it needs.
    #[must_use]
    pub fn new<T: Transmit>(settings: &TalkerSettings, sender: T) -> (Self, Talk<T>) {
        let zero_copy = sender.is_zero_copy();
        debug_assert!((1..=BATCH).contains(&settings.streams.len()), "{} streams", settings.streams.len());
        let others = settings.streams.iter().skip(1).map(|_| OtherStream::default()).collect();
        let shared = Arc::new(Shared { max_delta_ns: AtomicI64::new(i64::MIN), others, ..Shared::default() });
        let talk = Talk {
            sender,
            frames: settings.streams.iter().map(Stream::frame).collect(),
            spacing_ns: settings.spacing_ns(),
            run: settings.run,
            period_ns: settings.period_ns.cast_signed(),
            offset_ns: settings.offset_ns.cast_signed(),
            transit_ns: settings.transit_ns,
            tolerance_ns: settings.tolerance_ns().cast_signed(),
            clock: settings.clock,
            is_uncertain: None,
            destinations: None,
            waits: !settings.mode.keeps_slots(),
            shared: shared.clone(),
            slots_over: -1,
            left_ns: None,
        };
        let watches_sync = false;
        (Self { settings: settings.clone(), zero_copy, shared, reports: None, watches_sync, overdue_slots: 0 }, talk)
    }

    /// Adds a source of reports about sent frames.
    #[must_use]
    pub fn with_reports(self, reports: Option<Reports>) -> Self {
        Self { reports, ..self }
    }

    /// Marks the presentation times of `talk` as uncertain (`tu`) while the flag is true.
    #[must_use]
    pub fn with_uncertain<T>(self, talk: Talk<T>, flag: Arc<AtomicBool>) -> (Self, Talk<T>) {
        (Self { watches_sync: true, ..self }, Talk { is_uncertain: Some(flag), ..talk })
    }

    /// Lets the destination addresses of `talk` follow `first`, the first claimed address as a number of 48 bits. `places` has
    /// the place of each stream's address after it, or `None` for a given address.
    #[must_use]
    pub fn with_destinations<T>(
        self,
        talk: Talk<T>,
        first: Arc<AtomicU64>,
        places: Vec<Option<u16>>,
    ) -> (Self, Talk<T>) {
        let destinations = Destinations { current: first.load(Relaxed), first, places: places.into() };
        (self, Talk { destinations: Some(destinations), ..talk })
    }

    /// Reads the reports about sent frames.
    pub fn collect(&mut self) {
        if let Some(reports) = &mut self.reports {
            reports.collect();
        }
    }

    /// Reads the reports about the last frames, as soon as these have left.
    pub fn finish(&mut self) {
        if self.reports.is_some() {
            thread::sleep(LAST_REPORTS);
            self.collect();
        }
    }

    /// Frames of the first stream sent so far.
    #[must_use]
    pub fn frames(&self) -> u64 {
        self.shared.frames.load(Relaxed)
    }

    /// The id of each stream, and its frames sent so far.
    #[must_use]
    pub fn frames_of_each(&self) -> Vec<(u64, u64)> {
        let counts = self.counts_of_each().into_iter().map(|(frames, _)| frames);
        self.settings.streams.iter().map(|stream| stream.stream_id).zip(counts).collect()
    }

    /// Frames sent and refused so far, of each stream.
    fn counts_of_each(&self) -> Vec<(u64, u64)> {
        let first = (self.shared.frames.load(Relaxed), self.shared.refused.load(Relaxed));
        let others = self.shared.others.iter().map(|other| (other.frames.load(Relaxed), other.refused.load(Relaxed)));
        [first].into_iter().chain(others).collect()
    }

    /// The counts of each stream, for the record; empty for one stream without a name.
    fn streams(&self) -> Vec<record::SentStream> {
        let (streams, names) = (&self.settings.streams, &self.settings.names);
        let names = names.iter().cloned().chain(std::iter::repeat(String::new()));
        let counted = streams.iter().zip(self.counts_of_each()).zip(names);
        let sent = counted.map(|((stream, (frames, refused)), name)| record::SentStream {
            name,
            stream_id: identity::stream_id(stream.stream_id),
            destination: identity::mac(stream.destination),
            frames,
            refused,
            frame_bytes: Some(frame_bytes(stream)),
        });
        if streams.len() > 1 || !self.settings.names.is_empty() { sent.collect() } else { Vec::new() }
    }

    /// The figures so far.
    #[must_use]
    pub fn to_record(&self) -> record::Talker {
        let (settings, shared) = (&self.settings, &*self.shared);
        let Stream { source, destination, stream_id, format, tci, .. } = settings.streams[0];
        let frames = shared.frames.load(Relaxed);
        let seen = (frames > 0).then_some(());
        let mut talker = record::Talker {
            identity: record::StreamIdentity {
                interface: settings.interface.clone(),
                stream_id: identity::stream_id(stream_id),
                source: identity::mac(source),
                destination: identity::mac(destination),
                format: identity::format(format.subtype()),
                pcp: Some(tci.pcp),
                vid: Some(tci.vid),
                frame_bytes: frame_bytes(&settings.streams[0]),
            },
            mode: settings.mode.to_string(),
            zero_copy: self.zero_copy,
            own_listener: settings.own_listener,
            offset_ns: settings.offset_ns,
            tolerance_ns: settings.tolerance_ns(),
            frames,
            late: shared.late.load(Relaxed),
            late_packets: Some(shared.late_packets.load(Relaxed)),
            missed_slots: shared.missed_slots.load(Relaxed) + self.overdue_slots,
            refused: shared.refused.load(Relaxed),
            max_delta_ns: seen.map(|()| shared.max_delta_ns.load(Relaxed)),
            max_delta_at_ns: seen.map(|()| shared.max_delta_at_ns.load(Relaxed)),
            max_interval_error_ns: shared.max_interval_error_ns.load(Relaxed),
            window_violations: shared.window_violations.load(Relaxed),
            send: shared.send.snapshot(),
            streams: self.streams(),
            uncertain: self.watches_sync.then(|| shared.uncertain.load(Relaxed)),
            ..record::Talker::default()
        };
        if let Some(reports) = &self.reports {
            let frames = self.counts_of_each().iter().map(|(frames, _)| frames).sum();
            reports.add_to(&mut talker, frames);
        }
        talker
    }

    /// The reason in words why no frames could be sent any more; `None` if the last ones were sent.
    #[must_use]
    pub fn gone(&self) -> Option<String> {
        let shared = &*self.shared;
        let frames = shared.frames.load(Relaxed);
        let in_a_row = shared.refused_in_a_row.load(Relaxed);
        let refused_ns = in_a_row.saturating_mul(self.settings.period_ns);
        let lasts = frames > 0 && frames == shared.frames_before_refusal.load(Relaxed);
        (lasts && in_a_row >= GONE_SLOTS && refused_ns >= GONE_NS).then(|| {
            let (why, interface) =
                (io::Error::from_raw_os_error(shared.refusal.load(Relaxed)), &self.settings.interface);
            let seconds = refused_ns as f64 / 1e9;
            format!("the kernel refused all frames of the last {seconds:.1} s on {interface}: {why}")
        })
    }

    /// Notes for the record.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let refused: u64 = self.counts_of_each().iter().map(|(_, refused)| refused).sum();
        if refused > 0 {
            let why = io::Error::from_raw_os_error(self.shared.refusal.load(Relaxed));
            notes.push(format!("the kernel refused {}, the last one with: {why}", counted(refused, "frame")));
        }
        let outside = self.shared.outside.load(Relaxed);
        if outside > 0 {
            notes.push(format!("{} frames outside the histogram's range are in no bucket", grouped(outside)));
        }
        notes
    }
}

impl<T: Transmit> Work for Talk<T> {
    fn at(&mut self, wake: Wake) {
        let slot_ns = wake.deadline_ns + self.offset_ns;
        let seq = self.shared.frames.load(Relaxed);
        let is_uncertain = self.is_uncertain.as_ref().is_some_and(|flag| flag.load(Relaxed));
        if let Some(destinations) = &mut self.destinations {
            destinations.patch(&mut self.frames);
        }
        let (mut launches_ns, mut launch_ns) = ([slot_ns; BATCH], slot_ns);
        for (stream, frame) in self.frames.iter_mut().enumerate() {
            launches_ns[stream] = launch_ns;
            launch_ns += self.spacing_ns;
            let seq = stream.checked_sub(1).map_or(seq, |other| self.shared.others[other].frames.load(Relaxed));
            let scheduled_ns = launches_ns[stream];
            let payload = Payload { run: self.run, seq, scheduled_ns, woke_ns: wake.woke_ns, sent_ns: 0 };
            frame.patch(&payload, self.transit_ns);
            frame.patch_uncertain(is_uncertain);
        }
        let mut now_ns = self.clock.now_ns();
        while self.waits && now_ns < slot_ns {
            now_ns = self.clock.now_ns();
        }
        // A frame leaves no earlier than its slot: it waits here or in the kernel.
        let leaves_ns = now_ns.max(slot_ns);
        // The slot in which the frame leaves. A slot that had a frame gets no other one, because a talker must not
        // burst.
        let slot = wake.slot.cast_signed() + (leaves_ns - slot_ns) / self.period_ns;
        if slot <= self.slots_over {
            return;
        }
        for (frame, launch_ns) in self.frames.iter_mut().zip(&launches_ns) {
            frame.patch_sent(now_ns.max(*launch_ns));
        }
        let sent = match &*self.frames {
            [frame] => self.sender.send(frame.bytes(), slot_ns),
            _ => self.send_all(&launches_ns),
        };
        add(&self.shared.missed_slots, (slot - self.slots_over - 1).cast_unsigned());
        self.slots_over = slot;
        match sent {
            Ok(()) => {
                add(&self.shared.uncertain, u64::from(is_uncertain));
                self.note(leaves_ns, now_ns - slot_ns, wake.slot);
            }
            Err(error) => self.note_refusal(&error),
        }
    }
}

impl<T: Transmit> Talk<T> {
    /// Sends the frames of all streams, and counts those after the first. Returns the result of the first.
    fn send_all(&mut self, launches_ns: &[i64]) -> io::Result<()> {
        let mut frames: [&[u8]; BATCH] = [&[]; BATCH];
        for (bytes, frame) in frames.iter_mut().zip(&*self.frames) {
            *bytes = frame.bytes();
        }
        let count = self.frames.len();
        let (mut next, mut of_first) = (0, Ok(()));
        while next < count {
            // A refused frame does not hold back those after it.
            let (sent, refused) = match self.sender.send_all(&frames[next..count], &launches_ns[next..count]) {
                Ok(sent) => (sent.min(count - next), None),
                Err(error) => (0, Some(error)),
            };
            self.shared.others(next..next + sent).for_each(|other| add(&other.frames, 1));
            next += sent;
            if sent == 0 {
                self.shared.others(next..next + 1).for_each(|other| add(&other.refused, 1));
                let error = refused.unwrap_or_else(|| io::ErrorKind::WouldBlock.into());
                if next == 0 {
                    of_first = Err(error);
                } else {
                    self.shared.refusal.store(error.raw_os_error().unwrap_or_default(), Relaxed);
                }
                next += 1;
            }
        }
        of_first
    }
}

impl Shared {
    /// The counters of the streams with these indices; the first stream has others.
    fn others(&self, streams: Range<usize>) -> impl Iterator<Item = &OtherStream> {
        streams.filter_map(|stream| self.others.get(stream.checked_sub(1)?))
    }
}

impl<T> Talk<T> {
    #[inline]
    fn note(&mut self, leaves_ns: i64, delta_ns: i64, slot: u64) {
        let shared: &Shared = &self.shared;
        add(&shared.frames, 1);
        add(&shared.outside, u64::from(!shared.send.count(delta_ns)));
        add(&shared.late, u64::from(delta_ns > self.tolerance_ns));
        add(&shared.late_packets, u64::from(delta_ns > self.period_ns / 2));
        if delta_ns > shared.max_delta_ns.load(Relaxed) {
            shared.max_delta_ns.store(delta_ns, Relaxed);
            shared.max_delta_at_ns.store(slot * self.period_ns.cast_unsigned(), Relaxed);
        }
        let Some(before_ns) = self.left_ns.replace(leaves_ns) else { return };
        let interval_ns = leaves_ns - before_ns;
        let error_ns = (interval_ns - self.period_ns).unsigned_abs();
        if error_ns > shared.max_interval_error_ns.load(Relaxed) {
            shared.max_interval_error_ns.store(error_ns, Relaxed);
        }
        add(&shared.window_violations, u64::from(2 * interval_ns < self.period_ns));
    }

    #[cold]
    fn note_refusal(&self, error: &io::Error) {
        let shared: &Shared = &self.shared;
        add(&shared.refused, 1);
        // A frame that was sent since the last refusal starts a new row.
        let frames = shared.frames.load(Relaxed);
        let goes_on = shared.frames_before_refusal.load(Relaxed) == frames;
        let in_a_row = if goes_on { shared.refused_in_a_row.load(Relaxed) } else { 0 };
        shared.frames_before_refusal.store(frames, Relaxed);
        shared.refused_in_a_row.store(in_a_row + 1, Relaxed);
        self.shared.refusal.store(error.raw_os_error().unwrap_or_default(), Relaxed);
    }
}

#[cfg(test)]
mod tests;
