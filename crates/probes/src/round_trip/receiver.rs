//! The receiving thread: reads the clock first, then finds the slot of each answer and counts. Its loop does not
//! allocate, lock, print or call anything unnecessary.

use std::{
    io,
    sync::{
        Arc,
        atomic::Ordering::{Acquire, Relaxed},
        mpsc,
    },
    time::Duration,
};

use record::Trip;
use sys::{
    alloc_guard::without_allocation,
    clock::Clock,
    udp::{Received, Report, Stamp, Stamps},
};

use super::{
    Settings,
    carrier::Carrier,
    packet::{GREETING, Packet},
    port::ReceivePort,
    settings::is_report,
    shared::{Event, Shared},
    trip::{ReceiveStamps, split},
    watch::Watch,
    window::{Answer, Slot},
};
use crate::{
    ReceiveWait,
    guard::Heartbeat,
    realtime::Realtime,
    setup::{Grant, floor_ns, set_up},
    timer::shared::add,
};

const SECOND_NS: i64 = 1_000_000_000;
/// Pause after an unexpected error, so that errors cannot use up the CPU.
const ERROR_PAUSE: Duration = Duration::from_millis(1);

/// The main function of the thread: set up, report the granted settings, receive until stopped.
pub(super) fn run(
    settings: &Settings,
    port: &mut ReceivePort,
    run: u32,
    shared: Arc<Shared>,
    events: rtrb::Producer<Event>,
    heartbeat: &Heartbeat,
    grant_sender: &mpsc::Sender<io::Result<Grant>>,
) {
    let granted = set_up(settings.cpu, settings.policy, || floor_ns(settings.clock));
    // The other side waits for this message, so sending cannot fail.
    let _ = grant_sender.send(granted);
    let mut receiver = Receiver {
        clock: settings.clock,
        stamps: settings.stamps,
        timeout_ns: settings.timeout_ns.cast_signed(),
        period_ns: settings.period_ns.cast_signed(),
        threshold_ns: settings.threshold_ns,
        reports_times: !settings.own_peer,
        carrier: settings.carrier,
        payload_bytes: settings.payload_bytes,
        run,
        class: settings.class.number,
        realtime: Realtime::to(settings.clock),
        highest: None,
        second_max_ns: i64::MIN,
        second_end_ns: SECOND_NS,
        message: vec![0; settings.carrier.received_headroom() + settings.payload_bytes].into(),
        shared,
        events,
    };
    let mut watch = (settings.wait != ReceiveWait::Spin).then(|| Watch::new(settings.clock));
    without_allocation(|| {
        while !receiver.shared.is_stopped() {
            receiver.receive(port, settings.wait != ReceiveWait::Spin);
            if let Some(watch) = &mut watch {
                let paused = watch.check(heartbeat);
                add(&receiver.shared.receiving.pauses, u64::from(paused));
            }
        }
    });
    receiver.read_reports(port);
    receiver.end_second(receiver.second_end_ns);
    receiver.shared.at_end.read();
}

/// The state of the loop.
struct Receiver {
    clock: Clock,
    stamps: Stamps,
    timeout_ns: i64,
    period_ns: i64,
    threshold_ns: i64,
    /// True if the reader gets the times of each round trip.
    reports_times: bool,
    run: u32,
    /// Number of the traffic class.
    class: u8,
    realtime: Realtime,
    /// The highest sequence number that was answered in time.
    highest: Option<u64>,
    second_max_ns: i64,
    /// End of the current second, ns after the first deadline.
    second_end_ns: i64,
    carrier: Carrier,
    /// Length of the payload, in a datagram and in its answer.
    payload_bytes: usize,
    message: Box<[u8]>,
    shared: Arc<Shared>,
    events: rtrb::Producer<Event>,
}

impl Receiver {
    #[inline]
    fn receive(&mut self, port: &mut ReceivePort, wait: bool) {
        match port.receive(&mut self.message, wait) {
            Ok(Some(received)) => {
                let arrived_ns = self.clock.now_ns();
                self.count_answer(port, received, arrived_ns);
            }
            Ok(None) => {
                if wait {
                    self.read_reports(port);
                }
            }
            Err(error) => self.refused(port, &error),
        }
    }

    #[cold]
    fn refused(&self, port: &ReceivePort, error: &io::Error) {
        let receiving = &self.shared.receiving;
        if self.carrier.is_icmp() && is_report(error) {
            self.read_reports(port);
        } else if error.kind() == io::ErrorKind::ConnectionRefused {
            add(&receiving.refused, 1);
        } else {
            add(&receiving.errors, 1);
            std::thread::sleep(ERROR_PAUSE);
        }
    }

    #[inline]
    fn count_answer(&mut self, port: &ReceivePort, received: Received, arrived_ns: i64) {
        if self.stamps != Stamps::None {
            self.realtime.update(arrived_ns);
        }
        if self.stamps.of_sent() {
            self.read_reports(port);
        }
        let is_ours = |(packet, len): &(Packet, usize)| {
            (packet.run, packet.class, *len) == (self.run, self.class, self.payload_bytes)
        };
        let answer = self.message.get(..received.len).and_then(|message| self.carrier.answer(message));
        let Some((answer, _)) = answer.filter(is_ours) else {
            return add(&self.shared.receiving.foreign, 1);
        };
        if answer.sequence == GREETING {
            return;
        }
        if answer.is_answer {
            self.note_peer(&answer);
        }
        let next = self.shared.sending.next.load(Acquire);
        let (found, lost_now) = self.shared.window.answer(answer.sequence, next, arrived_ns, self.timeout_ns);
        if lost_now {
            self.shared.count_lost();
        }
        match found {
            Answer::InTime(slot) => {
                let stamps = ReceiveStamps { stamp_ns: received.stamp_ns, card_ns: received.card_ns };
                self.count(&slot, &answer, arrived_ns, stamps);
            }
            Answer::Late => add(&self.shared.receiving.late, 1),
            Answer::Duplicate => add(&self.shared.receiving.duplicates, 1),
            Answer::Unknown => add(&self.shared.receiving.foreign, 1),
        }
    }

    /// Reads the timestamps of sent datagrams, and the ICMP errors that they caused.
    #[inline]
    fn read_reports(&self, port: &ReceivePort) {
        let sequences = &self.shared.sending.sequences;
        if sequences.is_empty() && !self.carrier.is_icmp() {
            return;
        }
        while let Ok(Some(report)) = port.report() {
            let sent = match report {
                Report::Sent(sent) => sent,
                Report::Icmp(error) => {
                    self.shared.receiving.icmp_error.store(error.number(), Relaxed);
                    add(&self.shared.receiving.icmp_errors, 1);
                    continue;
                }
            };
            if sequences.is_empty() {
                continue;
            }
            let sequence = sequences[sent.number as usize & (sequences.len() - 1)].load(Relaxed);
            if sequence != u64::MAX {
                match sent.stamp {
                    Stamp::Driver(ns) => self.shared.window.left(sequence, self.realtime.to_run_clock(ns)),
                    Stamp::Card(ns) => self.shared.window.left_card(sequence, ns),
                }
            }
        }
    }

    #[inline]
    fn note_peer(&self, answer: &Packet) {
        let receiving = &self.shared.receiving;
        let before = receiving.echo.load(Relaxed);
        if before != answer.echo {
            receiving.echo.store(answer.echo, Relaxed);
            add(&receiving.restarts, u64::from(before != 0));
        }
        receiving.echo_has.store(answer.has, Relaxed);
    }

    #[inline]
    fn count(&mut self, slot: &Slot, answer: &Packet, arrived_ns: i64, stamps: ReceiveStamps) {
        let trip = split(slot, answer, arrived_ns, stamps, &self.realtime);
        self.count_card(slot, stamps, &trip);
        let round_trip_ns = arrived_ns - slot.intended_ns;
        let at_ns = answer.sequence.wrapping_mul(self.period_ns.cast_unsigned());
        if at_ns.cast_signed() >= self.second_end_ns {
            self.end_second(at_ns.cast_signed());
        }
        let receiving = &self.shared.receiving;
        let max_ns = receiving.round_trips.max_ns();
        let counted = receiving.round_trips.note(round_trip_ns);
        if round_trip_ns > max_ns {
            receiving.max_at_ns.store(at_ns, Relaxed);
        }
        receiving.from_sent.note(arrived_ns - slot.sent_ns);
        self.count_parts(&trip);
        if self.reports_times && answer.is_answer {
            let Packet { echo, received_ns, answered_ns, .. } = *answer;
            let times = Event::Times { echo, sent_ns: slot.sent_ns, received_ns, answered_ns, arrived_ns };
            add(&receiving.times_queue_full, u64::from(self.events.push(times).is_err()));
        }
        if self.highest.is_some_and(|highest| answer.sequence < highest) {
            add(&receiving.reordered, 1);
        }
        self.highest = self.highest.max(Some(answer.sequence));
        self.second_max_ns = self.second_max_ns.max(round_trip_ns);
        let missed = ((slot.woke_ns - slot.intended_ns) / self.period_ns).max(0).cast_unsigned();
        let spike = round_trip_ns > self.threshold_ns;
        add(&receiving.spikes, u64::from(spike));
        if spike || missed > 0 || !counted {
            self.queue(Event::Notable { round_trip_ns, at_ns, missed, trip });
        }
        // Last, so that whoever waits for this count finds the others complete.
        add(&self.shared.receiving.answered, 1);
    }

    #[inline]
    fn count_parts(&self, trip: &Trip) {
        let receiving = &self.shared.receiving;
        receiving.wake.note(trip.wake_ns);
        receiving.wire.note(trip.wire_ns);
        for (counted, part_ns) in [(&receiving.peer_wake, trip.peer_wake_ns), (&receiving.peer, trip.peer_ns)] {
            if let Some(ns) = part_ns {
                counted.note(ns);
            }
        }
        for (counted, part_ns) in [(&receiving.stack_out, trip.stack_out_ns), (&receiving.stack_in, trip.stack_in_ns)] {
            if let (Some(counted), Some(ns)) = (counted, part_ns) {
                counted.note(ns);
            }
        }
    }

    #[inline]
    fn count_card(&self, slot: &Slot, stamps: ReceiveStamps, trip: &Trip) {
        let Some(card) = &self.shared.receiving.card else { return };
        add(&card.sent_missing, u64::from(slot.card_ns == 0));
        add(&card.received_missing, u64::from(stamps.card_ns.is_none()));
        if let Some(ns) = trip.card_ns {
            card.times.note(ns);
        }
    }

    /// Reports the second that ended before `at_ns`, and the quality of the timestamps so far.
    #[cold]
    fn end_second(&mut self, at_ns: i64) {
        let receiving = &self.shared.receiving;
        receiving.stamp_error_ns.store(self.realtime.error_ns, Relaxed);
        receiving.clock_steps.store(self.realtime.steps, Relaxed);
        let event = Event::SecondEnded { at_ns: self.second_end_ns.cast_unsigned(), max_ns: self.second_max_ns };
        // If the queue is full, the maximum is kept for the next second.
        if self.second_max_ns > i64::MIN && self.events.push(event).is_ok() {
            self.second_max_ns = i64::MIN;
        }
        self.second_end_ns = (at_ns / SECOND_NS + 1) * SECOND_NS;
    }

    #[cold]
    fn queue(&mut self, event: Event) {
        if self.events.push(event).is_err() {
            add(&self.shared.receiving.queue_full, 1);
        }
    }
}
