//! The longest cycle of a thread in words.

use record::{Cycle, CycleCause, CyclePart, LockWait, ProcessThread, Record, Release, Series, ThreadTimes, grouped};

use super::Limits;
use crate::format_unsigned_ns;

/// The number of parts of a cycle that are named.
const NAMED: usize = 4;

/// Facts about the whole run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Run<'a> {
    /// The file that sets the CPU quota that stopped the program.
    quota_file: Option<&'a str>,
    /// About how long the program's control group was frozen, ns.
    frozen_ns: u64,
    /// True if the hypervisor took CPU time.
    host_took_time: bool,
}

impl<'a> Run<'a> {
    pub fn of(record: &'a Record) -> Self {
        let quota_file = record.program.as_ref().and_then(|program| program.quota_file.as_deref());
        // In an emulated guest, this caveat is about its times.
        let is_real = record.machine.emulation.is_none();
        let frozen_ns = record.program.as_ref().map_or(0, |program| program.frozen_ns);
        Self {
            quota_file,
            frozen_ns,
            host_took_time: is_real && record.caveats.iter().any(|caveat| caveat.kind == "virtual"),
        }
    }
}

/// A thread with fewer cycles only starts others and waits for their ends.
const CYCLIC: u64 = 10;

/// The longest cycle and its main cause.
pub(super) fn longest(series: &Series, thread: &ProcessThread, run: &Run<'_>) -> Option<String> {
    let cycle = thread.longest.as_ref()?;
    let (role, response) = (&series.role, format_unsigned_ns(cycle.response_ns()));
    if cycle.parts.is_empty() {
        return Some(format!("The longest cycle of {role} took {response}: {}.", by_state(&cycle.times)));
    }
    let parts: Vec<String> = cycle.parts.iter().filter(|part| part.ns > 0).take(NAMED).map(part).collect();
    let start = match thread.release {
        Release::AnySleep | Release::Event | Release::AnyEvent => "from its wake-up",
        Release::Timer => "from the expiry of its timer",
        Release::Yield => "from the time that it had a CPU again",
        Release::Mark => "from its mark",
        Release::Alternating | Release::Mixed => "from the end of its sleep, or from its wake-up",
        Release::AbsoluteSleep => "from the time that it slept until",
        Release::RelativeSleep => "from the end of the sleep that it asked for",
    };
    let cause = main_cause(cycle, run);
    Some(format!("The longest cycle of {role} took {response} {start}: {}. Main cause: {cause}.", parts.join(", ")))
}

/// The same without the parts of the cycle.
pub(super) fn longest_in_short(series: &Series, thread: &ProcessThread, run: &Run<'_>) -> Option<String> {
    let (cycle, longest) = (thread.longest.as_ref()?, longest_alone(series, thread)?);
    Some(match cycle.parts.is_empty() {
        true => longest,
        false => format!("{longest} Main cause: {}.", main_cause(cycle, run)),
    })
}

/// The longest cycle alone.
pub(super) fn longest_alone(series: &Series, thread: &ProcessThread) -> Option<String> {
    let cycle = thread.longest.as_ref()?;
    Some(format!("The longest cycle of {} took {}.", series.role, format_unsigned_ns(cycle.response_ns())))
}

/// Says which threads have cycles without a known start, with the remedy; `None` without such threads.
pub(super) fn unclear<'a>(threads: impl Iterator<Item = &'a (&'a Series, &'a ProcessThread)>) -> Option<String> {
    let unclear = threads.filter(|(series, thread)| is_unclear(series, thread));
    let names: Vec<&str> = unclear.take(NAMED).map(|(series, _)| series.role.as_str()).collect();
    (!names.is_empty()).then(|| {
        format!(
            "the trace does not show which wait starts a cycle of {}, so the real cycles may be longer or shorter; mark the \
             cycles with include/punctual.h",
            names.join(", ")
        )
    })
}

/// Says which thread waits with the yield of the deadline policy; `None` without such a thread.
pub(super) fn yields((series, thread): &(&Series, &ProcessThread)) -> Option<String> {
    (thread.release == Release::Yield).then(|| {
        format!(
            "the kernel does not trace when the deadline policy starts the next period of {}, so its cycles may be longer",
            series.role
        )
    })
}

/// Says which thread has cycles in a row that together exceed a limit, and that may be one; `None` without such a thread.
pub(super) fn long_row((series, thread): &(&Series, &ProcessThread), limits: Limits) -> Option<String> {
    let (role, row_ns) = (&series.role, thread.longest_row_ns);
    (row_ns > limits.cycle_ns(series.period_ns)?).then(|| {
        format!(
            "several cycles of {role} in a row, which took {} together, may be one: it waited for something else than usual \
             between them; mark the cycles with include/punctual.h",
            format_unsigned_ns(row_ns)
        )
    })
}

/// Says which thread has a cycle that was cut and may have exceeded a limit; `None` without such a thread.
pub(super) fn long_cut((series, thread): &(&Series, &ProcessThread), limits: Limits) -> Option<String> {
    let (role, cut_ns) = (&series.role, thread.longest_cut_ns);
    (cut_ns > limits.cycle_ns(series.period_ns)?).then(|| {
        format!(
            "a cycle of {role} that could not be followed from start to end may have taken up to {}: measure again, or mark \
             the cycles with include/punctual.h",
            format_unsigned_ns(cut_ns)
        )
    })
}

/// True if a cycle may contain several of the waits that count as the start of one.
fn is_unclear(series: &Series, thread: &ProcessThread) -> bool {
    let observed_ns = thread.times.total_ns();
    let periods = observed_ns.checked_div(series.period_ns).filter(|_| observed_ns > 0);
    let too_many = periods.is_some_and(|periods| {
        // A cycle more can come at each end.
        thread.cycles > periods + periods / 20 + 2
    });
    let by_trace =
        matches!(thread.release, Release::AnySleep | Release::AnyEvent | Release::Alternating | Release::Mixed);
    thread.cycles >= CYCLIC && (too_many || by_trace)
}

/// True if a cycle may contain the wait for the next one, so that it seems longer than it is.
pub(super) fn may_contain_idle_time(thread: &ProcessThread) -> bool {
    thread.release == Release::Mixed
}

/// The part of a cycle that is certain, ns: without its waits, if one of them may be that for the next cycle.
pub(super) fn certain_ns(thread: &ProcessThread, cycle: &Cycle) -> u64 {
    match may_contain_idle_time(thread) {
        true => cycle.times.running_ns + cycle.times.waiting_ns(),
        false => cycle.response_ns(),
    }
}

/// The thread that ended later after its last release than this limit allows a cycle to take, ns: its last cycle may have
/// been too long. `None` without such a thread.
pub(super) fn too_long_at_end(threads: &[(&Series, &ProcessThread)], limits: Limits) -> Option<String> {
    let (role, ending_ns) = threads.iter().find_map(|(series, thread)| {
        /// A thread with fewer cycles only starts, and prepares its work.
        const FEW: u64 = 3;
        let limit_ns = limits.cycle_ns(series.period_ns)?;
        // A thread with few cycles may wait for others at its end.
        let is_long = thread.cycles >= CYCLIC && thread.ending_ns > limit_ns
            || thread.cycles >= FEW && thread.ending_work_ns > limit_ns;
        is_long.then_some((&series.role, thread.ending_ns))
    })?;
    let ending = format_unsigned_ns(ending_ns);
    Some(format!(
        "the time from the last release of {role} to its end, {ending}, is no cycle, but may contain one that was too long: \
         end the run earlier with --duration, or mark the cycles with include/punctual.h"
    ))
}

/// The largest parts of a cycle; `None` if its parts are unknown.
pub(super) fn parts(cycle: &Cycle) -> Option<String> {
    let parts: Vec<String> = cycle.parts.iter().filter(|part| part.ns > 0).take(NAMED).map(part).collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// The cycle that a thread had not ended at the end of the run, with its main cause; `None` unless it is its longest.
pub(super) fn open(series: &Series, thread: &ProcessThread, run: &Run<'_>) -> Option<String> {
    let open = thread.open.as_ref()?;
    let (role, response_ns) = (&series.role, open.response_ns());
    if thread.longest.as_ref().is_some_and(|longest| longest.response_ns() >= response_ns) {
        return None;
    }
    let parts: Vec<String> = open.parts.iter().filter(|part| part.ns > 0).take(NAMED).map(part).collect();
    let (response, cause) = (format_unsigned_ns(response_ns), main_cause(open, run));
    let parts = parts.join(", ");
    Some(format!(
        "{role} did not end its last cycle, {response} long at the end of the run: {parts}. Main cause: {cause}."
    ))
}

/// The time of a cycle without known causes.
fn by_state(times: &ThreadTimes) -> String {
    let parts = [
        (times.running_ns, "its own work"),
        (times.waiting_ns(), "waiting for a CPU"),
        (times.blocked_ns, "waiting for something else"),
    ];
    let parts = parts.iter().filter(|(ns, _)| *ns > 0);
    parts.map(|(ns, what)| format!("{} {what}", format_unsigned_ns(*ns))).collect::<Vec<_>>().join(", ")
}

/// A part in words: `8.5 ms preempted by stress`.
fn part(part: &CyclePart) -> String {
    let time = format_unsigned_ns(part.ns);
    let count = match (part.cause, part.count) {
        (CycleCause::PageFaults, count) => format!(" ({})", grouped(count)),
        (_, count) if count > 1 => format!(" ({} times)", grouped(count)),
        _ => String::new(),
    };
    let about = if part.cause == CycleCause::PageFaults { "about " } else { "" };
    format!("{about}{time} {}{count}", cause_words(part.cause))
}

/// A cause as the name of a part of a cycle.
#[must_use]
pub fn cause_words(cause: CycleCause) -> &'static str {
    match cause {
        CycleCause::OwnWork => "its own work",
        CycleCause::SignalHandler => "signal handlers",
        CycleCause::PageFaults => "page faults",
        CycleCause::PreviousCycle => "until its previous cycle was complete",
        CycleCause::TimerSlack => "within its timer slack",
        CycleCause::LateTimer => "until the timer woke it",
        CycleCause::WakeUp => "waiting for a CPU after a wake-up",
        CycleCause::Preemption => "preempted",
        CycleCause::RealtimeLimit => "stopped by the limit of real-time CPU time",
        CycleCause::DeadlineBudget => "stopped because its deadline policy grants no more CPU time",
        CycleCause::Quota => "stopped by the CPU quota of its control group",
        CycleCause::Withheld => "without a CPU although no thread ran on it",
        CycleCause::PriorityInversion => "priority inversion",
        CycleCause::LockHeld => "waiting for a lock",
        CycleCause::LockConvoy => "waiting in a queue for a lock",
        CycleCause::KernelLock => "waiting for a lock of the kernel",
        CycleCause::Disk => "waiting for a disk",
        CycleCause::Sleep => "in a sleep of its own",
        CycleCause::Event => "waiting for another thread, program or device",
        CycleCause::Stopped => "stopped",
        CycleCause::Unknown => "waiting for something unknown",
    }
}

/// The main cause of a cycle with what to do.
fn main_cause(cycle: &Cycle, run: &Run<'_>) -> String {
    let Some(main) = cycle.parts.first() else { return "unknown".to_owned() };
    let cause = cause_of(main, cycle.lock.as_ref(), run);
    let faults = cycle.parts.iter().find(|part| part.cause == CycleCause::PageFaults && part.count > 0);
    match (&cycle.delayed_by, faults) {
        (Some(first), _) => format!("{cause}, mostly because of {}", cause_of(first, None, run)),
        (None, Some(CyclePart { count, .. })) if main.cause == CycleCause::OwnWork => format!(
            "{cause}; its page faults ({}) are counted as those of small pages, and take longer with huge ones",
            grouped(*count)
        ),
        (None, _) => cause,
    }
}

/// The cause of the longest part of a cycle with what to do. `lock` is the longest wait for a lock in that cycle.
fn cause_of(main: &CyclePart, lock: Option<&LockWait>, run: &Run<'_>) -> String {
    let by = if main.by.is_empty() { String::new() } else { format!(" by {} (pid {})", main.by, main.by_tid) };
    let call = if main.call.is_empty() { String::new() } else { format!(" in {}", main.call) };
    match main.cause {
        CycleCause::OwnWork if run.host_took_time => {
            "the program itself, or the hypervisor, which took CPU time during the run".to_owned()
        }
        CycleCause::OwnWork => "the program itself".to_owned(),
        CycleCause::SignalHandler => format!("its handlers of {} signals", grouped(main.count)),
        CycleCause::PageFaults => {
            let count = grouped(main.count);
            format!("{count} page faults: lock the memory with mlockall, and touch it before the cycles start")
        }
        CycleCause::PreviousCycle => "its previous cycle took longer than the time between two releases".to_owned(),
        CycleCause::TimerSlack => "its timer slack, which delays its sleeps to save power: set it to 1 with \
                                   prctl(PR_SET_TIMERSLACK), or use a real-time policy"
            .to_owned(),
        CycleCause::LateTimer => "the timer of its sleep was late: measure the machine with `punctual`".to_owned(),
        CycleCause::WakeUp | CycleCause::Preemption => match (main.own, main.by.is_empty()) {
            (true, _) => format!("punctual itself, thread {}, which reads the trace", named(main)),
            (false, true) => "other work on the CPU, most of it unknown threads".to_owned(),
            (false, false) => format!("other work on the CPU, most of it {}", named(main)),
        },
        CycleCause::RealtimeLimit => {
            "the kernel limits the CPU time of all real-time threads (sched_rt_runtime_us, fair server)".to_owned()
        }
        CycleCause::DeadlineBudget => {
            "it needs more CPU time than its deadline policy grants: increase the runtime of the policy".to_owned()
        }
        CycleCause::Quota => match run.quota_file {
            Some(file) => format!("the CPU quota of its control group: increase it in {file}"),
            None => "the CPU quota of its control group: increase cpu.max or cpu.cfs_quota_us of the group".to_owned(),
        },
        CycleCause::Withheld => "unknown: the kernel withheld the CPU, but not because of a quota".to_owned(),
        CycleCause::PriorityInversion | CycleCause::LockHeld | CycleCause::LockConvoy | CycleCause::KernelLock => {
            let name = if main.cause == CycleCause::KernelLock { "a lock of the kernel" } else { "a lock" };
            lock.map_or_else(|| format!("{name}{call}"), super::locks::cause)
        }
        CycleCause::Disk => format!("a wait for a disk{call}"),
        CycleCause::Sleep => format!("the program slept{call} within its cycle"),
        CycleCause::Event => format!("a wait{call}{}", by.replacen(" by", ", ended by", 1)),
        CycleCause::Stopped if run.frozen_ns > 0 => format!(
            "its control group was frozen, such as by `docker pause`, for about {} during the run",
            format_unsigned_ns(run.frozen_ns)
        ),
        CycleCause::Stopped => "it was stopped by a signal or a debugger".to_owned(),
        CycleCause::Unknown => format!("unknown: a wait{call}"),
    }
}

fn named(part: &CyclePart) -> String {
    format!("{} (pid {})", part.by, part.by_tid)
}
