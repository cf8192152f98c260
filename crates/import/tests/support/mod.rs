//! Samples of all formats, and what their records contain.

#![allow(dead_code, reason = "each test file uses only a part")]
#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

use std::path::{Path, PathBuf};

use import::{Unit, import, parse};
use record::{Figures, Record};

/// Files, and the format of each.
pub const SAMPLES: [(&str, &str); 23] = [
    ("cyclictest-2.4-hist.txt", "cyclictest, text"),
    ("cyclictest-2.4-plain.txt", "cyclictest, text"),
    ("cyclictest-2.4.json", "cyclictest and oslat, JSON"),
    ("cyclictest-2.4-sigstop-1s.json", "cyclictest and oslat, JSON"),
    ("cyclictest-2.10-style-sigstop-1s.txt", "cyclictest, text"),
    ("oslat-2.4.txt", "oslat, text"),
    ("oslat-2.4.json", "cyclictest and oslat, JSON"),
    ("rtla-timerlat-hist-6.1.txt", "rtla hist"),
    ("rteval-cyclictest.xml", "rteval, summary.xml"),
    ("rteval-timerlat.xml", "rteval, summary.xml"),
    ("stress-ng-0.15-cyclic.txt", "stress-ng --cyclic"),
    ("hwlatdetect-2.4.txt", "hwlatdetect"),
    ("rtla-timerlat-top.txt", "rtla top"),
    ("rtla-osnoise-top.txt", "rtla top"),
    ("sockperf-3.7-tcp.txt", "sockperf"),
    ("sockperf-3.7-udp-rtt.txt", "sockperf"),
    ("hdrhistogram-python.hlog", "HdrHistogram, hlog"),
    ("latency-histogram.txt", "LinuxCNC latency-histogram --nox"),
    ("xenomai-latency-g.txt", "Xenomai latency -g"),
    ("rtc-testbench.log", "RTC-Testbench, log"),
    ("isochron-report.txt", "isochron report --summary"),
    ("latencymon-7.txt", "LatencyMon, report"),
    ("lava-cyclictest.txt", "LAVA, results of latencies"),
];

pub fn sample(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/samples").join(name)
}

pub fn text_of(name: &str) -> String {
    std::fs::read_to_string(sample(name)).unwrap()
}

pub fn imported(name: &str) -> Record {
    import(&sample(name), None).unwrap()
}

/// The figures of each thread, without those of all threads.
pub fn figures(record: &Record) -> &[Figures] {
    let all = &record.published.as_ref().unwrap().figures;
    &all[all.iter().take_while(|figures| figures.phase == "all-threads").count()..]
}

/// The kinds of the caveats, without that of every imported record.
pub fn kinds(record: &Record) -> Vec<&str> {
    assert_eq!(record.caveats[0].kind, "imported");
    record.caveats[1..].iter().map(|caveat| caveat.kind.as_str()).collect()
}

/// Imports a text.
pub fn of(text: &str) -> Result<Record, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    std::fs::write(&path, text).unwrap();
    import(&path, None).map_err(|error| error.to_string().replace(&*path.to_string_lossy(), "FILE"))
}

/// Imports a text with this unit, if it does not say its own.
pub fn of_unit(text: &str, unit: Unit) -> Record {
    parse(Path::new("file"), text, Some(unit)).unwrap()
}

/// Number of samples, largest time in us, 99th percentile in us. Histograms of records have buckets of 0.1 % of their value.
pub fn short(figures: &Figures) -> (Option<u64>, Option<i64>, Option<i64>) {
    (figures.samples, figures.max_ns.map(|ns| ns / 1000), figures.p99_ns.map(|ns| ns / 1000))
}
