//! How delays vary on each way of round trips, between two clocks that nothing relates.

use record::Ways;

use crate::variation::{Variation, WINDOW_NS};

/// Both ways under way.
#[derive(Debug, Clone, Default)]
pub struct BothWays {
    /// The answering end, as it calls itself.
    echo: Option<u32>,
    out: Variation,
    back: Variation,
}

impl BothWays {
    /// Takes in a round trip: sent at one end, had and answered at the other, had at the first, each on that end's clock, ns.
    pub fn take_in(&mut self, echo: u32, [sent_ns, received_ns, answered_ns, arrived_ns]: [i64; 4]) {
        // One that was started anew may be on a machine that was, too, with another clock.
        if self.echo.replace(echo).is_some_and(|before| before != echo) {
            self.out.close();
            self.back.close();
        }
        self.out.take_in(sent_ns, received_ns);
        self.back.take_in(answered_ns, arrived_ns);
    }

    /// What was seen so far; `None` where nothing was.
    pub fn told(&self, left_out: u64) -> Option<Ways> {
        let ended = |way: &Variation| {
            let mut way = way.clone();
            way.close();
            way
        };
        let (out, back) = (ended(&self.out), ended(&self.back));
        (out.longer.total() > 0).then(|| Ways {
            // The drift of the way back is that of our clock against the peer's.
            drift_ppb: (out.drift_ppb() - back.drift_ppb()) / 2,
            out: out.longer,
            back: back.longer,
            window_ns: WINDOW_NS as u64,
            left_out,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delay_is_found_on_its_way_alone() {
        let mut ways = BothWays::default();
        let (begin_ns, ahead_ns) = (5_000_000_000, 3_600_000_000_000);
        for n in 0..15_000 {
            let sent_ns = begin_ns + n * 1_000_000;
            // The peer's clock is an hour ahead and gains 40 ppm; every hundredth datagram is held up for 2 ms on the way back.
            let peer = |ns: i64| ns + ahead_ns + (ns - begin_ns) / 25_000;
            let (had_ns, held_ns) = (sent_ns + 30_000, if n % 100 == 50 { 2_000_000 } else { 0 });
            ways.take_in(7, [sent_ns, peer(had_ns), peer(had_ns + 5_000), had_ns + 35_000 + held_ns]);
        }
        let told = ways.told(0).unwrap();
        assert_eq!((told.out.total(), told.back.total()), (15_000, 15_000));
        assert_eq!((told.out.count_above(1_000), told.back.count_above(1_000)), (0, 150));
        let most_ns = told.back.percentile(100.0).unwrap();
        assert!((1_995_000..2_005_000).contains(&most_ns), "{most_ns}");
        assert!((told.drift_ppb - 40_000).abs() < 100, "{}", told.drift_ppb);
    }

    #[test]
    fn a_peer_that_was_started_anew_has_a_clock_anew() {
        let mut ways = BothWays::default();
        for n in 0..4_000 {
            let (echo, ahead_ns) = if n < 2_000 { (1, 77) } else { (2, -9_000_000_000) };
            let sent_ns = n * 1_000_000;
            let had_ns = sent_ns + 20_000;
            ways.take_in(echo, [sent_ns, had_ns + ahead_ns, had_ns + ahead_ns, had_ns + 20_000]);
        }
        let told = ways.told(0).unwrap();
        assert_eq!((told.out.total(), told.out.count_above(100), told.back.count_above(100)), (4_000, 0, 0));
    }

    #[test]
    fn without_an_answer_nothing_is_told() {
        assert_eq!(BothWays::default().told(0), None);
    }
}
