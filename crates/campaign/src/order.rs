//! The order in which scenarios run.

/// The order of a campaign's scenarios. Each repeat runs every scenario once, so that a campaign that is stopped early
/// still has a complete table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// In the order of the file, in each repeat.
    Sequential,
    /// In another random order in each repeat; the same seed gives the same orders.
    Shuffled {
        /// Seed of the random orders.
        seed: u64,
    },
    /// Every second repeat in reverse order, so that a slow drift of the machine affects all scenarios equally.
    Abba,
}

impl Order {
    /// True if a campaign in this order can have so many repeats: forwards and backwards makes pairs of them.
    #[must_use]
    pub fn allows(self, repeats: u32) -> bool {
        self != Self::Abba || repeats.is_multiple_of(2)
    }

    /// The indices of `count` scenarios in the order in which repeat number `repeat`, from 1, runs them.
    #[must_use]
    pub fn of_repeat(self, repeat: u32, count: usize) -> Vec<usize> {
        let mut indices: Vec<usize> = (0..count).collect();
        match self {
            Self::Abba if repeat.is_multiple_of(2) => indices.reverse(),
            Self::Sequential | Self::Abba => {}
            Self::Shuffled { seed } => shuffle(&mut indices, &mut SplitMix(seed ^ u64::from(repeat).rotate_left(32))),
        }
        indices
    }
}

/// Fisher-Yates shuffle: all orders are equally likely.
fn shuffle(indices: &mut [usize], random: &mut SplitMix) {
    for last in (1..indices.len()).rev() {
        indices.swap(last, random.below(last + 1));
    }
}

/// The SplitMix64 generator (Steele, Lea and Flood, 2014).
struct SplitMix(u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`; its bias is negligible with 64 bits.
    fn below(&mut self, bound: usize) -> usize {
        let product = u128::from(self.next()) * bound as u128;
        // The upper half is below `bound`, so the conversion cannot fail.
        usize::try_from(product >> 64).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn order() -> impl Strategy<Value = Order> {
        let shuffled = any::<u64>().prop_map(|seed| Order::Shuffled { seed });
        prop_oneof![Just(Order::Sequential), Just(Order::Abba), shuffled]
    }

    #[test]
    fn generates_the_published_numbers() {
        let mut random = SplitMix(1_234_567);
        assert_eq!([random.next(), random.next()], [6_457_827_717_110_365_317, 3_203_168_211_198_807_973]);
    }

    #[test]
    fn abba_reverses_every_second_repeat() {
        let run = |repeat| Order::Abba.of_repeat(repeat, 3);
        assert_eq!([run(1), run(2), run(3)], [[0, 1, 2], [2, 1, 0], [0, 1, 2]]);
    }

    #[test]
    fn shuffles_the_same_way_for_the_same_seed() {
        let run = |seed, repeat| Order::Shuffled { seed }.of_repeat(repeat, 20);
        assert_eq!(run(1, 1), run(1, 1));
        assert_ne!(run(1, 1), run(2, 1));
        assert_ne!(run(1, 1), run(1, 2));
        let first: std::collections::BTreeSet<usize> = (0..200).map(|seed| run(seed, 1)[0]).collect();
        assert_eq!(first.len(), 20, "each scenario is first for some seed");
    }

    proptest! {
        #[test]
        fn every_order_is_a_permutation(order in order(), repeat in 1u32..9, count in 0usize..50) {
            let mut run = order.of_repeat(repeat, count);
            run.sort_unstable();
            prop_assert_eq!(run, (0..count).collect::<Vec<_>>());
        }
    }
}
