//! Reports of the kernel about sent frames: their timestamps, and frames that the queueing discipline dropped.
//!
//! A timestamp arrives with its frame, whose payload says when the talker handed it over. An ordinary thread reads the
//! reports, so that the talker is disturbed only by the kernel's own work for each timestamp.

use std::{collections::HashMap, io, path::PathBuf};

use frames::{Payload, parse};
use record::{CardStamps, Launch, TransmitStamps};
use sys::{
    clock::Clock,
    packet::{Dropped, SentReport, SentReports},
    timekeeping::{Reading, readings},
    udp::Stamp,
};

use crate::{realtime::Realtime, times::TimeCounters};

/// Readings of a network card's clock, of which the most precise is used.
const READINGS: u32 = 5;
/// A card's clock that differs from the system clock by more than one part in this was set.
const MAX_SKEW: i64 = 1000;
/// Frames that can wait for the card's timestamp, about 2 s at the rate of 8 streams of class A.
const WAITING: usize = 131_072;

/// Collects the reports about the frames of one talker.
#[derive(Debug)]
pub struct Reports {
    socket: SentReports,
    dropped: Option<Launch>,
    stamps: Option<Stamps>,
}

impl Reports {
    /// Collects the reports of this socket: the timestamps, and with launch times (`launch`) the dropped frames.
    #[must_use]
    pub fn new(socket: SentReports, launch: Option<Launch>, stamps: Option<Stamps>) -> Self {
        Self { socket, dropped: launch, stamps }
    }

    /// Reads new reports. Called from an ordinary thread, about 25 times a second, and at the end.
    pub fn collect(&mut self) {
        if let Some(stamps) = &mut self.stamps {
            stamps.read_clocks();
        }
        // The only possible error of the socket is that there is nothing more.
        while let Ok(Some(report)) = self.socket.next_report() {
            match (report, &mut self.dropped, &mut self.stamps) {
                (SentReport::Dropped(Dropped::Invalid), Some(dropped), _) => dropped.invalid += 1,
                (SentReport::Dropped(Dropped::Missed), Some(dropped), _) => dropped.missed += 1,
                (SentReport::Stamped(frame, stamp), _, Some(stamps)) => stamps.add(frame, stamp),
                // Reports that were not requested.
                (SentReport::Dropped(_), None, _) | (SentReport::Stamped(..), _, None) => {}
            }
        }
    }

    /// Adds the results to the record of the talker, which sent `frames` frames of all streams.
    pub fn add_to(&self, talker: &mut record::Talker, frames: u64) {
        talker.launch.clone_from(&self.dropped);
        let missed = self.dropped.as_ref().map_or(0, |dropped| dropped.missed);
        talker.stamps = self.stamps.as_ref().map(|stamps| stamps.to_record(frames.saturating_sub(missed)));
    }
}

/// The timestamps of sent frames.
#[derive(Debug)]
pub struct Stamps {
    clock: Clock,
    run: u32,
    realtime: Realtime,
    /// From the handover or the launch time to the driver.
    to_driver: TimeCounters,
    /// Timestamps that cannot be used, because a clock was set.
    unusable: u64,
    card: Option<Card>,
}

impl Stamps {
    /// Uses the timestamps of frames of this run, whose talker has this clock. `card` has the timestamps of the network
    /// card; `None` if none are requested.
    #[must_use]
    pub fn new(clock: Clock, run: u32, card: Option<Card>) -> Self {
        let realtime = Realtime::to(clock);
        Self { clock, run, realtime, to_driver: TimeCounters::default(), unusable: 0, card }
    }

    fn read_clocks(&mut self) {
        self.realtime.update(self.clock.now_ns());
        if let Some(card) = &mut self.card {
            card.read_clock();
        }
    }

    fn add(&mut self, frame: &[u8], stamp: Stamp) {
        let Some((stream_id, payload)) = probe_of(frame).filter(|(_, payload)| payload.run == self.run) else { return };
        let Payload { seq, sent_ns, scheduled_ns, .. } = payload;
        match (stamp, &mut self.card) {
            (Stamp::Driver(ns), card) => match self.realtime.converted(ns, self.clock.now_ns()) {
                Some(at_ns) => {
                    self.to_driver.note(at_ns - sent_ns);
                    if let Some(card) = card {
                        card.expect((stream_id, seq), at_ns);
                    }
                }
                None => self.unusable += 1,
            },
            (Stamp::Card(ns), Some(card)) => {
                let at_ns = card.to_realtime(ns).and_then(|ns| self.realtime.converted(ns, self.clock.now_ns()));
                match at_ns {
                    Some(at_ns) => card.add((stream_id, seq), at_ns, scheduled_ns),
                    None => self.unusable += 1,
                }
            }
            (Stamp::Card(_), None) => {}
        }
    }

    fn to_record(&self, frames: u64) -> TransmitStamps {
        let stack_out = self.to_driver.to_record();
        let count = |times: &Option<record::Times>, outside| {
            times.as_ref().map_or(0, |times| times.histogram.total()) + outside
        };
        TransmitStamps {
            missing: frames.saturating_sub(count(&stack_out, self.to_driver.outside())),
            unusable: self.unusable,
            clock_error_ns: self.realtime.error_ns.unsigned_abs(),
            stack_out,
            card: self.card.as_ref().map(|card| {
                let after_slot = card.after_slot.to_record();
                CardStamps {
                    clock: card.name(),
                    clock_error_ns: card.error_ns,
                    missing: frames.saturating_sub(count(&after_slot, card.after_slot.outside())),
                    driver_and_card: card.from_driver.to_record(),
                    after_slot,
                }
            }),
        }
    }
}

/// The stream and the probe's payload of a frame; `None` for frames of another program.
fn probe_of(frame: &[u8]) -> Option<(u64, Payload)> {
    let parsed = parse(frame)?;
    Some((parsed.avtp?.stream_id, parsed.probe?))
}

/// The timestamps of the network card, on its own clock.
#[derive(Debug)]
pub struct Card {
    device: PathBuf,
    /// The two last readings of the card's clock and CLOCK_REALTIME, the earlier one first.
    readings: [Option<Reading>; 2],
    /// Largest error of a reading that was used, ns.
    error_ns: u64,
    /// Frames that the driver has, and when it got them.
    waiting: HashMap<(u64, u64), i64>,
    from_driver: TimeCounters,
    after_slot: TimeCounters,
}

impl Card {
    /// The card whose clock is this device, such as `/dev/ptp0`. Reads it once, so that the first timestamps can be converted.
    ///
    /// # Errors
    /// The clock cannot be read.
    pub fn open(device: PathBuf) -> io::Result<Self> {
        let first = readings(&device, READINGS)?;
        let mut card = Self::new(device);
        card.note(best(first));
        Ok(card)
    }

    fn new(device: PathBuf) -> Self {
        Self {
            device,
            readings: [None, None],
            error_ns: 0,
            waiting: HashMap::new(),
            from_driver: TimeCounters::default(),
            after_slot: TimeCounters::default(),
        }
    }

    fn name(&self) -> String {
        self.device.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    fn read_clock(&mut self) {
        self.note(best(readings(&self.device, READINGS).unwrap_or_default()));
    }

    /// Adds a reading. One that shows that a clock was set invalidates those before it.
    fn note(&mut self, reading: Option<Reading>) {
        let Some(reading) = reading else { return };
        self.error_ns = self.error_ns.max(reading.window_ns().div_ceil(2));
        let before = self.readings[1].filter(|before| is_continuous(before, &reading));
        self.readings = [before, Some(reading)];
    }

    /// Converts a time of the card's clock to CLOCK_REALTIME, by the line through the last two readings; `None` with fewer.
    fn to_realtime(&self, card_ns: i64) -> Option<i64> {
        let [earlier, later] = [self.readings[0]?, self.readings[1]?];
        let of_card = i128::from(later.clock_ns) - i128::from(earlier.clock_ns);
        let of_system = i128::from(middle_ns(&later)) - i128::from(middle_ns(&earlier));
        let since = i128::from(card_ns) - i128::from(later.clock_ns);
        i64::try_from(i128::from(middle_ns(&later)) + since * of_system / of_card).ok()
    }

    /// The driver got a frame.
    fn expect(&mut self, frame: (u64, u64), at_ns: i64) {
        // Frames without a timestamp of the card must not fill the memory; they count as missing.
        if self.waiting.len() >= WAITING {
            self.waiting.clear();
        }
        self.waiting.insert(frame, at_ns);
    }

    /// The card sent a frame.
    fn add(&mut self, frame: (u64, u64), at_ns: i64, slot_ns: i64) {
        if let Some(driver_ns) = self.waiting.remove(&frame) {
            self.from_driver.note(at_ns - driver_ns);
        }
        self.after_slot.note(at_ns - slot_ns);
    }
}

/// The most precise reading.
fn best(readings: Vec<Reading>) -> Option<Reading> {
    readings.into_iter().min_by_key(|reading| reading.window_ns())
}

/// CLOCK_REALTIME in the middle of a reading, ns.
fn middle_ns(reading: &Reading) -> i64 {
    i64::midpoint(reading.before_ns, reading.after_ns)
}

/// True if both clocks advanced at nearly the same rate between two readings.
fn is_continuous(earlier: &Reading, later: &Reading) -> bool {
    let of_card = later.clock_ns.saturating_sub(earlier.clock_ns);
    let of_system = middle_ns(later).saturating_sub(middle_ns(earlier));
    let windows_ns = (earlier.window_ns() + later.window_ns()).cast_signed();
    of_card > 0 && of_system > 0 && (of_card.saturating_sub(of_system)).abs() <= of_system / MAX_SKEW + windows_ns
}

#[cfg(test)]
mod tests {
    use frames::{Class, Format, Stream};

    use super::*;

    const AHEAD_NS: i64 = 1_700_000_000_000_000_000;

    /// A reading of a card's clock that runs 100 ppm fast and started at 0.
    fn reading(system_ns: i64) -> Reading {
        let clock_ns = system_ns + system_ns / 10_000;
        Reading { before_ns: AHEAD_NS + system_ns - 400, clock_ns, after_ns: AHEAD_NS + system_ns + 400 }
    }

    fn card() -> Card {
        Card::new(PathBuf::from("/dev/ptp7"))
    }

    #[test]
    fn converts_times_of_a_fast_card() {
        let mut card = card();
        assert_eq!(card.to_realtime(5), None);
        card.note(Some(reading(1_000_000_000)));
        assert_eq!(card.to_realtime(5), None);
        card.note(Some(reading(1_040_000_000)));
        for system_ns in [990_000_000, 1_000_000_000, 1_020_000_000, 1_041_000_000] {
            let found_ns = card.to_realtime(reading(system_ns).clock_ns).unwrap() - AHEAD_NS;
            assert!((found_ns - system_ns).abs() <= 1, "{system_ns}: {found_ns}");
        }
        assert_eq!((card.error_ns, card.name()), (400, "ptp7".to_owned()));
    }

    #[test]
    fn uses_no_readings_from_before_a_clock_was_set() {
        let mut card = card();
        card.note(Some(reading(1_000_000_000)));
        let set = |reading: Reading| Reading { clock_ns: reading.clock_ns + 37_000_000_000, ..reading };
        card.note(Some(set(reading(1_040_000_000))));
        assert_eq!(card.to_realtime(1_050_000_000), None);
        card.note(Some(set(reading(1_080_000_000))));
        let at_ns = card.to_realtime(set(reading(1_070_000_000)).clock_ns).unwrap();
        assert!((at_ns - AHEAD_NS - 1_070_000_000).abs() <= 1, "{at_ns}");
        // The same for the system clock.
        let back = |reading: Reading| Reading {
            before_ns: reading.before_ns - 50_000_000,
            after_ns: reading.after_ns - 50_000_000,
            ..set(reading)
        };
        card.note(Some(back(reading(1_120_000_000))));
        assert_eq!(card.to_realtime(1_050_000_000), None);
        assert_eq!(card.to_realtime(i64::MIN), None);
    }

    /// A frame of stream 1 with the number `seq`, sent at `sent_ns`.
    fn frame(run: u32, seq: u64, scheduled_ns: i64, sent_ns: i64) -> Vec<u8> {
        let stream = Stream {
            source: [2, 0, 0, 0, 0, 1],
            destination: [0x91, 0xe0, 0xf0, 0, 0x20, 1],
            tci: Class::A.tci(),
            stream_id: 1,
            format: Format::Aaf,
            channels: 2,
            samples: 6,
        };
        let mut frame = stream.frame();
        frame.patch(&Payload { run, seq, scheduled_ns, woke_ns: scheduled_ns, sent_ns }, 0);
        frame.patch_sent(sent_ns);
        frame.bytes().to_vec()
    }

    #[test]
    fn divides_the_way_of_a_frame_to_the_wire() {
        let clock = Clock::Monotonic;
        let mut stamps = Stamps::new(clock, 3, Some(card()));
        let now_ns = clock.now_ns();
        let real_ns = |ns: i64| ns - stamps.realtime.to_run_clock(0);
        let (sent_ns, to_real_ns) = (now_ns - 1_000_000, real_ns(0));
        // A card's clock that is the system clock.
        let system =
            |ns: i64| Reading { before_ns: ns + to_real_ns, clock_ns: ns + to_real_ns, after_ns: ns + to_real_ns };
        let card = stamps.card.as_mut().unwrap();
        card.note(Some(system(now_ns - 40_000_000)));
        card.note(Some(system(now_ns)));
        for (seq, driver_ns, card_ns) in [(0, 4_000, Some(9_000)), (1, 6_000, None)] {
            let frame = frame(3, seq, sent_ns - 500, sent_ns);
            stamps.add(&frame, Stamp::Driver(sent_ns + driver_ns + to_real_ns));
            if let Some(card_ns) = card_ns {
                stamps.add(&frame, Stamp::Card(sent_ns + card_ns + to_real_ns));
            }
        }
        // Frames of another run, and of another program.
        stamps.add(&frame(4, 0, sent_ns, sent_ns), Stamp::Driver(now_ns + to_real_ns));
        stamps.add(&[0; 60], Stamp::Driver(now_ns + to_real_ns));
        // A timestamp of the future: a clock was set.
        stamps.add(&frame(3, 2, sent_ns, sent_ns), Stamp::Driver(now_ns + to_real_ns + 3_600_000_000_000));
        let record = stamps.to_record(3);
        let card = record.card.unwrap();
        // The offset of the clocks is read again for each stamp, and moves by their readings' error.
        let near = |ns: i64, expected_ns: i64| (ns - expected_ns).abs() < 3_000;
        let stack_out = record.stack_out.unwrap();
        assert!(near(stack_out.min_ns, 4_000) && near(stack_out.max_ns, 6_000), "{stack_out:?}");
        assert!(near(card.after_slot.unwrap().max_ns, 9_500));
        assert!(near(card.driver_and_card.unwrap().max_ns, 5_000));
        assert_eq!((record.missing, record.unusable, card.missing, card.clock), (1, 1, 2, "ptp7".to_owned()));
    }

    #[test]
    fn frames_without_the_cards_timestamp_do_not_fill_the_memory() {
        let mut card = card();
        for seq in 0..3 * WAITING as u64 {
            card.expect((1, seq), 0);
        }
        assert!(card.waiting.len() <= WAITING);
    }
}
