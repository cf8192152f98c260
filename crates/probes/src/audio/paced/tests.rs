//! Counting with a simulated card, whose periods take 1 ms each. The lateness of the thread and the processing time of
//! each period are given.

use std::cell::Cell;

use record::{Audio, Series};

use super::*;
use crate::audio::{AudioSettings, Names, reader::Reader, shared::channel};

thread_local! {
    static NOW_NS: Cell<i64> = const { Cell::new(0) };
}

const PERIOD_NS: i64 = 1_000_000;
const FRAMES: u32 = 64;

/// A card modelled by counters: it captures and plays one period per ms since it was started.
struct Counters {
    periods: u64,
    started_ns: i64,
    written: u64,
    taken: u64,
    /// Lateness of the thread at each wake-up.
    late_ns: std::vec::IntoIter<i64>,
}

impl Counters {
    fn passed(&self) -> u64 {
        ((NOW_NS.get() - self.started_ns) / PERIOD_NS).cast_unsigned()
    }

    fn is_dry(&self) -> bool {
        self.passed() >= self.written
    }
}

impl Sound for Counters {
    fn start(&mut self) -> io::Result<()> {
        (self.started_ns, self.written, self.taken) = (NOW_NS.get(), self.periods, 0);
        Ok(())
    }

    fn wait(&mut self) -> io::Result<WaitResult> {
        let Some(late_ns) = self.late_ns.next() else { return Err(io::ErrorKind::TimedOut.into()) };
        let due_ns = self.started_ns + (self.taken + 1).cast_signed() * PERIOD_NS;
        NOW_NS.set(NOW_NS.get().max(due_ns) + late_ns);
        if self.is_dry() {
            return Ok(WaitResult::Xrun);
        }
        let passed = self.passed();
        Ok(WaitResult::Period(sys::pcm::Wake {
            woke_ns: NOW_NS.get(),
            card_ns: self.stamp_ns(),
            captured: (passed - self.taken) * u64::from(FRAMES),
            queued: (self.written - passed) * u64::from(FRAMES),
        }))
    }

    fn stamp_ns(&self) -> i64 {
        self.started_ns + self.passed().cast_signed() * PERIOD_NS
    }

    fn read(&self, samples: &mut [f32]) {
        samples.fill(0.0);
    }

    fn give(&mut self, _: &[f32]) -> io::Result<bool> {
        let is_dry = self.is_dry();
        self.written += 1;
        self.taken += 1;
        Ok(!is_dry)
    }

    fn now_ns(&self) -> i64 {
        NOW_NS.get()
    }
}

/// A chain with given processing times.
struct FixedTimes(std::vec::IntoIter<i64>);

impl Player for FixedTimes {
    fn play(&mut self, input: &[f32], left: &mut [f32], _: &mut [f32]) {
        left.copy_from_slice(input);
        NOW_NS.set(NOW_NS.get() + self.0.next().unwrap_or(0));
    }
}

/// Returns the series, and deadline and lateness of each wake-up.
fn played(periods: u32, late_ns: Vec<i64>, takes_ns: Vec<i64>) -> (Series, Vec<(i64, i64)>) {
    NOW_NS.set(5_000_000_000);
    let settings = AudioSettings {
        rate_hz: 64_000,
        frames: FRAMES,
        periods,
        clock: Clock::Monotonic,
        threshold_ns: 800_000,
        spikes_kept: 1000,
        names: Names::default(),
        card: None,
        caveats: Vec::new(),
    };
    let (writer, shared, queue) = channel(settings.threshold_ns);
    let mut reader = Reader::new(queue, settings.spikes_kept);
    let silence = || vec![0.0; FRAMES as usize].into_boxed_slice();
    let mut paced = Paced {
        player: FixedTimes(takes_ns.into_iter()),
        sound: Counters { periods: periods.into(), started_ns: 0, written: 0, taken: 0, late_ns: late_ns.into_iter() },
        pace: Pace::new(settings.grid(), settings.rate_hz),
        grid: settings.grid(),
        writer,
        buffer: u64::from(periods) * u64::from(FRAMES),
        signal: vec![0.25; 192].into(),
        at: 0,
        captured: silence(),
        silence: silence(),
        left: silence(),
        right: silence(),
        state: State::default(),
    };
    assert_eq!(paced.start().unwrap(), Pacer::Periodic, "the card sets the deadlines");
    let mut wakes = Vec::new();
    while let Ok(Some(wake)) = paced.wait() {
        wakes.push((wake.deadline_ns, wake.woke_ns - wake.deadline_ns));
        paced.at(wake);
    }
    reader.collect(&shared);
    let mut series = Series::default();
    reader.add_to(&settings, &shared, &mut series);
    (series, wakes)
}

fn audio(series: &Series) -> &Audio {
    series.kind.audio().expect("a series of audio")
}

#[test]
fn processes_each_period_of_a_card_on_time() {
    let (series, wakes) = played(2, vec![10_000; 500], vec![300_000; 500]);
    assert_eq!((audio(&series).played, audio(&series).xruns, audio(&series).lost), (500, 0, 0));
    assert!(wakes.iter().all(|(_, late_ns)| *late_ns == 10_000));
    assert!(wakes.windows(2).all(|pair| pair[1].0 - pair[0].0 == PERIOD_NS));
    let completion = audio(&series).completion.clone().unwrap();
    assert_eq!((completion.min_ns, completion.max_ns), (310_000, 310_000));
}

#[test]
fn long_processing_is_an_xrun() {
    let takes_ns = (0..100).map(|n| if n % 10 == 9 { 1_900_000 } else { 200_000 }).collect();
    let (series, _) = played(2, vec![10_000; 100], takes_ns);
    assert_eq!((audio(&series).played, audio(&series).xruns, audio(&series).lost), (100, 10, 10));
    let periods: Vec<_> = series.spikes.iter().map(|spike| spike.played.unwrap()).collect();
    assert!(periods.iter().all(|played| played.xrun && played.dsp_ns == 1_900_000 && played.wait_ns == 10_000));
    // The card restarts at once: the next deadline is one period later, not on the old grid.
    assert_eq!(series.spikes[1].at_ns - series.spikes[0].at_ns, 9_000_000 + 1_910_000 + 1_000_000);
}

#[test]
fn a_thread_later_than_the_buffer_has_one_xrun_and_loses_periods() {
    let late_ns = (0..100).map(|n| if n % 20 == 7 { 7_300_000 } else { 5_000 }).collect();
    let (series, wakes) = played(2, late_ns, vec![100_000; 100]);
    assert_eq!((audio(&series).xruns, audio(&series).played, audio(&series).lost), (5, 100, 5 * 7));
    assert_eq!(wakes.iter().filter(|(_, late_ns)| *late_ns == 7_300_000).count(), 5);
    assert!(series.spikes.iter().all(|spike| spike.lateness_ns == 7_400_000));
}

#[test]
fn a_late_thread_processes_all_captured_periods() {
    // Two and a half periods late on a card with four: three periods are ready, and all are in time.
    let (series, wakes) = played(4, vec![0, 2_500_000, 0, 0], vec![100_000; 10]);
    assert_eq!((audio(&series).played, audio(&series).xruns), (6, 0));
    assert_eq!(wakes.iter().map(|(_, late_ns)| *late_ns).collect::<Vec<_>>(), [0, 2_500_000, 0, 0]);
    let worst = series.spikes.iter().max_by_key(|spike| spike.lateness_ns).unwrap().played.unwrap();
    assert_eq!((worst.wait_ns, worst.dsp_ns), (2_500_000, 100_000));
}
