//! Converts the data of the threads to the series of a record. Runs on an ordinary thread.

use std::{io, sync::atomic::Ordering::Relaxed};

use record::{
    Granted, Histogram, Losses, Maxima, Parts, RoundTrip, Series, SeriesKind, Spike, StampsMissing, Worst, grouped,
};
use sys::udp::{IcmpError, Stamps};

use super::{
    Carrier, Settings,
    directions::BothDirections,
    packet::{LOCKED, REALTIME, XDP},
    shared::{Event, Shared},
    window::SlotState,
};
use crate::{guard, setup::Grant, times::TimeCounters};

/// Time after the timeout at which a datagram is given up, ns: an answer in time may still wait for the receiving
/// thread.
const GRACE_NS: i64 = 50_000_000;

/// The data read so far.
#[derive(Debug)]
pub struct Reader {
    queue: rtrb::Consumer<Event>,
    period_ns: i64,
    timeout_ns: i64,
    worst: Worst,
    maxima: Maxima,
    losses: Losses,
    /// Round trips that missed deadlines would have had.
    omitted: Histogram,
    /// Round trips out of the range of the shared histogram.
    outside: Histogram,
    directions: BothDirections,
    /// The first sequence number that is not settled.
    open: u64,
    lost_in_a_row: u64,
    most_in_a_row: u64,
    /// The last datagram that was answered in time.
    last_answered: Option<u64>,
    /// Slots up to the deadline that the sending thread missed when it was stopped.
    pub overdue_slots: u64,
}

impl Reader {
    pub fn new(queue: rtrb::Consumer<Event>, settings: &Settings) -> Self {
        Self {
            queue,
            period_ns: settings.period_ns.cast_signed(),
            timeout_ns: settings.timeout_ns.cast_signed(),
            worst: Worst::keeping(settings.spikes_kept),
            maxima: Maxima::default(),
            losses: Losses::default(),
            omitted: Histogram::default(),
            outside: Histogram::default(),
            directions: BothDirections::default(),
            open: 0,
            lost_in_a_row: 0,
            most_in_a_row: 0,
            last_answered: None,
            overdue_slots: 0,
        }
    }

    /// Reads the queued events, and gives up datagrams whose timeout had passed at `now_ns`.
    pub fn collect(&mut self, shared: &Shared, threshold_ns: i64, now_ns: i64) {
        while let Ok(event) = self.queue.pop() {
            match event {
                Event::Times { echo, sent_ns, received_ns, answered_ns, arrived_ns } => {
                    self.directions.add(echo, [sent_ns, received_ns, answered_ns, arrived_ns]);
                }
                Event::SecondEnded { at_ns, max_ns } => self.maxima.add(at_ns.saturating_sub(1), max_ns),
                Event::Notable { round_trip_ns, at_ns, missed, trip } => {
                    if !shared.receiving.round_trips.holds(round_trip_ns) {
                        self.outside.record(round_trip_ns);
                    }
                    (1..=missed.cast_signed()).for_each(|n| self.omitted.record(round_trip_ns - n * self.period_ns));
                    if round_trip_ns > threshold_ns {
                        let trip = Some(trip);
                        self.worst.add(Spike { lateness_ns: round_trip_ns, at_ns, trip, ..Spike::default() });
                    }
                }
            }
        }
        self.give_up(shared, now_ns - self.timeout_ns - GRACE_NS);
    }

    fn give_up(&mut self, shared: &Shared, before_ns: i64) {
        let next = shared.sending.next.load(Relaxed);
        while self.open < next {
            match shared.window.give_up(self.open, before_ns) {
                SlotState::Waiting => return,
                SlotState::Answered => {
                    self.lost_in_a_row = 0;
                    self.last_answered = Some(self.open);
                }
                SlotState::None => {}
                SlotState::NotSent => self.losses.add(self.at_ns(), 1),
                state @ (SlotState::LostNow | SlotState::Lost) => {
                    if state == SlotState::LostNow {
                        shared.count_lost();
                    }
                    self.losses.add(self.at_ns(), 1);
                    self.lost_in_a_row += 1;
                    self.most_in_a_row = self.most_in_a_row.max(self.lost_in_a_row);
                }
            }
            self.open += 1;
        }
    }

    /// The deadline of the first datagram that is not settled, ns after the first deadline.
    fn at_ns(&self) -> u64 {
        self.open.saturating_mul(self.period_ns.cast_unsigned())
    }

    /// Time since the last answered datagram, ns, until the last slot; `None` without an answer. Known once all datagrams
    /// are settled.
    pub fn silence_ns(&self, shared: &Shared) -> Option<u64> {
        let slots = shared.sending.slots.load(Relaxed).saturating_sub(1);
        Some(slots.saturating_sub(self.last_answered?).saturating_mul(self.period_ns.cast_unsigned()))
    }

    /// True if no datagram is in flight.
    pub fn is_settled(&self, shared: &Shared) -> bool {
        let settled = shared.receiving.answered.load(Relaxed) + shared.lost.load(Relaxed);
        settled >= shared.sending.sent.load(Relaxed)
    }

    /// Returns the series so far. `polled` is true if the device's queue can be polled.
    pub fn series(&self, phase: &str, settings: &Settings, grant: &Grant, shared: &Shared, polled: bool) -> Series {
        let receiving = &shared.receiving;
        let mut raw = receiving.round_trips.histogram();
        raw.merge(&self.outside);
        let mut corrected = raw.clone();
        corrected.merge(&self.omitted);
        let times = receiving.round_trips.to_record();
        let round_trip = self.round_trip(settings, shared);
        Series {
            phase: phase.to_owned(),
            role: settings.class.role.clone(),
            cpu: settings.cpu.filter(|_| grant.pin_refused.is_none()),
            granted: Granted {
                policy: grant.policy.to_string(),
                cpus: cpu_list(&grant.cpus),
                timer_slack_ns: if grant.policy.is_realtime() { 0 } else { grant.timer_slack_ns },
                ..Granted::default()
            },
            period_ns: settings.period_ns,
            first_deadline_ns: shared.sending.first_deadline_ns.load(Relaxed),
            samples: receiving.answered.load(Relaxed),
            missed: round_trip.not_sent(),
            min_ns: times.as_ref().map(|times| times.min_ns),
            mean_ns: times.as_ref().map(|times| times.mean_ns),
            max_ns: times.as_ref().map(|times| times.max_ns),
            max_at_ns: times.map(|_| receiving.max_at_ns.load(Relaxed)),
            raw,
            corrected,
            maxima: self.maxima.clone(),
            losses: self.losses.clone(),
            spikes_total: receiving.spikes.load(Relaxed),
            spikes: self.worst.with(&[]),
            floor_ns: grant.floor_ns,
            notes: notes(settings, shared, polled),
            kind: SeriesKind::RoundTrips(Box::new(round_trip)),
            ..Series::default()
        }
    }

    fn round_trip(&self, settings: &Settings, shared: &Shared) -> RoundTrip {
        let (sending, receiving) = (&shared.sending, &shared.receiving);
        let is_ours = receiving.echo.load(Relaxed) != 0;
        let icmp_error = receiving.icmp_error.load(Relaxed);
        let has = receiving.echo_has.load(Relaxed);
        let error = sending.error.load(Relaxed);
        let times = |counters: &TimeCounters| counters.to_record();
        RoundTrip {
            peer: settings.carrier.to_string(),
            carrier: match settings.carrier {
                Carrier::Udp(_) | Carrier::UdpFrames(_) => record::Carrier::Udp,
                Carrier::Icmp { .. } => record::Carrier::Icmp,
                Carrier::Ethernet { .. } => record::Carrier::Ethernet,
            },
            frames: match settings.carrier {
                Carrier::Udp(_) | Carrier::UdpFrames(_) | Carrier::Icmp { .. } => None,
                Carrier::Ethernet { frames, .. } => Some(frames.to_record()),
            },
            own_peer: settings.own_peer,
            transport: settings.transport.clone(),
            peer_xdp: has & XDP != 0,
            payload_bytes: settings.payload_bytes as u64,
            timeout_ns: settings.timeout_ns,
            slots: sending.slots.load(Relaxed).max(self.overdue_slots),
            sent: sending.sent.load(Relaxed),
            send_failed: sending.failed.load(Relaxed),
            send_error: (error != 0).then(|| in_words(&io::Error::from_raw_os_error(error))),
            lost: shared.lost.load(Relaxed),
            lost_in_a_row: self.most_in_a_row,
            late: receiving.late.load(Relaxed),
            duplicates: receiving.duplicates.load(Relaxed),
            reordered: receiving.reordered.load(Relaxed),
            foreign: receiving.foreign.load(Relaxed),
            refused: receiving.refused.load(Relaxed),
            icmp_errors: receiving.icmp_errors.load(Relaxed),
            icmp_error: (icmp_error != 0).then(|| IcmpError::from_number(icmp_error).to_string()),
            peer_restarts: receiving.restarts.load(Relaxed),
            peer_realtime: is_ours.then_some(has & REALTIME != 0),
            peer_memory_locked: is_ours.then_some(has & LOCKED != 0),
            wait: settings.wait.to_string(),
            stamp_error_ns: (settings.stamps != Stamps::None && receiving.answered.load(Relaxed) > 0)
                .then(|| receiving.stamp_error_ns.load(Relaxed).unsigned_abs()),
            clock_steps: receiving.clock_steps.load(Relaxed),
            from_sent: times(&receiving.from_sent),
            parts: Parts {
                wake: times(&receiving.wake),
                stack_out: receiving.stack_out.as_ref().and_then(times),
                peer_wake: times(&receiving.peer_wake),
                peer: times(&receiving.peer),
                wire: times(&receiving.wire),
                card: receiving.card.as_ref().and_then(|card| times(&card.times)),
                stack_in: receiving.stack_in.as_ref().and_then(times),
            },
            ways: self.directions.to_record(receiving.times_queue_full.load(Relaxed)),
            card_stamps_missing: receiving.card.as_ref().map(|card| StampsMissing {
                sent: card.sent_missing.load(Relaxed),
                received: card.received_missing.load(Relaxed),
            }),
            extra: record::Extra::new(),
        }
    }
}

/// Formats CPUs as the kernel writes a list.
fn cpu_list(cpus: &[u32]) -> String {
    let runs = cpus.chunk_by(|a, b| a + 1 == *b).map(|run| match run {
        [first, .., last] => format!("{first}-{last}"),
        _ => run.first().map(u32::to_string).unwrap_or_default(),
    });
    runs.collect::<Vec<_>>().join(",")
}

/// Why a datagram was not sent.
fn in_words(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::WouldBlock => {
            "the send buffer was full, because those before waited for the interface or for the peer's address (ARP)"
                .to_owned()
        }
        _ => error.to_string(),
    }
}

fn notes(settings: &Settings, shared: &Shared, polled: bool) -> Vec<String> {
    let receiving = &shared.receiving;
    let mut notes = settings.notes.clone();
    let pauses = receiving.pauses.load(Relaxed);
    if pauses > 0 {
        notes.push(format!(
            "the guard throttled the receiving thread {} times for {} ms, because it used its CPU without sleeping",
            grouped(pauses),
            guard::PAUSE_NS / 1_000_000
        ));
    }
    if settings.busy_polls() && !polled {
        notes.push("the device's queue cannot be polled: the receiving thread slept without busy polling".into());
    }
    let errors = receiving.errors.load(Relaxed);
    if errors > 0 {
        notes.push(format!("receiving failed {} times; see `sudo dmesg`", grouped(errors)));
    }
    let queue_full = receiving.queue_full.load(Relaxed);
    if queue_full > 0 {
        notes.push(format!(
            "{} round trips came too fast to be recorded one by one: they are counted, but may be missing from the \
             spikes, and the corrected histogram lacks the deadlines that their sender missed",
            grouped(queue_full)
        ));
    }
    let steps = receiving.clock_steps.load(Relaxed);
    if steps > 0 {
        notes.push(format!(
            "the wall clock was set {} times: the timestamps of datagrams in flight at that time are discarded, and \
             their times are included in the wire",
            grouped(steps)
        ));
    }
    notes
}
