//! Shields a CPU with an isolated cgroup v2 partition: no other tasks run there, and afterwards everything is restored,
//! even if the run was killed.

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
/// Flag of threads whose affinity cannot be changed.
const FIXED_AFFINITY: u64 = 0x0400_0000;

/// A run on a shielded CPU with loads on both sides.
pub fn by_partition() -> Result<()> {
    let _session = Session::make()?;
    let busy_threads = BusyThreads::start()?;
    let before = State::read()?;
    ensure!(before.tasks.values().any(|cpus| cpus == "1"), "no task is pinned to CPU 1");

    // Without `--blame=off`, an emulated CPU 0 would be busy with the trace, and the loads would starve.
    let options = "--shield 1 --blame=off --endless --load cpu --load timer:period=10ms@0-1 --load timer:period=10ms@1";
    let run = start(&format!("measure timer --quiet --record shielded {options}"))?;
    wait_until("the shield is active", || recorded("shielded").map(|_| true))?;
    ensure!(isolated()? == "1", "isolated CPUs: `{}`", isolated()?);
    let during = State::read()?;
    for task in tasks().iter().filter(|task| task.process != run.id() && task.parent != run.id() && !task.is_fixed) {
        ensure!(task.cpus == "0", "task {} ({}) may run on {}", task.id, task.name, task.cpus);
    }
    // The kernel reports the CPU on which a thread last ran, so each thread must run once more.
    let strays = || of_process(process::id()).filter(|task| task.cpu == 1).count();
    wait_until("the busy threads have moved", || Ok(strays() == 0))?;
    for _ in 0..10 {
        thread::sleep(Duration::from_millis(50));
        ensure!(strays() == 0, "a busy thread returned to CPU 1");
    }
    kill_process(Pid::from_child(&run), Signal::INT)?;
    expect(0, &run.wait_with_output()?)?;

    let record = recorded("shielded")?;
    let shielding = record.shielding.clone().context("no shielding in the record")?;
    ensure!(shielding.means == ShieldMeans::IsolatedPartition, "{:?}: {:?}", shielding.means, shielding.notes);
    ensure!(shielding.tasks_moved >= 3 && shielding.interrupts_moved >= 1, "{shielding:?}");
    ensure!(shielding.left.iter().any(|left| left.kind == LeftKind::KernelThreads), "{:?}", shielding.left);
    // The record also counts interrupts without a handler; the test checks the others.
    let moved =
        during.interrupts.iter().filter(|(path, cpus)| cpus == "0" && before.interrupts_of(path) != "0").count();
    ensure!(moved >= 1 && moved <= shielding.interrupts_moved as usize, "{:?} {shielding:?}", during.interrupts);
    let series = &record.series[..];
    ensure!(series.len() == 1 && series[0].cpu == Some(1) && series[0].granted.cpus == "1", "{series:?}");
    // The number of samples depends on how long the waits above took.
    ensure!(series[0].samples > 0, "nothing was measured");
    let loads = &record.phases[0].loads;
    let placement: Vec<(&str, &str)> = loads.iter().map(|load| (load.name.as_str(), load.cpus.as_str())).collect();
    ensure!(placement == [("cpu", "0"), ("timer", "0"), ("timer", "1"), ("timer", "1")], "{placement:?}");
    ensure!(loads.iter().all(|load| load.ran), "{loads:?}");
    let put_back = shielding.put_back.context("nothing was restored")?;
    ensure!(put_back.failed.is_empty() && put_back.groups == 1, "{put_back:?}");
    drop(busy_threads);
    before.check_restored()
}

/// Two runs are killed. `punctual restore` cleans up after the first one, the next run after the second one.
pub fn after_a_kill() -> Result<()> {
    let _session = Session::make()?;
    let busy_threads = BusyThreads::start()?;
    let before = State::read()?;
    for by_hand in [true, false] {
        let record = if by_hand { "killed" } else { "killed-again" };
        let options = "--shield 1 --hold-cpu-awake --blame=off --endless --load timer@1";
        let mut run = start(&format!("measure timer --quiet --record {record} {options}"))?;
        wait_until("the shield is active", || recorded(record).map(|_| true))?;
        thread::sleep(Duration::from_millis(500));
        run.kill()?;
        run.wait()?;
        ensure!(isolated()? == "1", "the kernel restored it");
        let output = if by_hand {
            expect(0, &punctual("restore")?)?
        } else {
            let next = punctual("measure timer --quiet --no-record --cpus 0 --samples 20")?;
            expect(0, &next)?;
            String::from_utf8_lossy(&next.stderr).into_owned()
        };
        ensure!(output.contains("restored") && output.contains("1 control group"), "{output}");
        before.check_restored()?;
        ensure!(expect(0, &punctual("restore")?)?.trim() == "nothing to restore");
    }
    drop(busy_threads);
    Ok(())
}

/// Without cpuset, the affinity of each task is set instead.
pub fn by_affinity() -> Result<()> {
    let busy_threads = BusyThreads::start()?;
    let before = State::read()?;
    let record = measure(0, "affinity", "--shield 1 --blame=off --duration 1s --load cpu")?;
    let shielding = record.shielding.context("no shielding in the record")?;
    ensure!(shielding.means == ShieldMeans::Affinity && shielding.tasks_moved >= 3, "{shielding:?}");
    ensure!(record.series[0].granted.cpus == "1", "{:?}", record.series[0].granted);
    drop(busy_threads);
    before.check_restored()
}

fn isolated() -> Result<String> {
    read(&format!("{CGROUP}/cpuset.cpus.isolated"))
}

/// A cgroup of this process like that of a login session; left and removed on drop.
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

/// Busy threads: two that may run anywhere, and one pinned to each CPU.
struct BusyThreads {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl BusyThreads {
    fn start() -> Result<Self> {
        let stop = Arc::<AtomicBool>::default();
        let busy = |cpus: &'static [u32]| {
            let stop = Arc::clone(&stop);
            thread::spawn(move || {
                let pinned = sched::set_affinity(cpus);
                // The guest has only two CPUs, so the threads sleep to let others run.
                while pinned.is_ok() && !stop.load(Ordering::Relaxed) {
                    (0..10_000).for_each(|_| spin_loop());
                    thread::sleep(Duration::from_millis(1));
                }
            })
        };
        let threads = vec![busy(&[0, 1]), busy(&[0, 1]), busy(&[0]), busy(&[1])];
        wait_until("the busy threads are placed", || {
            let of_cpu = |cpus: &str| of_process(process::id()).filter(|task| task.cpus == cpus).count();
            Ok(of_cpu("0") == 1 && of_cpu("1") == 1)
        })?;
        Ok(Self { stop, threads })
    }
}

impl Drop for BusyThreads {
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

/// The state that a shield changes: affinities, interrupts, unbound work, cgroups, idle states.
#[derive(Debug, PartialEq)]
struct State {
    /// Affinity by id, start time and name, for tasks that can be moved.
    tasks: BTreeMap<(u32, String, String), String>,
    interrupts: Vec<(String, String)>,
    files: Vec<(String, String)>,
    groups: Vec<String>,
}

impl State {
    fn read() -> Result<Self> {
        // Interrupt threads follow their interrupts with a delay.
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

    /// Checks that the machine is restored, ignoring tasks that have ended or started since.
    fn check_restored(&self) -> Result<()> {
        let now = Self::read()?;
        for (task, before) in &self.tasks {
            let cpus = now.tasks.get(task).unwrap_or(before);
            ensure!(cpus == before, "task {task:?}: affinity {cpus} instead of {before}");
        }
        ensure!(now.interrupts == self.interrupts, "{:?} instead of {:?}", now.interrupts, self.interrupts);
        ensure!(now.files == self.files, "{:?} instead of {:?}", now.files, self.files);
        ensure!(now.groups == self.groups, "{:?} instead of {:?}", now.groups, self.groups);
        Ok(())
    }
}
