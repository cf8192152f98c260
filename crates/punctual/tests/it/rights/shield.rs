//! A shielded CPU on this machine: whatever can move is moved, and everything is as before afterwards, also after SIGKILL.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::{fs::PermissionsExt, process::CommandExt},
    path::Path,
    process::{Child, Command, Stdio},
};

use record::{Record, ShieldMeans};

use crate::harness::{PUNCTUAL, Scratch, alone, signal, wait_until};

/// The last CPU of this machine, whether or not another run shields it at this moment.
fn last_cpu() -> u32 {
    let online = fs::read_to_string("/sys/devices/system/cpu/online").unwrap();
    online.parse::<machine::CpuList>().unwrap().last().unwrap()
}

/// A tree of busy tasks: a shell with two children that spin now and then, and one that is pinned to the shielded CPU.
struct Crowd(Vec<Child>);

impl Crowd {
    fn gather() -> Self {
        assert!(last_cpu() > 0, "needs a second CPU");
        wait_until("nobody else shields CPUs", || journals() == 0);
        let spin = "while true; do i=0; while [ $i -lt 500 ]; do i=$((i+1)); done; sleep 0.02; done";
        let shell = |script: &str| Command::new("sh").args(["-c", script]).spawn().expect("sh runs");
        let pinned = format!("taskset -pc {} $$ > /dev/null; {spin}", last_cpu());
        let crowd = Self(vec![shell(&format!("({spin}) & ({spin}) & wait")), shell(&pinned)]);
        let pin = crowd.0[1].id();
        wait_until("it is pinned", || affinity(pin) == Some(last_cpu().to_string()));
        crowd
    }

    fn pinned(&self) -> u32 {
        self.0[1].id()
    }

    fn family(&self) -> Vec<u32> {
        let children = |parent: u32| {
            let text = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).unwrap_or_default();
            text.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<u32>>()
        };
        self.0.iter().flat_map(|shell| [vec![shell.id()], children(shell.id())].concat()).collect()
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        let family = self.family();
        // They were started here and are not reaped, so the numbers are theirs.
        let numbers = family.iter().map(u32::to_string);
        let _ = Command::new("kill").arg("-9").args(numbers).stderr(Stdio::null()).status();
        self.0.iter_mut().for_each(|child| drop(child.wait()));
    }
}

fn affinity(pid: u32) -> Option<String> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    Some(status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:\t"))?.to_owned())
}

/// What a shield changes on a machine.
#[derive(Debug, PartialEq)]
struct State {
    /// Affinity and cpuset of each task but the kernel's workers, by number and start.
    tasks: BTreeMap<(u32, String), String>,
    interrupts: BTreeMap<String, String>,
    files: Vec<Option<String>>,
    cpusets: Vec<String>,
}

impl State {
    fn read() -> Self {
        let mut tasks = BTreeMap::new();
        // Other tests run punctual at the same time, which pins its threads itself.
        let name = |pid: &u32| fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        for process in numbers("/proc").into_iter().filter(|pid| name(pid).trim() != "punctual") {
            for id in numbers(&format!("/proc/{process}/task")) {
                let file = |name| fs::read_to_string(format!("/proc/{process}/task/{id}/{name}")).unwrap_or_default();
                let (stat, status, groups) = (file("stat"), file("status"), file("cgroup"));
                let Some((name, rest)) = stat.rsplit_once(") ") else { continue };
                if name.contains("(kworker/") {
                    continue;
                }
                let start = rest.split(' ').nth(19).unwrap_or_default().to_owned();
                let here = |line: &&str| line.starts_with("Cpus_allowed_list") || line.contains(":cpuset:");
                let place: Vec<&str> = status.lines().chain(groups.lines()).filter(here).collect();
                tasks.insert((id, start), place.join(" "));
            }
        }
        let interrupts = numbers("/proc/irq").into_iter().map(|number| {
            let path = format!("/proc/irq/{number}/smp_affinity_list");
            (path.clone(), fs::read_to_string(path).unwrap_or_default())
        });
        let files = ["/proc/irq/default_smp_affinity", "/sys/devices/virtual/workqueue/cpumask"];
        let mut cpusets = Vec::new();
        sets_below(Path::new("/sys/fs/cgroup"), 3, &mut cpusets);
        Self {
            tasks,
            interrupts: interrupts.collect(),
            files: files.map(|path| fs::read_to_string(path).ok()).into(),
            cpusets,
        }
    }

    /// Whether everything that was there before is as it was then.
    #[track_caller]
    fn assert_is_again(&self) {
        let now = Self::read();
        for (task, before) in &self.tasks {
            if let Some(place) = now.tasks.get(task) {
                assert_eq!(place, before, "task {task:?}");
            }
        }
        assert_eq!(now.interrupts, self.interrupts);
        assert_eq!(now.files, self.files);
        assert_eq!(now.cpusets, self.cpusets);
    }
}

fn numbers(folder: &str) -> Vec<u32> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Folders with CPUs, and the CPUs in them.
fn sets_below(folder: &Path, depth: u32, sets: &mut Vec<String>) {
    let mut below: Vec<_> = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    below.sort();
    for set in below.iter().filter(|path| path.is_dir()) {
        if let Ok(cpus) = fs::read_to_string(set.join("cpuset.cpus")) {
            sets.push(format!("{}: {}", set.display(), cpus.trim()));
        }
        if depth > 0 {
            sets_below(set, depth - 1, sets);
        }
    }
}

/// A run on the shielded last CPU whose record is there: its shield is up.
fn under_way(scratch: &Scratch, options: &str) -> Child {
    let arguments = format!("measure timer --quiet --record a --shield {} {options}", last_cpu());
    let child = scratch.punctual(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_until("the record exists", || scratch.record_path().exists());
    child
}

#[track_caller]
fn assert_is_shielded(crowd: &Crowd) {
    for pid in crowd.family() {
        let cpus = affinity(pid).unwrap_or_default();
        assert!(!cpus.is_empty() && !contains(&cpus, last_cpu()), "task {pid} may run on {cpus}");
    }
    assert!(!contains(&affinity(2).unwrap(), last_cpu()), "the kernel's own threads are born elsewhere");
    assert_ne!(journals(), 0);
}

fn contains(cpus: &str, cpu: u32) -> bool {
    cpus.parse::<machine::CpuList>().unwrap().contains(cpu)
}

fn journals() -> usize {
    let is_one = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().ends_with("-shield.json");
    fs::read_dir("/run/punctual").into_iter().flatten().flatten().filter(is_one).count()
}

#[test]
fn a_shield_moves_what_can_move_and_puts_everything_back() {
    let _alone = alone();
    let crowd = Crowd::gather();
    let before = State::read();
    let scratch = Scratch::new();
    let child = under_way(&scratch, &format!("--duration 2s --load cpu --load timer:period=10ms@{}", last_cpu()));
    assert_is_shielded(&crowd);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    before.assert_is_again();
    assert_eq!(affinity(crowd.pinned()), Some(last_cpu().to_string()));

    let record: Record = scratch.record();
    let told = record.shielding.as_ref().unwrap();
    assert_eq!(told.cpus, last_cpu().to_string());
    assert!(told.tasks_moved >= 4, "{told:?}");
    assert!(told.left.iter().any(|left| left.names.iter().any(|name| name.starts_with("migration/"))), "{told:?}");
    let put_back = told.put_back.as_ref().unwrap();
    assert!(put_back.failed.is_empty() && put_back.tasks > 0, "{put_back:?}");
    let cpus: Vec<_> = record.series.iter().map(|series| series.cpu).collect();
    assert_eq!(cpus, [Some(last_cpu())], "the shielded CPU is the measured one");
    let loads: Vec<_> = record.phases[0].loads.iter().map(|load| (load.name.as_str(), load.ran)).collect();
    assert_eq!(loads, [("cpu", true), ("timer", true)], "{:?}", record.phases[0].loads);
    assert!(!contains(&record.phases[0].loads[0].cpus, last_cpu()), "loads stay outside");
    let shown = scratch.run("show a.punctual.json").stdout();
    assert!(shown.contains("shield") && shown.contains("moved off"), "{shown}");
}

#[test]
fn signals_put_everything_back_and_so_does_the_next_start_after_sigkill() {
    let _alone = alone();
    let crowd = Crowd::gather();
    let before = State::read();
    for name in ["INT", "TERM"] {
        let scratch = Scratch::new();
        let child = under_way(&scratch, "--endless");
        assert_is_shielded(&crowd);
        signal(&child, name);
        assert_eq!(child.wait_with_output().unwrap().status.code(), Some(0));
        before.assert_is_again();
    }
    for next in ["restore", "restore --json", "measure timer --quiet --no-record --cpus 0 --samples 20"] {
        let scratch = Scratch::new();
        let child = under_way(&scratch, "--endless --load cpu");
        let process = child.id();
        assert_is_shielded(&crowd);
        signal(&child, "KILL");
        child.wait_with_output().unwrap();
        assert_is_shielded(&crowd);
        let run = scratch.run(next);
        run.expect_status(0);
        let said = format!("{}{}", run.stdout(), run.stderr());
        assert!(said.contains(&process.to_string()) && said.contains("put"), "{next}: {said}");
        if !next.ends_with("json") {
            let line = said.lines().find(|line| line.contains(&format!("process {process}"))).unwrap();
            assert!(line.contains("put back") && line.contains("task"), "{line}");
        }
        before.assert_is_again();
        assert_eq!(journals(), 0);
        assert_eq!(scratch.run("restore").stdout(), "nothing to restore\n");
    }
}

#[test]
fn a_shield_of_all_cpus_is_refused_and_changes_nothing() {
    let _alone = alone();
    wait_until("nobody else shields CPUs", || journals() == 0);
    let before = State::read();
    let run = Scratch::new().run(&format!("measure timer --no-record --shield 0-{}", last_cpu()));
    run.expect_status(1);
    assert!(run.stderr().contains("would leave no CPU for everything else"), "{}", run.stderr());
    before.assert_is_again();
}

#[test]
fn an_ordinary_user_is_told_what_it_could_not_shield() {
    let _alone = alone();
    wait_until("nobody else shields CPUs", || journals() == 0);
    let before = State::read();
    let scratch = Scratch::new();
    let binary = scratch.path().join("punctual");
    fs::copy(PUNCTUAL, &binary).unwrap();
    let runtime = scratch.path().join("run");
    fs::create_dir(&runtime).unwrap();
    for folder in [scratch.path(), &runtime] {
        fs::set_permissions(folder, fs::Permissions::from_mode(0o777)).unwrap();
    }
    let nobody = |arguments: &str| {
        let mut command = Command::new(&binary);
        command.args(arguments.split(' ')).current_dir(scratch.path()).env("XDG_RUNTIME_DIR", &runtime);
        command.uid(65_534).gid(65_534).output().unwrap()
    };
    let options = format!("measure timer --quiet --record a --policy other --samples 50 --shield {}", last_cpu());
    let output = nobody(&options);
    assert_eq!(output.status.code(), Some(4), "{}", String::from_utf8_lossy(&output.stderr));
    let record = scratch.record();
    let reason = &record.validity.reasons[0];
    assert_eq!((reason.id.as_str(), record.series[0].samples), ("shield.incomplete", 50));
    assert!(reason.text.contains("this takes the right to move tasks of others"), "{}", reason.text);
    assert_eq!(record.shielding.unwrap().means, ShieldMeans::Affinity);
    assert_eq!(nobody("restore").stdout, b"nothing to restore\n");
    before.assert_is_again();
}
