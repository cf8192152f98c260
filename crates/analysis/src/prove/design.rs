//! The candidates of each round.

use extremes::Random;

/// An orthogonal two-level design: of any two candidates, each combination occurs equally often in a whole cycle.
///
/// A cycle has as many blocks as Sylvester's Hadamard matrix has rows, a power of two above the number of candidates.
/// Candidates have its columns but the first, drawn again for each cycle; rows come in random order. The second half of a
/// block is the mirror of the first (foldover), so that interactions of two candidates do not look like effects of a third.
#[derive(Debug, Clone, Copy)]
pub struct Design {
    /// Number of candidates.
    pub candidates: usize,
    /// Seed of the random order.
    pub seed: u64,
}

impl Design {
    /// For each candidate, whether it is in the half with of this block.
    pub fn half(self, block: u32) -> Vec<bool> {
        let rows = (self.candidates + 1).next_power_of_two();
        let (cycle, place) = (block as usize / rows, block as usize % rows);
        let mut random = Random(self.seed ^ (cycle as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let row = random.shuffled((0..rows).collect())[place];
        let columns = random.shuffled((1..rows).collect());
        let flips = random.bits();
        // An entry of the matrix is the parity of the common bits of its row and column.
        let entry = |column: usize| (row & column).count_ones() % 2 == 1;
        (0..self.candidates).map(|index| entry(columns[index]) != (flips >> (index % 64) & 1 == 1)).collect()
    }
}

/// True in half of the blocks, at random.
pub fn coin(seed: u64, block: u32) -> bool {
    let mut random = Random(seed.rotate_left(32) ^ u64::from(block).wrapping_mul(0xD1B5_4A32_D192_ED03));
    random.bits() & 1 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_pair_of_candidates_is_balanced_in_a_cycle() {
        for candidates in [1, 2, 3, 7, 8, 13, 30] {
            let design = Design { candidates, seed: 7 };
            let rows = u32::try_from((candidates + 1).next_power_of_two()).unwrap();
            for cycle in 0..3 {
                let halves: Vec<_> = (0..rows).map(|row| design.half(cycle * rows + row)).collect();
                let product = |a: usize, b: usize| halves.iter().filter(|half| half[a] == half[b]).count();
                for a in 0..candidates {
                    assert_eq!(halves.iter().filter(|half| half[a]).count(), halves.len() / 2, "candidate {a}");
                    (0..a).for_each(|b| assert_eq!(product(a, b), halves.len() / 2, "candidates {a} and {b}"));
                }
            }
        }
    }

    #[test]
    fn the_order_is_random_and_repeatable() {
        let heads = (0..10_000).filter(|&block| coin(3, block)).count();
        assert!((4_700..5_300).contains(&heads), "{heads}");
        let design = |seed| Design { candidates: 12, seed };
        let all = |seed| (0..16).map(|block| design(seed).half(block)).collect::<Vec<_>>();
        assert_eq!(all(1), all(1));
        assert_ne!(all(1), all(2));
    }
}
