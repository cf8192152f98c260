//! A shielded CPU on this machine: tasks are moved off it, and everything is restored afterwards, also after SIGKILL.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::{fs::PermissionsExt, process::CommandExt},
    path::Path,
    process::{Command, Stdio},
};

use record::{Record, ShieldMeans};

use crate::harness::{PUNCTUAL, Scratch, Start, Started, alone, signal, skip, wait_until};

/// The last CPU online. Not by the affinity of this process, which the shield of another run narrows.
fn last_cpu() -> u32 {
    let online = fs::read_to_string("/sys/devices/system/cpu/online").unwrap();
    online.parse::<machine::CpuList>().unwrap().last().unwrap()
}

/// Busy tasks to move: a shell with two children that spin and sleep, and a shell that is pinned to the shielded CPU.
struct BusyTasks(Vec<Started>);

impl BusyTasks {
    fn start() -> Self {
        assert!(last_cpu() > 0, "needs a second CPU");
        // A failed test before this one can have left the shield of a killed run.
        Scratch::new().run("restore");
        wait_until("no other run shields CPUs", || journals() == 0);
        let spin = "while true; do i=0; while [ $i -lt 500 ]; do i=$((i+1)); done; sleep 0.02; done";
        let shell = |script: &str| Command::new("sh").args(["-c", script]).start();
        let pinned = format!("taskset -pc {} $$ > /dev/null; {spin}", last_cpu());
        let tasks = Self(vec![shell(&format!("({spin}) & ({spin}) & wait")), shell(&pinned)]);
        let pin = tasks.0[1].id();
        wait_until("the shell is pinned", || affinity(pin) == Some(last_cpu().to_string()));
        tasks
    }

    fn pinned(&self) -> u32 {
        self.0[1].id()
    }

    fn pids(&self) -> Vec<u32> {
        let children = |parent: u32| {
            let text = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).unwrap_or_default();
            text.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<u32>>()
        };
        self.0.iter().flat_map(|shell| [vec![shell.id()], children(shell.id())].concat()).collect()
    }
}

impl Drop for BusyTasks {
    fn drop(&mut self) {
        let pids = self.pids();
        // The children are not reaped yet, so no other process can have their numbers.
        let numbers = pids.iter().map(u32::to_string);
        let _ = Command::new("kill").arg("-9").args(numbers).stderr(Stdio::null()).status();
        self.0.iter_mut().for_each(|child| drop(child.wait()));
    }
}

fn affinity(pid: u32) -> Option<String> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    Some(status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:\t"))?.to_owned())
}

/// The state of the machine that a shield changes.
#[derive(Debug, PartialEq)]
struct State {
    /// Affinity and cpuset of each task except kernel workers and zombies, by task number and start time.
    tasks: BTreeMap<(u32, String), String>,
    interrupts: BTreeMap<String, String>,
    files: Vec<Option<String>>,
    cpusets: Vec<String>,
}

impl State {
    fn read() -> Self {
        let mut tasks = BTreeMap::new();
        // Processes of other tests pin their own threads.
        let name = |pid: &u32| fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        for process in numbers("/proc").into_iter().filter(|pid| name(pid).trim() != "punctual") {
            for id in numbers(&format!("/proc/{process}/task")) {
                let file = |name| fs::read_to_string(format!("/proc/{process}/task/{id}/{name}")).unwrap_or_default();
                let (stat, status, groups) = (file("stat"), file("status"), file("cgroup"));
                let Some((name, rest)) = stat.rsplit_once(") ") else { continue };
                // A zombie keeps its affinity.
                if name.contains("(kworker/") || rest.starts_with('Z') {
                    continue;
                }
                let start = rest.split(' ').nth(19).unwrap_or_default().to_owned();
                let is_relevant = |line: &&str| line.starts_with("Cpus_allowed_list") || line.contains(":cpuset:");
                let place: Vec<&str> = status.lines().chain(groups.lines()).filter(is_relevant).collect();
                tasks.insert((id, start), place.join(" "));
            }
        }
        let interrupts = numbers("/proc/irq").into_iter().map(|number| {
            let path = format!("/proc/irq/{number}/smp_affinity_list");
            (path.clone(), fs::read_to_string(path).unwrap_or_default())
        });
        let files = ["/proc/irq/default_smp_affinity", "/sys/devices/virtual/workqueue/cpumask"];
        let mut cpusets = Vec::new();
        cpusets_below(Path::new("/sys/fs/cgroup"), 3, &mut cpusets);
        Self {
            tasks,
            interrupts: interrupts.collect(),
            files: files.map(|path| fs::read_to_string(path).ok()).into(),
            cpusets,
        }
    }

    /// Every task, interrupt, file and cpuset of this state must be the same now.
    #[track_caller]
    fn assert_restored(&self, context: &str) {
        let now = Self::read();
        for (task, before) in &self.tasks {
            if let Some(place) = now.tasks.get(task) {
                let name = fs::read_to_string(format!("/proc/{}/comm", task.0)).unwrap_or_default();
                assert_eq!(place, before, "task {task:?} ({}), {context}", name.trim());
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

/// Collects the cpusets below a folder, with their CPUs.
fn cpusets_below(folder: &Path, depth: u32, sets: &mut Vec<String>) {
    let mut below: Vec<_> = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    below.sort();
    for set in below.iter().filter(|path| path.is_dir()) {
        if let Ok(cpus) = fs::read_to_string(set.join("cpuset.cpus")) {
            sets.push(format!("{}: {}", set.display(), cpus.trim()));
        }
        if depth > 0 {
            cpusets_below(set, depth - 1, sets);
        }
    }
}

/// Starts a run on the shielded last CPU. Its record exists once the shield is up.
fn start(scratch: &Scratch, options: &str) -> Started {
    let arguments = format!("measure timer --quiet --record a --shield {} {options}", last_cpu());
    let child = scratch.punctual(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).start();
    wait_until("the record exists", || scratch.record_path().exists());
    child
}

#[track_caller]
fn assert_shielded(tasks: &BusyTasks) {
    assert!(affinity(tasks.pinned()).is_some(), "the pinned task has ended");
    for pid in tasks.pids() {
        // The programs `sleep` end all the time.
        let Some(cpus) = affinity(pid) else { continue };
        assert!(!contains(&cpus, last_cpu()), "task {pid} may run on {cpus}");
    }
    assert!(!contains(&affinity(2).unwrap(), last_cpu()), "new kernel threads start on another CPU");
    assert_ne!(journals(), 0);
}

fn contains(cpus: &str, cpu: u32) -> bool {
    cpus.parse::<machine::CpuList>().unwrap().contains(cpu)
}

fn journals() -> usize {
    let is_shield = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().ends_with("-shield.json");
    fs::read_dir("/run/punctual").into_iter().flatten().flatten().filter(is_shield).count()
}

#[test]
fn programs_leave_a_cpu_until_tune_reverts_it() {
    let _alone = alone();
    let tasks = BusyTasks::start();
    let before = State::read();
    let scratch = Scratch::new();
    let cpu = last_cpu();
    // A sleeping child of the pinned shell is pinned, too.
    let movable: Vec<u32> = tasks.pids().into_iter().filter(|pid| affinity(*pid) != Some(cpu.to_string())).collect();
    assert!(movable.len() >= 3, "{movable:?}");
    let tuned = scratch.run(&format!("tune --cpus {cpu} --only cpu.programs --yes"));
    tuned.expect_status(0);
    for pid in movable {
        let cpus = affinity(pid).unwrap_or_default();
        assert!(!cpus.is_empty() && !contains(&cpus, cpu), "task {pid} may run on {cpus}");
    }
    assert_eq!(affinity(tasks.pinned()), Some(cpu.to_string()), "a pinned program stays");
    // New programs, too, and the CPU can be used by those that ask for it.
    let measured = scratch.run(&format!("measure timer --cpus {cpu} --duration 100ms --quiet --record a"));
    measured.expect_status(0);
    assert_eq!(scratch.record().series[0].cpu, Some(cpu));
    let right = scratch.run(&format!("tune --cpus {cpu} --only cpu.programs --yes")).expect_status(0).stdout();
    assert!(right.contains("No setting was changed"), "{right}");
    let reverted = scratch.run("tune --revert").expect_status(0).stdout();
    assert!(reverted.contains("restored") && reverted.contains("task"), "{reverted}");
    drop(tasks);
    before.assert_restored("reverted");
}

#[test]
fn a_shield_is_left_alone_from_elsewhere() {
    let _alone = alone();
    assert!(last_cpu() > 0, "needs a second CPU");
    wait_until("no other run shields CPUs", || journals() == 0);
    let scratch = Scratch::new();
    let mut child = start(&scratch, "--duration 8s");
    let run_in = |namespaces: &str, script: &str| {
        let script = format!("mount --make-rprivate / && {script} restore");
        let mut command = Command::new("unshare");
        command.args(namespaces.split(' ')).args(["bash", "-c", &script.replace("PUNCTUAL", PUNCTUAL)]);
        command.output().unwrap()
    };
    let other = run_in("--pid --fork --mount --mount-proc", "PUNCTUAL");
    let left_alone = format!("left alone: the changes of process {}, which may still run", child.id());
    let said = String::from_utf8_lossy(&other.stdout).into_owned();
    assert!(said.starts_with(&left_alone) && said.lines().count() == 1, "{said}");
    for (namespaces, script, expected) in [
        ("--mount", "mount -t tmpfs none /proc && PUNCTUAL", "cannot read the boot id"),
        ("--pid --fork --mount", "PUNCTUAL", "/proc shows another namespace of process ids"),
    ] {
        let other = run_in(namespaces, script);
        let errors = String::from_utf8_lossy(&other.stderr);
        assert!(other.status.code() == Some(1) && errors.contains(expected), "{script}: {errors}");
    }
    assert_eq!(journals(), 1);
    signal(&child, "TERM");
    child.wait().unwrap();
    assert_eq!(journals(), 0);
}

#[test]
fn a_shield_moves_tasks_and_restores_everything() {
    let _alone = alone();
    let tasks = BusyTasks::start();
    let before = State::read();
    let scratch = Scratch::new();
    let child = start(&scratch, &format!("--duration 2s --load cpu --load timer:period=10ms@{}", last_cpu()));
    assert_shielded(&tasks);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    before.assert_restored("");
    assert_eq!(affinity(tasks.pinned()), Some(last_cpu().to_string()));

    let record: Record = scratch.record();
    let shielding = record.shielding.as_ref().unwrap();
    assert_eq!(shielding.cpus, last_cpu().to_string());
    assert!(shielding.tasks_moved >= 4, "{shielding:?}");
    assert!(
        shielding.left.iter().any(|left| left.names.iter().any(|name| name.starts_with("migration/"))),
        "{shielding:?}"
    );
    let put_back = shielding.put_back.as_ref().unwrap();
    assert!(put_back.failed.is_empty() && put_back.tasks > 0, "{put_back:?}");
    let cpus: Vec<_> = record.series.iter().map(|series| series.cpu).collect();
    assert_eq!(cpus, [Some(last_cpu())], "the shielded CPU is the measured one");
    let loads: Vec<_> = record.phases[0].loads.iter().map(|load| (load.name.as_str(), load.ran)).collect();
    assert_eq!(loads, [("cpu", true), ("timer", true)], "{:?}", record.phases[0].loads);
    assert!(!contains(&record.phases[0].loads[0].cpus, last_cpu()), "loads run on other CPUs");
    let shown = scratch.run("show --full a.punctual.json").stdout();
    assert!(shown.contains("shield") && shown.contains("moved off"), "{shown}");
}

#[test]
fn a_shield_is_restored_after_signals_and_by_the_next_run_after_sigkill() {
    let _alone = alone();
    let tasks = BusyTasks::start();
    let before = State::read();
    for name in ["INT", "TERM"] {
        let scratch = Scratch::new();
        let child = start(&scratch, "--endless");
        assert_shielded(&tasks);
        signal(&child, name);
        assert_eq!(child.wait_with_output().unwrap().status.code(), Some(0));
        before.assert_restored("");
    }
    for next in ["restore", "restore --json", "measure timer --quiet --no-record --cpus 0 --samples 20"] {
        let scratch = Scratch::new();
        let child = start(&scratch, "--endless --load cpu");
        let process = child.id();
        assert_shielded(&tasks);
        signal(&child, "KILL");
        child.wait_with_output().unwrap();
        assert_shielded(&tasks);
        let run = scratch.run(next);
        run.expect_status(0);
        let text = format!("{}{}", run.stdout(), run.stderr());
        assert!(text.contains(&process.to_string()) && text.contains("restored"), "{next}: {text}");
        if !next.ends_with("json") {
            let line = text.lines().find(|line| line.contains(&format!("process {process}"))).unwrap();
            assert!(line.contains("restored") && line.contains("task"), "{line}");
        }
        before.assert_restored("");
        assert_eq!(journals(), 0);
        assert_eq!(scratch.run("restore").stdout(), "nothing to restore\n");
    }
}

/// The control groups of this process.
fn left_by(process: u32) -> Vec<String> {
    let folders = ["/sys/fs/cgroup/cpuset", "/sys/fs/cgroup"];
    let names = folders.into_iter().flat_map(|folder| fs::read_dir(folder).into_iter().flatten().flatten());
    let names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let own = format!("punctual-{process}");
    names.filter(|name| *name == own || name.starts_with(&format!("{own}-"))).collect()
}

#[test]
fn a_killed_run_is_undone_wherever_it_was_killed_and_without_its_journal() {
    let _alone = alone();
    let tasks = BusyTasks::start();
    let before = State::read();
    let mut traces = 0;
    for round in 0..16_u64 {
        let scratch = Scratch::new();
        let arguments = format!("measure timer --quiet --no-record --blame --endless --shield {}", last_cpu());
        let mut command = scratch.punctual(&arguments);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).start();
        let process = child.id();
        wait_until("the shield begins", || !left_by(process).is_empty() || child.try_wait().unwrap().is_some());
        std::thread::sleep(std::time::Duration::from_millis(round * 25));
        signal(&child, "KILL");
        child.wait().unwrap();
        let journal = fs::read_dir("/run/punctual").unwrap().flatten().map(|entry| entry.path());
        let own = format!("{process}-");
        let is_own = |path: &std::path::PathBuf| path.file_name().unwrap().to_string_lossy().starts_with(&own);
        if round % 2 == 0 {
            journal.filter(is_own).for_each(|path| fs::remove_file(path).unwrap());
        }
        let run = scratch.run("restore");
        run.expect_status(0);
        assert!(run.stdout().contains(&format!("process {process} was killed")), "round {round}: {}", run.stdout());
        // Without a mounted tracefs, only punctual sees its instances.
        traces += run.stdout().matches("trace instance").count();
        assert_eq!(left_by(process), [""; 0], "round {round}");
        before.assert_restored(&format!("round {round}: {}", run.stdout()));
        assert_eq!(scratch.run("restore").stdout(), "nothing to restore\n", "round {round}");
    }
    assert!(traces > 0, "no round was killed while it traced");
    drop(tasks);
}

#[test]
fn names_in_a_journal_are_harmless() {
    let _alone = alone();
    wait_until("no other run shields CPUs", || journals() == 0);
    fs::create_dir_all("/run/punctual").unwrap();
    let path = "/run/punctual/999999999-1-irq-priority.json";
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let hostile = "x\\u001b[2J\\u202ey";
    let journal = format!(
        r#"{{"process":999999999,"start_ticks":1,"boot_id":"{}","purpose":"irq_priority","undo":[{{"what":"file","path":"{hostile}","before":"1","during":"2"}}]}}"#,
        boot.trim()
    );
    fs::write(path, journal).unwrap();
    let run = Scratch::new().run("restore");
    let json = Scratch::new().run("restore --json");
    fs::remove_file(path).unwrap();
    run.expect_status(1);
    assert!(run.stdout().contains("/x\\u{1b}[2J\\u{202e}y: punctual does not change this"), "{}", run.stdout());
    assert!(!json.stdout().contains(record::visible::is_hidden) && json.stdout().contains("x\\u001b[2J\\u202ey"));
}

#[test]
fn another_thread_on_the_shielded_cpu_makes_the_run_invalid() {
    let _alone = alone();
    wait_until("no other run shields CPUs", || journals() == 0);
    let (scratch, cpu) = (Scratch::new(), last_cpu());
    let options = format!("measure timer --quiet --record a --period 1ms --duration 4s --shield {cpu}");
    let mut child = scratch.punctual(&options).stdout(Stdio::null()).start();
    wait_until("it measures", || scratch.record_path().exists());
    let mut busy = Command::new("sh").args(["-c", "while true; do :; done"]).start();
    // A shield by cpusets of control groups v1 moves all tasks of the topmost group, but it does not close that group.
    let _ = fs::write("/sys/fs/cgroup/cpuset/tasks", busy.id().to_string());
    let entered = sys::sched::set_affinity_of(Some(busy.id()), &[cpu]).is_ok();
    std::thread::sleep(std::time::Duration::from_millis(1500));
    busy.kill().unwrap();
    busy.wait().unwrap();
    let status = child.wait().unwrap().code();
    if !entered {
        return skip("another thread on a shielded CPU, because nothing can enter this shield");
    }
    assert_eq!(status, Some(4));
    let record = scratch.record();
    let text = &record.validity.reasons.iter().find(|reason| reason.id == "shield.broken").expect("a reason").text;
    assert!(text.starts_with(&format!("another thread ran on the shielded CPU {cpu}: sh ({})", busy.id())), "{text}");
}

#[test]
fn a_shield_of_all_cpus_is_refused_and_changes_nothing() {
    let _alone = alone();
    wait_until("no other run shields CPUs", || journals() == 0);
    let before = State::read();
    let run = Scratch::new().run(&format!("measure timer --no-record --shield 0-{}", last_cpu()));
    run.expect_status(1);
    assert!(run.stderr().contains("would leave no CPU for other work"), "{}", run.stderr());
    before.assert_restored("");
}

#[test]
fn an_incomplete_shield_of_an_ordinary_user_makes_the_run_invalid() {
    let _alone = alone();
    wait_until("no other run shields CPUs", || journals() == 0);
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
    assert!(reason.text.contains("the right to move tasks of other users is needed"), "{}", reason.text);
    assert_eq!(record.shielding.unwrap().means, ShieldMeans::Affinity);
    assert_eq!(nobody("restore").stdout, b"nothing to restore\n");
    before.assert_restored("");
}
