//! The parts of one round trip.

use record::Trip;

use super::{packet::Packet, window::Slot};
use crate::realtime::Realtime;

/// Timestamps of a received answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReceiveStamps {
    /// Timestamp of the kernel, ns on CLOCK_REALTIME.
    pub stamp_ns: Option<i64>,
    /// Timestamp of the network card, ns on the card's clock.
    pub card_ns: Option<i64>,
}

/// Splits the round trip from the intended sending of `slot` to `arrived_ns`.
///
/// The parts add up exactly to the round trip: a part without timestamps is included in the wire. Impossible time
/// stamps, e.g. after a step of the wall clock, are ignored, and so is a peer's time that is longer than the round
/// trip. Only the time between two stamps of the card is used, so its clock need not agree with any other.
#[inline]
#[must_use]
pub fn split(slot: &Slot, answer: &Packet, arrived_ns: i64, stamps: ReceiveStamps, realtime: &Realtime) -> Trip {
    let is_valid = realtime.is_valid_for(slot.sent_ns);
    let within = |ns: &i64| (slot.sent_ns - realtime.error_ns..=arrived_ns + realtime.error_ns).contains(ns);
    let left_ns = Some(slot.left_ns).filter(|ns| is_valid && *ns != 0).filter(within);
    let came_ns = stamps.stamp_ns.filter(|_| is_valid).map(|ns| realtime.to_run_clock(ns)).filter(within);
    let whole_ns = arrived_ns - slot.sent_ns;
    let peer_ns = answer.answered_ns.checked_sub(answer.received_ns).filter(|_| answer.is_answer);
    let peer_ns = peer_ns.filter(|ns| (0..=whole_ns).contains(ns));
    let peer_wake_ns = answer.kernel_ns.and_then(|kernel_ns| answer.received_ns.checked_sub(kernel_ns));
    let mut trip = Trip {
        wake_ns: slot.sent_ns - slot.intended_ns,
        stack_out_ns: left_ns.map(|ns| ns - slot.sent_ns),
        peer_wake_ns: peer_wake_ns.filter(|ns| peer_ns.is_some_and(|peer_ns| (0..=whole_ns - peer_ns).contains(ns))),
        peer_ns,
        wire_ns: 0,
        card_ns: None,
        stack_in_ns: came_ns.map(|ns| arrived_ns - ns),
    };
    let rest_ns = arrived_ns - slot.intended_ns - trip.total_ns();
    let at_peer_ns = trip.peer_wake_ns.unwrap_or(0) + trip.peer_ns.unwrap_or(0);
    let beyond = 0..=whole_ns - at_peer_ns;
    let left_card_ns = Some(slot.card_ns).filter(|ns| *ns != 0);
    let away_ns = stamps.card_ns.zip(left_card_ns).and_then(|(came_ns, left_ns)| came_ns.checked_sub(left_ns));
    let wire_ns = away_ns.and_then(|ns| ns.checked_sub(at_peer_ns)).filter(|ns| beyond.contains(ns));
    trip.wire_ns = wire_ns.unwrap_or(rest_ns);
    trip.card_ns = wire_ns.map(|ns| rest_ns - ns);
    trip
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use sys::clock::Clock;

    fn realtime() -> (Realtime, i64) {
        let realtime = Realtime::to(Clock::Monotonic);
        (realtime, -realtime.to_run_clock(0))
    }

    #[test]
    fn each_time_stamp_separates_a_part() {
        let (realtime, ahead_ns) = realtime();
        let slot =
            Slot { intended_ns: 1_000_000, woke_ns: 1_004_000, sent_ns: 1_005_000, left_ns: 1_007_000, card_ns: 0 };
        // The peer has another clock.
        let answer = Packet {
            is_answer: true,
            kernel_ns: Some(70_000),
            received_ns: 77_000,
            answered_ns: 80_000,
            ..Packet::default()
        };
        let stamps = ReceiveStamps { stamp_ns: Some(1_040_000 + ahead_ns), card_ns: None };
        let trip = split(&slot, &answer, 1_050_000, stamps, &realtime);
        let expected = Trip {
            wake_ns: 5_000,
            stack_out_ns: Some(2_000),
            peer_wake_ns: Some(7_000),
            peer_ns: Some(3_000),
            wire_ns: 23_000,
            card_ns: None,
            stack_in_ns: Some(10_000),
        };
        assert_eq!(trip, expected);
        let without = split(&Slot { left_ns: 0, ..slot }, &answer, 1_050_000, ReceiveStamps::default(), &realtime);
        assert_eq!((without.wire_ns, without.stack_out_ns, without.stack_in_ns), (35_000, None, None));

        let of_older_peer = Packet { is_answer: true, kernel_ns: None, ..answer };
        let trip = split(&slot, &of_older_peer, 1_050_000, stamps, &realtime);
        assert_eq!(trip, Trip { peer_wake_ns: None, wire_ns: 30_000, ..expected });

        // A device that returns the request unchanged reports no times.
        let unchanged = Packet { is_answer: false, kernel_ns: None, ..answer };
        let trip = split(&slot, &unchanged, 1_050_000, stamps, &realtime);
        assert_eq!(trip, Trip { peer_wake_ns: None, peer_ns: None, wire_ns: 33_000, ..expected });

        // The card has a third clock; its timestamps are 24 us apart, of which the peer used 10.
        let stamped = Slot { card_ns: 500, ..slot };
        let trip = split(&stamped, &answer, 1_050_000, ReceiveStamps { card_ns: Some(24_500), ..stamps }, &realtime);
        assert_eq!(trip, Trip { wire_ns: 14_000, card_ns: Some(9_000), ..expected });
        let halves = [(stamped, stamps), (slot, ReceiveStamps { card_ns: Some(24_500), ..stamps })];
        for (slot, stamps) in halves {
            assert_eq!(
                split(&slot, &answer, 1_050_000, stamps, &realtime),
                expected,
                "one timestamp alone is not used"
            );
        }
    }

    #[test]
    fn ignores_impossible_time_stamps() {
        let (realtime, ahead_ns) = realtime();
        let (intended_ns, woke_ns, sent_ns) = (1_000_000, 1_004_000, 1_005_000);
        let slot = Slot { intended_ns, woke_ns, sent_ns, left_ns: 2_000_000, card_ns: 5_000 };
        for (received_ns, answered_ns) in [(10, 9), (0, 46_000), (i64::MIN, i64::MAX)] {
            let kernel_ns = Some(received_ns.saturating_sub(5));
            let answer = Packet { is_answer: true, kernel_ns, received_ns, answered_ns, ..Packet::default() };
            for card_ns in [4_999, 50_001, i64::MIN, i64::MAX] {
                let stamps = ReceiveStamps { stamp_ns: Some(1_100_000 + ahead_ns), card_ns: Some(card_ns) };
                let trip = split(&slot, &answer, 1_050_000, stamps, &realtime);
                let parts = [trip.stack_out_ns, trip.peer_wake_ns, trip.peer_ns, trip.stack_in_ns, trip.card_ns];
                assert_eq!(parts, [None; 5]);
                assert_eq!(trip.total_ns(), 50_000);
            }
        }
        for kernel_ns in [101, 100 - 40_001, i64::MIN] {
            let answer = Packet {
                is_answer: true,
                kernel_ns: Some(kernel_ns),
                received_ns: 100,
                answered_ns: 5_100,
                ..Packet::default()
            };
            let trip = split(&slot, &answer, 1_050_000, ReceiveStamps::default(), &realtime);
            assert_eq!((trip.peer_wake_ns, trip.peer_ns, trip.total_ns()), (None, Some(5_000), 50_000), "{kernel_ns}");
        }
    }

    proptest! {
        #[test]
        fn parts_add_up_to_the_round_trip(
            intended_ns in 0..1_000_000_000i64,
            wake_ns in 0..50_000_000i64,
            whole_ns in 0..50_000_000i64,
            left_ns in 0..1_100_000_000i64,
            came_ns in proptest::option::of(0..1_100_000_000i64),
            received_ns in any::<i64>(),
            answered_ns in any::<i64>(),
            kernel_ns in proptest::option::of(any::<i64>()),
            card_ns in any::<i64>(),
            away_ns in proptest::option::of(0..60_000_000i64),
        ) {
            let (realtime, ahead_ns) = realtime();
            let sent_ns = intended_ns + wake_ns;
            let arrived_ns = sent_ns + whole_ns;
            let slot = Slot { intended_ns, woke_ns: sent_ns, sent_ns, left_ns, card_ns };
            let answer = Packet { is_answer: true, kernel_ns, received_ns, answered_ns, ..Packet::default() };
            let stamps = ReceiveStamps {
                stamp_ns: came_ns.map(|ns| ns + ahead_ns),
                card_ns: away_ns.map(|ns| card_ns.saturating_add(ns)),
            };
            let trip = split(&slot, &answer, arrived_ns, stamps, &realtime);
            prop_assert_eq!(trip.total_ns(), arrived_ns - intended_ns);
            prop_assert_eq!(trip.wake_ns, wake_ns);
        }
    }
}
