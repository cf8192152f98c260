//! Files of latmus, Xenomai, jitterdebugger, stress-ng, LinuxCNC, LatencyMon and LAVA.

#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod support;

use import::{Unit, format_of};
use support::{figures, imported, kinds, of, of_unit, short, text_of};

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
    assert_eq!(kinds(&record), ["omission", "mixed", "omission", "cut"]);
    let end = "HSH|--param|----range-|--samples\nHSD|    min|   0 -  1 |        9\nHSD|    avg|   0 -  1 |      900\nHSD|    \
               avg|   3 -  4 |      100\nRTS|     -0.300|      0.500|   1209.900|       0|     0|    00:00:02/00:00:02\n";
    let record = of(&format!("{text}{end}")).unwrap();
    let [whole] = figures(&record) else { panic!("{record:?}") };
    assert_eq!(
        (whole.samples, whole.p50_ns, whole.p99_ns),
        (Some(1000), Some(999), None),
        "later ones are in the last cell"
    );
    assert_eq!((whole.min_ns, whole.mean_ns, whole.max_ns), (Some(-300), Some(500.0), Some(1_209_900)));
    assert_eq!(kinds(&record), ["omission", "folded", "clamped"]);
    let long = text.replace("00:00:01", "99:59:59")
        + &text.replace("00:00:01", "100:00:00").replace("0.100|      5", "0.100|   1200");
    assert!(of(&long).is_ok(), "a run of more than 100 hours");
    // The best and worst latencies of the lines are 0.1 and 1200 us.
    for (from, to, expected) in [
        ("-0.300|", "0.300|", "has less than the best and worst latencies of the lines before"),
        ("1209.900|", "9.900|", "has less than the best and worst latencies of the lines before"),
        ("1200.000|       2", "1300.000|       2", "has a latency beyond its best or worst one"),
    ] {
        let error = of(&format!("{text}{end}").replacen(from, to, 1)).unwrap_err();
        assert!(error.ends_with(expected), "{error}");
    }
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
fn a_thread_without_samples_has_no_figures() {
    let text = r#"{"cpu":{"0":{"histogram":{"3":3678,"4":220},"count":3898,"min":3,"max":4,"avg":3.06},
        "1":{"histogram":{},"count":0,"min":0,"max":0,"avg":0}}}"#;
    let record = of(text).unwrap();
    let all = &record.published.as_ref().unwrap().figures;
    assert_eq!((all[0].phase.as_str(), all[0].min_ns, all[0].p50_ns), ("all-threads", Some(3_000), Some(3_999)));
    assert_eq!((all[2].samples, all[2].min_ns, all[2].mean_ns, all[2].max_ns), (Some(0), None, None, None));
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
    let distribution = of(&text[..text.find("200000       ").unwrap()]).unwrap_err();
    assert!(distribution.ends_with("the distribution has 10 of its 14 rows; the output is cut"), "{distribution}");
    // It leaves out rows without samples before the last ones.
    let between = |line: &&str| !["200000  ", "220000  ", "240000  "].iter().any(|row| line.contains(row));
    let kept: Vec<&str> = text.lines().filter(between).collect();
    let left_out = "stress-ng: info:  [5674] cyclic:           ..         .. (all zeros hereafter)";
    let at = kept.iter().position(|line| line.contains("180000  ")).unwrap() + 1;
    let shortened = [&kept[..at], &[left_out], &kept[at..]].concat().join("\n") + "\n";
    assert_eq!(of(&shortened).unwrap().published, of(&text).unwrap().published);
    assert!(of(&kept.join("\n")).is_err());
    let lost = of(&text.replace("100000          5", "100000          4")).unwrap_err();
    assert!(lost.ends_with("the distribution has 9999 samples, but the run 10000"), "{lost}");
    // stress-ng prints a limited number of rows.
    let rows: Vec<&str> = text.lines().filter(|line| !line.contains(" 260000 ")).collect();
    let limited = of(&(rows.join("\n").replace("first 14 buckets", "first 13 buckets") + "\n")).unwrap();
    assert!(limited.caveats.iter().any(|caveat| caveat.text.starts_with("cyclic: 1 sample is beyond")), "{limited:?}");
    let falling = of(&text.replace("99.90%:     127147", "99.90%:      27147")).unwrap_err();
    assert!(falling.ends_with("cyclic: the value at 99.9 %, 27147, is below that at 99.5 %, 75080"), "{falling}");
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
    let cut = of("0 1\n0.5 101\n1.5 901\n2.5 1\n3.5 3\n").unwrap_err();
    assert!(cut.contains("Xenomai latency -g") && cut.ends_with("; the file is cut"), "{cut}");
    for table in ["0 1\n1 101\n3 901\n5 1\n7 3\n", "0 2\n0.5 101\n1.5 901\n2.5 1\n3.5 3\n", "0 1\n0.5 9\n1.5 2\n"] {
        assert_eq!(format_of(table).unwrap().name(), "two columns: value, number of samples", "{table}");
    }
    let indented: String = text.lines().map(|line| format!("  {line}\n")).collect();
    assert_eq!(self::figures(&of(&indented).unwrap()), self::figures(&record));
    assert!(of(&text.replace("3.5 901", "3.6 901")).unwrap_err().contains("no cells of equal width"));
    assert!(of(&text.replace("3.5 901", "3.5 x")).unwrap_err().contains("line 9: "));
    assert!(of(&text.replace("0.731|", "x|")).unwrap_err().contains("line 3: "));
    assert_eq!(format_of("1 1\n2 30\n3 1\n").unwrap().name(), "two columns: value, number of samples");
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
    let max_ns = |number: &str| Ok::<_, String>(figures(&of(&text.replace("412,70", number))?)[0].max_ns);
    for grouped in ["1.234,56", "1,234.56", "1 234,56", "1\u{a0}234,56", "1'234.56", "1234.56", "1234,560000"] {
        assert_eq!(max_ns(grouped), Ok(Some(1_234_560)), "{grouped}");
    }
    assert_eq!((max_ns("1.234.567"), max_ns("12,345,678.5")), (Ok(Some(1_234_567_000)), Ok(Some(12_345_678_500))));
    for wrong in ["1.23.456", "12,34.5", "1,234.567,8", "1.2,3.4", "412,", ",5", "-1,25", "1e3"] {
        assert!(max_ns(wrong).unwrap_err().contains("must be a number of us"), "{wrong}");
    }
    let error = max_ns("1.234").unwrap_err();
    assert!(error.contains("has a sign that can separate thousands or decimals"), "{error}");
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
            .contains("line 6: t1-max-latency must be a number of s, ms, us or ns")
    );
    assert!(of(&text.replace("98 us", "NaN us")).unwrap_err().contains("line 6: "));
    for without in [text.replace("98 us", "98"), text.replace("UNITS=us ", "").replace("217 us", "217")] {
        let error = of(&without).unwrap_err();
        assert!(error.ends_with("-latency has no unit: state it with --unit"), "{error}");
        let stated = of_unit(&without, Unit::Us);
        assert_eq!(figures(&stated), figures(&record));
        assert_eq!(kinds(&stated), ["units", "overflow"]);
    }
    let seconds = of(&text.replace("98 us", "0.000098 s")).unwrap();
    assert_eq!(figures(&seconds)[1].max_ns, Some(98_000));
    let failed = text.replace("rt-tests-installed RESULT=pass", "rt-tests RESULT=fail").replace("pass 98 us", "fail");
    let record = of(&failed).unwrap();
    let texts: Vec<&str> = record.caveats.iter().map(|caveat| caveat.text.as_str()).collect();
    assert!(texts.contains(&"t1-max-latency has no measurement, but the result fail"), "{texts:?}");
    assert!(texts.contains(&"these results are fail: rt-tests"), "{texts:?}");
    let plain =
        of("t0-max-latency fail 217 us\nt1-max-latency pass 98 us\nrt-tests fail 3 runs\nit did fail here\nit fail\n")
            .unwrap();
    let failed: Vec<&str> = plain.caveats.iter().filter(|of| of.kind == "failed").map(|of| of.text.as_str()).collect();
    assert_eq!(failed, ["these results are fail: t0-max-latency, rt-tests"]);
    let prefixed: String = text.lines().map(|line| format!("[ 12.345] {line}\n")).collect();
    assert_eq!(figures(&of(&prefixed).unwrap()), figures(&imported("lava-cyclictest.txt")));
    let torn = of(&text.replace("t1-max-latency pass 98 us", "t1-max-latency pa")).unwrap_err();
    assert!(
        torn.ends_with("line 6: \"t1-max-latency pa\" has no result such as `pass 217 us`; the line is cut"),
        "{torn}"
    );
    let signal = &text[..text.find("=217>").unwrap() + 3];
    assert!(of(signal).unwrap_err().ends_with("line 4: the signal has no end `>`; the line is cut"));
}
