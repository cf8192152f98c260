//! The probes as a whole. Every allocation in a measuring loop aborts this test binary.

use std::time::Duration;

use probes::{
    guard::Heartbeat,
    timer::{End, Settings, Timer},
};
use sys::{
    alloc_guard::AllocGuard,
    clock::{Clock, Wait},
    sched::Policy,
};

#[global_allocator]
static GUARD: AllocGuard = AllocGuard;

fn settings() -> Settings {
    Settings {
        role: "timer".to_owned(),
        cpu: None,
        policy: Policy::Other,
        clock: Clock::Monotonic,
        wait: Wait::Nanosleep,
        period_ns: 200_000,
        samples: None,
        threshold_ns: 1_000,
        spikes_kept: record::SPIKES_KEPT,
        stop_on: None,
    }
}

/// Runs a probe to its end and gives its series.
fn measure(settings: &Settings, duration_ns: i64) -> (record::Series, Option<End>) {
    let heartbeat = Heartbeat::start().expect("a thread");
    let mut timer = Timer::prepare(settings, heartbeat).expect("a thread on this clock");
    let first_ns = settings.clock.now_ns() + 1_000_000;
    timer.start(first_ns, first_ns + duration_ns);
    while !timer.has_ended() {
        std::thread::sleep(Duration::from_millis(5));
        timer.collect();
    }
    timer.collect();
    (timer.series("test"), timer.end())
}

#[test]
fn every_deadline_is_slept_for_or_counted_as_missed() {
    for wait in [Wait::Nanosleep, Wait::Timerfd] {
        let (series, end) = measure(&Settings { wait, ..settings() }, 1_500_000_000);
        assert_eq!(end, Some(End::Planned));
        // Deadlines 0 to 7500; those that the last wake-up ran over may lie beyond the end.
        let overrun = series.max_ns.unwrap() as u64 / series.period_ns;
        assert!(
            (7501..=7501 + overrun).contains(&(series.samples + series.missed)),
            "{} + {}",
            series.samples,
            series.missed
        );
        assert_eq!(series.corrected.total(), series.samples + series.missed);
        assert_eq!(series.raw.total(), series.samples);
        assert_eq!(series.early, 0);
        assert!(series.spikes_total > 0 && series.spikes.len() <= record::SPIKES_KEPT);
        assert_eq!(series.spikes.iter().map(|spike| spike.lateness_ns).max(), series.max_ns);
        assert!(series.maxima.max_ns[0] <= series.max_ns);
        assert!(series.mean_ns.unwrap() >= series.min_ns.unwrap() as f64);
    }
}

#[test]
fn the_number_of_samples_ends_the_run() {
    let (series, _) = measure(&Settings { samples: Some(100), ..settings() }, i64::MAX / 2);
    assert_eq!(series.samples, 100);
}

#[test]
fn clocks_that_cannot_be_waited_for_are_refused() {
    let settings = Settings { clock: Clock::Tai, wait: Wait::Timerfd, ..settings() };
    let error = Timer::prepare(&settings, Heartbeat::start().expect("a thread")).unwrap_err().to_string();
    assert_eq!(error, "cannot wait on the tai clock with timerfd: use --wait nanosleep");
}
