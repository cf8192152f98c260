//! Threads of programs and of the kernel that take CPU time.

use record::Finding;

use super::{Check, CheckContext, Explain, evidence, ok, unknown, warn};
use crate::tasks::{Realtime, Scheduled};

/// Clock ticks a second of `/proc/PID/stat` (`USER_HZ`).
const TICKS_PER_SECOND: f64 = 100.0;
/// Share of a CPU above which a thread of the kernel or a real-time thread is busy, on average since its start.
const BUSY: f64 = 0.05;
/// The shortest life of a thread whose share says something, s.
const LIFE_MIN_S: f64 = 10.0;

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "tasks.busy_kernel",
        subject: "threads of the kernel, such as those of drivers, that use much CPU time",
        source: "punctual; the firmware driver of a wireless card did on a VIM3L",
        run: busy_kernel,
    },
    Check {
        id: "tasks.realtime",
        subject: "busy real-time threads of other programs",
        source: "sched(7)",
        run: busy_realtime,
    },
    Check {
        id: "tasks.inherited",
        subject: "programs that inherited real-time priority from their parent",
        source: "sched(7), SCHED_RESET_ON_FORK",
        run: inherited,
    },
];

/// A thread with its share of a CPU since its start.
fn busiest<'a>(threads: impl Iterator<Item = &'a Scheduled>, uptime_s: f64) -> Option<(&'a Scheduled, f64)> {
    let share = |thread: &'a Scheduled| {
        let life_s = uptime_s - thread.start_ticks as f64 / TICKS_PER_SECOND;
        (life_s >= LIFE_MIN_S).then(|| (thread, thread.ran_ticks as f64 / TICKS_PER_SECOND / life_s))
    };
    threads.filter_map(share).max_by(|a, b| a.1.total_cmp(&b.1))
}

fn read(thread: &Scheduled) -> String {
    let seconds = thread.ran_ticks as f64 / TICKS_PER_SECOND;
    let policy = thread.realtime.map(|realtime| format!(", {realtime}")).unwrap_or_default();
    let value = format!("{}{policy}, {seconds:.1} s of CPU time", thread.name);
    evidence(&format!("proc/{}/task/{}/stat", thread.process, thread.id), &value)
}

fn no_uptime(context: &CheckContext, id: &str) -> Finding {
    unknown(id, "time since boot not readable", context.evidence("proc/uptime"))
}

fn busy_kernel(context: &CheckContext) -> Finding {
    const ID: &str = "tasks.busy_kernel";
    let Some(threads) = context.threads() else { return context.unseen_threads(ID) };
    let Some(uptime_s) = context.uptime_s() else { return no_uptime(context, ID) };
    let Some((thread, share)) = busiest(threads.iter().filter(|thread| thread.is_kernels), uptime_s) else {
        return unknown(ID, "the machine has not run long enough", context.evidence("proc/uptime"));
    };
    if share < BUSY {
        let title = format!("no thread of the kernel is busy ({}: {:.1} % of a CPU)", thread.name, share * 100.0);
        return ok(ID, title, read(thread));
    }
    let title = format!("{} uses {:.0} % of a CPU, on average since it began", thread.name, share * 100.0);
    warn(ID, title, read(thread)).because(
        "A driver that works so much may be faulty, or serve a device that nobody uses. It delays every thread with a lower priority on its CPU.",
        format!("see what it does: sudo cat /proc/{}/stack; if it belongs to a device that you do not need, blacklist its driver", thread.id),
    )
}

fn busy_realtime(context: &CheckContext) -> Finding {
    const ID: &str = "tasks.realtime";
    let Some(threads) = context.threads() else { return context.unseen_threads(ID) };
    let Some(uptime_s) = context.uptime_s() else { return no_uptime(context, ID) };
    let own = std::process::id();
    let programs =
        || threads.iter().filter(|thread| !thread.is_kernels && thread.process != own && thread.realtime.is_some());
    let count = programs().count();
    match busiest(programs(), uptime_s) {
        Some((thread, share)) if share >= BUSY => {
            let title = format!("{} uses {:.0} % of a CPU at real-time priority", thread.name, share * 100.0);
            let (effect, remedy) = match thread.realtime {
                // sched(7): the kernel refuses an affinity that keeps it from some CPUs.
                Some(Realtime::Deadline) => (
                    "It runs before all other threads until its time of a period is used up, and cannot be kept off a CPU.",
                    format!("unless it is the work that you qualify: sudo chrt --other --pid 0 {}", thread.id),
                ),
                _ => (
                    "Every thread with a lower or equal priority on its CPU waits while it runs.",
                    format!(
                        "unless it is the work that you qualify: sudo taskset --all-tasks --cpu-list --pid {} {}",
                        context.housekeeping(),
                        thread.process
                    ),
                ),
            };
            warn(ID, title, read(thread)).because(effect, remedy).until_exit()
        }
        Some((thread, share)) => {
            let title =
                format!("{count} real-time threads of programs, none busy ({}: {:.1} %)", thread.name, share * 100.0);
            ok(ID, title, read(thread))
        }
        None if count == 0 => {
            ok(ID, "no other program has real-time threads", "/proc/*/task/*/stat: policies other, batch, idle")
        }
        None => unknown(
            ID,
            format!("{count} real-time threads of programs have just begun"),
            context.evidence("proc/uptime"),
        ),
    }
}

/// A program with the real-time policy of a thread of its parent did not ask for its own.
fn inherited(context: &CheckContext) -> Finding {
    const ID: &str = "tasks.inherited";
    let Some(threads) = context.threads() else { return context.unseen_threads(ID) };
    let mains: Vec<&Scheduled> =
        threads.iter().filter(|thread| !thread.is_kernels && thread.id == thread.process).collect();
    // Any thread of the parent may have started it.
    let parent_of = |thread: &Scheduled| {
        let of_parent = threads.iter().filter(|other| !other.is_kernels && other.process == thread.parent);
        of_parent.into_iter().find(|parent| {
            thread.realtime.is_some() && parent.realtime == thread.realtime && parent.name != thread.name
        })
    };
    let found: Vec<(&Scheduled, &Scheduled)> =
        mains.iter().filter_map(|thread| Some((*thread, parent_of(thread)?))).collect();
    let Some((thread, parent)) = found.first() else {
        return ok(ID, "no program has real-time priority from its parent", "/proc/*/stat: none like its parent");
    };
    let policy = thread.realtime.map(|realtime| realtime.to_string()).unwrap_or_default();
    let others = match found.len() - 1 {
        0 => String::new(),
        more => format!(" (and {more} more)"),
    };
    let title = format!("{}{others} has {policy} from its parent {}", thread.name, parent.name);
    let processes: Vec<String> = found.iter().map(|(thread, _)| thread.process.to_string()).collect();
    warn(ID, title, format!("{}, {}", read(thread), read(parent)))
        .because(
            "It competes with the threads that need their priority, unless it was meant to have it.",
            processes
                .iter()
                .map(|process| format!("sudo chrt --all-tasks --other --pid 0 {process}"))
                .collect::<Vec<_>>()
                .join("\n"),
        )
        .until_exit()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_counts_from_the_start_of_a_thread() {
        let thread = |id, start_ticks, ran_ticks| Scheduled {
            id,
            process: id,
            parent: 2,
            name: id.to_string(),
            is_kernels: true,
            realtime: None,
            start_ticks,
            ran_ticks,
        };
        let threads = [thread(3, 0, 1_000), thread(4, 90_000, 1_000), thread(5, 99_500, 500)];
        let (found, share) = busiest(threads.iter(), 1000.0).unwrap();
        assert_eq!(found.id, 4, "10 s of 100 s; thread 5 lives for 5 s only");
        assert!((share - 0.1).abs() < 1e-9);
        assert!(busiest(threads.iter(), 1.0).is_none());
    }
}
