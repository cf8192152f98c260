//! Recorded interfaces under `nics/`: the settings of each are stored in `NAME.json`, the findings in
//! `findings/ID.json`.
//!
//! `virtio` and `veth` are answers of a guest's kernel (`punctual check nic IF --keep-answers DIR`). Both `i225` are
//! generated here: a NIC with default settings, and one with good settings.
//!
//! `UPDATE=1 cargo test -p punctual-machine --test nics` writes the JSON files: review the difference.

#![allow(clippy::unwrap_used, reason = "a test that cannot read its files has failed")]

mod golden;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use machine::{
    Root,
    nic::{Answers, Nic, NicError, Reading, findings},
};
use record::{Ahead, Finding, FindingState, Ptp, PtpPort};
use sys::netlink::{Answer, Request};

/// The folders, each with the name of its interface.
const NAMES: [(&str, &str); 4] = [("i225", "eth0"), ("i225-tuned", "eth0"), ("veth", "near"), ("virtio", "eth0")];
const PERIOD_NS: u64 = 125_000;

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/nics").join(name)
}

fn read(root: &Root, interface: &str) -> Result<Nic, NicError> {
    Nic::read(root, &mut Answers::of(root), interface)
}

fn found(name: &str, period_ns: u64) -> Vec<Finding> {
    let (name, interface) = NAMES.iter().find(|(folder, _)| *folder == name).unwrap();
    findings(&read(&Root::at(folder(name)), interface).unwrap(), period_ns)
}

fn state(findings: &[Finding], id: &str) -> FindingState {
    findings.iter().find(|finding| finding.id == id).unwrap_or_else(|| panic!("no {id}")).state
}

#[test]
fn settings_and_findings_of_each_recorded_interface() {
    write_generated();
    let mut found = BTreeMap::new();
    for (name, interface) in NAMES {
        let nic = read(&Root::at(folder(name)), interface).unwrap();
        golden::check(&folder(&format!("{name}.json")), &nic);
        found.insert(name, findings(&nic, PERIOD_NS));
    }
    golden::check_findings(&folder("findings"), &found);
}

#[test]
fn every_finding_explains_itself() {
    for (name, _) in NAMES {
        let found = found(name, PERIOD_NS);
        let mut ids: Vec<&str> = found.iter().map(|finding| finding.id.as_str()).collect();
        for Finding { id, state, title, evidence, why, remedy, .. } in &found {
            assert!(!title.is_empty() && evidence.len() > 3 && !evidence.contains('\n'), "{id}: {evidence}");
            let alarming = matches!(state, FindingState::Warn | FindingState::Fail);
            assert_eq!((why.is_empty(), remedy.is_empty()), (!alarming, !alarming), "{id} of {name}");
            assert!(id.starts_with("nic."), "{id}");
        }
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), found.len(), "each identity once");
    }
}

/// The table in the documentation has one row for each finding.
#[test]
fn every_finding_is_documented() {
    let page = fs::read_to_string(folder("../../../../docs/check.md")).unwrap();
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `nic.")?.split_once('`'));
    let documented: Vec<String> = rows.map(|(id, _)| format!("nic.{id}")).collect();
    let ids: Vec<String> = found("i225", PERIOD_NS).into_iter().map(|finding| finding.id).collect();
    assert_eq!(documented, ids);
}

#[test]
fn bad_settings_are_found_and_good_ones_are_not() {
    use FindingState::{Fail, NotApplicable, Ok, Unknown, Warn};
    let (plain, tuned) = (found("i225", PERIOD_NS), found("i225-tuned", PERIOD_NS));
    let expected = [
        ("nic.hardware", Ok, Ok),
        ("nic.losses", Warn, Ok),
        ("nic.coalesce.rx_usecs", Fail, Ok),
        ("nic.coalesce.adaptive", Warn, Ok),
        ("nic.eee", Fail, Ok),
        ("nic.pause", Warn, Ok),
        ("nic.power.runtime", Warn, Ok),
        ("nic.power.aspm", Warn, Ok),
        ("nic.rings.rx", Warn, Ok),
        ("nic.offload.gro", Warn, Ok),
        ("nic.offload.vlan_filter", Warn, Ok),
        ("nic.qdisc.cbs", Warn, NotApplicable),
        ("nic.qdisc.etf", NotApplicable, Ok),
        ("nic.irq.affinity", Warn, Ok),
        ("nic.irq.threads", Warn, Ok),
        ("nic.clock", Ok, Ok),
        ("nic.clock.sync", Warn, Unknown),
        ("nic.clock.system", Unknown, Unknown),
    ];
    for (id, default, good) in expected {
        assert_eq!((state(&plain, id), state(&tuned, id)), (default, good), "{id}");
    }
    assert!(tuned.iter().all(|finding| !matches!(finding.state, Fail | Warn)), "{tuned:#?}");
}

#[test]
fn limits_grow_with_the_period() {
    let at = |period_ns| state(&found("i225", period_ns), "nic.coalesce.rx_usecs");
    assert_eq!((at(199_999), at(200_000)), (FindingState::Fail, FindingState::Ok), "20 us is a tenth of 200 us");
    let ring = |period_ns| state(&found("i225", period_ns), "nic.rings.rx");
    assert_eq!((ring(195_000), ring(196_000)), (FindingState::Warn, FindingState::Ok), "256 frames in 50 ms");
}

/// An interrupt comes after a time or a number of frames, whichever is first.
#[test]
fn coalescing_is_judged_by_time_and_frames_together() {
    use FindingState::{Fail, NotApplicable, Ok, Warn};
    let judged = |usecs: Option<u32>, frames: Option<u32>| {
        let mut nic = read(&Root::at(folder("i225")), "eth0").unwrap();
        let Reading::Known(values) = &mut nic.coalescing else { panic!("{:?}", nic.coalescing) };
        (values.rx_usecs, values.rx_frames) = (usecs, frames);
        (values.tx_usecs, values.tx_frames) = (usecs, frames);
        let found = findings(&nic, PERIOD_NS);
        ["rx_usecs", "rx_frames", "tx_usecs", "tx_frames"].map(|id| state(&found, &format!("nic.coalesce.{id}")))
    };
    assert_eq!(judged(Some(20), Some(1)), [Ok; 4], "each frame has its interrupt");
    assert_eq!(judged(Some(20), Some(0)), [Fail, Ok, Warn, Ok], "after 20 us");
    assert_eq!(judged(Some(20), Some(64)), [Fail, Warn, Warn, Warn], "after 20 us or 64 frames");
    assert_eq!(judged(Some(12), Some(64)), [Ok; 4], "12 us is less than a tenth of the period");
    assert_eq!(judged(Some(0), Some(64)), [Ok, Fail, Ok, Warn], "after 64 frames, however long that takes");
    assert_eq!(judged(None, Some(64)), [NotApplicable, Fail, NotApplicable, Warn]);
    assert_eq!(judged(Some(0), None), [Ok, NotApplicable, Ok, NotApplicable]);
}

/// Without a time limit, an interrupt would wait for all frames of its count.
#[test]
fn no_remedy_of_coalescing_removes_the_only_limit() {
    let mut nic = read(&Root::at(folder("i225")), "eth0").unwrap();
    let Reading::Known(values) = &mut nic.coalescing else { panic!("{:?}", nic.coalescing) };
    (values.rx_usecs, values.rx_frames) = (Some(20), Some(32));
    (values.tx_usecs, values.tx_frames) = (Some(20), Some(0));
    let found = findings(&nic, PERIOD_NS);
    let remedy = |id: &str| found.iter().find(|finding| finding.id == id).unwrap().remedy.clone();
    assert_eq!(remedy("nic.coalesce.rx_usecs"), "sudo ethtool -C eth0 rx-usecs 0 rx-frames 1");
    assert_eq!(remedy("nic.coalesce.tx_usecs"), "sudo ethtool -C eth0 tx-usecs 0");
}

/// With only the answer about the link, everything else is unknown and never `ok`.
#[test]
fn unreadable_settings_are_never_ok() {
    let copy = tempfile::tempdir().unwrap();
    fs::create_dir_all(copy.path().join("netlink/eth0")).unwrap();
    let link = "netlink/eth0/link.hex";
    fs::copy(folder("i225").join(link), copy.path().join(link)).unwrap();
    let nic = read(&Root::at(copy.path()), "eth0").unwrap();
    for finding in findings(&nic, PERIOD_NS) {
        let is_known = ["nic.link.carrier", "nic.link.mtu", "nic.losses"].contains(&finding.id.as_str());
        assert_eq!(finding.state == FindingState::Unknown, !is_known, "{finding:?}");
    }
}

/// Parts of paths, and the findings that are unknown without such a file or folder on the tuned NIC, where all are good.
const DECIDED_BY: [(&str, &[&str]); 9] = [
    ("net/eth0/ifindex", &["nic.hardware", "nic.power.runtime", "nic.power.aspm", "nic.irq", "nic.irq.threads"]),
    ("power/control", &["nic.power.runtime"]),
    ("link/l0s_aspm", &["nic.power.aspm"]),
    ("link/l1_aspm", &["nic.power.aspm"]),
    ("proc/interrupts", &["nic.irq", "nic.irq.affinity", "nic.irq.threads"]),
    ("irq/129/smp_affinity_list", &["nic.irq.affinity"]),
    ("irq/130/effective_affinity_list", &["nic.irq.affinity"]),
    ("proc/302/comm", &["nic.irq.threads"]),
    ("proc/302/stat", &["nic.irq.threads"]),
];

fn walk(folder: &Path, paths: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let kind = entry.file_type().unwrap();
        if !kind.is_symlink() {
            paths.push(entry.path());
        }
        if kind.is_dir() {
            walk(&entry.path(), paths);
        }
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let to = to.join(entry.file_name());
        match entry.file_type().unwrap() {
            kind if kind.is_dir() => copy(&entry.path(), &to),
            kind if kind.is_symlink() => symlink(fs::read_link(entry.path()).unwrap(), to).unwrap(),
            _ => drop(fs::copy(entry.path(), to).unwrap()),
        }
    }
}

/// A link to itself in place of each file and folder in turn: the kernel returns ELOOP, also to root.
#[test]
fn no_finding_is_content_with_what_it_cannot_read() {
    break_each(|_| true, |path| symlink(path, path).unwrap());
}

/// A file without bytes, and then with garbage, in place of each file in turn.
#[test]
fn no_finding_decides_by_a_damaged_file() {
    break_each(Path::is_file, |path| fs::write(path, "").unwrap());
    // A program can have any name.
    let has_syntax = |path: &Path| path.is_file() && !path.ends_with("comm");
    break_each(has_syntax, |path| fs::write(path, "xyzzy \u{1}\n").unwrap());
}

/// Breaks each file and folder in turn: a finding becomes unknown, or does not change.
fn break_each(is_broken: impl Fn(&Path) -> bool, break_it: impl Fn(&Path)) {
    let mut used = BTreeSet::new();
    let mut wrong = BTreeMap::new();
    for (name, interface) in NAMES {
        let (copied, saved) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        copy(&folder(name), copied.path());
        let root = Root::at(copied.path());
        let before = findings(&read(&root, interface).unwrap(), PERIOD_NS);
        let mut paths = Vec::new();
        walk(copied.path(), &mut paths);
        for path in paths.into_iter().filter(|path| is_broken(path)) {
            fs::rename(&path, saved.path().join("saved")).unwrap();
            break_it(&path);
            let nic = read(&root, interface);
            fs::remove_file(&path).unwrap();
            fs::rename(saved.path().join("saved"), &path).unwrap();
            // Without the answer about the link, there are no findings.
            let Ok(nic) = nic else { continue };
            let path = path.strip_prefix(copied.path()).unwrap().display().to_string();
            let after = findings(&nic, PERIOD_NS);
            for (was, is) in before.iter().zip(&after) {
                if !matches!(is.state, FindingState::Unknown) && was.state != is.state {
                    wrong.insert(format!("{} of {name} without {path}", is.id), (was.title.clone(), is.clone()));
                }
            }
            for (_, ids) in DECIDED_BY.iter().filter(|(part, _)| name == "i225-tuned" && path.contains(part)) {
                for id in *ids {
                    used.insert(*id);
                    assert_eq!(state(&after, id), FindingState::Unknown, "{id} without {path}");
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!(used.len(), 6, "{used:?}");
}

/// The kernel refuses each query with EPERM in turn: findings that need the answer are unknown. Others can use names of
/// interrupts instead.
#[test]
fn refused_queries_are_unknown() {
    let forbidden = hex(&Answer::refused(1));
    let mut changed = 0;
    for (name, interface) in NAMES {
        let copied = tempfile::tempdir().unwrap();
        copy(&folder(name), copied.path());
        let root = Root::at(copied.path());
        let before = findings(&read(&root, interface).unwrap(), PERIOD_NS);
        for entry in fs::read_dir(copied.path().join("netlink").join(interface)).unwrap() {
            let path = entry.unwrap().path();
            let answer = fs::read(&path).unwrap();
            fs::write(&path, &forbidden).unwrap();
            let nic = read(&root, interface);
            fs::write(&path, answer).unwrap();
            let Ok(nic) = nic else {
                assert!(path.ends_with("link.hex"), "{nic:?}");
                continue;
            };
            for (was, is) in before.iter().zip(findings(&nic, PERIOD_NS)) {
                let is_unknown = is.state == FindingState::Unknown;
                assert!(is_unknown || was.state == is.state, "{name} without {path:?}: {was:#?} {is:#?}");
                changed += usize::from(was.state != is.state);
            }
        }
    }
    assert!(changed > 40, "{changed}");
}

/// If tasks are hidden, a missing one proves nothing.
#[test]
fn hidden_tasks_are_unknown() {
    let mut nic = read(&Root::at(folder("i225")), "eth0").unwrap();
    nic.sees_all_tasks = false;
    nic.interrupts.iter_mut().flatten().for_each(|interrupt| interrupt.thread = None);
    let found = findings(&nic, PERIOD_NS);
    assert_eq!(state(&found, "nic.irq.threads"), FindingState::Unknown);
    assert_eq!(state(&found, "nic.clock.sync"), FindingState::Unknown);
}

/// The state of ptp4l and the clock's offset decide, not the existence of a program.
#[test]
fn clock_is_judged_by_its_offset() {
    use FindingState::{Ok, Warn};
    let port = |state: &str| PtpPort { state: state.to_owned(), stamps_in_hardware: Some(true), ..PtpPort::default() };
    let judged = |state: &str, offset_ns, ahead_ns| {
        let mut nic = read(&Root::at(folder("i225")), "eth0").unwrap();
        let clocks = nic.clocks.as_mut().unwrap();
        let ports = vec![port(state)];
        clocks.ptp = Some(Ptp { grandmaster: "gm".to_owned(), offset_ns, ports, utc_offset_s: 37, ..Ptp::default() });
        clocks.hardware[0].ahead = Some(Ahead::of(ahead_ns, 800));
        let found = findings(&nic, PERIOD_NS);
        (self::state(&found, "nic.clock.sync"), self::state(&found, "nic.clock.system"))
    };
    assert_eq!(judged("SLAVE", 1000, 37_000_000_120), (Ok, Ok));
    assert_eq!(judged("SLAVE", 1001, 12_100), (Warn, Ok), "12.1 us plus half a window is a tenth of the period");
    assert_eq!(judged("UNCALIBRATED", 10, 12_101), (Warn, Warn));
    assert_eq!(judged("SLAVE", 10, 36_000_000_000), (Ok, Warn), "neither TAI nor UTC");

    let mut nic = read(&Root::at(folder("i225")), "eth0").unwrap();
    let elsewhere = PtpPort { interface: Some("eth1".to_owned()), ..port("SLAVE") };
    let of_kernel = PtpPort { stamps_in_hardware: Some(false), ..port("SLAVE") };
    for (port, title) in [(elsewhere, "ptp4l runs, but not on eth0"), (of_kernel, "ptp4l uses the kernel's timestamps")]
    {
        nic.clocks.as_mut().unwrap().ptp = Some(Ptp { ports: vec![port], ..Ptp::default() });
        let found = findings(&nic, PERIOD_NS);
        let sync = found.iter().find(|finding| finding.id == "nic.clock.sync").unwrap();
        assert!(sync.state == Warn && sync.title.starts_with(title) && !sync.remedy.is_empty(), "{sync:?}");
    }
}

#[test]
fn unsupported_settings_are_not_applicable() {
    let veth = found("veth", PERIOD_NS);
    for id in ["nic.coalesce.rx_usecs", "nic.eee", "nic.pause", "nic.rings.rx", "nic.preemption"] {
        assert_eq!(state(&veth, id), FindingState::NotApplicable, "{id}");
    }
}

#[test]
fn refuses_interfaces_that_are_not_wired_ethernet() {
    let machine = tempfile::tempdir().unwrap();
    let put = |name: &str, text: &str| {
        fs::create_dir_all(machine.path().join(name).parent().unwrap()).unwrap();
        fs::write(machine.path().join(name), text).unwrap();
    };
    let root = Root::at(machine.path());
    let missing = Answer::refused(19);
    for (name, answer) in
        [("lo", Answer::of(&[link("lo", 772)])), ("wl0", Answer::of(&[link("wl0", 1)])), ("no0", missing)]
    {
        put(&format!("netlink/{name}/link.hex"), &hex(&answer));
    }
    put("netlink/tun0/link.hex", &hex(&Answer::of(&[link("tun0", 0xfffe)])));
    put("sys/class/net/wl0/ifindex", "2\n");
    put("sys/class/net/wl0/phy80211/name", "phy0\n");
    let refused = |name: &str| read(&root, name).unwrap_err();
    assert_eq!(refused("lo"), NicError::Loopback("lo".to_owned()));
    assert_eq!(refused("wl0"), NicError::Wireless("wl0".to_owned()));
    assert_eq!(refused("tun0"), NicError::NotEthernet("tun0".to_owned()));
    for name in ["no0", "", "../../etc", "a b", "a-name-far-too-long"] {
        assert_eq!(refused(name), NicError::Missing(name.to_owned()));
    }
    assert!(matches!(refused("new0"), NicError::Unknown { .. }), "not recorded");
}

/// The same answers with single bytes changed: nothing panics.
#[test]
fn survives_invalid_answers() {
    let copy = tempfile::tempdir().unwrap();
    let netlink = copy.path().join("netlink/eth0");
    fs::create_dir_all(&netlink).unwrap();
    for (name, answer) in generated(false) {
        fs::write(netlink.join(format!("{name}.hex")), hex(&answer)).unwrap();
    }
    let root = Root::at(copy.path());
    for (name, answer) in generated(false) {
        let file = netlink.join(format!("{name}.hex"));
        for at in (0..answer.bytes().len()).step_by(5) {
            let mut bytes = answer.bytes().to_vec();
            bytes[at] ^= 0xff;
            fs::write(&file, hex(&Answer::from_bytes(bytes))).unwrap();
            if let Ok(nic) = read(&root, "eth0") {
                assert!(!findings(&nic, PERIOD_NS).is_empty());
            }
        }
        fs::write(&file, hex(&answer)).unwrap();
    }
}

/// Writes the files of the generated interfaces.
fn write_generated() {
    if !golden::update() {
        return;
    }
    for (name, is_tuned) in [("i225", false), ("i225-tuned", true)] {
        let netlink = folder(name).join("netlink/eth0");
        fs::create_dir_all(&netlink).unwrap();
        for (file, answer) in generated(is_tuned) {
            fs::write(netlink.join(format!("{file}.hex")), format!("# made up\n{}", hex(&answer))).unwrap();
        }
    }
}

fn hex(answer: &Answer) -> String {
    let mut text = String::new();
    for line in answer.bytes().chunks(16) {
        line.iter().for_each(|byte| write!(text, "{byte:02x} ").unwrap());
        text.truncate(text.trim_end().len());
        text.push('\n');
    }
    text
}

/// An interface with number 2: ifinfomsg of family 0, this hardware, and the flags UP, BROADCAST, RUNNING, MULTICAST.
fn link(name: &str, hardware: u16) -> Request {
    let mut header = [0; 16];
    header[2..4].copy_from_slice(&hardware.to_ne_bytes());
    header[4..8].copy_from_slice(&2_u32.to_ne_bytes());
    header[8..12].copy_from_slice(&0x1043_u32.to_ne_bytes());
    Request::get(16).header(&header).text(3, name).u32(4, 1500).u8(16, 6).u8(33, 1)
}

/// Adds a bit set without a mask.
fn bits(request: Request, kind: u16, names: &[&str]) -> Request {
    request.nested(kind, |set| {
        set.bytes_of(1, &[])
            .u32(2, 64)
            .nested(3, |list| names.iter().fold(list, |list, name| list.nested(1, |bit| bit.u32(1, 0).text(2, name))))
    })
}

/// A discipline of interface 2 with this parent: the tcmsg and its kind.
fn qdisc(parent: u32, kind: &str) -> Request {
    let words = [0, 2, 0x10000, parent, 2].map(u32::to_ne_bytes).concat();
    // gnet_stats_queue: nothing waits, and nothing was dropped.
    Request::get(36).header(&words).text(1, kind).nested(7, |statistics| statistics.bytes_of(3, &[0; 20]))
}

fn parameters(values: &[i32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_ne_bytes()).collect()
}

/// The kernel's answers for an Intel i225 (driver igc) with default or good settings.
fn generated(is_tuned: bool) -> Vec<(&'static str, Answer)> {
    let one = |request: Request| Answer::of(&[request]);
    // The header of each answer of the family ethtool.
    let ethtool = |command: u8| Request::generic(21, command).nested(1, |header| header.u32(1, 2).text(2, "eth0"));
    let netdev = |command: u8| Request::generic(25, command);
    let choose = |default: u32, tuned: u32| if is_tuned { tuned } else { default };
    let on = u8::from(!is_tuned);

    // rtnl_link_stats64: 100 000 frames received, 12 missed.
    let mut statistics = [0_u64; 25];
    (statistics[0], statistics[1]) = (100_000, 90_000);
    statistics[15] = if is_tuned { 0 } else { 12 };
    let statistics: Vec<u8> = statistics.iter().flat_map(|count| count.to_ne_bytes()).collect();

    let features: &[&str] = if is_tuned {
        &["tx-scatter-gather"]
    } else {
        &["tx-scatter-gather", "tx-tcp-segmentation", "rx-gro", "rx-vlan-hw-parse", "rx-vlan-filter"]
    };
    let capabilities = [
        "hardware-transmit",
        "software-transmit",
        "hardware-receive",
        "software-receive",
        "software-system-clock",
        "hardware-raw-clock",
    ];
    let napi = |id: u32, interrupt: u32| {
        let flush = 0_u64.to_ne_bytes();
        netdev(11).u32(1, 2).u32(2, id).u32(3, interrupt).u32(5, 0).bytes_of(6, &flush)
    };
    let qdiscs = if is_tuned {
        // delta 200 us, CLOCK_TAI, offloaded.
        let etf = parameters(&[200_000, 11, 2]);
        vec![qdisc(u32::MAX, "mqprio"), qdisc(0x1_0001, "etf").nested(2, |options| options.bytes_of(1, &etf))]
    } else {
        // In software; class A of one stereo stream.
        let cbs = parameters(&[0, 12, -114, 7296, -992_704]);
        vec![qdisc(u32::MAX, "mqprio"), qdisc(0x1_0001, "cbs").nested(2, |options| options.bytes_of(1, &cbs))]
    };
    vec![
        ("link", one(link("eth0", 1).bytes_of(1, &[2, 0, 0, 0, 0, 1]).bytes_of(23, &statistics))),
        ("linkmodes", one(ethtool(4).u8(2, 1).u32(5, 1000).u8(6, 1))),
        ("features", one(bits(bits(ethtool(11), 4, features), 5, &["tx-scatter-gather"]))),
        ("rings", one(ethtool(16).u32(2, 4096).u32(5, 4096).u32(6, choose(256, 1024)).u32(9, 256))),
        ("channels", one(ethtool(18).u32(5, 4).u32(9, choose(4, 2)))),
        ("coalesce", one(ethtool(20).u32(2, choose(20, 0)).u32(6, choose(20, 0)).u8(11, on).u8(12, 0))),
        ("pause", one(ethtool(22).u8(2, on).u8(3, on).u8(4, on))),
        ("eee", one(ethtool(24).u8(4, on).u8(5, on).u8(6, on))),
        (
            "tsinfo",
            one(bits(bits(bits(ethtool(26), 2, &capabilities), 3, &["off", "on"]), 4, &["none", "all"]).u32(5, 0)),
        ),
        ("mm", one(ethtool(43).u8(2, 0).u8(3, 0).u8(4, 0))),
        ("qdiscs", Answer::of(&qdiscs)),
        (
            "netdev",
            one(netdev(1)
                .u32(1, 2)
                .bytes_of(3, &0x7f_u64.to_ne_bytes())
                .bytes_of(5, &3_u64.to_ne_bytes())
                .bytes_of(6, &7_u64.to_ne_bytes())),
        ),
        ("napi", Answer::of(&[napi(8193, 129), napi(8194, 130)])),
    ]
}
