//! The talker: at each deadline, spin until the slot starts, then send its frame.

use record::grouped;
use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicI32, AtomicI64, AtomicU64, Ordering::Relaxed},
    },
};

use frames::{Frame, Payload, Stream};
use sys::clock::Clock;

use super::{
    identity,
    transmit::{Transmit, TransmitMode, TransmitReports},
};
use crate::{
    counts::Counts,
    probe_threads::{Wake, Work},
    timer::shared::add,
};

/// The settings of a talker. Its deadlines are `offset_ns` before its slots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TalkerSettings {
    /// The stream.
    pub stream: Stream,
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
}

/// If the kernel refused all frames of at least this time and number of slots before the end, the interface is gone.
const GONE_NS: u64 = 1_000_000_000;
const GONE_SLOTS: u64 = 3;

/// The work of the measuring thread at each deadline.
#[derive(Debug)]
pub struct Talk<T> {
    sender: T,
    frame: Frame,
    run: u32,
    period_ns: i64,
    offset_ns: i64,
    transit_ns: u64,
    tolerance_ns: i64,
    clock: Clock,
    /// True if the thread waits for the slot before it sends.
    waits: bool,
    shared: Arc<Shared>,
    /// The last slot that is over: a frame was sent, refused or skipped in it.
    slots_over: i64,
    left_ns: Option<i64>,
}

/// The ordinary threads' side of a talker.
#[derive(Debug)]
pub struct Talker {
    settings: TalkerSettings,
    zero_copy: Option<bool>,
    shared: Arc<Shared>,
    reports: Option<Box<dyn TransmitReports>>,
    /// Slots that had passed without a frame when the thread was stopped.
    pub(super) overdue_slots: u64,
}

impl Talker {
    /// Creates a talker and the work for its measuring thread, with all memory that it needs.
    #[must_use]
    pub fn new<T: Transmit>(settings: &TalkerSettings, sender: T) -> (Self, Talk<T>) {
        let zero_copy = sender.is_zero_copy();
        let shared = Arc::new(Shared { max_delta_ns: AtomicI64::new(i64::MIN), ..Shared::default() });
        let talk = Talk {
            sender,
            frame: settings.stream.frame(),
            run: settings.run,
            period_ns: settings.period_ns.cast_signed(),
            offset_ns: settings.offset_ns.cast_signed(),
            transit_ns: settings.transit_ns,
            tolerance_ns: settings.tolerance_ns().cast_signed(),
            clock: settings.clock,
            waits: !settings.mode.keeps_slots(),
            shared: shared.clone(),
            slots_over: -1,
            left_ns: None,
        };
        (Self { settings: settings.clone(), zero_copy, shared, reports: None, overdue_slots: 0 }, talk)
    }

    /// Adds a source of reports about sent frames.
    #[must_use]
    pub fn with_reports(self, reports: Option<Box<dyn TransmitReports>>) -> Self {
        Self { reports, ..self }
    }

    /// Reads the reports about sent frames.
    pub fn collect(&mut self) {
        if let Some(reports) = &mut self.reports {
            reports.collect();
        }
    }

    /// Frames sent so far.
    #[must_use]
    pub fn frames(&self) -> u64 {
        self.shared.frames.load(Relaxed)
    }

    /// The figures so far.
    #[must_use]
    pub fn to_record(&self) -> record::Talker {
        let (settings, shared) = (&self.settings, &*self.shared);
        let Stream { source, destination, stream_id, format, tci, samples } = settings.stream;
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
                frame_bytes: frames::template::length(format, samples) as u64,
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
            ..record::Talker::default()
        };
        if let Some(reports) = &self.reports {
            reports.add_to(&mut talker);
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
        let refused = self.shared.refused.load(Relaxed);
        if refused > 0 {
            let why = io::Error::from_raw_os_error(self.shared.refusal.load(Relaxed));
            notes.push(format!("the kernel refused {} frames, the last one with: {why}", grouped(refused)));
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
        let payload = Payload { run: self.run, seq, scheduled_ns: slot_ns, woke_ns: wake.woke_ns, sent_ns: 0 };
        self.frame.patch(&payload, self.transit_ns);
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
        self.frame.patch_sent(leaves_ns);
        let sent = self.sender.send(self.frame.bytes(), slot_ns);
        add(&self.shared.missed_slots, (slot - self.slots_over - 1).cast_unsigned());
        self.slots_over = slot;
        match sent {
            Ok(()) => self.note(leaves_ns, now_ns - slot_ns, wake.slot),
            Err(error) => self.note_refusal(&error),
        }
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
