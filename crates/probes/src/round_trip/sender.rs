//! The work of the sending thread at each deadline: send one datagram.

use std::{
    io,
    sync::{
        Arc,
        atomic::Ordering::{Relaxed, Release},
    },
};

use sys::clock::Clock;

use super::{
    carrier::Carrier,
    packet::{Packet, stamp_sent},
    port::SendPort,
    settings::is_report,
    shared::Shared,
    window::Slot,
};
use crate::{
    probe_threads::{Wake, Work},
    timer::shared::add,
};

/// Sends one datagram per deadline.
pub(super) struct Sender {
    pub port: SendPort,
    pub shared: Arc<Shared>,
    pub clock: Clock,
    pub period_ns: i64,
    pub run: u32,
    /// Number of the traffic class.
    pub class: u8,
    pub carrier: Carrier,
    /// The header of the carrier, and the payload in its requested length.
    pub message: Box<[u8]>,
    /// Datagrams sent since the kernel started its numbering.
    pub numbered: usize,
}

impl Work for Sender {
    #[inline]
    fn at(&mut self, wake: Wake) {
        let Wake { slot: sequence, deadline_ns, woke_ns } = wake;
        let sending = &self.shared.sending;
        if sequence == 0 {
            sending.first_deadline_ns.store(deadline_ns, Relaxed);
        }
        let missed = ((woke_ns - deadline_ns) / self.period_ns).max(0).cast_unsigned();
        sending.slots.store(sequence + 1 + missed, Relaxed);
        sending.next.store(sequence + 1, Release);
        self.number(sequence);
        let slot = Slot { intended_ns: deadline_ns, woke_ns, sent_ns: woke_ns, ..Slot::default() };
        if self.shared.window.open(sequence, slot) {
            self.shared.count_lost();
        }
        Packet { run: self.run, class: self.class, sequence, intended_ns: deadline_ns, ..Packet::default() }
            .write(self.message.get_mut(self.carrier.headroom()..).unwrap_or_default());
        let sent_ns = self.clock.now_ns();
        self.shared.window.sent(sequence, sent_ns);
        stamp_sent(self.message.get_mut(self.carrier.headroom()..).unwrap_or_default(), sent_ns);
        self.carrier.finish(&mut self.message, sequence);
        match self.port.send(&self.message) {
            Ok(()) => self.sent(),
            Err(error) => self.failed(sequence, &error),
        }
    }
}

impl Sender {
    /// Stores the sequence number of the datagram that the kernel will give the next number.
    #[inline]
    fn number(&self, sequence: u64) {
        let sequences = &self.shared.sending.sequences;
        if let Some(number) = sequences.get(self.numbered & sequences.len().wrapping_sub(1)) {
            number.store(sequence, Relaxed);
        }
    }

    #[inline]
    fn sent(&mut self) {
        self.numbered += 1;
        add(&self.shared.sending.sent, 1);
    }

    #[cold]
    fn failed(&mut self, sequence: u64, error: &io::Error) {
        self.restart_numbering(sequence);
        // A report about an earlier datagram kept this one from being sent.
        if is_report(error) && self.port.send(&self.message).is_ok() {
            return self.sent();
        }
        let sending = &self.shared.sending;
        sending.error.store(error.raw_os_error().unwrap_or(0), Relaxed);
        // A datagram that was given up already counts as lost, so it must count as sent too.
        let counter = if self.shared.window.not_sent(sequence) { &sending.failed } else { &sending.sent };
        add(counter, 1);
    }

    /// Restarts the kernel's numbering, because kernels differ in whether a failed datagram gets a number.
    fn restart_numbering(&mut self, sequence: u64) {
        if !self.shared.sending.sequences.is_empty() && self.port.restart_numbering() {
            self.numbered = 0;
            self.number(sequence);
        }
    }
}
