//! Files of rtla and rteval.

#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod support;

use support::{figures, imported, kinds, of, short, text_of};

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
fn the_automatic_analysis_of_rtla_is_a_remark() {
    let analysis = "rtla timerlat hit stop tracing\n## CPU 1 hit stop tracing, analyzing it ##\n  IRQ handler delay: \t\t    \
                    27.79 us (65.25 %)\n  Thread latency: \t\t 42.59 us (100%)\n";
    let record = of(&(text_of("rtla-timerlat-hist-6.1.txt") + analysis)).unwrap();
    let expected = "CPU 1 was above the limit: IRQ handler delay 27.79 us (65.25 %), Thread latency 42.59 us (100%)";
    assert_eq!(record.published.as_ref().unwrap().remarks, [expected]);
    assert_eq!(kinds(&record).last(), Some(&"stopped"));
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
    let row = "  0 #60001 ";
    let without: String = text.lines().filter(|line| !line.starts_with(row)).map(|line| format!("{line}\n")).collect();
    assert!(of(&without).unwrap_err().ends_with("line 6: the rows have 60000 samples, but the row `ALL` has 120001"));
    let twice: String =
        text.lines().map(|line| format!("{line}\n").repeat(1 + usize::from(line.starts_with(row)))).collect();
    assert!(of(&twice).unwrap_err().ends_with("line 5: the table has CPU 0 twice"));
    // Old versions have no row `ALL`, but the table before shows that the last one is cut.
    let old = &text[..text.find("------").unwrap()];
    let cut = of(&format!("{old}{}", &old[..old.find("  1 #").unwrap()])).unwrap_err();
    assert!(
        cut.ends_with("line 8: the last table lacks CPU 1, which a table before it has; the output is cut"),
        "{cut}"
    );
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
    let words: Vec<&str> = text.lines().nth(4).unwrap().split_whitespace().collect();
    let torn = text.replace(text.lines().nth(4).unwrap(), &words[..words.len() - 3].join(" "));
    assert!(of(&torn).unwrap_err().ends_with("has other columns than the row before it"), "{torn}");
    assert!(of(&text[..text.find("  0 #").unwrap()]).unwrap_err().contains("no row of a CPU"));
}

#[test]
fn events_that_rtla_missed_are_no_row() {
    let text =
        format!("{}3 (0.02%) events missed, results might not be accurate\n", text_of("rtla-timerlat-hist-6.1.txt"));
    let record = of(&text).unwrap();
    assert_eq!(figures(&record).len(), figures(&imported("rtla-timerlat-hist-6.1.txt")).len());
    assert!(record.caveats.iter().any(|caveat| caveat.text.contains("3 (0.02%)")), "{:?}", record.caveats);
}
