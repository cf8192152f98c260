//! Where the time of one round trip went.

use record::Trip;

use super::{packet::Packet, realtime::Realtime, window::Slot};

/// Splits the round trip that began when `slot` was to be sent and ended at `arrived_ns`. `stamp_ns` is when the kernel had
/// the answer, ns on CLOCK_REALTIME.
///
/// The parts add up to the whole exactly: what no stamp tells apart is left to the wire. A stamp that cannot be right, as
/// after a step of the wall clock, is none; nor is a peer's share above the whole.
#[inline]
#[must_use]
pub fn split(slot: &Slot, answer: &Packet, arrived_ns: i64, stamp_ns: Option<i64>, realtime: &Realtime) -> Trip {
    let can_judge = realtime.can_judge(slot.sent_ns);
    let within = |ns: &i64| (slot.sent_ns - realtime.error_ns..=arrived_ns + realtime.error_ns).contains(ns);
    let left_ns = Some(slot.left_ns).filter(|ns| can_judge && *ns != 0).filter(within);
    let came_ns = stamp_ns.filter(|_| can_judge).map(|ns| realtime.on_ours(ns)).filter(within);
    let peer_ns = answer.answered_ns.checked_sub(answer.received_ns);
    let mut trip = Trip {
        wake_ns: slot.sent_ns - slot.intended_ns,
        stack_out_ns: left_ns.map(|ns| ns - slot.sent_ns),
        peer_ns: peer_ns.filter(|ns| (0..=arrived_ns - slot.sent_ns).contains(ns)),
        wire_ns: 0,
        stack_in_ns: came_ns.map(|ns| arrived_ns - ns),
    };
    trip.wire_ns = arrived_ns - slot.intended_ns - trip.total_ns();
    trip
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use sys::clock::Clock;

    fn realtime() -> (Realtime, i64) {
        let realtime = Realtime::to(Clock::Monotonic);
        (realtime, -realtime.on_ours(0))
    }

    #[test]
    fn each_stamp_tells_its_part() {
        let (realtime, ahead_ns) = realtime();
        let slot = Slot { intended_ns: 1_000_000, woke_ns: 1_004_000, sent_ns: 1_005_000, left_ns: 1_007_000 };
        // The peer's clock is another one.
        let answer = Packet { received_ns: 77_000, answered_ns: 80_000, ..Packet::default() };
        let trip = split(&slot, &answer, 1_050_000, Some(1_040_000 + ahead_ns), &realtime);
        let expected = Trip {
            wake_ns: 5_000,
            stack_out_ns: Some(2_000),
            peer_ns: Some(3_000),
            wire_ns: 30_000,
            stack_in_ns: Some(10_000),
        };
        assert_eq!(trip, expected);
        let without = split(&Slot { left_ns: 0, ..slot }, &answer, 1_050_000, None, &realtime);
        assert_eq!((without.wire_ns, without.stack_out_ns, without.stack_in_ns), (42_000, None, None));
    }

    #[test]
    fn what_cannot_be_is_no_part() {
        let (realtime, ahead_ns) = realtime();
        let slot = Slot { intended_ns: 1_000_000, woke_ns: 1_004_000, sent_ns: 1_005_000, left_ns: 2_000_000 };
        for (received_ns, answered_ns) in [(10, 9), (0, 46_000), (i64::MIN, i64::MAX)] {
            let answer = Packet { received_ns, answered_ns, ..Packet::default() };
            let trip = split(&slot, &answer, 1_050_000, Some(1_100_000 + ahead_ns), &realtime);
            assert_eq!((trip.stack_out_ns, trip.peer_ns, trip.stack_in_ns), (None, None, None));
            assert_eq!(trip.total_ns(), 50_000);
        }
    }

    proptest! {
        #[test]
        fn parts_add_up_to_the_whole(
            intended_ns in 0..1_000_000_000i64,
            wake_ns in 0..50_000_000i64,
            whole_ns in 0..50_000_000i64,
            left_ns in 0..1_100_000_000i64,
            came_ns in proptest::option::of(0..1_100_000_000i64),
            received_ns in any::<i64>(),
            answered_ns in any::<i64>(),
        ) {
            let (realtime, ahead_ns) = realtime();
            let sent_ns = intended_ns + wake_ns;
            let arrived_ns = sent_ns + whole_ns;
            let slot = Slot { intended_ns, woke_ns: sent_ns, sent_ns, left_ns };
            let answer = Packet { received_ns, answered_ns, ..Packet::default() };
            let trip = split(&slot, &answer, arrived_ns, came_ns.map(|ns| ns + ahead_ns), &realtime);
            prop_assert_eq!(trip.total_ns(), arrived_ns - intended_ns);
            prop_assert_eq!(trip.wake_ns, wake_ns);
        }
    }
}
