//! The CPU time of an interrupt in punctual, compared with programs that only read the events. The guest's clock counts
//! instructions of kernel and program, so the times do not depend on the host.

use std::{
    fs,
    io::Write,
    path::Path,
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    thread,
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use sys::{
    interrupt::gpio::{Active, Chip},
    sched,
    sched::Policy,
};

use super::pulses::Pulses;
use crate::inside::{read, start, wait_until};

/// Rounds of each comparison: one measurement of each program.
const ROUNDS: usize = 3;
/// Time until a program waits for its events.
const SETTLE: Duration = Duration::from_secs(1);
const WINDOW: Duration = Duration::from_secs(2);
/// Time between two events.
const PERIOD: Duration = Duration::from_millis(2);
/// Results for `make bench`: lines of name, punctual's time and the other's in ns per event.
const RESULTS: &str = "/out/interrupt-costs.txt";

/// The CPU time and the switches of a thread.
fn schedstat(path: &Path) -> Result<(u64, u64)> {
    let text = fs::read_to_string(path.join("schedstat"))?;
    let fields: Vec<u64> = text.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
    let [ran_ns, _, switches] = fields[..] else { anyhow::bail!("{text}") };
    Ok((ran_ns, switches))
}

/// The threads of a process, each with its CPU time and switches.
fn threads(pid: u32) -> Result<Vec<(u64, u64)>> {
    let mut paths: Vec<_> = fs::read_dir(format!("/proc/{pid}/task"))?.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths.iter().map(|path| schedstat(path)).collect()
}

/// CPU time of each event in the thread that waits for them, ns: the one that switched most.
fn cost_ns(mut child: Child, made: &dyn Fn() -> u64) -> Result<f64> {
    thread::sleep(SETTLE);
    let (before, made_before) = (threads(child.id())?, made());
    thread::sleep(WINDOW);
    let (after, made_after) = (threads(child.id())?, made());
    // They end only when they are asked to.
    child.kill()?;
    child.wait()?;
    ensure!(before.len() == after.len(), "threads began or ended: {before:?} {after:?}");
    let each = before.iter().zip(&after).map(|(before, after)| (after.0 - before.0, after.1 - before.1));
    let (ran_ns, switches) = each.max_by_key(|(_, switches)| *switches).context("no threads")?;
    let events = made_after - made_before;
    ensure!(events > 300 && switches.abs_diff(events) <= events / 4, "{switches} switches for {events} events");
    Ok(ran_ns as f64 / events as f64)
}

/// Largest median ratio: the target of `make bench`.
const RATIO_MAX: f64 = 1.0;

/// Compares the costs in alternating runs, and notes them for `make bench`.
fn compare(
    name: &str,
    made: &dyn Fn() -> u64,
    own: &dyn Fn() -> Result<Child>,
    other: &dyn Fn() -> Result<Child>,
) -> Result<()> {
    let mut results = fs::OpenOptions::new().create(true).append(true).open(RESULTS)?;
    let mut ratios = Vec::new();
    for _ in 0..ROUNDS {
        let (own_ns, other_ns) = (cost_ns(own()?, made)?, cost_ns(other()?, made)?);
        writeln!(results, "{name}\t{own_ns}\t{other_ns}")?;
        ratios.push(own_ns / other_ns);
    }
    ratios.sort_by(f64::total_cmp);
    ensure!(ratios[ROUNDS / 2] <= RATIO_MAX, "{name}: {ratios:?}");
    Ok(())
}

fn reader(program: &str, arguments: &[&str]) -> Result<Child> {
    let mut command = Command::new(format!("/bin/{program}"));
    command.args(arguments).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().with_context(|| format!("cannot start {program}"))
}

/// punctual with the policy of the other programs. It keeps each time and its parts, but does not look for causes.
fn own(source: &str) -> Result<Child> {
    start(&format!(
        "measure interrupt --source {source} --cpu 0 --policy other --period 2ms --duration 1m --blame=off --quiet \
         --no-record"
    ))
}

/// Edges of a GPIO line: gpiomon reads each, and prints nothing.
pub fn of_edges() -> Result<()> {
    let (shall_end, made) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let output = Chip::open(Path::new("/dev/gpiochip0"))?.drive(0, Active::High)?;
    let (ends, counts) = (Arc::clone(&shall_end), Arc::clone(&made));
    let edges = thread::spawn(move || -> Result<()> {
        sched::set_policy(Policy::Fifo(98))?;
        while !ends.load(Relaxed) {
            output.set(true)?;
            thread::sleep(PERIOD / 2);
            output.set(false)?;
            thread::sleep(PERIOD / 2);
            counts.fetch_add(1, Relaxed);
        }
        Ok(())
    });
    let compared = compare("edges", &|| made.load(Relaxed), &|| own("gpio:0/in0"), &|| {
        reader("gpiomon", &["--quiet", "--chip", "gpiochip0", "--edges", "rising", "2"])
    });
    shall_end.store(true, Relaxed);
    edges.join().ok().context("the thread of the edges panicked")??;
    compared
}

/// Pulses of a parallel port: ppstest reads each, and prints it.
pub fn of_pulses() -> Result<()> {
    wait_until("the source of pulses", || Ok(!read("/sys/class/pps/pps0/name")?.is_empty()))?;
    let pulses = Pulses::start(PERIOD)?;
    let compared = compare("pulses", &|| pulses.made(), &|| own("pps:pps0"), &|| reader("ppstest", &["/dev/pps0"]));
    pulses.end()?;
    compared
}
