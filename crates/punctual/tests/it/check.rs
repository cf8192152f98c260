//! `punctual check`: refusals, the findings of recorded machines and interfaces, and those of this machine.

use std::{fs, path::Path, process::Command};

use serde_json::Value;

use crate::harness::{Run, Scratch, skip};

fn recorded_machine(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../machine/tests/machines").join(name);
    folder.to_str().unwrap().to_owned()
}

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
        "nic.coalesce.rx_usecs: the interrupt of a received frame waits up to 20 us",
        "sudo ethtool -C eth0 rx-usecs 0",
        "the link sleeps between frames (EEE)",
        "sudo ethtool --set-eee eth0 eee off",
        "2 fail, 16 warn, 1 unknown of 41 findings",
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

/// Status 2 from `--fail-on` on; the answer has a line for each finding, the worst first, and the way to its explanation.
#[test]
fn a_machine_has_its_known_findings_and_exit_status() {
    let root = recorded_machine("raspberry-pi-audio");
    let scratch = Scratch::new();
    let run = |options: &str| scratch.run(&format!("check --root {root} {options}"));
    let answer = run("--color never");
    let lines: Vec<String> = answer.expect_status(2).stdout().lines().map(str::to_owned).collect();
    assert!(lines.len() <= 20 && lines[0].contains("Settings that cause lateness: 1;"), "{lines:#?}");
    assert!(lines[1].contains("fail  board.throttled") && lines[2].contains("warn  "), "{lines:#?}");
    assert!(answer.stdout().contains("  explain  punctual check --root"), "{}", answer.stdout());

    let document = json(run("--json").expect_status(2));
    assert_eq!(ids(&document, "fail"), ["board.throttled"]);
    for id in ["irq.storm", "irq.threads", "tasks.busy_kernel", "board.leds", "cpu.workqueues", "power.aspm"] {
        assert!(ids(&document, "warn").contains(&id.to_owned()), "{id}");
    }
    let findings = document["findings"].as_array().unwrap();
    assert!(findings.iter().all(|finding| finding["source"].is_string() && finding["subject"].is_string()));

    run("--fail-on never").expect_status(0);
    let quiet = recorded_machine("atom-controller");
    for (fail_on, status) in [("warn", 2), ("fail", 2), ("never", 0)] {
        scratch.run(&format!("check --root {quiet} --fail-on {fail_on}")).expect_status(status);
    }
    let board = recorded_machine("ryzen-desktop");
    scratch.run(&format!("check --root {board} --fail-on fail")).expect_status(0);
    scratch.run(&format!("check --root {board} --fail-on warn")).expect_status(2);
}

#[test]
fn a_finding_is_explained() {
    let root = recorded_machine("raspberry-pi-audio");
    let explained = |id: &str, status: i32| {
        let run = Scratch::new().run(&format!("check --root {root} --explain {id} --color never"));
        run.expect_status(status);
        run.stdout()
    };
    let storm = explained("irq.storm", 0);
    for part in ["warn  irq.storm: 5000 interrupts a second from xhci_hcd", "why  ", "do  ", "source  "] {
        assert!(storm.contains(part), "{part}: {storm}");
    }
    assert!(explained("cpu.workqueues", 0).contains("lasts     until the next boot"));
    assert!(explained("board.throttled", 2).contains("get_throttled"));
    let good = explained("kernel.preempt", 0);
    assert!(good.contains("ok  kernel.preempt") || good.contains("ok    kernel.preempt"), "{good}");
}

/// A copy of a machine has the same findings, and nothing of its name.
#[test]
fn a_snapshot_has_the_findings_of_its_machine() {
    let scratch = Scratch::new();
    let states = |root: &str| {
        let document = json(&scratch.run(&format!("check --root {root} --fail-on never --json")));
        let findings = document["findings"].as_array().unwrap().clone();
        // The owner of a USB device may have named it: a copy has its place only.
        let seen = |finding: Value| match finding["id"] == "power.usb" {
            true => (finding["id"].clone(), finding["state"].clone()),
            false => (finding["id"].clone(), finding["title"].clone()),
        };
        findings.into_iter().map(seen).collect::<Vec<_>>()
    };
    for name in ["raspberry-pi-audio", "ryzen-desktop", "container-cpuset", "industrial-pc-evl"] {
        let root = recorded_machine(name);
        // Not every machine has the program zstd, which tar needs.
        let is_zst = name == "ryzen-desktop" && Command::new("zstd").arg("--version").output().is_ok();
        let archive = format!("{name}.{}", if is_zst { "tar.zst" } else { "tar.gz" });
        scratch.run(&format!("snapshot -o {archive} --root {root}")).expect_status(0);
        fs::create_dir(scratch.path().join(name)).unwrap();
        let unpack = Command::new("tar").args(["xf", &archive, "-C", name]).current_dir(scratch.path()).status();
        assert!(unpack.unwrap().success());
        let packed = scratch.run(&format!("check --root {archive}"));
        assert!(packed.expect_status(1).stderr().contains("unpack it with `mkdir "), "{}", packed.stderr());
        assert_eq!(states(name), states(&root), "{name}");
        let host = fs::read_to_string(scratch.path().join(name).join("proc/sys/kernel/hostname")).unwrap();
        assert_eq!(host.trim_end(), "host");
    }
    for name in ["machine.zip", ".tar.gz", "folder/.tar.zst", "machine.tar.gz.zst"] {
        scratch.run(&format!("snapshot --output {name}")).expect_status(64);
    }
    scratch.run("snapshot -o own.tar.zst").expect_status(0);
    let own = fs::read(scratch.path().join("own.tar.zst")).unwrap();
    assert_eq!(own[..4], 0xfd2f_b528_u32.to_le_bytes(), "magic number of a Zstandard frame, RFC 8878");
}

/// The newest record of this machine and kernel decides if the use of `--for` is held, and then no real-time kernel is
/// needed.
#[test]
fn a_measurement_is_evidence_that_no_real_time_kernel_is_needed() {
    let scratch = Scratch::new();
    let measured = |scratch: &Scratch| {
        let document = json(&scratch.run("check --for own.toml --fail-on never --json"));
        let of = |id: &str| {
            let findings = document["findings"].as_array().unwrap();
            findings.iter().find(|finding| finding["id"] == id).unwrap().clone()
        };
        (of("use.measured"), of("kernel.preempt"))
    };
    // A limit that any machine holds, and a rate that 8 s show.
    let profile = |limit: &str| {
        let text = format!(
            "title = \"own\"\ngroup = \"control\"\nperiod = \"500ms\"\nlimit = \"{limit}\"\ntolerates = \"30 per minute\"\n\
             meaning = \"m\"\n[[sources]]\nwhat = \"w\"\nwhere = \"x\"\n"
        );
        fs::write(scratch.path().join("own.toml"), text).unwrap();
    };
    profile("490ms");
    let (before, _) = measured(&scratch);
    assert_eq!(before["state"], "unknown", "{before}");
    assert!(before["remedy"].as_str().unwrap().contains("measure timer"), "{before}");
    let own = scratch.path().join("own.toml");
    let of_trips = fs::read_to_string(&own).unwrap().replace("meaning", "judges = \"round-trips\"\nmeaning");
    fs::write(&own, of_trips).unwrap();
    let (trips, _) = measured(&scratch);
    assert!(trips["remedy"].as_str().unwrap().contains("measure udp HOST "), "{trips}");
    profile("490ms");
    let run = "measure timer --cpus 0 --period 1ms --duration 8s --policy other";
    scratch.run(&format!("{run} --record r")).expect_status(0);
    let (at_rest, preempt) = measured(&scratch);
    assert_eq!(at_rest["state"], "ok", "{at_rest}");
    let title = preempt["title"].as_str().unwrap();
    assert!(!title.contains("no real-time kernel needed"), "a machine at rest shows little: {title}");
    scratch.run(&format!("{run} --load switch --record s")).expect_status(0);
    let (held, preempt) = measured(&scratch);
    assert_eq!((&held["state"], &preempt["state"]), (&"ok".into(), &"ok".into()), "{held} {preempt}");
    let title = preempt["title"].as_str().unwrap();
    assert!(title.contains("no real-time kernel needed") || title.contains("PREEMPT_RT"), "{title}");
    profile("100ns");
    let (failed, _) = measured(&scratch);
    assert_eq!(failed["state"], "fail", "{failed}");
    assert!(failed["remedy"].as_str().unwrap().starts_with("punctual blame s"), "{failed}");
}
