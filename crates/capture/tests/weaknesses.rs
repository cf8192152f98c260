//! Cases that were judged wrongly before, each with its known truth.

mod support;

use capture::analyse;
use record::{Capture, NumberedBy};
use support::{LITTLE, OPTIONS, Seen, Talker, datagram, pcap, scatter};

fn captured(frames: &[Seen]) -> Capture {
    let file = pcap(LITTLE, true, 1, frames);
    analyse(|| Ok(&file[..]), "made", &OPTIONS).expect("an analysis").capture
}

/// Stamps in steps that divide the period: a regular stream does not show if it is regular or if its stamps are coarse.
#[test]
fn coarse_stamps_of_a_regular_stream_are_not_exact() {
    for step_ns in [1000, 5000, 25_000, 62_500] {
        let frames = |late_ns: i64| -> Vec<Seen> {
            let mut talker = Talker::plain(1);
            let at_ns = |seq: u64| seq.cast_signed() * 125_000 + scatter(seq) + if seq == 3000 { late_ns } else { 0 };
            (0..6000).map(|seq| talker.seen(seq, at_ns(seq) / step_ns * step_ns)).collect()
        };
        let regular = captured(&frames(0));
        assert!(regular.lateness_unknown.is_some() && regular.late_packets.is_none(), "{step_ns}");
        // A late frame shows the step, and the tolerance contains it.
        let one_late = captured(&frames(80_000));
        assert!(one_late.resolution_ns >= step_ns.unsigned_abs() && one_late.tolerance_ns > one_late.resolution_ns);
        assert!(step_ns == 62_500 || (one_late.late.unwrap(), one_late.late_packets.unwrap()) == (1, 1), "{step_ns}");
    }
}

#[test]
fn a_frame_left_out_of_a_group_makes_no_other_frame_late() {
    for group in [2, 3] {
        let mut talker = Talker::plain(1);
        let place = |seq: u64| if seq >= 3000 { seq + 1 } else { seq };
        let at_ns = |n: u64| (n / group * 125_000 + n % group * 10_000).cast_signed();
        let mut all: Vec<_> = (0..6000).map(|seq| talker.seen(seq, at_ns(place(seq)) + scatter(seq))).collect();
        let found = captured(&all);
        assert_eq!(
            (found.late.unwrap(), found.skipped_slots.unwrap(), found.lost.unwrap(), found.steps_total.unwrap()),
            (0, 1, 0, 0),
            "{group}"
        );
        all.remove(4000);
        let found = captured(&all);
        assert_eq!(
            (found.late.unwrap(), found.skipped_slots.unwrap(), found.lost.unwrap(), found.steps_total.unwrap()),
            (0, 1, 1, 0),
            "{group}"
        );
    }
}

#[test]
fn losses_near_multiples_of_256_are_no_restart() {
    for jitter in [1, 150] {
        for loss in [240, 255, 256, 496, 497, 500, 505, 511, 512, 753, 760, 767, 768] {
            let mut talker = Talker::plain(1);
            let kept = (0..6000u64).filter(|seq| !(2000..2000 + loss).contains(seq));
            let all: Vec<_> =
                kept.map(|seq| talker.seen(seq, seq.cast_signed() * 125_000 + scatter(seq) * jitter)).collect();
            let found = captured(&all);
            assert_eq!(
                (found.lost.unwrap(), found.losses.unwrap(), found.restarts.unwrap()),
                (loss, 1, 0),
                "{loss} with jitter {jitter}"
            );
            assert_eq!(found.numbered_by, NumberedBy::Avtp);
        }
    }
}

#[test]
fn a_missing_frame_beside_jitter_is_no_change_of_phase() {
    for jitter in [1, 5, 10, 25, 50] {
        let slots = (0..10_000i64).filter(|slot| *slot != 5000);
        let at_ns = |slot: i64| slot * 1_000_000 + scatter(slot.unsigned_abs()) * jitter;
        let found = captured(&slots.map(|slot| datagram(at_ns(slot), 7000)).collect::<Vec<_>>());
        assert_eq!(
            (found.skipped_slots.unwrap(), found.late.unwrap(), found.steps_total.unwrap()),
            (1, 0, 0),
            "{jitter}"
        );
    }
}
