//! Files of rt-tests: cyclictest, oslat and hwlatdetect.

#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod support;

use import::{parse, read};
use support::{figures, imported, kinds, of, sample, short, text_of};

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
    let text = text_of("cyclictest-2.4-plain.txt");
    let cut = of(&format!("{}\n", text.lines().rfind(|line| line.contains("T: 1 ")).unwrap())).unwrap();
    assert!(
        cut.caveats.iter().any(|caveat| caveat.text == "the file lacks the lines of threads 0"),
        "{:?}",
        cut.caveats
    );
    assert!(of(&text.replace("C:   7990", "C:  -7990")).unwrap_err().contains("is no whole line of a thread"));
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
    let row = "    018 (us):\t 294 274\n";
    let twice = of(&text_of("oslat-2.4.txt").replace(row, &row.repeat(2))).unwrap_err();
    assert!(twice.ends_with("line 22: the row 018 (us) is not above the row before it"), "{twice}");
    for count in ["294e3", "-294", "2.5"] {
        let error = of(&text_of("oslat-2.4.txt").replace("294 274", &format!("{count} 274"))).unwrap_err();
        assert!(error.ends_with(&format!("line 21: {count} must be a whole number of samples")), "{error}");
    }
    assert_eq!(figures(&text)[1].histogram, figures(&json)[1].histogram);
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
fn a_program_that_failed_says_so() {
    let text = text_of("cyclictest-2.4.json");
    assert!(!kinds(&of(&text).unwrap()).contains(&"failed"));
    let failed = of(&text.replace("\"return_code\": 0", "\"return_code\": 1")).unwrap();
    let caveat = failed.caveats.iter().find(|caveat| caveat.kind == "failed").unwrap();
    assert_eq!(caveat.text, "the program ended with the error code 1");
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
fn percentiles_of_oslat_are_not_below_its_minimum() {
    for name in ["oslat-2.4.txt", "oslat-2.4.json"] {
        let record = imported(name);
        let one = &figures(&record)[0];
        assert!(one.p50_ns >= one.min_ns && one.p99_ns <= Some(1_000), "{name}: {one:?}");
    }
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
fn spread_priorities_are_not_that_of_the_first_thread() {
    let text = text_of("cyclictest-2.4.json");
    let policies = |text: &str| -> Vec<String> {
        figures(&of(text).unwrap()).iter().map(|figures| figures.policy.clone()).collect()
    };
    assert!(policies(&text).iter().all(|policy| !policy.is_empty()));
    let spread = text.replacen("cyclictest ", "cyclictest --priospread ", 1);
    assert!(spread != text && policies(&spread).iter().all(String::is_empty), "{:?}", policies(&spread));
}

/// The first update of the screen comes before the threads have started.
#[test]
fn the_first_update_of_cyclictest_is_no_run_of_its_own() {
    let update = |threads: &str| format!("policy: fifo: loadavg: 0.1 0.1 0.1 1/99 300          \n\n{threads}");
    let first = "T: 0 (    0) P:80 I:1000 C:      0 Min:1000000 Act:    0 Avg:    0 Max:       0\n\
                 T: 1 (    0) P:80 I:1500 C:      0 Min:1000000 Act:    0 Avg:    0 Max:       0\n";
    let next = "T: 0 ( 4363) P:80 I:1000 C:      8 Min:     14 Act:   15 Avg:   18 Max:      37\n\
                T: 1 ( 4364) P:80 I:1500 C:      6 Min:     15 Act:   36 Avg:   41 Max:     115\n";
    let record = of(&format!("{}\u{1b}[4A{}", update(first), update(next))).unwrap();
    let largest: Vec<_> = record.published.unwrap().figures.iter().map(|figures| figures.max_ns).collect();
    assert!(largest.ends_with(&[Some(37_000), Some(115_000)]), "{largest:?}");
    // With --spike, the long latencies follow.
    assert!(of(&format!("{}T: 1 Spike:    1322: TS:   6361195760\n", update(next))).is_ok());
    // A thread that never woke is named.
    let record = of(&update(&next.replace("C:      6", "C:      0"))).unwrap();
    assert!(record.caveats.iter().any(|caveat| caveat.kind == "empty" && caveat.text.contains("thread-1")));
    // Another process is another run.
    let other = update(&next.replace("4363", "5363").replace("4364", "5364"));
    let joined = of(&format!("{}{other}", update(next))).unwrap_err();
    assert!(joined.contains("another run begins here"), "{joined}");
}

#[test]
fn a_value_that_is_no_number_has_a_message_with_its_line() {
    let whole = "T: 0 ( 1234) P:90 I:1000 C:    100 Min:      5 Act:   10 Avg:   10 Max:      15\n";
    let wrong = whole.replace("Avg:   10", "Avg:  nan");
    for (text, line) in [(wrong.clone(), 1), (format!("{whole}{wrong}"), 2)] {
        let error = of(&text).unwrap_err();
        assert!(
            error.contains(&format!("line {line}: ")) && error.ends_with("the value of `Avg` is no number"),
            "{error}"
        );
    }
}
