//! A talker without a kernel: wake-ups are told to it, and frames end in a list.

use frames::{Class, Format, Parsed, parse};
use proptest::prelude::*;

use super::*;

/// Long, so that no stall of the machine makes a frame late.
const PERIOD_NS: i64 = 1_000_000_000;

#[derive(Debug, Default)]
struct List {
    sent: Vec<Parsed>,
    slots_ns: Vec<i64>,
    refuse: bool,
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
}

fn settings(offset_ns: u64) -> TalkerSettings {
    let source = [2, 0, 0, 0, 0, 1];
    TalkerSettings {
        stream: Stream {
            source,
            destination: frames::ethernet::multicast_of(source, 0),
            tci: Class::A.tci(),
            stream_id: frames::stream_id(source, 0),
            format: Format::Aaf,
            samples: 6,
        },
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

/// Tells the talker of a wake-up for `slot`, so late that it sends `slots_late` slots after it.
fn wake(talk: &mut Talk<List>, slot: u64, slots_late: i64) {
    // The slot lies in the past by what it is to be late, so that nothing is waited for.
    let slot_ns = Clock::Monotonic.now_ns() - slots_late * PERIOD_NS;
    talk.at(Wake { slot, deadline_ns: slot_ns - talk.offset_ns, woke_ns: slot_ns });
}

#[test]
fn a_frame_goes_out_when_its_slot_begins_and_not_before() {
    let (talker, mut talk) = Talker::new(&settings(1_000_000), List::default());
    let deadline_ns = Clock::Monotonic.now_ns();
    talk.at(Wake { slot: 0, deadline_ns, woke_ns: deadline_ns + 5 });
    let slot_ns = deadline_ns + 1_000_000;
    let sent = talk.sender.sent[0].probe.expect("our payload");
    assert_eq!((sent.run, sent.seq, sent.scheduled_ns, sent.woke_ns), (7, 0, slot_ns, deadline_ns + 5));
    assert!(sent.sent_ns >= slot_ns);
    let timestamp = talk.sender.sent[0].avtp.and_then(|avtp| avtp.timestamp).expect("a presentation time");
    assert_eq!(frames::nearest_ns(timestamp, slot_ns), slot_ns + 2_000_000);
    let told = talker.told();
    assert_eq!((told.frames, told.missed_slots, told.max_delta_ns), (1, 0, Some(sent.sent_ns - slot_ns)));
    assert_eq!((told.identity.frame_bytes, told.identity.stream_id.as_str()), (90, "0200000000010000"));
}

#[test]
fn a_slot_that_had_a_frame_gets_no_other() {
    let (talker, mut talk) = Talker::new(&settings(0), List::default());
    wake(&mut talk, 0, 0);
    // Slot 1's frame goes out in slot 4; the one of slot 2, in slot 4 as well, does not.
    wake(&mut talk, 1, 3);
    wake(&mut talk, 2, 2);
    wake(&mut talk, 5, 0);
    let told = talker.told();
    assert_eq!((told.frames, told.missed_slots, told.late), (3, 3, 1), "{told:?}");
    let seqs: Vec<_> = talk.sender.sent.iter().filter_map(|frame| Some(frame.probe?.seq)).collect();
    assert_eq!(seqs, [0, 1, 2]);
}

#[test]
fn frames_that_the_kernel_refuses_are_no_frames_sent() {
    let (talker, mut talk) = Talker::new(&settings(0), List::default());
    wake(&mut talk, 0, 0);
    talk.sender.refuse = true;
    wake(&mut talk, 1, 0);
    talk.sender.refuse = false;
    wake(&mut talk, 2, 0);
    let told = talker.told();
    assert_eq!((told.frames, told.refused, told.missed_slots), (2, 1, 0));
    assert_eq!(talk.sender.sent[1].probe.map(|probe| probe.seq), Some(1), "numbers have no gap");
    assert!(talker.notes()[0].contains("did not take 1 frames"));
}

#[test]
fn a_frame_soon_after_another_is_told() {
    let (talker, mut talk) = Talker::new(&settings(0), List::default());
    // Sent in different slots, but right after each other.
    wake(&mut talk, 0, 1);
    wake(&mut talk, 2, 0);
    assert_eq!(talker.told().window_violations, 1);
    assert!(talker.told().max_interval_error_ns.abs_diff(PERIOD_NS as u64) < PERIOD_NS as u64 / 2);
}

#[test]
fn with_launch_times_a_frame_is_handed_over_at_once() {
    // Half a period ahead: waiting for the slots would take the test a second.
    let offset_ns = PERIOD_NS / 2;
    let (talker, mut talk) =
        Talker::new(&TalkerSettings { mode: TransmitMode::Txtime, ..settings(offset_ns as u64) }, List::default());
    let begun_ns = Clock::Monotonic.now_ns();
    for slot in 0..2 {
        let deadline_ns = begun_ns + slot * PERIOD_NS / 1_000;
        talk.at(Wake { slot: slot as u64, deadline_ns, woke_ns: deadline_ns });
    }
    let slots_ns = [0, PERIOD_NS / 1_000].map(|after_ns| begun_ns + after_ns + offset_ns);
    assert_eq!(talk.sender.slots_ns, slots_ns);
    let leaves: Vec<_> = talk.sender.sent.iter().filter_map(|frame| Some(frame.probe?.sent_ns)).collect();
    assert_eq!(leaves, slots_ns, "the moment at which it is to leave");
    let told = talker.told();
    assert_eq!((told.frames, told.late, told.missed_slots, told.mode.as_str()), (2, 0, 0, "txtime"));
    assert!(told.max_delta_ns.is_some_and(|ns| (-offset_ns..0).contains(&ns)), "{:?}", told.max_delta_ns);
    // By when they leave, not by when they were handed over.
    assert_eq!(told.max_interval_error_ns, (PERIOD_NS - PERIOD_NS / 1_000) as u64);
    // One that comes after its slot is still handed over, for the discipline to refuse.
    wake(&mut talk, 4, 1);
    assert_eq!((talker.told().frames, talker.told().late, talker.told().missed_slots), (3, 1, 3));
}

proptest! {
    /// Each slot has a frame, or a refused one, or is missed; never two.
    #[test]
    fn slots_add_up(wakes in prop::collection::vec((1..4u64, 0..5i64, any::<bool>()), 1..60)) {
        let (talker, mut talk) = Talker::new(&settings(0), List::default());
        let (mut slot, mut last) = (0, 0);
        for (step, slots_late, refuse) in wakes {
            talk.sender.refuse = refuse;
            wake(&mut talk, slot, slots_late);
            last = last.max(slot + slots_late as u64);
            slot += step;
        }
        let told = talker.told();
        prop_assert_eq!(told.frames + told.refused + told.missed_slots, last + 1);
        prop_assert_eq!(told.frames, talk.sender.sent.len() as u64);
        prop_assert_eq!(told.frames, told.send.total());
    }
}
