//! Delay variation in each direction of round trips, between two clocks that are not synchronised.

use record::Ways;

use crate::variation::{Variation, WINDOW_NS};

/// The delays in both directions.
#[derive(Debug, Clone, Default)]
pub struct BothDirections {
    /// Number of the answering end.
    echo: Option<u32>,
    out: Variation,
    back: Variation,
}

impl BothDirections {
    /// Adds a round trip: sent, received and answered at the peer, and received again; each on that end's clock, ns.
    pub fn add(&mut self, echo: u32, [sent_ns, received_ns, answered_ns, arrived_ns]: [i64; 4]) {
        // A restarted peer may run on another machine with another clock.
        if self.echo.replace(echo).is_some_and(|before| before != echo) {
            self.out.close();
            self.back.close();
        }
        self.out.add(sent_ns, received_ns);
        self.back.add(answered_ns, arrived_ns);
    }

    /// The delay variation so far; `None` without round trips.
    pub fn to_record(&self, left_out: u64) -> Option<Ways> {
        let closed = |variation: &Variation| {
            let mut variation = variation.clone();
            variation.close();
            variation
        };
        let (out, back) = (closed(&self.out), closed(&self.back));
        (out.longer.total() > 0).then(|| Ways {
            // The drift in the back direction is that of our clock against the peer's.
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
    fn finds_a_delay_in_its_direction_only() {
        let mut directions = BothDirections::default();
        let (begin_ns, ahead_ns) = (5_000_000_000, 3_600_000_000_000);
        for n in 0..15_000 {
            let sent_ns = begin_ns + n * 1_000_000;
            // The peer's clock is an hour ahead and gains 40 ppm; every hundredth datagram is delayed by 2 ms in the
            // back direction.
            let peer = |ns: i64| ns + ahead_ns + (ns - begin_ns) / 25_000;
            let (had_ns, held_ns) = (sent_ns + 30_000, if n % 100 == 50 { 2_000_000 } else { 0 });
            directions.add(7, [sent_ns, peer(had_ns), peer(had_ns + 5_000), had_ns + 35_000 + held_ns]);
        }
        let result = directions.to_record(0).unwrap();
        assert_eq!((result.out.total(), result.back.total()), (15_000, 15_000));
        assert_eq!((result.out.count_above(1_000), result.back.count_above(1_000)), (0, 150));
        let most_ns = result.back.percentile(100.0).unwrap();
        assert!((1_995_000..2_005_000).contains(&most_ns), "{most_ns}");
        assert!((result.drift_ppb - 40_000).abs() < 100, "{}", result.drift_ppb);
    }

    #[test]
    fn a_restarted_peer_may_have_another_clock() {
        let mut directions = BothDirections::default();
        for n in 0..4_000 {
            let (echo, ahead_ns) = if n < 2_000 { (1, 77) } else { (2, -9_000_000_000) };
            let sent_ns = n * 1_000_000;
            let had_ns = sent_ns + 20_000;
            directions.add(echo, [sent_ns, had_ns + ahead_ns, had_ns + ahead_ns, had_ns + 20_000]);
        }
        let result = directions.to_record(0).unwrap();
        assert_eq!((result.out.total(), result.out.count_above(100), result.back.count_above(100)), (4_000, 0, 0));
    }

    #[test]
    fn has_no_figures_without_answers() {
        assert_eq!(BothDirections::default().to_record(0), None);
    }
}
