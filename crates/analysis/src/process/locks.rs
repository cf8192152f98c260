//! Waits for locks in words.

use std::cmp::Reverse;

use record::{HeldLock, LockPreempter, LockWait, LockWaits, ProcessThread, Series, grouped, priority_in_words};

use crate::format_unsigned_ns;

/// The number of threads whose waits are named.
const NAMED: usize = 4;
/// Remedy for locks without priority inheritance.
const INHERIT: &str = "a mutex with PTHREAD_PRIO_INHERIT (pthread_mutexattr_setprotocol)";

/// The waits for a lock of the threads with the worst ones: priority inversions, or else the longest ones. `threads`
/// starts with the one whose longest cycle is explained; its lock is not explained again.
pub(super) fn waits(threads: &[(&Series, &ProcessThread)]) -> Vec<String> {
    let explained = threads.first().and_then(|(_, thread)| thread.longest.as_ref()?.lock.as_ref());
    let mut worst: Vec<(&Series, &LockWaits)> =
        threads.iter().filter_map(|(series, thread)| Some((*series, worst_of(thread)?))).collect();
    worst.sort_by_key(|(_, waits)| Reverse((waits.inverted_ns, waits.waited_ns)));
    worst.iter().take(NAMED).map(|(series, waits)| summary(series, waits, explained)).collect()
}

/// The thread that priority inversions delayed for the longest time, with their cause; `None` without any.
pub(super) fn worst_inversion(threads: &[(&Series, &ProcessThread)]) -> Option<String> {
    let waits = threads.iter().filter_map(|(series, thread)| {
        let worst = thread.locks.iter().max_by_key(|waits| waits.inverted_ns)?;
        Some((*series, worst))
    });
    let is_inverted = |waits: &LockWaits| waits.worst.inverted_ns > 0 && waits.inverted_ns >= waits.waited_ns / 10;
    let (series, waits) = waits.filter(|(_, waits)| is_inverted(waits)).max_by_key(|(_, waits)| waits.inverted_ns)?;
    Some(summary(series, waits, None))
}

fn worst_of(thread: &ProcessThread) -> Option<&LockWaits> {
    let longest_ns = thread.longest.as_ref().map_or(0, record::Cycle::response_ns);
    // Every program waits for locks of the kernel now and then.
    let divisor = |waits: &LockWaits| if is_of_kernel(&waits.worst) { 10 } else { 100 };
    let matters = |waits: &&LockWaits| waits.longest_ns >= longest_ns / divisor(waits);
    thread.locks.iter().filter(matters).max_by_key(|waits| (waits.inverted_ns, waits.waited_ns))
}

fn summary(series: &Series, waits: &LockWaits, explained: Option<&LockWait>) -> String {
    let (wait, waited) = (&waits.worst, format_unsigned_ns(waits.waited_ns));
    let (times, took) = match waits.count {
        1 => ("once".to_owned(), waited),
        count => (
            format!("{} times", grouped(count)),
            format!("{waited} in all, {} at most", format_unsigned_ns(waits.longest_ns)),
        ),
    };
    let is_same = |other: &LockWait| (&other.lock, &other.call) == (&wait.lock, &wait.call);
    let cause = if explained.is_some_and(is_same) { String::new() } else { format!(": {}", cause(wait)) };
    format!("{} waited {times} for {}, {took}{cause}.", series.role, name(wait))
}

fn is_of_kernel(wait: &LockWait) -> bool {
    wait.lock.is_empty()
}

/// `lock 0x7f10`, or `a lock of the kernel in write`.
fn name(wait: &LockWait) -> String {
    match (wait.lock.as_str(), wait.call.as_str()) {
        ("", "") => "a lock of the kernel".to_owned(),
        ("", call) => format!("a lock of the kernel in {call}"),
        (lock, _) => format!("lock {lock}"),
    }
}

/// Why a wait for a lock took long, with what to do.
pub(super) fn cause(wait: &LockWait) -> String {
    if wait.holder.is_empty() {
        return unknown_holder(wait);
    }
    let preempter = wait.preempter.as_ref().filter(|_| wait.inverted_ns > 0 && wait.inverted_ns >= wait.waited_ns / 2);
    if let Some(by) = preempter {
        return inversion(wait, by);
    }
    let last = thread_words(&wait.holder, wait.holder_tid, wait.holder_priority);
    if wait.holders > 1 && !is_of_kernel(wait) {
        return format!(
            "a lock convoy: {} threads held it, one after the other, the last one was {last}; hold it for a shorter time, \
             or use more than one lock",
            grouped(wait.holders)
        );
    }
    let held = match is_of_kernel(wait) {
        true => format!("{last} held {}", name(wait)),
        false => format!("{last} held it{}", inheritance(wait.inherits_priority, wait.priority)),
    };
    let by = wait.preempter.as_ref().map(|by| format!(", because of {}", preempter_words(by))).unwrap_or_default();
    let known_ns = wait.ran_ns + wait.holder_waited_ns + wait.unknown_ns;
    let doing = [
        (wait.ran_ns, "computed", ""),
        (wait.holder_waited_ns, "waited for something else", ""),
        (wait.waited_ns.saturating_sub(known_ns), "had no CPU", by.as_str()),
    ];
    let main = doing.iter().max_by_key(|(ns, ..)| *ns).filter(|(ns, ..)| *ns > wait.unknown_ns);
    match main {
        Some((_, what, by)) => format!("{held}, and mostly {what} meanwhile{by}; hold it for a shorter time"),
        None => format!("{held}; what it did meanwhile is unknown"),
    }
}

fn unknown_holder(wait: &LockWait) -> String {
    let more = match is_of_kernel(wait) {
        true => "`sudo perf lock contention -a -b` shows the code that waits",
        false => {
            "it did not release the lock before the wait ended, as after a timeout, or is in a process that is not watched"
        }
    };
    format!("{}, whose holder is unknown; {more}", name(wait))
}

/// ` with priority inheritance`; empty if a thread with `priority` waits, which it does not help.
fn inheritance(inherits: bool, priority: i32) -> &'static str {
    match inherits {
        _ if is_ordinary(priority) => "",
        true => " with priority inheritance",
        false => " without priority inheritance",
    }
}

fn is_ordinary(priority: i32) -> bool {
    priority >= 100
}

fn preempter_words(by: &LockPreempter) -> String {
    let thread = thread_words(&by.comm, by.tid, by.priority);
    if by.own { format!("punctual itself, thread {thread}") } else { thread }
}

/// A priority inversion with its locks, their holders, the preempting thread, and a remedy.
fn inversion(wait: &LockWait, by: &LockPreempter) -> String {
    let own = |held: &HeldLock| match is_ordinary(wait.priority) || held.lock.is_empty() {
        true => "",
        false => inheritance(held.inherits_priority, wait.priority),
    };
    let name = |held: &HeldLock| match held.lock.as_str() {
        "" => "a lock of the kernel".to_owned(),
        lock => format!("lock {lock}"),
    };
    let mut held = String::new();
    for (index, lock) in by.locks.iter().enumerate() {
        held += &match index {
            0 if lock.holder_tid == wait.holder_tid => {
                let holder = thread_words(&wait.holder, wait.holder_tid, wait.holder_priority);
                format!("{holder} held it{}", own(lock))
            }
            0 => format!("{} (pid {}) held it{}", lock.holder, lock.holder_tid, own(lock)),
            _ => {
                let (name, holder) = (name(lock), &lock.holder);
                format!(" and waited for {name}, which {holder} (pid {}) held{}", lock.holder_tid, own(lock))
            }
        };
    }
    let at = self::name(wait);
    let (who, kept, remedy) = (preempter_words(by), &by.kept, remedy(wait, by));
    format!("priority inversion at {at}: {held}, and {who} kept {kept} off the CPU; {remedy}")
}

/// The remedy for a priority inversion.
fn remedy(wait: &LockWait, by: &LockPreempter) -> String {
    if is_ordinary(wait.priority) {
        return "priority inheritance does not pass on nice values: give the threads real-time priorities, or hold the \
                lock for a shorter time"
            .to_owned();
    }
    let plain: Vec<&str> = by
        .locks
        .iter()
        .filter(|held| !held.inherits_priority && !held.lock.is_empty())
        .map(|held| held.lock.as_str())
        .collect();
    if let Some((first, others)) = plain.split_first() {
        let others: String = others.iter().map(|lock| format!(" and for {lock}")).collect();
        return format!("use {INHERIT} for {first}{others}");
    }
    let (waits, kept) = (priority_in_words(wait.priority), &by.kept);
    if by.locks.iter().any(|held| held.lock.is_empty()) {
        return format!(
            "most locks of the kernel do not pass on priorities: give {kept} the priority of the waiting thread ({waits}) for \
             this call, or do not let both use the same file, memory or device"
        );
    }
    format!("all these locks pass on priorities, so {kept} lost its CPU for another reason, such as its CPU affinity")
}

/// A thread with its priority: `low (pid 12, real-time 10)`.
fn thread_words(comm: &str, tid: u32, priority: i32) -> String {
    format!("{comm} (pid {tid}, {})", priority_in_words(priority))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(lock: &str, inherits_priority: bool, holder: &str) -> HeldLock {
        HeldLock { lock: lock.into(), inherits_priority, holder: holder.into(), holder_tid: 12 }
    }

    /// `high` waits 9 ms for a lock of `low`, which `mid` kept off the CPU for 8 ms of it.
    fn inverted(locks: Vec<HeldLock>) -> LockWait {
        let by = LockPreempter {
            comm: "mid".into(),
            tid: 13,
            priority: 49,
            kept: "low".into(),
            ns: 8_000_000,
            locks,
            ..LockPreempter::default()
        };
        LockWait {
            lock: "0x7f10".into(),
            priority: 19,
            holder: "low".into(),
            holder_tid: 12,
            holder_priority: 89,
            preempter: Some(by),
            waited_ns: 9_000_000,
            inverted_ns: 8_000_000,
            ran_ns: 1_000_000,
            holders: 1,
            ..LockWait::default()
        }
    }

    #[test]
    fn names_holder_lock_and_preempter_of_a_priority_inversion() {
        let worst = inverted(vec![held("0x7f10", false, "low")]);
        let sum = LockWaits { count: 3, waited_ns: 11_000_000, longest_ns: 9_000_000, inverted_ns: 8_000_000, worst };
        let thread = ProcessThread { locks: vec![sum], ..ProcessThread::default() };
        let series = Series { role: "high".into(), ..Series::default() };
        assert_eq!(
            waits(&[(&series, &thread)]),
            [
                "high waited 3 times for lock 0x7f10, 11 ms in all, 9 ms at most: priority inversion at lock 0x7f10: low (pid \
              12, real-time 10) held it without priority inheritance, and mid (pid 13, real-time 50) kept low off the CPU; \
              use a mutex with PTHREAD_PRIO_INHERIT (pthread_mutexattr_setprotocol) for 0x7f10."
            ]
        );
    }

    #[test]
    fn the_remedy_is_for_the_locks_that_need_it() {
        let remedy = |locks| cause(&inverted(locks)).rsplit_once("; ").unwrap().1.to_owned();
        let inherit = "use a mutex with PTHREAD_PRIO_INHERIT (pthread_mutexattr_setprotocol) for";
        assert_eq!(
            remedy(vec![held("0xa", false, "low"), held("0xb", false, "b")]),
            format!("{inherit} 0xa and for 0xb")
        );
        assert_eq!(remedy(vec![held("0xa", true, "low"), held("0xb", false, "b")]), format!("{inherit} 0xb"));
        assert!(remedy(vec![held("0xa", true, "low")]).starts_with("all these locks pass on priorities"));
        assert!(remedy(vec![held("", false, "low")]).starts_with("most locks of the kernel"));
        let chain = cause(&inverted(vec![held("0xa", true, "low"), held("0xb", false, "b")]));
        assert!(chain.contains("low (pid 12, real-time 10) held it with priority inheritance and waited for lock 0xb, which b (pid 12) held without"), "{chain}");
        let nice = LockWait { priority: 105, ..inverted(vec![held("0xa", true, "low")]) };
        assert!(cause(&nice).ends_with("or hold the lock for a shorter time") && !cause(&nice).contains("PTHREAD"));
    }

    #[test]
    fn names_other_reasons_of_a_long_wait() {
        let wait = inverted(Vec::new());
        let computed =
            LockWait { inverted_ns: 0, preempter: None, inherits_priority: true, ran_ns: 9_000_000, ..wait.clone() };
        assert!(
            cause(&computed).ends_with(
                "held it with priority inheritance, and mostly computed meanwhile; hold it for a shorter time"
            )
        );
        let convoy = LockWait { inverted_ns: 0, holders: 3, ..wait.clone() };
        assert!(cause(&convoy).starts_with("a lock convoy: 3 threads held it"));
        let waited = LockWait { inverted_ns: 0, ran_ns: 0, ..wait.clone() };
        assert!(cause(&waited).contains("mostly had no CPU meanwhile, because of mid (pid 13, real-time 50);"));
        let unknown = LockWait { holder: String::new(), ..wait };
        assert!(cause(&unknown).starts_with("lock 0x7f10, whose holder is unknown; it did not release the lock"));
        let kernel = LockWait { lock: String::new(), call: "write".into(), ..unknown };
        assert!(cause(&kernel).starts_with("a lock of the kernel in write, whose holder is unknown; `sudo perf"));
    }
}
