//! The times of missing interrupts, from the measuring thread to its reader.

use record::Losses;

/// Runs of missing interrupts that can wait for the reader. The times of more are not known.
const QUEUE: usize = 4096;

/// Consecutive interrupts that are missing.
#[derive(Debug, Clone, Copy)]
struct Run {
    /// The time of the last one, ns after the first interrupt of the run.
    last_ns: u64,
    /// Their number.
    count: u64,
    /// The time between them, ns.
    period_ns: u64,
}

/// The end of the measuring thread.
pub struct MissingNotes {
    runs: rtrb::Producer<Run>,
    /// The expected time between two interrupts, ns.
    period_ns: u64,
    /// The times of the first and of the latest interrupt, ns on CLOCK_MONOTONIC; `None` before the first one.
    known_ns: Option<[i64; 2]>,
}

/// The end of the reader.
#[derive(Debug)]
pub struct MissingTimes {
    runs: rtrb::Consumer<Run>,
    losses: Losses,
}

/// Both ends, for interrupts expected every `period_ns`.
pub fn missing_times(period_ns: u64) -> (MissingNotes, MissingTimes) {
    let (runs, taken) = rtrb::RingBuffer::new(QUEUE);
    (MissingNotes { runs, period_ns, known_ns: None }, MissingTimes { runs: taken, losses: Losses::default() })
}

impl MissingNotes {
    /// Notes an interrupt at `zero_ns`, before which `count` others are missing.
    #[inline]
    pub fn note(&mut self, zero_ns: i64, count: u64) {
        // Before the first interrupt, no time is known.
        let Some([first_ns, latest_ns]) = self.known_ns else { return self.known_ns = Some([zero_ns; 2]) };
        self.known_ns = Some([first_ns, zero_ns]);
        if count > 0 {
            // They are between the latest interrupt and this one.
            let between_ns = u64::try_from(zero_ns - latest_ns).unwrap_or(0);
            let period_ns = self.period_ns.min(between_ns / count.saturating_add(1));
            let last_ns = u64::try_from(zero_ns - first_ns).unwrap_or(0).saturating_sub(period_ns);
            // If the queue is full, their times are not known.
            let _ = self.runs.push(Run { last_ns, count, period_ns });
        }
    }
}

impl MissingTimes {
    /// Reads the queue.
    pub fn collect(&mut self) {
        while let Ok(Run { last_ns, count, period_ns }) = self.runs.pop() {
            self.losses.add_run(last_ns, count, period_ns);
        }
    }

    /// The missing interrupts over time, as far as they were collected.
    pub fn losses(&self) -> &Losses {
        &self.losses
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_interrupts_are_before_the_one_that_shows_them() {
        const MS: i64 = 1_000_000;
        let (mut notes, mut times) = missing_times(10_000_000);
        notes.note(500 * MS, 9);
        notes.note(1_500 * MS, 0);
        // At 2.49 s and 2.50 s, and two in a gap of 3 ms. The nine before the first interrupt have no time.
        notes.note(3_010 * MS, 2);
        notes.note(6_501 * MS, 0);
        notes.note(6_504 * MS, 2);
        times.collect();
        assert_eq!(times.losses().counts, [(2, 2), (6, 2)]);
        notes.note(2_000_000 * MS, 0);
        (0..=QUEUE).for_each(|_| notes.note(2_000_000 * MS, 1));
        times.collect();
        assert_eq!(times.losses().total(), 4 + QUEUE as u64, "the last one has no time");
    }
}
