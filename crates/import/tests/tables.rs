//! Tables of values, histograms of HdrHistogram, and units.

#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod support;

use std::path::PathBuf;

use import::{Unit, parse};
use record::{Figures, Record};
use support::{figures, imported, kinds, of, of_unit, text_of};

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

/// A measured record, whose series have raw and corrected histograms.
fn measured() -> Record {
    let of = |phase: &str, role: &str, cpu, period_ns, values: &[(i64, u64)]| {
        let mut series =
            record::Series { phase: phase.into(), role: role.into(), cpu, period_ns, ..record::Series::default() };
        values.iter().for_each(|(ns, count)| series.raw.add(*ns, *count));
        series.corrected = series.raw.corrected(&[], period_ns);
        series
    };
    let values = [(-900, 4), (0, 1), (7, 3), (48_123, 2), (3_500_000, 1)];
    let series = vec![
        of("rest, \"idle\"", "timer", Some(0), 1_000_000, &values),
        of("rest, \"idle\"", "timer", Some(1), 1_000_000, &values[..4]),
        of("load", "timer", None, 1_000_000, &values[1..3]),
        of("load", "timer", None, 1_000_000, &values[..4]),
    ];
    Record { series, ..Record::default() }
}

#[test]
fn what_punctual_exports_as_csv_comes_back() {
    let record = measured();
    let exported = record::export::csv(&record);
    let read = of(&exported).unwrap();
    let threads = figures(&read);
    assert_eq!(threads.len(), record.series.len());
    // Rest and load are no threads of one kind.
    let all = &read.published.as_ref().unwrap().figures[..2];
    for (sum, series) in all.iter().zip(record.series.chunks(2)) {
        let mut corrected = series[0].corrected.clone();
        corrected.merge(&series[1].corrected);
        assert_eq!(
            (sum.phase.as_str(), sum.samples),
            ("all-threads", Some(series[0].raw.total() + series[1].raw.total()))
        );
        assert_eq!(sum.missed, Some(corrected.total() - sum.samples.unwrap()));
        assert_eq!((sum.p99_ns, sum.histogram.as_ref()), (corrected.percentile(99.0), Some(&corrected)));
    }
    for (figures, series) in threads.iter().zip(&record.series) {
        let (raw, corrected) = (series.raw.total(), series.corrected.total());
        assert_eq!(figures.histogram.as_ref(), Some(&series.corrected));
        assert_eq!((figures.samples, figures.missed), (Some(raw), Some(corrected - raw)));
        assert_eq!(figures.p50_ns, series.corrected.percentile(50.0));
        assert_eq!(figures.max_ns, series.corrected.iter().next_back().map(|(ns, _)| ns));
        assert_eq!(
            (figures.period_ns, &figures.cpus),
            (Some(series.period_ns), &series.cpu.map(|cpu| cpu.to_string()).unwrap_or_default())
        );
    }
    assert_eq!(read.tool.name, "punctual");
    assert!(kinds(&read).contains(&"omission") && !kinds(&read).contains(&"units"), "{:?}", read.caveats);
    let cut = |at: &str, side: usize| of(&exported[..exported.rfind(at).unwrap() + side]).unwrap_err();
    assert!(cut("load,timer,,1000000,corrected,", 0).ends_with("the file is cut"));
    assert!(cut("load,timer,,1000000,corrected,-", 0).ends_with("it has no corrected histogram; the file is cut"));
    assert!(cut("corrected,", 4).contains("is no row such as `rest,timer,0,1000000,raw,5119,3`"));
    let rows: Vec<&str> = exported.lines().collect();
    let swapped = of(&[rows[0], rows[2], rows[1]].map(|row| format!("{row}\n")).concat()).unwrap_err();
    assert!(swapped.contains("line 3: ") && swapped.ends_with("is not above the row before it"), "{swapped}");
}

/// Nobody knows if the last row of another tool has its largest sample.
#[test]
fn an_exported_csv_of_another_tool_keeps_its_threads_and_the_samples_beyond_the_last_cell() {
    let first = imported("cyclictest-2.4-hist.txt");
    let read = of(&record::export::csv(&first.with_published_series())).unwrap();
    for (figures, expected) in figures(&read).iter().zip(figures(&first)) {
        assert_eq!((&figures.histogram, figures.samples), (&expected.histogram, expected.samples));
        assert_eq!((&figures.phase, &figures.cpus, figures.max_ns), (&expected.phase, &expected.cpus, None));
    }
    assert_eq!(figures(&read).len(), figures(&first).len());
    assert_eq!(kinds(&read).iter().filter(|kind| **kind == "overflow").count(), 2, "{:?}", read.caveats);
    assert!(read.tool.name.is_empty());
    let all = &read.published.as_ref().unwrap().figures[0];
    assert_eq!((all.phase.as_str(), all.missed), ("all-threads", None));
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
fn percentiles_of_the_python_port_of_hdr_histogram() {
    let of_python = |total: &str| {
        let text = format!(
            "       Value     Percentile TotalCount 1/(1-Percentile)\n\n     1.000 0.500000000000         10           2.00\n     \
             9.000 1.000000000000         20           inf\n#[Mean    =        5.000, StdDeviation   =        4.000]\n#[Max     =        \
             9.000, {total}]\n#[Buckets =           22, SubBuckets     =         2048]\n"
        );
        of(&text).map(|record| (figures(&record)[0].samples, figures(&record)[0].max_ns))
    };
    for total in ["TotalCount     =       20.000", "Total count    =       20.000", "Total count    =           20"] {
        assert_eq!(of_python(total).unwrap(), (Some(20), Some(9_000)), "{total}");
    }
    assert!(of_python("TotalCount     =       20.5").unwrap_err().contains("it has no number after `Total count`"));
}

/// The percentiles are those of the Python port of HdrHistogram.
#[test]
fn a_log_of_another_library_is_summed_by_tag() {
    let record = imported("hdrhistogram-python.hlog");
    let [summed] = figures(&record) else { panic!("{record:?}") };
    assert_eq!((summed.samples, summed.max_ns), (Some(1004), Some(7_667_711)));
    assert_eq!(kinds(&record), ["units", "mixed", "clamped"]);
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
    assert!(of(&format!("{text}{}\n", lines[4])).unwrap_err().ends_with("the file has this interval twice"));
}

/// Java prints the maximum in ms with 3 decimals, so a cell of less than 1 ms is narrower than the last digit.
#[test]
fn a_rounded_maximum_of_a_log_is_the_end_of_its_cell() {
    let text = text_of("hdrhistogram-python.hlog");
    let lines: Vec<&str> = text.lines().collect();
    // The largest value of this interval is 7.654321 ms, and its cell 7.634944 to 7.667711 ms.
    let max = |printed: &str, unit| {
        let interval = lines[4].replacen("7.000000", printed, 1);
        let record = parse(&PathBuf::from("file"), &format!("{}\n{interval}\n", lines[2]), unit).unwrap();
        let (max_ns, kind) = (figures(&record)[0].max_ns, record.caveats.last().unwrap().kind.clone());
        (max_ns, kind == "clamped", record.caveats.last().unwrap().text.contains("is not in the last cell"))
    };
    // Whole ms of the Python port, which removes the fraction; others are wider than the cell, or rounded out of it.
    for printed in ["7.000000", "8", "7.7", "7.6", "7.67", "7.63"] {
        assert_eq!(max(printed, None), (Some(7_667_711), true, false), "{printed}");
    }
    assert_eq!(max("7.7", Some(Unit::Us)), (Some(7_667_711_000), true, false));
    // More exact than the cell.
    assert_eq!(max("7.654", None), (Some(7_654_000), false, false));
    assert_eq!(max("7.654321", None), (Some(7_654_321), false, false));
    // Another value or another unit.
    for printed in ["8.000000", "6.000000", "7.62", "7.68", "7.669", "7.5", "7.8", "7654.321", "0.007654", "7", "1e300"]
    {
        assert_eq!(max(printed, None), (None, false, true), "{printed}");
    }
}

#[test]
fn cumulative_counts_are_refused() {
    for heading in ["bucket_us,cumulative_count", "us,cum_count", "le,count"] {
        let said = of(&format!("{heading}\n1,100\n2,150\n3,151\n")).unwrap_err();
        assert!(said.contains("cumulative counts"), "{said}");
    }
}

/// wrk2 prints the percentiles in milliseconds, and its own units above them.
#[test]
fn wrk2_has_milliseconds() {
    let block = |name: &str| {
        format!(
            "  Latency Distribution (HdrHistogram - {name})\n 50.000%    1.20ms\n 99.000%  900.00us\n\n  Detailed Percentile spectrum:\n\
             \x20      Value   Percentile   TotalCount 1/(1-Percentile)\n\n       0.500     0.000000         10         1.00\n\
             \x20      1.200     0.500000       5000         2.00\n       9.000     1.000000      10000          inf\n\
             #[Mean    =        1.300, StdDeviation   =        0.400]\n#[Max     =        9.000, Total count    =        10000]\n\
             #[Buckets =           27, SubBuckets     =         2048]\n----------------------------------------------------------\n\n"
        )
    };
    let text = format!(
        "Running 10s test @ http://127.0.0.1\n  2 threads and 2 connections\n{}{}  10000 requests in 10.00s, 5.00MB read\nRequests/sec: 1000\n",
        block("Recorded Latency"),
        block("Uncorrected Latency (measured without taking delayed starts into account)")
    );
    let record = of(&text).unwrap();
    assert_eq!(kinds(&record), ["clamped"]);
    let found: Vec<_> = figures(&record).iter().map(|of| (of.phase.as_str(), of.max_ns, of.p50_ns)).collect();
    let (max_ns, p50_ns) = (Some(9_000_000), Some(1_200_127));
    assert_eq!(found, [("Recorded Latency", max_ns, p50_ns), ("Uncorrected Latency", max_ns, p50_ns)]);
}

#[test]
fn only_samples_beyond_the_last_cell_are_above_a_histogram() {
    let text = "phase,role,cpu,period_ns,histogram,value_ns,count\nthread-0,timer,,0,raw,3999,3678\n\
                thread-0,timer,,0,beyond,,3\nthread-1,timer,,0,raw,5999,10\nthread-1,timer,,0,raw,9999,1\n";
    let record = of(text).unwrap();
    let maxima = |figures: &Figures| (figures.phase.clone(), figures.max_ns, figures.max_above_ns);
    let found: Vec<_> = figures(&record).iter().map(maxima).collect();
    assert!(found.contains(&("thread-0".to_owned(), None, Some(3_999))), "{found:?}");
    assert!(found.contains(&("thread-1".to_owned(), Some(9_999), None)), "{found:?}");
}
