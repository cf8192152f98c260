//! Files of other tools become records with their figures, and with caveats about what the tool lost or mixed.

#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

use std::path::PathBuf;

use import::{FORMATS, ImportError, Unit, format_of, import, parse, read};
use proptest::prelude::*;
use record::{Figures, Record};

/// Files, and the format of each.
const SAMPLES: [(&str, &str); 23] = [
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

fn sample(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/samples").join(name)
}

fn text_of(name: &str) -> String {
    std::fs::read_to_string(sample(name)).unwrap()
}

fn imported(name: &str) -> Record {
    import(&sample(name), None).unwrap()
}

/// The figures of each thread, without those of all threads.
fn figures(record: &Record) -> &[Figures] {
    let all = &record.published.as_ref().unwrap().figures;
    &all[all.iter().take_while(|figures| figures.phase == "all-threads").count()..]
}

/// The kinds of the caveats, without that of every imported record.
fn kinds(record: &Record) -> Vec<&str> {
    assert_eq!(record.caveats[0].kind, "imported");
    record.caveats[1..].iter().map(|caveat| caveat.kind.as_str()).collect()
}

/// Imports a text.
fn of(text: &str) -> Result<Record, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    std::fs::write(&path, text).unwrap();
    import(&path, None).map_err(|error| error.to_string().replace(&*path.to_string_lossy(), "FILE"))
}

/// Number of samples, largest time in us, 99th percentile in us. Histograms of records have buckets of 0.1 % of their value.
fn short(figures: &Figures) -> (Option<u64>, Option<i64>, Option<i64>) {
    (figures.samples, figures.max_ns.map(|ns| ns / 1000), figures.p99_ns.map(|ns| ns / 1000))
}

#[test]
fn the_start_is_a_time_that_comparisons_can_order() {
    let started_at = |text: &str| of(text).unwrap().started_at;
    assert_eq!(started_at(&text_of("cyclictest-2.4.json")), "2026-11-21T03:17:01Z");
    let latmus = "# test started on: Wed Dec 22 10:55:45 2021\n# sampling period: 250 microseconds\n# context: user\n\
                  # sample count: 2\n1 2\n";
    assert_eq!(started_at(latmus), "2021-12-22T10:55:45", "the time zone is not in the file");
    let log = text_of("hdrhistogram-python.hlog").replace(
        "#[Histogram log format",
        "#[StartTime: 1441812279.474 (seconds since epoch), Wed Sep 09 08:24:39 PDT 2015]\n#[Histogram log format",
    );
    assert_eq!(started_at(&log), "2015-09-09T15:24:39.474Z");
    let yaml = "---\nsystem-info:\n      stress-ng-version: 0.15.06\n      epoch-secs: 1441812279\nmetrics:\n    - stressor: cyclic\n";
    assert_eq!(started_at(&(text_of("stress-ng-0.15-cyclic.txt") + yaml)), "2015-09-09T15:24:39Z");
}

#[test]
fn text_and_json_of_one_run_of_cyclictest_agree() {
    let (text, json) = (imported("cyclictest-2.4-hist.txt"), imported("cyclictest-2.4.json"));
    for record in [&text, &json] {
        let all = figures(record);
        assert_eq!(
            all.iter().map(short).collect::<Vec<_>>(),
            [(Some(6000), Some(632), Some(31)), (Some(5999), Some(1025), Some(34)),]
        );
        assert_eq!(all[0].histogram.as_ref().unwrap().total(), 5977);
        assert!(kinds(record).contains(&"overflow"), "{:?}", record.caveats);
        assert_eq!((record.tool.name.as_str(), record.validity.valid), ("cyclictest", false));
    }
    assert_eq!(figures(&text)[0].histogram, figures(&json)[0].histogram);
    let both = &json.published.as_ref().unwrap().figures[0];
    assert_eq!(
        (both.phase.as_str(), both.cpus.as_str(), short(both)),
        ("all-threads", "0,1", (Some(11_999), Some(1025), Some(33)))
    );
    assert_eq!(kinds(&text), ["units", "overflow", "overflow", "omission"]);
    let first = &figures(&json)[0];
    assert_eq!((first.cpus.as_str(), first.policy.as_str(), first.period_ns), ("0", "fifo:90", Some(1_000_000)));
    assert_eq!(json.machine.kernel.as_deref(), Some("6.18.44"));
    assert_eq!((json.tool.version.as_str(), first.command.starts_with("cyclictest -q -t2")), ("2.40", true));
}

/// A run with `-v -p 80 -i 1000`. The interval in its heading is that of the next thread, so it is not read.
#[test]
fn a_verbose_log_of_cyclictest_is_read_as_a_file_and_from_a_pipe() {
    let record = imported("cyclictest-2.4-verbose.txt");
    let [thread] = figures(&record) else { panic!("{record:?}") };
    assert_eq!((short(thread), thread.period_ns), ((Some(21), Some(88), Some(88)), None));
    assert_eq!(thread.min_ns, Some(21_000));
    assert_eq!(kinds(&record), ["units"]);
    let path = sample("cyclictest-2.4-verbose.txt");
    assert_eq!(parse(&path, &text_of("cyclictest-2.4-verbose.txt"), None).unwrap(), record);
    assert_eq!(read(&path, None).unwrap(), record);
    let cut = text_of("cyclictest-2.4-verbose.txt").replace("       0:       3:      24", "       0:       3:");
    assert_eq!(of(&cut).unwrap_err(), "FILE is not whole (cyclictest -v): line 8: not a sample: 0:       3:");
}

#[test]
fn the_last_line_of_each_thread_counts() {
    let record = imported("cyclictest-2.4-plain.txt");
    let [first, second] = figures(&record) else { panic!("{record:?}") };
    assert_eq!((first.samples, first.min_ns, first.max_ns), (Some(7996), Some(3_000), Some(1_110_000)));
    assert_eq!((second.period_ns, second.mean_ns), (Some(500_000), Some(11_000.0)));
    // Both were later than their period of 500 us.
    assert_eq!(kinds(&record), ["units", "omission", "omission"]);
    let redrawn = "T: 0 ( 7) P:99 I:1000 C: 10 Min: 7 Act: 10 Avg: 10 Max: 18\n\u{1b}[1AT: 0 ( 7) P:99 I:1000 C: 20 \
                   Min: 5 Act: 10 Avg: 11 Max: 28\n";
    let record = of(redrawn).unwrap();
    assert_eq!(figures(&record).iter().map(short).collect::<Vec<_>>(), [(Some(20), Some(28), None)]);
}

#[test]
fn deadlines_without_samples_are_named() {
    let record = imported("cyclictest-2.4-sigstop-1s.json");
    assert_eq!(figures(&record)[0].max_ns, Some(1_000_828_000));
    let omission = record.caveats.iter().find(|caveat| caveat.kind == "omission").unwrap();
    assert!(omission.text.contains("passed 1000 deadlines"), "{omission:?}");
    let text = imported("cyclictest-2.10-style-sigstop-1s.txt");
    assert!(kinds(&text).contains(&"omission"), "{:?}", text.caveats);
}

#[test]
fn text_and_json_of_one_run_of_oslat_agree() {
    let (text, json) = (imported("oslat-2.4.txt"), imported("oslat-2.4.json"));
    for record in [&text, &json] {
        let [first, second] = figures(record) else { panic!("{record:?}") };
        assert_eq!((first.cpus.as_str(), first.max_ns, first.duration_ns), ("0", Some(8_039_000), Some(3_002_000_000)));
        assert_eq!((second.min_ns, second.probe.as_str()), (Some(1_000), "noise"));
        assert_eq!(kinds(record), ["mixed"]);
        assert_eq!((record.tool.name.as_str(), record.tool.version.as_str()), ("oslat", "2.40"));
    }
    assert_eq!(figures(&text)[1].histogram, figures(&json)[1].histogram);
}

#[test]
fn columns_of_rtla_are_populations_of_their_own() {
    let record = imported("rtla-timerlat-hist-6.1.txt");
    let all = figures(&record);
    let names: Vec<_> = all.iter().map(|figures| (figures.role.as_str(), figures.cpus.as_str())).collect();
    assert_eq!(
        names,
        [("timerlat/irq", "0"), ("timerlat/thread", "0"), ("timerlat/irq", "1"), ("timerlat/thread", "1")]
    );
    // Cells of 50 us; 123 of 4659 samples are beyond the last one, more than 1 %.
    assert_eq!(short(&all[0]), (Some(4659), Some(13_371), None));
    assert_eq!((all[0].p50_ns, all[0].duration_ns), (Some(50_015), Some(5_000_000_000)));
    assert_eq!(kinds(&record), ["mixed", "overflow", "overflow", "overflow", "overflow"]);
}

#[test]
fn latmus_folds_early_wake_ups_and_clamps_late_ones() {
    let text = "# test started on: Sat Nov 21 02:00:00 2026\n# Linux version 6.12.85-cip22 (gcc)\n# libevl version: evl.0.48 -- \
                #abc (2024-05-01)\n# sampling period: 250 microseconds\n# clock gravity: 0i 1500k 1500u\n# context: user\n# \
                thread priority: 98\n# thread affinity: CPU2\n# duration (hhmmss): 00:10:00\n# peak (hhmmss): 00:03:12\n# \
                OVERRUNS: 3\n# min latency: -0.213\n# avg latency: 0.902\n# max latency: 307.915\n# sample count: 1005\n0 \
                900\n1 100\n199+ 5\n";
    let record = of(text).unwrap();
    let [figures] = figures(&record) else { panic!("{record:?}") };
    assert_eq!((figures.samples, figures.min_ns, figures.max_ns), (Some(1005), Some(-213), Some(307_915)));
    assert_eq!((figures.cpus.as_str(), figures.isolated, figures.period_ns), ("2", Some(true), Some(250_000)));
    assert_eq!(kinds(&record), ["clamped", "folded", "omission", "omission"]);
    assert_eq!(record.machine.evl_gravity.as_deref(), Some("0i 1500k 1500u"));
    let wrong = of(&text.replace("1 100", "1 101")).unwrap_err();
    assert_eq!(wrong, "FILE is not whole (latmus -g): the cells have 1006 samples, the sample count is 1005");
}

#[test]
fn samples_of_jitterdebugger_can_be_missing() {
    let text = r#"{"version":3,"sysinfo":{"nodename":"vm","release":"6.1","resolution_in_ns":1000},
        "cpu":{"0":{"histogram":{"3":3678,"4":220},"count":3901,"min":3,"max":1100,"avg":3.06}}}"#;
    let record = of(text).unwrap();
    assert_eq!(figures(&record).iter().map(short).collect::<Vec<_>>(), [(Some(3901), Some(1100), Some(4))]);
    assert_eq!(kinds(&record), ["overflow", "omission"]);
}

#[test]
fn the_console_of_latmus_and_of_latency_of_xenomai() {
    let text = "RTT|  00:00:01  (user, 1000 us period, priority 98, CPU2-noisol)\nRTH|----lat min|----lat avg|----lat \
                max|-overrun|---msw|---lat best|--lat worst\nRTD|      0.100|      1.000|      5.000|       0|     0|      \
                0.100|      5.000\nRTD|      0.200|      1.000|   1200.000|       2|     1|      0.100|   1200.000\n";
    let record = of(text).unwrap();
    let [ended] = figures(&record) else { panic!("{record:?}") };
    assert_eq!((ended.min_ns, ended.mean_ns, ended.max_ns), (Some(100), None, Some(1_200_000)));
    assert_eq!((ended.period_ns, ended.policy.as_str()), (Some(1_000_000), "fifo:98"));
    assert_eq!(kinds(&record), ["omission", "mixed", "omission"]);
    let end = "HSH|--param|----range-|--samples\nHSD|    min|   0 -  1 |        9\nHSD|    avg|   0 -  1 |      900\nHSD|    \
               avg|   3 -  4 |      100\nRTS|     -0.300|      0.500|      9.900|       0|     0|    00:00:02/00:00:02\n";
    let record = of(&format!("{text}{end}")).unwrap();
    let [whole] = figures(&record) else { panic!("{record:?}") };
    assert_eq!(
        (whole.samples, whole.p50_ns, whole.p99_ns),
        (Some(1000), Some(999), None),
        "later ones are in the last cell"
    );
    assert_eq!((whole.min_ns, whole.mean_ns, whole.max_ns), (Some(-300), Some(500.0), Some(9_900)));
    assert_eq!(kinds(&record), ["folded", "clamped"]);
    assert!(of(&text.replace("1200.000\n", "x\n")).unwrap_err().contains("line 4: column 7 of"));
    let of_title = |title: &str| {
        let record = of(&text.replace("(user, 1000 us period, priority 98, CPU2-noisol)", title)).unwrap();
        let of = figures(&record)[0].clone();
        (of.role, of.cpus, of.isolated, of.policy)
    };
    let expected = |role: &str, cpu: &str, isolated, policy: &str| (role.into(), cpu.into(), isolated, policy.into());
    assert_eq!(of_title("(user, 1000 us period, priority 98, CPU2-noisol)"), expected("", "2", Some(false), "fifo:98"));
    assert_eq!(of_title("(irq, 1000 us period, CPU1)"), expected("irq", "1", Some(true), ""));
    assert_eq!(of_title("(sirq, 1000 us period, CPU1)"), expected("sirq", "1", Some(true), ""));
    let kernel = "(in-kernel periodic task, 100 us period, priority 99)";
    assert_eq!(of_title(kernel), expected("kernel", "", None, "fifo:99"));
}

#[test]
fn a_file_with_several_runs_is_refused() {
    let console = "RTH|----lat min|\nRTS|  0.1|  0.5|  9.9|  0|  0|  00:00:02/00:00:02\n".to_owned();
    let all_cpus = text_of("rtla-timerlat-hist-6.1.txt") + "ALL:        IRQ       Thr\n";
    let plain = text_of("cyclictest-2.4-plain.txt");
    let files = [
        (plain.clone(), plain.replace("(16168)", "(17000)")),
        (console.clone(), console),
        (all_cpus.clone(), all_cpus),
        (text_of("rtla-timerlat-top.txt"), text_of("rtla-timerlat-top.txt").replace("00:01:00", "00:00:01")),
        (text_of("latency-histogram.txt"), text_of("latency-histogram.txt")),
        (text_of("oslat-2.4.txt"), text_of("oslat-2.4.txt")),
        (text_of("latencymon-7.txt"), text_of("latencymon-7.txt")),
        (text_of("rtc-testbench.log"), text_of("rtc-testbench.log")),
    ];
    for (first, second) in files {
        assert!(of(&first).is_ok() && of(&second).is_ok());
        let error = of(&(first + &second)).unwrap_err();
        assert!(error.ends_with(": another run begins here: split the file into its runs"), "{error}");
    }
}

/// cyclictest prints the lines of its threads, too, unless it is quiet.
#[test]
fn a_histogram_has_the_period_of_the_lines_of_its_threads() {
    let lines = "policy: fifo: loadavg: 0.08 0.03 0.05 1/101 3431\n\n\
                 T: 0 ( 7) P:90 I:500 C: 6000 Min: 3 Act: 10 Avg: 9 Max: 632\n\
                 T: 1 ( 8) P:90 I:500 C: 5999 Min: 3 Act: 10 Avg: 9 Max: 1025\n";
    let record = of(&(lines.to_owned() + &text_of("cyclictest-2.4-hist.txt"))).unwrap();
    let all: Vec<_> = figures(&record).iter().map(|of| (of.period_ns, of.policy.as_str())).collect();
    assert_eq!(all, [(Some(500_000), "fifo:90"); 2]);
    assert_eq!(kinds(&record), ["units", "overflow", "omission", "overflow", "omission"]);
    let stopped = of(&(text_of("cyclictest-2.4-hist.txt") + "# Break thread: 7\n# Break value: 1025\n")).unwrap();
    assert!(kinds(&stopped).contains(&"stopped"), "{:?}", stopped.caveats);
}

#[test]
fn the_period_of_cyclictest_is_found_among_combined_options() {
    let period_ns = |options: &str| {
        let text = text_of("cyclictest-2.4.json").replace(" -i1000", "").replace(" -q ", &format!(" {options} "));
        figures(&of(&text).unwrap())[0].period_ns
    };
    for options in ["-mqSi200", "-q --int=200"] {
        assert_eq!(period_ns(options), Some(200_000), "{options}");
    }
}

#[test]
fn other_programs_of_rt_tests_are_refused() {
    let text = text_of("cyclictest-2.4.json").replacen("cyclictest -q", "./signaltest -q", 1);
    let expected = "it is the result of ./signaltest; only cyclictest and oslat can be read";
    assert!(of(&text).unwrap_err().ends_with(expected));
}

#[test]
fn a_thread_of_a_histogram_without_samples_has_no_times() {
    let text = "# Histogram\n000003 000010\t000000\n# Min Latencies: 00003 1000000\n# Avg Latencies: 00003 00000\n\
                # Max Latencies: 00003 00000\n# Histogram Overflows: 00000 00000\n";
    let record = of(text).unwrap();
    let [_, second] = figures(&record) else { panic!("{record:?}") };
    assert_eq!((second.samples, second.min_ns, second.mean_ns, second.max_ns), (Some(0), None, None, None));
}

/// The last cell also counts all later samples.
#[test]
fn samples_in_the_last_cell_have_no_values_if_the_maximum_is_beyond_it() {
    for name in ["oslat-2.4.txt", "oslat-2.4.json"] {
        let record = imported(name);
        let one = &figures(&record)[0];
        let histogram = one.histogram.as_ref().unwrap();
        assert!(one.samples > Some(histogram.total()), "{name}");
        assert!(histogram.iter().all(|(value_ns, _)| value_ns < 32_000), "{name}: {histogram:?}");
    }
    let below = text_of("oslat-2.4.txt").replace("8039", "32").replace("6887", "32");
    let record = of(&below).unwrap();
    let one = &figures(&record)[0];
    assert_eq!(one.samples, Some(one.histogram.as_ref().unwrap().total()), "all are within");
    let plot = of("0 1\n0.5 11\n1.5 3\n2.5 2\n3 1\n").unwrap();
    assert_eq!(figures(&plot)[0].histogram.as_ref().unwrap().total(), 12, "the maximum is unknown");
}

#[test]
fn the_automatic_analysis_of_rtla_is_a_remark() {
    let analysis = "rtla timerlat hit stop tracing\n## CPU 1 hit stop tracing, analyzing it ##\n  IRQ handler delay: \t\t    \
                    27.79 us (65.25 %)\n  Thread latency: \t\t 42.59 us (100%)\n";
    let record = of(&(text_of("rtla-timerlat-hist-6.1.txt") + analysis)).unwrap();
    let expected = "CPU 1 was above the limit: IRQ handler delay 27.79 us (65.25 %), Thread latency 42.59 us (100%)";
    assert_eq!(record.published.as_ref().unwrap().remarks, [expected]);
    assert_eq!(kinds(&record).last(), Some(&"stopped"));
}

#[test]
fn what_punctual_exports_as_hgrm_comes_back() {
    let mut series = record::Series { phase: "load".into(), role: "timer".into(), cpu: Some(1), ..Default::default() };
    [(7, 3), (2_500, 2), (48_123, 1), (-900, 4)].into_iter().for_each(|(ns, count)| series.corrected.add(ns, count));
    series.max_ns = Some(48_123);
    let exported = record::export::hgrm(&Record { series: vec![series.clone(), series.clone()], ..Record::default() });
    let record = of(&exported).unwrap();
    let [first, second] = figures(&record) else { panic!("{record:?}") };
    assert_eq!((&first.histogram, &second.histogram), (&Some(series.corrected.clone()), &Some(series.corrected)));
    assert_eq!((first.max_ns, first.samples, first.phase.contains("load CPU 1")), (Some(48_123), Some(10), true));
    assert!(!kinds(&record).contains(&"units"));
    let other = "       Value     Percentile TotalCount 1/(1-Percentile)\n\n  1.000 0.5 10 2.00\n  9.000 1.0 20\n#[Mean = 5.0, \
                 StdDeviation = 4.0]\n#[Max = 9.000, Total count = 20]\n";
    let record = of(other).unwrap();
    assert_eq!(kinds(&record), ["units", "clamped"]);
    assert_eq!((figures(&record)[0].max_ns, figures(&record)[0].p99_ns), (Some(9_000), Some(9_000)));
    assert!(of(&other.replace("1.0 20", "1.0 2")).unwrap_err().contains("line 4: \"9.000 1.0 2\" is no row"));
}

#[test]
fn two_columns_and_published_rows() {
    let record = of("# table\nvalue,count\n3, 10\n4.5, 20\n").unwrap();
    assert_eq!(figures(&record)[0].histogram.as_ref().unwrap().iter().collect::<Vec<_>>(), [(3_001, 10), (4_503, 20)]);
    assert_eq!(kinds(&record), ["units", "overflow"]);
    // Without a heading, it could be times and values.
    assert_eq!(kinds(&of("1 10\n2 5\n").unwrap()), ["units", "columns", "overflow"]);
    let record = of("000003 000010\t000000\n000005 000001\t000002\n").unwrap();
    assert_eq!(figures(&record).len(), 2);
    assert_eq!(figures(&record)[1].samples, Some(2));
}

/// Imports a text with this unit, if it does not say its own.
fn of_unit(text: &str, unit: Unit) -> Record {
    parse(std::path::Path::new("file"), text, Some(unit)).unwrap()
}

#[test]
fn a_heading_has_the_unit_and_the_order_of_two_columns() {
    for (heading, row, expected_ns) in [
        ("latency_ns,count", "10000,500", 10_000),
        ("latency (ms);count", "10;500", 10_002_431),
        ("Latency [µs]\tSamples", "10\t500", 10_007),
        ("count,latency_us", "500,10", 10_007),
        ("\"hits\" \"usec\"", "500 10", 10_007),
    ] {
        let record = of(&format!("{heading}\n{row}\n")).unwrap();
        let [(ns, 500)] = figures(&record)[0].histogram.as_ref().unwrap().iter().collect::<Vec<_>>()[..] else {
            panic!("{heading}: {record:?}")
        };
        assert!((expected_ns - 8..=expected_ns + 8).contains(&ns), "{heading}: {ns} ns");
        assert_eq!(kinds(&record), ["overflow"], "{heading}: the unit is known");
    }
    let series = of("time_s,latency_us\n0.001,12\n0.002,13\n").unwrap_err();
    assert!(
        series
            .ends_with("line 1: \"time_s,latency_us\" names no number of samples: a histogram needs a column `count`")
    );
}

#[test]
fn the_unit_of_a_file_that_does_not_say_it_can_be_stated() {
    let texts = [
        "3 10\n4 20\n".to_owned(),
        "000003 000010\n000004 000020\n".to_owned(),
        "T: 0 ( 7) P:99 I:1000 C: 30 Min: 3 Act: 4 Avg: 4 Max: 4\n".to_owned(),
        "       0:       0:       3\n       0:       1:       4\n".to_owned(),
        "       Value     Percentile TotalCount 1/(1-Percentile)\n\n  3.0 0.5 10 2.00\n  4.0 1.0 30\n#[Max = 4.0, Total count = 30]\n"
            .to_owned(),
        text_of("cyclictest-2.4-hist.txt"),
    ];
    for text in texts {
        let of = |unit| figures(&of_unit(&text, unit))[0].clone();
        let [ns, us, ms] = [Unit::Ns, Unit::Us, Unit::Ms].map(of);
        assert_eq!(ns.samples, us.samples, "{text}");
        let largest =
            |of: &Figures| of.max_ns.or_else(|| Some(of.histogram.as_ref()?.iter().last()?.0)).unwrap() as f64;
        assert!((largest(&us) / largest(&ns) - 1_000.0).abs() < 250.0, "{text}: {ns:?} {us:?}");
        assert!((largest(&ms) / largest(&us) - 1_000.0).abs() < 2.0, "{text}: {us:?} {ms:?}");
        let stated = &of_unit(&text, Unit::Ns).caveats;
        assert!(stated.iter().any(|caveat| caveat.text.ends_with("nanoseconds were stated with --unit")), "{stated:?}");
    }
    // A file with a unit keeps it.
    assert_eq!(
        of_unit(&text_of("oslat-2.4.txt"), Unit::Ns),
        parse(&PathBuf::from("file"), &text_of("oslat-2.4.txt"), None).unwrap()
    );
    let nanoseconds =
        of("T: 0 (31350) P:90 I:1000 C:   2000 Min:  11909 Act:   23602 Avg:   14555 Max:  216729\n").unwrap();
    assert!(nanoseconds.caveats.iter().any(|caveat| caveat.text.contains("its mean is longer than its period")));
}

#[test]
fn cut_and_contradictory_texts_of_cyclictest_are_refused() {
    let text = text_of("cyclictest-2.4-hist.txt");
    let wrong = |from: &str, to: &str| of(&text.replacen(from, to, 1)).unwrap_err();
    let without = |start: &str| {
        let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with(start)).collect();
        of(&lines.join("\n")).unwrap_err()
    };
    assert!(
        without("000005 ").ends_with("thread 0: the rows have 4984 samples, `# Total:` has 5977"),
        "{}",
        without("000005 ")
    );
    assert!(without("# Histogram Over").contains("it has no line `# Histogram Overflows:` with 2 numbers"));
    assert!(wrong("000003 000199", "000003 -00199").contains("is no row of a histogram"));
    assert!(wrong("000003 000199", "000003 99999999999999999999999").contains("is no row of a histogram"));
    assert!(
        wrong("# Max Latencies: 00632 01025", "# Max Latencies: 00632").contains("`# Max Latencies:` with 2 numbers")
    );
    assert!(
        wrong("# Max Latencies: 00632", "# Max Latencies: 00010")
            .contains("thread-0: the histogram has samples above the maximum of 10 us")
    );
    assert!(wrong("# Min Latencies: 00003", "# Min Latencies: 00004").contains("samples below the minimum of 4 us"));
    let twice = of(&format!("{text}{text}")).unwrap_err();
    assert!(twice.ends_with(": another run begins here: split the file into its runs"), "{twice}");
    let no_summary = of(&text[..text.find("# Total").unwrap()]).unwrap_err();
    assert!(no_summary.ends_with("it has no line `# Min Latencies:` after its rows; the file is cut"), "{no_summary}");
    let rows = "# rows\n000003 000100\n000900 00012";
    assert!(of(rows).unwrap_err().ends_with("line 3: \"000900 00012\" is no row of a histogram; the file is cut"));
    assert!(of("000003 000001\n000003 000001\n000002 000001\n").unwrap_err().contains("line 2: "));
    let plain = text_of("cyclictest-2.4-plain.txt");
    let cut = of(&plain[..plain.rfind("Avg:").unwrap()]).unwrap_err();
    assert!(cut.contains("line 3: ") && cut.ends_with("is no whole line of a thread; the file is cut"), "{cut}");
    // The last drawing of a screen can be cut.
    let redrawn = of(&format!("{plain}T: 1 (16169) P:90 I:500 C: ")).unwrap();
    assert_eq!(figures(&redrawn).len(), 2);
}

#[test]
fn other_cut_and_contradictory_texts_are_refused() {
    let oslat = text_of("oslat-2.4.txt");
    assert!(of(&oslat[..oslat.find("Maximum").unwrap()]).unwrap_err().contains("it has no lines `Maximum:`"));
    let latmus = "# context: user\n# sampling period: 250 microseconds\n";
    assert!(of(latmus).unwrap_err().ends_with("it has no line `# sample count:`; the file is cut"));
    let rtla = text_of("rtla-timerlat-hist-6.1.txt");
    let rows: Vec<&str> = rtla.lines().filter(|line| line.starts_with(|first: char| first.is_ascii_digit())).collect();
    let swapped = rtla.replacen(&format!("{}\n{}\n", rows[0], rows[1]), &format!("{}\n{}\n", rows[1], rows[0]), 1);
    assert!(of(&swapped).unwrap_err().contains("is not above the row before it"));
}

#[test]
fn a_file_that_is_cut_after_whole_lines_is_refused() {
    let before = |text: &str, at: &str| of(&text[..text.find(at).unwrap_or_else(|| panic!("no {at}"))]).unwrap_err();
    let hgrm = "       Value     Percentile TotalCount 1/(1-Percentile)\n\n  1.000 0.5 10 2.00\n  9.000 1.0 20\n#[Mean = 5.0, \
                StdDeviation = 4.0]\n#[Max = 9.000, Total count = 20]\n";
    assert!(of(hgrm).is_ok());
    assert!(
        before(hgrm, "#[Max").ends_with("it has no line `#[Max ... Total count ...]` after its rows; the file is cut")
    );
    assert!(
        before(hgrm, "= 20]").contains("line 6: it has no number after `Total count`"),
        "{}",
        before(hgrm, "= 20]")
    );
    for (from, to, expected) in [
        ("  9.000 1.0 20\n", "", "its rows have 10 samples, but `Total count` is 20; the file is cut"),
        ("count = 20", "count = 21", "its rows have 20 samples, but `Total count` is 21; the file is cut"),
        ("9.000 1.0 20", "9.000 0.9 20", "its rows end at the share 0.9 of 20 samples; the file is cut"),
    ] {
        let error = of(&hgrm.replace(from, to)).unwrap_err();
        assert!(error.ends_with(expected), "{error}");
    }
    let own = "# rest CPU 0 (timer), corrected, us\n       Value     Percentile TotalCount 1/(1-Percentile)\n\n  1.000 0.5 10 2.00\n  \
               9.000 0.75 15 4.00\n#[Max = 90.000, Total count = 20]\n";
    assert_eq!(figures(&of(own).unwrap())[0].samples, Some(20), "an imported histogram can lack its longest samples");
    assert!(of(&own.replace("0.75 15 4", "0.95 15 4")).unwrap_err().contains("its rows end at the share 0.95"));
    let stress = text_of("stress-ng-0.15-cyclic.txt");
    for at in ["   95.40%", ":     270701 ns", "latency percentiles"] {
        let error = before(&stress, at);
        assert!(error.ends_with("it has no line `cyclic: 99.99%: ...`; the output is cut"), "{error}");
    }
    let latencymon = text_of("latencymon-7.txt");
    let error = before(&latencymon, "Driver with highest DPC routine execution");
    assert!(
        error.ends_with("it has no line `Driver with highest DPC routine execution time`; the report is cut"),
        "{error}"
    );
    let rtla = text_of("rtla-timerlat-hist-6.1.txt");
    assert!(before(&rtla, "over:").ends_with("it has no line `over:` after its rows; the output is cut"));
    assert!(before(&rtla, "max:").ends_with("it has no line `max:`; the output is cut"));
    let no_summary = of(&rtla[..rtla.find("count:").unwrap()]).unwrap();
    let overflow = no_summary.caveats.iter().find(|caveat| caveat.kind == "overflow").unwrap();
    assert!(overflow.text.ends_with("only their number is known"), "{}", overflow.text);
    let json = text_of("cyclictest-2.4.json");
    let error = of(&json.replace("\"num_threads\": 2", "\"num_threads\": 4")).unwrap_err();
    assert!(error.ends_with("num_threads is 4, but the number of its threads is 2"), "{error}");
    for (text, format) in [
        (&json[..json.find("\"thread\"").unwrap()], "(cyclictest and oslat, JSON)"),
        (
            "{\"version\": 3, \"sysinfo\": {\"cpus_online\": 2}, \"cpu\": {\"0\": {\"histogram\": {\"3\": 3",
            "(jitterdebugger, JSON)",
        ),
    ] {
        let error = of(text).unwrap_err();
        assert!(error.contains(format) && error.contains("EOF"), "{error}");
    }
}

#[test]
fn maxima_that_contradict_the_histogram_are_refused_in_all_formats() {
    let latmus = "# sampling period: 500 microseconds\n# context: user\n# min latency: -0.213\n# avg latency: 0.902\n# max latency: \
                  307.915\n# sample count: 1000\n0 900\n1 80\n7 15\n199+ 5\n";
    let rteval = text_of("rteval-timerlat.xml");
    let maximum = rteval.find("<maximum unit=\"us\">").expect("a maximum");
    let maximum = &rteval[maximum..maximum + rteval[maximum..].find("</maximum>").unwrap()];
    for (text, from, to, expected) in [
        (
            text_of("cyclictest-2.4-hist.txt"),
            "# Max Latencies: 00632",
            "# Max Latencies: 00058",
            "23 samples are beyond the last cell",
        ),
        (text_of("cyclictest-2.4.json"), "\"max\": 632", "\"max\": 59", "samples are beyond the last cell"),
        (
            text_of("cyclictest-2.4.json"),
            "\"max\": 632",
            "\"max\": 10000000000000000000000000",
            "max of thread 0 is out of range",
        ),
        (
            text_of("cyclictest-2.4.json"),
            "\"max\": 632",
            "\"max\": 2",
            "the histogram has samples above the maximum of 2 us",
        ),
        (
            text_of("rtla-timerlat-hist-6.1.txt"),
            "max:      13371",
            "max:        951",
            "123 samples are beyond the last cell",
        ),
        (text_of("rtla-timerlat-hist-6.1.txt"), "avg:        158", "avg:      99158", "is above its maximum, 13371 us"),
        (
            latmus.to_owned(),
            "max latency: 307.915",
            "max latency: 3.915",
            "the histogram has samples above the maximum of 3.915 us",
        ),
        (latmus.to_owned(), "max latency: 307.915", "max latency: 7.915", "5 samples are beyond the last cell"),
        (rteval.clone(), maximum, "<maximum unit=\"us\">1", "above"),
        (
            rteval.clone(),
            maximum,
            "<maximum unit=\"us\">900000",
            "no cell of the histogram has the maximum of 900000 us",
        ),
        (
            "T: 0 ( 3431) P:99 I:1000 C: 100000 Min:      7 Act:   10 Avg:   10 Max:      18\n".to_owned(),
            "10 Max",
            "100 Max",
            "its mean, 100 us",
        ),
    ] {
        assert!(of(&text).is_ok(), "{:?}", of(&text));
        assert!(text.contains(from), "{from}");
        let error = of(&text.replacen(from, to, 1)).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
    let all = text_of("rtla-timerlat-hist-6.1.txt") + "ALL:        IRQ       Thr\ncount:     9382      9382\n";
    assert!(of(&all).is_ok());
    let error = of(&all.replace("9382      9382", "9999      9382")).unwrap_err();
    assert!(
        error.ends_with("the columns of timerlat/irq have 9382 samples, their count after `ALL:` is 9999"),
        "{error}"
    );
    // Old versions of latmus do not mark the cell of the longest times.
    let unmarked = of(&latmus.replace("199+", "199")).unwrap();
    assert!(unmarked.caveats.iter().any(|caveat| caveat.text.contains("the last cell also contains later samples")));
    assert_eq!(figures(&unmarked)[0].histogram.as_ref().unwrap().total(), 995);
}

#[test]
fn exports_of_imported_records_keep_populations_and_maxima() {
    let rtla = of("# RTLA timerlat histogram\n# Time unit is microseconds (us)\nIndex   IRQ-000   Thr-000\n0 5 0\n1 1 7\nover: 1 0\n\
                   count: 7 7\nmin: 0 1\navg: 0 1\nmax: 316 1\n")
    .unwrap();
    assert_eq!(rtla.published.as_ref().unwrap().figures.len(), 2);
    let hgrm = "# timerlat CPU 0 (timerlat/irq), raw, us\n Value Percentile TotalCount 1/(1-Percentile)\n\n 0.999 0.5 5 2.0\n 1.999 \
                0.857142857 6 7.0\n#[Max = 316.000, Total count = 7]\n\n# timerlat CPU 0 (timerlat/thread), raw, us\n Value Percentile \
                TotalCount 1/(1-Percentile)\n\n 1.999 1.0 7\n#[Max = 1.000, Total count = 7]\n";
    let back = of(hgrm).unwrap();
    let roles: Vec<&str> = figures(&back).iter().map(|figures| figures.role.as_str()).collect();
    assert_eq!(roles, ["timerlat/irq", "timerlat/thread"], "no sum of both");
    let foreign = [
        (", raw, us", ""),
        ("(timerlat/irq)", ""),
        ("0.857142857 6 7.0", "1.0 6"),
        ("316.000, Total count = 7", "1.999, Total count = 6"),
        ("1.000, Total", "1.999, Total"),
    ]
    .iter()
    .fold(hgrm.to_owned(), |text, (from, to)| text.replacen(from, to, 2));
    assert_eq!(figures(&of(&foreign).unwrap()).len(), 2, "histograms of another program are no sum");
    let lava = "punctual-run pass\npunctual-valid unknown\nt0-max-latency pass 217.000 us\n";
    assert!(!kinds(&of(lava).unwrap()).contains(&"invalid"));
    assert!(kinds(&of(&lava.replace("valid unknown", "valid fail")).unwrap()).contains(&"invalid"));
}

#[test]
fn a_run_of_cyclictest_or_rteval_that_a_limit_ended_says_so() {
    let json = text_of("cyclictest-2.4.json").replace("-i1000 ", "-i1000 -b 500 ");
    assert!(kinds(&of(&json).unwrap()).contains(&"stopped"));
    assert!(!kinds(&of(&json.replace("-b 500", "-b 5000")).unwrap()).contains(&"stopped"), "the limit was not reached");
    let rteval = text_of("rteval-timerlat.xml");
    assert!(!kinds(&of(&rteval).unwrap()).contains(&"stopped"));
    for mark in ["<stoptrace_invoked invoked=\"true\"/>", "<abort_report reason=\"breaktrace\"/>"] {
        let text = rteval.replace("</timerlat>", &format!("{mark}</timerlat>"));
        assert!(kinds(&of(&text).unwrap()).contains(&"stopped"), "{mark}");
    }
    let stop = "<rteval version=\"3.8\"><Measurements><timerlat command_line=\"rtla timerlat hist -E3500\"><stoptrace_invoked \
                invoked=\"true\"/><stoptrace_report CPU=\"1\"><Thread_latency><latency \
                unit=\"us\">42.59</latency></Thread_latency></stoptrace_report></timerlat></Measurements></rteval>";
    let record = of(stop).unwrap();
    assert_eq!(kinds(&record), ["stopped", "mixed", "overflow", "overflow"]);
    assert_eq!((figures(&record)[0].max_above_ns, figures(&record)[0].cpus.as_str()), (Some(42_590), "1"));
}

#[test]
fn the_command_line_of_cyclictest_has_the_policy_and_the_file_the_rest() {
    let json = text_of("cyclictest-2.4.json");
    assert!(json.contains("-p90"));
    let policy = |options: &str| figures(&of(&json.replace("-p90", options)).unwrap())[1].policy.clone();
    for (options, expected) in [
        ("-p90", "fifo:90"),
        ("--priority=80", "fifo:80"),
        ("--priority 80", "fifo:80"),
        ("--policy=rr -p5", "rr:5"),
        ("-p5 --policy RR", "rr:5"),
        ("-y fifo -p70", "fifo:70"),
        ("--policy other", "other"),
        ("--policy=batch", "batch"),
        ("--policy other -p5", "fifo:5"),
        ("", "other"),
        ("-y fifo", "fifo"),
        ("-p x", ""),
    ] {
        assert_eq!(policy(options), expected, "{options}");
    }
    let record = of(&json).unwrap();
    assert_eq!(figures(&record)[1].duration_ns, Some(6_000_000_000));
    assert_eq!(record.machine.preempt.as_deref(), Some("dynamic (mode not readable)"));
    let real_time = of(&json.replace("\"realtime\": 0", "\"realtime\": 1")).unwrap();
    assert_eq!(real_time.machine.preempt.as_deref(), Some("PREEMPT_RT"));
    let latmus = "# Linux version 6.12.85-cip22 (gcc 12) #1 SMP PREEMPT_RT Mon\n# sampling period: 250 microseconds\n# context: \
                  user\n# sample count: 2\n1 2\n";
    assert_eq!(of(latmus).unwrap().machine.preempt.as_deref(), Some("PREEMPT_RT"));
}

#[test]
fn runs_of_stress_ng_and_of_a_log_are_kept_apart() {
    let stress = text_of("stress-ng-0.15-cyclic.txt");
    for text in [stress.clone(), text_of("cyclictest-2.4-hist.txt"), text_of("cyclictest-2.4-verbose.txt")] {
        let error = of(&format!("{text}{text}")).unwrap_err();
        assert!(error.ends_with("another run begins here: split the file into its runs"), "{error}");
    }
    let several = of(&stress.replace("dispatching hogs: 1 cyclic", "dispatching hogs: 2 cpu, 4 cyclic")).unwrap();
    assert_eq!(kinds(&several), ["overflow", "mixed", "omission"]);
    let without =
        stress.lines().filter(|line| !line.contains("Note:")).map(|line| format!("{line}\n")).collect::<String>();
    let first = of(&without.replace("completed in 2.00s", "completed in 600.00s (10 mins, 0.00 secs)")).unwrap();
    let overflow = first.caveats.iter().find(|caveat| caveat.kind == "overflow").unwrap();
    assert_eq!(
        overflow.text,
        "cyclic: the 10,000 samples of the figures are only the first 0.2 % of the run; --cyclic-samples keeps more"
    );
    assert!(!kinds(&of(&without.replace("completed in 2.00s", "completed in 1.20s")).unwrap()).contains(&"overflow"));
}

#[test]
fn one_cell_of_rtla_ends_at_the_maximum() {
    let text = "# RTLA timerlat histogram\n# Time unit is microseconds (us)\n# Duration:   0 00:00:05\nIndex   IRQ-000   Thr-000\n\
                0          1000       1000\nover:         0         0\ncount:     1000      1000\nmin:          2         5\navg:         \
                20        25\nmax:         41        45\n";
    let record = of(text).unwrap();
    let times: Vec<_> = figures(&record).iter().map(|of| (of.p50_ns, of.max_ns)).collect();
    assert_eq!(times, [(Some(41_000), Some(41_000)), (Some(45_000), Some(45_000))]);
    let beyond = text.replace("over:         0 ", "over:         1 ").replace("count:     1000 ", "count:     1001 ");
    assert!(of(&beyond).unwrap_err().contains("does not show the width of its cells"), "{beyond}");
}

#[test]
fn the_caveat_of_an_overflow_has_the_end_of_the_last_cell_if_the_file_shows_it() {
    let overflow = |name: &str| {
        let record = imported(name);
        record.caveats.iter().find(|caveat| caveat.kind == "overflow").unwrap().text.clone()
    };
    for name in ["cyclictest-2.4-hist.txt", "cyclictest-2.4.json"] {
        assert!(overflow(name).contains("last cell of the histogram, which ends at 60 us"), "{}", overflow(name));
    }
    for name in ["cyclictest-2.10-style-sigstop-1s.txt", "rtla-timerlat-hist-6.1.txt"] {
        assert!(overflow(name).contains("last cell of the histogram;"), "{}", overflow(name));
    }
    let json = text_of("cyclictest-2.4.json");
    let mut file: serde_json::Value = serde_json::from_str(&json).unwrap();
    file["thread"]["0"]["histogram"] = serde_json::json!({});
    let none = of(&file.to_string()).unwrap();
    assert!(none.caveats.iter().any(|caveat| caveat.text.starts_with("thread 0: 6000 samples are beyond")), "{none:?}");
}

#[test]
fn parts_of_a_file_are_not_left_out_in_silence() {
    let both = of(&(text_of("cyclictest-2.4-plain.txt") + &text_of("rtla-timerlat-hist-6.1.txt"))).unwrap();
    assert!(both.caveats.iter().any(|caveat| caveat.text.starts_with("the file also contains ")), "{:?}", both.caveats);
    let smi = of("T: 0 ( 7) P:99 I:1000 C: 20 Min: 5 Act: 10 Avg: 11 Max: 28 SMI:       3\n").unwrap();
    assert_eq!(figures(&smi)[0].note, "3 system management interrupts");
    let quoted = text_of("cyclictest-2.4.json").replacen("cyclictest -q", "cyclictest --note=\"a b\" -q", 1);
    assert_eq!(
        figures(&of(&quoted).unwrap()),
        figures(&of(&quoted.replace("\"a b\"", "a.b")).unwrap())
            .iter()
            .map(|of| Figures { command: of.command.replace("a.b", "\"a b\""), ..of.clone() })
            .collect::<Vec<_>>()
    );
    let in_one_line = quoted.replace('\n', "");
    assert_eq!(figures(&of(&in_one_line).unwrap()), figures(&of(&quoted).unwrap()));
    let mark = of(&format!("\u{feff}{}", text_of("cyclictest-2.4.json"))).unwrap();
    assert_eq!(figures(&mark), figures(&imported("cyclictest-2.4.json")));
}

#[test]
fn a_thread_without_samples_has_no_figures() {
    let text = r#"{"cpu":{"0":{"histogram":{"3":3678,"4":220},"count":3898,"min":3,"max":4,"avg":3.06},
        "1":{"histogram":{},"count":0,"min":0,"max":0,"avg":0}}}"#;
    let record = of(text).unwrap();
    let all = &record.published.as_ref().unwrap().figures;
    assert_eq!((all[0].phase.as_str(), all[0].min_ns, all[0].p50_ns), ("all-threads", Some(3_000), Some(3_999)));
    assert_eq!((all[2].samples, all[2].min_ns, all[2].mean_ns, all[2].max_ns), (Some(0), None, None, None));
}

#[test]
fn percentiles_of_oslat_are_not_below_its_minimum() {
    for name in ["oslat-2.4.txt", "oslat-2.4.json"] {
        let record = imported(name);
        let one = &figures(&record)[0];
        assert!(one.p50_ns >= one.min_ns && one.p99_ns <= Some(1_000), "{name}: {one:?}");
    }
}

#[test]
fn mistakes_have_their_line() {
    let wrong = |text: &str| of(text).unwrap_err();
    assert!(wrong("hello").starts_with("FILE is in no format that punctual reads: cyclictest and oslat, JSON; "));
    assert!(wrong("").starts_with("FILE is in no format"));
    assert_eq!(
        wrong("3 1\n2 1\n"),
        "FILE is not whole (two columns: value in us, number of samples): line 2: \"2 1\" is not above the row before it"
    );
    let hist = std::fs::read_to_string(sample("cyclictest-2.4-hist.txt")).unwrap();
    let cut = hist.replace("000004 000673\t001067", "000004 000673");
    assert!(wrong(&cut).contains("line 7: 1 counts for 2 threads"), "{}", wrong(&cut));
    let json = std::fs::read_to_string(sample("cyclictest-2.4.json")).unwrap();
    let too_many = json.replacen("\"3\": 199", "\"3\": 99199", 1);
    assert!(
        wrong(&too_many).ends_with("thread 0: the histogram has 104977 samples, but only 6000 cycles"),
        "{}",
        wrong(&too_many)
    );
    let missing = import(&sample("nothing"), None);
    assert!(matches!(missing, Err(ImportError::Read { .. })));
}

#[test]
fn hostile_files_are_refused() {
    let many: String = (0..20_000).map(|thread| format!("t{thread}-max-latency pass 1 us\n")).collect();
    assert!(of(&many).unwrap_err().ends_with("it has 20,000 figures, at most 10,000 can be imported"));
    let entities = "<!DOCTYPE r [<!ENTITY a \"aaaa\">]><rteval>&a;</rteval>";
    assert!(of(entities).unwrap_err().contains("line 1: "), "{}", of(entities).unwrap_err());
    assert!(of(&format!("<rteval>{}", "<a>".repeat(300_000))).is_err());
}

#[test]
fn a_file_is_read_by_its_own_format() {
    for (name, expected) in SAMPLES {
        let text = text_of(name);
        assert_eq!(format_of(&text).unwrap().name(), expected, "{name}");
        // Two columns are the last format: they also are the rows of other tools.
        let others = &FORMATS[..FORMATS.len() - 1];
        let all: Vec<_> = others.iter().filter(|format| format.is_it(&text)).map(|format| format.name()).collect();
        assert_eq!(all, [expected], "{name} is recognised by these formats");
        assert!(!figures(&imported(name)).is_empty(), "{name}");
        // No format assumes that it recognised the text.
        for format in FORMATS {
            let _ = format.read(&text, None);
        }
    }
}

#[test]
fn a_record_is_read_as_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.punctual.json");
    let record = imported("oslat-2.4.json");
    std::fs::write(&path, record::file::to_json(&record)).unwrap();
    assert_eq!(read(&path, None).unwrap(), record);
    assert_eq!(read(&sample("oslat-2.4.json"), None).unwrap(), record);
    std::fs::write(&path, "{}").unwrap();
    assert!(read(&path, None).unwrap_err().to_string().contains("is not a run record"));
}

#[test]
fn rteval_has_a_histogram_a_core() {
    let record = imported("rteval-cyclictest.xml");
    let [first, second] = figures(&record) else { panic!("{record:?}") };
    assert_eq!((short(first), first.cpus.as_str()), ((Some(20), Some(41), Some(41)), "0"));
    assert_eq!((first.min_ns, first.mean_ns, first.mode_ns), (Some(3_000), Some(9_500.0), Some(3_000)));
    assert_eq!(
        (first.policy.as_str(), first.period_ns, first.duration_ns),
        ("fifo:95", Some(100_000), Some(605_000_000_000))
    );
    assert_eq!((first.said.as_str(), second.max_ns), ("kcompile, hackbench", Some(141_000)));
    // The second core was later than its period.
    assert_eq!(kinds(&record), ["omission"]);
    let machine = &record.machine;
    assert_eq!((machine.kernel.as_deref(), machine.preempt.as_deref()), (Some("6.12.0-rt"), Some("PREEMPT_RT")));
    assert_eq!((machine.clocksource.as_deref(), record.started_at.as_str()), (Some("tsc"), "2026-11-20T12:00:01"));
}

#[test]
fn rteval_adds_the_latencies_of_timerlat_and_leaves_out_the_longest() {
    let record = imported("rteval-timerlat.xml");
    let [figures] = figures(&record) else { panic!("{record:?}") };
    assert_eq!((figures.samples, figures.max_ns, figures.max_above_ns), (Some(60), None, Some(29_000)));
    assert_eq!((figures.role.as_str(), figures.period_ns), ("timerlat/all", Some(100_000)));
    assert_eq!(kinds(&record), ["mixed", "overflow"]);
}

#[test]
fn rteval_leaves_out_all_statistics_beyond_the_range() {
    let text = text_of("rteval-cyclictest.xml");
    let (head, rest) = text.split_once("<system").unwrap();
    let tail = &rest[rest.find("</cyclictest>").unwrap()..];
    let record = of(&format!("{head}{tail}")).unwrap();
    let [none] = figures(&record) else { panic!("{record:?}") };
    assert_eq!((none.samples, none.max_ns, none.max_above_ns), (None, None, Some(3_500_000)));
    assert!(record.caveats[1].text.contains("exceeded the range of 3500 us"), "{:?}", record.caveats);
    let wrong = |from: &str, to: &str| of(&text.replacen(from, to, 1)).unwrap_err();
    assert!(wrong("value=\"15\"", "value=\"16\"").ends_with("line 26: the histogram has 21 samples, <samples> is 20"));
    assert!(wrong("value=\"15\"", "value=\"x\"").contains("line 27: <bucket> must have an index"));
    assert!(wrong("<mode unit=\"us\">", "<mode>").contains("line 23: the unit of <mode> must be us or ns (got none)"));
    assert!(wrong("</core>", "</cpu>").contains("line 30: "), "{}", wrong("</core>", "</cpu>"));
    assert!(
        of(&format!("{head}</cyclictest></Measurements></rteval>").replace("-h 3500", ""))
            .unwrap_err()
            .contains("no figures")
    );
}

#[test]
fn stress_ng_keeps_the_first_samples() {
    let record = imported("stress-ng-0.15-cyclic.txt");
    let [figures] = figures(&record) else { panic!("{record:?}") };
    assert_eq!((figures.samples, figures.policy.as_str(), figures.period_ns), (Some(10_000), "rr", Some(100_000)));
    assert_eq!((figures.min_ns, figures.max_ns, figures.mode_ns), (Some(8_140), Some(270_701), Some(16_523)));
    assert_eq!((figures.p50_ns, figures.mean_ns), (Some(17_464), Some(19_469.44)));
    assert_eq!(figures.histogram.as_ref().unwrap().total(), 10_000);
    assert!(figures.note.contains("99.90 % "), "{}", figures.note);
    assert_eq!(kinds(&record), ["overflow", "omission"]);
    let text = text_of("stress-ng-0.15-cyclic.txt");
    let yaml = "---\nsystem-info:\n      stress-ng-version: 0.15.06\n      hostname: vm\n      release: 6.1\n      version: '#1 SMP'\n\
                metrics:\n    - stressor: cyclic\n";
    let both = of(&format!("{text}{yaml}")).unwrap();
    assert_eq!((both.tool.version.as_str(), both.machine.kernel_build.as_deref()), ("0.15.06", Some("#1 SMP")));
    assert!(of(yaml).unwrap_err().contains("the YAML of stress-ng has no latencies"));
    assert!(
        of(&text.replace("10000 samples", "9999 samples"))
            .unwrap_err()
            .contains("has 10000 samples, but the run only 9999")
    );
    assert!(of(&text.replace("min: 8140", "min: x")).unwrap_err().contains("line 5: "));
    let cut = of(&text.lines().take(3).collect::<Vec<_>>().join("\n")).unwrap_err();
    assert!(cut.ends_with("the output is cut"), "{cut}");
}

#[test]
fn hwlatdetect_sees_a_part_of_the_time() {
    let record = imported("hwlatdetect-2.4.txt");
    let [figures] = figures(&record) else { panic!("{record:?}") };
    assert_eq!((short(figures), figures.cpus.as_str()), ((Some(3), Some(214), Some(214)), "0-3"));
    assert_eq!((figures.duration_ns, figures.probe.as_str()), (Some(600_000_000_000), "noise"));
    assert!(figures.note.starts_with("2 system management interrupts"));
    assert_eq!(kinds(&record), ["overflow", "omission", "mixed"]);
    assert!(record.caveats[2].text.contains("500000 us of each 1000000 us"), "{:?}", record.caveats);
    let text = text_of("hwlatdetect-2.4.txt");
    let (head, samples) = text.split_once("ts: ").unwrap();
    let quiet = head.replace("214us", "Below threshold").replace(": 3", ": 0");
    assert_eq!(self::figures(&of(&quiet).unwrap())[0].max_ns, None);
    // The file of --report has the samples alone.
    let report = of(&format!("ts: {samples}")).unwrap();
    assert_eq!(short(&self::figures(&report)[0]), (Some(3), Some(214), Some(214)));
    assert!(of(&text.replace("inner:15", "inner:x")).unwrap_err().contains("line 20: "));
    assert!(of(&text.replace("outer:214", "outer:215")).unwrap_err().contains("a sample has 215 us"));
    assert!(of(&text[..text.rfind("ts: ").unwrap()]).unwrap_err().contains("it has 2 samples, but recorded 3"));
    assert!(of(&text[..text.find("Max").unwrap()]).unwrap_err().contains("the output is cut"));
}

#[test]
fn the_last_table_of_rtla_top_counts() {
    let record = imported("rtla-timerlat-top.txt");
    let all = figures(&record);
    let names: Vec<_> = all.iter().map(|of| (of.role.as_str(), of.cpus.as_str(), of.samples, of.max_ns)).collect();
    assert_eq!(
        names,
        [
            ("timerlat/irq", "0", Some(60_001), Some(17_000)),
            ("timerlat/thread", "0", None, Some(43_000)),
            ("timerlat/irq", "1", Some(60_000), Some(22_000))
        ]
    );
    assert_eq!((all[1].mean_ns, all[1].duration_ns), (Some(5_000.0), Some(60_000_000_000)));
    assert_eq!(kinds(&record), ["mixed", "overflow"]);
    let text = text_of("rtla-timerlat-top.txt");
    let redrawn = format!(
        "\u{1b}c{text}\u{1b}c{}",
        text.replace("(us)", "(ns)").replace("CPU COUNT", "\u{1b}[2;30;47mCPU COUNT")
    );
    assert_eq!(figures(&of(&redrawn).unwrap())[0].max_ns, Some(17));
    assert!(of(&text.replace("  17 |", "   x |")).unwrap_err().contains("line 4: "));
    assert!(of(&text.replace("(us)", "")).unwrap_err().contains("line 4: "));
}

#[test]
fn the_table_of_osnoise_has_the_longest_noise() {
    let record = imported("rtla-osnoise-top.txt");
    let [first, second] = figures(&record) else { panic!("{record:?}") };
    assert_eq!((first.max_ns, first.duration_ns, first.probe.as_str()), (Some(57_000), Some(53_100_000_000), "noise"));
    assert_eq!((second.max_ns, second.note.contains("6250 us of noise in a period")), (Some(33_000), true));
    let text = text_of("rtla-osnoise-top.txt");
    let hardware = "Hardware-related Noise\nduration:   0 00:01:00 | time is in us\nCPU Period Runtime\n  2 #5  3750000  12   99.99968   9   4   3   0\n";
    assert_eq!(figures(&of(hardware).unwrap())[0].phase, "hwnoise");
    assert!(of(&text.replace("99.42749", "199.42749")).unwrap_err().contains("line 4: "));
    assert!(of(&text[..text.find("  0 #").unwrap()]).unwrap_err().contains("no row of a CPU"));
}

#[test]
fn sockperf_halves_round_trips() {
    let (tcp, rtt) = (imported("sockperf-3.7-tcp.txt"), imported("sockperf-3.7-udp-rtt.txt"));
    for (record, trips, role) in [(&tcp, 2.0, "tcp"), (&rtt, 1.0, "")] {
        let [figures] = figures(record) else { panic!("{record:?}") };
        let text = text_of(&record.published.as_ref().unwrap().name);
        let printed = |name: &str| {
            let (_, rest) = text.split_once(name).unwrap();
            rest.split(['=', '\u{1b}', '\n']).find_map(|part| part.trim().parse::<f64>().ok()).unwrap()
        };
        let largest_ns = figures.max_ns.unwrap() as f64;
        assert!((largest_ns - printed("<MAX> observation") * 1e3 * trips).abs() < 1.0, "{largest_ns} {text}");
        assert!((figures.p99_ns.unwrap() as f64 - printed("percentile 99.000") * 1e3 * trips).abs() < 1.0);
        assert_eq!(
            (figures.role.as_str(), figures.probe.as_str(), record.tool.version.as_str()),
            (role, "udp", "3.7-no.git")
        );
    }
    assert_eq!((kinds(&tcp), kinds(&rtt)), (vec!["units", "omission"], vec!["omission"]));
    let text = text_of("sockperf-3.7-tcp.txt");
    let lossy = of(&text.replace("dropped messages = 0", "dropped messages = 7")).unwrap();
    assert!(kinds(&lossy).contains(&"overflow"), "{:?}", lossy.caveats);
    assert!(
        of(&text[..text.find("Summary:").unwrap()])
            .unwrap_err()
            .ends_with("server 0 has no line `Summary:`; the output is cut")
    );
    assert!(of(&text.replace("<MAX> observation =", "<MAX> observation = x")).unwrap_err().contains("line 16: "));
}

/// The percentiles are those of the Python port of HdrHistogram.
#[test]
fn a_log_of_another_library_is_summed_by_tag() {
    let record = imported("hdrhistogram-python.hlog");
    let [summed] = figures(&record) else { panic!("{record:?}") };
    assert_eq!((summed.samples, summed.max_ns), (Some(1004), None));
    assert_eq!(kinds(&record), ["units", "mixed", "units"]);
    let text = text_of("hdrhistogram-python.hlog");
    // The log of its second interval alone; the port prints whole ms, so the maximum is corrected by hand.
    let lines: Vec<&str> = text.lines().collect();
    let exact = lines[4].replacen("7.000000", "7.654321", 1);
    let record = of(&[lines[1], &exact].join("\n")).unwrap();
    let [second] = figures(&record) else { panic!("{record:?}") };
    assert_eq!((second.samples, second.p50_ns, second.p99_ns), (Some(501), Some(32_255), Some(246_783)));
    assert_eq!((second.max_ns, second.duration_ns), (Some(7_654_321), Some(1_000_000_000)));
    let tagged = of(&format!("{}\nTag=a,{}\nTag=b,{}\n", lines[1], lines[3], lines[4])).unwrap();
    assert_eq!(
        figures(&tagged).iter().map(|of| (of.phase.as_str(), of.samples)).collect::<Vec<_>>(),
        [("a", Some(500)), ("b", Some(501))]
    );
    let wrong = |line: &str| of(&format!("{}\n{line}\n", lines[1])).unwrap_err();
    assert!(wrong("0,1,2").ends_with("line 2: an interval has 4 columns: start, length, maximum, histogram (got 3)"));
    assert!(wrong("0,1,x,HIST").contains("line 2: \"x\" is no number"));
    assert!(wrong("0,1,2,HIST").contains("line 2: "));
    assert!(wrong("0,1,2,AAAAAAAA").contains("its first word is 0x00000000"));
    assert!(wrong(&lines[4][..lines[4].len() - 40]).contains("line 2: the histogram is cut"));
    assert!(of(lines[1]).unwrap_err().contains("it has no histogram"));
}

#[test]
fn latency_histogram_of_linuxcnc_has_jitter() {
    let record = imported("latency-histogram.txt");
    let [base, servo] = figures(&record) else { panic!("{record:?}") };
    assert_eq!((base.role.as_str(), base.jitter_ns, base.max_ns), ("base", Some(16_500), None));
    assert_eq!((servo.jitter_ns, servo.duration_ns), (Some(48_600), Some(2_000_000_000)));
    assert_eq!(kinds(&record), ["mixed", "units"]);
    let text = text_of("latency-histogram.txt");
    assert!(of(&text.replace("-48.600", "48.600")).unwrap_err().contains("line 3: "));
}

#[test]
fn the_plot_of_xenomai_has_one_more_sample_a_cell() {
    let record = imported("xenomai-latency-g.txt");
    let [figures] = figures(&record) else { panic!("{record:?}") };
    let cells: Vec<_> = figures.histogram.as_ref().unwrap().iter().collect();
    assert_eq!(cells, [(999, 5_970_000), (1_999, 29_000), (3_999, 900), (4_999, 80), (5_999, 10), (6_999, 7)]);
    assert_eq!((figures.samples, figures.min_ns, figures.max_ns), (Some(5_999_997), Some(-412), Some(6_904)));
    assert_eq!((figures.policy.as_str(), figures.period_ns), ("fifo:99", Some(100_000)));
    assert_eq!(kinds(&record), ["folded"]);
    let text = text_of("xenomai-latency-g.txt");
    let clamped = of(&text.replace("6.904|       0|     0|", "66.904|       2|     1|")).unwrap();
    assert_eq!(kinds(&clamped), ["omission", "mixed", "clamped", "folded"]);
    // Old versions write no title.
    let old = of(&text_of("xenomai-latency-g-old.txt")).unwrap();
    assert_eq!(self::figures(&old)[0].samples, Some(953));
    assert_eq!(kinds(&old), ["clamped", "folded"]);
    assert!(of(&text.replace("3.5 901", "3.6 901")).unwrap_err().contains("no cells of equal width"));
    assert!(of(&text.replace("3.5 901", "3.5 x")).unwrap_err().contains("line 9: "));
    assert!(of(&text.replace("0.731|", "x|")).unwrap_err().contains("line 3: "));
    assert_eq!(format_of("1 1\n2 30\n3 1\n").unwrap().name(), "two columns: value in us, number of samples");
}

#[test]
fn statistics_of_the_testbench_are_since_the_start() {
    let record = imported("rtc-testbench.log");
    let all: Vec<_> = figures(&record).iter().map(|of| (of.role.as_str(), of.samples, of.max_ns, of.late)).collect();
    assert_eq!(
        all,
        [
            ("Lldp", Some(60), Some(1_200_000), None),
            ("Lldp/one-way", Some(60), Some(600_000), None),
            ("TsnHigh", Some(60_997), Some(2_104_000), Some(3)),
            ("TsnHigh/one-way", Some(60_997), Some(1_010_000), Some(1))
        ]
    );
    assert_eq!((figures(&record)[3].min_ns, figures(&record)[2].duration_ns), (Some(-12_000), Some(60_000_000_000)));
    assert_eq!(kinds(&record), ["overflow", "overflow", "mixed", "units"]);
    let text = text_of("rtc-testbench.log");
    let first = of(text.lines().next().unwrap()).unwrap();
    assert_eq!(figures(&first).len(), 2, "no frame of Lldp came back");
    assert!(
        of(&text.replace("TsnHighRttAvg=1751.250000", "TsnHighRttAvg="))
            .unwrap_err()
            .contains("line 3: TsnHighRttAvg must be")
    );
}

#[test]
fn metrics_of_isochron_are_intervals_of_their_own() {
    let record = imported("isochron-report.txt");
    let all = figures(&record);
    assert_eq!(
        (all.len(), all[0].role.as_str(), all[0].max_ns, all[0].mean_ns),
        (8, "Path delay", Some(2_210), Some(2_160.25))
    );
    assert_eq!((all[3].missed, all[5].probe.as_str(), all[5].max_ns), (Some(2), "timer", Some(42_000)));
    assert_eq!(kinds(&record), ["mixed", "folded"]);
    let text = text_of("isochron-report.txt");
    assert!(of(&text.replace("min 2120", "min x")).unwrap_err().contains("line 2: "));
    assert!(of(&text.replace("misses: 2", "misses: x")).unwrap_err().contains("line 10: "));
    let lost = format!(
        "Packets not received: 123 (12.300%)\nSender and receiver not synchronized (mean path delay 5.0 ns larger than 1 second)\n{text}"
    );
    let record = of(&lost).unwrap();
    assert_eq!(kinds(&record), ["omission", "clock", "mixed", "folded"]);
    assert!(record.caveats.iter().any(|caveat| caveat.text.contains("not received: 123")), "{:?}", record.caveats);
}

#[test]
fn events_that_rtla_missed_are_no_row() {
    let text =
        format!("{}3 (0.02%) events missed, results might not be accurate\n", text_of("rtla-timerlat-hist-6.1.txt"));
    let record = of(&text).unwrap();
    assert_eq!(figures(&record).len(), figures(&imported("rtla-timerlat-hist-6.1.txt")).len());
    assert!(record.caveats.iter().any(|caveat| caveat.text.contains("3 (0.02%)")), "{:?}", record.caveats);
}

#[test]
fn latencymon_has_the_decimal_sign_of_its_user() {
    let text = text_of("latencymon-7.txt");
    for text in [text.clone(), text.replace(',', "."), text.replace("µs", "\u{fffd}s")] {
        let record = of(&text).unwrap();
        let all: Vec<_> = figures(&record).iter().map(|of| (of.probe.as_str(), of.role.as_str(), of.max_ns)).collect();
        assert_eq!(
            all,
            [
                ("interrupt", "process", Some(412_700)),
                ("interrupt", "dpc", Some(398_100)),
                ("noise", "isr", Some(155_500)),
                ("noise", "dpc", Some(640_250))
            ]
        );
        assert_eq!(
            (figures(&record)[0].mean_ns, figures(&record)[0].duration_ns),
            (Some(6_250.0), Some(150_000_000_000))
        );
        assert!(figures(&record)[3].note.starts_with("Longest in net.sys"));
        assert_eq!(kinds(&record), ["mixed", "units"]);
    }
    assert_eq!(of(&text).unwrap().machine.hostname.as_deref(), Some("STUDIO"));
    assert!(
        of(&text.replace("412,70", "x"))
            .unwrap_err()
            .contains("line 13: `Highest measured interrupt to process latency` must")
    );
    assert!(of(&text[..text.find("MEASURED").unwrap()]).unwrap_err().contains("the report is cut"));
}

#[test]
fn lava_has_a_result_a_figure() {
    let record = imported("lava-cyclictest.txt");
    let [first, second] = figures(&record) else { panic!("{record:?}") };
    assert_eq!((first.min_ns, first.mean_ns, first.max_ns), (Some(3_000), Some(9_000.0), Some(217_000)));
    assert_eq!((second.phase.as_str(), second.min_ns, second.max_ns), ("thread-1", None, Some(98_000)));
    assert_eq!(kinds(&record), ["overflow"]);
    let text = text_of("lava-cyclictest.txt");
    assert!(
        of(&text.replace("pass 217 us", "pass 218 us")).unwrap_err().contains("line 5: t0-max-latency has two results")
    );
    assert!(
        of(&text.replace("98 us", "98 furlongs"))
            .unwrap_err()
            .contains("line 6: t1-max-latency must be a number of us")
    );
    assert!(of(&text.replace("98 us", "NaN us")).unwrap_err().contains("line 6: "));
}

proptest! {
    #[test]
    fn no_text_is_fatal(text in "\\PC{0,200}(\n\\PC{0,80}){0,6}") {
        for format in FORMATS {
            let _ = format.read(&text, None);
        }
    }

    /// A part of a file, or one with other characters, is read or refused.
    #[test]
    fn no_damage_is_fatal(which in 0..SAMPLES.len(), from in 0.0..1.0, length in 0.0..1.0, with in "[-0-9a-zT:# \n\t.+]{0,12}") {
        let text = std::fs::read_to_string(sample(SAMPLES[which].0)).unwrap();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "below the length of the text")]
        let (begin, end) = {
            let begin = (text.len() as f64 * from) as usize;
            (begin, (begin + (text.len() as f64 * length * 0.1) as usize).min(text.len()))
        };
        prop_assume!(text.is_char_boundary(begin) && text.is_char_boundary(end));
        let damaged = format!("{}{with}{}", &text[..begin], &text[end..]);
        if let Some(format) = format_of(&damaged) {
            let _ = format.read(&damaged, None);
        }
    }
}
