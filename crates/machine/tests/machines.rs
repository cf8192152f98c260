//! Recorded machines under `machines/`: the facts of each are stored in `NAME.json`, the findings in
//! `findings/ID.json`.
//!
//! The files of the machines are written by hand after the output of such machines. The kernel, command line, clock and
//! gravity of the VIM3L are those of a published latmus run.
//!
//! `UPDATE=1 cargo test -p punctual-machine --test machines` writes the JSON files: review the difference.

#![allow(clippy::unwrap_used, reason = "a test that cannot read its files has failed")]

mod golden;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use machine::topology::{caches_of, largest_cache_bytes};
use machine::tune::{self, Need};
use machine::{AwakeHold, Conditions, CpuError, CpuList, InterruptWatch, Root, facts, findings, usable_cpus};
use record::{Finding, FindingState};

const NAMES: [&str; 21] = [
    "atom-controller",
    "board-cgroup-v1",
    "cloud-vm",
    "cnc-pc-rt",
    "container-cpuset",
    "hybrid-laptop",
    "hyperv-guest",
    "industrial-pc-evl",
    "khadas-vim3l-evl",
    "kubernetes-pod",
    "laptop-voluntary",
    "lathe-pc-cobalt",
    "nixos-workstation",
    "raspberry-pi-5-rt",
    "raspberry-pi-audio",
    "raspberry-pi-rt",
    "ryzen-desktop",
    "silverblue-laptop",
    "test-bench-evl-debug",
    "threadripper-smt",
    "xen-guest",
];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/machines")
}

fn machine(name: &str) -> Root {
    Root::at(folder().join(name))
}

fn list(text: &str) -> CpuList {
    text.parse().unwrap()
}

#[test]
fn facts_and_findings_of_each_recorded_machine() {
    let is_machine = |name: &String| folder().join(name).is_dir() && name != "findings";
    let recorded: Vec<String> = Root::at(folder()).list("").into_iter().filter(is_machine).collect();
    assert_eq!(recorded, NAMES);
    let mut found = BTreeMap::new();
    for name in NAMES {
        let root = machine(name);
        let facts = facts(&root);
        golden::check(&folder().join(format!("{name}.json")), &facts);
        found.insert(name, findings(&root, &facts, None, None));
    }
    golden::check_findings(&folder().join("findings"), &found);
}

/// The arguments of the kernel are added by the command of the distribution, whatever other files are there.
#[test]
fn each_recorded_machine_has_the_steps_of_its_boot_loader() {
    let steps = |name: &str| {
        let boot = tune::boot(&machine(name), &list("1")).unwrap();
        (boot.loader.unwrap(), boot.steps)
    };
    let (loader, fedora) = steps("silverblue-laptop");
    assert_eq!((loader, fedora.len()), ("rpm-ostree", 2), "{fedora:?}");
    assert!(fedora[0].starts_with("sudo rpm-ostree kargs --append-if-missing=\"isolcpus=managed_irq,domain,1\""));
    let (loader, nixos) = steps("nixos-workstation");
    assert_eq!(loader, "NixOS");
    let list = "\"isolcpus=managed_irq,domain,1\" \"rcu_nocbs=1\" \"irqaffinity=0\"";
    let place = "add to boot.kernelParams in /etc/nixos/configuration.nix";
    assert_eq!(nixos[..2], [format!("{place}: {list}"), "sudo nixos-rebuild boot".to_owned()]);
    assert!(nixos[2].contains("nohz_full (CONFIG_NO_HZ_FULL)"), "{nixos:?}");
    let (loader, ubuntu) = steps("hyperv-guest");
    assert_eq!(loader, "GRUB");
    assert!(ubuntu[0].starts_with("in /etc/default/grub.d/50-cloudimg-settings.cfg: "), "{ubuntu:?}");
}

/// A remedy contains no word to replace, and writes only to files that the machine has.
#[test]
fn every_remedy_can_be_executed_as_printed() {
    for name in NAMES {
        let root = machine(name);
        for Finding { id, remedy, .. } in findings(&root, &facts(&root), None, None) {
            let is_capital = |word: &&str| word.len() > 2 && word.chars().all(|c| c.is_ascii_uppercase() || c == '_');
            // A path is no word to replace.
            let words: Vec<&str> = remedy.split(' ').filter(|word| !word.starts_with('/')).collect();
            let words = words.join(" ");
            let mut capitals = words.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(is_capital);
            let known = ["CPU", "EVL", "CONFIG_PREEMPT_RT", "SYS_NICE", "IPC_LOCK", "KERNEL", "GROUP", "MODE"];
            // Options of the kernel are capitals, too.
            let of_kernel = remedy.contains("scripts/config --");
            assert!(of_kernel || capitals.all(|word| known.contains(&word)), "{name}, {id}: {remedy}");
            if remedy.starts_with("on the host: ") {
                continue;
            }
            let written = remedy.lines().filter_map(|line| line.split_once("| sudo tee ")).map(|(_, files)| files);
            for file in written.flat_map(|files| files.split([' ', ';', '`'])).filter(|word| word.starts_with('/')) {
                let path = file.trim_start_matches('/').replace("[1-9]", "1").replace('*', "0");
                assert!(root.exists(&path), "{name}, {id}: {path}: {remedy}");
            }
        }
    }
}

/// Every finding has evidence; every warning has a reason and a remedy.
#[test]
fn every_finding_explains_itself() {
    let mut roots: Vec<Root> = NAMES.map(machine).into();
    roots.push(Root::system());
    for root in &roots {
        let found = findings(root, &facts(root), None, None);
        let mut ids: Vec<&str> = found.iter().map(|finding| finding.id.as_str()).collect();
        for Finding { id, state, title, evidence, why, remedy, lasts } in &found {
            let changes = ["| sudo tee ", "kernel argument", "scripts/config"].iter().any(|word| remedy.contains(word));
            assert!(!changes || lasts.is_some(), "{id}: how long does it last: {remedy}");
            assert!(!title.is_empty() && evidence.starts_with('/') && !evidence.contains('\n'), "{id}: {evidence}");
            let alarming = matches!(state, FindingState::Warn | FindingState::Fail);
            assert_eq!((why.is_empty(), remedy.is_empty()), (!alarming, !alarming), "{id} in {root:?}");
        }
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), found.len(), "each identity once");
    }
}

/// Without any readable file, everything is unknown and nothing is `ok`.
#[test]
fn an_empty_folder_is_unknown_and_never_ok() {
    let folder = tempfile::tempdir().unwrap();
    let root = Root::at(folder.path());
    let facts = facts(&root);
    assert_eq!(facts, record::Machine::default());
    for finding in findings(&root, &facts, None, None) {
        assert_eq!(finding.state, FindingState::Unknown, "{}", finding.id);
    }
    assert!(matches!(usable_cpus(&root, None), Err(CpuError::Unreadable { .. })));
    assert_eq!(largest_cache_bytes(&root), None);
}

/// In a container without `/sys`, no feature counts as absent because its files are hidden. The device tree is hidden, too.
#[test]
fn without_sysfs_nothing_of_it_is_absent() {
    for name in ["raspberry-pi-audio", "industrial-pc-evl", "cnc-pc-rt", "ryzen-desktop"] {
        let folder = tempfile::tempdir().unwrap();
        for entry in fs::read_dir(machine(name).path("")).unwrap().flatten() {
            if entry.file_name() != "sys" {
                let copied = Command::new("cp").arg("-r").arg(entry.path()).arg(folder.path()).status();
                assert!(copied.unwrap().success());
            }
        }
        fs::create_dir(folder.path().join("sys")).unwrap();
        let tree = folder.path().join("proc/device-tree");
        if fs::remove_dir_all(&tree).is_ok() {
            std::os::unix::fs::symlink("/sys/firmware/devicetree/base", tree).unwrap();
        }
        let root = Root::at(folder.path());
        for finding in findings(&root, &facts(&root), None, None) {
            let is_content = matches!(finding.state, FindingState::Ok | FindingState::NotApplicable);
            assert!(!is_content || !finding.evidence.starts_with("/sys"), "{name}: {finding:?}");
            assert!(
                !is_content || !finding.id.starts_with("board.") || !name.starts_with("raspberry"),
                "{name}: {finding:?}"
            );
        }
    }
}

/// The same files with invalid contents: nothing panics.
#[test]
fn survives_invalid_contents_of_every_file() {
    fn fill(from: &Path, to: &Path, nonsense: &[u8]) {
        fs::create_dir_all(to).unwrap();
        for entry in fs::read_dir(from).unwrap().flatten() {
            let to = to.join(entry.file_name());
            match entry.file_type().unwrap() {
                kind if kind.is_dir() => fill(&entry.path(), &to, nonsense),
                kind if kind.is_file() => fs::write(to, nonsense).unwrap(),
                _ => std::os::unix::fs::symlink("nonsense", to).unwrap(),
            }
        }
    }
    let numbers = "-9223372036854775808 18446744073709551616 0-4294967295 : / ( ) #";
    for nonsense in ["", "-1", "-9223372036854775808", "18446744073709551615", "\0\u{fffd}\n\n", numbers] {
        for name in ["container-cpuset", "industrial-pc-evl", "laptop-voluntary"] {
            let copy = tempfile::tempdir().unwrap();
            fill(&folder().join(name), copy.path(), nonsense.as_bytes());
            let root = Root::at(copy.path());
            let facts = facts(&root);
            assert!(!findings(&root, &facts, None, None).is_empty());
            let _ = (usable_cpus(&root, None), usable_cpus(&root, Some(&list("0-9"))), largest_cache_bytes(&root));
            let conditions = Conditions::read(&root, &list("0-3"));
            let _ = machine::conditions::changes(&conditions, &conditions);
        }
    }
}

#[test]
fn finds_the_cpus_that_may_be_measured() {
    let usable = |name, wanted: Option<&str>| usable_cpus(&machine(name), wanted.map(list).as_ref());
    assert_eq!(usable("raspberry-pi-rt", None), Ok(list("0-3")), "the isolated CPU is included");
    assert_eq!(usable("khadas-vim3l-evl", None), Ok(list("0-3")));
    assert_eq!(usable("container-cpuset", None), Ok(list("2-3")));
    assert_eq!(usable("cnc-pc-rt", None), Ok(list("0-1")), "the group's own cpuset, not the root's");
    assert_eq!(usable("raspberry-pi-rt", Some("3")), Ok(list("3")));
}

#[test]
fn every_invalid_request_has_an_error_with_a_remedy() {
    let refused = |name, wanted| usable_cpus(&machine(name), Some(&list(wanted))).unwrap_err().to_string();
    assert_eq!(refused("raspberry-pi-rt", "3-5"), "CPUs 4-5 are not on this machine: it has CPUs 0-3");
    assert_eq!(
        refused("cnc-pc-rt", "3"),
        "CPU 3 is offline: bring online with `echo 1 | sudo tee /sys/devices/system/cpu/cpu3/online`"
    );
    assert_eq!(
        refused("cnc-pc-rt", "1-2"),
        "CPU 2 is outside the control group /system.slice/linuxcnc.service, which allows 0-1: widen it with \
         `echo 0-2 | sudo tee /sys/fs/cgroup/system.slice/linuxcnc.service/cpuset.cpus`"
    );
    assert_eq!(
        refused("container-cpuset", "0-3"),
        "CPUs 0-1 are outside the control group /, which allows 2-3: widen it with \
         `docker update --cpuset-cpus=0-5 CONTAINER` on the host"
    );
    assert_eq!(refused("cloud-vm", ""), "the list of CPUs is empty: name at least one of 0-1");
}

#[test]
fn reads_caches() {
    let laptop = machine("laptop-voluntary");
    assert_eq!(largest_cache_bytes(&laptop), Some(12 << 20));
    let caches = caches_of(&laptop, 5);
    assert_eq!(caches.iter().map(|cache| cache.level).collect::<Vec<_>>(), [1, 1, 2, 3]);
    assert_eq!((caches[2].bytes, &caches[2].shared_by), (1280 << 10, &list("1,5")));
    assert_eq!(largest_cache_bytes(&machine("khadas-vim3l-evl")), None);
}

/// The facts about this machine agree with other programs.
#[test]
fn facts_of_this_machine_agree_with_uname_and_getconf() {
    let answer = |program: &str, argument: &str| {
        let output = Command::new(program).arg(argument).output().unwrap();
        Some(String::from_utf8(output.stdout).unwrap().trim().to_owned())
    };
    let facts = facts(&Root::system());
    assert_eq!(facts.kernel, answer("uname", "-r"));
    assert_eq!(facts.kernel_build, answer("uname", "-v"));
    assert_eq!(facts.hostname, answer("uname", "-n"));
    assert_eq!(facts.arch, answer("uname", "-m"));
    let online = list(facts.cpus_online.as_deref().unwrap());
    assert_eq!(Some(online.len().to_string()), answer("getconf", "_NPROCESSORS_ONLN"));
    let usable = usable_cpus(&Root::system(), None).unwrap();
    assert!(!usable.is_empty() && usable.difference(&online).is_empty());
    assert_eq!(usable_cpus(&Root::system(), Some(&usable)), Ok(usable));
}

/// Every finding has a check with its subject and source, in the same order, and a row in the documentation.
#[test]
fn every_finding_is_documented() {
    let root = machine("cloud-vm");
    let found = findings(&root, &facts(&root), None, None);
    let ids: Vec<&str> = machine::checks().map(|check| check.id).collect();
    assert_eq!(ids, found.iter().map(|finding| finding.id.as_str()).collect::<Vec<_>>());
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/machine.md")).unwrap();
    for check in machine::checks() {
        let row = format!("| `{}` | {} |", check.id, check.subject);
        assert!(text.contains(&row), "docs/machine.md has no row {row}");
        assert!(!check.source.is_empty());
    }
}

/// A server with two processors, 256 CPUs and 2000 interrupts, four of which can arrive at its isolated CPUs.
fn large_server(folder: &Path) -> Root {
    let write = |path: String, text: &str| {
        let path = folder.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    let cpu = |path: &str, text: &str| write(format!("sys/devices/system/cpu/{path}"), text);
    for (path, cpus) in [("online", "0-255"), ("present", "0-255"), ("isolated", "250-255"), ("nohz_full", "250-255")] {
        cpu(path, cpus);
    }
    for number in 0..256 {
        for (file, text) in [
            ("cpufreq/scaling_governor", "performance"),
            ("cpufreq/scaling_max_freq", "3000000"),
            ("cpufreq/cpuinfo_max_freq", "3000000"),
            ("cpufreq/energy_performance_preference", "performance"),
            ("thermal_throttle/core_throttle_count", "0"),
            ("power/pm_qos_resume_latency_us", "0"),
        ] {
            cpu(&format!("cpu{number}/{file}"), text);
        }
        for (state, (name, us)) in [("POLL", "0"), ("C1", "2"), ("C6", "190")].into_iter().enumerate() {
            for (file, text) in [("name", name), ("latency", us), ("disable", "0")] {
                cpu(&format!("cpu{number}/cpuidle/state{state}/{file}"), text);
            }
        }
    }
    let mut interrupts: String = (0..256).map(|cpu| format!(" CPU{cpu}")).collect();
    let counts = " 1".repeat(256);
    for number in 0..2000 {
        interrupts += &format!("\n{number}:{counts} PCI-MSIX-0000:01:00.0 {number}-edge nvme0q{number}");
        let arrives = if number % 500 == 0 { "251" } else { "3" };
        write(format!("proc/irq/{number}/effective_affinity_list"), arrives);
    }
    write("proc/interrupts".to_owned(), &interrupts);
    write("proc/uptime".to_owned(), "100000.00 1.00");
    write("proc/sys/kernel/osrelease".to_owned(), "6.12.0");
    Root::at(folder)
}

#[test]
fn a_large_server_is_checked_with_few_reads() {
    let folder = tempfile::tempdir().unwrap();
    let root = large_server(folder.path()).at_once();
    let found = findings(&root, &facts(&root), None, None);
    let of = |id: &str| found.iter().find(|finding| finding.id == id).unwrap();
    assert_eq!(of("cpu.idle_states").title, "deepest idle state C6 on isolated CPUs 250-255 takes 190 us to leave");
    assert_eq!(of("irq.affinity").title, "interrupt 0 (nvme0q0) and 3 more can arrive at CPUs 250-255");
    assert!(of("irq.affinity").remedy.starts_with("echo 0-249 | sudo tee /proc/irq/0/smp_affinity_list "));
    // 15 files for each CPU, and one past its last idle state; one for each interrupt.
    let read = root.seen().files.len();
    assert!(read < 256 * 20 + 2000 + 300, "{read} files");
}

/// A file that changes meanwhile is not read a second time.
#[test]
fn no_file_is_read_twice() {
    let folder = tempfile::tempdir().unwrap();
    let root = Root::at(folder.path()).at_once();
    let path = folder.path().join("value");
    fs::write(&path, "1").unwrap();
    assert_eq!(root.read("value").as_deref(), Some("1"));
    fs::write(&path, "2").unwrap();
    assert_eq!(
        (root.read("/value").as_deref(), Root::at(folder.path()).read("value").as_deref()),
        (Some("1"), Some("2"))
    );
    assert_eq!((root.read("other"), root.seen().files.len()), (None, 2));
}

/// The names of devices come from outside: in a command they are one word.
#[test]
fn a_name_is_no_command() {
    let folder = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write("proc/device-tree/model", "board");
    write("sys/bus/usb/devices/1-1;$(touch pwn)/bDeviceClass", "00");
    write("sys/bus/usb/devices/1-1;$(touch pwn)/power/control", "auto");
    write("sys/class/leds/a;id $(touch pwn)/trigger", "[mmc0]");
    write("sys/class/leds/b\nsudo id/trigger", "[mmc0]");
    write("sys/class/rfkill/rfkill0/type", "wlan\nsudo id");
    write("sys/class/rfkill/rfkill0/soft", "0");
    let root = Root::at(folder.path());
    let found = findings(&root, &facts(&root), None, None);
    let of = |id: &str| found.iter().find(|finding| finding.id == id).unwrap();
    assert_eq!(of("power.usb").remedy, "echo on | sudo tee '/sys/bus/usb/devices/1-1;$(touch pwn)/power/control'");
    assert_eq!(of("board.leds").remedy, "echo none | sudo tee '/sys/class/leds/a;id $(touch pwn)/trigger'");
    assert_eq!(of("board.radio").remedy, "");
}

/// A folder of files like those of a machine.
struct Made(tempfile::TempDir);

impl Made {
    fn new() -> Self {
        let made = Self(tempfile::tempdir().unwrap());
        made.write("proc/uptime", "1000.0 900.0");
        made
    }

    fn write(&self, path: &str, text: impl AsRef<[u8]>) {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// A thread: id, process, name, policy (1: FIFO) and priority.
    fn thread(&self, id: u32, process: u32, name: &str, policy: u32, priority: u32) {
        let zeros = "0 ".repeat(17);
        let stat = format!(
            "{id} ({name}) S 1 {process} {process} 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 100 {zeros}{priority} {policy} 0"
        );
        self.write(&format!("proc/{process}/task/{id}/stat"), &stat);
        self.write(&format!("proc/{process}/task/{id}/comm"), name);
        if id == process {
            self.write(&format!("proc/{id}/stat"), &stat);
            self.write(&format!("proc/{id}/comm"), name);
        }
    }

    fn root(&self) -> Root {
        Root::at(self.0.path())
    }

    fn finding(&self, id: &str, watched: Option<&InterruptWatch>) -> Finding {
        let root = self.root();
        findings(&root, &facts(&root), None, watched).into_iter().find(|finding| finding.id == id).unwrap()
    }
}

#[test]
fn a_storm_that_has_just_begun_is_found() {
    let made = Made::new();
    // `/proc/stat` counts what happened meanwhile, `/proc/interrupts` since boot.
    let watch = |usb: u64, net: u64| {
        let stat = |usb: u64, net: u64| {
            made.write("proc/stat", format!("cpu  1 2 3 4 5 6 7 8\nintr 3000 0 {usb} {net}\n"));
        };
        stat(1000, 2000);
        let mut watched = InterruptWatch::begin(&made.root()).unwrap();
        stat(1000 + usb, 2000 + net);
        watched.finish(&made.root(), None);
        watched
    };
    let interrupts = |usb: u64, net: u64| {
        let text = format!("      CPU0\n  1: {usb} GICv2 1 Level dwc2\n  2: {net} GICv2 2 Level eth0\n");
        made.write("proc/interrupts", text);
    };
    interrupts(1_000, 2_000);
    let storm = made.finding("irq.storm", Some(&watch(1_000_000_000, 0)));
    assert_eq!(storm.state, FindingState::Warn);
    assert!(storm.title.ends_with(" interrupts a second from dwc2, now"), "{storm:?}");
    assert!(storm.evidence.contains(" a second, 95 % confidence), dwc2"), "{storm:?}");
    let quiet = made.finding("irq.storm", Some(&watch(0, 0)));
    assert_eq!(
        (quiet.state, &*quiet.title),
        (FindingState::Ok, "at most 2.0 interrupts a second from a device, on average since boot")
    );
    // It has ended, or nothing is known about now.
    interrupts(1_000, 9_000_000);
    for watched in [Some(&watch(0, 0)), None] {
        let storm = made.finding("irq.storm", watched);
        assert_eq!(storm.title, "9000 interrupts a second from eth0, on average since boot");
    }
}

/// Limits of a program, of `punctual tune`, of a run, of a killed run, and one of unknown origin.
#[test]
fn a_latency_limit_names_what_set_it() {
    let made = Made::new();
    let file = "sys/devices/system/cpu/cpu0/power/pm_qos_resume_latency_us";
    made.write("sys/devices/system/cpu/online", "0");
    made.write("sys/devices/system/cpu/cpu0/cpuidle/state0/latency", "100");
    made.write(file, "0");
    let limit = || made.finding("cpu.latency_request", None);
    assert_eq!((limit().state, &*limit().title), (FindingState::Ok, "no latency limit for any CPU"));
    made.write(file, "50");
    let by_hand = "CPU 0 kept out of idle states by a program, or by hand";
    assert_eq!((limit().state, &*limit().title), (FindingState::Warn, by_hand));
    assert_eq!(limit().remedy, format!("echo 0 | sudo tee /{file}"));

    made.write(file, "0");
    let need =
        Need { set: vec!["cpu.idle_states=20us".parse().unwrap()], only: vec!["cpu.idle_states"], ..Need::default() };
    let plan = tune::plan(&made.root(), &need).unwrap();
    assert_eq!(tune::keep(&made.root(), &plan.changes).unwrap().applied.len(), 1);
    let by_tune = "CPU 0 kept out of idle states by `punctual tune`";
    assert_eq!((limit().state, limit().title), (FindingState::Ok, format!("{by_tune}; undo: punctual tune --revert")));
    tune::keep_files(&made.root(), &tune::unit(&made.root(), "/usr/bin/punctual tune --yes")).unwrap();
    let at_boot = format!("{by_tune}, also at each boot (--persist); undo: punctual tune --revert");
    assert_eq!(limit().title, at_boot);

    let hold = AwakeHold::take(&made.root(), &list("0")).unwrap();
    let process = std::process::id();
    let by_killed = format!("CPU 0 kept out of idle states by process {process} of punctual, which was killed");
    assert_eq!((limit().title, &*limit().remedy), (by_killed, "sudo punctual restore"));
    let own_stat = fs::read_to_string("/proc/self/stat").unwrap();
    made.write(&format!("proc/{process}/stat"), own_stat);
    let by_run = format!("CPU 0 kept out of idle states by a run of punctual (process {process})");
    assert_eq!((limit().state, limit().title), (FindingState::Warn, by_run));
    drop(hold);
    assert_eq!(limit().title, at_boot);
    fs::remove_file(made.root().path(&format!("proc/{process}/stat"))).unwrap();
    tune::revert(&made.root()).unwrap();
    assert_eq!(limit().title, "no latency limit for any CPU");

    made.write("dev/cpu_dma_latency", 2_000_000_000_i32.to_ne_bytes());
    assert_eq!(limit().state, FindingState::Ok);
    made.write("dev/cpu_dma_latency", 7_i32.to_ne_bytes());
    assert_eq!(limit().title, "a program allows idle states of at most 7 us only");
    made.write("proc/700/comm", "jackd");
    fs::create_dir(made.root().path("proc/700/fd")).unwrap();
    std::os::unix::fs::symlink("/dev/cpu_dma_latency", made.root().path("proc/700/fd/5")).unwrap();
    assert_eq!(limit().title, "jackd (process 700) allows idle states of at most 7 us only");
    made.write("dev/cpu_dma_latency", "7");
    assert_eq!(limit().state, FindingState::Unknown);
}

/// The file of the online CPUs decides which idle states count.
#[test]
fn idle_states_of_unknown_cpus_are_unknown() {
    let made = Made::new();
    made.write("sys/devices/system/cpu/cpu0/cpuidle/state0/name", "C10");
    made.write("sys/devices/system/cpu/cpu0/cpuidle/state0/latency", "230");
    made.write("sys/devices/system/cpu/cpu0/cpuidle/state0/disable", "0");
    let state = |online: &str| {
        made.write("sys/devices/system/cpu/online", online);
        made.finding("cpu.idle_states", None).state
    };
    assert_eq!([state("0"), state(""), state("a-b")].map(|state| state == FindingState::Unknown), [false, true, true]);
}

#[test]
fn interruptions_by_the_firmware_are_counted_by_the_processor() {
    let made = Made::new();
    let state = |count: Option<u32>, vendor: &str| {
        made.write("proc/cpuinfo", format!("vendor_id\t: {vendor}\nflags\t\t: fpu\n"));
        if let Some(count) = count {
            made.write("dev/cpu/0/msr", [&[0xff; 0x34][..], &count.to_le_bytes(), &[0; 4]].concat());
        }
        made.finding("machine.firmware", None).state
    };
    assert_eq!(state(None, "GenuineIntel"), FindingState::Unknown, "the device cannot be read");
    assert_eq!(state(Some(0), "GenuineIntel"), FindingState::Ok);
    assert_eq!(state(Some(40), "GenuineIntel"), FindingState::Unknown, "perhaps during the boot");
    assert_eq!(state(Some(400), "GenuineIntel"), FindingState::Warn);
    assert_eq!(state(Some(0), "AuthenticAMD"), FindingState::Unknown, "this register means something else there");
}

#[test]
fn a_sound_server_needs_a_realtime_thread() {
    let made = Made::new();
    made.thread(2, 2, "kthreadd", 0, 0);
    let server = || made.finding("sound.server", None);
    assert_eq!(server().state, FindingState::NotApplicable);
    made.thread(700, 700, "pipewire", 0, 0);
    made.thread(701, 700, "data-loop.0", 0, 0);
    assert_eq!((server().state, &*server().title), (FindingState::Warn, "pipewire has no real-time thread"));
    made.thread(701, 700, "data-loop.0", 1, 88);
    assert_eq!(server().state, FindingState::Ok);
    assert_eq!(server().evidence, "/proc/700/task/701/stat = data-loop.0, fifo:88");
    made.thread(800, 800, "jackd", 0, 0);
    assert!(server().title.starts_with("jackd ") && server().remedy.contains("--realtime"), "{:?}", server());
}

/// A snapshot has everything that `tune` reads: its plans, kernel arguments and steps are those of the machine.
#[test]
fn plans_of_a_snapshot_are_those_of_the_machine() {
    let mut settings = std::collections::BTreeSet::new();
    for name in NAMES {
        let root = machine(name);
        let folder = tempfile::tempdir().unwrap();
        let copy = Root::at(folder.path());
        unpack(&machine::snapshot::Snapshot::of(&root, &[]), &copy);
        let last = machine::online_cpus(&root).last().unwrap();
        let sets = [None, Some(list("0")), Some(CpuList::from_iter([last]))];
        let named = |text: &str, cpus: &Option<CpuList>| {
            let choice: tune::Choice = text.parse().unwrap();
            Need { only: vec![choice.id], set: vec![choice], cpus: cpus.clone(), ..Need::default() }
        };
        let ids = tune::DEFINITIONS.iter().map(|definition| definition.id);
        let values: Vec<&str> = ids.chain(["cpu.frequency=min", "irq.priority=50", "cpu.resctrl=30%"]).collect();
        let of_cpus = |cpus: &Option<CpuList>| {
            let all = [None, Some(1_000_000)].map(|limit_ns| Need { limit_ns, cpus: cpus.clone(), ..Need::default() });
            all.into_iter().chain(values.iter().map(|text| named(text, cpus))).collect::<Vec<_>>()
        };
        for need in sets.iter().flat_map(of_cpus) {
            let [own, copied] = [&root, &copy].map(|root| tune::plan(root, &need));
            let own = own.map(|plan| serde_json::to_value(&plan).unwrap()).map_err(|error| error.to_string());
            let copied = copied.map(|plan| serde_json::to_value(&plan).unwrap()).map_err(|error| error.to_string());
            assert_eq!(copied, own, "{name}: {need:?}");
            let planned = own.iter().flat_map(|plan| plan["changes"].as_array().unwrap());
            settings.extend(planned.map(|setting| setting["id"].as_str().unwrap().to_owned()));
        }
        let cpus = CpuList::from_iter([last]);
        assert_eq!(tune::by_hand(&copy, &cpus), tune::by_hand(&root, &cpus), "{name}");
        let boot = |root: &Root| tune::boot(root, &cpus).map(|boot| (boot.arguments, boot.loader));
        assert_eq!(boot(&copy), boot(&root), "{name}");
    }
    assert!(settings.len() > 12, "{settings:?}");
}

/// A host or a user can be called like a word of the kernel or the distribution.
#[test]
fn names_that_are_words_of_the_kernel_change_no_finding() {
    for name in ["ryzen-desktop", "raspberry-pi-5-rt", "nixos-workstation", "hybrid-laptop"] {
        let root = machine(name);
        let found = |names: &[String]| {
            let folder = tempfile::tempdir().unwrap();
            let copy = Root::at(folder.path());
            unpack(&machine::snapshot::Snapshot::of(&root, names), &copy);
            let boot = tune::boot(&copy, &list("1")).map(|boot| (boot.arguments, boot.loader));
            (findings(&copy, &facts(&copy), None, None), boot)
        };
        let own = found(&[]);
        for called in
            ["max", "usb-box", "pci-lab", "power-pc", "rt-kernel-test", "pi5", "nixos", "cpu-limits", "irq.timer"]
        {
            let copied = found(&[called.to_owned()]);
            for (own, copied) in own.0.iter().zip(&copied.0) {
                let titles = [own, copied].map(|finding| (finding.state, &finding.title));
                assert_eq!(titles[1], titles[0], "{}: {name}, called {called}", own.id);
            }
            assert_eq!(copied.1, own.1, "{name}, called {called}");
        }
    }
}

/// A snapshot contains the arguments in files of the boot loader, except for the values of unknown ones.
#[test]
fn a_snapshot_has_the_arguments_of_the_boot_loader() {
    let folder = tempfile::tempdir().unwrap();
    let root = Root::at(folder.path().join("machine"));
    for (path, text) in [
        ("sys/devices/system/cpu/online", "0-3"),
        ("etc/default/grub", "GRUB_TIMEOUT=5\nGRUB_CMDLINE_LINUX_DEFAULT=\"quiet isolcpus=1 root=UUID=5b8a\"\n"),
        ("usr/sbin/update-grub", "#!/bin/sh\n"),
    ] {
        fs::create_dir_all(root.path(path).parent().unwrap()).unwrap();
        fs::write(root.path(path), text).unwrap();
    }
    let copy = Root::at(folder.path().join("copy"));
    unpack(&machine::snapshot::Snapshot::of(&root, &[]), &copy);
    assert_eq!(
        copy.read("etc/default/grub").as_deref(),
        Some("GRUB_CMDLINE_LINUX_DEFAULT=\"quiet isolcpus=1 root=removed\"")
    );
    assert_eq!(copy.read("usr/sbin/update-grub").as_deref(), Some(""));
    let steps = tune::boot(&copy, &list("2-3")).unwrap().steps;
    let line = "in /etc/default/grub, GRUB_CMDLINE_LINUX_DEFAULT: add isolcpus=managed_irq,domain,2-3 ";
    assert!(steps[0].starts_with(line) && steps[0].ends_with(", in place of isolcpus=1"), "{steps:?}");
    assert_eq!(steps[1], "sudo update-grub");
}

fn unpack(snapshot: &machine::snapshot::Snapshot, to: &Root) {
    let make = |path: &Path| fs::create_dir_all(path).unwrap();
    snapshot.folders.iter().for_each(|path| make(&to.path(path)));
    for (path, bytes) in &snapshot.files {
        make(to.path(path).parent().unwrap());
        fs::write(to.path(path), bytes).unwrap();
    }
    for (path, target) in &snapshot.links {
        make(to.path(path).parent().unwrap());
        std::os::unix::fs::symlink(target, to.path(path)).unwrap();
    }
}

/// The copy of a machine has the governors that it offers, although its frequency is fixed, and the caches of each CPU.
#[test]
fn a_snapshot_has_what_only_named_settings_read() {
    let made = Made::new();
    made.write("sys/devices/system/cpu/online", "0-2");
    for cpu in 0..3 {
        for (file, text) in [
            ("cpufreq/scaling_governor", "userspace"),
            ("cpufreq/scaling_available_governors", "userspace ondemand"),
            ("cpufreq/scaling_min_freq", "1000000"),
            ("cpufreq/scaling_max_freq", "1000000"),
            ("cache/index3/level", "3"),
            ("cache/index3/id", "0"),
        ] {
            made.write(&format!("sys/devices/system/cpu/cpu{cpu}/{file}"), text);
        }
    }
    for (file, text) in [("schemata", "    L3:0=7ff\n"), ("info/L3/cbm_mask", "7ff"), ("info/L3/min_cbm_bits", "1")] {
        made.write(&format!("sys/fs/resctrl/{file}"), text);
    }
    let folder = tempfile::tempdir().unwrap();
    let copy = Root::at(folder.path());
    unpack(&machine::snapshot::Snapshot::of(&made.root(), &[]), &copy);
    for (setting, cpus) in [("cpu.governor", None), ("cpu.resctrl", Some("1")), ("cpu.resctrl", Some("0"))] {
        let choice: tune::Choice = setting.parse().unwrap();
        let need = Need { only: vec![choice.id], set: vec![choice], cpus: cpus.map(list), ..Need::default() };
        let [own, copied] = [&made.root(), &copy].map(|root| tune::plan(root, &need).unwrap());
        assert_eq!(
            serde_json::to_value(&copied).unwrap(),
            serde_json::to_value(&own).unwrap(),
            "{setting} of {cpus:?}"
        );
        assert_eq!(own.changes.len(), usize::from(setting == "cpu.resctrl"));
    }
}

/// The kernel limits the frequency of the first CPU: the copy has the files of the others, too.
#[test]
fn a_snapshot_has_the_frequencies_of_each_cpu() {
    let made = Made::new();
    made.write("sys/devices/system/cpu/online", "0-2");
    for cpu in 0..3 {
        for (file, khz) in [
            ("cpuinfo_min_freq", "800000"),
            ("cpuinfo_max_freq", "2000000"),
            ("scaling_min_freq", "800000"),
            ("scaling_max_freq", "1000000"),
            ("bios_limit", "1000000"),
        ] {
            made.write(&format!("sys/devices/system/cpu/cpu{cpu}/cpufreq/{file}"), khz);
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let copy = Root::at(folder.path());
    unpack(&machine::snapshot::Snapshot::of(&made.root(), &[]), &copy);
    let need = Need { cpus: Some(list("2")), ..Need::default() };
    let [own, copied] =
        [&made.root(), &copy].map(|root| serde_json::to_value(tune::plan(root, &need).unwrap()).unwrap());
    assert_eq!(copied, own);
}
