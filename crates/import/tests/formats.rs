//! Files of other tools become records with their figures, and with caveats about what the tool lost or mixed.

#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod support;

use std::io::Write as _;

use flate2::{Compression, write::GzEncoder};
use import::{FORMATS, format_of, log, read};
use record::Figures;
use support::{SAMPLES, figures, imported, kinds, of, sample, text_of};

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

/// A packed log can be longer than a text in memory.
#[test]
fn a_packed_log_is_unpacked_while_it_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.gz");
    let bytes = std::fs::read(sample("cyclictest-2.4-verbose.txt")).unwrap();
    let mut packer = GzEncoder::new(Vec::new(), Compression::default());
    packer.write_all(&bytes).unwrap();
    let packed = packer.finish().unwrap();
    std::fs::write(&path, &packed).unwrap();
    let read = log(&path, None).expect("it is known from its begin").unwrap();
    assert_eq!(figures(&read), figures(&imported("cyclictest-2.4-verbose.txt")));
    let many: Vec<u8> =
        (1..200_000).flat_map(|cycle| format!("       0:{cycle:8}:{:8}\n", cycle % 7).into_bytes()).collect();
    let mut packer = GzEncoder::new(Vec::new(), Compression::default());
    packer.write_all(&many).unwrap();
    let packed = packer.finish().unwrap();
    std::fs::write(&path, &packed[..packed.len() / 2]).unwrap();
    let error = log(&path, None).unwrap().unwrap_err().to_string();
    assert!(error.contains("its gzip data are cut or damaged, so copy it again"), "{error}");
}

/// Without its command line, nothing says the period.
#[test]
fn json_of_cyclictest_without_a_command_line_has_no_period() {
    let text = text_of("cyclictest-2.4.json");
    let period = |text: &str| figures(&of(text).unwrap())[0].period_ns;
    assert_eq!(period(&text), Some(1_000_000));
    let start = text.find("\"cmdline:\"").unwrap();
    let end = start + text[start..].find('\n').unwrap();
    assert_eq!(period(&text.replace(&text[start..=end], "")), None);
}

/// With `-t`, cyclictest can start more threads than there are CPUs.
#[test]
fn a_cpu_of_several_threads_is_named_once() {
    let text = text_of("cyclictest-2.4.json").replace("\"cpu\": 1", "\"cpu\": 0");
    assert_eq!(of(&text).unwrap().published.unwrap().figures[0].cpus, "0");
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
