//! Counts correct and wrong explanations.

use std::ops::RangeInclusive;

use anyhow::{Result, ensure};

/// Minimum number of relevant delays per test.
const MIN_RELEVANT: usize = 200;
/// Number of failures to print.
const SHOWN: usize = 4;

/// Counts results.
#[derive(Default)]
pub struct Tally {
    right: usize,
    wrong: Vec<String>,
}

impl Tally {
    /// Adds a correct result.
    pub fn right(&mut self) {
        self.right += 1;
    }

    /// Adds a wrong result with its description.
    pub fn wrong(&mut self, description: String) {
        self.wrong.push(description);
    }

    /// Fails if there are too few results, or if less than this percentage is correct.
    pub fn judge(self, percent: usize) -> Result<()> {
        let Self { right, wrong } = self;
        let relevant = right + wrong.len();
        println!("  {right} of {relevant} correct");
        wrong.iter().take(SHOWN).for_each(|example| println!("  {example}"));
        ensure!(relevant >= MIN_RELEVANT, "only {relevant} relevant delays");
        let examples = wrong[..wrong.len().min(SHOWN)].join("\n");
        ensure!(right * 100 >= relevant * percent, "{right} of {relevant} correct, for example:\n{examples}");
        Ok(())
    }
}

/// True if a measured time is within 5 % plus 2 us of the true one, which is known as a range.
pub fn is_right_time(measured_ns: u64, true_ns: RangeInclusive<i64>) -> bool {
    let (least_ns, most_ns) = (*true_ns.start(), *true_ns.end());
    let error_ns = least_ns / 20 + 2_000;
    (least_ns - error_ns..=most_ns + error_ns).contains(&measured_ns.cast_signed())
}
