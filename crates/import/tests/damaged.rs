//! Files that were cut, that contradict themselves, that contain several runs, or that are hostile.

#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod support;

use std::path::Path;

use import::{FORMATS, ImportError, format_of, import, parse};
use proptest::prelude::*;
use record::Figures;
use support::{SAMPLES, figures, kinds, of, sample, text_of};

/// Such a record would look like a result.
#[test]
fn a_file_without_a_figure_is_refused() {
    let without_line_ends = text_of("sockperf-3.7-tcp.txt").replace('\n', "\r");
    let cut_log = "       0:       0:       7".to_owned();
    for text in [without_line_ends, cut_log] {
        let error = of(&text).unwrap_err();
        assert!(error.contains(": it has no figure; "), "{error}");
    }
}

#[test]
fn a_file_with_several_runs_is_refused() {
    let console = "RTH|----lat min|\nRTS|  0.1|  0.5|  9.9|  0|  0|  00:00:02/00:00:02\n".to_owned();
    let all_cpus = text_of("rtla-timerlat-hist-6.1.txt") + "ALL:        IRQ       Thr\n";
    let ended = "RTT|  00:00:02  (user, 1000 us period, priority 98, CPU2)\nRTH|----lat min|\nRTD|  0.1|  1.0|  1200.000|  0|  0|  \
                 0.1|  1200.000\n";
    let hgrm = "# latency\n Value Percentile TotalCount 1/(1-Percentile)\n\n 1.000 0.5 10 2.00\n 9.000 1.0 20\n#[Max = 9.000, \
                Total count = 20]\n";
    let plain = text_of("cyclictest-2.4-plain.txt");
    let files = [
        (plain.clone(), plain.replace("(16168)", "(17000)")),
        (console.clone(), console),
        (all_cpus.clone(), all_cpus),
        (text_of("rtla-timerlat-top.txt"), text_of("rtla-timerlat-top.txt").replace("00:01:00", "00:00:01")),
        (
            text_of("rtla-timerlat-top.txt"),
            text_of("rtla-timerlat-top.txt").replace("#60000", "#59999").replace("#120001", "#120000"),
        ),
        (text_of("latency-histogram.txt"), text_of("latency-histogram.txt")),
        (text_of("oslat-2.4.txt"), text_of("oslat-2.4.txt")),
        (text_of("latencymon-7.txt"), text_of("latencymon-7.txt")),
        (text_of("rtc-testbench.log"), text_of("rtc-testbench.log")),
        (text_of("isochron-report.txt"), text_of("isochron-report.txt").replace("Summary:", "")),
        (text_of("hdrhistogram-python.hlog"), text_of("hdrhistogram-python.hlog")),
        (hgrm.to_owned(), hgrm.to_owned()),
        (text_of("sockperf-3.7-tcp.txt"), text_of("sockperf-3.7-udp-rtt.txt")),
        (text_of("hwlatdetect-2.4.txt"), text_of("hwlatdetect-2.4.txt")),
        (ended.to_owned(), ended.replace("1200.000", "1100.000")),
        (ended.to_owned(), ended.to_owned()),
    ];
    for (first, second) in files {
        assert!(of(&first).is_ok() && of(&second).is_ok());
        let error = of(&(first + &second)).unwrap_err();
        assert!(error.ends_with(": another run begins here: split the file into its runs"), "{error}");
    }
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
fn mistakes_have_their_line() {
    let wrong = |text: &str| of(text).unwrap_err();
    assert!(wrong("hello").starts_with("FILE is in no format that punctual reads: cyclictest and oslat, JSON; "));
    assert!(wrong("").starts_with("FILE is in no format"));
    assert_eq!(
        wrong("3 1\n2 1\n"),
        "FILE is not whole (two columns: value, number of samples): line 2: \"2 1\" is not above the row before it"
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
    let long = of(&format!("1 5\n2 10\n3 20\n2 {}\n", "0".repeat(100_000))).unwrap_err();
    assert!(long.len() < 1_000 && long.ends_with("is not above the row before it"), "{long}");
    let many: String = (0..20_000).map(|thread| format!("t{thread}-max-latency pass 1 us\n")).collect();
    assert!(of(&many).unwrap_err().ends_with("it has 20,000 figures, at most 10,000 can be imported"));
    let entities = "<!DOCTYPE r [<!ENTITY a \"aaaa\">]><rteval>&a;</rteval>";
    assert!(of(entities).unwrap_err().contains("line 1: "), "{}", of(entities).unwrap_err());
    assert!(of(&format!("<rteval>{}", "<a>".repeat(300_000))).is_err());
}

/// The figures of a text without remarks, and true if it has a caveat that it can be cut.
type Prefix = (Vec<Figures>, bool);

fn read_prefix(text: &str) -> Option<Prefix> {
    let without_note = |figures: &Figures| Figures { note: String::new(), ..figures.clone() };
    let record = parse(Path::new("file"), text, None).ok()?;
    Some((figures(&record).iter().map(without_note).collect(), kinds(&record).contains(&"cut")))
}

#[test]
fn a_cut_inside_a_line_changes_no_figure_in_silence() {
    let mut seen = 0;
    for (name, _) in SAMPLES {
        let text = text_of(name);
        let whole = read_prefix(&text).unwrap().0;
        let mut of_lines = None;
        // The text until the end of the line of a place.
        let end_of_line =
            |from: usize| &text[..from + text[from..].find('\n').map_or(text.len() - from, |length| length + 1)];
        for end in (1..text.len()).filter(|&end| text.is_char_boundary(end)) {
            let prefix = &text[..end];
            match read_prefix(prefix) {
                read if prefix.ends_with('\n') => of_lines = read,
                Some((figures, false)) => {
                    seen += 1;
                    let is_same = |read: &Option<Prefix>| read.as_ref().is_some_and(|(of, _)| *of == figures);
                    let is_known = figures == whole || is_same(&of_lines) || is_same(&read_prefix(end_of_line(end)));
                    assert!(is_known, "{name} until {:?}: {figures:?}", prefix.lines().last());
                }
                Some((_, true)) | None => {}
            }
        }
    }
    assert!(seen > 20, "{seen}");
}

/// Reports with a fixed end. Other files grow while a tool runs, have as many lines as CPUs, or parts that can be absent.
#[test]
fn a_report_that_is_cut_after_a_line_changes_no_figure_in_silence() {
    for name in [
        "cyclictest-2.4-hist.txt",
        "cyclictest-2.4.json",
        "oslat-2.4.txt",
        "rtla-timerlat-hist-6.1.txt",
        "hwlatdetect-2.4.txt",
        "rteval-cyclictest.xml",
        "stress-ng-0.15-cyclic.txt",
        "sockperf-3.7-tcp.txt",
        "xenomai-latency-g.txt",
        "isochron-report.txt",
        "latencymon-7.txt",
    ] {
        let text = text_of(name);
        let whole = read_prefix(&text).unwrap().0;
        for (end, _) in text.match_indices('\n') {
            if let Some((figures, is_cut)) = read_prefix(&text[..=end]) {
                assert!(is_cut || figures == whole, "{name} until {:?}: {figures:?}", text[..=end].lines().last());
            }
        }
    }
}

#[test]
fn the_console_of_a_run_without_its_summary_can_be_cut() {
    let whole = "RTT|  00:00:02  (user, 1000 us period, priority 98, CPU2)\nRTH|----lat min|\n\
                 RTD|  0.1|  1.0|  9.9|  0|  0|  0.1|  9.9\nHSD|    avg|   0 -  1 |  2\nHSD|    avg|   9 -  10 |  7\n\
                 RTS|  0.1|  1.0|  9.9|  0|  0|  00:00:02/00:00:02\n";
    let until = |word: &str| of(&whole[..whole.find(word).unwrap()]);
    assert!(!kinds(&of(whole).unwrap()).contains(&"cut"));
    assert!(kinds(&until("HSD").unwrap()).contains(&"cut"), "the run can have been ended");
    for word in ["HSD|    avg|   9", "RTS"] {
        let error = until(word).unwrap_err();
        assert!(error.ends_with("it has no line `RTS|` after its histogram; the output is cut"), "{error}");
    }
}

/// People write tables by hand, without an end of the last line.
#[test]
fn a_table_without_an_end_has_a_caveat() {
    let record = of("1 5\n2 10\n1234 1").unwrap();
    assert_eq!(kinds(&record), ["units", "columns", "overflow", "cut"]);
    assert!(
        record.caveats.iter().any(|caveat| caveat.text == "the last line has no end, so its last number can be cut")
    );
    let error = of("T: 0 ( 3431) P:99 I:1000 C: 100000 Min:      7 Act:   10 Avg:   10 Max:      12").unwrap_err();
    assert!(
        error.ends_with(
            "line 1: the last line has no end, so its last number can be cut: end the line if the file is whole, or remove it"
        ),
        "{error}"
    );
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
