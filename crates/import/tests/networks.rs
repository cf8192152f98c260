//! Files about frames and messages: sockperf, RTC-Testbench and isochron.

#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod support;

use support::{figures, imported, kinds, of, text_of};

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

#[test]
fn sockperf_sends_bursts() {
    let text = text_of("sockperf-3.7-tcp.txt");
    let bursts = of(&text.replace("Latency is", "Latency of burst of 8 messages is")).unwrap();
    assert_eq!(figures(&bursts), figures(&of(&text).unwrap()));
    assert_eq!(kinds(&bursts), ["units", "burst", "omission"]);
    let error = of(&text.replace("Summary: Latency is", "Summary: Delay is")).unwrap_err();
    assert!(error.ends_with("must have a number"), "{error}");
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
    let first = of(&format!("{}\n", text.lines().next().unwrap())).unwrap();
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
    assert_eq!(kinds(&record), ["mixed", "reversed", "reversed"]);
    let text = text_of("isochron-report.txt");
    assert!(of(&text.replace("min 2120", "min x")).unwrap_err().contains("line 2: "));
    assert!(of(&text.replace("misses: 2", "misses: x")).unwrap_err().contains("line 10: "));
    let lost = format!(
        "Packets not received: 123 (12.300%)\nSender and receiver not synchronized (mean path delay 5.0 ns larger than 1 second)\n{text}"
    );
    let record = of(&lost).unwrap();
    assert_eq!(kinds(&record), ["omission", "clock", "mixed", "reversed", "reversed"]);
    assert!(record.caveats.iter().any(|caveat| caveat.text.contains("not received: 123")), "{:?}", record.caveats);
}

/// Of the time that was left, the smallest value is the worst one.
#[test]
fn reserves_of_isochron_are_imported_as_lateness() {
    let text = text_of("isochron-report.txt");
    let of_role = |text: &str, role: &str| {
        let record = of(text).unwrap();
        let found = figures(&record).iter().find(|figures| figures.role == role).unwrap().clone();
        (found.min_ns, found.mean_ns, found.max_ns)
    };
    assert!(text.contains("Application latency budget: min 382000 max 438000 mean 430000.000"));
    assert_eq!(of_role(&text, "MAC latency"), (Some(-438_000), Some(-430_000.0), Some(-382_000)));
    let arrived = "TX time to HW RX timestamp";
    assert_eq!(of_role(&text, arrived), (Some(-436_000), Some(-428_000.125), Some(-380_000)));
    for prefix in ["  ", "> ", "[   12.345] "] {
        let quoted: String = text.lines().map(|line| format!("{prefix}{line}\n")).collect();
        assert_eq!(figures(&of(&quoted).unwrap()), figures(&of(&text).unwrap()), "{prefix:?}");
    }
    // A network card that waits for the scheduled time is late.
    let late = text
        .replace(
            "Packets arrived earlier than scheduled. HW RX timestamp to TX time",
            "Packets arrived later than scheduled. TX time to HW RX timestamp",
        )
        .replace("Application latency budget", "MAC latency");
    assert_eq!(of_role(&late, "MAC latency"), (Some(382_000), Some(430_000.0), Some(438_000)));
    assert_eq!(of_role(&late, arrived), (Some(380_000), Some(428_000.125), Some(436_000)));
    assert!(!kinds(&of(&late).unwrap()).contains(&"reversed"));
}

#[test]
fn a_log_of_the_testbench_counts_until_its_last_whole_line() {
    let text = text_of("rtc-testbench.log");
    let cut = of(&text[..text.rfind("LldpRttMin").unwrap()]).unwrap();
    assert_eq!(figures(&cut), figures(&of(&format!("{}\n", text.lines().next().unwrap())).unwrap()));
    assert!(kinds(&cut).contains(&"cut"), "{:?}", cut.caveats);
    for (from, expected) in [
        ("LldpSent=61 | ", "line 3: it has no LldpSent, unlike the line before; the line is cut"),
        ("LldpOnewayMax=600 [us] | ", "line 3: it has no LldpOnewayMax, unlike the line before; the line is cut"),
    ] {
        assert!(text.contains(from));
        let error = of(&text.replace(from, "")).unwrap_err();
        assert!(error.ends_with(expected), "{error}");
    }
    let line = "[ 1.0]: [INFO]: ASent=1 | AReceived=1 | ARttMin=1 [us] | ARttMax=2 [us] | ARttAvg=1.5 [us] | BSent=1\n";
    assert!(of(line).unwrap_err().ends_with("line 1: BReceived must be a number; the line is cut"));
}

#[test]
fn percentiles_that_fall_are_refused() {
    let text = text_of("sockperf-3.7-tcp.txt");
    let error = of(&text.replace("99.900 =   21.126", "99.900 =    2.126")).unwrap_err();
    assert!(error.ends_with("server 0: the value at 99.9 %, 2.126, is below that at 99 %, 7.801"), "{error}");
    let error = of(&text.replace("99.999 =  116.762", "99.999 =  316.762")).unwrap_err();
    assert!(error.contains("the value at 100 %, 116.762, is below that at 99.999 %, 316.762"), "{error}");
}
