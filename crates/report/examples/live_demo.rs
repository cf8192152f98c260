//! Shows the live view with invented figures, and its cost: `cargo run -p punctual-report --example live_demo -- 8 10`
//! for 8 CPUs and 10 s.

use std::time::{Duration, Instant};

use record::{Phase, Record, Series};
use report::live::{Live, LiveMode, Progress};
use rustix::time::{ClockId, clock_gettime};

const UPDATE: Duration = Duration::from_millis(200);

fn main() {
    let mut args = std::env::args().skip(1).map(|arg| arg.parse().expect("give CPUs and seconds as whole numbers"));
    let (cpus, seconds): (u32, u32) = (args.next().unwrap_or(4), args.next().unwrap_or(10));
    let series = (0..cpus).map(|cpu| Series { phase: "demo".into(), cpu: Some(cpu), ..Series::default() });
    let phases = vec![Phase { name: "demo".into(), ..Phase::default() }];
    let mut record = Record { phases, series: series.collect(), ..Record::default() };

    let mut live = Live::new(LiveMode::Auto);
    let (started, total) = (Instant::now(), Duration::from_secs(seconds.into()));
    let (mut cost_ns, mut updates, mut random) = (0, 0, 1);
    while started.elapsed() < total {
        record.series.iter_mut().for_each(|series| {
            wake(series, &mut random, usize::try_from(started.elapsed().as_secs()).expect("a short run"));
        });
        let progress = Progress {
            phase: "with invented figures".into(),
            elapsed_ns: nanoseconds(started.elapsed()),
            total_ns: Some(nanoseconds(total)),
            decides: false,
            phase_index: 0,
            phase_count: 1,
        };
        let before_ns = cpu_time_ns();
        live.update(&record, &progress);
        cost_ns += cpu_time_ns() - before_ns;
        updates += 1;
        std::thread::sleep(UPDATE);
    }
    live.finish();
    println!("{updates} updates, {} us of CPU time each", cost_ns / 1000 / updates.max(1));
}

/// Adds 200 wake-ups around 4 us with a long tail.
fn wake(series: &mut Series, random: &mut u64, second: usize) {
    for _ in 0..200 {
        *random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let uniform = ((*random >> 33) as f64 + 1.0) / (1u64 << 31) as f64;
        let lateness_ns = analysis::float::to_i64(3_000.0 + 1_500.0 * uniform.powf(-0.6));
        series.raw.record(lateness_ns);
        series.samples += 1;
        series.missed += lateness_ns.unsigned_abs() / 1_000_000;
        series.max_ns = series.max_ns.max(Some(lateness_ns));
        series.maxima.max_ns.resize(second + 1, None);
        let window = &mut series.maxima.max_ns[second];
        *window = (*window).max(Some(lateness_ns));
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).expect("a short run")
}

/// CPU time of this thread, ns.
fn cpu_time_ns() -> i64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}
