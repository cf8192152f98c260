//! How many were looked for, and how many of them were told right.

use anyhow::{Result, ensure};

/// Delays that a test must have looked for.
const WANTED: usize = 200;
/// Wrong ones that are shown.
const SHOWN: usize = 4;

/// Counts what was looked for.
#[derive(Default)]
pub struct Tally {
    right: usize,
    wrong: Vec<String>,
}

impl Tally {
    /// One was told right.
    pub fn right(&mut self) {
        self.right += 1;
    }

    /// One was not; what was told instead.
    pub fn wrong(&mut self, told: String) {
        self.wrong.push(told);
    }

    /// Fails where too few were looked for, or less than 99 % are right.
    pub fn judge(self) -> Result<()> {
        let Self { right, wrong } = self;
        let looked_for = right + wrong.len();
        println!("  {right} of {looked_for} right");
        ensure!(looked_for >= WANTED, "only {looked_for} were looked for");
        let examples = wrong[..wrong.len().min(SHOWN)].join("\n");
        ensure!(right * 100 >= looked_for * 99, "{right} of {looked_for} right, for example:\n{examples}");
        Ok(())
    }
}

/// Whether a time was told right: within 5 % and 2 us.
pub fn is_right_time(told_ns: u64, true_ns: i64) -> bool {
    (told_ns as i64 - true_ns).abs() <= true_ns / 20 + 2_000
}
