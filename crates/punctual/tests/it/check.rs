//! `punctual check nic`: refusals, the findings of recorded interfaces, and the interfaces of this machine.

use std::{fs, path::Path};

use serde_json::Value;

use crate::harness::{Run, Scratch, skip};

fn recorded(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../machine/tests/nics").join(name);
    folder.to_str().unwrap().to_owned()
}

fn check(arguments: &str) -> Run {
    Scratch::new().run(&format!("check nic {arguments}"))
}

fn json(run: &Run) -> Value {
    serde_json::from_str(&run.stdout()).unwrap()
}

/// The identifiers of the findings in this state.
fn ids(document: &Value, state: &str) -> Vec<String> {
    let findings = document["findings"].as_array().unwrap().iter();
    findings.filter(|f| f["state"] == state).map(|f| f["id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn refuses_interfaces_that_are_not_network_cards() {
    let refused = |interface: &str, status: i32, words: &str| {
        let run = check(interface);
        run.expect_status(status);
        assert!(run.stderr().contains(words) && run.stdout().is_empty(), "{}", run.stderr());
        assert_eq!(run.stderr().lines().count(), 1, "{}", run.stderr());
    };
    refused("lo", 1, "lo is the loopback, which has no NIC: name an Ethernet interface");
    refused("no-such-if0", 1, "there is no interface \"no-such-if0\" here: `ip -br link` lists");
    refused("../etc", 1, "there is no interface");
    check("").expect_status(64);
    check("lo --period 0s").expect_status(64);
    check("eth0 --root /nonexistent").expect_status(1);
}

#[test]
fn a_recorded_nic_has_its_known_findings_and_exit_status() {
    let plain = recorded("i225");
    let run = check(&format!("eth0 --root {plain} --json"));
    run.expect_status(2);
    let document = json(&run);
    assert_eq!(ids(&document, "fail"), ["nic.coalesce.rx_usecs", "nic.eee"]);
    assert_eq!(ids(&document, "warn").last().unwrap(), "irq.balance");
    assert_eq!(document["interface"]["coalescing"]["known"]["rx_usecs"], 20);
    assert_eq!(document["machine"]["preempt"], "PREEMPT_RT");
    let slow = json(&check(&format!("eth0 --root {plain} --json --period 1ms")));
    assert_eq!(ids(&slow, "fail"), ["nic.eee"], "20 us do not matter in 1 ms");
    let tuned = check(&format!("eth0 --root {} --json", recorded("i225-tuned")));
    tuned.expect_status(0);
    assert!(ids(&json(&tuned), "warn").is_empty());
}

/// The facts first, then the findings with their remedies, the worst first.
#[test]
fn the_page_shows_facts_then_findings() {
    let run = check(&format!("eth0 --root {} --color never --full", recorded("i225")));
    let page = run.stdout();
    let mut rest = page.as_str();
    let expected = [
        "Interface eth0",
        "driver      igc, 02:00:00:00:00:01",
        "link        1000 Mbit/s, full duplex, MTU 1500",
        "clock       /dev/ptp0 (igc)",
        "Findings",
        "a received frame waits up to 20 us for its interrupt (limit 12.5 us)",
        "sudo ethtool -C eth0 rx-usecs 0",
        "the link sleeps between frames (EEE)",
        "sudo ethtool --set-eee eth0 eee off",
        "2 fail, 16 warn, 1 unknown of 39 findings",
    ];
    for words in expected {
        let at = rest.find(words).unwrap_or_else(|| panic!("no {words:?} in\n{rest}\nof\n{page}"));
        rest = &rest[at + words.len()..];
    }
}

#[test]
fn the_answer_starts_with_the_verdict_and_has_at_most_20_lines() {
    let run = check(&format!("eth0 --root {} --color never", recorded("i225")));
    let answer = run.expect_status(2).stdout();
    assert!(answer.lines().count() <= 20, "{answer}");
    let first = answer.lines().next().unwrap();
    assert!(first.contains("Settings that cause lateness: 2; that may cause it: 16."), "{answer}");
    for words in [
        "driver   igc, 02:00:00:00:00:01",
        "sudo ethtool -C eth0 rx-usecs 0",
        "more     punctual check nic eth0 --full",
    ] {
        assert!(answer.contains(words), "no {words:?} in\n{answer}");
    }
}

#[test]
fn a_quiet_check_is_one_sentence() {
    let run = check(&format!("eth0 --root {} --color never --quiet", recorded("i225")));
    let said = run.expect_status(2).stdout();
    assert!(said.contains("Settings that cause lateness: 2; ") && said.lines().count() == 1, "{said}");
}

/// For the interfaces of this machine. Nothing is changed.
#[test]
fn a_fact_that_cannot_be_read_is_not_ok() {
    let interfaces =
        fs::read_dir("/sys/class/net").unwrap().flatten().filter(|entry| entry.path().join("device").exists());
    let names: Vec<String> = interfaces.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    if names.is_empty() {
        skip("this machine has no NIC");
    }
    let sources = [
        ("coalescing", "nic.coalesce."),
        ("eee", "nic.eee"),
        ("pause", "nic.pause"),
        ("rings", "nic.rings."),
        ("features", "nic.offload."),
        ("qdiscs", "nic.qdisc"),
        ("stamping", "nic.timestamps"),
        ("preemption", "nic.preemption"),
        ("xdp", "nic.xdp"),
        ("napis", "nic.napi."),
    ];
    for name in names {
        let run = check(&format!("{name} --json"));
        assert!([0, 1, 2].contains(&run.0.status.code().unwrap()), "{}", run.stderr());
        if run.0.status.code() == Some(1) {
            assert!(run.stderr().contains("wireless"), "{}", run.stderr());
            continue;
        }
        let document = json(&run);
        let ok = ids(&document, "ok");
        for (source, prefix) in sources {
            if document["interface"][source]["known"].is_null() {
                assert!(!ok.iter().any(|id| id.starts_with(prefix)), "{source} of {name} is unknown: {ok:?}");
            }
        }
    }
}
