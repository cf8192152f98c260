//! A talker without a kernel: wake-ups are simulated, and frames are added to a list.

use frames::{Class, Format, Parsed, parse};
use proptest::prelude::*;

use super::*;

/// So long that no stall of the machine makes a frame late.
const PERIOD_NS: i64 = 1_000_000_000;

#[derive(Debug, Default)]
struct List {
    sent: Vec<Parsed>,
    slots_ns: Vec<i64>,
    refuse: bool,
    /// Frames that a slot may have; the others are refused.
    at_most: Option<usize>,
    in_slot: usize,
}

impl Transmit for List {
    fn send(&mut self, frame: &[u8], slot_ns: i64) -> io::Result<()> {
        if self.refuse {
            return Err(io::Error::from_raw_os_error(105));
        }
        self.slots_ns.push(slot_ns);
        self.sent.push(parse(frame).expect("a whole frame"));
        Ok(())
    }

    fn send_all(&mut self, frames: &[&[u8]], launches_ns: &[i64]) -> io::Result<usize> {
        if frames.len() == STREAMS {
            self.in_slot = 0;
        }
        if self.at_most.is_some_and(|most| self.in_slot >= most) {
            return Err(io::Error::from_raw_os_error(105));
        }
        let free = self.at_most.map_or(frames.len(), |most| most - self.in_slot).min(frames.len());
        self.in_slot += free;
        for (frame, launch_ns) in frames.iter().zip(launches_ns).take(free) {
            self.send(frame, *launch_ns)?;
        }
        Ok(free)
    }
}

const STREAMS: usize = 3;

fn settings(offset_ns: u64) -> TalkerSettings {
    TalkerSettings {
        streams: vec![stream(0)],
        names: Vec::new(),
        run: 7,
        interface: "eth0".to_owned(),
        mode: TransmitMode::Send,
        own_listener: false,
        period_ns: PERIOD_NS as u64,
        offset_ns,
        transit_ns: 2_000_000,
        clock: Clock::Monotonic,
    }
}

fn stream(unique: u16) -> Stream {
    let source = [2, 0, 0, 0, 0, 1];
    Stream {
        source,
        destination: frames::ethernet::multicast_of(source, unique),
        tci: Class::A.tci(),
        stream_id: frames::stream_id(source, unique),
        format: Format::Aaf,
        channels: frames::template::STEREO,
        samples: 6,
    }
}

fn several(mode: TransmitMode) -> TalkerSettings {
    TalkerSettings { streams: (0..3).map(stream).collect(), mode, ..settings(0) }
}

/// Simulates a wake-up for `slot` that is so late that the frame leaves `slots_late` slots later.
fn wake(talk: &mut Talk<List>, slot: u64, slots_late: i64) {
    // The slot is in the past by the wanted lateness, so the thread does not spin.
    let slot_ns = Clock::Monotonic.now_ns() - slots_late * PERIOD_NS;
    talk.at(Wake { slot, deadline_ns: slot_ns - talk.offset_ns, woke_ns: slot_ns });
}

#[test]
fn sends_a_frame_when_its_slot_starts() {
    let (talker, mut talk) = Talker::new(&settings(1_000_000), List::default());
    let deadline_ns = Clock::Monotonic.now_ns();
    talk.at(Wake { slot: 0, deadline_ns, woke_ns: deadline_ns + 5 });
    let slot_ns = deadline_ns + 1_000_000;
    let sent = talk.sender.sent[0].probe.expect("our payload");
    assert_eq!((sent.run, sent.seq, sent.scheduled_ns, sent.woke_ns), (7, 0, slot_ns, deadline_ns + 5));
    assert!(sent.sent_ns >= slot_ns);
    let timestamp = talk.sender.sent[0].avtp.and_then(|avtp| avtp.timestamp).expect("a presentation time");
    assert_eq!(frames::nearest_ns(timestamp, slot_ns), slot_ns + 2_000_000);
    let result = talker.to_record();
    assert_eq!((result.frames, result.missed_slots, result.max_delta_ns), (1, 0, Some(sent.sent_ns - slot_ns)));
    assert_eq!((result.identity.frame_bytes, result.identity.stream_id.as_str()), (90, "0200000000010000"));
}

#[test]
fn sends_at_most_one_frame_per_slot() {
    let (talker, mut talk) = Talker::new(&settings(0), List::default());
    wake(&mut talk, 0, 0);
    // The frame of slot 1 leaves in slot 4; the one of slot 2 would leave in slot 4 too and is not sent.
    wake(&mut talk, 1, 3);
    wake(&mut talk, 2, 2);
    wake(&mut talk, 5, 0);
    let result = talker.to_record();
    assert_eq!((result.frames, result.missed_slots, result.late), (3, 3, 1), "{result:?}");
    let seqs: Vec<_> = talk.sender.sent.iter().filter_map(|frame| Some(frame.probe?.seq)).collect();
    assert_eq!(seqs, [0, 1, 2]);
}

#[test]
fn each_stream_has_a_frame_in_every_slot_and_its_own_numbers() {
    let (talker, mut talk) = Talker::new(&several(TransmitMode::Send), List::default());
    (0..4).for_each(|slot| wake(&mut talk, slot, 0));
    let seen = |frame: &Parsed| Some((frame.avtp?.stream_id & 0xffff, frame.probe?.seq));
    let sent: Vec<_> = talk.sender.sent.iter().filter_map(seen).collect();
    let expected: Vec<_> = (0..4).flat_map(|seq| (0..3).map(move |unique| (unique, seq))).collect();
    assert_eq!(sent, expected);
    let result = talker.to_record();
    let counts: Vec<_> = result.streams.iter().map(|stream| (stream.frames, stream.refused)).collect();
    assert_eq!((result.frames, counts), (4, vec![(4, 0); 3]), "the figures are those of the first stream");
    assert_eq!(talker.frames_of_each().last(), Some(&(0x0200_0000_0001_0002, 4)));
}

#[test]
fn a_refused_frame_is_counted_for_its_stream_only() {
    let (talker, mut talk) = Talker::new(&several(TransmitMode::Send), List::default());
    wake(&mut talk, 0, 0);
    talk.sender.at_most = Some(1);
    wake(&mut talk, 1, 0);
    talk.sender.at_most = Some(0);
    wake(&mut talk, 2, 0);
    talk.sender.at_most = None;
    wake(&mut talk, 3, 0);
    let result = talker.to_record();
    let counts: Vec<_> = result.streams.iter().map(|stream| (stream.frames, stream.refused)).collect();
    assert_eq!(counts, [(3, 1), (2, 2), (2, 2)]);
    assert_eq!((result.frames, result.refused, result.send.total()), (3, 1, 3));
    assert!(talker.notes()[0].contains("refused 5 frames"), "{:?}", talker.notes());
    let last = talk.sender.sent.last().and_then(|frame| frame.probe).map(|probe| probe.seq);
    assert_eq!(last, Some(1), "sequence numbers have no gap");
}

#[test]
fn launch_times_spread_the_frames_of_a_slot_over_the_period() {
    let (_talker, mut talk) = Talker::new(&several(TransmitMode::Txtime), List::default());
    wake(&mut talk, 0, 0);
    let third_ns = PERIOD_NS / 3;
    let after_first: Vec<_> = talk.sender.slots_ns.iter().map(|ns| ns - talk.sender.slots_ns[0]).collect();
    assert_eq!(after_first, [0, third_ns, 2 * third_ns]);
}

#[test]
fn presentation_times_are_uncertain_while_the_clock_is_not_synchronised() {
    let (talker, talk) = Talker::new(&several(TransmitMode::Send), List::default());
    assert_eq!(talker.to_record().uncertain, None, "not watched");
    let flag = Arc::new(AtomicBool::new(false));
    let (talker, mut talk) = talker.with_uncertain(talk, flag.clone());
    for (slot, is_lost) in [(0, false), (1, true), (2, true), (3, false)] {
        flag.store(is_lost, Relaxed);
        wake(&mut talk, slot, 0);
    }
    let uncertain: Vec<_> =
        talk.sender.sent.iter().filter_map(|frame| Some(frame.avtp?.timestamp_uncertain)).step_by(3).collect();
    assert_eq!((uncertain, talker.to_record().uncertain), (vec![false, true, true, false], Some(2)));
}

#[test]
fn chosen_destinations_follow_the_claimed_addresses() {
    let claimed = |last: u8| Addresses::of([0x91, 0xe0, 0xf0, 0, 1, last], 2);
    let (talker, talk) = Talker::new(&several(TransmitMode::Send), List::default());
    let first = Arc::new(AtomicU64::new(claimed(9).first));
    let (_, mut talk) = talker.with_destinations(talk, first.clone(), vec![Some(0), None, Some(1)]);
    wake(&mut talk, 0, 0);
    first.store(claimed(0xff).first, Relaxed);
    wake(&mut talk, 1, 0);
    let sent: Vec<_> = talk.sender.sent.iter().map(|frame| frame.destination).collect();
    let given = sent[1];
    assert_eq!(sent[3..], [claimed(0xff).at(0), given, claimed(0xff).at(1)]);
    assert_eq!(sent[0], stream(0).destination, "unchanged until other addresses are claimed");
}

#[test]
fn refused_frames_are_not_counted_as_sent() {
    let (talker, mut talk) = Talker::new(&settings(0), List::default());
    wake(&mut talk, 0, 0);
    talk.sender.refuse = true;
    wake(&mut talk, 1, 0);
    talk.sender.refuse = false;
    wake(&mut talk, 2, 0);
    let result = talker.to_record();
    assert_eq!((result.frames, result.refused, result.missed_slots), (2, 1, 0));
    assert_eq!(talk.sender.sent[1].probe.map(|probe| probe.seq), Some(1), "sequence numbers have no gap");
    assert!(talker.notes()[0].contains("refused 1 frame,"));
}

#[test]
fn counts_a_frame_soon_after_another() {
    let (talker, mut talk) = Talker::new(&settings(0), List::default());
    // Sent in different slots, but immediately one after the other.
    wake(&mut talk, 0, 1);
    wake(&mut talk, 2, 0);
    assert_eq!(talker.to_record().window_violations, 1);
    assert!(talker.to_record().max_interval_error_ns.abs_diff(PERIOD_NS as u64) < PERIOD_NS as u64 / 2);
}

#[test]
fn hands_over_frames_with_launch_times_at_once() {
    // Half a period ahead, because spinning until the slots would take a second.
    let offset_ns = PERIOD_NS / 2;
    let (talker, mut talk) = Talker::new(
        &TalkerSettings { mode: TransmitMode::Txtime, ..settings(offset_ns.cast_unsigned()) },
        List::default(),
    );
    let begun_ns = Clock::Monotonic.now_ns();
    for slot in 0..2 {
        let deadline_ns = begun_ns + slot * PERIOD_NS / 1_000;
        talk.at(Wake { slot: slot.cast_unsigned(), deadline_ns, woke_ns: deadline_ns });
    }
    let slots_ns = [0, PERIOD_NS / 1_000].map(|after_ns| begun_ns + after_ns + offset_ns);
    assert_eq!(talk.sender.slots_ns, slots_ns);
    let leaves: Vec<_> = talk.sender.sent.iter().filter_map(|frame| Some(frame.probe?.sent_ns)).collect();
    assert_eq!(leaves, slots_ns, "its launch time");
    let result = talker.to_record();
    assert_eq!((result.frames, result.late, result.missed_slots, result.mode.as_str()), (2, 0, 0, "txtime"));
    assert!(result.max_delta_ns.is_some_and(|ns| (-offset_ns..0).contains(&ns)), "{:?}", result.max_delta_ns);
    // Intervals are between launch times, not between the times of queueing.
    assert_eq!(result.max_interval_error_ns, (PERIOD_NS - PERIOD_NS / 1_000) as u64);
    // A frame after its slot is still queued, and the queueing discipline drops it.
    wake(&mut talk, 4, 1);
    assert_eq!((talker.to_record().frames, talker.to_record().late, talker.to_record().missed_slots), (3, 1, 3));
}

proptest! {
    /// Each slot has a frame, a refused one, or is missed; never two of these.
    #[test]
    fn each_slot_is_counted_once(wakes in prop::collection::vec((1..4u64, 0..5i64, any::<bool>()), 1..60)) {
        let (talker, mut talk) = Talker::new(&settings(0), List::default());
        let (mut slot, mut last) = (0, 0);
        for (step, slots_late, refuse) in wakes {
            talk.sender.refuse = refuse;
            wake(&mut talk, slot, slots_late);
            last = last.max(slot + slots_late.cast_unsigned());
            slot += step;
        }
        let result = talker.to_record();
        prop_assert_eq!(result.frames + result.refused + result.missed_slots, last + 1);
        prop_assert_eq!(result.frames, talk.sender.sent.len() as u64);
        prop_assert_eq!(result.frames, result.send.total());
    }
}
