//! A CPU shielded by an isolated partition of control groups v2: nobody else is there, and afterwards everything is as it
//! was, also when the run is killed.

use std::{
    collections::BTreeMap,
    fs,
    hint::spin_loop,
    process,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use record::{LeftKind, ShieldMeans};
use rustix::process::{Pid, Signal, kill_process};
use sys::sched;

use crate::inside::{expect, measure, punctual, read, recorded, start, wait_until, write};

const CGROUP: &str = "/sys/fs/cgroup";
/// The flag of a thread whose affinity the kernel lets nobody change.
const FIXED_AFFINITY: u64 = 0x0400_0000;

/// A run on a shielded CPU, with loads on both sides.
pub fn by_partition() -> Result<()> {
    let _session = Session::make()?;
    let crowd = Crowd::start()?;
    let before = State::read()?;
    ensure!(before.tasks.values().any(|cpus| cpus == "1"), "nobody is pinned to CPU 1");

    let options = "--shield 1 --endless --load cpu --load timer@0-1 --load timer:period=10ms@1";
    let run = start(&format!("measure timer --quiet --record shielded {options}"))?;
    wait_until("the run has its shield", || recorded("shielded").map(|_| true))?;
    ensure!(isolated()? == "1", "isolated are CPUs `{}`", isolated()?);
    let during = State::read()?;
    for task in tasks().iter().filter(|task| task.process != run.id() && task.parent != run.id() && !task.is_fixed) {
        ensure!(task.cpus == "0", "task {} ({}) may run on {}", task.id, task.name, task.cpus);
    }
    // The kernel tells the CPU on which a thread ran last: each has to run once more.
    let strays = || of_process(process::id()).filter(|task| task.cpu == 1).count();
    wait_until("the crowd runs elsewhere", || Ok(strays() == 0))?;
    for _ in 0..10 {
        thread::sleep(Duration::from_millis(50));
        ensure!(strays() == 0, "a task of the crowd came back to CPU 1");
    }
    kill_process(Pid::from_child(&run), Signal::INT)?;
    expect(0, &run.wait_with_output()?)?;

    let record = recorded("shielded")?;
    let told = record.shielding.clone().context("no shielding in the record")?;
    ensure!(told.means == ShieldMeans::IsolatedPartition, "{:?}: {:?}", told.means, told.notes);
    ensure!(told.tasks_moved >= 3 && told.interrupts_moved >= 1, "{told:?}");
    ensure!(told.left.iter().any(|left| left.kind == LeftKind::KernelThreads), "{:?}", told.left);
    // It counts those that nobody serves, too; the test looks at the others.
    let moved =
        during.interrupts.iter().filter(|(path, cpus)| cpus == "0" && before.interrupts_of(path) != "0").count();
    ensure!(moved >= 1 && moved as u32 <= told.interrupts_moved, "{:?} {told:?}", during.interrupts);
    let series = &record.series[..];
    ensure!(series.len() == 1 && series[0].cpu == Some(1) && series[0].granted.cpus == "1", "{series:?}");
    // How many depends on how long the waits above took.
    ensure!(series[0].samples > 0, "nothing was measured");
    let loads = &record.phases[0].loads;
    let on: Vec<(&str, &str)> = loads.iter().map(|load| (load.name.as_str(), load.cpus.as_str())).collect();
    ensure!(on == [("cpu", "0"), ("timer", "0"), ("timer", "1"), ("timer", "1")], "{on:?}");
    ensure!(loads.iter().all(|load| load.ran), "{loads:?}");
    let put_back = told.put_back.context("nothing was put back")?;
    ensure!(put_back.failed.is_empty() && put_back.groups == 1, "{put_back:?}");
    drop(crowd);
    before.is_again()
}

/// Two runs are killed: one by hand is cleaned up after by `punctual restore`, one by the next run.
pub fn after_a_kill() -> Result<()> {
    let _session = Session::make()?;
    let crowd = Crowd::start()?;
    let before = State::read()?;
    for by_hand in [true, false] {
        let record = if by_hand { "killed" } else { "killed-again" };
        let options = "--shield 1 --hold-cpu-awake --endless --load timer@1";
        let mut run = start(&format!("measure timer --quiet --record {record} {options}"))?;
        wait_until("the run has its shield", || recorded(record).map(|_| true))?;
        thread::sleep(Duration::from_millis(500));
        run.kill()?;
        run.wait()?;
        ensure!(isolated()? == "1", "the kernel put it back itself");
        let said = if by_hand {
            expect(0, &punctual("restore")?)?
        } else {
            let next = punctual("measure timer --quiet --no-record --cpus 0 --samples 20")?;
            expect(0, &next)?;
            String::from_utf8_lossy(&next.stderr).into_owned()
        };
        ensure!(said.contains("put back") && said.contains("1 control group"), "{said}");
        before.is_again()?;
        ensure!(expect(0, &punctual("restore")?)?.trim() == "nothing to restore");
    }
    drop(crowd);
    Ok(())
}

/// Where there is no cpuset, the affinity of each task serves.
pub fn by_affinity() -> Result<()> {
    let crowd = Crowd::start()?;
    let before = State::read()?;
    let record = measure(0, "affinity", "--shield 1 --duration 1s --load cpu")?;
    let told = record.shielding.context("no shielding in the record")?;
    ensure!(told.means == ShieldMeans::Affinity && told.tasks_moved >= 3, "{told:?}");
    ensure!(record.series[0].granted.cpus == "1", "{:?}", record.series[0].granted);
    drop(crowd);
    before.is_again()
}

fn isolated() -> Result<String> {
    read(&format!("{CGROUP}/cpuset.cpus.isolated"))
}

/// A group of this process, as a login session has one; left and removed when dropped.
struct Session;

impl Session {
    fn make() -> Result<Self> {
        fs::create_dir(format!("{CGROUP}/session"))?;
        let session = Self;
        write(&format!("{CGROUP}/session/cgroup.procs"), &process::id().to_string())?;
        Ok(session)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = fs::write(format!("{CGROUP}/cgroup.procs"), process::id().to_string());
        let _ = fs::remove_dir(format!("{CGROUP}/session"));
    }
}

/// Busy threads: two that may run anywhere, and one that is pinned to each CPU.
struct Crowd {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Crowd {
    fn start() -> Result<Self> {
        let stop = Arc::<AtomicBool>::default();
        let busy = |cpus: &'static [u32]| {
            let stop = Arc::clone(&stop);
            thread::spawn(move || {
                let pinned = sched::set_affinity(cpus);
                // Someone else's turn is a matter of course on a real machine; here the guest has to go on.
                while pinned.is_ok() && !stop.load(Ordering::Relaxed) {
                    (0..10_000).for_each(|_| spin_loop());
                    thread::sleep(Duration::from_millis(1));
                }
            })
        };
        let threads = vec![busy(&[0, 1]), busy(&[0, 1]), busy(&[0]), busy(&[1])];
        wait_until("the crowd is in its places", || {
            let of_cpu = |cpus: &str| of_process(process::id()).filter(|task| task.cpus == cpus).count();
            Ok(of_cpu("0") == 1 && of_cpu("1") == 1)
        })?;
        Ok(Self { stop, threads })
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}

struct Task {
    process: u32,
    parent: u32,
    id: u32,
    name: String,
    start: String,
    is_fixed: bool,
    cpu: u32,
    cpus: String,
}

fn tasks() -> Vec<Task> {
    numbers("/proc").into_iter().flat_map(of_process).collect()
}

fn of_process(process: u32) -> impl Iterator<Item = Task> {
    numbers(&format!("/proc/{process}/task")).into_iter().filter_map(move |id| task(process, id))
}

fn numbers(folder: &str) -> Vec<u32> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

fn task(process: u32, id: u32) -> Option<Task> {
    let folder = format!("/proc/{process}/task/{id}");
    let status = read(&format!("{folder}/status")).ok()?;
    let stat = read(&format!("{folder}/stat")).ok()?;
    let (head, tail) = stat.rsplit_once(") ")?;
    let fields: Vec<&str> = tail.split(' ').collect();
    Some(Task {
        process,
        parent: fields[1].parse().ok()?,
        id,
        name: head.split_once('(')?.1.to_owned(),
        start: fields[19].to_owned(),
        is_fixed: fields[6].parse::<u64>().ok()? & FIXED_AFFINITY != 0,
        cpu: fields[36].parse().ok()?,
        cpus: status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:\t"))?.to_owned(),
    })
}

/// What a shield changes: affinities, interrupts, unbound work, control groups, idle states.
#[derive(Debug, PartialEq)]
struct State {
    /// By number and time of start, of tasks that can be moved.
    tasks: BTreeMap<(u32, String, String), String>,
    interrupts: Vec<(String, String)>,
    files: Vec<(String, String)>,
    groups: Vec<String>,
}

impl State {
    fn read() -> Result<Self> {
        // Threads of interrupts follow their interrupts in their own time.
        let movable = tasks().into_iter().filter(|task| !task.is_fixed && !task.name.starts_with("irq/"));
        let mut interrupts = Vec::new();
        for entry in fs::read_dir("/proc/irq")?.flatten() {
            let path = format!("{}/smp_affinity_list", entry.path().display());
            let served = fs::read_dir(entry.path()).is_ok_and(|files| files.flatten().any(|f| f.path().is_dir()));
            if let (true, Ok(cpus)) = (served, read(&path)) {
                interrupts.push((path, cpus));
            }
        }
        interrupts.sort();
        let files = [
            "/proc/irq/default_smp_affinity",
            "/sys/devices/virtual/workqueue/cpumask",
            "/sys/devices/system/cpu/cpu1/power/pm_qos_resume_latency_us",
            "/sys/fs/cgroup/cgroup.subtree_control",
            "/sys/fs/cgroup/cgroup.controllers",
            "/proc/self/cgroup",
        ];
        let file = |path: &str| (path.to_owned(), read(path).unwrap_or_default());
        let mut groups: Vec<String> = Vec::new();
        for entry in fs::read_dir(CGROUP)?.flatten().filter(|entry| entry.path().is_dir()) {
            groups.push(entry.file_name().to_string_lossy().into_owned());
        }
        groups.sort();
        let tasks = movable.map(|task| ((task.id, task.start, task.name), task.cpus)).collect();
        Ok(Self { tasks, interrupts, files: files.map(file).into(), groups })
    }

    fn interrupts_of(&self, path: &str) -> &str {
        self.interrupts.iter().find(|(known, _)| known == path).map_or("", |(_, cpus)| cpus)
    }

    /// Whether the machine is as it was; tasks that have ended or begun since do not count.
    fn is_again(&self) -> Result<()> {
        let now = Self::read()?;
        for (task, before) in &self.tasks {
            let cpus = now.tasks.get(task).unwrap_or(before);
            ensure!(cpus == before, "task {task:?} had {before} and has {cpus}");
        }
        ensure!(now.interrupts == self.interrupts, "{:?} were {:?}", now.interrupts, self.interrupts);
        ensure!(now.files == self.files, "{:?} were {:?}", now.files, self.files);
        ensure!(now.groups == self.groups, "{:?} were {:?}", now.groups, self.groups);
        Ok(())
    }
}
